/* models/decode/narrow.c - a search among the candidates of a shortlist: other tokens of a row get
 * the logit minus infinity, before anything else looks at it.
 *
 * The candidates of a sentence are those of its own source, so that its output does not depend on
 * its batch. Log-probabilities are among the candidates. The end is always one of them. */
#include "narrow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

/* The candidates of all sentences: those of sentence i are ids[ends[i - 1]] up to ids[ends[i]]. */
struct narrow {
    int32_t *ids;
    size_t room;
    int64_t *ends; /* [b] */
};

static bool add_sentence(search *q, narrow *n, int64_t i, int64_t from, const int32_t *src,
                         int64_t length) {
    int64_t vocab = q->d->model->tgt_vocab;
    if (!wf_grow(&n->ids, &n->room, (size_t)(from + vocab), sizeof *n->ids))
        return wf_decoder_fail(q->d, "out of memory");
    int64_t count = wf_shortlist_candidates(q->o->shortlist, src, length, n->ids + from, vocab);
    n->ends[i] = from + count;
    return count >= 0 || wf_decoder_fail(q->d,
                                         "the candidates of sentence %lld: out of memory, or "
                                         "one of its tokens is not in the vocabulary",
                                         (long long)i);
}

bool wf_narrow_open(search *q, int s, const int32_t *src, const int32_t *src_length) {
    if (!q->o->shortlist) return true;
    narrow *n = q->narrow = calloc(1, sizeof *n);
    if (n) n->ends = calloc((size_t)q->b, sizeof *n->ends);
    if (!n || !n->ends) return wf_decoder_fail(q->d, "out of memory");
    for (int64_t i = 0; i < q->b; i++)
        if (!add_sentence(q, n, i, i ? n->ends[i - 1] : 0, src + i * s, src_length[i]))
            return false;
    return true;
}

void wf_narrow_close(search *q) {
    if (!q->narrow) return;
    free(q->narrow->ids);
    free(q->narrow->ends);
    free(q->narrow);
}

size_t wf_narrow_scratch(const wf_decode_options *o, const wf_model *m) {
    return o->shortlist ? (size_t)m->tgt_vocab * sizeof(double) : 0;
}

#define COPY_CHOSEN(real)                                                                          \
    static void copy_##real(const real *from, real *to, int64_t vocab, const int32_t *ids,         \
                            int64_t n) {                                                           \
        for (int64_t i = 0; i < vocab; i++) to[i] = -(real)INFINITY;                               \
        for (int64_t i = 0; i < n; i++) to[ids[i]] = from[ids[i]];                                 \
    }
COPY_CHOSEN(float)
COPY_CHOSEN(double)

void wf_narrow_row(const search *q, const sentence *s, char *scratch, logit_row *of) {
    const narrow *n = q->narrow;
    if (!n) return;
    int64_t i = s - q->sentences, from = i ? n->ends[i - 1] : 0;
    int32_t end = q->d->model->end_id;
    if (of->real == WF_F64) {
        copy_double(of->logits, (double *)(void *)scratch, of->vocab, n->ids + from,
                    n->ends[i] - from);
        ((double *)(void *)scratch)[end] = wf_logit_at(of, of->logits, end);
    } else {
        copy_float(of->logits, (float *)(void *)scratch, of->vocab, n->ids + from,
                   n->ends[i] - from);
        ((float *)(void *)scratch)[end] = (float)wf_logit_at(of, of->logits, end);
    }
    of->logits = scratch;
}

bool wf_narrow_leaves(const search *q, const sentence *s, const logit_row *r) {
    candidate best;
    if (!q->narrow || wf_length_of(q, s) >= q->o->min_len) return true; /* at least the end */
    return wf_likeliest(r, 0, 1, &best) == 1 && best.log_prob > -INFINITY;
}
