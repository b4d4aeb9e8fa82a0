/* tests/core/record/test_graph.c - recording: nodes, names, extents, leaves, and gradients as
 * nodes.
 *
 * Not here: mistakes (test_errors.c), running what was recorded (test_plan.c), ops (test_ops.c). */
#include <stdio.h>

#include "core/graph_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(graph)

static wf_tensor *zeros(wf_graph *g, const char *name, int ndim, const int64_t *shape) {
    return wf_param(g, name, ndim, shape, wf_init_zeros());
}

static wf_tensor *total(wf_tensor *x) {
    return wf_sum(x, WF_ALL_AXES, false);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

TEST(a_node_can_be_read) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = zeros(g, "x", SHAPE(2, 3)), *y = wf_add(x, x);
    ck_assert_ptr_eq(y->graph, g);
    ck_assert_int_eq(y->kind, WF_COMPUTED);
    ck_assert_int_eq(x->kind, WF_PARAM);
    ck_assert_int_eq(y->dtype, WF_F32);
    ck_assert_int_eq(y->ndim, 2);
    ck_assert(y->shape[0] == 2 && y->shape[1] == 3);
    ck_assert_str_eq(y->op->name, "add");
    ck_assert_ptr_null(x->op);
    ck_assert(y->n_in == 2 && y->in[0] == x && y->in[1] == x);
    ck_assert_ptr_null(y->forward);
    ck_assert_int_gt(y->id, x->id);
    ck_assert_int_eq(wf_count(y), 6);
    ck_assert_uint_eq(wf_bytes(y), 24);
    for (int i = 0; i < wf_node_count(g); i++) ck_assert_int_eq(wf_node(g, i)->id, i);
    ck_assert_ptr_null(wf_node(g, -1));
    ck_assert_ptr_null(wf_node(g, wf_node_count(g)));
    end_graph(g);
}

TEST(nodes_stay_where_they_are) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *first = zeros(g, "x", SHAPE(2)), *x = first;
    for (int i = 0; i < 20000; i++) x = wf_neg(x);
    ck_assert_int_eq(wf_node_count(g), 20001);
    ck_assert_ptr_eq(wf_node(g, 0), first);
    ck_assert_ptr_eq(wf_node(g, 20000), x);
    ck_assert_str_eq(first->name, "x");
    end_graph(g);
}

TEST(recording_allocates_no_data) {
    wf_graph *g = new_graph(WF_F32);
    int64_t huge[] = { 1 << 20, 1 << 20, 1 << 10 }; /* 4 PB, if anyone touched it */
    wf_tensor *x = wf_param(g, "x", 3, huge, wf_init_normal(1));
    wf_relu(wf_matmul(x, wf_transpose(x, 1, 2)));
    end_graph(g);
}

/* ---- scopes and names ------------------------------------------------------------------------ */

TEST(scopes_name_what_is_recorded) {
    wf_graph *g = new_graph(WF_F32);
    const char *top = wf_scope(g, "decoder");
    ck_assert_str_eq(top, "");
    const char *decoder = wf_scope_push(g, "layers.0");
    ck_assert_str_eq(decoder, "decoder");
    wf_tensor *w = zeros(g, "weight", SHAPE(2)), *y = wf_neg(w);
    ck_assert_str_eq(w->name, "decoder.layers.0.weight");
    ck_assert_str_eq(y->name, "decoder.layers.0");
    wf_scope(g, decoder);
    ck_assert_str_eq(wf_neg(w)->name, "decoder");
    wf_scope(g, top);
    ck_assert_str_eq(wf_neg(w)->name, "");
    ck_assert_ptr_eq(wf_find(g, "decoder.layers.0.weight"), w);
    ck_assert_ptr_null(wf_find(g, "weight"));
    ck_assert_ptr_null(wf_find(g, "decoder.layers.0"));
    ck_assert_ptr_null(wf_find(g, NULL));
    end_graph(g);
}

TEST(gradients_keep_the_scope_of_their_forward) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = zeros(g, "x", SHAPE(2)), *dx;
    const char *top = wf_scope(g, "block");
    wf_tensor *y = wf_exp(x);
    wf_scope(g, top);
    wf_tensor *loss = total(y);
    int before = wf_node_count(g);
    ck_assert(wf_grad(loss, &x, 1, &dx));
    bool named = false;
    for (int i = before; i < wf_node_count(g); i++) {
        const wf_tensor *t = wf_node(g, i);
        ck_assert_msg(t->kind == WF_CONSTANT || t->forward != NULL, "node %d has no forward", i);
        named |= t->forward == y && strcmp(t->name, "block") == 0;
    }
    ck_assert_msg(named, "no gradient node says that it belongs to block");
    ck_assert_str_eq(wf_neg(x)->name, "");
    ck_assert_ptr_null(wf_neg(x)->forward);
    end_graph(g);
}

