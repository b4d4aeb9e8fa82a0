/* models/text/merge.h - inside models: the loop of byte-pair encoding, for every tokenizer that has one.
 *
 * Symbols stand in a chain. Of all neighbours that a rule merges, those with the lowest key are merged
 * first, of equal keys the leftmost, until none are left. The places wait in a heap, so that n symbols
 * take O(n log n): a megabyte without a space does no harm.
 *
 *     for (...) wf_merger_add(g, symbol, bytes);
 *     wf_merge_all(g, &rule);
 *     for (int32_t i = 0; i >= 0; i = g->chain[i].after) ... g->chain[i].symbol */
#ifndef WEFT_MODELS_TEXT_MERGE_H
#define WEFT_MODELS_TEXT_MERGE_H

#include "tables.h"

typedef struct wf_link {
    int32_t symbol;        /* below 0: unknown, or as the rule has it */
    int32_t before, after; /* places in the chain; -1: none */
    int32_t begin, bytes;  /* of the text; 0 bytes: merged into the link before */
    int32_t result;        /* of the merge with the link after it */
    int64_t key;           /* of that merge; WF_NO_MERGE: there is none */
} wf_link;

#define WF_NO_MERGE INT64_MAX

/* All start as zeros. */
typedef struct wf_merger {
    wf_link *chain;
    size_t capacity;
    int32_t n; /* links; 0 begins another text */
    wf_heap heap;
    int32_t *fresh; /* links that have just been merged */
    size_t fresh_capacity;
} wf_merger;

typedef struct wf_merge_rule {
    /* The symbol that two neighbours become, and its key; below 0: they stay. */
    int32_t (*find)(void *context, const wf_link *left, const wf_link *right, int64_t *key);
    void *context;
    /* All places of a key come before what they make possible, as subword-nmt has it. The orders differ
     * where two merges make the same symbol. */
    bool together;
} wf_merge_rule;

/* One link more. False: no memory, or a text of 2^31 bytes. */
bool wf_merger_add(wf_merger *g, int32_t symbol, size_t bytes);
bool wf_merge_all(wf_merger *g, const wf_merge_rule *rule); /* false: no memory */
void wf_merger_free(wf_merger *g);

/* ---- a rule from a list of merges ------------------------------------------------------------ */

typedef struct wf_merge {
    int32_t left, right, result; /* symbols */
} wf_merge;

typedef struct wf_merges {
    wf_merge *at; /* [n], in the order in which they apply */
    size_t n, capacity;
    wf_pairs ranks; /* a pair of symbols: the number of its merge */
} wf_merges;

bool wf_merges_add(wf_merges *m,
                   wf_merge merge); /* a pair that is not there yet; false: no memory */
void wf_merges_free(wf_merges *m);
wf_merge_rule wf_merges_rule(wf_merges *m, bool together);

#endif
