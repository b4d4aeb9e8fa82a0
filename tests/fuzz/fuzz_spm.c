/* tests/fuzz/fuzz_spm.c - any bytes as a .spm file: refused with a sentence, or a tokenizer that
 * keeps its promises, also when it went through the fields of a model's file.
 *
 * The first byte chooses options, the second says how long the line is that follows; the rest is
 * the file. */
#include "fuzz.h"
#include "models/text/sentencepiece/sentencepiece.h"

/* The texts of a line's pieces, joined, must be the line. Models with byte pieces are left out. */
static void pieces_cover(const void *file, size_t size, wf_span line) {
    char message[256] = "";
    wf_spm *m = wf_spm_read(file, size, message);
    fuzz_must(m);
    int64_t n = wf_spm_encode(m, line, message);
    const char *at = m->line.at;
    for (int64_t i = 0; i < n; i++) {
        const wf_spm_token *token = &m->tokens[i];
        fuzz_must(token->id >= 0 && (size_t)token->id < m->n && token->text.bytes);
        if (m->byte_fallback) continue;
        fuzz_must(token->text.text == at);
        at += token->text.bytes;
    }
    fuzz_must(n <= 0 || m->byte_fallback || at == m->line.at + m->line.bytes);
    wf_spm_free(m);
}

static int32_t *encoded(wf_tokenizer *t, wf_span line, int64_t *n) {
    char message[256] = "";
    *n = wf_tokenizer_encode(t, line.text, line.bytes, NULL, 0, message);
    if (*n < 0) fuzz_must_say(message);
    int32_t *ids = malloc(((size_t)(*n > 0 ? *n : 0) + 1) * sizeof *ids);
    fuzz_must(ids);
    fuzz_must(*n < 0 || wf_tokenizer_encode(t, line.text, line.bytes, ids, *n, message) == *n);
    for (int64_t i = 0; i < *n; i++) fuzz_must(wf_tokenizer_piece(t, ids[i]));
    return ids;
}

static void line_holds(wf_tokenizer *t, wf_tokenizer *again, wf_span line) {
    int64_t n, m;
    int32_t *ids = encoded(t, line, &n), *same = encoded(again, line, &m);
    fuzz_must(n == m && (n <= 0 || !memcmp(ids, same, (size_t)n * sizeof *ids)));
    int64_t bytes = n > 0 ? wf_tokenizer_decode(t, ids, n, NULL, 0) : -1;
    char *text = malloc((size_t)(bytes > 0 ? bytes : 0) + 1);
    fuzz_must(text);
    if (bytes >= 0)
        fuzz_must(wf_tokenizer_decode(t, ids, n, text, (size_t)bytes + 1) == bytes && !text[bytes]);
    free(ids), free(same), free(text);
}

static wf_tokenizer *through_fields(wf_tokenizer *t) {
    char message[256] = "";
    wf_meta pairs[WF_TOKENIZER_META];
    const char *names[WF_TOKENIZER_META], *values[WF_TOKENIZER_META];
    int n = 0;
    fuzz_must(wf_tokenizer_to_meta(t, "t", pairs, &n, message) && n >= 3);
    for (int i = 0; i < n; i++) names[i] = pairs[i].key + 2, values[i] = pairs[i].value;
    wf_tokenizer *again =
        wf_sentencepiece_from_fields(&(wf_fields){ names, values, n }, NULL, message);
    if (!again) fprintf(stderr, "%s\n", message);
    fuzz_must(again && wf_tokenizer_size(again) == wf_tokenizer_size(t));
    return again;
}

FUZZ_TARGET(spm) {
    static const char *const pieces[] = { "</s>",          "<unk>", ">>fra<<",       "a",
                                          "\xE2\x96\x81",  NULL,    "\xE2\x96\x81x", "ab",
                                          "b\xE2\x96\x81", "<0x41>" };
    if (size < 2 || size - 2 < data[1]) return 0;
    char message[256] = "";
    wf_span line = { (const char *)data + 2, data[1] };
    const uint8_t *file = data + 2 + line.bytes;
    size_t bytes = size - 2 - line.bytes;
    wf_sentencepiece_options o;
    if (!wf_sentencepiece_defaults(file, bytes, &o, message)) {
        fuzz_must_say(message);
        return 0;
    }
    int32_t end = 0;
    if (data[0] & 1) {
        o.pieces = pieces, o.n_pieces = 10, o.special[WF_UNK_ID] = 1;
        o.special[WF_PAD_ID] = o.special[WF_START_ID] = -1, o.special[WF_END_ID] = 0;
    }
    if (data[0] & 2) o.after = &end, o.n_after = 1;
    o.language_codes = data[0] & 4;
    wf_tokenizer *t = wf_tokenizer_from_sentencepiece(&o, message);
    fuzz_must(t);
    wf_tokenizer *again = through_fields(t);
    line_holds(t, again, line);
    pieces_cover(file, bytes, line);
    wf_tokenizer_free(t), wf_tokenizer_free(again);
    return 0;
}
