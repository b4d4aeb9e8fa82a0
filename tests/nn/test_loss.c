/* tests/nn/test_loss.c - losses at points that the table of ops does not test: at kinks, for huge
 * and infinite numbers, for rows that are not counted, and with each reduction.
 *
 * Values and gradients against PyTorch: tests/ops/op_cases_loss.inc. */
#include "nn/loss.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(loss)

/* The loss of each row, its gradient, and the sum of each row of its second derivatives. */
typedef struct outcome {
    double loss[4], gradient[4], curvature[4];
} outcome;

static outcome evaluated(wf_graph *g, wf_tensor *each, wf_tensor *x) {
    wf_tensor *sum = wf_sum(each, WF_ALL_AXES, false), *dx, *ddx;
    values v[3];
    outcome o = { .loss = { 0 } };
    ck_assert_msg(wf_grad(sum, &x, 1, &dx), "%s", wf_error(g));
    ck_assert_msg(wf_grad(wf_sum(dx, WF_ALL_AXES, false), &x, 1, &ddx), "%s", wf_error(g));
    evaluate((wf_tensor *[]){ each, dx, ddx }, 3, 1, false, v);
    for (int i = 0; i < 4; i++) {
        if (i < v[0].count) o.loss[i] = v[0].data[i];
        o.gradient[i] = v[1].data[i], o.curvature[i] = v[2].data[i];
    }
    free_values(v, 3);
    return o;
}

/* Binary cross-entropy at a logit of 0, which zero weights give, and at logits for which exp would
 * overflow. */
TEST_ROWS(binary_cross_entropy_of_any_logit, 2) {
    wf_graph *g = new_graph(_i ? WF_F64 : WF_F32);
    wf_tensor *x = param_of(g, "x", SHAPE(4), (double[]){ 0, -800, 800, 0 }),
              *t = param_of(g, "t", SHAPE(4), (double[]){ 1, 1, 1, 0 });
    outcome o =
        evaluated(g, wf_binary_cross_entropy_with_logits(x, t, NULL, NULL, WF_REDUCE_NONE), x);
    const double loss[] = { log(2), 800, 0, log(2) }, gradient[] = { -0.5, -1, 0, 0.5 },
                 curvature[] = { 0.25, 0, 0, 0.25 };
    for (int i = 0; i < 4; i++) {
        ck_assert_double_eq_tol(o.loss[i], loss[i], 1e-6);
        ck_assert_double_eq_tol(o.gradient[i], gradient[i], 1e-7);
        ck_assert_double_eq_tol(o.curvature[i], curvature[i], 1e-7);
    }
    end_graph(g);
}

/* The gradient of smooth L1 is at most 1, also for an infinite difference; at 0 it is that of the
 * parabola. */
TEST(smooth_l1_at_zero_and_without_bound) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x = param_of(g, "x", SHAPE(4), (double[]){ 0, INFINITY, -INFINITY, 1e200 });
    outcome o = evaluated(g, wf_smooth_l1_loss(x, wf_fill(x, 0), WF_REDUCE_NONE, 0.5), x);
    const double gradient[] = { 0, 1, -1, 1 }, curvature[] = { 2, 0, 0, 0 };
    ck_assert(o.loss[0] == 0 && isinf(o.loss[1]) && isinf(o.loss[2]) && o.loss[3] == 1e200);
    for (int i = 0; i < 4; i++) {
        ck_assert_double_eq_tol(o.gradient[i], gradient[i], 1e-15);
        ck_assert_double_eq_tol(o.curvature[i], curvature[i], 1e-15);
    }
    end_graph(g);
}

TEST(a_target_of_zero_has_no_divergence) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *t = param_of(g, "t", SHAPE(4), (double[]){ 0, 1, 0.5, 0 }),
              *x = param_of(g, "x", SHAPE(4), (double[]){ -1, -1, -1, -2 });
    outcome o = evaluated(g, wf_kl_div(x, t, WF_REDUCE_NONE, false), x);
    const double loss[] = { 0, 1, 0.5 * log(0.5) + 0.5, 0 };
    for (int i = 0; i < 4; i++) ck_assert_double_eq_tol(o.loss[i], loss[i], 1e-15);
    end_graph(g);
}

