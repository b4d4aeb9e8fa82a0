#!/usr/bin/env python3
"""tests/calls/table.py - writes table.inc: one function for each public function, that draws its arguments.

usage: table.py SOURCE_FOLDER table.inc DEPENDENCIES      (a makefile of what it read)

Declarations are those of the installed headers, and of the internal ones (*_internal.h) that the rooms
of the library share, read by tests/interface.py. Every parameter is drawn by
its type from the pools of world.h; a list has as many elements as the number beside it says. A public
function with a parameter that no rule here fits ends the build: give it a rule, or a row in BY_HAND
with a reason.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import interface  # noqa: E402

OF_A_CALL = 'its arguments are those of an op that runs: suites custom and rules'
BY_HAND = {
    'wf_model_emit_training_on': 'wf_model_emit_training calls it: suite emit_training',
    'wf_poison': 'variable arguments: suite errors',
    'wf_refuse': 'variable arguments: suite errors',
    **dict.fromkeys('wf_marian_import wf_marian_export wf_marian_export_like wf_marian_export_int8 wf_marian_load'.split(),
                    'bytes of whole files: suite marian'),
    **dict.fromkeys('wf_marian_scales_new wf_marian_scales_add wf_marian_scales_free'.split(),
                    'a text run through a model: suite marian'),
    'wf_processes_run': 'it makes processes: suite transport',
    **dict.fromkeys('wf_feed_lent wf_feed_place wf_plan_watch wf_leaf_forget'.split(),
                    'plans keep what they are given, and memory of theirs is written: suite run'),
    **dict.fromkeys((
        'wf_fail wf_show wf_view_count wf_view_unit wf_view_bytes wf_view_dense wf_view_rows wf_same_shape '
        'wf_set_shape wf_broadcast_shapes wf_get wf_put wf_runs_start '
        'wf_runs_next wf_elementwise_tasks wf_row_tasks wf_row_range wf_same_as_operands wf_want wf_want_real '
        'wf_dense_strides').split(), OF_A_CALL),
}

# Types whose objects are drawn from pools. For a function that frees its argument, a new object is
# made.
POOLS = {
    'wf_tensor': 'tensor', 'wf_graph': 'graph', 'wf_plan': 'plan', 'wf_state': 'state', 'wf_pool': 'pool',
    'wf_file': 'file', 'wf_model': 'model', 'wf_decoder': 'decoder', 'wf_tokenizer': 'tokenizer',
    'wf_json_tokenizer': 'json_tokenizer', 'wf_trainer': 'trainer', 'wf_transport': 'transport', 'wf_op': 'op',
    'wf_model_kind': 'kind', 'wf_shortlist': 'shortlist', 'wf_optimizer': 'optimizer', 'wf_hf': 'hf',
}
FREED = {'wf_file_drop_loaded': 'dropped', 'wf_hf_export': 'imported'}
NUMBERS = {
    'int': 'int', 'int64_t': 'size', 'int32_t': 'id', 'uint32_t': 'bits', 'uint64_t': 'bits', 'unsigned': 'bits',
    'size_t': 'bytes', 'double': 'real', 'float': 'real', 'bool': 'bool', 'wf_init': 'init',
}
# Parameters that are drawn by their name, whatever their type is.
NAMED = {'axis': 'axis', 'axes': 'axes', 'capacity': 'count', 'ndim': 'rank', 'n': 'count'}
PATHS = {'path', 'folder'}
LINES = {'line', 'vocabulary', 'codes', 'merges', 'json', 'second'}  # a text with its number of bytes beside it
ELEMENTS = {
    'wf_tensor *const *': 'tensors', 'const int64_t *': 'sizes', 'const int32_t *': 'ids', 'const int *': 'axes_list',
    'wf_file *const *': 'files', 'wf_plan *const *': 'plans', 'const wf_entry *const *': 'entries', 'const void *': 'data',
    'const double *': 'reals', 'const char *const *': 'texts', 'const double': 'reals',
    'void *': 'room', 'wf_tensor **': 'room_for_tensors', 'int32_t *': 'room_for_ids', 'int64_t *': 'room_for_sizes',
    'double *': 'room_for_reals', 'int *': 'room_for_ints', 'size_t *': 'room_for_bytes', 'char *': 'room',
    'const char *': 'bytes_of_text', 'int64_t': 'room_for_sizes', 'double': 'room_for_reals', 'char': 'room',
    'wf_decoded *': 'room_for_decoded', 'wf_decoded': 'room_for_decoded', 'wf_json_token *': 'room_for_json_tokens',
}
# FUNCTION.PARAMETER: the length of a list whose length no other parameter gives. It is an expression of C, with
# the arguments a0, a1 and so on.
ROW, PAIRS = '64', '4096'
LENGTHS = {
    'wf_permute.order': '8', 'wf_tile.times': '8', 'wf_interpolate.sizes': '8', 'wf_write_part.data': '8 * few(a2)',
    'wf_read_part.data': '8 * few(a2)', 'wf_constant_array.data': '8 * product(a2, a3)',
    'wf_mul_size.out': '1', 'wf_shape_bytes.out': '1', 'wf_bound_shape.shape': 'WF_MAX_DIMS',
    'wf_format_real.text': 'WF_REAL_TEXT', 'wf_parse_real.value': '1', 'wf_mha_keys_values.k': '1',
    'wf_mha_keys_values.v': '1', 'wf_norm_batch.updates': '2', 'wf_optimizer_rates.out': '3',
    'wf_recurrent_step.c': '1', 'wf_trainer_begin.from': '1', 'wf_trainer_begin.to': '1',
    'wf_trainer_memory.bytes': '1', 'wf_trainer_write.leaves': 'a3', 'wf_model_text.text': '256', 'wf_model_hash.text': 'WF_MODEL_HASH', 'wf_file_bytes.size': '1',
    'wf_model_describe.text': '256', 'wf_tokenizer_to_meta.n': '1', 'wf_optimizer_from_gradients.grads': 'a5',
    'wf_grad.grads': 'a2', 'wf_vjp.dy': 'a2', 'wf_vjp.dx': 'a4', 'wf_split.parts': 'a3', 'wf_chunk.parts': 'a2',
    'wf_file_load_leaves.leaves': 'a2', 'wf_file_load_from.leaves': 'a4',
    'wf_file_load_from.scales': 'a4', 'wf_feed_reals.values': 'a3', 'wf_tokenizer_encode.ids': 'a4',
    'wf_tokenizer_encode_text.ids': 'a4',
    'wf_tokenizer_decode.text': 'a4', 'wf_json_tokenizer_decode.text': 'a5', 'wf_json_tokenizer_encode.tokens': 'a7',
    'wf_tokenizer_read.codes': 'a4', 'wf_decode_greedy.out': PAIRS,
    'wf_score.log_probs': PAIRS, 'wf_score.totals': ROW, 'wf_alltoallv.send': PAIRS, 'wf_alltoallv.receive': PAIRS,
    'wf_allgather.send': PAIRS, 'wf_allgather.receive': PAIRS, 'wf_allgatherv.send': PAIRS, 'wf_allgatherv.receive': PAIRS, 'wf_decode.results': ROW,
    'wf_encoder_run.vectors': '65536', 'wf_encoder_run_for.out': '65536', 'wf_decoded_free.results': ROW, 'wf_mha_options.weights': '1', 'wf_tokenizer_to_meta.pairs': 'WF_TOKENIZER_META',
    'wf_shortlist_candidates.ids': 'a4',
    'wf_generation_to_meta.pairs': 'WF_GENERATION_META', 'wf_emit_options.runs': '40',
    'wf_emit_options.arena_bytes': '1', 'wf_emit_options.n_weights': '1',
    'wf_emit_options.n_int8': '1',
    'wf_training_emit_options.memory_bytes': '1', 'wf_training_emit_options.weight_bytes': '1',
    'wf_model_emit_options.memory_bytes': '1', 'wf_model_emit_options.weight_bytes': '1',
}
for function in ('wf_decode', 'wf_decode_greedy', 'wf_score', 'wf_batch', 'wf_encoder_run', 'wf_encoder_run_for'):
    for name in 'src src_length tgt tgt_length sentence_index out_length labels'.split():
        LENGTHS[f'{function}.{name}'] = PAIRS
# Parameters and fields that are not drawn by the rule of their type. Most are counts of elements in an array of the caller, and
# never more than it has. None: never set.
CALLERS = {
    'wf_decode.b': 'rows', 'wf_decode.s': 'rows', 'wf_decode_greedy.b': 'rows', 'wf_decode_greedy.s': 'rows',
    'wf_decode_greedy.max_new': 'rows', 'wf_score.b': 'rows', 'wf_score.s': 'rows', 'wf_score.t': 'rows',
    'wf_decoded_free.b': 'rows', 'wf_batch.B': 'rows', 'wf_batch.S': 'rows', 'wf_batch.T': 'rows',
    'wf_encoder_run.B': 'rows', 'wf_encoder_run.S': 'rows', 'wf_encoder_run_for.B': 'rows', 'wf_encoder_run_for.S': 'rows', 'wf_chunk.n': 'count', 'wf_vjp.n_y': 'count', 'wf_vjp.n_x': 'count', 'wf_decoder_memory.b': 'rows',
    'wf_decoder_memory.s': 'rows', 'wf_pool_new.threads': 'rows', 'wf_scope.path': 'text', 'wf_bind.extent': 'extent', 'wf_hf_import.out': 'fresh_hf', 'wf_hf_list_files.list': 'fresh_list',
    'wf_decoded_free.results': 'no_results', 'wf_record.attrs': 'nothing',
    'wf_emit_options.weights_file': None, 'wf_model_emit_options.weights_file': None,
    'wf_training_emit_options.weights_file': None,
    'wf_tokenizer_options.codes_bytes': 'bytes', 'wf_alltoallv.send_at': 'offsets', 'wf_alltoallv.receive_at': 'offsets',
    'wf_allgatherv.receive_at': 'offsets', 'wf_allgather.bytes': 'rows', 'wf_file_find.name': 'text', 'wf_sentencepiece_options.n_pieces': 'count',
    'wf_byte_level_options.n_pieces': 'count', 'wf_trainer_begin.micro_batches': 'size',
}
# Structs that a function of world.c draws as a whole. Of other structs, each field is drawn by its rule.
WHOLE = set('''wf_linear_layer wf_embedding_layer wf_position_layer wf_norm_layer wf_group_norm_layer
    wf_batch_norm_layer wf_mha_layer wf_feed_forward_layer wf_encoder_block wf_decoder_block wf_conv_layer
    wf_recurrent_cell wf_recurrent_layer wf_generation'''.split())
RESULTS = set('''wf_step wf_load_report wf_progress wf_generation_text wf_hf_files'''.split())
BEGUN = set('''wf_pool_options wf_stft_options wf_mel_options wf_block_options wf_optimizer_options wf_schedule
    wf_recurrent_options wf_model_sizes wf_transformer_config wf_language_model_config
    wf_encoder_config wf_decode_options
    wf_tokenizer_options wf_json_learn_options wf_entry wf_meta wf_rename wf_sentencepiece_options wf_byte_level_options
    wf_adam_options wf_rmsprop_options wf_lion_options wf_conv_options wf_resize_options wf_trainer_options'''.split())
ALWAYS = {'pool', 'user', 'listener', 'put'}  # fields that options are of no use without
CALLBACKS = {'on_error': 'told', 'hook': 'hook', 'keep': 'keep', 'each': 'each', 'trains': 'keep', 'on_param': 'hook',
             'heard': 'heard', 'watched': 'watched', 'begin': 'begin_folder', 'put': 'put_file', 'next': 'next_line', 'fill': None}
MAY_BE_NULL = set('''wf_find wf_class_next wf_node wf_computed_in wf_file_meta wf_tokenizer_piece wf_json_tokenizer_piece wf_named wf_scope wf_scope_push
    wf_rotary_positions wf_format_real'''.split())


def parts(text):
    """Split at commas outside of brackets."""
    found, depth, begin = [], 0, 0
    for i, c in enumerate(text + ','):
        depth += (c in '([') - (c in ')]')
        if c == ',' and depth == 0:
            found.append(text[begin:i].strip())
            begin = i + 1
    return found


def named(parameter):
    """(type, name, array) of a parameter or field."""
    callback = re.match(r'.*\(\*(\w+)\)\(', parameter)
    if callback:
        return 'callback', callback.group(1), ''
    m = re.match(r'(.*?)(\w+)((?:\[[^\]]*\])*)$', parameter)
    if not m:
        raise SystemExit(f'tests/calls/table.py: a parameter or field like no other: "{parameter}"')
    return m.group(1).strip(), m.group(2), m.group(3)


def fields(text):
    """(type, name, array) of a struct's fields: `int a, *b` is two."""
    body = text[text.index('{') + 1:].rsplit('}', 1)[0] if '}' in text else text[text.index('{') + 1:]
    for declaration in filter(None, (d.strip() for d in body.split(';'))):
        if '(*' in declaration:
            yield named(declaration)
            continue
        first, *more = parts(declaration)
        kind, name, array = named(first)
        yield kind, name, array
        base = re.sub(r'[\s*]*$', '', kind)
        for other in more:
            star = '*' if other.startswith('*') else ''
            yield (base + ' ' + star).strip(), *named('x ' + other.lstrip('*'))[1:]


