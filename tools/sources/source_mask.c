/* tools/sources/source_mask.c - running text of which tokens are hidden, for masked language models
 * (Devlin et al. 2018). See dataset.h.
 *
 * The text is read and cut into windows as running text is; the tokens that the tokenizer puts
 * around a line stand around each window. Of its tokens 15 % are chosen, and must be predicted: of
 * those 80 % become the mask, 10 % a random token, and 10 % stay. If none would be chosen, the
 * token with the smallest random number is. Random numbers are a function of the seed, the epoch,
 * the window and the place, and in validation always the same, so a batch has the same bits for any
 * number of ranks. */
#include "core/base/random.h"
#include "dataset.h"

enum { AROUND = 2 }; /* tokens around a window */
#define CHOSEN 0.15
#define MASKED 0.8
#define MASKED_OR_RANDOM 0.9

/* ---- what is hidden -------------------------------------------------------------------------- */

/* The random numbers of a window. */
typedef struct draws {
    uint64_t key, window, epoch;
} draws;

static wf_philox draw(const draws *d, int64_t place) {
    return wf_philox4x32(d->key, d->window, d->epoch << 32 | (uint64_t)place);
}

static double share(uint32_t word) {
    return (double)word / 4294967296.0;
}

/* Hides a chosen token: its id becomes the label, and the mask or a random id replaces it, or it
 * stays. */
static void hide(const dataset *m, wf_philox words, int32_t *id, int32_t *label) {
    double kind = share(words.v[1]);
    *label = *id;
    if (kind < MASKED)
        *id = m->mask;
    else if (kind < MASKED_OR_RANDOM)
        *id = (int32_t)(share(words.v[2]) * (double)m->vocab[0]);
}

/* Hides some of a row's n tokens, at least one if possible; but never start and end tokens, which
 * stand around a window and between documents. */
static void hide_some(const dataset *m, const draws *d, int64_t n, int32_t *ids, int32_t *labels) {
    int64_t nearest = -1;
    uint32_t least = 0;
    bool any = false;
    for (int64_t i = 0; i < n; i++) {
        labels[i] = WF_IGNORE_LABEL;
        if (ids[i] == m->ids.start || ids[i] == m->ids.end) continue;
        wf_philox words = draw(d, i);
        if (nearest < 0 || words.v[0] < least) {
            nearest = i;
            least = words.v[0];
        }
        if (share(words.v[0]) >= CHOSEN) continue;
        hide(m, words, &ids[i], &labels[i]);
        any = true;
    }
    if (!any && nearest >= 0) hide(m, draw(d, nearest), &ids[nearest], &labels[nearest]);
}

/* ---- batches --------------------------------------------------------------------------------- */

static void fill_row(const dataset *m, task_stream stream, int64_t k, int64_t row, batch *out) {
    const windows *w = windows_of(m, stream);
    bool train = stream == STREAM_TRAIN;
    int32_t *ids = out->src + row * out->S, *labels = out->labels + row * out->T;
    int64_t n = windows_tokens(w, k, row, ids + 1);
    const draws d = { wf_mix64(train ? wf_mix64(m->mask_seed + 1) : 0),
                      (uint64_t)(k * w->rows + row),
                      train && m->epoch > 0 ? (uint64_t)m->epoch : 0 };
    ids[0] = m->ids.start;
    ids[n + 1] = m->ids.end;
    hide_some(m, &d, n + AROUND, ids, labels);
    for (int64_t i = n + AROUND; i < out->S; i++) {
        ids[i] = m->ids.pad;
        labels[i] = WF_IGNORE_LABEL;
    }
    out->src_length[row] = (int32_t)(n + AROUND);
    out->answer_length[row] = 0;
}

static bool fill(const dataset *m, task_stream stream, int64_t k, batch *out) {
    const windows *w = windows_of(m, stream);
    if (!batch_shape(out, windows_rows(w, k), w->T + AROUND, w->T + AROUND)) return false;
    for (int64_t row = 0; row < out->B; row++) fill_row(m, stream, k, row, out);
    return true;
}

static bool find_largest(const dataset *m, task_stream stream, int side, int64_t *B, int64_t *S,
                         int64_t *T) {
    bool any = source_running.largest(m, stream, side, B, S, T);
    *T += AROUND;
    *S = *T;
    return any;
}

const source_kind source_mask = {
    .text = true,
    .running = true,
    .encoder = true,
    .masks = true,
    .open = open_running,
    .close = close_running,
    .announce = announce_running,
    .batches = count_windows,
    .arrange = arrange_windows,
    .fill = fill,
    .largest = find_largest,
    .sequence = no_sequence,
};
