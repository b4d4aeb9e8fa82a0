/* tools/sources/source_classify.c - lines and the labels of their classes, for an encoder that
 * finds the label. See dataset.h.
 *
 * Lines are read, held out and cut into batches as pairs are: a label is a target of one token, its
 * number among all labels. A line that is too long is cut, as `embed` cuts it. */
#include "dataset.h"
#include "tools/cli/refused.h"

/* Encodes a line, and cuts it to the capacity. */
static int64_t encode_line(void *user, const char *line, size_t bytes, int32_t *ids,
                           int64_t capacity, char *message) {
    dataset *m = user;
    int64_t n = wf_tokenizer_encode(m->tokenizer[0], line, bytes, ids, capacity, message);
    m->cut += n > capacity;
    return n > capacity ? capacity : n;
}

static int64_t encode_label(void *user, const char *line, size_t bytes, int32_t *ids,
                            int64_t capacity, char *message) {
    const dataset *m = user;
    int64_t number = class_names_find(&m->classes, line, bytes);
    if (capacity > 0) ids[0] = (int32_t)number;
    if (number >= 0) return 1;
    refused(message, "'%.60s' is none of the model's %lld labels", line, (long long)m->classes.n);
    return -1;
}

void classify_encoders(dataset *m, text_encoder encoder[2]) {
    encoder[0] = (text_encoder){ encode_line, m, wf_tokenizer_size(m->tokenizer[0]), 0 };
    encoder[1] = (text_encoder){ encode_label, m, m->classes.n, 0 };
}

static void announce_classes(const dataset *m, report *r) {
    source_pairs.announce(m, r);
    say(r, "labels   %lld", (long long)m->classes.n);
    if (m->cut)
        say(r, "         %lld lines have more than %lld tokens: only their beginnings are used",
            (long long)m->cut, (long long)m->train.limits.tokens[0]);
}

/* The labels become [B,1], without an end. */
static bool fill(const dataset *m, task_stream stream, int64_t k, batch *out) {
    if (!source_pairs.fill(m, stream, k, out)) return false;
    for (int64_t i = 0; i < out->B; i++) {
        out->labels[i] = out->labels[i * out->T];
        out->tgt[i] = m->ids.start;
    }
    out->T = 1;
    return true;
}

static bool find_largest(const dataset *m, task_stream stream, int side, int64_t *B, int64_t *S,
                         int64_t *T) {
    bool any = source_pairs.largest(m, stream, side, B, S, T);
    *T = 1;
    return any;
}

const source_kind source_classify = {
    .text = true,
    .encoder = true,
    .classifies = true,
    .open = open_pairs,
    .close = close_pairs,
    .announce = announce_classes,
    .batches = count_pairs_batches,
    .arrange = arrange_pairs,
    .fill = fill,
    .largest = find_largest,
    .sequence = find_lines,
};
