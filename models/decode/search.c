/* models/decode/search.c - wf_decode: sentences, their live hypotheses, and the batch rows of the
 * hypotheses.
 *
 * In every step the candidates of each row are chosen (in parallel: a row is a task). Then it is
 * decided for each sentence which of them go on (beam.c, sample.c). A child is a hypothesis with
 * one more token. The first child stays in its parent's row of the KV cache, and only other
 * children get a copy of that row. Idle rows stay in the batch until they are a quarter of it,
 * because a smaller batch needs a new plan. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/plan/pool.h"
#include "core/run_internal.h"
#include "models/model_internal.h"
#include "search.h"

/* WORTH_SHARING: a step with at least this many logits is faster with several threads */
enum { WORTH_SHARING = 16384 };

/* ---- room ------------------------------------------------------------------------------------ */

static void close_search(search *q) {
    free(q->sentences), free(q->all_live), free(q->all_ended);
    free(q->owner), free(q->from), free(q->ids), free(q->traces);
    free(q->from_before), free(q->ids_before);
    free(q->candidates), free(q->n_candidates), free(q->cut), free(q->next), free(q->heads);
    free(q->open[0]), free(q->open[1]), free(q->scratch);
    wf_narrow_close(q);
    wf_watch_close(q);
}

static bool allocate(search *q) {
    size_t b = (size_t)q->b, most = b * (size_t)q->width, vocab = (size_t)q->d->model->tgt_vocab;
    int threads = q->d->pool ? wf_pool_threads(q->d->pool) : 1;
    q->drawing = q->o->sample ? wf_draw_scratch((int64_t)vocab) : 0;
    q->changing = (q->drawing + wf_rules_scratch(q->o, q->d->model) + 127) & ~(size_t)127;
    q->stride = q->changing + ((wf_narrow_scratch(q->o, q->d->model) + 127) & ~(size_t)127);
    q->sentences = calloc(b, sizeof *q->sentences);
    q->all_live = calloc(most, sizeof *q->all_live);
    q->all_ended = calloc(2 * most, sizeof *q->all_ended);
    q->owner = calloc(2 * most, sizeof *q->owner);
    q->from = calloc(2 * most, sizeof *q->from);
    q->ids = calloc(2 * most, sizeof *q->ids);
    q->from_before = calloc(2 * most, sizeof *q->from_before);
    q->ids_before = calloc(2 * most, sizeof *q->ids_before);
    q->candidates = calloc(most * (size_t)q->per_row, sizeof *q->candidates);
    q->n_candidates = calloc(most, sizeof *q->n_candidates);
    q->cut = calloc(most, sizeof *q->cut);
    q->next = calloc((size_t)q->width, sizeof *q->next);
    q->heads = calloc((size_t)q->width, sizeof *q->heads);
    for (int i = 0; i < 2; i++) q->open[i] = calloc(vocab, sizeof(double));
    q->scratch = malloc((size_t)threads * q->stride + 1);
    return q->sentences && q->all_live && q->all_ended && q->owner && q->from && q->ids &&
           q->from_before && q->ids_before && q->candidates && q->n_candidates && q->cut &&
           q->next && q->heads && q->open[0] && q->open[1] && q->scratch && wf_watch_open(q);
}

static int64_t limit_of(const search *q, int64_t n) {
    double limit = floor(q->o->max_len_a * (double)n + q->o->max_len_b);
    int64_t most = wf_model_room(q->d->model, n);
    return limit < (double)most ? (int64_t)limit : most;
}

static void allow(search *q, int may_end, int32_t token, bool yes) {
    wf_logit_put(wf_real(q->d->model->graph), q->open[may_end], token, yes);
}

/* Fills the masks of allowed tokens. False: there is a minimum length, and every token other than
 * the end is banned. */
