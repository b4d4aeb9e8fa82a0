/* tests/models/test_search.c - rules of beam searches of other libraries: when a search stops, how
 * outputs at the length limit end, forced first tokens; and these rules in a model's file.
 *
 * The reference search sorts all continuations of all hypotheses at every step. It follows
 * generation/utils.py of transformers 5.23 (_beam_search), whose outputs hf_peer.py compares.
 * test_decode.c compares with an exhaustive search. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <stdio.h>
#include <unistd.h>

#include "models/generation.h"
#include "models/generation_internal.h"
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(search)

enum { VOCAB = 5, MOST = 6, WIDEST = 4 }; /* token 0 is the end */

typedef struct path {
    int32_t tokens[MOST + 1], length; /* the end not among them */
    double total, score;
    int last;
} path;

/* The log-probability of each token after the tokens of the path. */
static void next_log_probs(wf_decoder *d, const int32_t *src, int32_t n, const path *p,
                           double out[VOCAB]) {
    int32_t sources[VOCAB * 8], lengths[VOCAB], targets[VOCAB * (MOST + 1)] = { 0 }, tokens[VOCAB];
    double log_probs[VOCAB * (MOST + 2)];
    int t = p->length + 1;
    for (int v = 0; v < VOCAB; v++) {
        memcpy(sources + v * n, src, (size_t)n * sizeof *src);
        lengths[v] = n, tokens[v] = p->length + (v > 0);
        memcpy(targets + v * t, p->tokens, (size_t)p->length * sizeof *targets);
        targets[v * t + p->length] = v;
    }
    assert_decoder(d, wf_score(d, VOCAB, n, sources, lengths, t, targets, tokens, log_probs, NULL));
    for (int v = 0; v < VOCAB; v++) out[v] = log_probs[v * (t + 1) + p->length];
}

static int by_total(const void *a, const void *b) {
    double x = ((const path *)a)->total, y = ((const path *)b)->total;
    return (x < y) - (x > y);
}
static int by_score(const void *a, const void *b) {
    double x = ((const path *)a)->score, y = ((const path *)b)->score;
    return (x < y) - (x > y);
}

typedef struct beams {
    const wf_decode_options *o;
    int32_t start;
    int limit, n_live, n_kept;
    path live[WIDEST], kept[3 * WIDEST], all[WIDEST * VOCAB];
} beams;

enum { BANNED = -1000000000 };

static bool was_there(const int32_t *fed, int n, int32_t token) {
    for (int i = 0; i < n; i++)
        if (fed[i] == token) return true;
    return false;
}

/* Would the last run - 1 tokens followed by v repeat a run of tokens? (no_repeat_ngram_size) */
static bool repeats(const int32_t *fed, int n, int run, int32_t v) {
    for (int from = 0; from + run <= n; from++) {
        int k = 0;
        while (k < run - 1 && fed[from + k] == fed[n - run + 1 + k]) k++;
        if (k == run - 1 && fed[from + k] == v) return true;
    }
    return false;
}

/* Applies the rules of transformers' processors, in their order; token 0 is the end. */
static void rules(const beams *b, const path *p, double x[VOCAB]) {
    const wf_decode_options *o = b->o;
    int n = p->length + 1;
    int32_t fed[MOST + 2] = { b->start };
    double sum = 0;
    memcpy(fed + 1, p->tokens, (size_t)p->length * sizeof *fed);
    for (int v = 0; v < VOCAB; v++)
        if (was_there(fed, n, v)) x[v] *= o->repetition_penalty;
    for (int v = 0; o->no_repeat_ngram && v < VOCAB; v++)
        if (repeats(fed, n, o->no_repeat_ngram, v)) x[v] = -1e10;
    if (p->length < o->min_len) x[0] = -1e10;
    if (p->length > o->decay_start && x[0] > BANNED)
        x[0] += fabs(x[0]) * (pow(o->decay, (double)(p->length - o->decay_start)) - 1);
    for (int i = 0; p->length == o->n_forced && i < o->n_begin_banned; i++)
        x[o->begin_banned[i]] = -1e10;
    for (int v = 0; v < VOCAB; v++) sum += x[v] > BANNED ? exp(x[v]) : 0;
    for (int v = 0; o->renormalize && v < VOCAB; v++) x[v] -= x[v] > BANNED ? log(sum) : 0;
}

