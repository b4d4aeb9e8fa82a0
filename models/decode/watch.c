/* models/decode/watch.c - tells a listener (options.watched) what each step of a search ranks, and
 * what it decides.
 *
 * Without a listener, nothing here is allocated or run. With one, the step is described after the
 * decision and before the hypotheses change, so no choice and no bit changes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/plan/pool.h"
#include "search.h"

/* At most `width` continuations go on, `width` end, and `width` worse ones are reported. */
static int most_continuations(const search *q) {
    return 3 * q->width;
}

bool wf_watch_open(search *q) {
    if (!q->o->watched) return true;
    size_t width = (size_t)q->width, row = (size_t)q->d->model->tgt_vocab * sizeof(double);
    watch *w = q->watch = calloc(1, sizeof *w);
    if (!w) return false;
    w->continuations = calloc((size_t)most_continuations(q), sizeof *w->continuations);
    w->logits = calloc(width, sizeof *w->logits);
    w->ranked = calloc(width, sizeof *w->ranked);
    w->normaliser = calloc(width, sizeof *w->normaliser);
    w->rows = malloc(width * row);
    for (size_t i = 0; w->ranked && i < width; i++) w->ranked[i] = w->rows + i * row;
    return w->continuations && w->logits && w->ranked && w->normaliser && w->rows;
}

void wf_watch_close(search *q) {
    watch *w = q->watch;
    if (!w) return;
    free(w->continuations);
    free(w->logits);
    free(w->ranked);
    free(w->normaliser);
    free(w->rows);
    free(w);
}

bool wf_watch_wants(const search *q) {
    return q->watch && q->watch->n < most_continuations(q);
}

void wf_watch_note(const search *q, const sentence *s, int parent, const candidate *c,
                   wf_fate fate) {
    if (!wf_watch_wants(q)) return;
    const live *h = &s->live[parent];
    wf_continuation *to = &q->watch->continuations[q->watch->n++];
    *to = (wf_continuation){ .parent = parent,
                             .token = c->token,
                             .log_prob = c->log_prob,
                             .total = h->total + c->log_prob,
                             .fate = fate };
    if (fate != WF_FATE_ENDED) return;
    to->score = to->total / wf_end_penalty(q, s);
    to->cut = q->cut[h->row];
}

/* ---- rows of logits -------------------------------------------------------------------------- */

/* Writes the logits by which the search ranks: of a token that it does not rank, minus infinity. It
 * must treat the same cases as choose() in search.c. */
static void rank_row(const search *q, const sentence *s, int row, const logit_row *own,
                     double normaliser, void *ranked) {
    int64_t length = wf_length_of(q, s);
    int32_t only = -1; /* the one token that is ranked; -1: all that are allowed */
    logit_row r = *own;
    if (length == s->limit)
        only = q->d->model->end_id;
    else if (length < q->o->n_forced)
        only = q->o->forced[length];
    else if (!wf_narrow_leaves(q, s, own) ||
             (wf_rules_apply_to(q, own, normaliser, length) &&
              !wf_apply_rules(q, s, row, q->scratch + q->drawing, &r, &normaliser)))
        only = q->d->model->end_id;
    memcpy(ranked, only < 0 ? r.logits : own->logits, (size_t)r.vocab * wf_dtype_size(r.real));
    for (int64_t i = 0; i < r.vocab; i++)
        if (only < 0 ? wf_logit_at(own, own->open, i) == 0 : i != only)
            wf_logit_put(own->real, ranked, i, -INFINITY);
}

static void show_row(const search *q, const sentence *s, int i) {
    watch *w = q->watch;
    int row = s->live[i].row;
    logit_row own = wf_row_of(q, s, row);
    w->logits[i] = own.logits;
    w->normaliser[i] = wf_logit_normaliser(&own);
    const logit_row few = wf_narrow_few(q, s, &own, q->scratch + q->changing);
    double normaliser = q->narrow ? wf_logit_normaliser(&few) : w->normaliser[i];
    wf_narrow_row(q, s, q->scratch + q->changing, &own);
    rank_row(q, s, row, &own, normaliser, w->ranked[i]);
}

bool wf_watch_step(search *q, const sentence *s, int n) {
    watch *w = q->watch;
    if (!w) return true;
    unsigned mode = wf_float_mode_enter();
    for (int i = 0; i < s->n_live; i++) show_row(q, s, i);
    wf_float_mode_leave(mode);
    for (int i = 0; n == 0 && i < w->n; i++)
        if (w->continuations[i].fate == WF_FATE_LIVE) w->continuations[i].fate = WF_FATE_STOPPED;
    const wf_search_step step = { .sentence = (int)(s - q->sentences),
                                  .length = wf_length_of(q, s),
                                  .n_live = s->n_live,
                                  .logits = w->logits,
                                  .ranked = (const void *const *)w->ranked,
                                  .normaliser = w->normaliser,
                                  .n = w->n,
                                  .continuations = w->continuations };
    w->n = 0;
    return q->o->watched(q->o->listener, &step) ||
           wf_decoder_fail(q->d, "stopped by the program that watches");
}
