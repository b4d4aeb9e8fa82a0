/* models/text/sentencepiece/sentencepiece_fields.c - stores a SentencePiece tokenizer in a model's
 * file: the .spm file in base 64 (RFC 4648), pieces as a JSON array of strings, ids as decimal
 * numbers between commas. */
#include <stdlib.h>

#include "models/text/fields.h"
#include "sentencepiece.h"

/* ---- base 64 --------------------------------------------------------------------------------- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_base64(wf_sink *to, const unsigned char *bytes, size_t n) {
    for (size_t i = 0; i < n; i += 3) {
        uint32_t bits = (uint32_t)bytes[i] << 16;
        if (i + 1 < n) bits |= (uint32_t)bytes[i + 1] << 8;
        if (i + 2 < n) bits |= bytes[i + 2];
        char four[4] = { digits[bits >> 18], digits[bits >> 12 & 63],
                         i + 1 < n ? digits[bits >> 6 & 63] : '=',
                         i + 2 < n ? digits[bits & 63] : '=' };
        put(to, four, sizeof four);
    }
}

/* Decodes groups of four characters; the last group may end in one or two '='. NULL with
 * message. */
static unsigned char *from_base64(const char *text, size_t *bytes, char *message) {
    size_t n = strlen(text), used = 0;
    signed char value[256];
    memset(value, -1, sizeof value);
    for (int i = 0; i < 64; i++) value[(unsigned char)digits[i]] = (signed char)i;
    unsigned char *out = malloc(n / 4 * 3 + 1);
    if (!out) return fail(message, "out of memory"), NULL;
    size_t padding = n && text[n - 1] == '=';
    if (padding && n > 1 && text[n - 2] == '=') padding = 2;
    bool ok = n % 4 == 0;
    uint32_t bits = 0;
    for (size_t i = 0; ok && i < n; i++) {
        int v = i < n - padding ? value[(unsigned char)text[i]] : 0;
        ok = v >= 0;
        bits = (bits << 6 | (uint32_t)(v & 63)) & 0xFFFFFF;
        if (i % 4 != 3) continue;
        out[used++] = (unsigned char)(bits >> 16);
        out[used++] = (unsigned char)(bits >> 8);
        out[used++] = (unsigned char)bits;
    }
    *bytes = used - padding;
    if (ok) return out;
    free(out);
    fail(message, "the SentencePiece model is not in base 64");
    return NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

size_t wf_sentencepiece_field(const wf_sentencepiece *s, const char *field, char *text,
                              size_t size) {
    const wf_sentencepiece_options *o = &s->o;
    wf_sink to = sink(text, size);
    if (!strcmp(field, "model")) put_base64(&to, o->model, o->bytes);
    if (!strcmp(field, "vocabulary") && o->pieces) wf_put_pieces(&to, s->pieces, s->n);
    if (!strcmp(field, "special")) wf_put_ids(&to, o->special, WF_SPECIAL_IDS);
    if (!strcmp(field, "before")) wf_put_ids(&to, o->before, o->n_before);
    if (!strcmp(field, "after")) wf_put_ids(&to, o->after, o->n_after);
    if (!strcmp(field, "added") && o->added) wf_put_ids(&to, &o->added, 1);
    if (!strcmp(field, "codes") && o->language_codes) put(&to, "language", strlen("language"));
    return to.used;
}

/* ---- reading --------------------------------------------------------------------------------- */

wf_tokenizer *wf_sentencepiece_from_fields(const char *const *fields, const char *const *values,
                                           int n, char *message) {
#define FIELD(name) wf_field_value(fields, values, n, name)
    int32_t special[WF_MOST_AROUND], before[WF_MOST_AROUND], after[WF_MOST_AROUND];
    int32_t added[WF_MOST_AROUND] = { 0 };
    int n_special = 0, n_before = 0, n_after = 0, n_added = 0;
    wf_pieces p = { 0 };
    size_t bytes = 0;
    wf_tokenizer *t = NULL;
    const char *model = FIELD("model"), *codes = FIELD("codes"), *vocabulary = FIELD("vocabulary");
    if (!model || !FIELD("special"))
        return fail(message, "there is no SentencePiece model, or it has no special ids"), NULL;
    if (codes && strcmp(codes, "language"))
        return fail(message, "codes are '%.40s', not 'language'", codes), NULL;
    if (!wf_ids_read(FIELD("special"), special, &n_special, message) ||
        !wf_ids_read(FIELD("before"), before, &n_before, message) ||
        !wf_ids_read(FIELD("after"), after, &n_after, message) ||
        !wf_ids_read(FIELD("added"), added, &n_added, message))
        return NULL;
    if (n_added > 1) return fail(message, "%d first added pieces", n_added), NULL;
    if (n_special != WF_SPECIAL_IDS)
        return fail(message, "%d special ids: %d", n_special, WF_SPECIAL_IDS), NULL;
    unsigned char *file = from_base64(model, &bytes, message);
    if (file && (!vocabulary || wf_pieces_read(&p, vocabulary, message))) {
        wf_sentencepiece_options o = { .model = file,
                                       .bytes = bytes,
                                       .pieces = p.at,
                                       .n_pieces = (int64_t)p.n,
                                       .before = before,
                                       .after = after,
                                       .n_before = n_before,
                                       .n_after = n_after,
                                       .language_codes = codes != NULL,
                                       .added = *added };
        memcpy(o.special, special, sizeof o.special);
        if (vocabulary && !p.n)
            fail(message, "the vocabulary has no piece");
        else
            t = wf_tokenizer_from_sentencepiece(&o, message);
    }
    free(file);
    wf_pieces_free(&p);
    return t;
#undef FIELD
}
