/* tests/ops/test_random.c - random tensors and their generator, integers and shapes: tests that
 * rows of the table of ops cannot express. */
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(random)

enum { N = 40000 };

static wf_plan *plan_for(wf_tensor *t, bool training) {
    return wf_plan_new(t->graph,
                       &(wf_plan_options){ .fetch = &t, .n_fetch = 1, .training = training });
}

static double *run_once(wf_plan *p, wf_tensor *t) {
    ck_assert_msg(wf_run(p), "%s", wf_plan_error(p));
    return plan_values(p, t, NULL);
}

static bool equal(const double *a, const double *b, int n) {
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

/* Random tensors differ from run to run and can be repeated, in plans for training and others. */
TEST_ROWS(runs_differ_and_can_be_repeated, 2) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *y = wf_randn(wf_shape(g, SHAPE(N)), "noise");
    wf_plan *p = plan_for(y, _i);
    double *first = run_once(p, y), *second = run_once(p, y);
    ck_assert(!equal(first, second, N));
    wf_random_step(p, 0, 0);
    double *again = run_once(p, y), *next = run_once(p, y);
    ck_assert(equal(first, again, N) && equal(second, next, N));
    wf_random_step(p, 0, 1);
    double *other = run_once(p, y);
    ck_assert(!equal(first, other, N));
    free(first), free(second), free(again), free(next), free(other);
    wf_plan_free(p), end_graph(g);
}

TEST(sites_differ_and_names_repeat) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *like = wf_shape(g, SHAPE(100));
    wf_tensor *y[] = { wf_rand(like, "a"),  wf_rand(like, "b"),  wf_rand(like, NULL),
                       wf_rand(like, NULL), wf_randn(like, "a"), wf_rand(like, "a") };
    values v[COUNT_OF(y)];
    evaluate(y, COUNT_OF(y), 1, false, v);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < i; j++) ck_assert_msg(!same_bits(v[i], v[j]), "%d and %d", i, j);
    ck_assert(same_bits(v[0], v[5]));
    free_values(v, COUNT_OF(y)), end_graph(g);
}

static double moment(const double *x, int power) {
    double sum = 0;
    for (int i = 0; i < N; i++) sum += pow(x[i], power);
    return sum / N;
}

/* Bounds of five standard errors. */
TEST_ROWS(draws_have_their_moments, 2) {
    wf_graph *g = new_graph(_i ? WF_F64 : WF_F32);
    wf_tensor *like = wf_shape(g, SHAPE(N)), *p = wf_fill(like, 0.3);
    wf_tensor *y[] = { wf_rand(like, NULL), wf_randn(like, NULL), wf_bernoulli(p, NULL) };
    values v[3];
    double e = 5 / sqrt(N);
    evaluate(y, 3, 3, false, v);
    ck_assert_double_eq_tol(moment(v[0].data, 1), 0.5, e / sqrt(12));
    ck_assert_double_eq_tol(moment(v[0].data, 2), 1 / 3.0, e * sqrt(4 / 45.0));
    ck_assert_double_eq_tol(moment(v[1].data, 1), 0, e);
    ck_assert_double_eq_tol(moment(v[1].data, 2), 1, e * sqrt(2));
    ck_assert_double_eq_tol(moment(v[1].data, 4), 3, e * sqrt(96));
    ck_assert_double_eq_tol(moment(v[2].data, 1), 0.3, e * sqrt(0.21));
    for (int i = 0; i < N; i++) {
        ck_assert(v[0].data[i] >= 0 && v[0].data[i] < 1);
        ck_assert(v[2].data[i] == 0 || v[2].data[i] == 1);
    }
    free_values(v, 3), end_graph(g);
}

TEST(categories_have_the_probabilities_of_softmax) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *logits = wf_log(param_of(g, "p", SHAPE(3), (double[]){ 0.2, 0, 0.8 }));
    wf_tensor *y = wf_categorical(wf_add(logits, wf_zeros(g, WF_F32, SHAPE(N, 3))), NULL);
    double *index = NULL, count[3] = { 0 };
    wf_plan *p = plan_for(y, false);
    index = run_once(p, y);
    for (int i = 0; i < N; i++) count[(int)index[i]]++;
    ck_assert_double_eq_tol(count[0] / N, 0.2, 5 * sqrt(0.16 / N));
    ck_assert_double_eq(count[1], 0);
    free(index), wf_plan_free(p), end_graph(g);
}

