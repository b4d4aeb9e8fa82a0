/* tests/models/test_models.c - the Transformer: its sizes, its one graph, the independence of
 * sentences, padding and future tokens, cached decoding against full recomputation, and wrong use.
 *
 * Not here: learning (test_learning.c), PyTorch (test_torch.c), files (test_model_file.c). */
#include <stdio.h>

#include "models/model_internal.h"
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(models)

/* ---- sizes ----------------------------------------------------------------------------------- */

static wf_transformer_config textbook_config(bool norms) {
    wf_transformer_config c = wf_transformer_defaults();
    c.src_vocab = 10000, c.tgt_vocab = 12000;
    c.encoder_norm = c.decoder_norm = norms;
    return c;
}

TEST(parameter_counts) {
    wf_transformer_config course = course_config(), textbook = textbook_config(false),
                          with_norms = textbook_config(true), tutorial = wf_transformer_defaults();
    tutorial.src_vocab = tutorial.tgt_vocab = 8, tutorial.max_len = 10,
    tutorial.dim_feedforward = 512;
    tutorial.positions = WF_POSITIONS_LEARNED, tutorial.scale_embedding = false;
    const struct {
        const wf_transformer_config *c;
        int64_t count;
    } rows[] = { { &course, 171540 },
                 { &textbook, 61558496 },
                 { &with_norms, 61560544 },
                 { &tutorial, 25268232 } };
    for (int i = 0; i < COUNT_OF(rows); i++) {
        wf_model *m = open_model(rows[i].c, NULL, WF_F32, 1);
        ck_assert_int_eq(wf_model_parameter_count(m), rows[i].count);
        close_model(m);
    }
}

static void assert_shape(wf_plan *p, const wf_tensor *t, int ndim, const int64_t *want) {
    int64_t shape[WF_MAX_DIMS];
    ck_assert_int_eq(wf_bound_shape(p, t, shape), ndim);
    for (int i = 0; i < ndim; i++) ck_assert_int_eq(shape[i], want[i]);
}

/* Sources [2, 100] and targets [2, 120] give logits [2, 120, 12000]. */
TEST(textbook_runs) {
    static sentences b;
    wf_transformer_config c = textbook_config(false);
    wf_model *m = open_model(&c, NULL, WF_F32, 1);
    wf_pool *pool = wf_pool_new(2);
    wf_plan *p = wf_model_plan(m, WF_PLAN_SCORE, pool);
    random_sentences(&b, &c, 2, 100, 120, 5);
    values logits = run_for(p, m, &b, m->logits);
    assert_shape(p, m->logits, SHAPE(2, 120, 12000));
    ck_assert_int_eq(logits.count, 2 * 120 * 12000);
    for (int64_t i = 0; i < logits.count; i++) ck_assert(isfinite(logits.data[i]));
    free_values(&logits, 1);
    wf_plan_free(p), wf_pool_free(pool), close_model(m);
}

/* Attention weights of the encoder [B,H,S,S], and of the decoder [B,H,T,T] and [B,H,T,S]: rows sum
 * to 1, and padding and future tokens have the weight 0. */
TEST(attention_rows_sum_to_one) {
    static sentences b;
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    wf_plan *p = wf_model_plan(m, WF_PLAN_ATTENTION, NULL);
    random_sentences(&b, &c, 3, 7, 5, 8);
    assert_plan(p, wf_bind(p, "B", 3) && wf_bind(p, "S", 7) && wf_bind(p, "T", 5));
    assert_plan(p, wf_feed(p, m->src, b.src, wf_bound_bytes(p, m->src)) &&
                       wf_feed(p, m->src_length, b.src_length, wf_bound_bytes(p, m->src_length)) &&
                       wf_feed(p, m->tgt, b.tgt, wf_bound_bytes(p, m->tgt)));
    assert_plan(p, wf_run(p));
    const wf_tensor *kinds[] = { m->maps[0].weights[1], m->maps[1].weights[0],
                                 m->maps[2].weights[1] };
    ck_assert(m->n_maps == 3 && m->maps[0].source_queries && m->maps[0].source_keys);
    ck_assert(!m->maps[1].source_keys && !m->maps[2].source_queries && m->maps[2].source_keys);
    for (int k = 0; k < 3; k++) {
        int queries = k == 0 ? 7 : 5, keys = k == 1 ? 5 : 7;
        assert_shape(p, kinds[k], SHAPE(3, 2, queries, keys));
        values w = fetched(p, kinds[k]);
        for (int row = 0; row < 3 * 2 * queries; row++) {
            int sentence = row / (2 * queries),
                open = k == 1 ? row % queries + 1 : b.src_length[sentence];
            double sum = 0;
            for (int j = 0; j < keys; j++) sum += w.data[row * keys + j];
            for (int j = open; j < keys; j++) ck_assert(w.data[row * keys + j] == 0);
            ck_assert_double_eq_tol(sum, 1, 1e-6);
        }
        free_values(&w, 1);
    }
    wf_plan_free(p), close_model(m);
}

