/* models/text/sentencepiece/sentencepiece_fields.c - stores a SentencePiece tokenizer in a model's
 * file: the .spm file in base 64, pieces as a JSON array of strings, ids as decimal
 * numbers between commas. */
#include <stdlib.h>

#include "models/text/base64.h"
#include "sentencepiece.h"

/* ---- writing --------------------------------------------------------------------------------- */

size_t wf_sentencepiece_field(const wf_sentencepiece *s, const char *field, char *text,
                              size_t size) {
    const wf_sentencepiece_options *o = &s->o;
    wf_sink to = sink(text, size);
    if (!strcmp(field, "model")) wf_base64_put(&to, o->model, o->bytes);
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
                                           int n, const wf_sentencepiece *beside, char *message) {
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
    char *file = wf_base64_decode((wf_span){ model, strlen(model) }, &bytes,
                                  "the SentencePiece model", message);
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
            t = wf_sentencepiece_beside(&o, beside, message);
    }
    free(file);
    wf_pieces_free(&p);
    return t;
#undef FIELD
}
