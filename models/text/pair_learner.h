/* models/text/pair_learner.h - inside models: learns merges of byte-pair encoding, for all
 * tokenizers that have them (Sennrich et al. 2016).
 *
 * Words are sequences of symbols with counts. The most frequent pair of neighbours is merged
 * everywhere, again and again. The rule says which of several equally frequent pairs is first,
 * which pairs cannot merge, what a merge makes, and when to stop.
 *
 *     wf_pair_words_begin(&words, count), wf_pair_words_add(&words, symbol), ...
 *     if (!wf_learn_pairs(&words, &rule)) ... out of memory */
#ifndef WEFT_MODELS_TEXT_PAIR_LEARNER_H
#define WEFT_MODELS_TEXT_PAIR_LEARNER_H

#include "tables.h"

typedef struct wf_pair_word {
    size_t begin;
    int32_t length;
    int64_t count;
} wf_pair_word;

/* Initialise it with zeros. */
typedef struct wf_pair_words {
    int32_t *symbols; /* of all words, one after the other */
    size_t n, capacity;
    wf_pair_word *words;
    size_t n_words, words_capacity;
} wf_pair_words;

/* Begin a word, and append a symbol to the last one. False: out of memory. */
bool wf_pair_words_begin(wf_pair_words *w, int64_t count);
bool wf_pair_words_add(wf_pair_words *w, int32_t symbol);
void wf_pair_words_free(wf_pair_words *w);

typedef struct wf_pair_rule {
    /* True if pair a merges before pair b, which is equally frequent. */
    bool (*before)(const void *context, const int32_t a[2], const int32_t b[2]);
    bool (*allows)(const void *context, int32_t left, int32_t right);
    /* Adds a merge, and returns the symbol that it makes; -1: out of memory. */
    int32_t (*merge)(void *context, int32_t left, int32_t right);
    bool (*more)(const void *context); /* false: there are enough merges */
    int64_t min_freq;                  /* less frequent pairs are not merged */
    void *context;
} wf_pair_rule;

/* Learns merges until the rule has enough, or no pair is frequent enough. The words change. False:
 * out of memory. */
bool wf_learn_pairs(wf_pair_words *words, const wf_pair_rule *rule);

#endif