static bool all_banned(const double x[VOCAB]) {
    for (int v = 0; v < VOCAB; v++)
        if (x[v] > BANNED) return false;
    return true;
}

/* The log-probabilities of tokens after p, changed by the rules; below -1e9: the token is
 * forbidden. If all are, the end token is allowed. */
static void prices(const beams *b, const path *p, double log_probs[VOCAB]) {
    const wf_decode_options *o = b->o;
    double own[VOCAB];
    int32_t only = -1;
    bool at_limit = p->length == b->limit;
    memcpy(own, log_probs, sizeof own);
    if (at_limit) only = 0;
    if (p->length < o->n_forced) only = o->forced[p->length];
    if (only < 0) rules(b, p, log_probs);
    if (only < 0 && all_banned(log_probs)) {
        memcpy(log_probs, own, sizeof own);
        at_limit = true, only = 0;
    }
    for (int v = 0; only >= 0 && v < VOCAB; v++)
        if (v != only)
            log_probs[v] = -1e10;
        else if (!at_limit || o->at_limit != WF_LIMIT_END)
            log_probs[v] = 0;
}

static int continuations(beams *b, wf_decoder *d, const int32_t *src, int32_t n) {
    int count = 0;
    for (int i = 0; i < b->n_live; i++) {
        double log_probs[VOCAB];
        const path *p = &b->live[i];
        next_log_probs(d, src, n, p, log_probs);
        prices(b, p, log_probs);
        for (int v = 0; v < VOCAB; v++) {
            if (log_probs[v] < -1e9) continue;
            path next = *p;
            next.total += log_probs[v], next.last = v;
            if (v) next.tokens[next.length++] = v;
            b->all[count++] = next;
        }
    }
    qsort(b->all, (size_t)count, sizeof *b->all, by_total);
    return count;
}

static double power(const beams *b, int length) {
    return pow(length, b->o->alpha);
}

/* One step; false: the search is done. */
static bool step(beams *b, wf_decoder *d, const int32_t *src, int32_t n) {
    int beam = b->o->beam, count = continuations(b, d, src, n), length = b->live[0].length;
    bool closes = b->o->at_limit == WF_LIMIT_NO_END && length + 1 == b->limit;
    bool shrinks = b->o->stop == WF_STOP_SHRINK;
    int places = shrinks ? beam - b->n_kept : beam;
    b->n_live = 0;
    for (int rank = 0; rank < count; rank++) {
        path *p = &b->all[rank];
        bool hit = !p->last || closes;
        p->score = p->total / power(b, length + 1);
        if (!hit && (shrinks ? rank < places : b->n_live < beam)) b->live[b->n_live++] = *p;
        if (hit && rank < places) b->kept[b->n_kept++] = *p;
    }
    qsort(b->kept, (size_t)b->n_kept, sizeof *b->kept, by_score);
    if (b->n_kept > beam) b->n_kept = beam;
    if (b->n_live == 0) return false;
    if (b->n_kept < beam) return true;
    if (b->o->stop == WF_STOP_FULL || shrinks || beam == 1) return false;
    int longest = b->limit + (b->o->at_limit != WF_LIMIT_NO_END);
    int at = b->o->stop == WF_STOP_LONGEST ? longest : length + 1;
    return b->live[0].total / power(b, at) > b->kept[beam - 1].score;
}

static const int32_t forced[] = { 3, 1 };

static void assert_paths(const wf_decoded *result, const beams *b) {
    ck_assert_int_eq(result->n, b->n_kept < b->o->nbest ? b->n_kept : b->o->nbest);
    for (int k = 0; k < result->n; k++) {
        const wf_hypothesis *h = &result->best[k];
        ck_assert_int_eq(h->length, b->kept[k].length);
        for (int t = 0; t < h->length; t++) ck_assert_int_eq(h->tokens[t], b->kept[k].tokens[t]);
        ck_assert_double_eq_tol(h->total, b->kept[k].total, 1e-9);
        ck_assert_double_eq_tol(h->score, b->kept[k].score, 1e-9);
    }
}