static bool allow_tokens(search *q) {
    const wf_model *m = q->d->model;
    const logit_row r = { wf_real(m->graph), m->tgt_vocab, NULL, q->open[0] };
    int64_t left = 0;
    for (int may_end = 0; may_end < 2; may_end++) {
        for (int32_t token = 0; token < m->tgt_vocab; token++) allow(q, may_end, token, true);
        for (int i = 0; i < q->o->n_banned; i++) allow(q, may_end, q->o->banned[i], false);
    }
    allow(q, 0, m->end_id, false);
    for (int64_t token = 0; token < m->tgt_vocab; token++)
        left += wf_logit_at(&r, r.open, token) != 0;
    return left > 0 || q->o->min_len == 0 ||
           wf_decoder_fail(q->d, "a minimum length of %lld, but every token is banned",
                           (long long)q->o->min_len);
}

/* The decoder's input for a sentence at a position before its output: a token of the prompt, or the
 * start token. */
static int32_t prompted(const search *q, const sentence *s, int64_t position) {
    return wf_decoder_prompted(q->d, s->prompt, s->begin, position);
}

static void open_sentence(search *q, int i, int s, const int32_t *src, int64_t n) {
    sentence *to = &q->sentences[i];
    to->live = q->all_live + (int64_t)i * q->width;
    to->ended = q->all_ended + (int64_t)i * 2 * q->width;
    to->index = i;
    to->limit = limit_of(q, n);
    to->begin = wf_model_begin(q->d->model, n);
    to->prompt = src && n > 0 ? src + (int64_t)i * s : NULL;
    to->live[0] = (live){ .row = i, .last = -1 };
    to->n_live = 1;
    q->owner[i] = i;
    if (i == 0 || to->begin < q->position) q->position = to->begin;
}

static bool open_search(search *q, int s, const int32_t *src, const int32_t *src_length,
                        const int64_t *sentence_index) {
    int64_t vocab = q->d->model->tgt_vocab;
    int kinds = q->o->sample ? q->width
                             : q->o->beam + 1; /* a beam of K needs K tokens other than the end */
    q->per_row = kinds > vocab && !q->o->sample ? (int)vocab : kinds;
    if (!allocate(q)) return wf_decoder_fail(q->d, "out of memory");
    if (!wf_narrow_open(q, s, src, src_length)) return false;
    for (int i = 0; i < q->b; i++) {
        open_sentence(q, i, s, src, src_length[i]);
        if (sentence_index) q->sentences[i].index = sentence_index[i];
    }
    for (int i = 0; i < q->b; i++) q->ids[i] = prompted(q, &q->sentences[i], q->position);
    q->rows = q->b;
    return allow_tokens(q);
}

/* ---- each row's candidates ------------------------------------------------------------------- */

/* The number of draws that a row makes. In the first step all draws of a sentence share one row. */
static int draws_of(const search *q, const sentence *s) {
    return q->o->sample && wf_length_of(q, s) == 0 ? q->width : 1;
}

static int force(const search *q, const sentence *s, double log_prob, int32_t token, candidate *c) {
    int n = draws_of(q, s);
    for (int i = 0; i < n; i++) c[i] = (candidate){ log_prob, token };
    return n;
}

static int force_end(const search *q, const sentence *s, int row, const logit_row *r,
                     double normaliser, candidate *c) {
    int32_t end = q->d->model->end_id;
    bool free_of_cost = q->o->at_limit != WF_LIMIT_END;
    q->cut[row] = wf_likeliest(r, normaliser, 1, c) == 0 || c->token != end;
    return force(q, s, free_of_cost ? 0 : wf_logit_at(r, r->logits, end) - normaliser, end, c);
}

static int first_draw(const sentence *s, int row) {
    for (int i = 0; i < s->n_live; i++)
        if (s->live[i].row == row) return s->live[i].sample;
    return 0;
}

/* The number of candidates without the last ones that have probability 0, such as banned tokens. */
static int without_impossible(const candidate *c, int n) {
    while (n > 0 && c[n - 1].log_prob == -INFINITY) n--;
    return n;
}

/* Gives candidates the model's own log-probabilities, after they were chosen by changed logits. */
static void take_own_log_probs(const logit_row *own, double normaliser, candidate *c, int n) {
    for (int i = 0; i < n; i++)
        c[i].log_prob = wf_logit_at(own, own->logits, c[i].token) - normaliser;
}

/* Chooses the row's candidates by the logits in r: the likeliest tokens, or in a sample those that
 * are drawn. Returns their number. */
