/* tests/nn/test_optim.c - optimizers and schedules: one step of each with known gradients.
 *
 * Ten steps of each on a Transformer are compared with PyTorch in tests/models/test_torch.c. */
#include "nn/nn.h"
#include "nn/optimizer_internal.h"
#include "nn/train/accumulation.h"
#include "tests/suites.h"
#include "tests/support/faults.h"
#include "tests/support/support.h"

TESTS(optim)

/* ---- optimizers ------------------------------------------------------------------------------ */

/* loss = sum of (w + b) * x: the gradient by w is x, that by b the sum of x. */
typedef struct little {
    wf_graph *g;
    wf_tensor *w, *b, *x, *count;
    wf_optimizer o;
    wf_plan *p;
} little;

static void open_little(little *l, const wf_optimizer_options *o) {
    wf_graph *g = l->g = new_graph(WF_F64);
    l->w = param_of(g, "w", SHAPE(2, 2), (double[]){ 1, 2, 3, 4 });
    l->b = param_of(g, "b", SHAPE(1), (double[]){ 5 });
    l->x = wf_input(g, "x", WF_F64, SHAPE(2, 2));
    l->count = wf_input(g, "count", WF_F64, SCALAR);
    wf_tensor *loss = wf_sum(wf_mul(wf_add(l->w, l->b), l->x), WF_ALL_AXES, false);
    l->o = wf_optimizer_new(g, loss, l->count, (wf_tensor *[]){ l->w, l->b }, 2, o);
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    wf_tensor *fetch[] = { l->o.updates[0], l->o.updates[1], l->o.norm },
              *feed[] = { l->x, l->count, l->o.rates };
    l->p = wf_plan_new(
        g, &(wf_plan_options){ .fetch = fetch, .n_fetch = 3, .feed = feed, .n_feed = 3 });
    ck_assert_msg(wf_plan_ok(l->p), "%s", wf_plan_error(l->p));
}

static bool step(little *l, const wf_optimizer_options *o, const double *x, double count, int64_t t,
                 double rate) {
    double rates[3];
    wf_optimizer_rates(o, rate, t, rates);
    return wf_feed(l->p, l->x, x, wf_bound_bytes(l->p, l->x)) &&
           wf_feed(l->p, l->count, &count, wf_bound_bytes(l->p, l->count)) &&
           wf_feed_reals(l->p, l->o.rates, rates, 3) && wf_run(l->p);
}

static void close_little(little *l) {
    wf_plan_free(l->p), wf_optimizer_free(&l->o);
    end_graph(l->g);
}

static void assert_leaf(const wf_tensor *t, const double *want) {
    double *have = leaf_values(t);
    for (int64_t i = 0; i < wf_count(t); i++) ck_assert_double_eq_tol(have[i], want[i], 1e-12);
    free(have);
}

TEST_ROWS(the_norm_is_of_the_mean_and_clips, 2) {
    const double x[] = { 1, 2, 2, 4 }; /* the gradient of w; that of b is 9 */
    wf_optimizer_options o = { .kind = WF_SGD, .clip_norm = _i ? 1 : 0 };
    little l;
    open_little(&l, &o);
    ck_assert(step(&l, &o, x, 2, 1, 0.1));
    double norm, want = sqrt(1 + 4 + 4 + 16 + 81) / 2, scale = (_i ? 1 / (want + 1e-6) : 1) / 2;
    ck_assert(wf_fetch(l.p, l.o.norm, &norm, sizeof norm));
    ck_assert_double_eq_tol(norm, want, 1e-12);
    assert_leaf(l.w,
                (double[]){ 1 - 0.1 * scale, 2 - 0.2 * scale, 3 - 0.2 * scale, 4 - 0.4 * scale });
    assert_leaf(l.b, (double[]){ 5 - 0.9 * scale });
    close_little(&l);
}