/* Compares a search with the reference. The source, the beam's width (from `narrowest` on) and the
 * limits depend on the number i. */
static void assert_search(wf_decoder *d, wf_decode_options o, int32_t i, int narrowest) {
    const int32_t src[] = { 1 + i % 4, 1 + i / 4 % 4, 2, 4 }, n = 2 + i % 3;
    wf_decoded result;
    o.beam = narrowest + i % (WIDEST + 1 - narrowest);
    o.nbest = 1 + i / WIDEST % o.beam;
    o.max_len_b = 2 + i % (MOST - 1), o.alpha = i % 2 ? 1 : 0.3;
    beams b = { .o = &o, .start = 0, .limit = (int)o.max_len_b, .n_live = 1 };
    while (step(&b, d, src, n)) {}
    assert_decoder(d, wf_decode(d, 1, (int)n, src, &n, NULL, &o, &result));
    assert_paths(&result, &b);
    wf_decoded_free(&result, 1);
}

/* The rows have every rule of when a search stops and of how outputs at the length limit end, and 0
 * to 2 forced tokens. Each row has four widths of the beam and two alphas. */
TEST_ROWS(others_rules_are_kept, 4 * 3 * 3) {
    wf_model *m = open_spread(VOCAB, WF_F64, 2);
    wf_decoder *d = open_decoder(m, NULL);
    wf_decode_options o = wf_decode_defaults();
    o.stop = (wf_stop)(_i % 4), o.at_limit = (wf_limit_rule)(_i / 4 % 3);
    o.forced = forced, o.n_forced = _i / 12;
    o.penalty = WF_PENALTY_AVERAGE, o.max_len_a = 0;
    for (int32_t i = 0; i < 32; i++) assert_search(d, o, i, 1);
    wf_decoder_free(d), close_model(m);
}

/* The score of an output without tokens is 0, although an average over no token is 0 divided by
 * 0. */
TEST_ROWS(an_empty_output_has_a_score, 3) {
    const int32_t src[] = { 1, 2, 3 }, n = 3;
    wf_model *m = open_spread(VOCAB, WF_F64, 2);
    wf_decoder *d = open_decoder(m, NULL);
    wf_decode_options o = wf_decode_defaults();
    o.penalty = (wf_length_penalty)_i;
    o.alpha = 1;
    o.max_len_a = 0;
    o.max_len_b = 0;
    o.at_limit = WF_LIMIT_NO_END;
    wf_decoded result;
    assert_decoder(d, wf_decode(d, 1, n, src, &n, NULL, &o, &result));
    ck_assert_int_eq(result.best->length, 0);
    ck_assert_double_eq(result.best->total, 0);
    ck_assert_double_eq(result.best->score, 0);
    wf_decoded_free(&result, 1);
    wf_decoder_free(d), close_model(m);
}

static bool count_step(void *listener, const wf_search_step *s) {
    int *steps = listener;
    (void)s;
    ++*steps;
    return true;
}

/* A search for one output gives the best output of a search for the whole beam, in fewer steps. */
TEST_ROWS(a_search_ends_when_its_best_are_final, 4) {
    static sentences b;
    wf_model *m = open_spread(17, WF_F32, 4);
    wf_decoder *d = open_decoder(m, NULL);
    wf_decoded one[16], all[16];
    int steps[2] = { 0, 0 };
    wf_decode_options o = wf_decode_defaults();
    o.stop = (wf_stop)_i;
    o.beam = 4;
    o.max_len_a = 0;
    o.max_len_b = 12;
    o.watched = count_step;
    random_sentences(&b, &wf_transformer_of(m)->config, 16, 9, 1, 5);
    o.nbest = 1;
    o.listener = &steps[0];
    assert_decoder(d, wf_decode(d, 16, 9, b.src, b.src_length, NULL, &o, one));
    o.nbest = 4;
    o.listener = &steps[1];
    assert_decoder(d, wf_decode(d, 16, 9, b.src, b.src_length, NULL, &o, all));
    for (int i = 0; i < 16; i++) {
        const wf_hypothesis *x = one[i].best, *y = all[i].best;
        ck_assert(x->length == y->length && x->total == y->total && x->score == y->score);
        ck_assert(memcmp(x->tokens, y->tokens, (size_t)x->length * sizeof *x->tokens) == 0);
    }
    ck_assert_int_lt(steps[0], steps[1]);
    wf_decoded_free(one, 16);
    wf_decoded_free(all, 16);
    wf_decoder_free(d);
    close_model(m);
}

