/* tests/models/test_watch.c - a search with a callback for each step (watched): its results are
 * those of a search without, and can be computed from the steps, to the bit. */
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(watch)

enum { VOCAB = 17, SOURCE = 9, SENTENCES = 6, MOST_LIVE = 4, LONGEST = 40, MOST_ENDED = 64 };

typedef struct path {
    int32_t tokens[LONGEST];
    int64_t length;
    double total, score;
    bool cut;
} path;

/* The state of one sentence's search, as computed from the reported steps alone. */
typedef struct followed {
    path live[MOST_LIVE], ended[MOST_ENDED];
    int n_live, n_ended, n_steps;
} followed;

typedef struct watcher {
    const wf_decode_options *o;
    int width, stop_after; /* steps */
    followed sentences[SENTENCES];
} watcher;

static double log_sum_exp(const double *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += exp(x[i]);
    return log(sum);
}

/* Checks the log-probabilities of one continuation, with and without the rules. */
static void check_continuation(const watcher *w, const wf_search_step *s,
                               const wf_continuation *c) {
    const double *logits = s->logits[c->parent], *ranked = s->ranked[c->parent];
    ck_assert(c->token >= 0 && c->token < VOCAB);
    ck_assert(ranked[c->token] > -INFINITY);
    for (int i = 0; i < w->o->n_banned; i++) ck_assert(ranked[w->o->banned[i]] == -INFINITY);
    bool free_of_cost = c->log_prob == 0;
    if (ranked[c->token] == logits[c->token] && !w->o->renormalize && !free_of_cost)
        ck_assert_double_eq_tol(c->log_prob, logits[c->token] - s->normaliser[c->parent], 1e-12);
    if (s->length < w->o->n_forced) ck_assert_int_eq(c->token, w->o->forced[s->length]);
    if (s->length < w->o->min_len && w->o->max_len_b > (double)w->o->min_len) {
        ck_assert(ranked[0] == -INFINITY);
        ck_assert(c->token != 0);
    }
}

static path extended(const followed *f, const wf_search_step *s, const wf_continuation *c) {
    path p = f->live[c->parent];
    ck_assert_int_eq(p.length, s->length);
    ck_assert_double_eq(p.total + c->log_prob, c->total);
    p.total = c->total;
    if (c->fate == WF_FATE_ENDED) {
        p.score = c->score;
        p.cut = c->cut;
    } else
        p.tokens[p.length++] = c->token;
    return p;
}

static bool follow(void *listener, const wf_search_step *s) {
    watcher *w = listener;
    followed *f = &w->sentences[s->sentence];
    path next[MOST_LIVE];
    int n = 0;
    ck_assert_int_eq(s->n_live, f->n_live);
    ck_assert_int_eq(s->length, f->n_steps++);
    ck_assert_int_le(s->n, 3 * w->width);
    for (int i = 0; i < s->n_live; i++)
        ck_assert_double_eq_tol(s->normaliser[i], log_sum_exp(s->logits[i], VOCAB), 1e-9);
    for (int i = 0; i < s->n; i++) {
        const wf_continuation *c = &s->continuations[i];
        check_continuation(w, s, c);
        if (i > 0 && !w->o->sample) ck_assert(c->total <= c[-1].total);
        path p = extended(f, s, c);
        if (c->fate == WF_FATE_LIVE)
            next[n++] = p;
        else if (c->fate == WF_FATE_ENDED)
            f->ended[f->n_ended++] = p;
    }
    memcpy(f->live, next, sizeof next);
    f->n_live = n;
    return --w->stop_after != 0;
}

/* Asserts that the result is one of the hypotheses that ended in the steps, with the same bits. */
static void assert_ended(const followed *f, const wf_hypothesis *h) {
    bool found = false;
    for (int i = 0; i < f->n_ended && !found; i++) {
        const path *p = &f->ended[i];
        found = p->length == h->length && p->total == h->total && p->score == h->score &&
                p->cut == h->cut &&
                memcmp(p->tokens, h->tokens, (size_t)h->length * sizeof *h->tokens) == 0;
    }
    ck_assert(found);
}

/* Asserts that the results are among the hypotheses that ended in the steps and, unless they were
 * drawn, that these have no better ones. */
static void assert_told(const followed *f, const wf_decode_options *o, const wf_decoded *result) {
    ck_assert_int_eq(f->n_live, 0);
    for (int k = 0; k < result->n; k++) assert_ended(f, &result->best[k]);
    if (o->sample) return;
    int better = 0;
    double worst = result->best[result->n - 1].score;
    for (int i = 0; i < f->n_ended; i++) better += f->ended[i].score > worst;
    ck_assert_int_lt(better, result->n);
}

