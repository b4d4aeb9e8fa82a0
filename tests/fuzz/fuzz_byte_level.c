/* tests/fuzz/fuzz_byte_level.c - any bytes as a merges.txt, with a vocabulary of the pieces that
 * its lines merge: refused with a message, or a tokenizer that loses no byte, and that is the same
 * after it was written to a file and read again.
 *
 * Merges end at the first '\0'; a line to encode follows. */
#include "core/base/utf8.h"
#include "fuzz.h"
#include "models/text/byte_level/byte_level.h"
#include "models/text_internal.h"

typedef struct vocabulary {
    wf_strings strings;
    const char **pieces;
} vocabulary;

static void add(vocabulary *v, const char *text, size_t bytes) {
    char *piece = malloc(bytes + 1);
    fuzz_must(piece);
    memcpy(piece, text, bytes), piece[bytes] = '\0';
    fuzz_must(wf_strings_add(&v->strings, piece, strlen(piece)) >= 0);
    free(piece);
}

/* The vocabulary has "<s>", "</s>", a piece for each byte, and for each line of the merges both
 * halves and the piece that they make. */
static vocabulary collect(wf_span merges) {
    vocabulary v = { 0 };
    char spelled[CODE_POINT];
    wf_span line;
    add(&v, "<s>", 3), add(&v, "</s>", 4);
    for (int i = 0; i < 256; i++) add(&v, spelled, wf_spell_byte((unsigned char)i, spelled));
    while (wf_line_next(&merges, &line)) {
        wf_span body = wf_line_body(line.text, line.bytes);
        const char *space = body.bytes ? memchr(body.text, ' ', body.bytes) : NULL;
        if (!space) continue;
        char *both = malloc(body.bytes);
        size_t n = (size_t)(space - body.text);
        fuzz_must(both);
        memcpy(both, body.text, n), memcpy(both + n, space + 1, body.bytes - n - 1);
        add(&v, both, body.bytes - 1), add(&v, both, n), add(&v, space + 1, body.bytes - n - 1);
        free(both);
    }
    v.pieces = calloc((size_t)v.strings.n, sizeof *v.pieces);
    fuzz_must(v.pieces);
    for (int32_t i = 0; i < v.strings.n; i++) v.pieces[i] = wf_strings_at(&v.strings, i);
    return v;
}

static wf_tokenizer *through_fields(wf_tokenizer *t) {
    char message[256] = "";
    wf_meta pairs[WF_TOKENIZER_META];
    const char *names[WF_TOKENIZER_META], *values[WF_TOKENIZER_META];
    int n = 0;
    fuzz_must(wf_tokenizer_to_meta(t, "t", pairs, &n, message) && n >= 3);
    for (int i = 0; i < n; i++) names[i] = pairs[i].key + 2, values[i] = pairs[i].value;
    wf_tokenizer *again = wf_byte_level_from_fields(&(wf_fields){ names, values, n }, message);
    fuzz_must(again && wf_tokenizer_size(again) == wf_tokenizer_size(t));
    return again;
}

static void line_returns(wf_tokenizer *t, wf_tokenizer *again, wf_span line) {
    char message[256] = "";
    int64_t n = wf_tokenizer_encode(t, line.text, line.bytes, NULL, 0, message);
    if (n < 0) {
        fuzz_must_say(message);
        return;
    }
    int32_t *ids = malloc(2 * (size_t)n * sizeof *ids);
    fuzz_must(ids && wf_tokenizer_encode(t, line.text, line.bytes, ids, n, message) == n);
    fuzz_must(wf_tokenizer_encode(again, line.text, line.bytes, ids + n, n, message) == n);
    fuzz_must(!memcmp(ids, ids + n, (size_t)n * sizeof *ids));
    int64_t length = wf_tokenizer_decode(t, ids, n, NULL, 0);
    wf_span body = wf_line_body(line.text, line.bytes);
    wf_byte_level_options o;
    fuzz_must(wf_tokenizer_byte_level(t, &o));
    size_t more = o.prefix_space && body.bytes && *body.text != ' ';
    fuzz_must(length == (int64_t)(body.bytes + more));
    char *text = malloc((size_t)length + 1);
    fuzz_must(text && wf_tokenizer_decode(t, ids, n, text, (size_t)length + 1) == length);
    fuzz_must(!body.bytes || !memcmp(text + more, body.text, body.bytes));
    free(ids), free(text);
}

/* Any ids make UTF-8. */
static void ids_read(const wf_tokenizer *t, wf_span line) {
    int32_t ids[64];
    int n = line.bytes < 64 ? (int)line.bytes : 64;
    for (int i = 0; i < n; i++)
        ids[i] = (unsigned char)line.text[i] * 7 % (int32_t)wf_tokenizer_size(t);
    int64_t length = wf_tokenizer_decode(t, ids, n, NULL, 0);
    fuzz_must(length >= 0);
    char *text = malloc((size_t)length + 1);
    fuzz_must(text && wf_tokenizer_decode(t, ids, n, text, (size_t)length + 1) == length);
    fuzz_must(!length || wf_utf8_prefix(text, (size_t)length) == (size_t)length);
    free(text);
}

FUZZ_TARGET(byte_level) {
    static const int32_t first = 0, last = 1;
    char message[256] = "";
    const char *text = (const char *)data, *end = size ? memchr(text, '\0', size) : NULL;
    size_t n = end ? (size_t)(end - text) : size, after = end ? n + 1 : size;
    wf_span line = { text + after, size - after };
    vocabulary v = collect((wf_span){ text, n });
    wf_byte_level_options o = { .pieces = v.pieces,
                                .n_pieces = v.strings.n,
                                .merges = n ? text : "",
                                .merges_bytes = n,
                                .special = { -1, -1, 0, 1 },
                                .before = &first,
                                .n_before = 1,
                                .after = &last,
                                .n_after = 1,
                                .prefix_space = size & 1 };
    wf_tokenizer *t = wf_tokenizer_from_byte_level(&o, message);
    if (t) {
        wf_tokenizer *again = through_fields(t);
        line_returns(t, again, line);
        ids_read(t, line);
        wf_tokenizer_free(again);
    } else
        fuzz_must_say(message);
    wf_tokenizer_free(t);
    wf_strings_free(&v.strings), free(v.pieces);
    return 0;
}
