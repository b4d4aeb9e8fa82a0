/* models/decode/score.c - forced scoring: how likely the model finds outputs that are given. */
#include "decode.h"

#include <stdlib.h>

/* Decoder input [b,t+1]: the start, then the output; labels: the output, then the end. */
static void shift(const wf_transformer_config *c, int b, int t, const int32_t *tgt,
                  const int32_t *tgt_length, int32_t *input, int32_t *labels) {
    for (int i = 0; i < b; i++) {
        const int32_t *output = tgt + (int64_t)i * t;
        int32_t *in = input + (int64_t)i * (t + 1), *label = labels + (int64_t)i * (t + 1);
        for (int k = 0; k <= t; k++) {
            int32_t n = tgt_length[i];
            in[k] = k == 0 ? c->start_id : k <= n ? output[k - 1] : c->end_id;
            label[k] = k < n ? output[k] : k == n ? c->end_id : WF_IGNORE_LABEL;
        }
    }
}

static bool targets_ok(wf_decoder *d, int b, int t, const int32_t *tgt, const int32_t *tgt_length) {
    if (t < 0 || t >= d->model->config.max_len)
        return wf_decoder_fail(d, "outputs of %d tokens: this model scores 0 to %lld", t,
                               (long long)d->model->config.max_len - 1);
    if (!tgt_length || (t > 0 && !tgt))
        return wf_decoder_fail(d, "the outputs, or their lengths, are NULL");
    for (int i = 0; i < b; i++) {
        if (tgt_length[i] < 0 || tgt_length[i] > t)
            return wf_decoder_fail(d, "output %d has %d tokens, not 0 to %d", i, (int)tgt_length[i],
                                   t);
        for (int k = 0; k < tgt_length[i]; k++) {
            int32_t token = tgt[(int64_t)i * t + k];
            if (token < 0 || token >= d->model->config.tgt_vocab)
                return wf_decoder_fail(d, "output %d: token %d is not in a vocabulary of %lld", i,
                                       (int)token, (long long)d->model->config.tgt_vocab);
        }
    }
    return true;
}

static bool run(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length, int t,
                const int32_t *input, const int32_t *labels, void *values) {
    const wf_transformer *m = d->model;
    if (!wf_plan_ok(d->score)) {
        wf_plan_free(d->score);
        d->score = wf_transformer_score_plan(d->model, d->pool);
    }
    wf_plan *p = d->score;
    bool ok = wf_bind(p, "B", b) && wf_bind(p, "S", s) && wf_bind(p, "T", t + 1) &&
              wf_feed(p, m->src, src) && wf_feed(p, m->src_length, src_length) &&
              wf_feed(p, m->tgt, input) && wf_feed(p, m->labels, labels) && wf_run(p) &&
              wf_fetch(p, m->token_log_probs, values);
    return ok || wf_decoder_fail_plan(d, p);
}

static void write_scores(const wf_decoder *d, int b, int64_t steps, const void *values,
                         double *log_probs, double *totals) {
    const logit_row row = { .real = wf_real(d->model->graph) };
    for (int i = 0; i < b; i++) {
        double total = 0;
        for (int64_t k = i * steps; k < (i + 1) * steps; k++) {
            double value = wf_logit_at(&row, values, k);
            total += value;
            if (log_probs) log_probs[k] = value;
        }
        if (totals) totals[i] = total;
    }
}

bool wf_score(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length, int t,
              const int32_t *tgt, const int32_t *tgt_length, double *log_probs, double *totals) {
    if (!d || !wf_decoder_lengths_ok(d, b, s, src, src_length)) return false;
    if (!targets_ok(d, b, t, tgt, tgt_length)) return false;
    size_t n = (size_t)b * ((size_t)t + 1);
    int32_t *ids = calloc(2 * n, sizeof *ids);
    void *values = calloc(n, wf_dtype_size(wf_real(d->model->graph)));
    bool ok = ids && values;
    if (ok)
        shift(&d->model->config, b, t, tgt, tgt_length, ids, ids + n);
    else
        wf_decoder_fail(d, "out of memory");
    ok = ok && run(d, b, s, src, src_length, t, ids, ids + n, values);
    if (ok) write_scores(d, b, t + 1, values, log_probs, totals);
    free(ids), free(values);
    return ok;
}
