/* models/text/tally.h - inside models: strings, and how often each was seen. */
#ifndef WEFT_MODELS_TEXT_TALLY_H
#define WEFT_MODELS_TEXT_TALLY_H

#include "tokenizer.h"

/* Initialise it with zeros. */
typedef struct wf_tally {
    wf_strings strings;
    int64_t *counts; /* [strings.n] */
    size_t capacity;
} wf_tally;

bool wf_tally_add(wf_tally *c, wf_span s, int64_t times);           /* false: out of memory */
bool wf_tally_characters(wf_tally *c, wf_span text, int64_t times); /* each code point */
bool wf_tally_alphabet(wf_tally *c, const wf_tally *words);         /* each code point of words */
void wf_tally_free(wf_tally *c);

typedef struct wf_ranked {
    wf_span text; /* with a '\0' after it */
    int64_t count;
} wf_ranked;

/* All strings by descending frequency, ties by bytes. The caller frees the array, which points into
 * the tally. NULL: out of memory. */
wf_ranked *wf_tally_rank(const wf_tally *c);

#endif
