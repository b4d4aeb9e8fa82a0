/* tests/models/test_language_model.c - the decoder-only model: cached steps against the whole
 * sequence, scores against outputs, results that may not depend on batches and threads, its file,
 * and a resumed training.
 *
 * test_tools.c tests with the programs that it learns. */
#define _XOPEN_SOURCE 700 /* mkstemp */
#include <unistd.h>

#include "models/language_model.h"
#include "models/model_internal.h"
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(language_model)

static wf_language_model_config small_language(int64_t vocab) {
    wf_language_model_config c = wf_language_model_defaults(WF_GPT2);
    c.vocab = vocab, c.max_len = 32;
    c.d_model = 16, c.num_heads = 2, c.dim_feedforward = 24, c.layers = 2;
    c.tied = false;
    return c;
}

static wf_model *open_language(const wf_language_model_config *c, const wf_training_config *t,
                               wf_dtype real) {
    char message[WF_MESSAGE] = "";
    wf_model *m = wf_language_model_new(c, t, real, 3, message);
    ck_assert_msg(m != NULL, "%s", message);
    ck_assert_msg(wf_ok(m->graph), "%s", wf_error(m->graph));
    return m;
}

/* A small Llama, with four heads that share two heads of keys and values. */
static wf_language_model_config small_llama(int64_t vocab) {
    wf_language_model_config c = small_language(vocab), l = wf_language_model_defaults(WF_LLAMA);
    c.num_heads = 4, c.num_kv_heads = 2, c.gated = l.gated, c.activation = l.activation;
    c.positions = l.positions, c.norm = l.norm, c.bias = l.bias;
    return c;
}

/* With opinions. */
static wf_model *open_spread_of(const wf_language_model_config *c, wf_dtype real) {
    wf_model *m = open_language(c, NULL, real);
    wf_tensor *weight = wf_find(m->graph, "output.weight");
    double *data = leaf_values(weight);
    for (int64_t i = 0; i < wf_count(weight); i++) data[i] *= 4;
    ck_assert(write_doubles(weight, data));
    free(data);
    return m;
}

static wf_model *open_spread_first(int vocab, wf_dtype real, bool start_first) {
    wf_language_model_config c = small_language(vocab);
    c.start_first = start_first;
    return open_spread_of(&c, real);
}

static wf_model *open_spread_language(int vocab, wf_dtype real) {
    return open_spread_first(vocab, real, false);
}

static void language_sentences(sentences *b, int vocab, int B, int S, int T) {
    wf_transformer_config c = small_config();
    c.src_vocab = c.tgt_vocab = vocab;
    random_sentences(b, &c, B, S, T, 5);
}

/* ---- cached steps are the whole -------------------------------------------------------------- */

enum { ROWS = 3, LONG = 9 };

/* Runs the tokens [from, from + n) of every row through a plan with a state. */
static void run_some(wf_plan *p, wf_state *s, const wf_model *m, const int32_t *ids, int from,
                     int n) {
    int32_t some[ROWS * LONG];
    for (int i = 0; i < ROWS; i++)
        memcpy(some + i * n, ids + i * LONG + from, (size_t)n * sizeof *some);
    assert_plan(p, wf_bind(p, "B", ROWS) && wf_bind(p, "T", n) && wf_bind(p, "P", from));
    assert_plan(p, wf_feed(p, m->tgt, some, wf_bound_bytes(p, m->tgt)) && wf_run_state(p, s));
}

