/* core/file/pickle.c - a pickle machine that executes nothing: see pickle.h.
 *
 * Each opcode takes its operands from the stack and checks their kinds, so that no value is used as
 * one of another kind: SETITEM needs a dict, BUILD two dicts, and a tensor needs a storage. The
 * opcodes are those of protocol 2, which is what torch.save writes (Python: Lib/pickletools.py).
 * Nothing recurses, and a value may contain itself. */
#include "pickle.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/utf8.h"
#include "file_format.h"
#include "json.h"
#include "pickle_opcodes.h"

/* The most values on the stack. Python writes dicts in parts of 1000 items, so real files need
 * few. */
enum { MAX_DEPTH = 1 << 16 };

/* The only names that a pickle may use. */
enum { ORDERED_DICT, REBUILD_TENSOR, REBUILD_PARAMETER };
static const struct {
    const char *module, *name, *dtype;
} globals[] = {
    [ORDERED_DICT] = { "collections", "OrderedDict", NULL },
    [REBUILD_TENSOR] = { "torch._utils", "_rebuild_tensor_v2", NULL },
    [REBUILD_PARAMETER] = { "torch._utils", "_rebuild_parameter", NULL },
    { "torch", "FloatStorage", "F32" },
    { "torch", "DoubleStorage", "F64" },
    { "torch", "HalfStorage", "F16" },
    { "torch", "BFloat16Storage", "BF16" },
    { "torch", "LongStorage", "I64" },
    { "torch", "IntStorage", "I32" },
    { "torch", "ShortStorage", "I16" },
    { "torch", "CharStorage", "I8" },
    { "torch", "ByteStorage", "U8" },
    { "torch", "BoolStorage", "BOOL" },
    { "torch", "ComplexFloatStorage", "C64" },
};

typedef wf_pickle_value value;

/* ---- errors and bytes ------------------------------------------------------------------------ */

static bool fail(wf_pickle *p, const char *what) {
    wf_file_fail(p->error, "pickle byte %zu: %s", p->at, what);
    return false;
}

static bool ends_early(wf_pickle *p) {
    p->ended = true;
    return fail(p, "it ends early");
}

static bool take(wf_pickle *p, size_t n, const unsigned char **bytes) {
    if (n > p->size - p->at) return ends_early(p);
    *bytes = p->bytes + p->at;
    p->at += n;
    return true;
}

/* Reads a number of n bytes, little-endian. */
static bool take_number(wf_pickle *p, size_t n, uint64_t *number) {
    const unsigned char *bytes;
    if (!take(p, n, &bytes)) return false;
    for (*number = 0; n-- > 0;) *number = *number << 8 | bytes[n];
    return true;
}

/* ---- the stack ------------------------------------------------------------------------------- */

static bool push(wf_pickle *p, value v) {
    if (p->depth == MAX_DEPTH) return fail(p, "too many values on the stack");
    if (!wf_grow(&p->stack, &p->stack_room, p->depth + 1, sizeof v))
        return fail(p, "out of memory");
    p->stack[p->depth++] = v;
    return true;
}

static bool push_new(wf_pickle *p, wf_pickle_kind kind, int64_t number) {
    return push(p, (value){ kind, 0, number });
}

/* Removes the top value from the stack; false if it is of another kind. */
static bool pop(wf_pickle *p, wf_pickle_kind kind, value *v) {
    bool there = p->depth && p->stack[p->depth - 1].kind == kind;
    if (there) *v = p->stack[--p->depth];
    if (!there)
        wf_file_fail(p->error, "pickle byte %zu: %s where %s is needed", p->at,
                     p->depth ? wf_pickle_kind_name(p->stack[p->depth - 1]) : "nothing",
                     wf_pickle_kind_name((value){ .kind = kind }));
    return there;
}

static bool has(wf_pickle *p, size_t n) {
    for (size_t i = 1; i <= n; i++)
        if (i > p->depth || p->stack[p->depth - i].kind == WF_PICKLE_MARK)
            return fail(p, "too few values on the stack");
    return true;
}

/* The number of values above the last mark; the mark stays. */
static bool count_marked(wf_pickle *p, size_t *n) {
    for (*n = 0; *n < p->depth; ++*n)
        if (p->stack[p->depth - 1 - *n].kind == WF_PICKLE_MARK) return true;
    return fail(p, "no mark on the stack");
}

