/* tests/fuzz/mutant.c - mutations of the parsed contents of a safetensors file: its tensors and its
 * metadata. See mutant.h. */
#include "mutant.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AXIS = 1 << 14, TENSOR = 1 << 17 }; /* largest axis and bytes for which data are made */

/* clang-format off */
static const char *const numbers[] = {
    "0", "1", "-1", "2", "3", "4", "5", "7", "8", "16", "17", "20", "21", "64", "65", "127", "128",
    "255", "256", "257", "1023", "4096", "16384", "65535", "65536", "65537", "1048575", "1048576",
    "1048577", "16777216", "16777217", "2147483647", "2147483648", "-2147483648", "-2147483649",
    "4294967295", "4294967296", "1000000000000", "1000000000001", "4611686018427387904",
    "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "18446744073709551616", "0.5", "0.9999999", "1e-5", "1e-30", "1e5", "1e400", "1e-400", "nan",
    "inf", "-inf", "-0", "+1", " 1", "1 ", "0x10", "00", "01", "1.", "",
};
static const char *const words[] = {
    "", "true", "text", "copy", "sort", "date", "word", "char", "bpe", "sgd", "adamw", "none",
    "all", "linear", "noam", "a\nb\n", "\n", "\r\n", "<s>", "</s>", "<pad>\n<unk>\n<s>\n</s>\n",
    "<unk>", "</w>", "@@", "#version: 0.2\n", "#version: 0.1\na b\n", "\x01\x1b[2J\x7f", "%s%n%p",
    "\xC3\xA9", "\xE2\x80\xAE", "\xF0\x9F\x98\x80", "../../etc/passwd", "src_embedding.weight",
    "tgt_embedding.weight", "output.weight", "output.bias", "optimizer.count", "optimizer.",
    "transformer.encoder.layers.0.linear1.weight", "transformer.encoder.layers.255.norm1.weight",
    "transformer.decoder.layers.-1.norm1.bias",
    "transformer.decoder.layers.99999999999999999999.norm1.bias",
    "transformer.encoder.norm.weight", "src_position.weight", "module.src_embedding.weight",
    "transformer.", "weft.checksum", "__metadata__", "weft.config.tie", "train.step",
    "tokenizer.kind", "tokenizer.vocabulary", "src_tokenizer.vocabulary",
};
static const char *const dtypes[] = { "F32",  "F64", "F16", "BF16", "I32", "I64",     "U64",
                                      "BOOL", "U8",  "I8",  "C64",  "F4",  "F6_E2M3", "f32" };
/* clang-format on */

const char *any_number(mutant *m) {
    return PICK(m, numbers);
}

const char *any_word(mutant *m) {
    return PICK(m, words);
}

char *mutant_keep(mutant *m, const void *bytes, size_t n) {
    static char none[1];
    if (m->used + n + 1 > MUTANT_POOL) return none;
    char *to = m->pool + m->used;
    memcpy(to, bytes, n);
    to[n] = '\0';
    m->used += n + 1;
    return to;
}