TEST_ROWS(cached_logits_are_those_of_the_whole, 12) {
    static const wf_positions kinds[] = { WF_POSITIONS_NONE, WF_POSITIONS_SINUSOIDAL,
                                          WF_POSITIONS_LEARNED };
    static const int prompts[] = { 1, 4, 8 };
    static sentences b;
    wf_language_model_config c = _i < 6 ? small_language(17) : small_llama(17);
    if (_i != 6) c.positions = kinds[_i % 3];
    c.norm_first = c.final_norm = _i % 6 >= 3 || _i == 6;
    wf_model *m = open_language(&c, NULL, WF_F32);
    wf_plan *whole = wf_model_plan(m, WF_PLAN_SCORE, NULL), *prompt = wf_model_prompt_plan(m, NULL),
            *step = wf_model_step_plan(m, NULL);
    language_sentences(&b, 17, ROWS, 1, LONG);
    assert_plan(whole, wf_bind(whole, "B", ROWS) && wf_bind(whole, "T", LONG));
    assert_plan(whole, wf_feed(whole, m->tgt, b.tgt, wf_bound_bytes(whole, m->tgt)) &&
                           wf_feed(whole, m->labels, b.labels, wf_bound_bytes(whole, m->labels)));
    assert_plan(whole, wf_run(whole));
    values all = fetched(whole, m->logits);
    for (int k = 0; k < COUNT_OF(prompts); k++) {
        assert_plan(step, wf_bind(step, "B", ROWS) && wf_bind(step, "T", 1));
        wf_state *s = wf_state_new(step);
        run_some(prompt, s, m, b.tgt, 0, prompts[k]);
        for (int t = prompts[k]; t < LONG; t++) {
            run_some(step, s, m, b.tgt, t, 1);
            values one = fetched(step, m->logits); /* [ROWS,1,V] */
            for (int i = 0; i < ROWS; i++)
                ck_assert(memcmp(one.data + i * 17, all.data + (i * LONG + t) * 17,
                                 17 * sizeof *one.data) == 0);
            free_values(&one, 1);
        }
        wf_state_free(s);
    }
    free_values(&all, 1);
    wf_plan_free(whole), wf_plan_free(prompt), wf_plan_free(step), close_model(m);
}

/* ---- scores ---------------------------------------------------------------------------------- */

/* Compares the log-probabilities of an output with those of one run over the whole sequence:
 * source, start token, output; with start_first: start token, source, output. */
static void assert_by_hand(wf_plan *p, const wf_model *m, const sentences *b, int row,
                           const wf_hypothesis *h) {
    int32_t ids[MAX_WORDS], labels[MAX_WORDS];
    int64_t n = b->src_length[row], T = n + 1 + h->length;
    memcpy(ids, b->src + row * b->S, (size_t)n * sizeof *ids);
    ids[n] = m->start_id;
    if (m->start_first) {
        memmove(ids + 1, ids, (size_t)n * sizeof *ids);
        ids[0] = m->start_id;
    }
    memcpy(ids + n + 1, h->tokens, (size_t)h->length * sizeof *ids);
    for (int64_t t = 0; t < T; t++) labels[t] = t + 1 < T ? ids[t + 1] : m->end_id;
    assert_plan(p, wf_bind(p, "B", 1) && wf_bind(p, "T", T) &&
                       wf_feed(p, m->tgt, ids, wf_bound_bytes(p, m->tgt)) &&
                       wf_feed(p, m->labels, labels, wf_bound_bytes(p, m->labels)) && wf_run(p));
    values v = fetched(p, m->token_log_probs);
    for (int64_t t = 0; t <= h->length; t++)
        ck_assert_double_eq_tol(v.data[n + t], h->log_probs[t], 1e-5);
    free_values(&v, 1);
}

static void assert_forced(wf_decoder *d, const sentences *b, const wf_decoded *results) {
    enum { MOST = 20 };
    double log_probs[MAX_SENTENCES * (MOST + 1)], totals[MAX_SENTENCES];
    int32_t tgt[MAX_SENTENCES * MOST] = { 0 }, length[MAX_SENTENCES];
    for (int i = 0; i < b->B; i++) {
        const wf_hypothesis *h = &results[i].best[0];
        ck_assert_int_le(h->length, MOST);
        length[i] = (int32_t)h->length;
        memcpy(tgt + i * MOST, h->tokens, (size_t)h->length * sizeof *tgt);
    }
    assert_decoder(
        d, wf_score(d, b->B, b->S, b->src, b->src_length, MOST, tgt, length, log_probs, totals));
    for (int i = 0; i < b->B; i++) {
        const wf_hypothesis *h = &results[i].best[0];
        ck_assert_double_eq_tol(h->total, totals[i], 1e-4);
        for (int t = 0; t <= MOST; t++)
            ck_assert_double_eq_tol(t <= h->length ? h->log_probs[t] : 0,
                                    log_probs[i * (MOST + 1) + t], 1e-5);
    }
}

static wf_decode_options setting(int i) {
    wf_decode_options o = i < 2 ? wf_decode_defaults() : sample_options(3, 0, 0.9, 1.2);
    if (i == 1) o.beam = 4, o.nbest = 3, o.penalty = WF_PENALTY_GNMT, o.alpha = 0.6;
    o.max_len_a = 1.5, o.max_len_b = 2, o.min_len = 2;
    return o;
}

