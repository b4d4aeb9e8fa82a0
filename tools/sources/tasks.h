/* tools/sources/tasks.h - tasks on numbers that need no data: copy, reverse, sort.
 *
 * Every sequence is a pure function of (stream, seed, index). A hash of its tokens decides if a
 * sequence belongs to training or to evaluation. So no evaluated sequence was ever trained on. */
#ifndef WEFT_TOOLS_SOURCES_TASKS_H
#define WEFT_TOOLS_SOURCES_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/data/batch.h"

typedef enum { TASK_COPY, TASK_REVERSE, TASK_SORT } task_kind;

/* Tokens are 1..19. 0 starts and ends a target. There is no padding token: lengths and negative
 * labels mark the padding. */
enum { TASK_VOCAB = 20, TASK_START = 0, TASK_END = 0, TASK_MAX_LEN = 512 };

typedef enum { STREAM_TRAIN, STREAM_VALID, STREAM_TEST } task_stream;

typedef struct task {
    task_kind kind;
    int64_t min_len, max_len; /* 2..TASK_MAX_LEN: of length 1 there are too few to hold some out */
    /* seed of the training stream; the other streams are the same for every seed */
    uint64_t seed;
} task;

/* The key of the random numbers of a stream. */
uint64_t task_key(uint64_t seed, task_stream stream);
/* A number below n from a random word. */
static inline uint32_t below(uint32_t word, uint32_t n) {
    return (uint32_t)((uint64_t)word * n >> 32);
}

/* Write sequence `index` of a stream to src, and its answer, which is as long, to tgt. Returns the
 * length in tokens. */
int64_t task_sequence(const task *t, task_stream stream, uint64_t index, int32_t *src,
                      int32_t *tgt);

/* Make a batch of `rows` sequences of a stream, from `first` on. False: out of memory. */
bool batch_fill(batch *b, const task *t, task_stream stream, uint64_t first, int64_t rows);

#endif