static int pick(const search *q, const sentence *s, int row, const logit_row *r, double normaliser,
                char *scratch, candidate *c) {
    if (!q->o->sample) return wf_likeliest(r, normaliser, q->per_row, c);
    int n = draws_of(q, s);
    wf_draw_tokens(q, r, normaliser, s, first_draw(s, row), n, scratch, c);
    return n;
}

static int pick_by_rules(const search *q, const sentence *s, int row, const logit_row *own,
                         double normaliser, char *scratch, candidate *c) {
    logit_row r = *own;
    double among = normaliser;
    if (!wf_apply_rules(q, s, row, scratch + q->drawing, &r, &among))
        return force_end(q, s, row, own, normaliser, c);
    int n = without_impossible(c, pick(q, s, row, &r, among, scratch, c));
    if (!wf_ranks_log_probs(q->o)) take_own_log_probs(own, normaliser, c, n);
    return n;
}

/* The task of one row: chooses its candidates. False if the row has no finite normaliser. */
static bool choose(void *arg, int64_t index, int worker) {
    const search *q = arg;
    int row = (int)index, *n = &q->n_candidates[row];
    if (q->owner[row] < 0) return true;
    const sentence *s = &q->sentences[q->owner[row]];
    int64_t length = wf_length_of(q, s);
    if (length < 0) return true;
    logit_row r = wf_row_of(q, s, row);
    char *scratch = q->scratch + (size_t)worker * q->stride;
    const logit_row few = wf_narrow_few(q, s, &r, scratch + q->changing);
    double normaliser = wf_logit_normaliser(&few);
    if (!isfinite(normaliser)) return false;
    candidate *c = q->candidates + index * q->per_row;
    q->cut[row] = false;
    if (length < q->o->n_forced && length < s->limit) {
        *n = force(q, s, 0, q->o->forced[length], c);
        return true;
    }
    bool ends = length == s->limit || !wf_narrow_leaves(q, s, &few);
    bool ruled = wf_rules_apply_to(q, &r, normaliser, length);
    if (ends || ruled) wf_narrow_row(q, s, scratch + q->changing, &r);
    if (ends) {
        *n = force_end(q, s, row, &r, normaliser, c);
    } else if (ruled) {
        *n = pick_by_rules(q, s, row, &r, normaliser, scratch, c);
    } else {
        *n = pick(q, s, row, &few, normaliser, scratch, c);
        wf_narrow_tokens(q, s, c, *n);
    }
    return true;
}

