/* tests/core/record/test_flow.c - ops that pass no gradient: wf_grad fails with a message at them,
 * unless the program detached the tensor, or nobody would expect a gradient there. */
#include "ops/custom.h"
#include "tests/ops/op_cases.h"
#include "tests/suites.h"

TESTS(flow)

/* A function that records a loss of the parameters x [4] and w [4]. */
typedef struct flow_row {
    const char *name;
    wf_tensor *(*loss)(wf_tensor *x, wf_tensor *w);
    const char *error; /* the message of wf_grad; NULL: the loss has a gradient with respect to x */
    bool both;         /* the gradient with respect to w is asked for, too */
} flow_row;

static wf_tensor *sum(wf_tensor *x) {
    return wf_sum(x, WF_ALL_AXES, false);
}
static wf_tensor *zero(wf_tensor *x) {
    return wf_constant(x->graph, 0);
}
static wf_tensor *real(wf_tensor *x) {
    return wf_cast(x, wf_real(x->graph));
}
static wf_tensor *under(const char *scope, wf_tensor *x) {
    wf_scope(x->graph, scope);
    return x;
}

/* ---- refused --------------------------------------------------------------------------------- */

static wf_tensor *compared(wf_tensor *x, wf_tensor *w) {
    return sum(wf_greater(wf_mul(x, w), zero(x)));
}
static wf_tensor *scalar_compared(wf_tensor *x, wf_tensor *w) {
    return wf_less(sum(x), sum(w));
}
static wf_tensor *masked_by_product(wf_tensor *x, wf_tensor *w) {
    return sum(wf_mul(w, wf_greater(x, zero(x))));
}
/* relu as it is often written, x (x > 0): its value is right, but its derivative only if the mask
 * x > 0 contributes nothing to it. */
static wf_tensor *relu_by_product(wf_tensor *x, wf_tensor *w) {
    return sum(wf_mul(wf_mul(x, w), wf_greater(x, zero(x))));
}
static wf_tensor *argmax_as_number(wf_tensor *x, wf_tensor *w) {
    return wf_add(real(wf_argmax(wf_exp(x), -1)), sum(wf_mul(x, w)));
}
static wf_tensor *accuracy(wf_tensor *x, wf_tensor *w) {
    wf_tensor *rows = wf_unsqueeze(wf_mul(x, w), WF_AXIS(0)); /* [1, 4] */
    return wf_mean(wf_equal(wf_argmax(rows, -1), wf_cast(wf_slice(w, 0, 0, 1), WF_I32)),
                   WF_ALL_AXES, false);
}
static wf_tensor *rounded(wf_tensor *x, wf_tensor *w) {
    return sum(wf_mul(real(wf_cast(wf_scale(x, 8), WF_I32)), w));
}
static wf_tensor *reshaped_ids(wf_tensor *x, wf_tensor *w) {
    wf_tensor *ids = wf_reshape(wf_cast(x, WF_I32), SHAPE(2, 2));
    return sum(wf_mul(real(ids), wf_reshape(w, SHAPE(2, 2))));
}
static wf_tensor *only_as_a_mask(wf_tensor *x, wf_tensor *w) {
    return sum(wf_where(wf_greater(x, zero(x)), w, zero(x)));
}
static wf_tensor *picked(wf_tensor *x, wf_tensor *id) {
    return wf_squeeze(wf_gather(x, 0, wf_unsqueeze(id, WF_AXIS(0))), WF_AXIS(0));
}
static wf_tensor *only_as_an_index(wf_tensor *x, wf_tensor *w) {
    return picked(w, wf_argmax(x, 0));
}
static wf_tensor *in_a_module(wf_tensor *x, wf_tensor *w) {
    wf_tensor *mask = wf_less(wf_mul(under("layers.3.gate", x), w), zero(x));
    return sum(wf_mul(mask, under("", w)));
}

/* ---- right ----------------------------------------------------------------------------------- */