TEST(names_are_unique) {
    wf_graph *g = new_graph(WF_F32);
    zeros(g, "w", SHAPE(2));
    ck_assert_ptr_nonnull(wf_buffer(g, "w", WF_F32, SHAPE(2), wf_init_zeros()));
    ck_assert(!wf_ok(g));
    assert_contains(wf_error(g), "w");
    wf_graph_free(g);
}

/* wf_named gives a computed tensor a name, by which wf_find finds it. */
TEST(what_is_computed_can_be_named) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = zeros(g, "w", SHAPE(2));
    const char *top = wf_scope(g, "head");
    wf_tensor *y = wf_named(wf_exp(w), "probabilities"), *z = wf_neg(y);
    wf_scope(g, top);
    ck_assert_ptr_eq(wf_find(g, "head.probabilities"), y);
    ck_assert_str_eq(y->label, "head.probabilities");
    ck_assert_str_eq(y->name, "head"); /* still the module */
    ck_assert_ptr_null(z->label);
    ck_assert_ptr_eq(wf_named(y, "also"), y); /* found by both, shown by the first */
    ck_assert_ptr_eq(wf_named(y, "also"), y);
    ck_assert_ptr_eq(wf_find(g, "also"), y);
    ck_assert_str_eq(y->label, "head.probabilities");
    ck_assert_ptr_eq(wf_named(w, "alias"), w);
    ck_assert_ptr_eq(wf_find(g, "alias"), w);
    ck_assert_str_eq(w->name, "w");

    wf_tensor *found = wf_node(g, y->id); /* its type fits wf_plan_options without a cast */
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = &found, .n_fetch = 1 });
    ck_assert(wf_plan_ok(p) && wf_run(p));
    wf_bind(p, "none", 1);
    ck_assert_int_eq(wf_bound_shape(p, z, (int64_t[WF_MAX_DIMS]){ 0 }), -1);
    assert_contains(wf_plan_error(p), "'neg' is not in this plan");
    wf_named(z, "minus");
    ck_assert_int_eq(wf_bound_shape(p, z, (int64_t[WF_MAX_DIMS]){ 0 }), -1);
    assert_contains(wf_plan_error(p), "'minus' is not in this plan");
    wf_plan_free(p), end_graph(g);
}

static const struct {
    const char *first, *second; /* the names that two tensors are to have */
    bool leaf;                  /* the second is a leaf that is declared after the first is named */
    const char *says;
} taken[] = {
    { "a", "a", false, "'a' is the name of another tensor" },
    { "w", "a", false, "'w' is the name of another tensor" },
    { "a", "", false, "a tensor is named without a name" },
    { "a", NULL, false, "a tensor is named without a name" },
    { "a", "a", true, "'a' is declared twice" },
};

TEST_ROWS(names_of_tensors_are_unique, COUNT_OF(taken)) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = zeros(g, "w", SHAPE(2));
    wf_named(wf_exp(w), taken[_i].first);
    if (taken[_i].leaf)
        zeros(g, taken[_i].second, SHAPE(2));
    else
        wf_named(wf_neg(w), taken[_i].second);
    ck_assert_str_eq(wf_error(g), taken[_i].says);
    wf_graph_free(g);
}

/* ---- a hook for parameters ------------------------------------------------------------------- */

/* A hook that replaces a parameter W by W + A, where A is a new parameter. It returns NULL for the
 * parameter "same", and a tensor of another shape for "bad". */
static wf_tensor *hook(void *user, wf_tensor *param) {
    ++*(int *)user;
    wf_scope_push(param->graph, "forgotten"); /* the scope is set back by wf_param */
    wf_scope(param->graph, "beside");
    if (strcmp(param->name, "same") == 0) return NULL;
    if (strcmp(param->name, "bad") == 0) return wf_constant(param->graph, 1);
    return wf_add(param,
                  wf_param(param->graph, "a", param->ndim, param->shape, wf_init_constant(2)));
}

