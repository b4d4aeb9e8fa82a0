/* tools/metrics/ngrams.h - counts runs of symbols on two sides exactly, by a trie in one hash
 * table.
 *
 * A node is a run of symbols: its parent's run and one more. Nodes are numbered in the order of
 * their creation, and can serve as symbols themselves: a word is the node at the end of its
 * letters, and a run of words is a path of such nodes. When memory runs out, `failed` is set until
 * the next ngrams_clear, and node 0 stands for nodes that could not be made. */
#ifndef WEFT_TOOLS_METRICS_NGRAMS_H
#define WEFT_TOOLS_METRICS_NGRAMS_H

#include <stdbool.h>
#include <stdint.h>

/* The first nodes: no node, parent of words, parent of runs; NGRAMS_ROOTS is their number. */
enum { NGRAMS_NONE, NGRAMS_WORDS, NGRAMS_RUNS, NGRAMS_ROOTS };
enum { SIDE_OUTPUT, SIDE_REFERENCE };

typedef struct ngram {
    uint32_t parent, slot;
    int32_t symbol, depth, count[2];
} ngram;

typedef struct ngrams {
    ngram *node;
    uint32_t n, capacity;
    /* open addressing: the number of a node, or 0; the number of slots is a power of two */
    uint32_t *slot, slots;
    bool failed;
} ngrams;

void ngrams_free(ngrams *t);
/* forget all nodes, but keep the memory; call it before the first use, too */
void ngrams_clear(ngrams *t);

/* The node of parent's run followed by one more symbol. */
uint32_t ngrams_child(ngrams *t, uint32_t parent, int32_t symbol);

/* Count the runs of 1..order among n symbols on one side. They become nodes below NGRAMS_RUNS. */
void ngrams_count(ngrams *t, int side, const int32_t *symbols, int64_t n, int order);

/* Counts for every length 1..order: n-grams on each side, and those that both sides have. */
void ngrams_totals(const ngrams *t, int order, int64_t *output, int64_t *reference, int64_t *both);

#endif
