/* tests/fuzz/mutator.c - mutations of a safetensors file's text and bytes; see mutator.h. */
#include "mutator.h"
#include "core/file_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mutant.h"

/* ---- the file's bytes ------------------------------------------------------------------------ */

typedef struct buffer {
    uint8_t *at;
    size_t n, room;
} buffer;

static void put(buffer *b, const void *bytes, size_t n) {
    if (n > b->room - b->n) n = b->room - b->n;
    if (n) memcpy(b->at + b->n, bytes, n);
    b->n += n;
}

static void put_text(buffer *b, const char *format, ...) {
    char text[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    put(b, text, strlen(text));
}

static void put_string(buffer *b, const char *s) {
    put(b, "\"", 1);
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == '"' || *s == '\\')
            put_text(b, "\\u%04x", (unsigned)(unsigned char)*s);
        else
            put(b, s, 1);
    put(b, "\"", 1);
}

static void print_header(buffer *b, const mutant *m) {
    put_text(b, "{\"__metadata__\":{");
    for (int i = 0; i < m->n_meta; i++) {
        if (i) put(b, ",", 1);
        put_string(b, m->meta[i].key), put(b, ":", 1), put_string(b, m->meta[i].value);
    }
    put(b, "}", 1);
    size_t at = 0;
    for (int i = 0; i < m->n; at += m->tensors[i++].bytes) {
        const tensor *t = &m->tensors[i];
        put(b, ",", 1), put_string(b, t->name);
        put_text(b, ":{\"dtype\":\"%s\",\"shape\":[", t->dtype);
        for (int k = 0; k < t->ndim; k++) put_text(b, "%s%" PRId64, k ? "," : "", t->shape[k]);
        put_text(b, "],\"data_offsets\":[%zu,%zu]}", at, at + t->bytes);
    }
    put(b, "}", 1);
}

/* ---- edits of the header's text -------------------------------------------------------------- */

enum { TOKENS = 8192 };

typedef struct span {
    size_t at, n;
} span;

/* Splits the header into at most TOKENS strings, numbers and single characters. Returns their
 * number. */
static int tokenize(const buffer *b, span *tokens) {
    int n = 0;
    for (size_t at = 0; at < b->n && n < TOKENS; n++) {
        size_t end = at + 1;
        if (b->at[at] == '"') {
            while (end < b->n && b->at[end] != '"') end += b->at[end] == '\\' ? 2 : 1;
            end += end < b->n;
        } else
            while (strchr("0123456789", b->at[at]) && end < b->n && b->at[end] >= '0' &&
                   b->at[end] <= '9')
                end++;
        if (end > b->n) end = b->n;
        tokens[n] = (span){ at, end - at };
        at = end;
    }
    return n;
}

static void replace(buffer *b, span what, const void *with, size_t n) {
    if (n > what.n && n - what.n > b->room - b->n) return;
    memmove(b->at + what.at + n, b->at + what.at + what.n, b->n - what.at - what.n);
    memcpy(b->at + what.at, with, n);
    b->n = b->n - what.n + n;
}

static const char *deep(mutant *m) {
    char text[600];
    int n = 100 + below(m, 60), k = 0;
    for (int i = 0; i < n; i++) text[k++] = '[';
    for (int i = 0; i < n; i++) text[k++] = ']';
    text[k] = '\0';
    return mutant_say(m, ",\"deep\":%s", text);
}

/* clang-format off */
static const char *const snippets[] = {
    ",", ":", "{", "}", "[", "]", "\"", " ", "\t\r\n", "null", "true", "-1", "1e3", "1.0", "\"\"",
    "\\", "\\u0000", "\\ud800", "\\u001b[31m", "\"x\":1,", ",\"x\":{\"y\":[1,{}]}",
    ",\"__metadata__\":{}", "\xEF\xBB\xBF", "\xFF", "/**/", "\"dtype\":\"F32\",", "\"shape\":[0],",
    "\"data_offsets\":[0,0],",
};
/* clang-format on */

/* The text from a key to the end of its value, where all its braces and brackets are closed. */
static span member(const buffer *b, const span *tokens, int n, int key) {
    int depth = 0, i = key + 2;
    for (; i < n; i++) {
        depth += strchr("{[", b->at[tokens[i].at]) != NULL;
        depth -= strchr("}]", b->at[tokens[i].at]) != NULL;
        if (depth <= 0) break;
    }
    if (i >= n) return (span){ 0, 0 };
    return (span){ tokens[key].at, tokens[i].at + tokens[i].n - tokens[key].at };
}

static void edit_members(mutant *m, buffer *b, const span *tokens, int n) {
    int key = below(m, (size_t)n);
    while (key + 2 < n && b->at[tokens[key + 1].at] != ':') key++;
    if (key + 2 >= n) return;
    span what = member(b, tokens, n, key);
    const uint8_t *text = (const uint8_t *)mutant_keep(m, b->at + what.at, what.n);
    if (!what.n || !*text) return;
    bool comma = what.at + what.n < b->n && b->at[what.at + what.n] == ',';
    if (one_in(m, 2))
        replace(b, (span){ what.at, what.n + comma }, "", 0);
    else
        replace(b, (span){ what.at, 0 }, ",", 1), replace(b, (span){ what.at, 0 }, text, what.n);
}

