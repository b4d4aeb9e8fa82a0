/* tools/sources/source_contrast.c - pairs of lines with one meaning, from files, for an encoder
 * whose vectors of both shall be near. See dataset.h.
 *
 * They are read as the pairs of a translator are, with one vocabulary. The other pairs of a batch
 * are what a line is told apart from, so nothing is drawn here, and a step has the same bits for
 * any number of ranks: a batch is never divided. There is no output to compare. */
#include "dataset.h"

static bool open_contrast(dataset *m, const source_options *o, const wf_file *f, char *message) {
    return source_pairs.open(m, o, f, message);
}

static void close_contrast(dataset *m) {
    source_pairs.close(m);
}

static void announce_contrast(const dataset *m, report *r) {
    source_pairs.announce(m, r);
}

static int64_t count_batches(const dataset *m, task_stream stream) {
    return source_pairs.batches(m, stream);
}

static void arrange(dataset *m, int64_t epoch) {
    source_pairs.arrange(m, epoch);
}

static bool fill(const dataset *m, task_stream stream, int64_t k, batch *out) {
    return source_pairs.fill(m, stream, k, out);
}

static bool find_largest(const dataset *m, task_stream stream, int side, int64_t *B, int64_t *S,
                         int64_t *T) {
    return source_pairs.largest(m, stream, side, B, S, T);
}

static int64_t find_sequence(const dataset *m, task_stream stream, int64_t k, int64_t i,
                             const char *text[2]) {
    source_pairs.sequence(m, stream, k, i, text);
    return -1;
}

const source_kind source_contrast = {
    .text = true,
    .encoder = true,
    .open = open_contrast,
    .close = close_contrast,
    .announce = announce_contrast,
    .batches = count_batches,
    .arrange = arrange,
    .fill = fill,
    .largest = find_largest,
    .sequence = find_sequence,
};
