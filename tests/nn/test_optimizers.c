/* tests/nn/test_optimizers.c - every kind of optimizer against PyTorch, twenty steps each; groups
 * of parameters, frozen parameters, and gradients that the caller computes.
 *
 * Single steps, clipping and accumulation are tested in test_optim.c, averages in
 * test_trainer.c. */
#include "nn/nn.h"
#include "nn/optimizer_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(optimizers)

/* ---- twenty steps, as record_optimizers.py makes them ---------------------------------------- */

enum { W = 6, B = 3, STEPS = 20 };

#define GROUPS(...)                                                                                \
    .groups = (const wf_parameter_group[]){ __VA_ARGS__ },                                         \
    .n_groups = sizeof((const wf_parameter_group[]){ __VA_ARGS__ }) / sizeof(wf_parameter_group)

static const struct {
    const char *name;
    wf_optimizer_options o;
} kinds[] = {
    { "sgd", { .kind = WF_SGD } },
    { "momentum", { WF_SGD, .momentum = 0.9, .weight_decay = 0.1 } },
    { "dampening", { WF_SGD, .momentum = 0.9, .dampening = 0.5 } },
    { "nesterov", { WF_SGD, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true } },
    { "adam", { WF_ADAM, ADAM_DEFAULTS, .weight_decay = 0.1 } },
    { "adam_beta1", { WF_ADAM, .beta1 = 0, .beta2 = 0.9, .eps = 1e-8 } },
    { "adam_clipped", { WF_ADAM, .beta1 = 0.9, .beta2 = 0.999, .eps = 0.1, .clip_norm = 0.05 } },
    { "adamw", { WF_ADAMW, ADAM_DEFAULTS, .weight_decay = 0.1 } },
    { "adamw_all", { WF_ADAMW, ADAM_DEFAULTS, .weight_decay = 0.1, .decay_all = true } },
    { "adamw_groups",
      { WF_ADAMW, ADAM_DEFAULTS, .weight_decay = 0.2, .decay_all = true,
        GROUPS({ "layer.b*", 0.25, 0.3 }) } },
    { "rmsprop", { WF_RMSPROP, .alpha = 0.99, .eps = 1e-8, .weight_decay = 0.1 } },
    { "rmsprop_momentum", { WF_RMSPROP, .alpha = 0.9, .eps = 1e-8, .momentum = 0.5 } },
    { "rmsprop_centered", { WF_RMSPROP, .alpha = 0.99, .eps = 1e-3, .centered = true } },
    { "rmsprop_both",
      { WF_RMSPROP, .alpha = 0.99, .eps = 1e-2, .momentum = 0.5, .centered = true } },
    { "adagrad", { WF_ADAGRAD, .eps = 1e-10, .weight_decay = 0.1 } },
    { "lion", { WF_LION, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1 } },
    { "lion_all",
      { WF_LION, .beta1 = 0.95, .beta2 = 0.98, .weight_decay = 0.3, .decay_all = true } },
};

static const struct {
    const char *name;
    double values[W + B];
} recorded[] = {
#define STEPS(name, ...) { #name, { __VA_ARGS__ } },
#include "optimizer_steps.inc"
#undef STEPS
};

/* A regression: the mean of the squares of x w + b - y. */
typedef struct regression {
    wf_graph *g;
    wf_tensor *w, *b, *loss;
    wf_optimizer o;
    wf_plan *p;
} regression;

static double *wave(int n, double phase, double *out) {
    for (int i = 0; i < n; i++) out[i] = sin(i * 1.7 + phase);
    return out;
}

static void open_regression(regression *r, wf_dtype real) {
    double v[12];
    wf_graph *g = r->g = new_graph(real);
    wf_tensor *x = param_of(g, "x", SHAPE(4, 2), wave(8, 0.1, v)),
              *y = param_of(g, "y", SHAPE(4, 3), wave(12, 2.0, v));
    r->w = param_of(g, "layer.weight", SHAPE(2, 3), wave(W, 0.3, v));
    r->b = param_of(g, "layer.bias", SHAPE(3), wave(B, 0.9, v));
    wf_tensor *miss = wf_sub(wf_add(wf_matmul(x, r->w), r->b), y);
    r->loss = wf_mean(wf_square(miss), WF_ALL_AXES, false);
}