TEST_ROWS(outputs_have_the_scores_that_forcing_gives, 6) {
    static sentences b;
    wf_decoded results[8];
    wf_model *m = open_spread_first(17, WF_F32, _i >= 3);
    wf_decoder *d = open_decoder(m, NULL);
    wf_plan *p = wf_model_plan(m, WF_PLAN_SCORE, NULL);
    language_sentences(&b, 17, 8, 9, 1);
    b.src_length[3] = 0; /* from nothing */
    int nodes = wf_node_count(m->graph);
    wf_decode_options o = setting(_i % 3);
    assert_decoder(d, wf_decode(d, 8, 9, b.src, b.src_length, NULL, &o, results));
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < results[i].n; k++) {
            const wf_hypothesis *h = &results[i].best[k];
            ck_assert(h->length >= 2 && (double)h->length <= 1.5 * (double)b.src_length[i] + 2);
            assert_by_hand(p, m, &b, i, h);
        }
    assert_forced(d, &b, results);
    ck_assert_int_eq(wf_node_count(m->graph), nodes);
    wf_decoded_free(results, 8), wf_plan_free(p), wf_decoder_free(d), close_model(m);
}

/* ---- what changes nothing -------------------------------------------------------------------- */

enum { SENTENCES = 24, SOURCE = 11 };

/* A prompt has the same continuation alone and in a batch with prompts of other lengths. */
TEST_ROWS(batches_and_threads_change_nothing, 18) {
    static sentences b;
    wf_dtype real = _i % 2 ? WF_F64 : WF_F32;
    int vocab = _i % 2 ? 900 : 17; /* 900: rows shared by threads */
    wf_language_model_config c = _i < 12 ? small_language(vocab) : small_llama(vocab);
    c.start_first = _i >= 6;
    wf_model *m = open_spread_of(&c, real);
    language_sentences(&b, vocab, SENTENCES, SOURCE, 1);
    b.src_length[5] = b.src_length[20] = 0;
    wf_decode_options o = setting(_i / 2 % 3);
    assert_decoded_alike(m, &b, &o);
    close_model(m);
}

/* ---- a listener ------------------------------------------------------------------------------ */

typedef struct heard {
    int32_t tokens[MAX_SENTENCES][64];
    int n[MAX_SENTENCES], most; /* most: the search is stopped after that many tokens */
} heard;

static bool hear(void *listener, int sentence, int32_t token) {
    heard *h = listener;
    h->tokens[sentence][h->n[sentence]++] = token;
    return --h->most != 0;
}

/* The listener gets the tokens of the final outputs one by one, and can stop the search. */
TEST_ROWS(tokens_are_heard_as_they_are_chosen, 2) {
    static sentences b;
    static heard h;
    wf_decoded results[8];
    wf_model *m = open_spread_first(17, WF_F32, true);
    wf_decoder *d = open_decoder(m, NULL);
    language_sentences(&b, 17, 8, 9, 1);
    wf_decode_options o = setting(0);
    o.sample = _i, o.heard = hear, o.listener = &h, h = (heard){ 0 };
    assert_decoder(d, wf_decode(d, 8, 9, b.src, b.src_length, NULL, &o, results));
    for (int i = 0; i < 8; i++) {
        ck_assert_int_eq(results[i].best->length, h.n[i]);
        ck_assert_int_eq(
            memcmp(results[i].best->tokens, h.tokens[i], (size_t)h.n[i] * sizeof *h.tokens[i]), 0);
    }
    wf_decoded_free(results, 8);
    h = (heard){ .most = 5 };
    ck_assert(!wf_decode(d, 8, 9, b.src, b.src_length, NULL, &o, results));
    assert_contains(wf_decoder_error(d), "stopped by the program");
    wf_decoder_free(d), close_model(m);
}

/* A listener that makes calls which are not allowed during a search. Each fails with a message, and
 * the search continues. */
typedef struct meddler {
    wf_decoder *decoder;
    int calls;
} meddler;