static void assert_same(const wf_decoded *a, const wf_decoded *b) {
    ck_assert_int_eq(a->n, b->n);
    for (int k = 0; k < a->n; k++) {
        const wf_hypothesis *x = &a->best[k], *y = &b->best[k];
        size_t n = (size_t)x->length;
        ck_assert_int_eq(x->length, y->length);
        ck_assert(memcmp(x->tokens, y->tokens, n * sizeof *x->tokens) == 0);
        ck_assert(memcmp(x->log_probs, y->log_probs, (n + 1) * sizeof *x->log_probs) == 0);
        ck_assert(x->total == y->total && x->score == y->score && x->cut == y->cut);
    }
}

static wf_decode_options setting(int row) {
    static const int32_t banned[] = { 5, 11 }, forced[] = { 3 };
    wf_decode_options o = wf_decode_defaults();
    o.beam = o.nbest = 1 + row % MOST_LIVE;
    o.stop = (wf_stop)(row / 4 % 4);
    o.at_limit = (wf_limit_rule)(row % 3);
    o.penalty = (wf_length_penalty)(row / 2 % 3);
    o.alpha = 0.8;
    o.max_len_a = 1;
    o.max_len_b = 3;
    if (row % 5 == 1) {
        o.banned = banned;
        o.n_banned = 2;
    }
    if (row % 5 == 2) {
        o.forced = forced;
        o.n_forced = 1;
    }
    if (row % 5 == 3) o.min_len = 2;
    if (row % 4 == 2) {
        o.no_repeat_ngram = 2;
        o.repetition_penalty = 1.3;
    }
    o.renormalize = row % 7 == 6;
    if (row % 6 != 5) return o;
    o.sample = true;
    o.beam = 1;
    o.temperature = 1.2;
    return o;
}

static void open_watcher(watcher *w, wf_decode_options *o) {
    *w = (watcher){ .o = o, .width = o->sample ? o->nbest : o->beam };
    for (int i = 0; i < SENTENCES; i++) w->sentences[i].n_live = 1;
    o->watched = follow;
    o->listener = w;
}

/* The rows have beams and draws, every rule of stopping and of length limits, banned tokens and
 * forced beginnings. */
TEST_ROWS(steps_tell_how_the_results_came_about, 60) {
    static sentences b;
    static watcher w;
    wf_decoded quiet[SENTENCES], results[SENTENCES];
    wf_model *m = open_spread(VOCAB, WF_F64, 4);
    wf_decoder *d = open_decoder(m, NULL);
    int nodes = wf_node_count(m->graph);
    wf_decode_options o = setting(_i);
    random_sentences(&b, &wf_transformer_of(m)->config, SENTENCES, SOURCE, 1, 5);
    assert_decoder(d, wf_decode(d, SENTENCES, SOURCE, b.src, b.src_length, NULL, &o, quiet));
    open_watcher(&w, &o);
    assert_decoder(d, wf_decode(d, SENTENCES, SOURCE, b.src, b.src_length, NULL, &o, results));
    for (int i = 0; i < SENTENCES; i++) {
        assert_same(&quiet[i], &results[i]);
        assert_told(&w.sentences[i], &o, &results[i]);
    }
    ck_assert_int_eq(wf_node_count(m->graph), nodes);
    wf_decoded_free(quiet, SENTENCES);
    wf_decoded_free(results, SENTENCES);
    wf_decoder_free(d);
    close_model(m);
}

TEST(a_watcher_stops_the_search) {
    static sentences b;
    static watcher w;
    wf_decoded results[SENTENCES];
    wf_model *m = open_spread(VOCAB, WF_F64, 4);
    wf_decoder *d = open_decoder(m, NULL);
    wf_decode_options o = setting(3);
    random_sentences(&b, &wf_transformer_of(m)->config, SENTENCES, SOURCE, 1, 5);
    open_watcher(&w, &o);
    w.stop_after = 3;
    ck_assert(!wf_decode(d, SENTENCES, SOURCE, b.src, b.src_length, NULL, &o, results));
    assert_contains(wf_decoder_error(d), "stopped by the program that watches");
    open_watcher(&w, &o);
    assert_decoder(d, wf_decode(d, SENTENCES, SOURCE, b.src, b.src_length, NULL, &o, results));
    wf_decoded_free(results, SENTENCES);
    wf_decoder_free(d);
    close_model(m);
}
