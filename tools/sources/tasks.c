/* tools/sources/tasks.c - the tasks on numbers. See tasks.h. */
#include "tasks.h"

#include <stdlib.h>

#include "core/base/random.h"

enum { TOKENS = TASK_VOCAB - 1 }; /* 1..19 */

/* True for one sequence in 16, which is held out of training. */
static bool held_out(const int32_t *src, int64_t n) {
    return wf_hash_bytes(0, src, (uint64_t)n * sizeof *src) % 16 == 0;
}

uint64_t task_key(uint64_t seed, task_stream stream) {
    return wf_mix64(stream == STREAM_TRAIN ? wf_mix64(seed + 1) : 0) + (uint64_t)stream;
}

/* The tokens that one sequence draws from: 1 + (first + stride * i) mod TOKENS, 0 <= i < size. */
typedef struct alphabet {
    uint32_t first, stride, size;
} alphabet;

/* Draws an alphabet. It usually has all tokens, but for a quarter of the training sequences only 1
 * to 6 of them. Random sequences seldom repeat a token, and a model trained on those alone makes
 * mistakes where a token occurs twice. */
static alphabet draw_alphabet(task_stream stream, wf_philox words) {
    if (stream != STREAM_TRAIN || below(words.v[1], 4)) return (alphabet){ 0, 1, TOKENS };
    return (alphabet){ below(words.v[2], TOKENS), 1 + below(words.v[3], TOKENS - 1),
                       1 + below(words.v[1] << 2, 6) };
}

/* Draws a sequence for an index: its length, its alphabet, its tokens. `attempt` counts retries. */
static int64_t draw(const task *t, task_stream stream, uint64_t index, uint32_t attempt,
                    int32_t *src) {
    uint64_t key = task_key(t->seed, stream);
    wf_philox words = wf_philox4x32(key, index, (uint64_t)attempt << 32);
    int64_t n = t->min_len + below(words.v[0], (uint32_t)(t->max_len - t->min_len + 1));
    alphabet a = draw_alphabet(stream, words);
    for (int64_t i = 0; i < n; i++) {
        if (i % 4 == 0)
            words = wf_philox4x32(key, index, (uint64_t)attempt << 32 | (uint64_t)(i / 4 + 1));
        src[i] = 1 + (int32_t)((a.first + a.stride * below(words.v[i % 4], a.size)) % TOKENS);
    }
    return n;
}

static int ascending(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void solve(task_kind kind, int64_t n, const int32_t *src, int32_t *tgt) {
    for (int64_t i = 0; i < n; i++) tgt[i] = src[kind == TASK_REVERSE ? n - 1 - i : i];
    if (kind == TASK_SORT) qsort(tgt, (size_t)n, sizeof *tgt, ascending);
}

int64_t task_sequence(const task *t, task_stream stream, uint64_t index, int32_t *src,
                      int32_t *tgt) {
    int64_t n;
    uint32_t attempt = 0;
    do n = draw(t, stream, index, attempt++, src);
    while (held_out(src, n) != (stream != STREAM_TRAIN));
    solve(t->kind, n, src, tgt);
    return n;
}

bool batch_fill(batch *b, const task *t, task_stream stream, uint64_t first, int64_t rows) {
    int32_t src[TASK_MAX_LEN], answer[TASK_MAX_LEN];
    batch_ids ids = { .start = TASK_START, .end = TASK_END, .pad = TASK_END };
    int64_t longest = 0;
    if (!batch_shape(b, rows, t->max_len, t->max_len + 1)) return false;
    for (int64_t i = 0; i < rows; i++) {
        int64_t n = task_sequence(t, stream, first + (uint64_t)i, src, answer);
        if (n > longest) longest = n;
    }
    b->S = longest;
    b->T = longest + 1;
    for (int64_t i = 0; i < rows; i++) {
        int64_t n = task_sequence(t, stream, first + (uint64_t)i, src, answer);
        batch_row(b, i, ids, n, src, n, answer);
    }
    return true;
}