static bool meddle(void *listener, int sentence, int32_t token) {
    static const int32_t src[40] = { 1, 2, 3 }, n = 30;
    meddler *m = listener;
    int32_t out[40], length;
    wf_decode_options o = wf_decode_defaults();
    wf_decoded result = { 7, NULL };
    const char *refused = "the decoder is at work";
    (void)sentence, (void)token;
    m->calls++;
    ck_assert(!wf_decode(m->decoder, 1, 30, src, &n, NULL, &o, &result));
    ck_assert(result.n == 0 && !result.best);
    ck_assert(!wf_decode_greedy(m->decoder, 1, 30, src, &n, 5, out, &length));
    assert_contains(wf_decoder_error(m->decoder), refused);
    ck_assert(!wf_score(m->decoder, 1, 30, src, &n, 0, NULL, &length, NULL, NULL));
    assert_contains(wf_decoder_error(m->decoder), refused);
    ck_assert_uint_eq(wf_decoder_memory(m->decoder, 1, 3, 3), 0);
    assert_contains(wf_decoder_error(m->decoder), refused);
    return true;
}

TEST(a_listener_cannot_use_its_decoder) {
    static sentences b;
    wf_decoded quiet[8], results[8];
    wf_model *m = open_spread_first(17, WF_F32, true);
    wf_decoder *d = open_decoder(m, NULL);
    meddler who = { d, 0 };
    language_sentences(&b, 17, 8, 9, 1);
    wf_decode_options o = setting(0);
    assert_decoder(d, wf_decode(d, 8, 9, b.src, b.src_length, NULL, &o, quiet));
    o.heard = meddle, o.listener = &who;
    assert_decoder(d, wf_decode(d, 8, 9, b.src, b.src_length, NULL, &o, results));
    ck_assert_int_gt(who.calls, 0);
    for (int i = 0; i < 8; i++) {
        size_t n = (size_t)quiet[i].best->length;
        ck_assert_uint_eq((size_t)results[i].best->length, n);
        ck_assert(memcmp(results[i].best->tokens, quiet[i].best->tokens, n * sizeof(int32_t)) == 0);
    }
    wf_decoded_free(quiet, 8), wf_decoded_free(results, 8);
    ck_assert_uint_gt(wf_decoder_memory(d, 1, 3, 3), 0);
    wf_decoder_free(d), close_model(m);
}

/* ---- limits ---------------------------------------------------------------------------------- */

TEST(a_source_and_its_output_share_the_positions) {
    static const int32_t src[40] = { 1, 2, 3 };
    const int32_t none = 0, full = 31, near = 29, over = 32, one = 1;
    int32_t out[64], n;
    wf_model *m = open_spread_language(17, WF_F32); /* 32 positions */
    wf_decoder *d = open_decoder(m, NULL);
    ck_assert(!m->src && wf_model_begin(m, 7) == 7 && wf_model_room(m, 7) == 24);
    assert_decoder(d, wf_decode_greedy(d, 1, 0, NULL, &none, 64, out, &n)); /* from nothing */
    ck_assert_int_le(n, 31);
    assert_decoder(d, wf_decode_greedy(d, 1, 29, src, &near, 64, out, &n));
    ck_assert_int_le(n, 2);
    assert_decoder(d, wf_decode_greedy(d, 1, 31, src, &full, 64, out, &n));
    ck_assert_int_eq(n, 0);
    ck_assert(!wf_decode_greedy(d, 1, 32, src, &over, 64, out, &n));
    assert_contains(wf_decoder_error(d), "sentence 0 has 32 tokens");
    assert_contains(wf_decoder_error(d), "31");
    ck_assert(!wf_score(d, 1, 31, src, &full, 1, src, &one, NULL, NULL));
    assert_contains(wf_decoder_error(d), "sentence 0 and its output have 32 tokens, more than 31");
    m->start_first = m->start_if_empty = true; /* no start token, so a row may have 32 tokens */
    ck_assert(!wf_score(d, 1, 32, src, &over, 1, src, &one, NULL, NULL));
    assert_contains(wf_decoder_error(d), "sentence 0 and its output have 33 tokens, more than 32");
    m->start_first = m->start_if_empty = false;
    ck_assert(!wf_decode_greedy(d, 1, 3, NULL, &one, 64, out, &n));
    ck_assert_uint_gt(wf_decoder_memory(d, 4, 20, 5), wf_decoder_memory(d, 1, 20, 5));
    wf_decoder_free(d);
    wf_plan *p = wf_model_encode_plan(m, NULL);
    ck_assert(!wf_plan_ok(p)); /* there is no source apart */
    wf_plan_free(p), close_model(m);
}