TEST(a_hook_gets_every_parameter) {
    wf_graph *g = new_graph(WF_F32);
    int calls = 0;
    wf_tensor *before = zeros(g, "before", SHAPE(2));
    wf_on_param(g, hook, &calls);
    wf_tensor *w = wf_param(g, "w", SHAPE(3), wf_init_constant(1));
    wf_tensor *same = zeros(g, "same", SHAPE(2));
    wf_buffer(g, "buffer", WF_F32, SHAPE(2), wf_init_zeros());
    wf_on_param(g, NULL, NULL);
    wf_tensor *after = zeros(g, "after", SHAPE(2));
    ck_assert_int_eq(calls, 2); /* not for what the hook declared itself */
    ck_assert(w->kind == WF_COMPUTED && same->kind == WF_PARAM && after->kind == WF_PARAM);
    ck_assert_str_eq(after->name, "after");
    ck_assert_double_eq(evaluate_scalar(wf_sum(w, WF_ALL_AXES, false)), 9);
    ck_assert(wf_from_hook(wf_find(g, "beside.a")));
    ck_assert(!wf_from_hook(wf_find(g, "w")) && !wf_from_hook(before) && !wf_from_hook(w));
    ck_assert(!wf_from_hook(after) && !wf_from_hook(same) && !wf_from_hook(NULL));
    end_graph(g);
}

static wf_tensor *foreign(void *user, wf_tensor *param) {
    (void)param;
    return user;
}

TEST(a_hook_keeps_the_shape) {
    wf_graph *g = new_graph(WF_F32), *other = new_graph(WF_F32);
    int calls = 0;
    wf_on_param(g, hook, &calls);
    zeros(g, "bad", SHAPE(2));
    ck_assert_str_eq(wf_error(g), "the hook of 'bad' returned [] f32 in place of [2] f32");
    wf_graph_free(g);
    g = wf_graph_new(NULL);
    wf_on_param(g, foreign, zeros(other, "x", SHAPE(2)));
    zeros(g, "w", SHAPE(2));
    ck_assert_str_eq(wf_error(g), "the hook of 'w' returned a tensor of another graph");
    wf_graph_free(g), end_graph(other);
}

/* ---- leaves ---------------------------------------------------------------------------------- */

TEST(leaves_are_written_and_read) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = zeros(g, "w", SHAPE(3)), *y = wf_neg(w),
              *in = wf_input(g, "i", WF_F32, SHAPE(3));
    wf_tensor *none = zeros(g, "none", SHAPE(0, 3));
    float data[3] = { 1, -2, 3 }, back[3] = { 9, 9, 9 };
    ck_assert(wf_read(w, back, sizeof back) && back[0] == 0 && back[2] == 0);
    ck_assert(wf_write(w, data, sizeof data) && wf_read(w, back, sizeof back));
    ck_assert_mem_eq(data, back, sizeof data);
    ck_assert(!wf_write(w, data, 8) && !wf_read(w, back, 16));
    ck_assert(!wf_write(w, NULL, 12) && !wf_read(w, NULL, 12));
    ck_assert(!wf_write(y, data, 12) && !wf_write(in, data, 12) && !wf_read(in, back, 12));
    ck_assert_uint_eq(wf_bytes(none), 0);
    ck_assert_uint_eq(wf_dtype_size(WF_F64), 8);
    ck_assert_str_eq(wf_dtype_name(WF_I32), "i32");
    end_graph(g);
}

static void mean_and_deviation(const double *x, int n, double *mean, double *std, double *least,
                               double *most) {
    double sum = 0, squares = 0;
    *least = *most = x[0];
    for (int i = 0; i < n; i++) {
        sum += x[i], squares += x[i] * x[i];
        *least = fmin(*least, x[i]), *most = fmax(*most, x[i]);
    }
    *mean = sum / n, *std = sqrt(squares / n - *mean * *mean);
}

TEST_ROWS(initial_values_have_their_distribution, 2) {
    enum { N = 40000 };
    wf_graph *g = new_graph(_i ? WF_F64 : WF_F32);
    double mean, std, least, most;
    double *x = leaf_values(wf_param(g, "uniform", SHAPE(200, 200), wf_init_uniform(0.5)));
    mean_and_deviation(x, N, &mean, &std, &least, &most);
    ck_assert(fabs(mean) < 0.01 && fabs(std - 0.5 / sqrt(3)) < 0.01);
    ck_assert(least >= -0.5 && most < 0.5 && least < -0.499 && most > 0.499);
    free(x);
    x = leaf_values(wf_param(g, "normal", SHAPE(N), wf_init_normal(2)));
    mean_and_deviation(x, N, &mean, &std, &least, &most);
    ck_assert(fabs(mean) < 0.05 && fabs(std - 2) < 0.04 && least < -6 && most > 6);
    free(x);
    x = leaf_values(wf_param(g, "constant", SHAPE(2, 2), wf_init_constant(1.5)));
    for (int i = 0; i < 4; i++) ck_assert_double_eq(x[i], 1.5);
    free(x);
    end_graph(g);
}