/* The options of a row. All follow from its number. */
static wf_decode_options ruled(int row) {
    static const int32_t begin_banned[] = { 3, 0 };
    static const double penalties[] = { 1, 1.4, 0.6 };
    wf_decode_options o = wf_decode_defaults();
    o.stop = (wf_stop)(row % 4), o.at_limit = (wf_limit_rule)(row / 3 % 3);
    o.penalty = WF_PENALTY_AVERAGE, o.max_len_a = 0;
    o.no_repeat_ngram = row / 4 % 4, o.repetition_penalty = penalties[row / 2 % 3];
    o.renormalize = row / 8 % 2, o.min_len = row % 5 == 0 ? 2 : 0;
    if (row % 3 == 0) o.begin_banned = begin_banned, o.n_begin_banned = 1 + row % 2;
    if (row % 5 == 1) o.decay = row % 2 ? 1.5 : 0.7, o.decay_start = 1;
    return o;
}

TEST_ROWS(rules_of_repetition_and_of_ends_are_kept, 48) {
    wf_model *m = open_spread(VOCAB, WF_F64, 2);
    wf_decoder *d = open_decoder(m, NULL);
    ck_assert_int_eq(m->start_id, 0);
    for (int32_t i = 0; i < 24; i++) assert_search(d, ruled(_i), i, 2);
    wf_decoder_free(d), close_model(m);
}

TEST_ROWS(rules_hold_in_any_batch, 12) {
    static sentences b;
    wf_model *m = open_spread(17, WF_F32, 4);
    wf_decode_options o = ruled(_i);
    o.max_len_a = 1, o.max_len_b = 5, o.begin_banned = forced, o.n_begin_banned = 2;
    o.beam = _i % 3 == 0 ? 1 : 3, o.nbest = o.beam;
    if (_i % 3 == 1) o.sample = true, o.beam = 1, o.top_k = 5;
    random_sentences(&b, &wf_transformer_of(m)->config, 16, 9, 1, 5);
    assert_decoded_alike(m, &b, &o);
    close_model(m);
}

/* Scores of a greedy search and of samples are the model's log-probabilities, without the rules. */
TEST_ROWS(one_hypothesis_keeps_the_models_log_probs, 2) {
    static sentences b;
    double log_probs[16 * 17];
    wf_decoded results[8];
    wf_model *m = open_spread(17, WF_F32, 4);
    wf_decoder *d = open_decoder(m, NULL);
    wf_decode_options o = wf_decode_defaults();
    o.max_len_a = 0, o.max_len_b = 12, o.no_repeat_ngram = 2, o.repetition_penalty = 1.5;
    o.sample = _i, o.renormalize = true, o.min_len = 3;
    random_sentences(&b, &wf_transformer_of(m)->config, 8, 9, 1, 5);
    assert_decoder(d, wf_decode(d, 8, 9, b.src, b.src_length, NULL, &o, results));
    for (int i = 0; i < 8; i++) {
        const wf_hypothesis *h = results[i].best;
        int32_t n = (int32_t)h->length;
        assert_decoder(d, wf_score(d, 1, 9, b.src + 9 * i, b.src_length + i, n, h->tokens, &n,
                                   log_probs, NULL));
        for (int t = 0; t <= n; t++) ck_assert_double_eq_tol(h->log_probs[t], log_probs[t], 1e-5);
        for (int t = 0; t + 3 < n; t++)
            for (int u = t + 1; u + 1 < n; u++)
                ck_assert(memcmp(h->tokens + t, h->tokens + u, 2 * sizeof *h->tokens) != 0);
    }
    wf_decoded_free(results, 8);
    wf_decoder_free(d), close_model(m);
}

/* Outputs under these rules do not depend on the batch, although sentences end at different steps
 * and then leave it. */