/* ---- tuples, lists and dicts ----------------------------------------------------------------- */

/* The least bytes of a pickle that each value, item and memo entry of a state_dict takes. A pickle
 * with more of them per byte (beyond the first FEW) is no state_dict, and would need many times its
 * length of memory. */
enum { BYTES_OF_VALUE = 2, BYTES_OF_ITEM = 4, BYTES_OF_MEMO = 3, FEW = 64 };

static bool usual(wf_pickle *p, size_t n, size_t bytes) {
    return n <= p->at / bytes + FEW ||
           fail(p, "more tuples, lists and dicts than the state_dict of a pickle this long has");
}

static bool make_tuple(wf_pickle *p, size_t n) {
    if (!has(p, n) || !usual(p, p->n_values + n, BYTES_OF_VALUE)) return false;
    if (!wf_grow(&p->values, &p->values_room, p->n_values + n, sizeof *p->values))
        return fail(p, "out of memory");
    p->depth -= n;
    if (n) memcpy(p->values + p->n_values, p->stack + p->depth, n * sizeof *p->values);
    p->n_values += n;
    return push(p, (value){ WF_PICKLE_TUPLE, (uint32_t)n, (int64_t)(p->n_values - n) });
}

static bool make_marked_tuple(wf_pickle *p) {
    size_t n;
    value mark, tuple;
    return count_marked(p, &n) && make_tuple(p, n) && pop(p, WF_PICKLE_TUPLE, &tuple) &&
           pop(p, WF_PICKLE_MARK, &mark) && push(p, tuple);
}

static bool make_list(wf_pickle *p, wf_pickle_kind kind) {
    if (!usual(p, p->n_lists + p->n_items, BYTES_OF_ITEM)) return false;
    if (!wf_grow(&p->lists, &p->lists_room, p->n_lists + 1, sizeof *p->lists))
        return fail(p, "out of memory");
    p->lists[p->n_lists] = (wf_pickle_list){ 0, 0 };
    return push_new(p, kind, (int64_t)p->n_lists++);
}

static bool add_item(wf_pickle *p, wf_pickle_list *l, value key, value v) {
    if (!usual(p, p->n_lists + p->n_items, BYTES_OF_ITEM)) return false;
    if (!wf_grow(&p->items, &p->items_room, p->n_items + 1, sizeof *p->items))
        return fail(p, "out of memory");
    p->items[p->n_items++] = (wf_pickle_item){ key, v, 0 };
    if (l->last)
        p->items[l->last - 1].next = p->n_items;
    else
        l->first = p->n_items;
    l->last = p->n_items;
    return true;
}

/* Adds the last n values to a list, or every two of them to a dict. The list or dict is below them,
 * or below their mark. */
static bool add_items(wf_pickle *p, wf_pickle_kind kind, size_t n, bool marked) {
    const size_t each = kind == WF_PICKLE_DICT ? 2 : 1, first = p->depth - n;
    value target, mark;
    if (n % each) return fail(p, "a key without a value");
    p->depth = first;
    if ((marked && !pop(p, WF_PICKLE_MARK, &mark)) || !pop(p, kind, &target)) return false;
    for (size_t i = first; i < first + n; i += each) {
        value key = each == 2 ? p->stack[i] : (value){ .kind = WF_PICKLE_NONE };
        if (!add_item(p, &p->lists[target.number], key, p->stack[i + each - 1])) return false;
    }
    return push(p, target);
}

static bool add_some(wf_pickle *p, wf_pickle_kind kind) {
    size_t n = kind == WF_PICKLE_DICT ? 2 : 1;
    return has(p, n) && add_items(p, kind, n, false);
}

static bool add_marked(wf_pickle *p, wf_pickle_kind kind) {
    size_t n;
    return count_marked(p, &n) && add_items(p, kind, n, true);
}

/* Attributes of a dict are metadata of modules: they are dropped. */
static bool build(wf_pickle *p) {
    value attributes, dict;
    return pop(p, WF_PICKLE_DICT, &attributes) && pop(p, WF_PICKLE_DICT, &dict) && push(p, dict);
}

/* ---- numbers and text ------------------------------------------------------------------------ */

