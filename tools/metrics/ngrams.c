/* tools/metrics/ngrams.c - counts runs of symbols. See ngrams.h. */
#include "ngrams.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/random.h"

enum { SMALLEST = 256 }; /* number of slots at first; at most half of the slots are used */

void ngrams_free(ngrams *t) {
    free(t->node), free(t->slot);
    *t = (ngrams){ 0 };
}

void ngrams_clear(ngrams *t) {
    for (uint32_t i = NGRAMS_ROOTS; i < t->n; i++) t->slot[t->node[i].slot] = 0;
    t->n = NGRAMS_ROOTS; /* roots hold no counts, and are never looked up */
    t->failed = false;
}

/* The slot of the node, or the free slot where it belongs. */
static uint32_t *find(const ngrams *t, uint32_t parent, int32_t symbol) {
    assert(t->slots && parent < t->n);
    uint64_t at = wf_mix64((uint64_t)parent << 32 | (uint32_t)symbol);
    for (;; at++) {
        uint32_t *slot = &t->slot[at & (t->slots - 1)];
        const ngram *node = &t->node[*slot];
        if (!*slot || (node->parent == parent && node->symbol == symbol)) return slot;
    }
}

static uint32_t take_slot(ngrams *t, uint32_t *slot, uint32_t node) {
    t->node[node].slot = (uint32_t)(slot - t->slot);
    return *slot = node;
}

/* Doubles the table and inserts every node again. */
static bool grow(ngrams *t) {
    uint32_t slots = t->slots ? 2 * t->slots : SMALLEST, capacity = slots / 2;
    if (slots < t->slots) return false;
    ngram *node = realloc(t->node, capacity * sizeof *node);
    if (!node) return false;
    t->node = node;
    uint32_t *slot = calloc(slots, sizeof *slot);
    if (!slot) return false;
    free(t->slot);
    t->slot = slot;
    t->slots = slots;
    t->capacity = capacity;
    for (uint32_t i = NGRAMS_ROOTS; i < t->n; i++)
        take_slot(t, find(t, node[i].parent, node[i].symbol), i);
    return true;
}

uint32_t ngrams_child(ngrams *t, uint32_t parent, int32_t symbol) {
    if (t->failed) return NGRAMS_NONE;
    if (t->n >= t->capacity && !grow(t)) {
        t->failed = true;
        return NGRAMS_NONE;
    }
    uint32_t *slot = find(t, parent, symbol);
    if (*slot) return *slot;
    int32_t depth = parent < NGRAMS_ROOTS ? 1 : t->node[parent].depth + 1;
    t->node[t->n] = (ngram){ .parent = parent, .symbol = symbol, .depth = depth };
    return take_slot(t, slot, t->n++);
}

void ngrams_count(ngrams *t, int side, const int32_t *symbols, int64_t n, int order) {
    for (int64_t begin = 0; begin < n; begin++) {
        uint32_t node = NGRAMS_RUNS;
        for (int64_t i = begin; i < n && i < begin + order; i++) {
            node = ngrams_child(t, node, symbols[i]);
            if (t->failed) return;
            t->node[node].count[side]++;
        }
    }
}

void ngrams_totals(const ngrams *t, int order, int64_t *output, int64_t *reference, int64_t *both) {
    for (int k = 0; k < order; k++) output[k] = reference[k] = both[k] = 0;
    for (uint32_t i = NGRAMS_ROOTS; i < t->n; i++) {
        const int32_t *count = t->node[i].count;
        int k = t->node[i].depth - 1;
        if (k >= order) continue; /* a node deeper than the longest run belongs to a long word */
        output[k] += count[SIDE_OUTPUT];
        reference[k] += count[SIDE_REFERENCE];
        both[k] += count[count[SIDE_OUTPUT] < count[SIDE_REFERENCE] ? SIDE_OUTPUT : SIDE_REFERENCE];
    }
}