TEST(leaves_are_written_and_read_in_parts) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = wf_param(g, "w", SHAPE(2, 3), wf_init_constant(5));
    float x[] = { 1, 2 }, y[6], all[] = { 5, 5, 5, 1, 2, 5 };
    ck_assert(wf_write_part(w, 3, 2, x) && wf_read_part(w, 0, 6, y));
    ck_assert(memcmp(y, all, sizeof y) == 0);
    ck_assert(wf_read_part(w, 4, 2, y) && y[0] == 2 && y[1] == 5);
    ck_assert(wf_read_part(w, 6, 0, y) && wf_write_part(w, 6, 0, x));
    ck_assert(!wf_write_part(w, 5, 2, x) && !wf_write_part(w, -1, 1, x));
    ck_assert(!wf_read_part(w, 0, 7, y) && !wf_read_part(w, 0, -1, y) &&
              !wf_read_part(w, 0, 1, NULL));
    ck_assert(!wf_write_part(wf_constant(g, 1), 0, 1, x));
    ck_assert(!wf_read_part(wf_input(g, "x", WF_F32, SHAPE(3)), 0, 1, y));
    ck_assert(wf_set_layout(w, WF_PANELS) && !wf_read_part(w, 0, 1, y));
    end_graph(g);
}

/* Initial values depend on the graph's seed and the leaf's name alone: not on other leaves. */
TEST(initial_values_depend_on_seed_and_name) {
    double *x[4];
    for (int i = 0; i < 4; i++) {
        wf_graph *g = wf_graph_new(&(wf_graph_options){ .seed = i == 3 ? 8 : 7 });
        if (i == 1) free(leaf_values(wf_param(g, "before", SHAPE(5), wf_init_normal(1))));
        x[i] = leaf_values(wf_param(g, i == 2 ? "v" : "w", SHAPE(5), wf_init_normal(1)));
        end_graph(g);
    }
    ck_assert_mem_eq(x[0], x[1], 5 * sizeof(double));
    ck_assert(memcmp(x[0], x[2], 5 * sizeof(double)) != 0);
    ck_assert(memcmp(x[0], x[3], 5 * sizeof(double)) != 0);
    for (int i = 0; i < 4; i++) free(x[i]);
}

/* ---- extents --------------------------------------------------------------------------------- */

TEST(extents_stand_for_sizes) {
    wf_graph *g = new_graph(WF_F32);
    char text[64];
    int64_t B = wf_extent(g, "B", 64), T = wf_extent(g, "T", 100);
    ck_assert(B != T);
    ck_assert_int_eq(wf_extent(g, "B", 64), B);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(B, T, 8)), *w = zeros(g, "w", SHAPE(8, 3));
    wf_tensor *y = wf_matmul(x, w);
    ck_assert_str_eq(wf_shape_text(g, y->ndim, y->shape, text, sizeof text), "[B,T,3]");
    wf_tensor *z = wf_reshape(y, 2, (int64_t[]){ WF_REST, WF_KEEP });
    ck_assert_str_eq(wf_shape_text(g, z->ndim, z->shape, text, sizeof text), "[B*T,3]");
    ck_assert_str_eq(wf_shape_text(g, 0, NULL, text, sizeof text), "[]");
    ck_assert_str_eq(wf_shape_text(g, y->ndim, y->shape, text, 4), "[B,");
    wf_add(x, wf_input(g, "other", WF_F32, SHAPE(T, B, 8)));
    ck_assert(!wf_ok(g));
    assert_contains(wf_error(g), "[B,T,8]");
    assert_contains(wf_error(g), "[T,B,8]");
    wf_graph_free(g);
}

/* ---- gradients as nodes ---------------------------------------------------------------------- */

static int count_ops(const wf_graph *g, const char *name, int from) {
    int n = 0;
    for (int i = from; i < wf_node_count(g); i++)
        n += wf_node(g, i)->op && strcmp(wf_node(g, i)->op->name, name) == 0;
    return n;
}

