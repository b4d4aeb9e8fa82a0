/* models/text/sentencepiece/sentencepiece.h - inside models: a tokenizer made of a SentencePiece model, with a
 * vocabulary of its own or the model's. sentencepiece.c makes, uses and ends it;
 * sentencepiece_fields.c writes it into a model's file and reads it from there. */
#ifndef WEFT_MODELS_TEXT_SENTENCEPIECE_H
#define WEFT_MODELS_TEXT_SENTENCEPIECE_H

#include "spm.h"

typedef struct wf_sentencepiece {
    wf_spm *model;
    int64_t n;
    const char **pieces; /* by id; NULL: none */
    char *texts;         /* theirs, one after the other */
    /* With a vocabulary of its own: its pieces by text, their ids, and the ids of the model's. */
    wf_strings known;
    int32_t *known_ids, *ids;
    int32_t *around;            /* before, after */
    wf_sentencepiece_options o; /* as it was made, of what is here */
} wf_sentencepiece;

void wf_sentencepiece_free(wf_sentencepiece *s);
int64_t wf_sentencepiece_encode(wf_sentencepiece *s, wf_span line, int32_t *ids, int64_t capacity,
                                char *message);
int64_t wf_sentencepiece_decode(const wf_sentencepiece *s, const int32_t *ids, int64_t n,
                                wf_sink *to);

/* The value of a field in a model's file, in the way of snprintf; 0: there is none. */
size_t wf_sentencepiece_field(const wf_sentencepiece *s, const char *field, char *text,
                              size_t size);
/* A tokenizer from n fields, NULL where there is none; damaged or hostile ones too. */
wf_tokenizer *wf_sentencepiece_from_fields(const char *const *fields, const char *const *values,
                                           int n, char *message);

#endif
