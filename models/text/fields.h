/* models/text/fields.h - inside models: a vocabulary with ids of its own, and how a model's file
 * stores a tokenizer's pieces and ids as text. Pieces are a JSON array of strings, with "" for an
 * id without a piece. Ids are decimal numbers with commas between them. */
#ifndef WEFT_MODELS_TEXT_FIELDS_H
#define WEFT_MODELS_TEXT_FIELDS_H

#include "tokenizer.h"

/* Pieces by their ids, and ids by their pieces. */
typedef struct wf_known_pieces {
    const char **at; /* by id, in texts; NULL: the id has no piece */
    wf_strings texts;
    int32_t *ids; /* [texts.n]: the ids of these texts */
} wf_known_pieces;

/* Copy n <= INT32_MAX pieces, of which some may be NULL or empty, into k, which is all zeros. False
 * with message: one is not UTF-8, or is there twice. Call wf_known_free in either case. */
bool wf_known_copy(wf_known_pieces *k, const char *const *pieces, int64_t n, char *message);
int32_t wf_known_id(const wf_known_pieces *k, wf_span piece); /* -1: there is no such piece */
void wf_known_free(wf_known_pieces *k);

void wf_put_pieces(wf_sink *to, const char *const *pieces, int64_t n);
void wf_put_ids(wf_sink *to, const int32_t *ids, int n);

typedef struct wf_pieces {
    char *text; /* the JSON, decoded in place */
    const char **at;
    size_t n, capacity;
} wf_pieces;

/* Parse the JSON array into p. False with message. Call wf_pieces_free in either case. */
bool wf_pieces_read(wf_pieces *p, const char *json, char *message);
void wf_pieces_free(wf_pieces *p);

/* The fields of a tokenizer; a value is NULL if it is missing. Fields may be damaged or hostile. */
typedef struct wf_fields {
    const char *const *names, *const *values; /* [n] */
    int n;
} wf_fields;

const char *wf_field_value(const wf_fields *f, const char *name); /* NULL: it is missing */
/* Read ids between commas: at most WF_MOST_AROUND, each at least -1; *n becomes their number. False
 * with message. A missing field has no ids, but an empty text is an error. */
bool wf_field_ids(const wf_fields *f, const char *name, int32_t *ids, int *n, char *message);
/* Read the field "special", which must have WF_SPECIAL_IDS ids. */
bool wf_field_special(const wf_fields *f, int32_t special[WF_SPECIAL_IDS], char *message);

#endif