static wf_tensor *detached(wf_tensor *x, wf_tensor *w) {
    return sum(wf_mul(wf_mul(x, w), wf_greater(wf_detach(x), zero(x))));
}
static wf_tensor *straight_through(wf_tensor *x, wf_tensor *w) {
    wf_tensor *rough = real(wf_cast(x, WF_I32));
    return sum(wf_mul(wf_add(x, wf_detach(wf_sub(rough, x))), w));
}
static wf_tensor *chosen(wf_tensor *x, wf_tensor *w) {
    return sum(wf_where(wf_greater(x, zero(x)), wf_mul(x, w), wf_square(x)));
}
static wf_tensor *largest(wf_tensor *x, wf_tensor *w) {
    wf_tensor *y = wf_mul(x, w);
    return picked(y, wf_argmax(y, 0));
}
static wf_tensor *masked_softmax(wf_tensor *x, wf_tensor *w) {
    wf_tensor *seen = wf_greater(x, wf_scale(w, -3));
    return sum(wf_mul(wf_masked_softmax(wf_mul(x, w), seen, false), w));
}
static wf_tensor *accuracy_beside(wf_tensor *x, wf_tensor *w) {
    accuracy(x, w);
    return sum(wf_square(wf_mul(x, w)));
}
static wf_tensor *counted_places(wf_tensor *x, wf_tensor *w) {
    wf_tensor *first = wf_less(wf_arange(x, 0), wf_cast(wf_constant(x->graph, 2), WF_I32));
    return sum(wf_mul(wf_mul(x, w), first));
}
static wf_tensor *kinks(wf_tensor *x, wf_tensor *w) {
    wf_tensor *y = wf_add(wf_relu(x), wf_abs(wf_mul(x, w)));
    return sum(wf_clamp(wf_maximum(y, wf_max(y, WF_AXIS(0), true)), -9, 9));
}
static wf_tensor *not_in_it(wf_tensor *x, wf_tensor *w) {
    wf_greater(x, w);
    return sum(wf_square(w));
}