TEST(nothing_counted_changes_nothing) {
    wf_optimizer_options o = wf_optimizer_defaults(WF_ADAM);
    little l;
    open_little(&l, &o);
    const double zeros[4] = { 0 };
    ck_assert(step(&l, &o, zeros, 0, 1, 0.1)); /* gradient / count would be 0 / 0 */
    assert_leaf(l.w, (double[]){ 1, 2, 3, 4 });
    assert_leaf(l.b, (double[]){ 5 });
    close_little(&l);
}

TEST_ROWS(a_norm_that_is_not_finite_stops_the_step, 3) {
    wf_optimizer_options o = wf_optimizer_defaults((wf_optimizer_kind)_i);
    o.momentum = 0.9;
    little l;
    open_little(&l, &o);
    ck_assert(!step(&l, &o, (double[]){ 1, NAN, 1, 1 }, 2, 1, 0.1));
    assert_contains(wf_plan_error(l.p), "gradient norm");
    ck_assert(!step(&l, &o, (double[]){ 1, INFINITY, 1, 1 }, 2, 1, 0.1));
    assert_leaf(l.w, (double[]){ 1, 2, 3, 4 });
    assert_leaf(l.b, (double[]){ 5 });
    for (int i = 0; i < l.o.n * l.o.n_moments; i++)
        assert_leaf(l.o.moments[i / l.o.n_moments][i % l.o.n_moments], (double[4]){ 0 });
    ck_assert(step(&l, &o, (double[]){ 1, 1, 1, 1 }, 2, 1, 0.1));
    close_little(&l);
}

/* Adam's first step is rate * sign(gradient), whatever its size; AdamW first shrinks matrices,
 * not biases. */
TEST_ROWS(first_steps_of_adam, 2) {
    wf_optimizer_options o = wf_optimizer_defaults(_i ? WF_ADAMW : WF_ADAM);
    o.weight_decay = _i ? 0.5 : 0;
    little l;
    open_little(&l, &o);
    ck_assert_str_eq(l.o.moments[0][0]->name, "optimizer.w.m");
    ck_assert_str_eq(l.o.moments[1][1]->name, "optimizer.b.v");
    ck_assert_str_eq(l.o.rates->name, "optimizer.rates");
    ck_assert(step(&l, &o, (double[]){ 1, -2, 3, -4 }, 1, 1, 0.1));
    double keep = _i ? 1 - 0.1 * 0.5 : 1, *w = leaf_values(l.w), *b = leaf_values(l.b);
    const double sign[] = { 1, -1, 1, -1 };
    for (int i = 0; i < 4; i++) ck_assert_double_eq_tol(w[i], (i + 1) * keep - 0.1 * sign[i], 1e-8);
    ck_assert_double_eq_tol(b[0], 5 + 0.1, 1e-8);
    free(w), free(b);
    close_little(&l);
}

/* The caller fetches the gradients of each micro-batch, adds them, and feeds the sums and the count
 * to the plan that updates. */