/* ---- one graph ------------------------------------------------------------------------------- */

TEST(one_graph_for_every_use) {
    static sentences b;
    wf_transformer_config c = small_config();
    wf_training_config training = with_dropout(0.1);
    wf_model *m = open_model(&c, &training, WF_F32, 3);
    wf_trainer *train = open_trainer(m, NULL, 1e-3, NULL);
    int nodes = wf_node_count(m->graph);
    wf_plan *eval = wf_model_plan(m, WF_PLAN_EVALUATE, NULL),
            *score = wf_model_plan(m, WF_PLAN_SCORE, NULL),
            *look = wf_model_plan(m, WF_PLAN_ATTENTION, NULL);
    for (int step = 1; step <= 3; step++) {
        copy_sentences(&b, 4, 2, 3 + step, 17, true, (uint64_t)step);
        train_step(train, m, &b);
        values loss = run_for(eval, m, &b, m->loss.loss),
               scores = run_for(score, m, &b, m->token_log_probs);
        double sum = 0;
        for (int64_t i = 0; i < scores.count; i++) sum -= scores.data[i];
        /* without label smoothing, the loss is minus the sum of the log-probabilities */
        ck_assert_double_eq_tol(sum, loss.data[0], 1e-3);
        free_values(&loss, 1), free_values(&scores, 1);
    }
    ck_assert(wf_plan_ok(look));
    exact_copies(m, 50, 1, 6, 9);
    ck_assert_int_eq(wf_node_count(m->graph), nodes);
    wf_trainer_free(train), wf_plan_free(eval), wf_plan_free(score), wf_plan_free(look);
    close_model(m);
}

/* Runs the target tokens [from, from + n) with a state at position `from`. Returns the largest
 * difference of their logits from those of the whole sequence. */
static double cached_error(wf_plan *p, wf_state *s, const wf_model *m, const sentences *b, int from,
                           int n, values whole) {
    int64_t V = m->tgt_vocab;
    int32_t ids[MAX_SENTENCES];
    for (int i = 0; i < b->B * n; i++) ids[i] = b->tgt[i / n * b->T + from + i % n];
    assert_plan(p, wf_bind(p, "T", n) && wf_bind(p, "P", from));
    assert_plan(p, wf_feed(p, m->tgt, ids, wf_bound_bytes(p, m->tgt)) && wf_run_state(p, s));
    values part = fetched(p, m->logits),
           same = { part.count, malloc((size_t)part.count * sizeof(double)) };
    for (int i = 0; i < b->B * n; i++)
        memcpy(same.data + i * V, whole.data + (i / n * b->T + from + i % n) * V,
               (size_t)V * sizeof(double));
    double error = distance(part, same);
    free_values(&part, 1), free_values(&same, 1);
    return error;
}

/* Cached steps of one token, and of three, give the logits of the whole sequence, for every kind of
 * positions. */
TEST_ROWS(cached_logits_equal_the_full_recomputation, WF_POSITIONS_TENSOR2TENSOR + 1) {
    static sentences b;
    wf_transformer_config c = small_config();
    c.positions = (wf_positions)_i;
    c.norm_first = _i != 1, c.embedding_norm = _i > 1;
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    random_sentences(&b, &c, 4, 6, 12, 5);
    wf_plan *full = wf_model_plan(m, WF_PLAN_SCORE, NULL), *p = steps_after_encoding(m, &b);
    values whole = run_for(full, m, &b, m->logits);
    assert_plan(p, wf_bind(p, "P", 0));
    wf_state *s = wf_state_new(p);
    assert_plan(p, s != NULL);
    for (int n = 1; n <= 3; n += 2)
        for (int from = 0; from < b.T; from += n) {
            double error = cached_error(p, s, m, &b, from, n, whole);
            ck_assert_msg(error <= 1e-5, "position %d, %d at a time: error %.3g", from, n, error);
        }
    free_values(&whole, 1);
    wf_state_free(s), wf_plan_free(p), wf_plan_free(full), close_model(m);
}