static void open_plan(regression *r) {
    wf_tensor *fetch[] = { r->o.updates[0], r->o.updates[1], r->loss };
    ck_assert_msg(wf_ok(r->g), "%s", wf_error(r->g));
    r->p = wf_plan_new(
        r->g, &(wf_plan_options){ .fetch = fetch, .n_fetch = 3, .feed = &r->o.rates, .n_feed = 1 });
    ck_assert_msg(wf_plan_ok(r->p), "%s", wf_plan_error(r->p));
}

static void take_steps(regression *r, const wf_optimizer_options *o) {
    for (int step = 1; step <= STEPS; step++) {
        double rates[3];
        wf_optimizer_rates(o, 0.05 * step / STEPS, step, rates);
        ck_assert_msg(wf_feed_reals(r->p, r->o.rates, rates, 3) && wf_run(r->p), "step %d: %s",
                      step, wf_plan_error(r->p));
    }
}

static void close_regression(regression *r) {
    wf_plan_free(r->p), wf_optimizer_free(&r->o);
    end_graph(r->g);
}

static void assert_trained(const regression *r, const double *want, double bound) {
    double *w = leaf_values(r->w), *b = leaf_values(r->b);
    for (int i = 0; i < W + B; i++) {
        double have = i < W ? w[i] : b[i - W], error = fabs(have - want[i]);
        tally_note(bound < 1e-8 ? TALLY_TORCH_F64 : TALLY_TORCH_F32, error);
        ck_assert_msg(error <= bound, "number %d is %.17g, not %.17g", i, have, want[i]);
    }
    free(w), free(b);
}

/* Twenty steps have PyTorch's results, also without the guard, when each update runs as soon as its
 * gradient is computed. */
TEST_ROWS(twenty_steps_are_as_in_pytorch, 3 * COUNT_OF(kinds)) {
    int kind = _i / 3, way = _i % 3; /* f32; f64; f64, unguarded */
    wf_optimizer_options o = kinds[kind].o;
    ck_assert_str_eq(recorded[kind].name, kinds[kind].name);
    if (way == 2 && o.clip_norm > 0) return; /* only a guarded optimizer clips */
    o.unguarded = way == 2;
    regression r;
    open_regression(&r, way == 0 ? WF_F32 : WF_F64);
    r.o = wf_optimizer_new(r.g, r.loss, wf_constant(r.g, 1), (wf_tensor *[]){ r.w, r.b }, 2, &o);
    open_plan(&r);
    take_steps(&r, &o);
    assert_trained(&r, recorded[kind].values, way == 0 ? 2e-6 : 1e-12);
    close_regression(&r);
}

TEST(every_kind_is_recorded) {
    ck_assert_int_eq(COUNT_OF(kinds), COUNT_OF(recorded));
}

/* ---- gradients that are given ---------------------------------------------------------------- */

/* Gradients that the caller recorded with wf_grad give the bits of those from the loss. */
TEST(gradients_may_be_given_instead_of_a_loss) {
    const wf_optimizer_options o = wf_optimizer_defaults(WF_ADAM);
    regression whole, given;
    open_regression(&whole, WF_F32), open_regression(&given, WF_F32);
    wf_tensor *params[] = { given.w, given.b }, *grads[2];
    whole.o = wf_optimizer_new(whole.g, whole.loss, wf_constant(whole.g, 1),
                               (wf_tensor *[]){ whole.w, whole.b }, 2, &o);
    ck_assert(wf_grad(given.loss, params, 2, grads));
    given.o =
        wf_optimizer_from_gradients(given.g, grads, wf_constant(given.g, 1), NULL, params, 2, &o);
    open_plan(&whole), open_plan(&given);
    take_steps(&whole, &o), take_steps(&given, &o);
    values a = { W, leaf_values(whole.w) }, b = { W, leaf_values(given.w) };
    ck_assert(same_bits(a, b));
    free_values(&a, 1), free_values(&b, 1);
    close_regression(&whole), close_regression(&given);
}

