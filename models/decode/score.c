/* models/decode/score.c - forced scoring: the log-probabilities of given outputs. */
#include "candidates.h"
#include "decoder.h"
#include "models/model_internal.h"

#include <stdlib.h>

/* Makes the decoder input [b,t+1], which is the start and then the output, and the labels, which
 * are the output and then the end. */
static void shift(const wf_model *m, int b, int t, const int32_t *tgt, const int32_t *tgt_length,
                  int32_t *input, int32_t *labels) {
    for (int i = 0; i < b; i++) {
        const int32_t *output = tgt + (int64_t)i * t;
        int32_t *in = input + (int64_t)i * (t + 1), *label = labels + (int64_t)i * (t + 1);
        for (int k = 0; k <= t; k++) {
            int32_t n = tgt_length[i];
            in[k] = k == 0 ? m->start_id : k <= n ? output[k - 1] : m->end_id;
            label[k] = k < n ? output[k] : k == n ? m->end_id : WF_IGNORE_LABEL;
        }
    }
}

static bool targets_ok(wf_decoder *d, int b, const int32_t *src_length, int t, const int32_t *tgt,
                       const int32_t *tgt_length) {
    if (t < 0 || t >= d->model->max_len)
        return wf_decoder_fail(d, "outputs of %d tokens: this model scores 0 to %lld", t,
                               (long long)d->model->max_len - 1);
    if (!tgt_length || (t > 0 && !tgt))
        return wf_decoder_fail(d, "the outputs, or their lengths, are NULL");
    for (int i = 0; i < b; i++) {
        if (tgt_length[i] < 0 || tgt_length[i] > t)
            return wf_decoder_fail(d, "output %d has %d tokens, not 0 to %d", i, (int)tgt_length[i],
                                   t);
        int64_t room = wf_model_room(d->model, src_length[i]);
        if (tgt_length[i] > room)
            return wf_decoder_fail(d, "sentence %d and its output have %d tokens, more than %lld",
                                   i, (int)(src_length[i] + tgt_length[i]),
                                   (long long)(src_length[i] + room));
        for (int k = 0; k < tgt_length[i]; k++) {
            int32_t token = tgt[(int64_t)i * t + k];
            if (token < 0 || token >= d->model->tgt_vocab)
                return wf_decoder_fail(d, "output %d: token %d is not in a vocabulary of %lld", i,
                                       (int)token, (long long)d->model->tgt_vocab);
        }
    }
    return true;
}

static bool run(wf_decoder *d, const wf_batch *pairs) {
    if (!wf_plan_ok(d->score)) {
        wf_plan_free(d->score);
        d->score = wf_model_plan(d->model, WF_PLAN_SCORE, d->pool);
    }
    bool ok = wf_model_feed(d->model, d->score, pairs) && wf_run(d->score);
    return ok || wf_decoder_fail_plan(d, d->score);
}

/* Writes the log-probabilities of each target from its first token on, and 0 after its end. */
static void write_scores(const wf_decoder *d, const wf_batch *pairs, int64_t width,
                         const void *values, double *log_probs, double *totals) {
    const logit_row row = { .real = wf_real(d->model->graph) };
    for (int64_t i = 0; i < pairs->B; i++) {
        int64_t begin = wf_model_begin(d->model, pairs->src_length[i]);
        double total = 0;
        for (int64_t k = 0; k < pairs->T; k++) {
            bool there = begin + k < width;
            double value = there ? wf_logit_at(&row, values, i * width + begin + k) : 0;
            total += value;
            if (log_probs) log_probs[i * pairs->T + k] = value;
        }
        if (totals) totals[i] = total;
    }
}

static bool score(wf_decoder *d, const wf_batch *pairs, double *log_probs, double *totals) {
    int64_t shape[WF_MAX_DIMS]; /* [b, width] */
    if (!run(d, pairs)) return false;
    const wf_tensor *wanted = d->model->token_log_probs;
    size_t bytes = wf_bound_bytes(d->score, wanted);
    void *values = malloc(bytes);
    if (!values) return wf_decoder_fail(d, "out of memory");
    bool ok =
        wf_fetch(d->score, wanted, values, bytes) && wf_bound_shape(d->score, wanted, shape) == 2;
    if (ok)
        write_scores(d, pairs, shape[1], values, log_probs, totals);
    else
        wf_decoder_fail_plan(d, d->score);
    free(values);
    return ok;
}

static bool score_targets(wf_decoder *d, int b, int s, const int32_t *src,
                          const int32_t *src_length, int t, const int32_t *tgt,
                          const int32_t *tgt_length, double *log_probs, double *totals) {
    if (!wf_decoder_lengths_ok(d, b, s, src, src_length)) return false;
    if (!targets_ok(d, b, src_length, t, tgt, tgt_length)) return false;
    size_t n = (size_t)b * ((size_t)t + 1);
    int32_t *ids = calloc(2 * n, sizeof *ids);
    if (!ids) return wf_decoder_fail(d, "out of memory");
    shift(d->model, b, t, tgt, tgt_length, ids, ids + n);
    const wf_batch pairs = { b, s, t + 1, src, src_length, ids, ids + n };
    bool ok = score(d, &pairs, log_probs, totals);
    free(ids);
    return ok;
}

bool wf_score(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length, int t,
              const int32_t *tgt, const int32_t *tgt_length, double *log_probs, double *totals) {
    if (!wf_decoder_enter(d)) return false;
    bool ok = score_targets(d, b, s, src, src_length, t, tgt, tgt_length, log_probs, totals);
    wf_decoder_leave(d);
    return ok;
}