TEST_ROWS(others_rules_hold_in_any_batch, 12) {
    static sentences b;
    wf_model *m = open_spread(17, WF_F32, 4);
    wf_decode_options o = wf_decode_defaults();
    o.beam = 3, o.nbest = 2, o.penalty = WF_PENALTY_AVERAGE, o.alpha = 1;
    o.stop = (wf_stop)(_i % 4), o.at_limit = (wf_limit_rule)(_i / 4);
    o.max_len_a = 1, o.max_len_b = 2, o.forced = forced, o.n_forced = 1;
    random_sentences(&b, &wf_transformer_of(m)->config, 16, 9, 1, 5);
    assert_decoded_alike(m, &b, &o);
    close_model(m);
}

TEST(draws_and_greedy_tokens_begin_as_is_forced) {
    const int32_t src[] = { 1, 2, 3 }, n = 3;
    wf_model *m = open_spread(VOCAB, WF_F32, 2);
    wf_decoder *d = open_decoder(m, NULL);
    wf_decode_options o = sample_options(5, 0, 1, 1);
    o.forced = forced, o.n_forced = 2, o.max_len_a = 0, o.max_len_b = 4;
    wf_decoded result;
    assert_decoder(d, wf_decode(d, 1, 3, src, &n, NULL, &o, &result));
    ck_assert_int_eq(result.n, 5);
    for (int k = 0; k < result.n; k++) {
        ck_assert_int_ge(result.best[k].length, 2);
        for (int t = 0; t < 2; t++) {
            ck_assert_int_eq(result.best[k].tokens[t], forced[t]);
            ck_assert_double_eq(result.best[k].log_probs[t], 0);
        }
    }
    wf_decoded_free(&result, 1);
    wf_decoder_free(d), close_model(m);
}

/* A limit of 0 tokens, as max_length 2 of transformers: the start token and a forced end token. */
TEST_ROWS(no_tokens_may_be_asked_for, 2) {
    const int32_t src[] = { 1, 2, 3 }, n = 3;
    wf_model *m = open_spread(VOCAB, WF_F32, 2);
    wf_decoder *d = open_decoder(m, NULL);
    wf_decode_options o = wf_decode_defaults();
    wf_decoded result;
    o.beam = _i ? 3 : 1, o.max_len_a = 0, o.max_len_b = 0, o.at_limit = WF_LIMIT_FREE_END;
    assert_decoder(d, wf_decode(d, 1, 3, src, &n, NULL, &o, &result));
    ck_assert_int_eq(result.n, 1);
    ck_assert_int_eq(result.best[0].length, 0);
    ck_assert_double_eq(result.best[0].total, 0);
    wf_decoded_free(&result, 1);
    wf_decoder_free(d), close_model(m);
}

/* ---- in a file ------------------------------------------------------------------------------- */

