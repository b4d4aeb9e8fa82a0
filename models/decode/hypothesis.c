/* models/decode/hypothesis.c - the length, the candidates and the end of a hypothesis. */
#include <assert.h>

#include "ops/base/scalars.h"
#include "search.h"

int64_t wf_length_of(const search *q, const sentence *s) {
    return q->position - s->begin;
}

logit_row wf_row_of(const search *q, const sentence *s, int row) {
    const wf_model *m = q->d->model;
    logit_row r = { wf_real(m->graph), m->tgt_vocab, NULL,
                    q->open[wf_length_of(q, s) >= q->o->min_len] };
    r.logits = (const char *)q->d->logits + (size_t)(row * r.vocab) * wf_dtype_size(r.real);
    return r;
}

const candidate *wf_candidates_of(const search *q, const live *h) {
    assert(h->row >= 0 && h->row < q->b * q->width);
    return q->candidates + (int64_t)h->row * q->per_row;
}

double wf_length_penalty_of(const wf_decode_options *o, int64_t length) {
    switch (o->penalty) {
    case WF_PENALTY_GNMT:
        return wf_pow_of((5 + (double)length) / 6, o->alpha);
    case WF_PENALTY_AVERAGE: /* an empty output has no log-probabilities: its score is 0 */
        return wf_pow_of(length ? (double)length : 1, o->alpha);
    default:
        return 1;
    }
}

double wf_end_penalty(const search *q, const sentence *s) {
    int64_t length = wf_length_of(q, s);
    bool end_counts = length < s->limit || q->o->at_limit != WF_LIMIT_NO_END;
    return wf_length_penalty_of(q->o, length + end_counts);
}

void wf_end_hypothesis(const search *q, sentence *s, const live *h, const candidate *end, int at) {
    double total = h->total + end->log_prob;
    assert(at >= 0 && at < 2 * q->width);
    s->ended[at] = (ended){ .last = h->last,
                            .length = wf_length_of(q, s),
                            .end_log_prob = end->log_prob,
                            .total = total,
                            .score = total / wf_end_penalty(q, s),
                            .cut = q->cut[h->row] };
}
