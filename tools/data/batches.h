/* tools/data/batches.h - cuts a corpus into batches of sentences of similar length, in another
 * order in every epoch.
 *
 * Pairs are sorted by the length of their target, then by the length of their source; pairs with
 * equal lengths are shuffled. The sorted list is cut into batches, and the batches are shuffled.
 * All of it is a pure function of the corpus, the limits and (seed, epoch), so a training can
 * resume at any (epoch, batch). Each batch is padded to its own longest sentences.
 *
 *     batches b;
 *     if (!batches_new(&b, &corpus, &limits, message)) ...
 *     for (batches_epoch(&b, epoch); i < b.n; i++, ...) batches_fill(&b, i, ids, &batch); */
#ifndef WEFT_TOOLS_DATA_BATCHES_H
#define WEFT_TOOLS_DATA_BATCHES_H

#include "batch.h"
#include "corpus.h"

typedef struct batches_limits {
    int64_t sentences; /* most rows; 0: as many as the tokens allow */
    /* most cells B * (S + T), padding included, where S is the longest source and T the longest
     * target with its start (or end); 0: no limit */
    int64_t tokens;
    bool shuffle; /* false: batches go from short to long, in the same order in every epoch */
    uint64_t seed;
} batches_limits;

typedef struct batches {
    const corpus *corpus;
    batches_limits limits;
    int64_t n;                /* number of batches, the same in every epoch */
    int64_t *first;           /* [n + 1]: batch k is order[first[k]..first[k + 1] - 1] */
    int64_t *turn;            /* [n]: turn[i] is the i-th batch of this epoch */
    uint32_t *sorted, *order; /* [pairs] sorted by length; and in the order of this epoch */
} batches;

/* Cut a sealed corpus, which must live longer than b, and arrange epoch 0. False with message[256]:
 * out of memory, 2^32 pairs or more, or a pair that has too many tokens for limits->tokens; then
 * the message has the line and the tokens of the pair. */
bool batches_new(batches *b, const corpus *c, const batches_limits *limits, char *message);
void batches_free(batches *b);

/* Arrange the batches of an epoch, 0 or more. */
void batches_epoch(batches *b, int64_t epoch);

int64_t batches_rows(const batches *b, int64_t i);              /* rows of batch i, 0..n-1 */
int64_t batches_pair(const batches *b, int64_t i, int64_t row); /* index in the corpus */

/* Write batch i into out, which grows as needed. False: out of memory. */
bool batches_fill(const batches *b, int64_t i, batch_ids ids, batch *out);

/* Write B, S and T of the batch that has the most tokens, padding included. side: 0 counts source
 * tokens, 1 target tokens, 2 both. A plan needs memory for all three of these batches. */
void batches_largest(const batches *b, int side, int64_t *B, int64_t *S, int64_t *T);

#endif