class Writer:
    def __init__(self, found):
        self.found, self.structs, self.lines = found, {}, []

    def base(self, kind):
        return re.sub(r'\bconst\b|\bstruct\b|[\s*]+', '', kind)

    def length(self, owner, name, siblings, prefix):
        given = LENGTHS.get(f'{owner}.{name}')
        if given:
            return given
        for count in (f'n_{name}', f'{name}_bytes', 'ndim' if name in ('shape', 'dims') else '', 'n', 'bytes',
                      'size', 'n_in', 'capacity'):
            if count in siblings and count != name:
                return prefix(count)
        return None

    def value(self, owner, kind, name, array, siblings, prefix, place):
        """The C expression that draws it, and whether it needs what is drawn before."""
        callers = CALLERS.get(f'{owner}.{name}')
        base, pointer = self.base(kind), '*' in kind or array
        if f'{owner}.{name}' in CALLERS and not callers:
            return 'NULL', False
        if callers:
            return f'draw_{callers}(w, {place})', False
        if kind == 'callback' or kind == 'wf_line_reader':
            return (f'draw_{CALLBACKS[name]}(w, {place})' if CALLBACKS[name] else 'NULL'), False
        if name in ('user', 'from', 'listener') and base == 'void':
            return 'w', False
        if name == 'message':
            return f'draw_message(w, {place})', False
        if kind == 'const char *' and name not in LINES:
            return f'draw_{"path" if name in PATHS else "text"}(w, {place})', False
        if not pointer and kind in NUMBERS:
            rule = 'count' if name.startswith('n_') and kind == 'int' else NAMED.get(name, NUMBERS[kind])
            return f'draw_{rule}(w, {place})', False
        if not pointer and 'enum' in self.found.get(base, ''):
            return f'({base})draw_choice(w, {place})', False
        if kind in ELEMENTS:
            n = self.length(owner, name, siblings, prefix)
            if n:
                return f'draw_{ELEMENTS[kind]}(w, {place}, {n})', True
        if pointer and base in POOLS and kind.count('*') == 1:
            made = 'made' if owner == f'{base}_free' else FREED.get(owner)
            return f'{made or "draw"}_{POOLS[base]}(w, {place})', False
        declaration = self.found.get(base, '')
        if pointer and '{' in declaration and kind.count('*') <= 1:
            listed = array or f'n_{name}' in siblings or base in ('wf_meta', 'wf_entry')
            n = self.length(owner, name, siblings, prefix) if listed else None
            if owner.startswith('wf_file_') and base == 'wf_entry' and owner not in ('wf_file_save', 'wf_file_bytes'):
                return f'draw_entry(w, {place})', False
            self.struct(base)
            return f'draw_{base}(w, {place}, {n or 1})', bool(n)
        raise SystemExit(f'tests/calls/table.py: no rule for the parameter "{kind} {name}" of {owner}')

    def struct(self, name):
        """A function that draws n of them, one after the other."""
        if name in self.structs:
            return
        self.structs[name] = True
        spelled = f'struct {name}' if not self.found[name].startswith('typedef') else name
        if name in RESULTS:
            self.lines += [f'static {spelled} *draw_{name}(world *w, int place, int64_t n) {{',
                           f'    return absent(w, place) ? NULL : taken(w, sizeof({spelled}), n);', '}', '']
            return
        out = [f'static {spelled} *draw_{name}(world *w, int place, int64_t n) {{',
               f'    {spelled} *list = absent(w, place) ? NULL : taken(w, sizeof *list, n);',
               f'    for (int64_t i = 0; list && i < n; i++) {{', f'        {spelled} *o = &list[i];']
        if name in WHOLE:
            out.append(f'        if (!odd(w)) whole_{name}(w, o);')
        else:
            if name in BEGUN:
                out.append(f'        begin_{name}(w, o);')
            out += [f'        {line}' for line in self.of_fields(name)]
        self.lines += out + ['    }', '    return list;', '}', '']

    def of_fields(self, name):
        every = list(fields(self.found[name]))
        siblings = [field for _, field, _ in every]
        late, lines = [], []
        for kind, field, array in every:
            base = self.base(kind)
            if '{' in self.found.get(base, '') and '*' not in kind and 'enum' not in self.found.get(base, ''):
                self.struct(base)
                lines.append(f'o->{field} = *draw_{base}(w, -2, 1);')
                continue
            if field.startswith('n_') and any(s == field[2:] for s in siblings) or field == 'bytes' or (
                    field.endswith('_bytes') and field[:-6] in siblings):
                value = self.value(name, kind, field, array, siblings, lambda c: f'o->{c}', -1)[0]
                lines.append(f'o->{field} = ({kind})draw_{"bytes" if "bytes" in field else "count"}(w, -1);')
                continue
            if array and kind in NUMBERS:
                size = array.strip('[]')
                lines.append(f'for (int k = 0; odd(w) && k < {size}; k++) o->{field}[k] = '
                             f'draw_{NUMBERS[kind]}(w, -1);')
                continue
            value, needs = self.value(name, kind, field, array, siblings, lambda c: f'o->{c}', -1)
            cast = f'({kind})' if kind in NUMBERS and kind not in ('double', 'bool') else ''
            line = f'o->{field} = {cast}{value};'
            always = needs or field in ALWAYS
            (late if needs else lines).append(line if always else f'if (odd(w)) {line}')
        return lines + late

    def function(self, name, declaration):
        m = re.match(rf'(.*?)\b{name}\s*\((.*)\)', declaration)
        if not m:
            raise SystemExit(declaration)
        result, given = m.group(1).strip(), m.group(2).strip()
        every = [] if given == 'void' else [named(p) for p in parts(given)]
        siblings = [n for _, n, _ in every]
        early, late, pointers = [], [], []
        for i, (kind, field, array) in enumerate(every):
            value, needs = self.value(name, kind, field, array, siblings, lambda c: f'a{siblings.index(c)}', i)
            spelled = self.spelled(kind, array, parts(given)[i])
            line = f'    {spelled.format(f"a{i}")} = {self.cast(kind, array)}{value};'
            (late if needs else early).append(line)
            if '*' in kind or array or kind in ('callback', 'wf_line_reader'):
                pointers.append(i)
        call = f'{name}({", ".join(f"a{i}" for i in range(len(every)))})'
        plan = [i for i, (k, _, _) in enumerate(every) if self.base(k) == 'wf_plan' and '*' in k]
        message = [i for i, n in enumerate(siblings) if n == 'message']
        out = [f'static void call_{name}(world *w) {{'] + early + self.exact(name, every) + late
        out.append(f'    begin_call(w, "{name}");')
        out += [f'    {line}' for line in self.kept(name, result, call, plan, message)]
        out += ['}', '']
        self.lines += out
        bits = sum(1 << i for i in pointers)
        return f'    {{ "{name}", call_{name}, {bits:#x} }},'

    def cast(self, kind, array):
        return f'({kind})' if kind in NUMBERS and not array and kind not in ('wf_init', 'double', 'bool') else ''

    def spelled(self, kind, array, parameter):
        if kind == 'callback':
            return re.sub(r'\(\*\w+\)', '(*{})', parameter, count=1)
        return f'{kind} *{{}}' if array else f'{kind} {{}}'

    def exact(self, name, every):
        """The size in bytes is that of the tensor, mostly."""
        of = {n: i for i, (_, n, _) in enumerate(every)}
        tensor = next((i for i, (k, _, _) in enumerate(every) if self.base(k) == 'wf_tensor' and k.count('*') == 1), None)
        if 'bytes' not in of or tensor is None:
            return []
        plan = 'a0' if self.base(every[0][0]) == 'wf_plan' else 'NULL'
        return [f'    if (!odd(w)) a{of["bytes"]} = exact_bytes({plan}, a{tensor});']

    def kept(self, name, result, call, plan, message):
        base = self.base(result)
        null = 'true' if name in MAY_BE_NULL else 'false'
        if result == 'void':
            return [f'{call};']
        if result == 'bool':
            lines = [f'bool ok = {call};', '(void)ok;']
            if message:
                lines.append(f'check_told(w, ok, a{message[0]});')
            elif plan and name not in ('wf_plan_ok', 'wf_step_at', 'wf_model_feed'):
                lines.append(f'check_plan_told(w, ok, a{plan[0]});')
            return lines
        if name == 'wf_shape_text':  # no text at all in a buffer of no bytes
            return [f'(void){call};']
        if result in ('const char *', 'char *'):
            if name in ('wf_dot', 'wf_emit', 'wf_model_emit', 'wf_model_emit_training', 'wf_file_bytes', 'wf_json_learn'):
                return [f'char *text = {call};', f'check_told(w, text != NULL, a{message[0]});', 'free(text);']
            if name == 'wf_print_new':  # NULL also for what the plan does not fetch
                return [f'free({call});']
            return [f'check_text(w, {call}, {null});']
        if result in ('wf_tensor *', 'const wf_tensor *'):
            return [f'keep_tensor(w, {call}, {null});']
        if result in NUMBERS or 'enum' in self.found.get(base, ''):
            return [f'(void){call};']
        if name in ('wf_trainer_plan', 'wf_trainer_optimizer'):  # the trainer's own
            return [f'(void){call};']
        if '*' in result and base in POOLS:
            lines = [f'{result.replace("const ", "")} made = ({result.replace("const ", "")}){call};']
            if message:
                lines.append(f'check_told(w, made != NULL, a{message[0]});')
            return lines + [f'keep_{POOLS[base]}(w, made);']
        if '*' in result:
            return [f'(void){call};']
        if base == 'wf_optimizer':
            return [f'keep_optimizer(w, {call});']
        if base in ('wf_sorted', 'wf_stft_result', 'wf_cross_entropy_result', 'wf_batch_norm_result',
                    'wf_recurrent_result'):
            tensors = [f for k, f, a in fields(self.found[base]) if k == 'wf_tensor *' and not a]
            may = {'wf_recurrent_result': ('c',)}.get(base, ())
            return [f'{base} r = {call};'] + [
                f'keep_tensor(w, r.{t}, {"true" if t in may else "false"});' for t in tensors]
        return [f'{result} r = {call};', '(void)r;']


