/* tests/ops/test_gradients.c - every gradient of first and second order against finite differences;
 * and wf_check_gradients itself. Kinks, where differences say nothing, are in test_numbers.c.
 *
 * Bounds of the error, in f64: 1e-8 for first order, 1e-7 for second. For small operands the
 * gradient of each element is checked; for large ones only first order, as the slope along one
 * random direction. */
#include <stdio.h>

#include "op_cases.h"
#include "tests/suites.h"

TESTS(gradients)

#define FIRST_BOUND 1e-8
#define SECOND_BOUND 1e-7

/* ---- checks ---------------------------------------------------------------------------------- */

static double loss_along(fixture *f, wf_plan *p, double *const *base, double *const *way,
                         double t) {
    for (int i = 0; i < f->n_wrt; i++) {
        int64_t n = wf_count(f->wrt[i]);
        double *moved = malloc((size_t)n * sizeof *moved + 1), loss;
        ck_assert_ptr_nonnull(moved);
        for (int64_t k = 0; k < n; k++) moved[k] = base[i][k] + t * way[i][k];
        ck_assert(write_doubles(f->wrt[i], moved));
        free(moved);
        if (i < f->n_wrt - 1) continue;
        wf_random_step(p, 0, 0);
        ck_assert_msg(wf_run(p) && wf_fetch(p, f->loss, &loss, sizeof loss), "%s",
                      wf_plan_error(p));
        return loss;
    }
    return NAN;
}

/* Compares the slope of the loss along one random direction of length 3 with gradient . direction.
 * Returns the relative error. */
static double check_direction(fixture *f) {
    values grad[MAX_CASE_OPERANDS];
    double *base[MAX_CASE_OPERANDS], *way[MAX_CASE_OPERANDS], length = 0, a = 0, h = 1e-3;
    evaluate(f->grad, f->n_wrt, 1, f->row->random, grad);
    for (int i = 0; i < f->n_wrt; i++) {
        base[i] = leaf_values(f->wrt[i]),
        way[i] = malloc((size_t)grad[i].count * sizeof(double) + 1);
        ck_assert_ptr_nonnull(way[i]);
        for (int64_t k = 0; k < grad[i].count; k++) {
            way[i][k] = number(row_key(f->row, 200 + i), (uint64_t)k) - 0.5;
            length += way[i][k] * way[i][k];
        }
    }
    length = sqrt(length);
    for (int i = 0; i < f->n_wrt; i++)
        for (int64_t k = 0; k < grad[i].count; k++)
            way[i][k] *= 3 / length, a += grad[i].data[k] * way[i][k];
    wf_plan *p = wf_plan_new(
        f->g, &(wf_plan_options){ .fetch = &f->loss, .n_fetch = 1, .training = f->row->random });
    double n = 8 * (loss_along(f, p, base, way, h) - loss_along(f, p, base, way, -h));
    n = (n - (loss_along(f, p, base, way, 2 * h) - loss_along(f, p, base, way, -2 * h))) / (12 * h);
    wf_plan_free(p);
    for (int i = 0; i < f->n_wrt; i++) free(base[i]), free(way[i]), free(grad[i].data);
    return fabs(a - n) / fmax(1e-3, fmax(fabs(a), fabs(n)));
}

TEST_ROWS(first_order, op_case_count) {
    fixture f;
    char message[WF_MESSAGE] = "";
    fixture_open(&f, &op_cases[_i], WF_F64, PLAIN);
    if (fixture_differentiate(&f)) {
        double error = is_small(f.row) ? wf_check_gradients(f.g, f.loss, f.wrt, f.n_wrt, message)
                                       : check_direction(&f);
        tally_note(TALLY_FIRST_ORDER, error);
        ck_assert_msg(error <= FIRST_BOUND, "%s: error %g: %s", f.row->name, error, message);
    }
    fixture_close(&f);
}

/* A buffer of fixed random numbers as long as t. */
static wf_tensor *weights_like(const op_case *row, const wf_tensor *t, int salt) {
    char name[32];
    snprintf(name, sizeof name, "weights%d", salt);
    int64_t n = wf_count(t);
    double *data = malloc((size_t)n * sizeof *data + 1);
    ck_assert_ptr_nonnull(data);
    for (int64_t k = 0; k < n; k++) data[k] = number(row_key(row, 300 + salt), (uint64_t)k) - 0.4;
    wf_tensor *w = wf_buffer(t->graph, name, WF_F64, t->ndim, t->shape, wf_init_zeros());
    ck_assert_msg(write_doubles(w, data), "%s", wf_error(t->graph));
    free(data);
    return w;
}