/* ---- what may influence what ----------------------------------------------------------------- */

/* Copies sentence `row` of b into a batch of its own, without padding behind its source, and with
 * only T of its target tokens. */
static void alone(const sentences *b, int row, int T, sentences *out) {
    out->B = 1, out->S = b->src_length[row], out->T = T;
    out->src_length[0] = b->src_length[row];
    memcpy(out->src, b->src + row * b->S, (size_t)out->S * sizeof *out->src);
    memcpy(out->tgt, b->tgt + row * b->T, (size_t)out->T * sizeof *out->tgt);
    memcpy(out->labels, b->labels + row * b->T, (size_t)out->T * sizeof *out->labels);
}

TEST_ROWS(a_sentence_alone_equals_itself_in_a_batch, 4) {
    static sentences b, one;
    wf_transformer_config c = course_config();
    wf_dtype real = _i % 2 ? WF_F64 : WF_F32;
    c.norm_first = _i / 2;
    wf_model *m = open_model(&c, NULL, real, 3);
    wf_pool *pool = wf_pool_new(2);
    wf_plan *p = wf_model_plan(m, WF_PLAN_SCORE, pool);
    random_sentences(&b, &c, 37, 23, 19, 5);
    values batch = run_for(p, m, &b, m->logits);
    for (int row = 0; row < b.B; row++) {
        alone(&b, row, b.T - row % 8, &one);
        values logits = run_for(p, m, &one, m->logits);
        values same = { logits.count, batch.data + (int64_t)row * b.T * c.tgt_vocab };
        ck_assert_msg(same_bits(logits, same), "sentence %d of %d tokens", row,
                      (int)b.src_length[row]);
        free_values(&logits, 1);
    }
    free_values(&batch, 1);
    wf_plan_free(p), wf_pool_free(pool), close_model(m);
}

TEST(greedy_decoding_does_not_depend_on_the_batch) {
    static sentences b;
    enum { LONGEST = 12 };
    char message[WF_MESSAGE];
    int32_t together[16 * LONGEST], length[16], one[LONGEST], n;
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    wf_decoder *d = wf_decoder_new(m, NULL, message);
    random_sentences(&b, &c, 16, 9, 1, 5);
    for (int end = 0; end < 17;
         end++) { /* every token as the end token: outputs end at many different steps */
        m->end_id = end;
        ck_assert(wf_decode_greedy(d, 16, 9, b.src, b.src_length, LONGEST, together, length));
        for (int i = 0; i < 16; i++) {
            ck_assert(wf_decode_greedy(d, 1, b.src_length[i], b.src + i * b.S, b.src_length + i,
                                       LONGEST, one, &n));
            ck_assert_int_eq(n, length[i]);
            ck_assert(memcmp(one, together + i * LONGEST, sizeof one) == 0);
            for (int t = n; t < LONGEST; t++) ck_assert_int_eq(one[t], end);
        }
    }
    wf_decoder_free(d), close_model(m);
}

TEST(the_future_changes_nothing) {
    static sentences b;
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    wf_plan *p = wf_model_plan(m, WF_PLAN_SCORE, NULL);
    random_sentences(&b, &c, 2, 5, 8, 5);
    values before = run_for(p, m, &b, m->logits);
    for (int t = 0; t + 1 < b.T; t++) {
        b.tgt[t + 1] = (b.tgt[t + 1] + 1) % 17;
        values after = run_for(p, m, &b, m->logits);
        size_t seen = (size_t)(t + 1) * 17 * sizeof(double);
        ck_assert(memcmp(before.data, after.data, seen) == 0);
        ck_assert(memcmp(before.data + (t + 1) * 17, after.data + (t + 1) * 17,
                         17 * sizeof(double)) != 0);
        b.tgt[t + 1] = (b.tgt[t + 1] + 16) % 17;
        free_values(&after, 1);
    }
    free_values(&before, 1);
    wf_plan_free(p), close_model(m);
}