/* A program that computes gradients elsewhere feeds them as inputs. */
TEST(gradients_may_be_fed) {
    wf_optimizer_options o = wf_optimizer_defaults(WF_SGD);
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *w = param_of(g, "w", SHAPE(2), (double[]){ 1, 2 }),
              *grad = wf_input(g, "grad", WF_F64, SHAPE(2));
    wf_optimizer r = wf_optimizer_from_gradients(g, &grad, wf_constant(g, 2), NULL, &w, 1, &o);
    wf_tensor *feed[] = { grad, r.rates };
    wf_plan *p = wf_plan_new(
        g, &(wf_plan_options){ .fetch = r.updates, .n_fetch = 1, .feed = feed, .n_feed = 2 });
    ck_assert(wf_feed_reals(p, grad, (double[]){ 1, -4 }, 2) &&
              wf_feed_reals(p, r.rates, (double[]){ 0.5, 1, 1 }, 3) && wf_run(p));
    double *have = leaf_values(w);
    ck_assert(have[0] == 0.75 && have[1] == 3);
    free(have), wf_plan_free(p), wf_optimizer_free(&r);
    end_graph(g);
}

/* ---- names, groups, frozen parameters -------------------------------------------------------- */

TEST(names_are_found_by_patterns) {
    const struct {
        const char *names, *name;
        bool fits;
    } rows[] = {
        { "a", "a", true },
        { "a", "ab", false },
        { "*", "", true },
        { "*", "encoder.bias", true },
        { "encoder.*", "encoder.0.weight", true },
        { "encoder.*", "encoders.0.weight", false },
        { "encoder.*", "encoder", false },
        { "*.bias", "encoder.0.bias", true },
        { "*.bias", "bias", false },
        { "*bias", "bias", true },
        { "*.bias", "a.biased", false },
        { "*.norm*.weight", "layers.3.norm2.weight", true },
        { "*.norm*.weight", "layers.3.linear.weight", false },
        { "*aab", "aaaab", true },
        { "a*b*c", "a.b.c.b.c", true },
        { "a*b*c", "a.b.c.b", false },
        { "a**b", "ab", true },
        { "", "", true },
        { "", "a", false },
        { "!encoder.*", "decoder.0.bias", true },
        { "!encoder.*", "encoder.0.bias", false },
        { "!", "a", true },
        { "!*", "a", false },
    };
    for (int i = 0; i < COUNT_OF(rows); i++)
        ck_assert_msg(wf_name_fits(rows[i].names, rows[i].name) == rows[i].fits, "'%s' and '%s'",
                      rows[i].names, rows[i].name);
    ck_assert(!wf_name_fits(NULL, "a") && !wf_name_fits("a", NULL));
}

/* Parameters that are not in the optimizer's list keep their values, and have no moments. */
TEST(parameters_left_out_are_frozen) {
    const wf_optimizer_options o = wf_optimizer_defaults(WF_ADAM);
    regression r;
    open_regression(&r, WF_F64);
    wf_tensor *params[4];
    ck_assert_int_eq(wf_parameters(r.g, "layer.*", NULL, 0), 2);
    ck_assert_int_eq(wf_parameters(r.g, "!layer.*", params, 4), 2); /* x and y */
    ck_assert_int_eq(wf_parameters(r.g, "*.bias", params, 4), 1);
    ck_assert_ptr_eq(params[0], r.b);
    r.o = wf_optimizer_new(r.g, r.loss, wf_constant(r.g, 1), params, 1, &o);
    r.p = wf_plan_new(
        r.g,
        &(wf_plan_options){ .fetch = r.o.updates, .n_fetch = 1, .feed = &r.o.rates, .n_feed = 1 });
    take_steps(&r, &o);
    double v[W], *w = leaf_values(r.w), *b = leaf_values(r.b);
    ck_assert_mem_eq(w, wave(W, 0.3, v), sizeof v);
    ck_assert(b[0] != wave(B, 0.9, v)[0]);
    ck_assert_ptr_null(wf_find(r.g, "optimizer.layer.weight.m"));
    free(w), free(b);
    close_regression(&r);
}

/* A parameter belongs to the first group whose pattern matches its name. Without a group it has the
 * rates of the options. */