static bool push_int(wf_pickle *p, size_t n) {
    uint64_t number;
    if (!take_number(p, n, &number)) return false;
    if (n == 4) return push_new(p, WF_PICKLE_INT, (int32_t)(uint32_t)number);
    return push_new(p, WF_PICKLE_INT, (int64_t)number);
}

/* Push a number of up to 8 bytes in two's complement. */
static bool push_long(wf_pickle *p) {
    uint64_t n, number, sign;
    if (!take_number(p, 1, &n)) return false;
    if (n > 8) return fail(p, "an integer of more than 8 bytes");
    if (!take_number(p, (size_t)n, &number)) return false;
    sign = n && n < 8 ? (uint64_t)1 << (8 * n - 1) : 0;
    return push_new(p, WF_PICKLE_INT, (int64_t)((number ^ sign) - sign));
}

static bool push_float(wf_pickle *p) {
    const unsigned char *bytes;
    return take(p, 8, &bytes) && push_new(p, WF_PICKLE_FLOAT, 0);
}

static bool push_string(wf_pickle *p, size_t width) {
    uint64_t n;
    const unsigned char *text;
    if (!take_number(p, width, &n) || !take(p, (size_t)n, &text)) return false;
    if (memchr(text, 0, (size_t)n)) return fail(p, "a string with a zero byte");
    if (wf_utf8_prefix((const char *)text, (size_t)n) != n)
        return fail(p, "a string that is not UTF-8");
    return push(p, (value){ WF_PICKLE_STRING, (uint32_t)n, text - p->bytes });
}

/* ---- the memo -------------------------------------------------------------------------------- */

/* Puts the top value into the memo. Python numbers memo entries one after the other, and each takes
 * at least 3 bytes of the pickle (BYTES_OF_MEMO). A number larger than this allows is refused, so
 * that the memo stays small. */
static bool memo_put(wf_pickle *p, size_t width) {
    uint64_t i;
    if (!take_number(p, width, &i) || !has(p, 1)) return false;
    if (i >= p->at / BYTES_OF_MEMO + FEW) return fail(p, "a number of the memo that is too large");
    if (!wf_grow(&p->memo, &p->memo_room, (size_t)i + 1, sizeof *p->memo))
        return fail(p, "out of memory");
    while (p->n_memo <= i) p->memo[p->n_memo++].kind = WF_PICKLE_MARK; /* unused entries */
    p->memo[i] = p->stack[p->depth - 1];
    return true;
}