def main():
    root, table, dependencies = map(pathlib.Path, sys.argv[1:])
    found = interface.interface(root, sorted(p.relative_to(root) for p in root.glob('*/*_internal.h')))
    functions = {n: d for n, d in found.items()
                 if n.startswith('wf_') and re.match(rf'(?!typedef|define)[^{{]*\b{n}\s*\(', d)}
    gone = [n for n in BY_HAND if n not in functions]
    if gone:
        raise SystemExit(f'tests/calls/table.py: BY_HAND names what is not declared: {" ".join(gone)}')
    tried = ''.join(p.read_text() for p in pathlib.Path(sys.argv[1]).glob('tests/*/**/*.[ci]*')
                    if 'calls' not in p.parts)
    tried += ''.join(p.read_text() for p in pathlib.Path(sys.argv[1]).glob('ops/**/*.c'))
    untried = [n for n in BY_HAND if not re.search(rf'\b{n}\b', tried)]
    if untried:
        raise SystemExit(f'tests/calls/table.py: nothing else calls {" ".join(untried)}')
    headers = ''.join(p.read_text() for p in sorted(pathlib.Path(sys.argv[1]).glob('*/*.h')))
    enums = dict.fromkeys(re.findall(r'typedef enum\b[^{;]*\{[^}]*\}\s*(wf_\w+);', headers), 'enum')
    w = Writer({**enums, **found})
    rows = [w.function(n, d) for n, d in functions.items() if n not in BY_HAND]
    table.write_text('/* Written by tests/calls/table.py. */\n' + '\n'.join(w.lines)
                     + '\nstatic const public_function functions[] = {\n' + '\n'.join(rows) + '\n};\n')
    read = [*sorted(root.glob('*/*.h')), root / 'weft.h', root / 'tests/interface.py']
    dependencies.write_text(f'{table.name}: {" ".join(map(str, read))}\n')


main()