TEST(accumulated_micro_batches_equal_one_batch) {
    wf_optimizer_options o = wf_optimizer_defaults(WF_ADAM);
    o.clip_norm = 1;
    const double x[2][4] = { { 1, 2, 3, 4 }, { -3, 1, 0, 2 } };
    double both[4], sum_w[4] = { 0 }, sum_b = 0, w[4], b, rates[3], count = 5;
    little whole, parts;
    open_little(&whole, &o), open_little(&parts, &o);
    for (int i = 0; i < 4; i++) both[i] = x[0][i] + x[1][i];
    wf_plan *gradients = wf_plan_new(
        parts.g,
        &(wf_plan_options){ .fetch = parts.o.grads, .n_fetch = 2, .feed = &parts.x, .n_feed = 1 });
    for (int part = 0; part < 2; part++) {
        ck_assert_msg(wf_feed(gradients, parts.x, x[part], wf_bound_bytes(gradients, parts.x)) &&
                          wf_run(gradients),
                      "%s", wf_plan_error(gradients));
        ck_assert(wf_fetch(gradients, parts.o.grads[0], w, sizeof w) &&
                  wf_fetch(gradients, parts.o.grads[1], &b, sizeof b));
        for (int i = 0; i < 4; i++) sum_w[i] += w[i];
        sum_b += b;
    }
    wf_tensor *feed[] = { parts.o.grads[0], parts.o.grads[1], parts.count, parts.o.rates };
    wf_plan *update = wf_plan_new(
        parts.g,
        &(wf_plan_options){ .fetch = parts.o.updates, .n_fetch = 2, .feed = feed, .n_feed = 4 });
    wf_optimizer_rates(&o, 0.1, 1, rates);
    ck_assert_msg(wf_feed(update, feed[0], sum_w, sizeof sum_w) &&
                      wf_feed(update, feed[1], &sum_b, sizeof sum_b) &&
                      wf_feed(update, feed[2], &count, sizeof count) &&
                      wf_feed(update, feed[3], rates, sizeof rates) && wf_run(update),
                  "%s", wf_plan_error(update));
    ck_assert(step(&whole, &o, both, count, 1, 0.1));
    double *want = leaf_values(whole.w), *want_b = leaf_values(whole.b);
    assert_leaf(parts.w, want), assert_leaf(parts.b, want_b);
    free(want), free(want_b);
    wf_plan_free(gradients), wf_plan_free(update);
    close_little(&whole), close_little(&parts);
}

/* Betas of 0 do not mean the defaults: Adam without moving averages steps by rate *
 * sign(gradient). */
TEST_ROWS(betas_of_zero_are_zero, 2) {
    wf_optimizer_options o = wf_optimizer_defaults(_i ? WF_ADAMW : WF_ADAM);
    const double x[2][4] = { { 1, -2, 3, 4 }, { -5, -1, 0.5, 9 } };
    double w[4] = { 1, 2, 3, 4 };
    o.beta1 = o.beta2 = 0;
    little l;
    open_little(&l, &o);
    for (int t = 1; t <= 4; t++) {
        const double *now = x[t % 2];
        ck_assert(step(&l, &o, now, 1, t, 0.1));
        double *have = leaf_values(l.w);
        for (int i = 0; i < 4; i++) {
            w[i] -= now[i] > 0 ? 0.1 : -0.1;
            ck_assert_double_eq_tol(have[i], w[i], 1e-7);
        }
        free(have);
    }
    close_little(&l);
}

TEST(defaults_are_the_usual_ones) {
    for (int kind = WF_SGD; kind <= WF_ADAMW; kind++) {
        wf_optimizer_options o = wf_optimizer_defaults((wf_optimizer_kind)kind);
        ck_assert(o.kind == (wf_optimizer_kind)kind && !o.name && o.beta1 == 0.9);
        ck_assert(o.beta2 == 0.999 && o.eps == 1e-8 && o.momentum == 0 && o.weight_decay == 0);
        ck_assert(o.clip_norm == 0 && !o.unguarded && o.average_decay == 0);
    }
}

/* ---- two in one graph ------------------------------------------------------------------------ */

/* Two optimizers of one graph, as for a critic and a generator: each updates its own parameters
 * with its own rates. */
