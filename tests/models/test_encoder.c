/* tests/models/test_encoder.c - encoder models: poolings against plain C, the contrastive loss
 * against a computation from its vectors, training, and refused arguments. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/decode.h"
#include "models/encoder.h"
#include "models/model_internal.h"
#include "nn/trainer.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(encoder)

enum { B = 3, S = 6, D = 8, V = 17, LONGEST = 9 };

static const int32_t src[B * S] = { 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 0, 0, 10, 11, 12, 3, 0, 0 };
static const int32_t length[B] = { 6, 1, 4 };

static wf_encoder_config small(void) {
    wf_encoder_config c = wf_encoder_defaults();
    c.vocab = V;
    c.max_len = LONGEST;
    c.d_model = D;
    c.num_heads = 2;
    c.dim_feedforward = 12;
    c.layers = 2;
    c.normalize = false;
    return c;
}

static wf_model *made(const wf_encoder_config *c) {
    char message[WF_MESSAGE] = "";
    wf_model *m = wf_encoder_new(c, NULL, WF_F64, 5, message);
    ck_assert_msg(m && wf_ok(m->graph), "%s%s", message, m ? wf_error(m->graph) : "");
    return m;
}

static void vectors_of(wf_model *m, double *out) {
    wf_plan *p = wf_encoder_plan(m, NULL);
    ck_assert_msg(wf_encoder_run(m, p, B, S, src, length, out), "%s", wf_plan_error(p));
    wf_plan_free(p);
}

/* ---- vectors --------------------------------------------------------------------------------- */

/* Computes the vectors of all tokens of the three lines, with a model without pooling. */
static void hidden_of(const wf_model *m, double x[B][S][D]) {
    wf_tensor *hidden = m->hidden, *const inputs[] = { m->src, m->src_length };
    wf_plan *p = wf_plan_new(
        m->graph,
        &(wf_plan_options){ .fetch = &hidden, .n_fetch = 1, .feed = inputs, .n_feed = 2 });
    ck_assert(wf_bind(p, "B", B) && wf_bind(p, "S", S) && wf_feed(p, m->src, src, sizeof src));
    ck_assert(wf_feed(p, m->src_length, length, sizeof length) && wf_run(p));
    ck_assert(wf_fetch(p, hidden, x, sizeof(double) * B * S * D));
    wf_plan_free(p);
}

/* Computes element k of the vector of a line of n tokens, with each of the six poolings. */
static void pool(double x[S][D], int n, int k, double out[6]) {
    double sum = 0, weighted = 0, most = x[0][k];
    for (int i = 0; i < n; i++) {
        sum += x[i][k];
        weighted += (i + 1) * x[i][k];
        if (x[i][k] > most) most = x[i][k];
    }
    out[0] = x[0][k];
    out[1] = most;
    out[2] = sum / n;
    out[3] = sum / sqrt(n);
    out[4] = weighted / (n * (n + 1) / 2.0);
    out[5] = x[n - 1][k];
}

TEST(a_line_is_pooled_as_said) {
    double x[B][S][D], got[B][6][D], want[6];
    wf_encoder_config c = small();
    c.pooling = (WF_POOLING_LAST << 1) - 1;
    wf_model *m = made(&c);
    ck_assert_int_eq(wf_encoder_of(m)->vectors->shape[1], 6 * D);
    hidden_of(m, x);
    vectors_of(m, &got[0][0][0]);
    for (int b = 0; b < B; b++)
        for (int k = 0; k < D; k++) {
            pool(x[b], length[b], k, want);
            for (int i = 0; i < 6; i++) ck_assert_double_eq_tol(got[b][i][k], want[i], 1e-12);
        }
    wf_model_free(m);
}

TEST(a_width_that_overflows_is_none) {
    wf_encoder_config c = { .d_model = INT64_MAX, .pooling = WF_POOLING_FIRST | WF_POOLING_MAX };
    ck_assert_int_eq(wf_encoder_pooled_width(&c), 0);
    c.d_model = 8;
    ck_assert_int_eq(wf_encoder_pooled_width(&c), 16);
}

TEST(vectors_may_have_the_length_one) {
    double plain[B][D], unit[B][D];
    wf_encoder_config c = small();
    wf_model *a = made(&c);
    c.normalize = true;
    wf_model *b = made(&c);
    vectors_of(a, &plain[0][0]);
    vectors_of(b, &unit[0][0]);
    for (int i = 0; i < B; i++) {
        double sum = 0;
        for (int k = 0; k < D; k++) sum += plain[i][k] * plain[i][k];
        for (int k = 0; k < D; k++)
            ck_assert_double_eq_tol(unit[i][k], plain[i][k] / sqrt(sum), 1e-12);
    }
    wf_model_free(a), wf_model_free(b);
}

