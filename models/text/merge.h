/* models/text/merge.h - inside models: the merge loop of byte-pair encoding, shared by all
 * tokenizers that use it.
 *
 * Symbols form a chain. Of all neighbours that a rule can merge, those with the lowest key are
 * merged first, and of equal keys the leftmost, until none are left. Possible merges are in a heap,
 * so n symbols take O(n log n) time, even for a megabyte without a space.
 *
 *     for (...) wf_merger_add(g, symbol, bytes);
 *     wf_merge_all(g, &rule);
 *     for (int32_t i = 0; i >= 0; i = g->chain[i].after) ... g->chain[i].symbol */
#ifndef WEFT_MODELS_TEXT_MERGE_H
#define WEFT_MODELS_TEXT_MERGE_H

#include "tables.h"

typedef struct wf_link {
    int32_t symbol;        /* below 0: unknown, or a value with a meaning for the rule */
    int32_t before, after; /* indices in the chain; -1: none */
    int32_t begin, bytes;  /* its bytes in the text; bytes 0: merged into a link before it */
    int32_t result;        /* result of merging it with the next link */
    int64_t key;           /* key of that merge; WF_NO_MERGE: there is none */
} wf_link;

#define WF_NO_MERGE INT64_MAX

/* The chain and its memory. Initialise it with zeros. */
typedef struct wf_merger {
    wf_link *chain;
    size_t capacity;
    int32_t n; /* links; 0 begins another text */
    wf_heap heap;
    int32_t *fresh; /* links that have just been merged */
    size_t fresh_capacity;
} wf_merger;

typedef struct wf_merge_rule {
    /* Return the symbol into which two neighbours merge, and set its key: smaller keys merge first.
     * A result below 0: the two do not merge. */
    int32_t (*find)(void *context, const wf_link *left, const wf_link *right, int64_t *key);
    void *context;
    /* true: all pairs that have the lowest key now are merged before pairs that these merges
     * create, as in subword-nmt. This matters only if two merges give the same symbol */
    bool together;
} wf_merge_rule;

/* Append a symbol, which stands for the next `bytes` bytes of the text. False: out of memory, or
 * the text has 2^31 - 1 bytes or more. */
bool wf_merger_add(wf_merger *g, int32_t symbol, size_t bytes);
bool wf_merge_all(wf_merger *g, const wf_merge_rule *rule); /* false: no memory */
void wf_merger_free(wf_merger *g);

/* ---- a rule from a list of merges ------------------------------------------------------------ */

typedef struct wf_merge {
    int32_t left, right, result; /* symbols */
} wf_merge;

typedef struct wf_merges {
    wf_merge *at; /* [n] merges, in the order in which they apply */
    size_t n, capacity;
    wf_pairs ranks; /* maps a pair of symbols to the index of its merge */
} wf_merges;

bool wf_merges_add(wf_merges *m, wf_merge merge); /* the pair must be new; false: out of memory */
bool wf_merges_reserve(wf_merges *m, size_t n);   /* makes room for n merges in all */
void wf_merges_free(wf_merges *m);
wf_merge_rule wf_merges_rule(wf_merges *m, bool together);

#endif
