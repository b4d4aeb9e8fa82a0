#!/usr/bin/env python3
"""tests/header_examples.py - the examples in the comments of the public headers compile, and run; so does the program in
models/README.md, which must write what generate writes.

usage: header_examples.py SOURCE_FOLDER BUILD_FOLDER

An example is a block of code, indented in a comment. What stands behind three spaces in a line of it is a
remark. AROUND says what an example takes for granted, and checks what it leaves; the test fails if an
example is not named there. Two are programs of their own, which tests/install.sh runs: ops/custom.h, and
the class of weft.hpp, which is compiled here as C++.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

GRAPH = 'wf_graph *g = wf_graph_new(NULL); '
MODEL = GRAPH + '''wf_tensor *x = wf_input(g, "x", WF_F32, 2, (int64_t[]){ wf_extent(g, "B", 64), 8 });
    struct wf_linear_layer layer = wf_linear_new(g, "layer", 8, 3, true);
    wf_tensor *loss_sum = wf_sum(wf_square(wf_linear(&layer, x)), WF_ALL_AXES, false), *count = wf_constant(g, 32); '''
DONE = 'CHECK(wf_ok(g)); wf_graph_free(g);'
AROUND = {  # header: (before, {text: what stands for it}, behind)
    'core/graph.h': ('float data[16 * 8] = { 1 }, out[8 * 3]; ', {}, 'CHECK(out[0] != 0 && out[23] == 0);'),
    'core/save.h': (GRAPH + '''char message[256]; int64_t ndim = 2; int step = 0;
    wf_tensor *w = wf_param(g, "w", 1, &ndim, wf_init_uniform(1));
    wf_plan *train = wf_plan_new(g, &(wf_plan_options){ .fetch = &w, .n_fetch = 1 }); ''', {},
                    'CHECK(step == 500); wf_plan_free(train); ' + DONE),
    'core/transport.h': ('', {}, 'CHECK(all[0] == mine && all[1] == mine);'),
    'nn/conv.h': (GRAPH + 'wf_tensor *x = wf_input(g, "x", WF_F32, 4, (int64_t[]){ 2, 1, 8, 8 }); ', {}, 'CHECK(y->shape[1] == 16); ' + DONE),
    'nn/loss.h': (GRAPH + '''wf_tensor *y = wf_input(g, "y", WF_F32, 2, (int64_t[]){ 2, 3 });
    wf_tensor *target = wf_input(g, "target", WF_F32, 2, (int64_t[]){ 2, 3 }); ''', {}, 'CHECK(loss->ndim == 0 && rows->ndim == 2); ' + DONE),
    'nn/nn.h': (GRAPH + 'wf_tensor *x = wf_input(g, "x", WF_F32, 2, (int64_t[]){ 2, 784 }); ', {}, 'CHECK(y->shape[1] == 128); ' + DONE),
    'nn/trainer.h': (MODEL + 'bool resuming = false, ok = true; const int64_t M = 2; float data[32 * 8] = { 1 }; ',
                     {'wf_feed(p, x, ...)': 'wf_feed(p, x, data, sizeof data)', '2000': '3'}, 'CHECK(ok); ' + DONE),
    'models/text.h': ('''char message[256], text[64]; int32_t ids[100]; FILE *file = fopen("lines", "r");
    wf_tokenizer_options options = wf_tokenizer_defaults(WF_WORDS); ''', {}, 'CHECK(n == 2 && strcmp(text, "a line") == 0); wf_tokenizer_free(t); fclose(file);'),
    'models/json_tokenizer.h': (r'''char message[256], text[64]; wf_json_token tokens[100];
    static const char json[] = "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":{\"a line\":0,\"?\":1}}}";
    size_t bytes = sizeof json - 1; ''', {}, 'CHECK(n == 1 && tokens[0].end == 6 && strcmp(text, "a line") == 0); wf_json_tokenizer_free(t);'),
    'models/encoder.h': ('''char message[256]; int64_t B = 1, S = 2; int32_t ids[] = { 1, 2 }, lengths[] = { 2 }; float vectors[8];
    wf_encoder_config c = wf_encoder_defaults(); c.vocab = 5, c.d_model = 8, c.num_heads = 2, c.dim_feedforward = 8, c.layers = 1;
    wf_model *m = wf_encoder_new(&c, NULL, WF_F32, 1, message); ''', {}, 'CHECK(wf_plan_ok(p) && vectors[0] != 0); wf_plan_free(p); wf_model_free(m);'),
    'models/shortlist.h': ('''char message[256]; int32_t source[12] = { 0 }, length = 12; wf_decoded result;
    wf_transformer_config c = wf_transformer_defaults(); c.src_vocab = c.tgt_vocab = 32000, c.d_model = 8, c.num_heads = 2;
    c.dim_feedforward = 8, c.encoder_layers = c.decoder_layers = 1;
    wf_model *m = wf_transformer_new(&c, NULL, WF_F32, 1, message); wf_decoder *d = wf_decoder_new(m, NULL, message);
    uint64_t bytes[7] = { 0xF11A48D5013417F5, 0, 2, 2, 1, 0, 0 }, n = sizeof bytes;
    for (int i = 2; i < 7; i++) bytes[1] ^= bytes[i] + 0x9e3779b9 + (bytes[1] << 6) + (bytes[1] >> 2); ''', {},
                            'CHECK(ok && result.n > 0); wf_decoded_free(&result, 1); wf_decoder_free(d); wf_model_free(m);'),
    'models/hf.h': ('char message[256]; ', {'if (!wf_hf_import("opus-mt-en-de", &hf, message)) ...': 'CHECK(wf_hf_import("opus-mt-en-de", &hf, message));'},
                    'CHECK(d == NULL || true);'),
}
HEAD = '''#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "weft.h"
#define CHECK(what) ((what) ? (void)0 : (printf("%s: %s does not hold\\n", now, #what), failures++))
static const char *now;
static int failures;
static char line_of_file[80];
/* The next line of a file, for wf_tokenizer_learn. */
static int next_line(void *from, const char **line, size_t *bytes) {
    if (!fgets(line_of_file, sizeof line_of_file, from)) return 0;
    *line = line_of_file;
    *bytes = strcspn(line_of_file, "\\n");
    return 1;
}
'''


def blocks(comment):
    """The indented blocks of a comment that are code: (line, text)."""
    found = []
    for match in re.finditer(r'(?:^ \*(?: {4,}[^\n]*|[ ]*)\n)+', comment + '\n', flags=re.M):
        lines = [line[2:] for line in match.group().replace('*/', '').split('\n')]
        text = '\n'.join(without_remark(line) for line in lines).strip('\n')
        if ';' in text and re.search(r'\w\(', text):
            found.append(text)
    return found


def without_remark(line):
    code = re.match(r'( *\S.*?[;{,)])   +\S.*$', line)
    return code.group(1) if code else line


def examples(root):
    """(header, code) of every example."""
    headers = re.findall(r'#include "(.*?)"', (root / 'weft.h').read_text()) + ['weft.hpp']
    for header in headers:
        text = (root / header).read_text()
        for comment in re.findall(r'/\*.*?\*/', text, flags=re.S):
            yield from ((header, code) for code in blocks(comment))


def write_c(found):
    parts = [HEAD]
    for i, (header, code) in enumerate(found):
        before, instead, behind = AROUND[header]
        for text, by in instead.items():
            if text not in code:
                raise SystemExit(f'header_examples: {header}: the example has no {text}')
            code = code.replace(text, by)
        takes = 'wf_transport *t' if header == 'core/transport.h' else 'void'
        parts.append(f'static void example_{i}({takes}) {{\n    {before}\n{code}\n    {behind}\n}}')
    ranks = next(i for i, (header, _) in enumerate(found) if header == 'core/transport.h')
    parts.append(f'static int rank(wf_transport *t, void *user) {{\n    (void)user;\n    example_{ranks}(t);\n    return failures;\n}}')
    parts.append('int main(void) {')
    for i, (header, _) in enumerate(found):
        call = 'failures += wf_processes_run(2, rank, NULL, exit, &(wf_processes_result){ 0 }) != 0' if i == ranks else f'example_{i}()'
        parts.append(f'    now = "{header}";\n    {call};')
    return '\n'.join(parts + ['    return failures;\n}\n'])


def build_and_run(compiler, language, source, build, folder, root):
    program = folder / ('example_' + language.replace('+', 'p'))
    command = compiler + [f'-std={language}', '-Wall', '-Wextra', '-Wno-unused-variable', '-Wno-unused-value', '-Wno-missing-field-initializers', f'-I{root}', source,
                          f'-L{build}', f'-Wl,-rpath,{build}', '-lweft', '-lm', '-pthread', '-o', program]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode or 'warning' in done.stdout:
        return [f'{language}: {done.stdout}']
    done = subprocess.run([program], cwd=folder, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    return [] if done.returncode == 0 else [f'{language}: exit {done.returncode}\n{done.stdout}']


def run_reader(root, build, folder):
    """Compiles the program of models/README.md, and compares its output with that of generate."""
    program = re.search(r'```c\n(/\* continue\.c .*?)```', (root / 'models/README.md').read_text(), flags=re.S).group(1)
    (folder / 'continue.c').write_text(program)
    (folder / 'text').write_text('the house runs to the dog, and the dog to the house.\n' * 80)
    (folder / 'weft').symlink_to(root)
    tools = build / 'tools'
    compiler = os.environ.get('CC', 'cc').split()
    commands = [compiler + ['-std=c17', '-Wall', '-Wextra', '-Werror', f'-I{folder}', 'continue.c', f'-L{build}', f'-Wl,-rpath,{build}', '-lweft',
                            '-lm', '-pthread', '-o', 'continue'],
                [tools / 'train', '--task', 'lm', '--text', 'text', '--preset', 'tiny', '--max-len', '32', '--max-steps', '60', '--warmup', '5',
                 '--threads', '1', '--quiet', '-o', 'model'],
                [tools / 'generate', '--model', 'model', '--prompt', 'the house', '--beam', '1', '--max-new-tokens', '40', '--quiet'],
                ['./continue', 'model', 'the house']]
    said = []
    for command in commands:
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, errors='replace', timeout=120)
        if done.returncode:
            return [f'{command[0]}: exit {done.returncode}\n{done.stdout}{done.stderr}']
        said.append(done.stdout.strip())
    if said[2] != said[3] or len(said[3]) < 20:
        return [f'models/README.md: the program writes {said[3]!r}, and generate {said[2]!r}']
    done = subprocess.run(['./continue', 'text', 'a'], cwd=folder, check=False, capture_output=True, text=True)
    return [] if done.returncode == 1 and 'not safetensors' in done.stderr else [f'models/README.md: a text is no model: {done.stderr}']


def main():
    root, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    found = list(examples(root))
    alone = [header for header, code in found if 'int main(' in code]
    inside = [header for header, code in found if '...' in code and header == 'ops/custom.h']
    plus = [code for header, code in found if header == 'weft.hpp']
    plain = [(header, code) for header, code in found if header not in ('ops/custom.h', 'weft.hpp')]
    torn = [line for _, code in found for line in code.split('\n') if len(re.findall(r'(?<!\\)"', line)) % 2]
    for line in torn:
        print(f'header_examples: a string is torn by the end of its line: {line.strip()}')
    unknown = [header for header, _ in plain if header not in AROUND]
    if unknown or sorted(header for header, _ in plain) != sorted(AROUND):
        print(f'header_examples: AROUND and the headers differ: {sorted(header for header, _ in plain)}')
    if torn or unknown or sorted(header for header, _ in plain) != sorted(AROUND):
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / 'lines').write_text('a line\nanother line\n')
        (folder / 'opus-mt-en-de').symlink_to(root / 'tests/data/hf/marian')
        (folder / 'examples.c').write_text(write_c(plain))
        bad = build_and_run(os.environ.get('CC', 'cc').split(), 'c17', folder / 'examples.c', build, folder, root)
        compiler = os.environ.get('CXX', 'c++').split()
        if plus and shutil.which(compiler[0]):
            (folder / 'examples.cpp').write_text('#include <array>\n#include <vector>\n#include "weft.hpp"\nint main() {\n' + plus[0] +
                                                 '\n    return squares[0] == 14 && squares[1] == 77 ? 0 : 1;\n}\n')
            bad += build_and_run(compiler, 'c++17', folder / 'examples.cpp', build, folder, root)
        bad += run_reader(root, build, folder)
    for line in bad:
        print('header_examples:', line)
    print(f'header_examples: {len(plain) + len(plus)} examples run, {len(alone)} is a program (install.sh), {len(inside)} is a loop of it; models/README.md: 1 program')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