/* A line without tokens has a vector of zeros. */
TEST(an_empty_line_is_zeros) {
    double out[2][D];
    const int32_t two[] = { 5, 5 }, lengths[] = { 0, 1 };
    wf_encoder_config c = small();
    wf_model *m = made(&c);
    wf_plan *p = wf_encoder_plan(m, NULL);
    ck_assert_msg(wf_encoder_run(m, p, 2, 1, two, lengths, out), "%s", wf_plan_error(p));
    for (int k = 0; k < D; k++) ck_assert(out[0][k] == 0 && out[1][k] != 0);
    wf_plan_free(p), wf_model_free(m);
}

/* RoBERTa's positions count the tokens that are not padding, from pad_id + 1 on. Padding tokens,
 * also inside a line, have the position pad_id. */
TEST(counted_positions_leave_padding_out) {
    double x[B][S][D], y[B][S][D];
    wf_encoder_config c = small();
    c.counted_positions = true;
    c.pad_id = 7; /* the fifth token of the first line */
    wf_model *m = made(&c);
    hidden_of(m, x);
    const wf_tensor *table = wf_find(m->graph, "position.weight");
    ck_assert_int_eq(table->shape[0], LONGEST + 8);
    /* rows 7 to 12 are read: row 7 for padding, and the next five for up to five tokens */
    double rows[(LONGEST + 8) * D];
    ck_assert(wf_read(table, rows, sizeof rows));
    for (int i = 0; i < 7 * D; i++) rows[i] = rows[(13 + i / D % 4) * D + i % D] = 99;
    ck_assert(wf_write((wf_tensor *)(uintptr_t)table, rows, sizeof rows));
    hidden_of(m, y);
    ck_assert(memcmp(x[0], y[0], sizeof x[0]) == 0);
    for (int i = 0; i < D; i++) rows[7 * D + i] = 99;
    ck_assert(wf_write((wf_tensor *)(uintptr_t)table, rows, sizeof rows));
    hidden_of(m, y);
    ck_assert(memcmp(x[0], y[0], sizeof x[0]) != 0);
    ck_assert(memcmp(x[2], y[2], (size_t)length[2] * sizeof x[2][0]) == 0);
    wf_model_free(m);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* Targets as wf_batch has them: the start, the line, and labels with the end. */
enum { T = S + 1, START = 1, END = 2 };
static void targets(int32_t tgt[B * T], int32_t labels[B * T]) {
    for (int i = 0; i < B * T; i++) labels[i] = WF_IGNORE_LABEL;
    for (int i = 0; i < B * T; i++) tgt[i] = END;
    for (int b = 0; b < B; b++) {
        tgt[b * T] = START;
        for (int k = 0; k < length[b]; k++) {
            tgt[b * T + 1 + k] = (src[b * S + k] + b + 1) % V;
            labels[b * T + k] = tgt[b * T + 1 + k];
        }
        labels[b * T + length[b]] = END;
    }
}

static double log_softmax(const double *x, int step, int i) {
    double sum = 0;
    for (int k = 0; k < B; k++) sum += exp(x[k * step]);
    return x[i * step] - log(sum);
}

TEST(pairs_are_compared_by_their_vectors) {
    int32_t tgt[B * T], labels[B * T], other[B * S] = { 0 };
    double a[B][D], b[B][D], similar[B * B], want = 0, loss, count, correct;
    wf_encoder_config c = small();
    c.normalize = true;
    wf_model *m = made(&c);
    targets(tgt, labels);
    for (int i = 0; i < B * S; i++)
        if (i % S < length[i / S]) other[i] = tgt[i / S * T + 1 + i % S];
    vectors_of(m, &a[0][0]);
    wf_plan *p = wf_encoder_plan(m, NULL);
    ck_assert(wf_encoder_run(m, p, B, S, other, length, b));
    wf_plan_free(p);
    for (int i = 0; i < B * B; i++) {
        similar[i] = 0;
        for (int k = 0; k < D; k++) similar[i] += 20 * a[i / B][k] * b[i % B][k];
    }
    for (int i = 0; i < B; i++)
        want -= log_softmax(similar + i * B, 1, i) + log_softmax(similar + i, B, i);
    p = wf_model_plan(m, WF_PLAN_EVALUATE, NULL);
    const wf_batch pairs = { B, S, T, src, length, tgt, labels };
    ck_assert_msg(wf_model_feed(m, p, &pairs) && wf_run(p), "%s", wf_plan_error(p));
    ck_assert(wf_fetch(p, m->loss.loss, &loss, sizeof loss));
    ck_assert(wf_fetch(p, m->loss.count, &count, sizeof count));
    ck_assert(wf_fetch(p, m->correct, &correct, sizeof correct));
    ck_assert_double_eq_tol(loss, want, 1e-10);
    ck_assert(count == 2 * B && correct >= 0 && correct <= count);
    wf_plan_free(p), wf_model_free(m);
}

/* The model learns three pairs by heart. */
TEST(pairs_are_learned) {
    int32_t tgt[B * T], labels[B * T];
    wf_encoder_config c = small();
    wf_model *m = made(&c);
    targets(tgt, labels);
    const wf_batch pairs = { B, S, T, src, length, tgt, labels };
    wf_trainer_options o = {
        .optimizer = { .kind = WF_ADAM, .beta1 = 0.9, .beta2 = 0.98, .eps = 1e-9 },
        .schedule = { .kind = WF_CONSTANT_RATE, .peak = 0.01 }
    };
    wf_trainer *t = wf_trainer_new(m->graph, m->loss.loss, m->loss.count, &o);
    wf_progress now = { 0 };
    double first = 0;
    for (int i = 0; i < 60; i++) {
        ck_assert(wf_trainer_begin(t, 1, NULL, NULL));
        ck_assert(wf_model_feed(m, wf_trainer_plan(t), &pairs));
        ck_assert_msg(wf_trainer_add(t, 0) && wf_trainer_update(t, &now), "%s",
                      wf_trainer_error(t));
        if (i == 0) first = now.loss;
    }
    ck_assert(now.loss < 0.05 * first);
    wf_trainer_free(t), wf_model_free(m);
}

/* ---- masked tokens --------------------------------------------------------------------------- */

TEST(masked_tokens_are_scored_at_their_places) {
    int32_t labels[B * S];
    double loss, logs[B * S];
    wf_encoder_config c = small();
    c.masked_lm = true;
    wf_model *m = made(&c);
    for (int i = 0; i < B * S; i++) labels[i] = i % 4 == 1 && i % S < length[i / S] ? i % V : -1;
    wf_plan *p = wf_model_plan(m, WF_PLAN_EVALUATE, NULL);
    const wf_batch rows = { B, S, S, src, length, src, labels };
    ck_assert_msg(!wf_plan_ok(p) || wf_model_feed(m, p, &rows), "%s", wf_plan_error(p));
    ck_assert_msg(wf_plan_ok(p) && wf_run(p), "%s", wf_plan_error(p));
    ck_assert(wf_fetch(p, m->loss.loss, &loss, sizeof loss));
    wf_plan_free(p);
    p = wf_model_plan(m, WF_PLAN_SCORE, NULL);
    ck_assert(wf_model_feed(m, p, &rows) && wf_run(p));
    ck_assert(wf_fetch(p, m->token_log_probs, logs, sizeof logs));
    double sum = 0;
    for (int i = 0; i < B * S; i++) {
        ck_assert(labels[i] >= 0 ? logs[i] < 0 : logs[i] == 0);
        sum -= logs[i];
    }
    ck_assert_double_eq_tol(loss, sum, 1e-10);
    wf_plan_free(p), wf_model_free(m);
}

/* ---- refused --------------------------------------------------------------------------------- */

static void no_pooling(wf_encoder_config *c) {
    c->pooling = 0;
}
static void few_positions(wf_encoder_config *c) {
    c->positions = LONGEST - 1;
}
static void odd_heads(wf_encoder_config *c) {
    c->num_heads = 3;
}
static void no_scale(wf_encoder_config *c) {
    c->similarity_scale = 0;
}
static void wide(wf_encoder_config *c) {
    c->dense = -1;
}
static void no_function(wf_encoder_config *c) {
    c->dense_activation = (wf_dense_activation)9;
}

TEST(what_is_no_encoder_is_refused) {
    static const struct {
        void (*change)(wf_encoder_config *c);
        const char *sentence;
    } rows[] = {
        { no_pooling, "no pooling makes a vector of a line" },
        { few_positions, "there are 8 positions for lines of up to 9 tokens" },
        { odd_heads, "8 is not divisible by 3 heads" },
        { no_scale, "similarities are multiplied by 0" },
        { wide, "the width of the layer after pooling is -1" },
        { no_function, "its activation is 9" },
    };
    for (int i = 0; i < COUNT_OF(rows); i++) {
        char message[WF_MESSAGE] = "";
        wf_encoder_config c = small();
        rows[i].change(&c);
        ck_assert_ptr_null(wf_encoder_new(&c, NULL, WF_F64, 1, message));
        assert_contains(message, rows[i].sentence);
    }
}

TEST(an_encoder_decodes_nothing) {
    char message[WF_MESSAGE] = "";
    double out[B * D];
    wf_encoder_config c = small();
    wf_model *m = made(&c);
    ck_assert_ptr_null(wf_decoder_new(m, NULL, message));
    assert_contains(message, "an encoder has no outputs to decode");
    wf_plan *p = wf_encoder_plan(m, NULL);
    const int32_t too_long[] = { 7, 1, 1 };
    ck_assert(!wf_encoder_run(m, p, B, S, src, too_long, out));
    assert_contains(wf_plan_error(p), "line 0 has 7 tokens, not 0 to 6");
    ck_assert(!wf_encoder_run(m, p, B, S, NULL, length, out));
    ck_assert(!wf_encoder_run(m, p, 1, LONGEST + 1, src, length, out));
    ck_assert(wf_encoder_run(m, p, B, S, src, length, out));
    wf_plan_free(p), wf_model_free(m);
    p = wf_encoder_plan(NULL, NULL);
    ck_assert(!wf_plan_ok(p) && !wf_encoder_run(NULL, p, 1, 1, src, length, out));
    wf_plan_free(p);
}