/* sum over i of w_i . grad_i: a loss whose gradient needs every second derivative. */
static wf_tensor *weighted_gradients(const fixture *f) {
    wf_tensor *total = NULL;
    for (int i = 0; i < f->n_wrt; i++) {
        wf_tensor *w = weights_like(f->row, f->grad[i], i);
        wf_tensor *part = wf_sum(wf_mul(w, f->grad[i]), WF_ALL_AXES, false);
        total = total ? wf_add(total, part) : part;
    }
    return total;
}

TEST_ROWS(second_order, op_case_count) {
    fixture f;
    char message[WF_MESSAGE] = "";
    fixture_open(&f, &op_cases[_i], WF_F64, PLAIN);
    if (is_small(f.row) && fixture_differentiate(&f)) {
        wf_tensor *loss = weighted_gradients(&f);
        double error = wf_check_gradients(f.g, loss, f.wrt, f.n_wrt, message);
        tally_note(TALLY_SECOND_ORDER, error);
        ck_assert_msg(error <= SECOND_BOUND, "%s: error %g: %s", f.row->name, error, message);
    }
    fixture_close(&f);
}

/* A gradient rule is told which operands need a gradient: that of one operand alone must be the
 * same as together with the others. */
TEST_ROWS(each_operand_alone, op_case_count) {
    fixture f;
    fixture_open(&f, &op_cases[_i], WF_F64, PLAIN);
    if (fixture_differentiate(&f)) {
        for (int i = 0; i < f.n_wrt; i++) {
            wf_tensor *alone;
            values v[2];
            ck_assert_msg(wf_grad(f.loss, &f.wrt[i], 1, &alone), "%s", wf_error(f.g));
            evaluate((wf_tensor *[]){ alone, f.grad[i] }, 2, 1, f.row->random, v);
            ck_assert_msg(distance(v[0], v[1]) <= 1e-14, "%s: operand %d alone differs by %g",
                          f.row->name, i, distance(v[0], v[1]));
            free_values(v, 2);
        }
    }
    fixture_close(&f);
}

/* The row's op recorded twice on the same operands, weighted 1 and -3: the contributions sum to -2
 * times one of them. */
TEST_ROWS(used_twice_gets_both_shares, op_case_count) {
    fixture f;
    fixture_open(&f, &op_cases[_i], WF_F64, PLAIN);
    if (!f.row->random && fixture_differentiate(&f)) {
        wf_tensor *again = wf_mul(f.weight, wf_scale(f.row->build(f.x), -3)),
                  *both[MAX_CASE_OPERANDS];
        wf_tensor *loss = wf_add(f.loss, wf_sum(again, WF_ALL_AXES, false));
        ck_assert_msg(wf_grad(loss, f.wrt, f.n_wrt, both), "%s", wf_error(f.g));
        for (int i = 0; i < f.n_wrt; i++) {
            values v[2];
            evaluate((wf_tensor *[]){ both[i], wf_scale(f.grad[i], -2) }, 2, 1, false, v);
            ck_assert_msg(distance(v[0], v[1]) <= 1e-13, "%s: operand %d: %g", f.row->name, i,
                          distance(v[0], v[1]));
            free_values(v, 2);
        }
    }
    fixture_close(&f);
}

/* ---- rows with everything masked ------------------------------------------------------------- */

/* If all keys of a row are masked, or no label counts, gradients are exactly zero and not NaN. */
static wf_tensor *softmax_shut(wf_tensor *x) {
    return wf_masked_softmax(x, wf_fill(x, 0), false);
}
static wf_tensor *attention_shut(wf_tensor *x) {
    wf_tensor *q = wf_reshape(x, 3, (int64_t[]){ 1, 2, 2 });
    return wf_attention(q, q, q, wf_fill(q, 0), NULL);
}
static wf_tensor *loss_of_nothing(wf_tensor *x) {
    wf_tensor *labels = wf_cast(wf_fill(wf_slice(x, 0, 0, 2), 0), WF_I32);
    return wf_cross_entropy(wf_reshape(x, 2, (int64_t[]){ 2, 2 }), labels, 0.1, 0).loss;
}
static wf_tensor *(*const nothing[])(wf_tensor *) = { softmax_shut, attention_shut,
                                                      loss_of_nothing };

