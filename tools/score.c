/* tools/score.c - how likely a model finds given targets. See score.h. */
#include "score.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool scorer_new(scorer *s, wf_transformer *m, wf_pool *pool, int64_t batch_size, char *message) {
    *s = (scorer){ .model = m, .batch_size = batch_size, .most = m->config.max_len };
    size_t batch = (size_t)batch_size, all = batch * (size_t)s->most;
    int32_t **const tables[] = { &s->src, &s->tgt, &s->fed_src, &s->input, &s->labels };
    bool ok = true;
    for (int i = 0; i < 5; i++) ok = (*tables[i] = calloc(all, sizeof **tables[i])) && ok;
    s->src_length = calloc(batch, sizeof *s->src_length);
    s->tgt_length = calloc(batch, sizeof *s->tgt_length);
    s->log_probs = calloc(all, sizeof *s->log_probs);
    s->plan = wf_transformer_score_plan(m, pool);
    if (ok && s->src_length && s->tgt_length && s->log_probs && wf_plan_ok(s->plan)) return true;
    const char *reason = wf_plan_error(s->plan);
    snprintf(message, 256, "%s", *reason ? reason : "out of memory: --batch-size lowers the need");
    return false;
}

void scorer_free(scorer *s) {
    wf_plan_free(s->plan);
    free(s->src), free(s->src_length), free(s->tgt), free(s->tgt_length);
    free(s->fed_src), free(s->input), free(s->labels), free(s->log_probs);
    *s = (scorer){ 0 };
}

int32_t *scorer_src(const scorer *s) {
    return s->src + s->n * s->most;
}

int32_t *scorer_tgt(const scorer *s) {
    return s->tgt + s->n * s->most;
}

void scorer_add(scorer *s, int64_t src_length, int64_t tgt_length) {
    if (s->n == 0) s->S = s->T = 1;
    if (src_length > s->S) s->S = src_length;
    if (tgt_length + 1 > s->T) s->T = tgt_length + 1;
    s->src_length[s->n] = (int32_t)src_length;
    s->tgt_length[s->n++] = (int32_t)tgt_length;
}

/* Pair i as the model sees it: the start and then the target in, the target and then the end out. */
static void lay_out(scorer *s, int64_t i) {
    const wf_transformer_config *c = &s->model->config;
    const int32_t *tgt = s->tgt + i * s->most;
    int32_t *fed = s->fed_src + i * s->S, *in = s->input + i * s->T, *label = s->labels + i * s->T;
    int64_t n = s->tgt_length[i];
    memset(fed, 0, (size_t)s->S * sizeof *fed);
    memcpy(fed, s->src + i * s->most, (size_t)s->src_length[i] * sizeof *fed);
    for (int64_t t = 0; t < s->T; t++) {
        in[t] = t == 0 ? c->start_id : t <= n ? tgt[t - 1] : c->end_id;
        label[t] = t < n ? tgt[t] : t == n ? c->end_id : WF_IGNORE_LABEL;
    }
}

bool scorer_run(scorer *s) {
    const wf_transformer *m = s->model;
    wf_plan *p = s->plan;
    for (int64_t i = 0; i < s->n; i++) lay_out(s, i);
    bool ok = wf_bind(p, "B", s->n) && wf_bind(p, "S", s->S) && wf_bind(p, "T", s->T) &&
              wf_feed(p, m->src, s->fed_src) && wf_feed(p, m->src_length, s->src_length) &&
              wf_feed(p, m->tgt, s->input) && wf_feed(p, m->labels, s->labels) && wf_run(p) &&
              wf_fetch(p, m->token_log_probs, s->log_probs);
    s->n = 0;
    return ok;
}

const float *scorer_at(const scorer *s, int64_t i, int64_t *n) {
    *n = s->tgt_length[i] + 1;
    return s->log_probs + i * s->T;
}