static values memory_of(wf_model *m, const sentences *b) {
    wf_tensor *memory = wf_transformer_of(m)->memory;
    wf_plan *p =
        wf_plan_new(m->graph, &(wf_plan_options){ .fetch = &memory,
                                                  .n_fetch = 1,
                                                  .feed = (wf_tensor *[]){ m->src, m->src_length },
                                                  .n_feed = 2 });
    assert_plan(p, wf_bind(p, "B", b->B) && wf_bind(p, "S", b->S));
    assert_plan(p, wf_feed(p, m->src, b->src, wf_bound_bytes(p, m->src)) &&
                       wf_feed(p, m->src_length, b->src_length, wf_bound_bytes(p, m->src_length)) &&
                       wf_run(p));
    values v = fetched(p, memory);
    wf_plan_free(p);
    return v;
}

/* Without positions the encoder does not know the order of tokens: permuted tokens have the same
 * results, permuted. */
TEST_ROWS(without_positions_order_is_lost, WF_POSITIONS_TENSOR2TENSOR + 1) {
    static sentences b, turned;
    wf_transformer_config c = small_config();
    c.positions = (wf_positions)_i;
    wf_model *m = open_model(&c, NULL, WF_F64, 3);
    random_sentences(&b, &c, 1, 7, 1, 5);
    turned = b;
    for (int i = 0; i < 7; i++) turned.src[i] = b.src[6 - i];
    values x = memory_of(m, &b), y = memory_of(m, &turned),
           back = { y.count, malloc((size_t)y.count * sizeof(double)) };
    for (int i = 0; i < 7; i++)
        memcpy(back.data + i * 16, y.data + (6 - i) * 16, 16 * sizeof(double));
    ck_assert(_i == 0 ? distance(back, x) < 1e-12 : distance(back, x) > 1e-3);
    free_values(&x, 1), free_values(&y, 1), free_values(&back, 1);
    close_model(m);
}

/* With rotary positions only distances matter: a masked token in front of the source changes
 * nothing. With sinusoidal positions, which count from the beginning, it does. */
TEST_ROWS(rotary_positions_are_relative, 2) {
    static sentences b, later;
    wf_transformer_config c = small_config();
    c.positions = _i ? WF_POSITIONS_ROTARY : WF_POSITIONS_SINUSOIDAL;
    c.pad_id = 3;
    c.start_id = 0;
    c.end_id = 0;
    wf_model *m = open_model(&c, NULL, WF_F64, 3);
    random_sentences(&b, &c, 1, 7, 1, 5);
    b.src_length[0] = 7;
    for (int i = 0; i < 7; i++) b.src[i] = b.src[i] == 3 ? 4 : b.src[i];
    later = b;
    later.S = 8;
    later.src_length[0] = 8;
    later.src[0] = 3;
    memcpy(later.src + 1, b.src, 7 * sizeof *b.src);
    values x = memory_of(m, &b), y = memory_of(m, &later),
           rest = { x.count, y.data + y.count - x.count };
    ck_assert_int_eq(x.count, 7 * 16);
    ck_assert(_i ? distance(rest, x) < 1e-12 : distance(rest, x) > 1e-3);
    free_values(&x, 1), free_values(&y, 1);
    close_model(m);
}

/* A source token with the padding id is masked, unless that id is the start or end token, too. */
TEST_ROWS(padding_is_not_seen, 2) {
    static sentences b, other;
    wf_transformer_config c = small_config();
    c.pad_id = 3, c.start_id = c.end_id = _i == 0 ? 0 : 3;
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    wf_plan *p = wf_model_plan(m, WF_PLAN_SCORE, NULL);
    random_sentences(&b, &c, 1, 6, 4, 5);
    b.src[5] = 3, b.src_length[0] = 6;
    other = b;
    other.src_length[0] = 5;
    values with = run_for(p, m, &b, m->logits), without = run_for(p, m, &other, m->logits);
    ck_assert(same_bits(with, without) == (_i == 0));
    free_values(&with, 1), free_values(&without, 1);
    wf_plan_free(p), close_model(m);
}

/* ---- mistakes -------------------------------------------------------------------------------- */