static bool memo_get(wf_pickle *p, size_t width) {
    uint64_t i;
    if (!take_number(p, width, &i)) return false;
    if (i >= p->n_memo || p->memo[i].kind == WF_PICKLE_MARK)
        return fail(p, "a number that is not in the memo");
    return push(p, p->memo[i]);
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool take_line(wf_pickle *p, const char **line, size_t *n) {
    const unsigned char *bytes = p->bytes + p->at;
    const unsigned char *end = memchr(bytes, '\n', p->size - p->at);
    if (!end) return ends_early(p);
    *line = (const char *)bytes;
    *n = (size_t)(end - bytes);
    p->at += *n + 1;
    return true;
}

static bool same(const char *text, const char *line, size_t n) {
    return strlen(text) == n && memcmp(text, line, n) == 0;
}

/* The number of bytes of a name that messages show: those before the first space, control or
 * non-ASCII character, at most 60. */
static int plain(const char *text, size_t n) {
    int i = 0;
    while (i < 60 && (size_t)i < n && text[i] > ' ' && text[i] < 0x7F) i++;
    return i;
}

static bool push_global(wf_pickle *p) {
    const char *module, *name;
    size_t n, m;
    if (!take_line(p, &module, &n) || !take_line(p, &name, &m)) return false;
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if (same(globals[i].module, module, n) && same(globals[i].name, name, m))
            return push_new(p, WF_PICKLE_GLOBAL, (int64_t)i);
    return wf_file_fail(p->error,
                        "GLOBAL %.*s.%.*s: none of the few that are read here; it is not executed",
                        plain(module, n), module, plain(name, m), name);
}

/* True if the tuple begins with values of these kinds. */
static bool begins_with(const wf_pickle *p, value tuple, const wf_pickle_kind *kinds, uint32_t n) {
    if (tuple.count < n) return false;
    for (uint32_t i = 0; i < n; i++)
        if (p->values[(size_t)tuple.number + i].kind != kinds[i]) return false;
    return true;
}

static bool all_counts(const wf_pickle *p, value tuple) {
    for (size_t i = 0; i < tuple.count; i++) {
        const value *v = &p->values[(size_t)tuple.number + i];
        if (v->kind != WF_PICKLE_INT || v->number < 0) return false;
    }
    return true;
}

/* The arguments are ("storage", type, key, location, elements). Before torch 1.6 there is a sixth:
 * None, or a tuple for a view, which is refused. */
static bool make_storage(wf_pickle *p) {
    static const wf_pickle_kind kinds[] = { WF_PICKLE_STRING, WF_PICKLE_GLOBAL, WF_PICKLE_STRING,
                                            WF_PICKLE_STRING, WF_PICKLE_INT,    WF_PICKLE_NONE };
    value id;
    if (!pop(p, WF_PICKLE_TUPLE, &id)) return false;
    bool ok = id.count >= 5 && id.count <= 6 && begins_with(p, id, kinds, id.count);
    const value *v = ok ? p->values + id.number : NULL;
    if (!ok || !wf_pickle_is_text(p, v[0], "storage") || !wf_pickle_dtype(v[1]) || v[4].number < 0)
        return fail(p, "BINPERSID of what is no storage");
    id.kind = WF_PICKLE_STORAGE;
    return push(p, id);
}

/* The arguments are (tensor's storage, offset, shape, strides, requires_grad, hooks). */
static bool make_tensor(wf_pickle *p, value arguments) {
    static const wf_pickle_kind kinds[] = { WF_PICKLE_STORAGE, WF_PICKLE_INT,  WF_PICKLE_TUPLE,
                                            WF_PICKLE_TUPLE,   WF_PICKLE_BOOL, WF_PICKLE_DICT };
    bool ok = arguments.count == 6 && begins_with(p, arguments, kinds, 6);
    const value *v = ok ? p->values + arguments.number : NULL;
    if (!ok || v[1].number < 0 || v[2].count != v[3].count || !all_counts(p, v[2]) ||
        !all_counts(p, v[3]) || p->lists[v[5].number].first)
        return fail(p, "_rebuild_tensor_v2 with other arguments than are read here");
    arguments.kind = WF_PICKLE_TENSOR;
    return push(p, arguments);
}

/* The arguments are (tensor, requires_grad, hooks); the result is the tensor. */
static bool make_parameter(wf_pickle *p, value arguments) {
    static const wf_pickle_kind kinds[] = { WF_PICKLE_TENSOR, WF_PICKLE_BOOL, WF_PICKLE_DICT };
    if (arguments.count != 3 || !begins_with(p, arguments, kinds, 3))
        return fail(p, "_rebuild_parameter of what is no tensor");
    return push(p, p->values[arguments.number]);
}

static bool reduce(wf_pickle *p) {
    value arguments, function;
    if (!pop(p, WF_PICKLE_TUPLE, &arguments) || !pop(p, WF_PICKLE_GLOBAL, &function)) return false;
    switch (function.number) {
    case REBUILD_TENSOR:
        return make_tensor(p, arguments);
    case REBUILD_PARAMETER:
        return make_parameter(p, arguments);
    case ORDERED_DICT:
        return arguments.count ? fail(p, "OrderedDict of arguments") : make_list(p, WF_PICKLE_DICT);
    default:
        return fail(p, "a type of storage is called");
    }
}

/* ---- the machine ----------------------------------------------------------------------------- */

static bool check_protocol(wf_pickle *p) {
    uint64_t protocol;
    if (!take_number(p, 1, &protocol)) return false;
    return protocol == 2 || wf_file_fail(p->error,
                                         "PROTO %d: saved with another pickle_protocol than "
                                         "torch.save's own, which is 2: save it without one",
                                         (int)protocol);
}

static bool refuse(wf_pickle *p, int code) {
    const char *name = wf_pickle_refused(code);
    if (!name) return wf_file_fail(p->error, "pickle byte %zu: %02x is no opcode", p->at - 1, code);
    return wf_file_fail(p->error, "pickle byte %zu: opcode %s: no state_dict of tensors needs that",
                        p->at - 1, name);
}

static bool step_objects(wf_pickle *p, int code) {
    switch (code) {
    case PROTO:
        return check_protocol(p);
    case BINPUT:
        return memo_put(p, 1);
    case LONG_BINPUT:
        return memo_put(p, 4);
    case BINGET:
        return memo_get(p, 1);
    case LONG_BINGET:
        return memo_get(p, 4);
    case GLOBAL:
        return push_global(p);
    case REDUCE:
        return reduce(p);
    case BINPERSID:
        return make_storage(p);
    case BUILD:
        return build(p);
    default:
        return refuse(p, code);
    }
}

static bool step_containers(wf_pickle *p, int code) {
    switch (code) {
    case EMPTY_TUPLE:
        return make_tuple(p, 0);
    case TUPLE1:
        return make_tuple(p, 1);
    case TUPLE2:
        return make_tuple(p, 2);
    case TUPLE3:
        return make_tuple(p, 3);
    case TUPLE:
        return make_marked_tuple(p);
    case EMPTY_LIST:
        return make_list(p, WF_PICKLE_LIST);
    case APPEND:
        return add_some(p, WF_PICKLE_LIST);
    case APPENDS:
        return add_marked(p, WF_PICKLE_LIST);
    case EMPTY_DICT:
        return make_list(p, WF_PICKLE_DICT);
    case SETITEM:
        return add_some(p, WF_PICKLE_DICT);
    case SETITEMS:
        return add_marked(p, WF_PICKLE_DICT);
    default:
        return step_objects(p, code);
    }
}

/* Runs an opcode. This function has those that push a single value; step_containers and
 * step_objects have the others. */
static bool step(wf_pickle *p, int code) {
    switch (code) {
    case MARK:
        return push_new(p, WF_PICKLE_MARK, 0);
    case NONE:
        return push_new(p, WF_PICKLE_NONE, 0);
    case NEWTRUE:
        return push_new(p, WF_PICKLE_BOOL, 1);
    case NEWFALSE:
        return push_new(p, WF_PICKLE_BOOL, 0);
    case BININT:
        return push_int(p, 4);
    case BININT1:
        return push_int(p, 1);
    case BININT2:
        return push_int(p, 2);
    case LONG1:
        return push_long(p);
    case BINFLOAT:
        return push_float(p);
    case BINUNICODE:
        return push_string(p, 4);
    case SHORT_BINSTRING:
        return push_string(p, 1);
    default:
        return step_containers(p, code);
    }
}

bool wf_pickle_run(wf_pickle *p, wf_pickle_value *result) {
    const unsigned char *code;
    p->depth = p->n_memo = 0;
    for (;;) {
        if (!take(p, 1, &code)) return false;
        if (*code == STOP) break;
        if (!step(p, *code)) return false;
    }
    if (p->depth != 1 || !has(p, 1)) return fail(p, "it makes no single value");
    *result = p->stack[0];
    return true;
}

void wf_pickle_free(wf_pickle *p) {
    free(p->stack), free(p->memo), free(p->values), free(p->items), free(p->lists);
}

const char *wf_pickle_kind_name(wf_pickle_value v) {
    static const char *const names[] = {
        [WF_PICKLE_NONE] = "None",       [WF_PICKLE_BOOL] = "a bool",
        [WF_PICKLE_INT] = "an integer",  [WF_PICKLE_FLOAT] = "a float",
        [WF_PICKLE_STRING] = "a string", [WF_PICKLE_TUPLE] = "a tuple",
        [WF_PICKLE_LIST] = "a list",     [WF_PICKLE_DICT] = "a dict",
        [WF_PICKLE_GLOBAL] = "a name",   [WF_PICKLE_STORAGE] = "a storage",
        [WF_PICKLE_TENSOR] = "a tensor", [WF_PICKLE_MARK] = "a mark",
    };
    return names[v.kind];
}

const char *wf_pickle_dtype(wf_pickle_value v) {
    return v.kind == WF_PICKLE_GLOBAL ? globals[v.number].dtype : NULL;
}

bool wf_pickle_is_text(const wf_pickle *p, wf_pickle_value v, const char *text) {
    return v.kind == WF_PICKLE_STRING && same(text, (const char *)p->bytes + v.number, v.count);
}