const char *mutant_say(mutant *m, const char *format, ...) {
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return mutant_keep(m, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

/* A number at most 2 from x, which may wrap around at the ends of int64_t. */
static int64_t near(mutant *m, int64_t x) {
    return (int64_t)((uint64_t)x + (uint64_t)below(m, 5) - 2);
}

/* ---- edits of text --------------------------------------------------------------------------- */

static const char *splice(mutant *m, const char *text, size_t at, size_t cut, const char *in) {
    size_t n = strlen(text), k = strlen(in);
    char *all = malloc(n + k + 1);
    if (!all) return text;
    memcpy(all, text, at), memcpy(all + at, in, k);
    memcpy(all + at + k, text + at + cut, n - at - cut);
    const char *kept = mutant_keep(m, all, n + k - cut);
    free(all);
    return kept;
}

/* The line that holds byte `at`, with its end. */
static size_t line_at(const char *text, size_t *at) {
    while (*at && text[*at - 1] != '\n') --*at;
    size_t n = strcspn(text + *at, "\n");
    return n + (text[*at + n] == '\n');
}

/* Edits a text of lines, such as a vocabulary or codes: removes, repeats, empties, replaces,
 * lengthens, joins or inserts lines. */
static const char *edit_lines(mutant *m, const char *text) {
    size_t n = strlen(text), at = (size_t)below(m, n ? n : 1), to = (size_t)below(m, n ? n : 1);
    size_t length = line_at(text, &at);
    const char *line = mutant_keep(m, text + at, length);
    line_at(text, &to);
    switch (below(m, 7)) {
    case 0:
        return splice(m, text, at, length, "");
    case 1:
        return splice(m, text, to, 0, line);
    case 2:
        return splice(m, text, at, length, "\n");
    case 3:
        return splice(m, text, at, length, mutant_say(m, "%s\n", any_word(m)));
    case 4:
        return splice(m, text, at, 0, mutant_say(m, "%s %s\n", any_word(m), any_number(m)));
    case 5:
        return splice(m, text, at, 0, below(m, 2) ? "@@" : "</w>");
    default:
        return splice(m, text, at + (length ? length - 1 : 0), length != 0, " ");
    }
}

static const char *edit_text(mutant *m, const char *text) {
    static char filling[3000];
    size_t n = strlen(text), at = (size_t)below(m, n + 1);
    memset(filling, 'x', sizeof filling - 1);
    switch (below(m, 8)) {
    case 0:
        return any_number(m);
    case 1:
        return any_word(m);
    case 2:
        return mutant_say(m, "%" PRId64, near(m, strtoll(text, NULL, 10)));
    case 3:
        return splice(m, text, at, 0, any_word(m));
    case 4:
        return splice(m, text, at, at < n, "");
    case 5:
        return splice(m, text, at, 0, filling + (sizeof filling - 1) * (size_t)below(m, 8) / 8);
    case 6:
        return mutant_keep(m, text, at);
    default:
        return strchr(text, '\n') ? edit_lines(m, text) : splice(m, text, at, at < n, "7");
    }
}

/* ---- edits of tensors ------------------------------------------------------------------------ */

static size_t bits_of(const char *dtype) {
    size_t digits = strcspn(dtype, "0123456789");
    int bits = atoi(dtype + digits);
    return strcmp(dtype, "BOOL") == 0 ? 8 : bits > 0 ? (size_t)bits : 32;
}

/* Gives the tensor as many bytes as its type and shape need, by repeating the old ones. If the
 * shape is too large, the tensor keeps its data, which then do not fit. */
static void refill(mutant *m, tensor *t) {
    size_t bytes = bits_of(t->dtype);
    for (int i = 0; i < t->ndim; i++) {
        if (t->shape[i] < 0 || t->shape[i] > AXIS) return;
        bytes *= (size_t)t->shape[i];
        if (bytes > 8 * TENSOR) return;
    }
    bytes = (bytes + 7) / 8;
    uint8_t *data = (uint8_t *)mutant_keep(m, t->data, 0); /* the pool's next byte */
    if (m->used + bytes > MUTANT_POOL) return;
    for (size_t i = 0; i < bytes; i++) data[i] = t->bytes ? t->data[i % t->bytes] : 0;
    m->used += bytes;
    t->data = data, t->bytes = bytes;
}

static void edit_shape(mutant *m, tensor *t) {
    int i = below(m, (size_t)t->ndim), k = below(m, (size_t)t->ndim);
    int64_t size = t->ndim ? t->shape[i] : 1;
    switch (below(m, 6)) {
    case 0: /* swap two axes: the number of elements stays the same */
        if (t->ndim) t->shape[i] = t->shape[k], t->shape[k] = size;
        return;
    case 1:
        if (t->ndim < WF_MAX_DIMS) t->shape[t->ndim++] = 1;
        return;
    case 2:
        if (t->ndim > 1 && t->shape[0] < AXIS && t->shape[t->ndim - 1] < AXIS)
            t->shape[0] *= t->shape[--t->ndim];
        return;
    case 3:
        if (t->ndim) t->shape[i] = near(m, size);
        break;
    case 4:
        if (t->ndim) t->shape[i] = strtoll(any_number(m), NULL, 10);
        break;
    default:
        t->ndim = below(m, (size_t)t->ndim + 1);
    }
    refill(m, t);
}

static void edit_values(mutant *m, tensor *t) {
    static const float values[] = { 0, -0.0f, 1, 1e30f, -1e38f, 1e-40f, 3e38f };
    static const uint32_t bits[] = { 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF };
    uint32_t word = PICK(m, bits);
    if (one_in(m, 2)) memcpy(&word, &PICK(m, values), 4);
    if (m->used + t->bytes >= MUTANT_POOL) return;
    uint8_t *data = (uint8_t *)mutant_keep(m, t->data, t->bytes);
    size_t n = t->bytes / 4, first = (size_t)below(m, n), last = one_in(m, 3) ? n : first + 1;
    for (size_t i = first; i < last && i < n; i++) memcpy(data + 4 * i, &word, 4);
    t->data = data;
}

static const char *new_name(mutant *m, const tensor *t) {
    const char *digit = strpbrk(t->name, "0123456789");
    if (digit && one_in(m, 3))
        return splice(m, t->name, (size_t)(digit - t->name), 1, any_number(m));
    return one_in(m, 2) ? m->tensors[below(m, (size_t)m->n)].name : edit_text(m, t->name);
}

static void drop_tensor(mutant *m, int i) {
    m->tensors[i] = m->tensors[--m->n];
}

/* "in_proj_weight" as its three parts. */
static bool unpack(mutant *m, tensor t) {
    const char *at = strstr(t.name, "in_proj_weight");
    if (!at || t.ndim != 2 || t.shape[0] % 3 || m->n + 3 > MUTANT_TENSORS) return false;
    t.shape[0] /= 3, t.bytes /= 3;
    for (int i = 0; i < 3; i++, t.data += t.bytes) {
        tensor *part = &m->tensors[m->n++];
        *part = t;
        part->name = mutant_say(m, "%.*s%c_proj_weight", (int)(at - t.name), t.name, "qkv"[i]);
    }
    return true;
}

static void edit_tensor(mutant *m) {
    if (!m->n) return;
    int i = below(m, (size_t)m->n), k = below(m, (size_t)m->n);
    tensor *t = &m->tensors[i], other = m->tensors[k];
    switch (below(m, 9)) {
    case 0:
        drop_tensor(m, i);
        break;
    case 1:
        if (m->n < MUTANT_TENSORS) other.name = new_name(m, t), m->tensors[m->n++] = other;
        break;
    case 2:
        t->name = new_name(m, t);
        break;
    case 3:
        t->dtype = PICK(m, dtypes);
        if (one_in(m, 2)) refill(m, t);
        break;
    case 4:
        edit_values(m, t);
        break;
    case 5:
        m->tensors[k] = *t, *t = other;
        break;
    case 6:
        if (unpack(m, *t)) drop_tensor(m, i);
        break;
    default:
        edit_shape(m, t);
    }
}

/* ---- edits of metadata ----------------------------------------------------------------------- */

static wf_meta *find_pair(mutant *m, const char *key) {
    for (int i = 0; i < m->n_meta; i++)
        if (strcmp(m->meta[i].key, key) == 0) return &m->meta[i];
    return NULL;
}

static void edit_meta(mutant *m) {
    if (!m->n_meta) return;
    int i = below(m, (size_t)m->n_meta), k = below(m, (size_t)m->n_meta);
    wf_meta *pair = &m->meta[i];
    switch (below(m, 8)) {
    case 0:
        *pair = m->meta[--m->n_meta];
        break;
    case 1:
        pair->key = edit_text(m, pair->key);
        break;
    case 2:
        pair->value = m->meta[k].value;
        break;
    case 3:
        if (m->n_meta < MUTANT_PAIRS)
            m->meta[m->n_meta++] =
                (wf_meta){ any_word(m), one_in(m, 2) ? any_word(m) : pair->value };
        break;
    case 4:
        pair->value = any_number(m);
        break;
    default:
        pair->value = edit_text(m, pair->value);
    }
}

/* Edits the value of a metadata pair whose key contains `part`. Of all pairs, chance would seldom
 * choose the few with long texts. */
static void edit_pair_of(mutant *m, const char *part) {
    int found[MUTANT_PAIRS], n = 0;
    for (int i = 0; i < m->n_meta; i++)
        if (strstr(m->meta[i].key, part)) found[n++] = i;
    if (!n) return;
    wf_meta *pair = &m->meta[found[below(m, (size_t)n)]];
    bool lines = strchr(pair->value, '\n');
    pair->value = lines          ? edit_lines(m, pair->value)
                  : one_in(m, 2) ? any_number(m)
                                 : edit_text(m, pair->value);
}

/* ---- edits of several fields that fit together, so that the file stays valid ----------------- */

static void set_number(mutant *m, const char *key, int64_t value) {
    wf_meta *pair = find_pair(m, key);
    if (pair) pair->value = mutant_say(m, "%" PRId64, value);
}

static bool ends(const char *name, const char *tail) {
    size_t n = strlen(name), k = strlen(tail);
    return n >= k && strcmp(name + n - k, tail) == 0;
}

/* Changes the number of rows of a table, of its moments, and in the configuration. */
static void resize_table(mutant *m) {
    static const char *const tables[][2] = {
        { "src_embedding.weight", "weft.config.src_vocab" },
        { "tgt_embedding.weight", "weft.config.tgt_vocab" },
        { "output.weight", "weft.config.tgt_vocab" },
        { "output.bias", "weft.config.tgt_vocab" },
        { "src_position.weight", "weft.config.max_len" },
        { "tgt_position.weight", "weft.config.max_len" },
    };
    const char *config = PICK(m, tables)[1];
    int64_t rows = 1 + below(m, one_in(m, 4) ? 300 : 24);
    set_number(m, config, rows);
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
        for (int i = 0; strcmp(tables[k][1], config) == 0 && i < m->n; i++) {
            tensor *t = &m->tensors[i];
            if (!strstr(t->name, tables[k][0]) || !t->ndim) continue;
            t->shape[0] = rows, refill(m, t);
        }
}

/* Removes the last layer of a stack, and lowers the number of layers in the configuration. */
static void drop_layer(mutant *m) {
    const char *stack = one_in(m, 2) ? "encoder" : "decoder";
    wf_meta *pair = find_pair(m, mutant_say(m, "weft.config.%s_layers", stack));
    int64_t layers = pair ? strtoll(pair->value, NULL, 10) : 1;
    if (layers < 1) return;
    const char *part = mutant_say(m, "%s.layers.%" PRId64 ".", stack, layers - 1);
    for (int i = m->n; i-- > 0;)
        if (strstr(m->tensors[i].name, part)) drop_tensor(m, i);
    if (pair) set_number(m, pair->key, layers - 1);
}

static void drop_all(mutant *m, const char *tail) {
    for (int i = m->n; i-- > 0;)
        if (ends(m->tensors[i].name, tail)) drop_tensor(m, i);
}

static void retype_all(mutant *m) {
    const char *from = m->n ? m->tensors[below(m, (size_t)m->n)].dtype : "", *to = PICK(m, dtypes);
    for (int i = 0; i < m->n; i++)
        if (strcmp(m->tensors[i].dtype, from) == 0)
            m->tensors[i].dtype = to, refill(m, &m->tensors[i]);
}

static void change_prefix(mutant *m) {
    const char *prefix = any_word(m);
    for (int i = 0; i < m->n; i++)
        if (!one_in(m, 60)) m->tensors[i].name = mutant_say(m, "%s%s", prefix, m->tensors[i].name);
}

static void tie(mutant *m) {
    static const char *const tables[] = { "src_embedding.weight", "tgt_embedding.weight",
                                          "output.weight", "nowhere" };
    set_number(m, "weft.config.tie", below(m, 4));
    if (m->n_meta < MUTANT_PAIRS)
        m->meta[m->n_meta++] = (wf_meta){ PICK(m, tables), PICK(m, tables) };
    const char *dropped = PICK(m, tables);
    if (one_in(m, 2)) drop_all(m, dropped);
}

void mutant_edit(mutant *m) {
    static const char *const tails[] = { ".m", ".v", ".average", "bias", "norm.weight" };
    switch (below(m, 16)) {
    case 0:
        resize_table(m);
        break;
    case 1:
        drop_layer(m);
        break;
    case 2:
        drop_all(m, PICK(m, tails));
        break;
    case 3:
        if (one_in(m, 2))
            retype_all(m);
        else
            change_prefix(m);
        break;
    case 4:
        tie(m);
        break;
    case 5:
    case 6:
        edit_pair_of(m, "config.");
        break;
    case 7:
    case 8:
        edit_pair_of(m, "train.");
        break;
    case 9:
    case 10:
        edit_pair_of(m, "tokenizer.");
        break;
    case 11:
    case 12:
        edit_meta(m);
        break;
    default:
        edit_tensor(m);
    }
}