static bool choose_all(search *q) {
    wf_pool *pool = q->rows * q->d->model->tgt_vocab < WORTH_SHARING ? NULL : q->d->pool;
    unsigned mode = wf_float_mode_enter();
    bool ok = wf_pool_run(pool, q->rows, choose, q);
    wf_float_mode_leave(mode);
    return ok || wf_decoder_fail(q->d, "the model gives logits that are not numbers");
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool remember(search *q, const sentence *s, int n) {
    if (q->n_traces > INT32_MAX / 2 - n)
        return wf_decoder_fail(q->d, "more tokens than can be kept");
    if (!wf_grow(&q->traces, &q->cap_traces, (size_t)(q->n_traces + n), sizeof *q->traces))
        return wf_decoder_fail(q->d, "out of memory");
    for (int i = 0; i < n; i++) {
        const child *c = &q->next[i];
        q->traces[q->n_traces + i] = (trace){ c->token, s->live[c->parent].last, c->log_prob };
    }
    return true;
}

/* Assigns batch rows to the new hypotheses, in heads[]: first their parents' rows, then other rows
 * that the sentence frees, then new ones. The remaining rows become idle. */
static void settle(search *q, const sentence *s, int n) {
    int who = q->owner[s->live[0].row], left = 0;
    for (int i = 0; i < s->n_live; i++) q->owner[s->live[i].row] = -1;
    for (int i = 0; i < n; i++) {
        int row = s->live[q->next[i].parent].row;
        q->heads[i] = q->owner[row] < 0 ? row : -1;
        if (q->heads[i] >= 0) q->owner[row] = who;
    }
    for (int i = 0; i < n; i++) {
        if (q->heads[i] >= 0) continue;
        while (left < s->n_live && q->owner[s->live[left].row] >= 0) left++;
        int row = q->heads[i] = left < s->n_live ? s->live[left].row : q->rows++;
        q->owner[row] = who;
        q->from[row] = s->live[q->next[i].parent].row;
    }
}

/* Reports a token to the callback; with a single hypothesis every token is final. */
static bool tell(search *q, const sentence *s, int n) {
    if (!q->o->heard || q->width > 1 || n == 0) return true;
    return q->o->heard(q->o->listener, (int)(s - q->sentences), q->next[0].token) ||
           wf_decoder_fail(q->d, "stopped by the program that listens");
}

static bool replace(search *q, sentence *s, int n) {
    if (!tell(q, s, n) || !remember(q, s, n)) return false;
    settle(q, s, n);
    for (int i = 0; i < n; i++) {
        const child *c = &q->next[i];
        s->live[i] = (live){ q->heads[i], c->sample, q->n_traces + i, c->total };
        q->ids[q->heads[i]] = c->token;
    }
    q->n_traces += n;
    s->n_live = n;
    return true;
}

/* Moves rows so that those of one sentence are neighbours and no row is idle. The encoder outputs
 * that these neighbours share are then read once. */
static void close_up(search *q) {
    size_t rows = (size_t)q->rows;
    memcpy(q->from_before, q->from, rows * sizeof *q->from);
    memcpy(q->ids_before, q->ids, rows * sizeof *q->ids);
    q->rows = 0;
    for (int i = 0; i < q->b; i++) {
        sentence *s = &q->sentences[i];
        for (int k = 0; k < s->n_live; k++) {
            int row = s->live[k].row;
            q->owner[q->rows] = i;
            q->from[q->rows] = q->from_before[row];
            q->ids[q->rows] = q->ids_before[row];
            s->live[k].row = q->rows++;
        }
    }
}

/* Advances every sentence by one step. q->rows becomes the number of rows to run next; 0: all are
 * done. */
static bool advance(search *q) {
    int before = q->rows, nobody = 0;
    for (int row = 0; row < 2 * q->b * q->width; row++) q->from[row] = row;
    for (int i = 0; i < q->b; i++) {
        sentence *s = &q->sentences[i];
        if (s->n_live == 0) continue;
        if (wf_length_of(q, s) < 0) {
            q->ids[s->live[0].row] = prompted(q, s, q->position + 1);
            continue;
        }
        int n = (q->o->sample ? wf_sample_advance : wf_beam_advance)(q, s);
        if (!wf_watch_step(q, s, n) || !replace(q, s, n)) return false;
    }
    for (int row = 0; row < q->rows; row++) nobody += q->owner[row] < 0;
    bool other = q->rows > before || 4 * nobody >= q->rows; /* true: rows must be moved */
    if (other) close_up(q);
    bool moves = false;
    for (int row = 0; row < q->rows && !moves; row++) moves = q->from[row] != row;
    if (q->rows == 0) return true;
    if (moves && !wf_state_reorder(q->d->state, q->from, q->rows))
        return wf_decoder_fail(q->d, "the state could not be reordered");
    return !other || wf_decoder_rows(q->d, q->rows, q->owner);
}

/* ---- results: one block of memory for each sentence ------------------------------------------ */

static size_t block_size(const sentence *s, int n) {
    size_t bytes = (size_t)n * sizeof(wf_hypothesis);
    for (int i = 0; i < n; i++) {
        size_t tokens = (size_t)s->ended[i].length;
        bytes += (tokens + 1) * sizeof(double) + tokens * sizeof(int32_t);
    }
    return bytes;
}

/* Follows the trace backwards, from the last token to the first. */
static void write_down(const search *q, const ended *e, int32_t *tokens, double *log_probs) {
    int32_t at = e->last;
    log_probs[e->length] = e->end_log_prob;
    for (int64_t i = e->length; i-- > 0; at = q->traces[at].before) {
        tokens[i] = q->traces[at].token;
        log_probs[i] = q->traces[at].log_prob;
    }
}

static bool make_result(const search *q, const sentence *s, wf_decoded *result) {
    int n = s->n_ended < q->o->nbest ? s->n_ended : q->o->nbest;
    wf_hypothesis *best = malloc(block_size(s, n) + 1);
    if (!best) return wf_decoder_fail(q->d, "out of memory");
    *result = (wf_decoded){ n, best };
    double *log_probs = (double *)(best + n); /* doubles come first, because of their alignment */
    int32_t *tokens = (int32_t *)log_probs;
    for (int i = 0; i < n; i++) tokens += 2 * (s->ended[i].length + 1);
    for (int i = 0; i < n; i++) {
        const ended *e = &s->ended[i];
        write_down(q, e, tokens, log_probs);
        best[i] = (wf_hypothesis){ tokens, log_probs, e->length, e->total, e->score, e->cut };
        log_probs += e->length + 1;
        tokens += e->length;
    }
    return true;
}

static bool make_results(search *q, wf_decoded *results) {
    for (int i = 0; i < q->b; i++)
        if (!make_result(q, &q->sentences[i], &results[i])) return false;
    return true;
}

void wf_decoded_free(wf_decoded *results, int b) {
    for (int i = 0; results && i < b; i++) {
        free(results[i].best);
        results[i] = (wf_decoded){ 0 };
    }
}

/* ---- the whole of it ------------------------------------------------------------------------- */

/* Runs the search. The prompts of a decoder-only model are run together, up to the length of the
 * shortest. */
static bool run(search *q, int s, const int32_t *src) {
    if (!wf_decoder_rows(q->d, q->rows, q->owner)) return false;
    if (q->position > 0 && !wf_decoder_prompt(q->d, q->b, s, src, q->position)) return false;
    for (; q->rows > 0; q->position++)
        if (!wf_narrow_step(q) || !choose_all(q) || !advance(q)) return false;
    return true;
}

static bool decode(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length,
                   const int64_t *sentence_index, const wf_decode_options *options,
                   wf_decoded *results) {
    if (!results) return wf_decoder_fail(d, "there is no room for results: they are NULL");
    if (!wf_decoder_lengths_ok(d, b, s, src, src_length) || !wf_options_ok(d, options, b))
        return false;
    search q = { .d = d, .o = options, .b = b };
    q.width = options->sample ? options->nbest : options->beam;
    bool ok = wf_decoder_begin(d, b, s, src, src_length, b * q.width) &&
              open_search(&q, s, src, src_length, sentence_index) && run(&q, s, src) &&
              make_results(&q, results);
    close_search(&q);
    if (!ok) wf_decoded_free(results, b);
    return ok;
}

bool wf_decode(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length,
               const int64_t *sentence_index, const wf_decode_options *options,
               wf_decoded *results) {
    for (int i = 0; results && i < b; i++) results[i] = (wf_decoded){ 0 };
    if (!wf_decoder_enter(d)) return false;
    bool ok = decode(d, b, s, src, src_length, sentence_index, options, results);
    wf_decoder_leave(d);
    return ok;
}

bool wf_decode_greedy(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length,
                      int max_new, int32_t *out, int32_t *out_length) {
    if (!d) return false;
    if (!out || !out_length) return wf_decoder_fail(d, "the room for outputs is NULL");
    if (max_new < 1) return wf_decoder_fail(d, "the longest output is at least 1");
    wf_decode_options o = wf_decode_defaults();
    o.max_len_a = 0;
    o.max_len_b = max_new;
    wf_decoded *results = calloc(b > 0 ? (size_t)b : 1, sizeof *results);
    if (!results) return wf_decoder_fail(d, "out of memory");
    bool ok = wf_decode(d, b, s, src, src_length, NULL, &o, results);
    for (int i = 0; ok && i < b; i++) {
        const wf_hypothesis *h = results[i].best;
        out_length[i] = (int32_t)h->length;
        for (int64_t t = 0; t < max_new; t++)
            out[(int64_t)i * max_new + t] = t < h->length ? h->tokens[t] : d->model->end_id;
    }
    wf_decoded_free(results, b < 0 ? 0 : b), free(results);
    return ok;
}