TEST(only_what_is_needed_is_recorded) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = zeros(g, "x", SHAPE(3, 4)), *w = zeros(g, "w", SHAPE(4, 5)), *d[2];
    wf_tensor *aside = wf_exp(x), *loss = total(wf_matmul(x, w));
    (void)aside;
    int from = wf_node_count(g);
    ck_assert(wf_grad(loss, &w, 1, d));
    ck_assert_int_eq(count_ops(g, "matmul", from), 1);
    ck_assert_int_eq(count_ops(g, "exp", from), 0);
    from = wf_node_count(g);
    ck_assert(wf_grad(loss, (wf_tensor *[]){ x, w }, 2, d));
    ck_assert_int_eq(count_ops(g, "matmul", from), 2);
    end_graph(g);
}

TEST(what_does_not_matter_has_zero_gradient) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x = param_of(g, "x", SHAPE(2), (double[]){ 1, 2 }),
              *y = param_of(g, "y", SHAPE(3), (double[]){ 1, 2, 3 });
    wf_tensor *loss = total(wf_add(wf_square(x), wf_mul(wf_detach(x), x))), *d[3];
    values v[3];
    ck_assert(wf_grad(loss, (wf_tensor *[]){ x, y, loss }, 3, d));
    evaluate(d, 3, 1, false, v);
    ck_assert(v[0].data[0] == 3 && v[0].data[1] == 6);
    ck_assert(v[1].count == 3 && v[1].data[0] == 0 && v[1].data[2] == 0);
    ck_assert(v[2].count == 1 && v[2].data[0] == 1);
    free_values(v, 3);
    end_graph(g);
}

/* The list wrt of wf_grad may hold computed tensors, one that depends on another, and one twice. */
TEST(gradients_of_tensors_in_the_middle) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x = param_of(g, "x", SHAPE(2), (double[]){ 1, 2 }), *h = wf_scale(x, 3),
              *y = wf_square(h);
    wf_tensor *loss = total(y), *d[4];
    values v[4];
    ck_assert(wf_grad(loss, (wf_tensor *[]){ y, h, x, h }, 4, d));
    evaluate(d, 4, 1, false, v);
    ck_assert_double_eq(v[0].data[1], 1);
    ck_assert_double_eq(v[1].data[1], 12);
    ck_assert_double_eq(v[2].data[1], 36);
    ck_assert_double_eq(v[3].data[1], 12);
    free_values(v, 4);
    end_graph(g);
}

TEST(vjp_stops_at_x) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x = param_of(g, "x", SHAPE(2), (double[]){ 1, 2 }),
              *other = param_of(g, "o", SHAPE(2), (double[]){ 5, 7 });
    wf_tensor *h = wf_exp(x), *y = wf_mul(h, h),
              *w = param_of(g, "w", SHAPE(2), (double[]){ 1, -1 }), *d[2];
    int from = wf_node_count(g);
    ck_assert(wf_vjp(&y, &w, 1, (wf_tensor *[]){ h, other }, 2, d));
    ck_assert_ptr_null(d[1]);
    ck_assert_ptr_nonnull(d[0]);
    ck_assert_int_eq(count_ops(g, "exp", from), 0);
    values v;
    evaluate(d, 1, 1, false, &v);
    ck_assert_double_eq_tol(v.data[0], 2 * exp(1), 1e-14);
    ck_assert_double_eq_tol(v.data[1], -2 * exp(2), 1e-13);
    free_values(&v, 1);
    wf_tensor *none = NULL;
    ck_assert(wf_vjp(&y, &none, 1, &h, 1, d));
    ck_assert_ptr_null(d[0]);
    end_graph(g);
}

/* The gradient of a bias that is broadcast over a batch sums over the batch size that is bound. */
TEST(broadcasts_are_undone_at_the_bound_size) {
    wf_graph *g = new_graph(WF_F64);
    int64_t B = wf_extent(g, "B", 8);
    wf_tensor *x = wf_input(g, "x", WF_F64, SHAPE(B, 2)),
              *bias = param_of(g, "bias", SHAPE(2), (double[]){ 0, 0 }), *d;
    wf_tensor *loss = total(wf_mul(x, bias));
    double data[] = { 1, 2, 3, 4, 5, 6 }, out[2];
    ck_assert(wf_grad(loss, &bias, 1, &d));
    wf_plan *p =
        wf_plan_new(g, &(wf_plan_options){ .fetch = &d, .n_fetch = 1, .feed = &x, .n_feed = 1 });
    for (int64_t b = 1; b <= 3; b++) {
        ck_assert_msg(wf_bind(p, "B", b) && wf_feed(p, x, data, wf_bound_bytes(p, x)) &&
                          wf_run(p) && wf_fetch(p, d, out, wf_bound_bytes(p, d)),
                      "%s", wf_plan_error(p));
        ck_assert_double_eq(out[0], (double)(b * b));
        ck_assert_double_eq(out[1], (double)(b * b + b));
    }
    wf_plan_free(p);
    end_graph(g);
}

