/* tools/sources/source_spans.c - running text of which spans are taken out, for the training of T5
 * (Raffel et al. 2020). See dataset.h.
 *
 * The text is read and cut into windows as running text is. Of the tokens of a window 15 % are
 * taken out, in spans of 3 on average: a source has <extra_id_0>, <extra_id_1>, ... in their
 * places, and the target has each of these with the tokens that were there. Where spans begin is a
 * function of the seed, the epoch and the window, and in validation always the same, so that a
 * batch has the same bits for any number of ranks. */
#include "core/base/random.h"
#include "dataset.h"

#define TAKEN 0.15
#define LENGTH 3.0

/* ---- spans ----------------------------------------------------------------------------------- */

/* The sizes of a window's parts: how many tokens are taken out, in how many spans. */
typedef struct parts {
    int64_t taken, spans;
} parts;

static int64_t nearest(double x) {
    return (int64_t)(x + 0.5);
}

static int64_t within(int64_t x, int64_t low, int64_t high) {
    int64_t below = x < high ? x : high;
    return below > low ? below : low;
}

/* The sizes for a window of n tokens. A window of one token has no span. */
static parts parts_of(const dataset *m, int64_t n) {
    parts p = { 0 };
    if (n < 2) return p;
    p.taken = within(nearest(TAKEN * (double)n), 1, n - 1);
    p.spans = within(nearest((double)p.taken / LENGTH), 1, m->n_sentinels);
    p.spans = within(p.spans, 1, n - p.taken);
    return p;
}

/* The random numbers of a window. Kind 0 divides the tokens that are taken out into spans, and kind
 * 1 divides the tokens that stay. */
typedef struct draws {
    uint64_t key, window, epoch, kind;
} draws;

/* The length of the next of `spans` spans that share `left` tokens: each way to divide them is
 * equally likely. */
static int64_t next_length(const draws *d, int64_t left, int64_t spans, int64_t at) {
    int64_t length = 1;
    if (spans == 1) return left;
    /* after each token the span ends with probability (ends left) / (possible ends left) */
    for (int64_t places = left - 1; places > spans - 1; places--, length++) {
        wf_philox w = wf_philox4x32(d->key, d->window,
                                    d->epoch << 32 | d->kind << 31 | (uint64_t)(at + length));
        if (wf_unit_double(w.v[0], w.v[1]) * (double)places < (double)(spans - 1)) break;
    }
    return length;
}

static void copy(int32_t *to, int64_t *n, const int32_t *from, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[(*n)++] = from[i];
}

/* Divides the ids [n] of a window into a source and an answer. */
static void divide(const dataset *m, draws d, int64_t n, const int32_t *ids, int32_t *src,
                   int64_t *n_src, int32_t *answer, int64_t *n_answer) {
    parts p = parts_of(m, n);
    int64_t kept = n - p.taken, left[] = { p.taken, kept }, at = 0;
    *n_src = *n_answer = 0;
    copy(src, n_src, m->around, m->n_before);
    for (int64_t i = 0; i < p.spans; i++) {
        int64_t length[2];
        for (int kind = 0; kind < 2; kind++) {
            d.kind = (uint64_t)kind;
            length[kind] = next_length(&d, left[kind], p.spans - i, at);
            left[kind] -= length[kind];
        }
        copy(src, n_src, ids + at, length[1]);
        copy(src, n_src, &m->sentinel[i], 1);
        copy(answer, n_answer, &m->sentinel[i], 1);
        copy(answer, n_answer, ids + at + length[1], length[0]);
        at += length[0] + length[1];
    }
    copy(src, n_src, ids + at, n - at);
    copy(src, n_src, m->around + m->n_before, m->n_around - m->n_before);
}

/* ---- batches --------------------------------------------------------------------------------- */

/* For windows of n tokens: the length of a source, and of an answer with its start or its end. */
static void lengths_of(const dataset *m, int64_t n, int64_t *S, int64_t *T) {
    parts p = parts_of(m, n);
    *S = n - p.taken + p.spans + m->n_around;
    *T = p.taken + p.spans + 1;
}

static bool fill(const dataset *m, task_stream stream, int64_t k, batch *out) {
    const windows *w = windows_of(m, stream);
    bool train = stream == STREAM_TRAIN;
    int64_t S, T, n_src, n_answer;
    lengths_of(m, w->T, &S, &T);
    if (!batch_shape(out, windows_rows(w, k), S, T)) return false;
    for (int64_t row = 0; row < out->B; row++) {
        int64_t n = windows_tokens(w, k, row, m->window);
        const draws d = { .key = wf_mix64(train ? wf_mix64(m->mask_seed + 1) : 0),
                          .window = (uint64_t)(k * w->rows + row),
                          .epoch = train && m->epoch > 0 ? (uint64_t)m->epoch : 0 };
        int32_t *src = out->src + row * S, *answer = out->answer + row * (T - 1);
        divide(m, d, n, m->window, src, &n_src, answer, &n_answer);
        batch_row(out, row, m->ids, n_src, src, n_answer, answer);
    }
    return true;
}

static bool find_largest(const dataset *m, task_stream stream, int side, int64_t *B, int64_t *S,
                         int64_t *T) {
    int64_t n;
    bool any = source_running.largest(m, stream, side, B, S, &n);
    lengths_of(m, n, S, T);
    return any;
}

const source_kind source_spans = {
    .text = true,
    .running = true,
    .masks = true,
    .spans = true,
    .open = open_running,
    .close = close_running,
    .announce = announce_running,
    .batches = count_windows,
    .arrange = arrange_windows,
    .fill = fill,
    .largest = find_largest,
    .sequence = no_sequence,
};