TEST_ROWS(nothing_to_see_gives_zero, COUNT_OF(nothing)) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x = param_of(g, "x", SHAPE(4), (double[]){ 1, 2, 3, 4 }), *dx;
    values v[2];
    wf_tensor *y = nothing[_i](x);
    wf_grad(wf_sum(y, WF_ALL_AXES, false), &x, 1, &dx);
    evaluate((wf_tensor *[]){ y, dx }, 2, 1, false, v);
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < v[k].count; i++) ck_assert_double_eq(v[k].data[i], 0);
    free_values(v, 2);
    end_graph(g);
}

/* ---- the checker is itself checked: wrong rules must not pass -------------------------------- */

static const wf_op *honest; /* the op that a mutant was copied from */

/* The gradients that the correct op gives to the operands in `need` (all different tensors). */
static void honest_shares(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    wf_tensor *twin = wf_record(honest, y->n_in, y->in, y->attrs);
    wf_tensor *results[WF_MAX_RESULTS], *x[WF_MAX_OPERANDS], *grads[WF_MAX_OPERANDS];
    int place[WF_MAX_OPERANDS], n = 0, n_results = honest->results ? honest->results : 1;
    for (int k = 0; k < n_results; k++) results[k] = twin + k;
    for (int i = 0; i < y->n_in; i++)
        if (need >> i & 1) place[n] = i, x[n++] = y->in[i];
    wf_vjp(results, dy, n_results, x, n, grads);
    for (int i = 0; i < n; i++) dx[place[i]] = grads[i];
}

static void change(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need,
                   double factor) {
    honest_shares(y, dy, dx, need);
    for (int i = 0; i < y->n_in; i++)
        if ((need >> i & 1) && dx[i]) dx[i] = wf_scale(dx[i], factor);
}

static void right(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    change(y, dy, dx, need, 1);
}
static void scaled(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    change(y, dy, dx, need, 1.001);
}
static void turned(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    change(y, dy, dx, need, -1);
}
static void silent(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)dy, (void)need;
    for (int i = 0; i < y->n_in; i++) dx[i] = NULL;
}
static void not_a_number(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    change(y, dy, dx, need, NAN);
}
/* A wrong gradient: the right one plus 1e-6. */
static void shifted(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    honest_shares(y, dy, dx, need);
    for (int i = 0; i < y->n_in; i++)
        if ((need >> i & 1) && dx[i]) dx[i] = wf_affine(dx[i], 1, 1e-6);
}

static void (*const mutants[])(wf_tensor *, wf_tensor *const *, wf_tensor **,
                               uint32_t) = { right, scaled, turned, silent, not_a_number, shifted };
static const char *const mutated[] = { "softmax",        "layer_norm",    "relu", "matmul",
                                       "attention",      "cross_entropy", "gelu", "embedding",
                                       "softmax_causal", "log_softmax" };

static const op_case *find_row(const char *name) {
    for (int i = 0; i < op_case_count; i++)
        if (strcmp(op_cases[i].name, name) == 0) return &op_cases[i];
    ck_abort_msg("no row is called %s", name);
    return NULL;
}

TEST_ROWS(wrong_gradients_are_found, COUNT_OF(mutated) * COUNT_OF(mutants)) {
    const op_case *row = find_row(mutated[_i / COUNT_OF(mutants)]);
    int which = _i % COUNT_OF(mutants);
    fixture f;
    char message[WF_MESSAGE] = "";
    fixture_open(&f, row, WF_F64, PLAIN);
    honest = f.y->op;
    wf_op mutant = *honest;
    mutant.name = "mutant", mutant.grad = mutants[which], mutant.decompose = NULL,
    mutant.no_grad = NULL;
    f.y = wf_record(&mutant, f.y->n_in, f.y->in, f.y->attrs);
    ck_assert(fixture_differentiate(&f));
    double error = wf_check_gradients(f.g, f.loss, f.wrt, f.n_wrt, message);
    if (which == 0)
        ck_assert_msg(error <= FIRST_BOUND, "%s copied: %g: %s", row->name, error, message);
    else
        ck_assert_msg(!(error <= 1e-4 * (which == 5 ? 1e-3 : 1)), "%s, mutant %d passes with %g",
                      row->name, which, error);
    fixture_close(&f);
}

/* Functions at large values x. softmax, logsumexp and sin change when x changes by 1, the square by
 * a large amount. The checker must accept the right gradient of each and, where x is below 1e9,
 * find a wrong one. */
static wf_tensor *at_large(int which, wf_tensor *x, wf_tensor *weights) {
    wf_tensor *y = which == 0   ? wf_softmax(x, -1)
                   : which == 1 ? wf_logsumexp(x, WF_AXIS(1), false)
                   : which == 2 ? wf_square(x)
                   : which == 3 ? wf_log_softmax(x, -1)
                                : wf_sin(x);
    if (which == 1) return wf_sum(y, WF_ALL_AXES, false);
    return wf_sum(wf_mul(y, weights), WF_ALL_AXES, false);
}

