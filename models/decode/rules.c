/* models/decode/rules.c - rules that change a row of logits depending on the tokens so far: the
 * logits processors of transformers 5.23 (generation/logits_process.py), in the same order.
 *
 * In transformers, rules change logits in a greedy search and in sampling, and log-probabilities in
 * a beam. Here both are a logit minus a base, which is 0 or the row's normaliser. So a rule
 * rewrites only a few logits in a copy of the row. A banned token gets minus infinity. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "ops/base/scalars.h"
#include "search.h"

bool wf_ranks_log_probs(const wf_decode_options *o) {
    return !o->sample && o->beam > 1;
}

static bool has_rules(const wf_decode_options *o) {
    return o->no_repeat_ngram || o->repetition_penalty != 1 || o->decay != 1 || o->n_begin_banned;
}

size_t wf_rules_scratch(const wf_decode_options *o, const wf_model *m) {
    if (!has_rules(o) && !o->renormalize) return 0;
    size_t row = (size_t)m->tgt_vocab * sizeof(double);
    return row + ((size_t)m->max_len + 2) * sizeof(int32_t);
}

/* True if log-probabilities must be renormalized, because banned tokens have a share of the
 * probability. A share below e^-700 changes no bit, and needs no renormalization. */
static bool loses_share(const search *q, const logit_row *r, double normaliser, int64_t length) {
    const wf_decode_options *o = q->o;
    if (!o->renormalize || !wf_ranks_log_probs(o)) return false;
    if (length < o->min_len) return true;
    for (int i = 0; i < o->n_banned; i++)
        if (wf_logit_at(r, r->logits, o->banned[i]) - normaliser > -700) return true;
    return false;
}

bool wf_rules_apply_to(const search *q, const logit_row *r, double normaliser, int64_t length) {
    return has_rules(q->o) || loses_share(q, r, normaliser, length);
}

/* ---- a hypothesis ---------------------------------------------------------------------------- */

static int32_t last_trace(const sentence *s, int row) {
    for (int i = 0; i < s->n_live; i++)
        if (s->live[i].row == row) return s->live[i].last;
    return -1;
}

/* Collects all tokens fed in this row: the prompt, the start token, and the output so far. */
static int64_t history(const search *q, const sentence *s, int row, int32_t *tokens) {
    int64_t length = wf_length_of(q, s), before = s->begin + 1;
    int32_t at = last_trace(s, row);
    assert(length >= 0 && before + length <= q->d->model->max_len + 1);
    for (int64_t i = 0; i < before; i++)
        tokens[i] = wf_decoder_prompted(q->d, s->prompt, s->begin, i);
    for (int64_t i = length; i-- > 0; at = q->traces[at].before)
        tokens[before + i] = q->traces[at].token;
    return before + length;
}

/* ---- one row --------------------------------------------------------------------------------- */

typedef struct ruled_row {
    const search *q;
    const logit_row *own; /* from the model */
    void *logits;         /* the copy */
    double base;
    const int32_t *tokens; /* [n] the history */
    int64_t n;
} ruled_row;

static void put(const ruled_row *r, int64_t token, double logit) {
    wf_logit_put(r->own->real, r->logits, token, logit);
}

static void ban(const ruled_row *r, int64_t token) {
    assert(token >= 0 && token < r->own->vocab);
    put(r, token, -INFINITY);
}

/* Penalises every token that has occurred. Each penalty starts from the model's own logit, so a
 * token that occurred twice is penalised only once. */
static void penalise_repetitions(const ruled_row *r) {
    double penalty = r->q->o->repetition_penalty;
    for (int64_t i = 0; penalty != 1 && i < r->n; i++) {
        double score = wf_logit_at(r->own, r->own->logits, r->tokens[i]) - r->base;
        put(r, r->tokens[i], (score < 0 ? score * penalty : score / penalty) + r->base);
    }
}

/* If the last n - 1 tokens occurred before, the token that followed them there is banned. */
static void ban_repeated_ngrams(const ruled_row *r) {
    int64_t n = r->q->o->no_repeat_ngram, end = r->n - n;
    if (n == 0) return;
    size_t bytes = (size_t)(n - 1) * sizeof *r->tokens;
    for (int64_t i = 0; i <= end; i++)
        if (memcmp(r->tokens + i, r->tokens + end + 1, bytes) == 0) ban(r, r->tokens[i + n - 1]);
}

static void favour_end(const ruled_row *r, int64_t length) {
    const wf_decode_options *o = r->q->o;
    int32_t end = r->q->d->model->end_id;
    if (o->decay == 1 || length <= o->decay_start) return;
    double score = wf_logit_at(r->own, r->logits, end) - r->base;
    double more = fabs(score) * (wf_pow_of(o->decay, (double)(length - o->decay_start)) - 1);
    if (isfinite(score)) put(r, end, score + more + r->base);
}

static void ban_beginnings(const ruled_row *r, int64_t length) {
    const wf_decode_options *o = r->q->o;
    for (int i = 0; length == o->n_forced && i < o->n_begin_banned; i++) ban(r, o->begin_banned[i]);
}

static void ban_closed(const ruled_row *r) {
    for (int64_t token = 0; token < r->own->vocab; token++)
        if (wf_logit_at(r->own, r->own->open, token) == 0) ban(r, token);
}

bool wf_apply_rules(const search *q, const sentence *s, int row, char *scratch, logit_row *of,
                    double *normaliser) {
    int64_t length = wf_length_of(q, s);
    const logit_row own = *of;
    size_t vocab = (size_t)own.vocab;
    int32_t *tokens = (int32_t *)(void *)(scratch + vocab * sizeof(double));
    ruled_row r = { q,
                    &own,
                    memcpy(scratch, own.logits, vocab * wf_dtype_size(own.real)),
                    wf_ranks_log_probs(q->o) ? *normaliser : 0,
                    tokens,
                    history(q, s, row, tokens) };
    penalise_repetitions(&r);
    ban_repeated_ngrams(&r);
    favour_end(&r, length);
    ban_beginnings(&r, length);
    of->logits = r.logits;
    candidate best;
    if (wf_likeliest(of, 0, 1, &best) == 0 || best.log_prob == -INFINITY) return false;
    if (q->o->renormalize && wf_ranks_log_probs(q->o)) {
        ban_closed(&r);
        *normaliser = wf_logit_normaliser(of);
    }
    return true;
}