static void assert_refused(wf_language_model_config c, const char *says) {
    char message[WF_MESSAGE] = "";
    ck_assert(!wf_language_model_new(&c, NULL, WF_F32, 1, message));
    assert_contains(message, says);
}

TEST(bad_configurations_are_refused) {
    wf_language_model_config c = small_language(17), bad;
    char message[WF_MESSAGE];
    bad = c, bad.vocab = 0, assert_refused(bad, "the vocabulary is 0");
    bad = c, bad.layers = -1, assert_refused(bad, "layers is -1");
    bad = c, bad.num_heads = 3, assert_refused(bad, "not divisible by 3 heads");
    bad = c, bad.end_id = 17, assert_refused(bad, "end id is 17");
    bad = c, bad.layer_norm_eps = NAN, assert_refused(bad, "eps is nan");
    ck_assert(!wf_language_model_check(NULL, message) && !wf_language_model_of(NULL));
    ck_assert(!wf_language_model_new(NULL, NULL, WF_F32, 1, message));
}

/* ---- its file -------------------------------------------------------------------------------- */

static char path[] = "/tmp/weft-language-XXXXXX";

static void make_file(void) {
    int fd = mkstemp(path);
    ck_assert(fd >= 0 && close(fd) == 0);
}

static void remove_file(void) {
    unlink(path);
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
}

static void save(const wf_model *m, wf_trainer *t) {
    char message[WF_MESSAGE] = "";
    ck_assert_msg(wf_model_save(m, path, t, NULL, 0, message), "%s", message);
}

static wf_model *load(const wf_training_config *t, wf_dtype real) {
    char message[WF_MESSAGE] = "";
    wf_file *f = wf_file_open(path);
    wf_model *m = wf_model_load(f, t, real, 3, message);
    ck_assert_msg(m != NULL, "%s", message);
    wf_file_free(f);
    return m;
}

static void assert_equal_leaf(const wf_tensor *a, const wf_tensor *b) {
    double *x = leaf_values(a), *y = leaf_values(b);
    ck_assert_str_eq(a->name, b->name);
    ck_assert_msg(memcmp(x, y, (size_t)wf_count(a) * sizeof *x) == 0, "%s differs", a->name);
    free(x), free(y);
}

static void assert_equal(const wf_model *a, const wf_model *b) {
    ck_assert_int_eq(wf_node_count(a->graph), wf_node_count(b->graph));
    for (int id = 0; id < wf_node_count(a->graph); id++)
        if (wf_node(a->graph, id)->kind == WF_PARAM)
            assert_equal_leaf(wf_node(a->graph, id), wf_node(b->graph, id));
}

static void assert_equal_moments(const wf_optimizer *a, const wf_optimizer *b) {
    ck_assert(a->n > 0 && a->n == b->n && a->n_moments == 2 && b->n_moments == 2);
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < 2; k++) assert_equal_leaf(a->moments[i][k], b->moments[i][k]);
}

TEST_ROWS(what_goes_in_comes_out, 4) {
    wf_language_model_config c = small_language(19);
    char message[WF_MESSAGE] = "", text[WF_MESSAGE];
    c.tied = _i % 2, c.norm_first = c.final_norm = _i / 2, c.bias = _i % 2, c.output_bias = _i / 2;
    c.scale_embedding = true, c.activation = WF_SILU, c.positions = WF_POSITIONS_SINUSOIDAL;
    c.norm = _i % 2 ? WF_RMS_NORM : WF_LAYER_NORM, c.gated = c.start_first = _i % 2;
    c.num_kv_heads = _i / 2;
    c.layer_norm_eps = 1.1e-6, c.start_id = 1, c.end_id = 2, c.max_len = 21;
    wf_model *m = open_language(&c, NULL, WF_F64);
    make_file(), save(m, NULL);
    wf_model *n = load(NULL, WF_F64);
    const wf_language_model_config *d = &wf_language_model_of(n)->config;
    ck_assert(d->vocab == c.vocab && d->max_len == c.max_len && d->d_model == c.d_model &&
              d->num_heads == c.num_heads && d->dim_feedforward == c.dim_feedforward &&
              d->layers == c.layers && d->activation == c.activation &&
              d->positions == c.positions && d->tied == c.tied && d->norm_first == c.norm_first);
    ck_assert(d->final_norm == c.final_norm && d->scale_embedding == c.scale_embedding &&
              d->bias == c.bias && d->output_bias == c.output_bias &&
              d->layer_norm_eps == c.layer_norm_eps && d->start_id == 1 && d->end_id == 2);
    ck_assert(d->norm == c.norm && d->gated == c.gated && d->num_kv_heads == c.num_kv_heads &&
              d->start_first == c.start_first);
    assert_equal(m, n);
    ck_assert_str_eq(wf_model_kind_name(n->kind), "language_model");
    ck_assert(!wf_transformer_of(n));
    wf_file *f = wf_file_open(path);
    ck_assert(wf_model_describe(f, text, message));
    assert_contains(text, _i / 2 ? "a language model of width 16, 2 heads (1 of keys), 2 layers"
                                 : "a language model of width 16, 2 heads, 2 layers");
    assert_contains(text, _i % 2 ? "gated silu, p" : " silu, p");
    ck_assert(!wf_transformer_save_state_dict(n, path, false, message));
    assert_contains(message, "torch.nn.Transformer");
    wf_file_free(f), close_model(n), close_model(m), remove_file();
}