#define REFUSED(name, op)                                                                          \
    { #name, name, op, false }
#define RIGHT(name)                                                                                \
    { #name, name, NULL, false }
static const flow_row rows[] = {
    REFUSED(compared, "greater: no gradient passes it towards 'x'"),
    REFUSED(scalar_compared, "less: no gradient passes it"),
    REFUSED(masked_by_product, "greater: no gradient passes it"),
    REFUSED(relu_by_product, "greater: no gradient passes it"),
    REFUSED(argmax_as_number, "argmax: no gradient passes it towards 'x'"),
    REFUSED(accuracy, "argmax: no gradient passes it"),
    REFUSED(rounded, "cast: no gradient passes it"),
    REFUSED(reshaped_ids, "cast: no gradient passes it"),
    REFUSED(only_as_a_mask, "greater: no gradient passes it towards 'x'"),
    REFUSED(only_as_an_index, "argmax: no gradient passes it towards 'x'"),
    REFUSED(in_a_module, "layers.3.gate: less: no gradient passes it towards 'x'"),
    { "only_as_a_mask, beside w", only_as_a_mask, "greater: no gradient", true },
    RIGHT(detached),
    RIGHT(straight_through),
    RIGHT(chosen),
    RIGHT(largest),
    RIGHT(masked_softmax),
    RIGHT(accuracy_beside),
    RIGHT(counted_places),
    RIGHT(kinks),
    RIGHT(not_in_it),
};

TEST_ROWS(no_gradient_is_zero_without_a_word, COUNT_OF(rows)) {
    const flow_row *r = &rows[_i];
    wf_graph *g = wf_graph_new(&(wf_graph_options){ .real = WF_F64 });
    wf_tensor *x = param_of(g, "x", SHAPE(4), (double[]){ 0.5, -1.25, 2.5, -0.75 }),
              *w = param_of(g, "w", SHAPE(4), (double[]){ 1.5, 0.75, 1.25, 2 }), *grads[2],
              *wrt[] = { x, w };
    wf_tensor *loss = r->loss(x, w);
    ck_assert_msg(wf_ok(g), "%s: %s", r->name, wf_error(g));
    bool ok = wf_grad(loss, wrt, 1 + r->both, grads);
    ck_assert_msg(ok == !r->error, "%s: %s", r->name, ok ? "no word" : wf_error(g));
    if (r->error) {
        assert_contains(wf_error(g), r->error);
        assert_contains(wf_error(g), "wf_detach");
    }
    wf_graph_free(g);
}

/* Losses that wf_grad accepts have the gradient that finite differences give. straight_through is
 * not among them: its gradient is not that of its value. */
TEST_ROWS(what_passes_is_right, 7) {
    static wf_tensor *(*const losses[])(wf_tensor *, wf_tensor *) = {
        detached, chosen, largest, masked_softmax, accuracy_beside, counted_places, kinks
    };
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x = param_of(g, "x", SHAPE(4), (double[]){ 0.5, -1.25, 2.5, -0.75 }),
              *w = param_of(g, "w", SHAPE(4), (double[]){ 1.5, 0.75, 1.25, 2 });
    char message[WF_MESSAGE];
    double error = wf_check_gradients(g, losses[_i](x, w), (wf_tensor *[]){ x, w }, 2, message);
    ck_assert_msg(error <= 1e-8, "%g: %s", error, message);
    end_graph(g);
}

/* The gradient rules of relu, abs and clamp record masks, whose derivative is zero: the gradient of
 * such a gradient is zero, and no error. */
TEST(a_gradient_of_a_gradient_may_be_zero) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x = param_of(g, "x", SHAPE(4), (double[]){ 0.5, -1.25, 2.5, -0.75 }), *dx, *ddx;
    wf_tensor *y = wf_add(wf_add(wf_relu(x), wf_abs(x)), wf_clamp(x, -1, 1));
    ck_assert(wf_grad(sum(y), &x, 1, &dx) && wf_grad(sum(wf_square(dx)), &x, 1, &ddx));
    values v[2];
    evaluate((wf_tensor *[]){ dx, ddx }, 2, 1, false, v);
    const double slope[] = { 3, -1, 2, 0 };
    for (int i = 0; i < 4; i++) ck_assert(v[0].data[i] == slope[i] && v[1].data[i] == 0);
    free_values(v, 2);
    end_graph(g);
}

/* wf_grad refuses every row of the table of ops whose op has no gradient because its value
 * jumps. */
TEST(rows_that_jump_are_refused) {
    int refused = 0;
    for (int i = 0; i < op_case_count; i++) {
        fixture f;
        fixture_open(&f, &op_cases[i], WF_F64, PLAIN);
        if (!f.row->update && f.n_wrt && refuses_gradients(f.y) && f.y->dtype == WF_F64) {
            ck_assert(!wf_grad(sum(f.y), f.wrt, f.n_wrt, f.grad));
            assert_contains(wf_error(f.g), f.y->op->name);
            assert_contains(wf_error(f.g), f.y->op->no_grad);
            refused++;
        }
        wf_graph_free(f.g);
    }
    ck_assert_int_ge(refused, 6);
}

/* wf_vjp fails with the same message as wf_grad, unless no result has a cotangent. */
TEST(cotangents_stop_with_a_word_too) {
    wf_graph *g = wf_graph_new(NULL);
    wf_tensor *x = wf_param(g, "x", SHAPE(4), wf_init_uniform(1)), *y = wf_less(x, zero(x));
    wf_tensor *dy = wf_fill(y, 1), *none = NULL, *dx;
    ck_assert(wf_vjp(&y, &none, 1, &x, 1, &dx) && !dx);
    ck_assert(!wf_vjp(&y, &dy, 1, &x, 1, &dx));
    assert_contains(wf_error(g), "less: no gradient passes it towards 'x'");
    wf_graph_free(g);
}

/* wf_grad also refuses an op of the program's own that says it has no gradient. */
WF_ELEMENTWISE(eval_floor, floor(x))

TEST(ops_of_a_program_are_asked_too) {
    static const wf_kernel run = { WF_ELEMENTWISE_RUN(eval_floor) };
    static const wf_op staircase = { .name = "staircase",
                                     .arity = 1,
                                     .shape = wf_same_as_operands,
                                     .no_grad = "it is flat between its steps",
                                     .run = &run };
    wf_graph *g = wf_graph_new(NULL);
    wf_tensor *x = wf_param(g, "x", SHAPE(4), wf_init_uniform(1)), *dx;
    ck_assert(!wf_grad(sum(wf_record(&staircase, 1, &x, NULL)), &x, 1, &dx));
    assert_contains(wf_error(g), "staircase: no gradient passes it towards 'x': it is flat");
    wf_graph_free(g);
}