static void no_rule(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)y, (void)dy, (void)need;
    dx[0] = NULL;
}

/* A gradient rule that records nothing means zero; an op without a rule is an error that names
 * it. */
TEST(ops_of_a_program) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x = param_of(g, "x", SHAPE(2), (double[]){ 1, 2 }), *d;
    wf_op mine = *wf_exp(x)->op;
    mine.name = "mine", mine.grad = no_rule, mine.decompose = NULL;
    const void *attrs = wf_exp(x)->attrs;
    wf_tensor *y = wf_record(&mine, 1, &x, attrs);
    ck_assert(wf_grad(total(y), &x, 1, &d));
    values v;
    evaluate(&d, 1, 1, false, &v);
    ck_assert(v.data[0] == 0 && v.data[1] == 0);
    free_values(&v, 1);
    wf_op bare = mine;
    bare.name = "bare", bare.grad = NULL;
    ck_assert(!wf_grad(total(wf_record(&bare, 1, &x, attrs)), &x, 1, &d));
    assert_contains(wf_error(g), "bare");
    wf_graph_free(g);
}

TEST(operands_are_counted) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = zeros(g, "x", SHAPE(2)), *many[9] = { x, x, x, x, x, x, x, x, x };
    wf_record(wf_add(x, x)->op, 1, many, NULL);
    assert_contains(wf_error(g), "1 operands");
    wf_graph_free(g);
    g = new_graph(WF_F32);
    x = zeros(g, "x", SHAPE(2));
    wf_tensor *parts[WF_MAX_OPERANDS + 1]; /* more than a node has: it is composed of several */
    for (int i = 0; i <= WF_MAX_OPERANDS; i++) parts[i] = x;
    wf_tensor *whole = wf_concat(parts, WF_MAX_OPERANDS + 1, 0);
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    ck_assert_int_eq(whole->shape[0], 2 * (WF_MAX_OPERANDS + 1));
    wf_graph_free(g);
}

/* Writes i to every element of a leaf. */
static void write_all_as(wf_tensor *leaf, int i) {
    double *x = malloc((wf_bytes(leaf) + 1) * sizeof *x);
    for (int64_t k = 0; k < wf_count(leaf); k++) x[k] = i;
    ck_assert(write_doubles(leaf, x));
    free(x);
}

static void assert_all(const wf_tensor *leaf, int i) {
    double *x = leaf_values(leaf);
    int64_t same = 0;
    for (int64_t k = 0; k < wf_count(leaf); k++) same += x[k] == i;
    free(x);
    ck_assert_int_eq(same, wf_count(leaf));
}

/* Leaves of 0 elements to some MB, in mixed order. The layout of every third leaf is changed, so
 * that its memory is freed between that of other leaves, and used again. */
TEST(many_leaves_keep_their_values) {
    static const int64_t columns[] = { 1, 0, 17, 1000, 3, 65536, 64, 600000, 15, 16, 0, 300000 };
    enum { SIZES = COUNT_OF(columns), LEAVES = 8 * SIZES };
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w[LEAVES];
    char name[16];
    for (int i = 0; i < LEAVES; i++) {
        snprintf(name, sizeof name, "w%d", i);
        w[i] = wf_param(g, name, SHAPE(2, columns[i % SIZES]), wf_init_zeros());
        write_all_as(w[i], i);
        if (i >= 3 && i % 3 == 0) ck_assert(wf_set_layout(w[i - 3], WF_PANELS));
        if (i >= 6 && i % 6 == 0) ck_assert(wf_set_layout(w[i - 6], WF_ROW_MAJOR));
    }
    for (int i = 0; i < LEAVES; i++) assert_all(w[i], i);
    end_graph(g);
}

TEST(constants_are_read_and_not_written) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *c = wf_constant(g, 2.5);
    float value = 0;
    ck_assert(wf_read(c, &value, sizeof value));
    ck_assert(value == 2.5F);
    ck_assert(!wf_write(c, &(float){ 3 }, sizeof value));
    ck_assert(!wf_read(wf_neg(c), &value, sizeof value));
    end_graph(g);
}

TEST(version_is_stated) {
    ck_assert_str_eq(wf_version(), WF_VERSION);
}