TEST(two_optimizers_have_two_names) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *a = param_of(g, "a", SHAPE(2), (double[]){ 1, 2 }),
              *b = param_of(g, "b", SHAPE(2), (double[]){ 3, 4 }), *one = wf_constant(g, 1);
    wf_tensor *loss = wf_sum(wf_mul(a, b), WF_ALL_AXES, false);
    wf_optimizer_options first = wf_optimizer_defaults(WF_ADAM), second = first;
    first.average_decay = second.average_decay = 0.5;
    second.name = "critic";
    wf_optimizer o[] = { wf_optimizer_new(g, loss, one, &a, 1, &first),
                         wf_optimizer_new(g, loss, one, &b, 1, &second) };
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    ck_assert_str_eq(o[0].moments[0][0]->name, "optimizer.a.m");
    ck_assert_str_eq(o[1].moments[0][0]->name, "critic.b.m");
    ck_assert_str_eq(o[1].rates->name, "critic.rates");
    wf_accumulation sums;
    ck_assert(wf_accumulation_new(&sums, &o[1], one, &second, 1));
    ck_assert_str_eq(sums.sums[0]->name, "critic.b.sum");
    wf_accumulation_free(&sums);
    wf_plan *p =
        wf_plan_new(g, &(wf_plan_options){
                           .fetch = o[1].updates, .n_fetch = 1, .feed = &o[1].rates, .n_feed = 1 });
    double rates[3];
    wf_optimizer_rates(&second, 0.1, 1, rates);
    ck_assert(wf_feed(p, o[1].rates, rates, sizeof rates) && wf_run(p));
    assert_leaf(a, (double[]){ 1, 2 });
    double *moved = leaf_values(b);
    ck_assert_double_eq_tol(moved[0], 2.9, 1e-7);
    free(moved);
    wf_plan_free(p), wf_optimizer_free(&o[0]), wf_optimizer_free(&o[1]);
    end_graph(g);
}

TEST(a_second_optimizer_of_one_name_is_refused) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *a = wf_param(g, "a", SHAPE(2), wf_init_zeros()), *loss = wf_square_sum(a);
    wf_optimizer_options adam = wf_optimizer_defaults(WF_ADAM);
    wf_optimizer o = wf_optimizer_new(g, loss, wf_constant(g, 1), &a, 1, &adam);
    wf_optimizer again = wf_optimizer_new(g, loss, wf_constant(g, 1), &a, 1, &adam);
    assert_contains(wf_error(g), "wf_optimizer_options.name");
    ck_assert(!again.updates && again.n == 0);
    wf_optimizer_free(&o), wf_graph_free(g);
}

TEST(rates_are_finite_at_every_step) {
    wf_optimizer_options o = wf_optimizer_defaults(WF_ADAM);
    double first[3], rates[3];
    wf_optimizer_rates(&o, 0.1, 1, first);
    for (int64_t step = -1; step <= 0; step++) {
        wf_optimizer_rates(&o, 0.1, step, rates);
        ck_assert_mem_eq(rates, first, sizeof rates);
    }
    wf_optimizer_rates(NULL, 0.1, 1, rates), wf_optimizer_rates(&o, 0.1, 1, NULL);
    ck_assert(rates[0] == 0.1 && rates[1] == 1 && rates[2] == 1);
}

TEST_ROWS(a_rate_that_is_not_finite_stops_the_step, 3) {
    wf_optimizer_options o = wf_optimizer_defaults((wf_optimizer_kind)_i);
    o.momentum = 0.9;
    const double bad[] = { NAN, INFINITY, -INFINITY }, x[] = { 1, 1, 1, 1 };
    little l;
    open_little(&l, &o);
    for (int i = 0; i < COUNT_OF(bad); i++) {
        ck_assert(!step(&l, &o, x, 2, 1, bad[i]));
        assert_contains(wf_plan_error(l.p), "the rate is not finite");
    }
    assert_leaf(l.w, (double[]){ 1, 2, 3, 4 });
    assert_leaf(l.b, (double[]){ 5 });
    for (int i = 0; i < l.o.n * l.o.n_moments; i++)
        assert_leaf(l.o.moments[i / l.o.n_moments][i % l.o.n_moments], (double[4]){ 0 });
    ck_assert(step(&l, &o, x, 2, 1, 0.1));
    close_little(&l);
}