TEST(a_model_that_nobody_knows_is_refused) {
    char message[WF_MESSAGE] = "";
    float value = 0;
    const wf_entry entry = { .name = "x",
                             .dtype = "F32",
                             .ndim = 1,
                             .shape = { 1 },
                             .data = &value,
                             .bytes = sizeof value };
    const wf_meta meta = { "weft.model", "oracle" };
    make_file();
    ck_assert(wf_file_save(path, &entry, 1, &meta, 1, message));
    wf_file *f = wf_file_open(path);
    ck_assert(!wf_model_load(f, NULL, WF_F32, 1, message));
    assert_contains(message, "'weft.model' is 'oracle'");
    wf_file_free(f), remove_file();
}

/* ---- training -------------------------------------------------------------------------------- */

static double train(wf_trainer *t, const wf_model *m, int step) {
    static sentences b;
    wf_plan *p = wf_trainer_plan(t);
    copy_sentences(&b, 16, 2, 6, 17, true, (uint64_t)step);
    const wf_batch batch = { b.B, b.S, b.T, b.src, b.src_length, b.tgt, b.labels };
    assert_plan(p, wf_model_feed(m, p, &batch));
    ck_assert_int_eq(wf_trainer_steps(t), step - 1);
    assert_trainer(t, wf_trainer_begin(t, 1, NULL, NULL) && wf_trainer_add(t, 0) &&
                          wf_trainer_update(t, NULL));
    values loss = fetched(p, m->loss.loss), count = fetched(p, m->loss.count);
    double tokens = 0;
    for (int i = 0; i < b.B; i++) tokens += b.src_length[i] + 1; /* of the targets alone */
    ck_assert_double_eq(count.data[0], tokens);
    double mean = loss.data[0] / tokens;
    free_values(&loss, 1), free_values(&count, 1);
    return mean;
}

/* A training of 40 steps has the same bits with a save and a load after step 3 as without; and the
 * loss falls. */
TEST_ROWS(a_resumed_training_has_the_same_bits, 2) {
    wf_training_config t = with_dropout(0.1);
    wf_language_model_config c = _i ? small_llama(17) : small_language(17);
    c.tied = true;
    wf_model *m = open_language(&c, &t, WF_F32);
    wf_trainer *p = open_trainer(m, NULL, 3e-3, NULL);
    double first = train(p, m, 1), last = 0;
    for (int step = 2; step <= 3; step++) train(p, m, step);
    make_file(), save(m, p);
    wf_model *n = load(&t, WF_F32);
    wf_trainer *q = open_trainer(n, NULL, 3e-3, NULL);
    wf_file *f = wf_file_open(path);
    assert_trainer(q, wf_trainer_resume(q, f, 3));
    wf_file_free(f);
    for (int step = 4; step <= 40; step++) {
        last = train(p, m, step);
        double again = train(q, n, step);
        ck_assert(memcmp(&last, &again, sizeof last) == 0);
    }
    assert_equal(m, n), assert_equal_moments(wf_trainer_optimizer(p), wf_trainer_optimizer(q));
    ck_assert(last < 0.9 * first);
    wf_trainer_free(p), wf_trainer_free(q), close_model(m), close_model(n), remove_file();
}