TEST(the_first_group_counts) {
    const wf_parameter_group groups[] = { { "*.weight", 0.5, 0.1 }, { "layer.*", 0.25, 0 } };
    wf_optimizer_options o = { WF_SGD, .weight_decay = 9, .groups = groups, .n_groups = 2 };
    regression r;
    open_regression(&r, WF_F64);
    wf_tensor *zero = wf_fill(r.w, 0), *ones = wf_fill(r.b, 1);
    r.o = wf_optimizer_from_gradients(r.g, (wf_tensor *[]){ zero, ones }, wf_constant(r.g, 1), NULL,
                                      (wf_tensor *[]){ r.w, r.b }, 2, &o);
    open_plan(&r);
    ck_assert(wf_feed_reals(r.p, r.o.rates, (double[]){ 1, 1, 1 }, 3) && wf_run(r.p));
    double v[W], *w = leaf_values(r.w), *b = leaf_values(r.b);
    wave(W, 0.3, v);
    for (int i = 0; i < W; i++) ck_assert_double_eq_tol(w[i], v[i] * (1 - 0.5 * 0.1), 1e-15);
    wave(B, 0.9, v);
    for (int i = 0; i < B; i++) ck_assert_double_eq_tol(b[i], v[i] - 0.25, 1e-15);
    free(w), free(b);
    close_regression(&r);
}

static const struct {
    wf_optimizer_options o;
    const char *reason;
} unfit[] = {
    { { WF_SGD, GROUPS({ "encodr.*", 1, 0 }) }, "no parameter of this optimizer has a name like" },
    { { WF_SGD, GROUPS({ NULL, 1, 0 }) }, "no parameter" },
    { { WF_SGD, GROUPS({ "*.bias", 0, 0 }) }, "the rate of the group '*.bias' is 0" },
    { { WF_SGD, GROUPS({ "*", NAN, 0 }) }, "is nan, not above 0" },
    { { WF_SGD, GROUPS({ "*", 1, NAN }) }, "weight decay is not finite" },
    { { WF_SGD, .n_groups = 1 }, "groups are NULL" },
    { { WF_SGD, .nesterov = true }, "nesterov needs a momentum" },
    { { WF_SGD, .momentum = 0.9, .dampening = 1, .nesterov = true }, "no dampening" },
    { { .kind = WF_RMSPROP }, "eps is 0, not above 0 and finite; wf_optimizer_defaults" },
    { { .kind = WF_RMSPROP, .alpha = 1, .eps = 1 },
      "alpha is 1, not at least 0 and below 1; wf_optimizer_defaults" },
    { { .kind = WF_ADAGRAD }, "eps is 0, not above 0 and finite; wf_optimizer_defaults" },
    { { WF_LION, .beta1 = 1 }, "beta1 is 1" },
};

TEST_ROWS(unfit_numbers_poison_their_graph, COUNT_OF(unfit)) {
    regression r;
    open_regression(&r, WF_F32);
    wf_optimizer o = wf_optimizer_new(r.g, r.loss, wf_constant(r.g, 1), (wf_tensor *[]){ r.w, r.b },
                                      2, &unfit[_i].o);
    ck_assert(!wf_ok(r.g) && !o.updates && o.n == 0);
    assert_contains(wf_error(r.g), unfit[_i].reason);
    wf_graph_free(r.g);
}

TEST(gradients_that_do_not_fit_are_refused) {
    const wf_optimizer_options o = wf_optimizer_defaults(WF_LION);
    for (int way = 0; way < 3; way++) {
        regression r;
        open_regression(&r, WF_F32);
        wf_tensor *one = wf_constant(r.g, 1), *grads[] = { r.b, way == 0 ? r.w : NULL };
        wf_optimizer_from_gradients(r.g, way < 2 ? grads : NULL, one, NULL,
                                    (wf_tensor *[]){ r.w, r.b }, 2, &o);
        assert_contains(wf_error(r.g), way == 0   ? "the gradient is [3], the leaf [2,3]"
                                       : way == 1 ? "gradient 1 of an optimizer is NULL"
                                                  : "the gradients of an optimizer are NULL");
        wf_graph_free(r.g);
    }
}