static void assert_refused(wf_transformer_config c, const char *reason) {
    char message[WF_MESSAGE] = "";
    ck_assert(wf_transformer_new(&c, NULL, WF_F32, 1, message) == NULL);
    assert_contains(message, reason);
    ck_assert(wf_transformer_new(&c, NULL, WF_F32, 1, NULL) == NULL);
}

TEST(bad_configurations_are_refused) {
    wf_transformer_config c = small_config(), bad;
    char message[WF_MESSAGE];
    ck_assert(!wf_transformer_check(NULL, message));
    assert_contains(message, "configuration");
    bad = c, bad.num_heads = 3, assert_refused(bad, "d_model 16 is not divisible by 3 heads");
    bad = c, bad.d_model = 15, bad.num_heads = 3, assert_refused(bad, "even d_model, not 15");
    bad = c, bad.d_model = 2, bad.num_heads = 1, bad.positions = WF_POSITIONS_FAIRSEQ,
    assert_refused(bad, "even d_model of 4 or more, not 2");
    bad = c;
    bad.d_model = 12;
    bad.num_heads = 4;
    bad.positions = WF_POSITIONS_ROTARY;
    assert_refused(bad, "heads of an even width, not 3");
    bad = c, bad.src_vocab = 0, assert_refused(bad, "source vocabulary is 0");
    bad = c, bad.tgt_vocab = INT64_MAX,
    assert_refused(bad, "target vocabulary is 9223372036854775807");
    bad = c, bad.max_len = -1, assert_refused(bad, "maximum length is -1");
    bad = c, bad.d_model = 1 << 30, assert_refused(bad, "d_model is 1073741824");
    bad = c, bad.encoder_layers = 100000, assert_refused(bad, "encoder layers is 100000");
    bad = c, bad.tie = WF_TIE_ALL, bad.src_vocab = 5, assert_refused(bad, "not 5 and 17");
    bad = c, bad.end_id = 17, assert_refused(bad, "end id is 17");
    bad = c, bad.pad_id = 17, assert_refused(bad, "padding id is 17");
    bad = c, bad.layer_norm_eps = NAN, assert_refused(bad, "eps is nan");
    bad = c, bad.activation = (wf_activation)9, assert_refused(bad, "activation is 9");
}

TEST(a_bad_training_configuration_fails_the_graph) {
    wf_transformer_config c = small_config();
    char message[WF_MESSAGE];
    wf_model *m =
        wf_transformer_new(&c, &(wf_training_config){ .dropout = 1.5 }, WF_F32, 1, message);
    ck_assert(m && !wf_ok(m->graph));
    assert_contains(wf_error(m->graph), "dropout");
    wf_trainer *t = wf_trainer_new(m->graph, m->loss.loss, m->loss.count, NULL);
    ck_assert(!wf_trainer_ok(t));
    assert_contains(wf_trainer_error(t), "dropout");
    ck_assert(wf_decoder_new(m, NULL, message) == NULL);
    assert_contains(message, "dropout");
    wf_trainer_free(t), wf_model_free(m);
}

TEST(bad_batches_are_told) {
    static sentences b;
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    wf_plan *p = wf_model_plan(m, WF_PLAN_EVALUATE, NULL);
    random_sentences(&b, &c, 2, 5, 4, 5);
    b.src[3] = 17;
    feed_sentences(p, m, &b);
    ck_assert(!wf_run(p));
    assert_contains(wf_plan_error(p), "src_embedding");
    assert_contains(wf_plan_error(p), "17");
    b.src[3] = 1, b.labels[2] = 40;
    feed_sentences(p, m, &b);
    ck_assert(!wf_run(p));
    assert_contains(wf_plan_error(p), "40");
    ck_assert(!wf_bind(p, "S", 33));
    assert_contains(wf_plan_error(p), "'S' cannot be 33");
    ck_assert(!wf_bind(p, "P", 1));
    b.labels[2] = 0;
    feed_sentences(p, m, &b);
    assert_plan(p, wf_run(p)); /* a bad request is over */
    wf_plan_free(p), close_model(m);
}