TEST_ROWS(the_checker_is_right_at_large_values, 5 * 3) {
    static const double offsets[] = { 1e3, 1e7, 1e9 };
    double offset = offsets[_i / 5], at[6], weights[6];
    char message[WF_MESSAGE] = "";
    for (int i = 0; i < 6; i++) at[i] = offset + 2 * number(31, (uint64_t)i);
    for (int i = 0; i < 6; i++) weights[i] = number(32, (uint64_t)i) - 0.5;
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x = param_of(g, "x", SHAPE(2, 3), at);
    wf_tensor *loss = at_large(_i % 5, x, param_of(g, "w", SHAPE(2, 3), weights));
    double error = wf_check_gradients(g, loss, &x, 1, message);
    ck_assert_msg(error <= FIRST_BOUND, "%d at %g: %g: %s", _i % 5, offset, error, message);
    if (offset < 1e9) {
        /* f(x) + 0.01 f(detached x) has the values of 1.01 f, but the gradient of f: a wrong one */
        wf_tensor *hidden = wf_scale(at_large(_i % 5, wf_detach(x), wf_find(g, "w")), 0.01);
        error = wf_check_gradients(g, wf_add(loss, hidden), &x, 1, message);
        ck_assert_msg(!(error <= 1e-3), "%d at %g: %g passes", _i % 5, offset, error);
    }
    end_graph(g);
}

/* Finite differences of a loss of 1e20 cannot show a gradient of 1: the checker returns NaN. */
TEST(the_checker_says_where_it_cannot_tell) {
    char message[WF_MESSAGE] = "";
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x = param_of(g, "x", SHAPE(1), (double[]){ 1 });
    wf_tensor *loss = wf_sum(wf_affine(x, 1, 1e20), WF_ALL_AXES, false);
    ck_assert(isnan(wf_check_gradients(g, loss, &x, 1, message)));
    assert_contains(message, "x[0]: the loss is too large for differences");
    end_graph(g);
}

/* Arguments that the checker rejects, with the reason. */
TEST(the_checker_says_why_not) {
    char message[WF_MESSAGE];
    wf_graph *g = new_graph(WF_F64), *narrow = new_graph(WF_F32);
    wf_tensor *x = param_of(g, "x", SHAPE(2), (double[]){ 1, 2 }),
              *w = wf_param(narrow, "w", SCALAR, wf_init_zeros());
    wf_tensor *in = wf_input(g, "in", WF_F64, SHAPE(2)), *vector = wf_mul(x, x);
    wf_tensor *fed = wf_sum(wf_mul(x, in), WF_ALL_AXES, false);
    ck_assert(isnan(wf_check_gradients(NULL, NULL, NULL, 0, message)));
    ck_assert(isnan(wf_check_gradients(narrow, w, &w, 1, message)));
    assert_contains(message, "f64");
    ck_assert(isnan(wf_check_gradients(g, fed, &x, 1, message)));
    assert_contains(message, "in");
    ck_assert(isnan(wf_check_gradients(g, fed, &vector, 1, message)));
    assert_contains(message, "not a parameter");
    ck_assert(isnan(wf_check_gradients(g, fed, NULL, 1, message)));
    ck_assert(isnan(wf_check_gradients(g, fed, &x, 0, NULL)));
    ck_assert(isnan(
        wf_check_gradients(g, wf_sum(wf_log(wf_neg(x)), WF_ALL_AXES, false), &x, 1, message)));
    wf_graph_free(g), wf_graph_free(narrow);
}

/* After the check, the parameter that was changed for differences has its old bits. */
TEST(the_checker_leaves_no_trace) {
    wf_graph *g = new_graph(WF_F64);
    double before[3] = { 0.1, -0.7, 1e-9 }, after[3];
    wf_tensor *x = param_of(g, "x", SHAPE(3), before);
    ck_assert_double_le(wf_check_gradients(g, wf_sum(wf_tanh(x), WF_ALL_AXES, false), &x, 1, NULL),
                        1e-8);
    ck_assert(wf_read(x, after, sizeof after));
    ck_assert_mem_eq(before, after, sizeof before);
    end_graph(g);
}

/* ---- whole expressions ----------------------------------------------------------------------- */

/* The loss of a small block: layer norm, causal attention, GELU, a residual, a product and
 * cross-entropy. */