/* A row with an ignored label adds nothing to the loss, whatever its log-probabilities are. */
TEST(ignored_rows_give_nothing) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *log_p =
        param_of(g, "p", SHAPE(2, 2), (double[]){ -INFINITY, NAN, log(0.25), log(0.75) });
    wf_tensor *labels = ids_of(g, "labels", SHAPE(2), (int32_t[]){ -100, 1 });
    ck_assert_double_eq_tol(evaluate_scalar(wf_nll_loss(log_p, labels, NULL, -100, WF_REDUCE_MEAN)),
                            -log(0.75), 1e-15);
    ck_assert_double_eq_tol(evaluate_scalar(wf_nll_loss(log_p, labels, NULL, -100, WF_REDUCE_SUM)),
                            -log(0.75), 1e-15);
    end_graph(g);
}

TEST_ROWS(nothing_counted_is_a_loss_of_zero, 4) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x = param_of(g, "x", SHAPE(2, 2), (double[]){ 1, 2, 3, 4 }),
              *weight = _i & 1 ? wf_fill(wf_squeeze(wf_slice(x, 0, 0, 1), WF_AXIS(0)), 1) : NULL,
              *labels = ids_of(g, "labels", SHAPE(2), (int32_t[]){ 1, 1 });
    double smoothing = _i & 2 ? 0.1 : 0;
    outcome o =
        evaluated(g, wf_cross_entropy_loss(x, labels, weight, smoothing, 1, WF_REDUCE_MEAN), x);
    ck_assert(o.loss[0] == 0);
    for (int i = 0; i < 4; i++) ck_assert(o.gradient[i] == 0);
    end_graph(g);
}

/* The loss is the same by the fused op and by its composition of ops. */
TEST_ROWS(both_ways_of_a_cross_entropy_agree, 2) {
    wf_graph *g = new_graph(WF_F64);
    double smoothing = _i ? 0.1 : 0;
    wf_tensor *x = param_of(g, "x", SHAPE(2, 2), (double[]){ 1, 2, 3, -4 }),
              *ones = wf_fill(wf_squeeze(wf_slice(x, 0, 0, 1), WF_AXIS(0)), 1),
              *labels = ids_of(g, "labels", SHAPE(2), (int32_t[]){ 1, 0 });
    outcome fused =
        evaluated(g, wf_cross_entropy_loss(x, labels, NULL, smoothing, -1, WF_REDUCE_MEAN), x);
    outcome composed =
        evaluated(g, wf_cross_entropy_loss(x, labels, ones, smoothing, -1, WF_REDUCE_MEAN), x);
    ck_assert_double_eq_tol(fused.loss[0], composed.loss[0], 1e-15);
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq_tol(fused.gradient[i], composed.gradient[i], 1e-15);
    end_graph(g);
}

/* One label for all rows, or weights of another number of classes, could be broadcast silently, so
 * the losses refuse them. */
TEST_ROWS(labels_and_weights_of_another_shape_are_refused, 10) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2, 3)), *w = wf_input(g, "w", WF_F32, SHAPE(3)),
              *labels = wf_input(g, "labels", WF_I32, SHAPE(2));
    wf_tensor *bad_labels[] = { wf_slice(labels, 0, 0, 1), wf_unsqueeze(labels, WF_AXIS(0)),
                                wf_cast(labels, WF_F32) };
    wf_tensor *bad_weights[] = { wf_slice(w, 0, 0, 1), wf_concat((wf_tensor *[]){ w, w }, 2, 0) };
    bool of_weights = _i / 2 >= 3;
    if (of_weights)
        w = bad_weights[_i / 2 - 3];
    else
        labels = bad_labels[_i / 2];
    bool nll = _i % 2 == 0 || labels->dtype != WF_I32;
    if (nll)
        wf_nll_loss(x, labels, w, -100, WF_REDUCE_MEAN);
    else
        wf_cross_entropy_loss(x, labels, w, 0, -100, WF_REDUCE_MEAN);
    assert_contains(wf_error(g), of_weights ? "one for each class" : "one for each row");
    wf_graph_free(g);
}

/* The cosine of a vector of zeros and any other is 0, and its gradient is finite. */
TEST(a_vector_of_zeros_has_a_cosine) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *a = param_of(g, "a", SHAPE(2, 2), (double[]){ 0, 0, 3, 4 }),
              *b = param_of(g, "b", SHAPE(2, 2), (double[]){ 1, 0, 6, 8 });
    outcome o = evaluated(g, wf_cosine_similarity(a, b, -1, 1e-8), a);
    ck_assert(o.loss[0] == 0);
    ck_assert_double_eq_tol(o.loss[1], 1, 1e-15);
    ck_assert_double_eq_tol(o.gradient[0], 1e8, 1e-4);
    ck_assert(isfinite(o.curvature[0]) && o.gradient[1] == 0);
    end_graph(g);
}
