/* models/text/sentencepiece/sentencepiece.h - inside models: a tokenizer made from a SentencePiece
 * model, with its own vocabulary or the model's. sentencepiece.c makes, uses and frees it;
 * sentencepiece_fields.c writes it to a model's file and reads it. */
#ifndef WEFT_MODELS_TEXT_SENTENCEPIECE_H
#define WEFT_MODELS_TEXT_SENTENCEPIECE_H

#include "models/text/fields.h"
#include "spm.h"

typedef struct wf_sentencepiece {
    wf_spm *model;
    int64_t n;
    const char *const *pieces; /* by id: of `known`, or of the model; NULL: none */
    /* If the tokenizer has a vocabulary of its own: this, and its ids for the model's pieces. */
    wf_known_pieces known;
    int32_t *ids;
    int32_t *around;            /* before, after */
    wf_sentencepiece_options o; /* the options it was made with, whose arrays are stored here */
} wf_sentencepiece;

/* Like wf_tokenizer_from_sentencepiece. A tokenizer with the same model as `beside` (NULL: none)
 * shares it in memory; only one thread at a time may then use the two. */
wf_tokenizer *wf_sentencepiece_beside(const wf_sentencepiece_options *o,
                                      const wf_sentencepiece *beside, char *message);
void wf_sentencepiece_free(wf_sentencepiece *s);
int64_t wf_sentencepiece_encode(wf_sentencepiece *s, wf_span line, int32_t *ids, int64_t capacity,
                                char *message);
int64_t wf_sentencepiece_decode(const wf_sentencepiece *s, const int32_t *ids, int64_t n,
                                wf_sink *to);

/* True if the id stands for something other than text. */
bool wf_sentencepiece_special(const wf_sentencepiece *s, int32_t id);

/* Write the value of a field for a model's file, in the manner of snprintf; 0: there is no such
 * field. */
size_t wf_sentencepiece_field(const wf_sentencepiece *s, const char *field, char *text,
                              size_t size);
wf_tokenizer *wf_sentencepiece_from_fields(const wf_fields *f, const wf_sentencepiece *beside,
                                           char *message);

#endif