/* The update ops, called without an optimizer, change nothing if their scale is not finite. */
TEST(a_scale_that_is_not_finite_stops_all_steps) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *a = param_of(g, "a", SHAPE(2), (double[]){ 1, 2 }),
              *b = param_of(g, "b", SHAPE(2), (double[]){ 3, 4 }),
              *scale = wf_input(g, "scale", WF_F64, SCALAR),
              *rates = wf_input(g, "rates", WF_F64, SHAPE(1)), *grad = wf_fill(a, 1);
    wf_tensor *fetch[] = { wf_sgd_step(a, NULL, grad, scale, rates, NULL),
                           wf_sgd_step(b, NULL, grad, scale, rates, NULL) },
              *feed[] = { scale, rates };
    wf_plan *p = wf_plan_new(
        g, &(wf_plan_options){ .fetch = fetch, .n_fetch = 2, .feed = feed, .n_feed = 2 });
    ck_assert(wf_feed(p, rates, (double[]){ 0.1 }, sizeof(double)) &&
              wf_feed(p, scale, (double[]){ NAN }, sizeof(double)));
    ck_assert(!wf_run(p));
    assert_contains(wf_plan_error(p), "the scale is not finite");
    assert_leaf(a, (double[]){ 1, 2 }), assert_leaf(b, (double[]){ 3, 4 });
    ck_assert(wf_feed(p, scale, (double[]){ 1 }, sizeof(double)) && wf_run(p));
    assert_leaf(b, (double[]){ 2.9, 3.9 });
    wf_plan_free(p);
    end_graph(g);
}

/* wf_feed_reals with each of its allocations failing: it is refused, or feeds all numbers as
 * floats. */
TEST(reals_are_fed_as_floats_or_not_at_all) {
    double rates[] = { 0.005, 10, 1000 };
    for (long at = 1, asked = at; asked >= at; at++) {
        wf_graph *g = new_graph(WF_F32);
        wf_tensor *x = wf_input(g, "rates", WF_F32, SHAPE(3)), *y = wf_scale(x, 1);
        wf_plan *p = wf_plan_new(
            g, &(wf_plan_options){ .fetch = &y, .n_fetch = 1, .feed = &x, .n_feed = 1 });
        float have[3] = { 0 };
        long left;
        faults_begin(at, false);
        bool fed = wf_feed_reals(p, x, rates, 3);
        asked = faults_end(&left);
        ck_assert(fed || asked >= at);
        fed = fed && wf_run(p) && wf_fetch(p, y, have, sizeof have);
        ck_assert_msg(!fed || (have[0] == 0.005f && have[1] == 10 && have[2] == 1000),
                      "request %ld: %g %g %g", at, (double)have[0], (double)have[1],
                      (double)have[2]);
        wf_plan_free(p);
        end_graph(g);
    }
}

/* wf_feed_reals takes exactly as many numbers as the tensor has with its bound sizes, in f32 and
 * f64. */
TEST_ROWS(reals_are_fed_in_their_number, 2) {
    wf_graph *g = new_graph(_i ? WF_F64 : WF_F32);
    int64_t B = wf_extent(g, "B", 64);
    wf_tensor *x = wf_input(g, "x", wf_real(g), SHAPE(B)),
              *ids = wf_input(g, "ids", WF_I32, SHAPE(B)), *feed[] = { x, ids },
              *fetch[] = { wf_neg(x), wf_cast(ids, wf_real(g)) };
    wf_plan *p = wf_plan_new(
        g, &(wf_plan_options){ .fetch = fetch, .n_fetch = 2, .feed = feed, .n_feed = 2 });
    double v[65] = { 1, 2, 3 };
    ck_assert(wf_bind(p, "B", 64));
    ck_assert(!wf_feed_reals(p, x, v, 3) && !wf_feed_reals(p, x, v, 65));
    ck_assert(!wf_feed_reals(p, x, v, -1) && !wf_feed_reals(p, x, NULL, 64));
    assert_contains(wf_plan_error(p), "'x'");
    ck_assert(!wf_feed_reals(p, ids, v, 64));
    assert_contains(wf_plan_error(p), "'ids'");
    ck_assert(!wf_feed_reals(p, NULL, v, 3) && !wf_feed_reals(NULL, x, v, 3));
    ck_assert(wf_feed_reals(p, x, v, 64) && wf_bind(p, "B", 3));
    ck_assert(!wf_feed_reals(p, x, v, 64));
    ck_assert(wf_feed_reals(p, x, v, 3) &&
              wf_feed(p, ids, (int32_t[3]){ 0 }, 3 * sizeof(int32_t)) && wf_run(p));
    double *y = plan_values(p, fetch[0], NULL);
    ck_assert(y[0] == -1 && y[2] == -3);
    free(y), wf_plan_free(p);
    end_graph(g);
}

