/* tools/sources/source_made.c - sequences that are generated on demand: tasks.h. The training
 * stream never ends, and never contains held-out sequences. */
#include "dataset.h"

enum { HELD_ROWS = 50 }; /* held-out sequences in a batch */

static bool open_made(dataset *m, const source_options *o, const wf_file *f, char *message) {
    (void)f;
    (void)message;
    m->numbers = o->numbers;
    m->rows = o->rows;
    m->held = o->held;
    m->vocab[0] = m->vocab[1] = TASK_VOCAB;
    m->longer = 1; /* allows one token too many, so that such a mistake shows */
    m->ids = (batch_ids){ TASK_START, TASK_END, TASK_END };
    return true;
}

static int64_t count_batches(const dataset *m, task_stream stream) {
    return stream == STREAM_TRAIN ? 0 : (m->held + HELD_ROWS - 1) / HELD_ROWS;
}

static int64_t rows_of(const dataset *m, task_stream stream, int64_t k) {
    int64_t left = m->held - k * HELD_ROWS;
    if (stream == STREAM_TRAIN) return m->rows;
    return left < HELD_ROWS ? left : HELD_ROWS;
}

static bool fill(const dataset *m, task_stream stream, int64_t k, batch *out) {
    int64_t first = k * rows_of(m, stream, 0);
    return batch_fill(out, &m->numbers, stream, (uint64_t)first, rows_of(m, stream, k));
}

static bool find_largest(const dataset *m, task_stream stream, int side, int64_t *B, int64_t *S,
                         int64_t *T) {
    (void)side;
    *B = rows_of(m, stream, 0);
    *S = m->numbers.max_len;
    *T = *S + 1;
    return *B > 0;
}

static int64_t find_sequence(const dataset *m, task_stream stream, int64_t k, int64_t i,
                             const char *text[2]) {
    text[0] = text[1] = NULL;
    return k * rows_of(m, stream, 0) + i;
}

const source_kind source_made = {
    .open = open_made,
    .batches = count_batches,
    .fill = fill,
    .largest = find_largest,
    .sequence = find_sequence,
};
