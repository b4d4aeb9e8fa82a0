/* tools/data/batches.h - a corpus in batches of sentences of like length, in another order every
 * epoch.
 *
 * Pairs are laid out by the length of their target, and within that by the length of their source;
 * those of equal lengths are shuffled. The row is cut into batches, and the batches are shuffled.
 * All of it is a pure function of the corpus, the limits and (seed, epoch), so that (epoch, batch)
 * is a position at which a training can go on. Each batch is padded to its own longest sentences.
 *
 * An update is made of `accum` batches that follow each other; the last one of an epoch may have
 * fewer. Its gradient is the sum over all of them divided by the labels that count in all of them.
 *
 *     batches b;
 *     if (!batches_new(&b, &corpus, &limits, message)) ...
 *     for (batches_epoch(&b, epoch); u < batches_updates(&b); u++, ...)
 *         for (i = u * accum; i < batches_end(&b, u); i++) batches_fill(&b, i, ids, &batch);
 */
#ifndef WEFT_TOOLS_DATA_BATCHES_H
#define WEFT_TOOLS_DATA_BATCHES_H

#include "batch.h"
#include "corpus.h"

typedef struct batches_limits {
    int64_t sentences; /* at most so many rows; 0: as many as the tokens allow */
    int64_t tokens;    /* at most so many B * (S + T), padding included: S the longest source, T the
                          longest target and its start (or end); 0: as many as the rows have */
    int64_t accum;     /* batches in an update, 1 or more */
    bool shuffle;      /* false: from short to long, the same every epoch */
    uint64_t seed;
} batches_limits;

typedef struct batches {
    const corpus *corpus;
    batches_limits limits;
    int64_t n;                /* batches; the same in every epoch */
    int64_t *first;           /* [n + 1]: batch k is order[first[k]..first[k + 1] - 1] */
    int64_t *turn;            /* [n]: the batch whose turn comes i-th */
    uint32_t *sorted, *order; /* [pairs]: by length; and so in this epoch */
} batches;

/* Cuts a sealed corpus, which must outlive b, and arranges epoch 0. False with message[256]: out of
 * memory, 2^32 pairs or more, or a pair that is too long for limits->tokens (its line, and its
 * tokens). */
bool batches_new(batches *b, const corpus *c, const batches_limits *limits, char *message);
void batches_free(batches *b);

/* Arranges the batches of an epoch, 0 or more. */
void batches_epoch(batches *b, int64_t epoch);

int64_t batches_updates(const batches *b);                      /* of an epoch */
int64_t batches_end(const batches *b, int64_t update);          /* the batch after its last */
int64_t batches_rows(const batches *b, int64_t i);              /* of batch i, 0..n-1 */
int64_t batches_pair(const batches *b, int64_t i, int64_t row); /* in the corpus */

/* Writes batch i into out, which grows as needed. False: out of memory. */
bool batches_fill(const batches *b, int64_t i, batch_ids ids, batch *out);

/* B, S and T of the batch with the most tokens, padding included, on one side: 0 the source, 1 the
 * target, 2 both. Plans need memory for these three. */
void batches_largest(const batches *b, int side, int64_t *B, int64_t *S, int64_t *T);

#endif