static wf_tensor *block(wf_graph *g, wf_tensor **p) {
    double data[12];
    for (int i = 0; i < 12; i++) data[i] = 2 * number(11, (uint64_t)i) - 1;
    p[0] = param_of(g, "x", SHAPE(1, 3, 4), data), p[1] = param_of(g, "w", SHAPE(4, 3), data);
    p[2] = param_of(g, "gain", SHAPE(4), data + 3);
    wf_tensor *n = wf_layer_norm(p[0], WF_LAST_AXIS, p[2], NULL, 1e-5); /* [1, 3, 4] */
    wf_tensor *a = wf_attention(n, n, p[0], NULL, &(wf_attention_options){ .causal = true });
    wf_tensor *logits = wf_matmul(wf_add(p[0], wf_gelu(a)), p[1]); /* [1, 3, 3] */
    wf_tensor *labels = ids_of(g, "labels", SHAPE(1, 3), (int32_t[]){ 2, 0, 1 });
    return wf_cross_entropy(logits, labels, 0.1, 0).loss;
}

TEST(a_block_to_the_second_order) {
    wf_graph *g = new_graph(WF_F64);
    char message[WF_MESSAGE] = "";
    wf_tensor *p[3], *grad[3], *loss = block(g, p);
    double first = wf_check_gradients(g, loss, p, 3, message);
    tally_note(TALLY_FIRST_ORDER, first);
    ck_assert_msg(first <= FIRST_BOUND, "%g: %s", first, message);
    ck_assert_msg(wf_grad(loss, p, 3, grad), "%s", wf_error(g));
    wf_tensor *penalty =
        wf_add(wf_square_sum(grad[0]), wf_add(wf_square_sum(grad[1]), wf_square_sum(grad[2])));
    double second = wf_check_gradients(g, penalty, p, 3, message);
    tally_note(TALLY_SECOND_ORDER, second);
    ck_assert_msg(second <= SECOND_BOUND, "%g: %s", second, message);
    end_graph(g);
}

/* Queries, keys and values are slices of one product: their gradients are written into one tensor,
 * not padded with zeros and added. Slices that overlap, or count from the end, are added. */
TEST(slices_of_one_tensor_share_a_gradient) {
    static const struct {
        int64_t from[3], to[3];
        int operands; /* number of operands of the node that computes the gradient */
    } cuts[] = { { { 0, 2, 4 }, { 2, 4, 6 }, 5 },
                 { { 4, 0, 2 }, { WF_END, 2, 4 }, 5 },
                 { { 5, 1, 3 }, { 7, 3, 5 }, 5 },
                 { { 0, 1, 4 }, { 2, 3, 6 }, 3 },
                 { { 0, 2, -2 }, { 2, 4, WF_END }, 3 } };
    char message[WF_MESSAGE] = "";
    for (int i = 0; i < COUNT_OF(cuts); i++) {
        int64_t width = i == 2 ? 8 : 6;
        wf_graph *g = new_graph(WF_F64);
        wf_tensor *x = wf_param(g, "x", SHAPE(3, width), wf_init_normal(1)), *part[3], *grad;
        for (int k = 0; k < 3; k++) part[k] = wf_slice(x, 1, cuts[i].from[k], cuts[i].to[k]);
        wf_tensor *y = wf_mul(part[0], wf_mul(part[1], wf_square(part[2])));
        wf_tensor *loss = wf_sum(y, WF_ALL_AXES, false);
        ck_assert_msg(wf_check_gradients(g, loss, &x, 1, message) <= FIRST_BOUND, "%s", message);
        ck_assert_msg(wf_grad(loss, &x, 1, &grad), "%s", wf_error(g));
        wf_step last;
        wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = &grad, .n_fetch = 1 });
        ck_assert_msg(wf_step_at(p, wf_step_count(p) - 1, &last), "%s", wf_plan_error(p));
        ck_assert_str_eq(last.op->name, "unslice");
        ck_assert_int_eq(last.node->n_in, cuts[i].operands);
        wf_plan_free(p);
        double second = wf_check_gradients(g, wf_square_sum(grad), &x, 1, message);
        ck_assert_msg(second <= SECOND_BOUND, "%s", message);
        end_graph(g);
    }
}

/* x^5 differentiated five times: 120 at every point. */
TEST(any_order) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x = param_of(g, "x", SCALAR, (double[]){ 1.25 });
    wf_tensor *y = wf_mul(wf_square(wf_square(x)), x);
    for (int order = 0; order < 5; order++) ck_assert_msg(wf_grad(y, &x, 1, &y), "%s", wf_error(g));
    ck_assert_double_eq_tol(evaluate_scalar(y), 120, 1e-10);
    end_graph(g);
}