static const struct {
    bool loss, count, params, options;
    wf_optimizer_options o;
    const char *reason;
} unfit[] = {
    { 0, 1, 1, 1, { .kind = WF_ADAM }, "optimizer: the loss" },
    { 1, 0, 1, 1, { .kind = WF_ADAM }, "the count" },
    { 1, 1, 0, 1, { .kind = WF_ADAM }, "needs parameters" },
    { 1, 1, 1, 0, { .kind = WF_ADAM }, "the options" },
    { 1, 1, 1, 1, { .kind = (wf_optimizer_kind)7 }, "no such kind" },
    { 1, 1, 1, 1, { .kind = WF_SGD, .clip_norm = NAN }, "not a number" },
    { 1, 1, 1, 1, { .kind = WF_SGD, .clip_norm = 1, .unguarded = true }, "cannot clip" },
    { 1, 1, 1, 1, { .kind = WF_SGD, .average_decay = 1 }, "the decay of an average" },
    { 1, 1, 1, 1, { .kind = WF_ADAM }, "eps is 0, not above 0 and finite; wf_optimizer_defaults" },
    { 1, 1, 1, 1, { .kind = WF_ADAMW, .beta1 = 0.9, .beta2 = 0.999 }, "wf_optimizer_defaults" },
    { 1, 1, 1, 1, { .kind = WF_ADAM, .beta2 = 1, .eps = 1e-8 }, "beta2 is 1" },
    { 1, 1, 1, 1, { .kind = WF_ADAM, .beta1 = -0.1, .eps = 1e-8 }, "beta1 is -0.1" },
    { 1, 1, 1, 1, { .kind = WF_ADAM, .beta1 = NAN, .eps = 1e-8 }, "beta1 is nan" },
    { 1, 1, 1, 1, { .kind = WF_ADAM, .eps = -1 }, "eps is -1" },
    { 1, 1, 1, 1, { .kind = WF_ADAM, .eps = NAN }, "eps is nan" },
    { 1, 1, 1, 1, { .kind = WF_ADAM, .eps = INFINITY }, "eps is inf" },
    { 1, 1, 1, 1, { .kind = WF_SGD, .momentum = INFINITY }, "momentum is not finite: inf" },
};

TEST_ROWS(unfit_optimizers_poison_their_graph, COUNT_OF(unfit)) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = wf_param(g, "w", SHAPE(2), wf_init_zeros()), *loss = wf_square_sum(w),
              *null = NULL;
    wf_optimizer o =
        wf_optimizer_new(g, unfit[_i].loss ? loss : NULL, unfit[_i].count ? loss : NULL,
                         unfit[_i].params ? &w : NULL, 1, unfit[_i].options ? &unfit[_i].o : NULL);
    ck_assert(!wf_ok(g) && !o.updates && o.n == 0);
    assert_contains(wf_error(g), unfit[_i].reason);
    wf_optimizer_new(g, loss, loss, &null, 1, &unfit[0].o);
    wf_optimizer_new(NULL, NULL, NULL, NULL, 1, NULL);
    wf_graph_free(g);
}