TEST(memory_of_decoding_grows_with_what_is_asked) {
    char message[WF_MESSAGE];
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    wf_decoder *d = wf_decoder_new(m, NULL, message);
    const int32_t src[3] = { 1, 2, 3 }, length = 3;
    int32_t out[2][5], n[2];
    assert_decoder(d, wf_decode_greedy(d, 1, 3, src, &length, 5, out[0], &n[0]));
    size_t one = wf_decoder_memory(d, 1, 3, 5);
    assert_decoder(d, one > 0);
    ck_assert_uint_gt(wf_decoder_memory(d, 50, 3, 5), 10 * one);
    ck_assert_uint_gt(wf_decoder_memory(d, 1, 20, 5), one);
    ck_assert_uint_gt(wf_decoder_memory(d, 1, 3, 1000), one); /* 1000 is limited to max_len */
    ck_assert_uint_eq(wf_decoder_memory(d, 1, 40, 5), 0);
    assert_contains(wf_decoder_error(d), "'S' cannot be 40");
    ck_assert_uint_eq(wf_decoder_memory(d, 0, 3, 5), 0);
    ck_assert_uint_eq(wf_decoder_memory(d, 1, 3, -1), 0);
    ck_assert_uint_eq(wf_decoder_memory(d, 1, 3, 5), one);
    assert_decoder(d, wf_decode_greedy(d, 1, 3, src, &length, 5, out[1], &n[1]));
    ck_assert(n[0] == n[1] && memcmp(out[0], out[1], sizeof out[0]) == 0);
    wf_decoder_free(d), close_model(m);
}

TEST(bad_requests_to_decode_are_told) {
    char message[WF_MESSAGE];
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    wf_decoder *d = wf_decoder_new(m, NULL, message);
    int32_t src[40] = { 1, 2, 3, 4 }, length = 3, out[100], n;
    ck_assert(!wf_decode_greedy(NULL, 1, 3, src, &length, 5, out, &n));
    ck_assert(!wf_decode_greedy(d, 0, 3, src, &length, 5, out, &n));
    ck_assert(!wf_decode_greedy(d, 1, 3, src, NULL, 5, out, &n));
    assert_contains(wf_decoder_error(d), "NULL");
    ck_assert(!wf_decode_greedy(d, 1, 2, src, &length, 5, out, &n));
    assert_contains(wf_decoder_error(d), "sentence 0 has 3 tokens, not 1 to 2");
    ck_assert(!wf_decode_greedy(d, 1, 40, src, &length, 5, out, &n));
    assert_contains(wf_decoder_error(d), "'S' cannot be 40");
    src[1] = -5;
    ck_assert(!wf_decode_greedy(d, 1, 3, src, &length, 5, out, &n));
    assert_contains(wf_decoder_error(d), "-5");
    src[1] = 2;
    /* More tokens are asked for than the model's max_len, so the output ends there. */
    ck_assert(wf_decode_greedy(d, 1, 3, src, &length, 100, out, &n));
    ck_assert_int_le(n, 32);
    ck_assert(wf_decoder_new(NULL, NULL, message) == NULL);
    wf_decoder_free(NULL), wf_model_free(NULL);
    wf_decoder_free(d), close_model(m);
}

/* A NaN in the output bias gives logits of NaN: decoding and training fail with a message. */
TEST(numbers_that_are_none_are_told) {
    static sentences b;
    char message[WF_MESSAGE];
    int32_t src[] = { 1, 2 }, length = 2, out[4], n;
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    wf_tensor *bias = wf_find(m->graph, "output.bias"),
              *table = wf_find(m->graph, "src_embedding.weight");
    double *before = leaf_values(table), infinite[17] = { NAN };
    ck_assert(write_doubles(bias, infinite));
    wf_trainer *t = open_trainer(m, NULL, 1e-3, NULL);
    random_sentences(&b, &c, 2, 5, 4, 5);
    feed_sentences(wf_trainer_plan(t), m, &b);
    ck_assert(wf_trainer_begin(t, 1, NULL, NULL) && !wf_trainer_add(t, 0));
    assert_contains(wf_trainer_error(t), "gradient norm");
    double *after = leaf_values(table);
    ck_assert(memcmp(before, after, (size_t)wf_count(table) * sizeof *before) == 0);
    wf_decoder *d = wf_decoder_new(m, NULL, message);
    ck_assert(!wf_decode_greedy(d, 1, 2, src, &length, 4, out, &n));
    assert_contains(wf_decoder_error(d), "not numbers");
    free(before), free(after);
    wf_decoder_free(d), wf_trainer_free(t), close_model(m);
}