static wf_file *file_with(const wf_meta *meta, int n) {
    char message[WF_MESSAGE], folder[] = "/tmp/weft-search-XXXXXX", name[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(name, sizeof name, "%s/a.safetensors", folder);
    ck_assert_msg(wf_file_save(name, NULL, 0, meta, n, message), "%s", message);
    wf_file *f = wf_file_open(name);
    unlink(name), rmdir(folder);
    return f;
}

TEST(settings_come_back_from_a_file) {
    wf_generation_text text;
    wf_meta pairs[WF_GENERATION_META];
    char message[WF_MESSAGE] = "";
    wf_generation g = { .options = wf_decode_defaults(), .banned = { 65000, 3 }, .n_banned = 2 };
    g.options.beam = 6, g.options.penalty = WF_PENALTY_AVERAGE, g.options.alpha = 0.1;
    g.options.stop = WF_STOP_PRESENT, g.options.at_limit = WF_LIMIT_FREE_END;
    g.options.max_len_a = 0, g.options.max_len_b = 510, g.options.min_len = 2;
    g.forced[0] = 128022, g.n_forced = 1;
    g.begin_banned[0] = 0, g.n_begin_banned = 1;
    g.options.no_repeat_ngram = 3, g.options.repetition_penalty = 1.2, g.options.decay = 1.1;
    g.options.decay_start = 7, g.options.renormalize = g.options.sample = true;
    g.options.top_k = 40, g.options.top_p = 0.9, g.options.temperature = 0.7;
    snprintf(g.not_done, sizeof g.not_done, "num_beam_groups=2; penalty_alpha=0.6");
    wf_file *f = file_with(pairs, wf_generation_to_meta(&g, &text, pairs));
    ck_assert(wf_generation_in_file(f));
    wf_generation back = { .options = wf_decode_defaults() };
    ck_assert_msg(wf_generation_from_meta(f, NULL, &back, message), "%s", message);
    const wf_decode_options o = wf_generation_options(&back);
    ck_assert(o.beam == 6 && o.penalty == WF_PENALTY_AVERAGE && o.stop == WF_STOP_PRESENT);
    ck_assert(o.at_limit == WF_LIMIT_FREE_END && o.min_len == 2 && o.max_len_a == 0);
    ck_assert(o.max_len_b == 510 && o.alpha == 0.1 && o.n_banned == 2 && o.n_forced == 1);
    ck_assert(o.banned[0] == 65000 && o.banned[1] == 3 && o.forced[0] == 128022);
    ck_assert(o.n_begin_banned == 1 && o.begin_banned[0] == 0 && o.no_repeat_ngram == 3);
    ck_assert(o.repetition_penalty == 1.2 && o.decay == 1.1 && o.decay_start == 7);
    ck_assert(o.renormalize && o.sample && o.top_k == 40 && o.top_p == 0.9);
    ck_assert(o.temperature == 0.7);
    ck_assert_str_eq(back.not_done, g.not_done);
    wf_file_free(f);
}

/* The rule "sure" of older files is read as "full": a search ends when `beam` outputs have ended,
 * or earlier if the best are final. */
TEST(a_rule_of_older_files_is_read) {
    char message[WF_MESSAGE] = "";
    wf_generation g = { .options = wf_decode_defaults() };
    g.options.stop = WF_STOP_LONGEST;
    wf_file *f = file_with(&(wf_meta){ "generate.stop", "sure" }, 1);
    ck_assert_msg(wf_generation_from_meta(f, NULL, &g, message), "%s", message);
    ck_assert_int_eq(g.options.stop, WF_STOP_FULL);
    wf_file_free(f);
}

static const wf_meta wrong[] = {
    { "generate.beam", "four" },         { "generate.beam", "99999999999" },
    { "generate.stop", "soon" },         { "generate.stop", "-1" },
    { "generate.length-penalty", "-1" }, { "generate.banned", "3,4" },
    { "generate.banned", "3 " },         { "generate.banned", "-3" },
    { "generate.forced", "4294967296" }, { "generate.forced", "1 1 1 1 1 1 1 1 1" },
    { "generate.at-limit", "free end" }, { "generate.beam", "0" },
    { "generate.beam", "2000000" },      { "generate.length-penalty", "11" },
    { "generate.min-len", "-1" },        { "generate.max-len-b", "1e300" },
    { "generate.banned", "99999" },      { "generate.forced", "0" },
    { "generate.begin-banned", "99" },   { "generate.no-repeat-ngram", "-1" },
    { "generate.top-p", "1.5" },         { "generate.repetition-penalty", "0" },
    { "generate.temperature", "0" },     { "generate.decay", "1e9" },
    { "generate.sample", "yes" },        { "generate.decay-start", "-2" },
};

TEST_ROWS(wrong_settings_are_refused_by_name, COUNT_OF(wrong)) {
    char message[WF_MESSAGE] = "";
    wf_generation g = { .options = wf_decode_defaults() };
    wf_model *m = open_spread(17, WF_F32, 1);
    wf_file *f = file_with(&wrong[_i], 1);
    ck_assert(wf_generation_in_file(f));
    ck_assert(!wf_generation_from_meta(f, m, &g, message));
    assert_contains(message, wrong[_i].key);
    wf_file_free(f);
    f = file_with(NULL, 0);
    ck_assert(!wf_generation_in_file(f) && wf_generation_from_meta(f, m, &g, message));
    wf_file_free(f), close_model(m);
}