TEST(lists_that_are_null_are_empty) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *out[2] = { NULL, NULL };
    wf_param(g, "w", SHAPE(2), wf_init_zeros());
    ck_assert_int_eq(wf_parameters(NULL, NULL, out, 2), 0);
    ck_assert_int_eq(wf_parameters(g, NULL, NULL, 2),
                     1); /* the number of parameters; none is written */
    ck_assert(wf_schedule_rate(NULL, 3) == 0);
    end_graph(g);
}

TEST(bad_optimizers_are_refused) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = wf_param(g, "w", SHAPE(2), wf_init_zeros());
    wf_tensor *loss = wf_sum(w, WF_ALL_AXES, false);
    wf_optimizer_options adam = wf_optimizer_defaults(WF_ADAM);
    wf_optimizer o = wf_optimizer_new(g, loss, loss, NULL, 0, &adam);
    assert_contains(wf_error(g), "needs parameters");
    wf_optimizer_free(&o), wf_graph_free(g);
    g = new_graph(WF_F32);
    w = wf_param(g, "w", SHAPE(2), wf_init_zeros());
    o = wf_optimizer_new(g, w, w, &w, 1, &adam);
    assert_contains(wf_error(g), "not a real scalar");
    wf_optimizer_free(&o), wf_optimizer_free(NULL), wf_graph_free(g);
}

/* ---- schedules ------------------------------------------------------------------------------- */

TEST(schedules) {
    const struct {
        wf_schedule s;
        int64_t step;
        double rate;
    } rows[] = {
        { { WF_CONSTANT_RATE, 2, 0, 0, 0 }, 1, 2 },
        { { WF_CONSTANT_RATE, 2, 10, 0, 0 }, 5, 1 },
        { { WF_CONSTANT_RATE, 2, 10, 0, 0 }, 1000, 2 },
        { { WF_LINEAR_DECAY, 2, 10, 110, 0 }, 1, 0.2 },
        { { WF_LINEAR_DECAY, 2, 10, 110, 0 }, 10, 2 },
        { { WF_LINEAR_DECAY, 2, 10, 110, 0 }, 60, 1 },
        { { WF_LINEAR_DECAY, 2, 10, 110, 0.5 }, 110, 0.5 },
        { { WF_LINEAR_DECAY, 2, 10, 110, 0.5 }, 9999, 0.5 },
        { { WF_LINEAR_DECAY, 2, 10, 5, 0 }, 10, 0 },
        { { WF_COSINE, 2, 0, 100, 0 }, 50, 1 },
        { { WF_COSINE, 2, 0, 100, 1 }, 100, 1 },
        { { WF_COSINE, 2, 0, 100, 1 }, 200, 1 },
        { { WF_INVERSE_SQRT, 2, 100, 0, 0 }, 50, 1 },
        { { WF_INVERSE_SQRT, 2, 100, 0, 0 }, 100, 2 },
        { { WF_INVERSE_SQRT, 2, 100, 0, 0 }, 400, 1 },
        { { WF_INVERSE_SQRT, 2, 0, 0, 0 }, 4, 1 },
        { { WF_NOAM, 2, 100, 0, 0 }, 400, 1 },
        { { WF_NOAM, 2, 100, 0, 0 }, 0, 0.02 },
    };
    for (int i = 0; i < COUNT_OF(rows); i++)
        ck_assert_double_eq_tol(wf_schedule_rate(&rows[i].s, rows[i].step), rows[i].rate, 1e-12);
    /* the paper's formula, d^-0.5 min(t^-0.5, t w^-1.5), peaks at (d w)^-0.5 */
    wf_schedule noam = { WF_NOAM, 1 / sqrt(512.0 * 4000), 4000, 0, 0 };
    for (int64_t t = 1; t < 20000; t += 997) {
        double paper = fmin(1 / sqrt((double)t), (double)t * pow(4000, -1.5)) / sqrt(512);
        ck_assert_double_eq_tol(wf_schedule_rate(&noam, t), paper, 1e-12);
    }
}
