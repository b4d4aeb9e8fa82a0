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

wf_tokenizer *wf_sentencepiece_from_fields(const wf_fields *f, const wf_sentencepiece *beside,
                                           char *message) {
    int32_t before[WF_MOST_AROUND], after[WF_MOST_AROUND], added[WF_MOST_AROUND] = { 0 };
    int n_added = 0;
    wf_pieces p = { 0 };
    wf_tokenizer *t = NULL;
    wf_sentencepiece_options o = { .before = before, .after = after };
    const char *model = wf_field_value(f, "model"), *codes = wf_field_value(f, "codes");
    const char *vocabulary = wf_field_value(f, "vocabulary");
    if (!model || !wf_field_value(f, "special"))
        return fail(message, "there is no SentencePiece model, or it has no special ids"), NULL;
    if (codes && strcmp(codes, "language"))
        return fail(message, "codes are '%.40s', not 'language'", codes), NULL;
    if (!wf_field_special(f, o.special, message) ||
        !wf_field_ids(f, "before", before, &o.n_before, message) ||
        !wf_field_ids(f, "after", after, &o.n_after, message) ||
        !wf_field_ids(f, "added", added, &n_added, message))
        return NULL;
    if (n_added > 1) return fail(message, "%d first added pieces", n_added), NULL;
    char *file = wf_base64_decode((wf_span){ model, strlen(model) }, &o.bytes,
                                  "the SentencePiece model", message);
    if (file && (!vocabulary || wf_pieces_read(&p, vocabulary, message))) {
        o.model = file;
        o.pieces = p.at;
        o.n_pieces = (int64_t)p.n;
        o.language_codes = codes != NULL;
        o.added = *added;
        if (vocabulary && !p.n)
            fail(message, "the vocabulary has no piece");
        else
            t = wf_sentencepiece_beside(&o, beside, message);
    }
    free(file);
    wf_pieces_free(&p);
    return t;
}