static const struct {
    const char *name;
    double logits[3];
    bool fails;
} categories[] = {
    { "a NaN", { 0, NAN, 1 }, true },
    { "an infinity", { 0, INFINITY, 1 }, true },
    { "nothing but -inf", { -INFINITY, -INFINITY, -INFINITY }, true },
    { "one possible", { -INFINITY, -1e30, -INFINITY }, false },
    { "large", { 1e8, -1e8, -1e8 }, false },
};

TEST_ROWS(categories_of_no_distribution_fail_the_run, COUNT_OF(categories)) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *logits = param_of(g, "logits", SHAPE(1, 3), categories[_i].logits);
    wf_tensor *y = wf_categorical(logits, NULL);
    wf_plan *p = plan_for(y, false);
    ck_assert_msg(wf_run(p) != categories[_i].fails, "%s", categories[_i].name);
    if (categories[_i].fails)
        assert_contains(wf_plan_error(p),
                        "categorical: check_finite: the largest logit of a row is not finite");
    wf_plan_free(p), end_graph(g);
}

TEST(large_logits_leave_categories_their_probabilities) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *logits = param_of(g, "logits", SHAPE(2), (double[]){ 0x1p30, 0x1p30 });
    wf_tensor *y = wf_categorical(wf_add(logits, wf_zeros(g, WF_F32, SHAPE(N, 2))), NULL);
    wf_plan *p = plan_for(y, false);
    double *index = run_once(p, y), second = 0;
    for (int i = 0; i < N; i++) second += index[i];
    ck_assert_double_eq_tol(second / N, 0.5, 5 * sqrt(0.25 / N));
    free(index), wf_plan_free(p), end_graph(g);
}

TEST(generator_gives_the_initial_values) {
    enum { FEW = 1000 };
    static double u[FEW], n[FEW];
    const int64_t shape = FEW;
    wf_init uniform = wf_init_uniform(0.5), normal = wf_init_normal(1);
    uniform.fill(&uniform, 77, WF_F64, 1, &shape, u);
    normal.fill(&normal, 77, WF_F64, 1, &shape, n);
    for (int i = 0; i < FEW; i++) {
        ck_assert_double_eq(u[i], 0.5 * (2 * wf_random_uniform(77, (uint64_t)i) - 1));
        ck_assert_double_eq(n[i], wf_random_normal(77, (uint64_t)i));
    }
}

/* ---- integers -------------------------------------------------------------------------------- */

TEST(integers_are_exact_and_wrap) {
    wf_graph *g = new_graph(WF_F32);
    const int32_t a[] = { 16777216, INT32_MAX, INT32_MIN, INT32_MIN, 65536, -7 };
    const int32_t b[] = { 1, 1, -1, 1, 65537, 2 };
    wf_tensor *x = wf_constant_array(g, WF_I32, SHAPE(6), a);
    wf_tensor *z = wf_constant_array(g, WF_I32, SHAPE(6), b);
    wf_tensor *y[] = { wf_add(x, z),       wf_sub(x, z),  wf_mul(x, z), wf_floor_divide(x, z),
                       wf_remainder(x, z), wf_fmod(x, z), wf_neg(x),    wf_abs(x) };
    static const int32_t expected[COUNT_OF(y)][6] = {
        { 16777217, INT32_MIN, INT32_MAX, INT32_MIN + 1, 131073, -5 },
        { 16777215, INT32_MAX - 1, INT32_MIN + 1, INT32_MAX, -1, -9 },
        { 16777216, INT32_MAX, INT32_MIN, INT32_MIN, 65536, -14 },
        { 16777216, INT32_MAX, INT32_MIN, INT32_MIN, 0, -4 },
        { 0, 0, 0, 0, 65536, 1 },
        { 0, 0, 0, 0, 65536, -1 },
        { -16777216, -INT32_MAX, INT32_MIN, INT32_MIN, -65536, 7 },
        { 16777216, INT32_MAX, INT32_MIN, INT32_MIN, 65536, 7 },
    };
    values v[COUNT_OF(y)];
    evaluate(y, COUNT_OF(y), 1, false, v);
    for (int i = 0; i < COUNT_OF(y); i++)
        for (int k = 0; k < 6; k++)
            ck_assert_msg(v[i].data[k] == expected[i][k], "op %d, element %d: %g", i, k,
                          v[i].data[k]);
    free_values(v, COUNT_OF(y)), end_graph(g);
}