static void edit_header(mutant *m, buffer *b) {
    static span tokens[TOKENS];
    int n = tokenize(b, tokens), i = below(m, (size_t)n);
    const char *text;
    if (n) switch (below(m, 8)) {
        case 0: /* change a number; shapes and offsets are the last ones of the header */
            for (i = n - 1 - below(m, (size_t)n);
                 i > 0 && !strchr("0123456789", b->at[tokens[i].at]);)
                i--;
            text = any_number(m);
            replace(b, tokens[i], text, strlen(text));
            break;
        case 1: {
            span from = tokens[below(m, (size_t)n)];
            text = mutant_keep(m, b->at + from.at, from.n);
            replace(b, tokens[i], text, strlen(text));
            break;
        }
        case 2:
            replace(b, tokens[i], "", 0);
            break;
        case 3:
            text = PICK(m, snippets), replace(b, (span){ tokens[i].at, 0 }, text, strlen(text));
            break;
        case 4:
            text = deep(m), replace(b, (span){ tokens[i].at, 0 }, text, strlen(text));
            break;
        case 5: /* one character is written as an escape, so the text stays the same */
            if (tokens[i].n > 3 && b->at[tokens[i].at] == '"') {
                size_t at = tokens[i].at + 1 + (size_t)below(m, tokens[i].n - 2);
                text = mutant_say(m, "\\u%04x", (unsigned)b->at[at]);
                replace(b, (span){ at, 1 }, text, 6);
            }
            break;
        default:
            edit_members(m, b, tokens, n);
        }
}

/* ---- edits of bytes -------------------------------------------------------------------------- */

static void edit_bytes(mutant *m, buffer *b) {
    if (!b->n) return;
    size_t at = (size_t)below(m, one_in(m, 2) ? b->n : b->n < 64 ? b->n : 64);
    size_t from = (size_t)below(m, b->n), n = (size_t)below(m, 64);
    uint64_t number = (uint64_t)strtoull(any_number(m), NULL, 10);
    switch (below(m, 6)) {
    case 0:
        b->at[at] ^= (uint8_t)(1 << below(m, 8));
        break;
    case 1:
        b->at[at] = (uint8_t)draw(m);
        break;
    case 2:
        b->n = at;
        break;
    case 3:
        put(b, b->at + from, n < b->n - from ? n : b->n - from);
        break;
    case 4:
        memmove(b->at + at, b->at + from,
                at > from ? (b->n - at < n ? b->n - at : n) : (b->n - from < n ? b->n - from : n));
        break;
    default:
        memcpy(b->at + (b->n < 16      ? 0
                        : one_in(m, 2) ? 0
                                       : at % (b->n - 8)),
               &number, b->n < 8 ? b->n : 8);
    }
}

bool reseal(uint8_t *data, size_t size) {
    static const char wrong[] = "damaged: checksum ", key[] = "\"weft.checksum\":\"";
    wf_file *f = wf_file_parse(data, size);
    const char *right = strstr(wf_file_error(f), wrong);
    uint8_t *at = data, *end = data + size;
    for (; right && (at = memchr(at, '"', (size_t)(end - at))); at++)
        if ((size_t)(end - at) > sizeof key + 16 && memcmp(at, key, sizeof key - 1) == 0) break;
    if (right && at) memcpy(at + sizeof key - 1, right + sizeof wrong - 1, 16);
    wf_file_free(f);
    return right && at;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool open_document(mutant *m, const wf_file *f) {
    if (!wf_file_ok(f) || wf_file_count(f) > MUTANT_TENSORS || wf_file_meta_count(f) > MUTANT_PAIRS)
        return false;
    for (int i = 0; i < wf_file_count(f); i++) {
        const wf_entry *e = wf_file_at(f, i);
        tensor *t = &m->tensors[m->n++];
        *t = (tensor){ e->name, e->dtype, e->ndim, { 0 }, e->data, e->bytes };
        memcpy(t->shape, e->shape, sizeof t->shape);
    }
    for (int i = 0; i < wf_file_meta_count(f); i++) m->meta[m->n_meta++] = wf_file_meta_at(f, i);
    return true;
}

static void write_document(mutant *m, buffer *b, int header_edits) {
    uint64_t zero = 0;
    put(b, &zero, 8);
    buffer header = { b->at + b->n, 0, b->room - b->n };
    print_header(&header, m);
    while (header_edits-- > 0) edit_header(m, &header);
    b->n += header.n;
    zero = header.n;
    memcpy(b->at, &zero, 8);
    for (int i = 0; i < m->n; i++) put(b, m->tensors[i].data, m->tensors[i].bytes);
}

size_t mutate_file(const uint8_t *data, size_t size, uint64_t seed, uint8_t *out, size_t most) {
    static mutant whole; /* too large for a stack, and a sanitizer would clear it every time */
    static char pool[MUTANT_POOL];
    mutant *m = &whole;
    buffer b = { out, 0, most };
    if (most < 16) return 0;
    wf_file *f = wf_file_parse(data, size);
    m->state = seed, m->pool = pool, m->used = 0, m->n = m->n_meta = 0;
    int place = below(m, 8); /* 0 to 5: change the entries; 6: the header; 7: bytes of the file */
    if (open_document(m, f)) {
        for (bool more = place < 6; more; more = one_in(m, 3)) mutant_edit(m);
        write_document(m, &b, place == 6 ? 1 + below(m, 2) : 0);
    } else {
        put(&b, data, size);
        place = 7;
    }
    if (place == 7)
        for (int edits = 1 + below(m, 3); edits-- > 0;) edit_bytes(m, &b);
    if (!one_in(m, 8)) reseal(b.at, b.n);
    wf_file_free(f);
    return b.n;
}

size_t fuzz_mutate(uint8_t *data, size_t size, size_t most, unsigned seed, byte_mutator *own) {
    static uint8_t out[MUTANT_MOST];
    size_t n = 0;
    if (seed % 4) n = mutate_file(data, size, seed, out, most < sizeof out ? most : sizeof out);
    if (n) memcpy(data, out, n);
    if (!n) reseal(data, n = own(data, size, most));
    return n;
}