TEST(division_of_integers_by_0_fails_the_run) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_full(g, WF_I32, SHAPE(300), 5),
              *zero = wf_constant_array(g, WF_I32, 0, NULL, &(int32_t){ 0 });
    wf_tensor *y[] = { wf_floor_divide(x, zero), wf_remainder(x, zero), wf_fmod(x, zero) };
    for (int i = 0; i < COUNT_OF(y); i++) {
        wf_plan *p = plan_for(y[i], false);
        ck_assert(!wf_run(p));
        assert_contains(wf_plan_error(p), "divided by 0");
        wf_plan_free(p);
    }
    end_graph(g);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

TEST(shapes_contain_extents) {
    wf_graph *g = new_graph(WF_F32);
    int64_t B = wf_extent(g, "B", 9), shape[WF_MAX_DIMS];
    wf_tensor *state = wf_full(g, WF_F32, SHAPE(B, 3), 0.5);
    wf_tensor *y = wf_add(wf_mul(state, wf_rand(wf_shape(g, SHAPE(B, 3)), NULL)), state);
    wf_plan *p = plan_for(y, false);
    for (int64_t b = 2; b < 6; b += 3) {
        int64_t count;
        ck_assert(wf_bind(p, "B", b) && wf_run(p));
        double *data = plan_values(p, y, &count);
        ck_assert_int_eq(count, 3 * b);
        ck_assert_int_eq(wf_bound_shape(p, y, shape), 2);
        ck_assert_int_eq(shape[0], b);
        for (int i = 0; i < count; i++) ck_assert(data[i] >= 0.5 && data[i] < 1);
        free(data);
    }
    wf_plan_free(p);
    end_graph(g);
}

TEST(shape_has_no_values) {
    wf_graph *g = new_graph(WF_F32);
    int64_t B = wf_extent(g, "B", 9);
    wf_tensor *shape = wf_shape(g, SHAPE(B, 3)), *y = wf_neg(shape);
    float value[24] = { 0 };
    char text[32];
    wf_plan *p = plan_for(y, false);
    ck_assert(!wf_plan_ok(p));
    assert_contains(wf_plan_error(p), "wf_shape");
    ck_assert(!wf_read(shape, value, wf_bytes(shape)) && !wf_read(shape, value, 0));
    ck_assert(!wf_write(shape, value, wf_bytes(shape)));
    ck_assert_int_gt(wf_print(NULL, shape, text, sizeof text), 0);
    ck_assert_str_eq(text, "[B,3]");
    wf_plan_free(p), end_graph(g);
}

/* The gradient of binary cross-entropy, max(x, 0) - x z + log(1 + exp(-|x|)), by the logit x, at 0
 * and at large x. */
TEST(softplus_has_the_slope_of_binary_cross_entropy) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = param_of(g, "x", SHAPE(3), (double[]){ 0, 800, -800 }), *dx;
    wf_tensor *z = wf_constant_array(g, WF_F32, SHAPE(3), (float[]){ 1, 1, 1 });
    wf_grad(wf_sum(wf_sub(wf_softplus(x), wf_mul(x, z)), WF_ALL_AXES, false), &x, 1, &dx);
    values v[2];
    evaluate((wf_tensor *[]){ dx, wf_log_sigmoid(x) }, 2, 1, false, v);
    ck_assert_double_eq(v[0].data[0], -0.5);
    ck_assert_double_eq(v[0].data[1], 0);
    ck_assert_double_eq(v[0].data[2], -1);
    ck_assert_double_eq(v[1].data[1], 0);
    ck_assert_double_eq(v[1].data[2], -800);
    free_values(v, 2), end_graph(g);
}
