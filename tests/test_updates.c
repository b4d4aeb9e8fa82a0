/* tests/test_updates.c - Adam's step within the products that make the gradient: which gradients
 * are made so, and that the bits are those of products, unslice and adam_step.
 *
 * Single products are rows of op_cases_training.inc; whole models are in test_steps.c. */
#include "suites.h"
#include "support.h"

enum { ROWS = 601, MAX_USES = 3 };

/* Steps [from, to) of an axis of the weight, or the whole weight, multiplied with something. */
typedef struct use {
    enum { NONE, PRODUCT, WHOLE, ELEMENTS, OWN } kind;
    int64_t from, to;
    int axis;
} use;

#define SLICE(from, to)                                                                            \
    { PRODUCT, from, to, 0 }

static const struct {
    const char *name;
    int64_t columns;
    int products; /* in one step; 0: the gradient is stored first */
    use uses[MAX_USES];
} sliced[] = {
    { "two", 257, 2, { SLICE(0, 200), SLICE(200, WF_END) } },
    { "two in another order", 257, 2, { SLICE(331, ROWS), SLICE(0, 331) } },
    { "two, columns are cut", 1030, 2, { SLICE(0, 69), SLICE(69, ROWS) } },
    { "all rows", 257, 1, { SLICE(0, WF_END) } },
    { "all rows, from the end", 257, 1, { SLICE(-ROWS, ROWS) } },
    { "three", 257, 0, { SLICE(0, 130), SLICE(130, 331), SLICE(331, ROWS) } },
    { "first row missing", 257, 0, { SLICE(1, 200), SLICE(200, ROWS) } },
    { "rows missing", 257, 0, { SLICE(0, 200), SLICE(201, ROWS) } },
    { "last row missing", 257, 0, { SLICE(0, 200), SLICE(200, ROWS - 1) } },
    { "overlap", 257, 0, { SLICE(0, 201), SLICE(200, ROWS) } },
    { "rows twice", 257, 0, { SLICE(0, 200), SLICE(200, ROWS), SLICE(0, 200) } },
    { "the whole too", 257, 0, { SLICE(0, 200), SLICE(200, ROWS), { .kind = WHOLE } } },
    { "the whole first", 257, 0, { { .kind = WHOLE }, SLICE(0, 200), SLICE(200, ROWS) } },
    { "all rows, and the whole", 257, 0, { SLICE(0, WF_END), { .kind = WHOLE } } },
    { "a small one", 257, 0, { SLICE(0, 120), SLICE(120, ROWS) } },
    { "no product", 257, 0, { SLICE(0, 200), { ELEMENTS, 200, ROWS, 0 } } },
    { "of each other", 257, 0, { { OWN, 0, 300, 0 } } },
    { "columns", ROWS, 0, { { PRODUCT, 0, 257, 1 }, { PRODUCT, 257, ROWS, 1 } } },
};

static wf_tensor *random_leaf(wf_graph *g, const char *name, int ndim, const int64_t *shape) {
    return wf_param(g, name, ndim, shape, wf_init_uniform(1));
}

static wf_tensor *used(wf_tensor *w, const use *u, int i) {
    wf_graph *g = w->graph;
    const int64_t depth[MAX_USES] = { 37, 1100, 250 }; /* the second in stretches */
    const char name[] = { 'x', (char)('0' + i), '\0' };
    wf_tensor *part = u->kind == WHOLE ? w : wf_slice(w, u->axis, u->from, u->to);
    if (u->kind == OWN) /* each half's gradient is a product with the other half */
        return wf_gemm(part, wf_slice(w, 0, u->to, WF_END), NULL, WF_TRANSPOSE_B);
    if (u->kind == ELEMENTS) return wf_mul(part, random_leaf(g, name, part->ndim, part->shape));
    return wf_gemm(random_leaf(g, name, SHAPE(depth[i], part->shape[1])), part, NULL,
                   WF_TRANSPOSE_B);
}

static wf_tensor *gradient_of(wf_tensor *w, const use *uses) {
    wf_tensor *y[MAX_USES], *dy[MAX_USES], *dw[1];
    int n = 0;
    for (; n < MAX_USES && uses[n].kind != NONE; n++) {
        const char name[] = { 'd', (char)('0' + n), '\0' };
        y[n] = used(w, &uses[n], n);
        dy[n] = random_leaf(w->graph, name, y[n]->ndim, y[n]->shape);
    }
    ck_assert(wf_vjp(y, dy, n, &w, 1, dw));
    return dw[0];
}

/* A weight and its moments; again: other leaves with the same numbers. */
static void open_leaves(wf_graph *g, bool again, int64_t columns, wf_tensor *leaf[3]) {
    static const char *const names[2][3] = { { "w", "m", "v" }, { "w2", "m2", "v2" } };
    int64_t n = ROWS * columns;
    double *data = malloc((size_t)n * sizeof *data);
    ck_assert_ptr_nonnull(data);
    for (int k = 0; k < 3; k++) {
        leaf[k] = random_leaf(g, names[again][k], SHAPE(ROWS, columns));
        for (int64_t i = 0; i < n; i++) data[i] = (float)(number((uint64_t)k, (uint64_t)i) + 0.01);
        ck_assert(write_doubles(leaf[k], data));
    }
    free(data);
}

static void perform(wf_tensor *const *updates, int n, int threads) {
    wf_pool *pool = wf_pool_new(threads);
    wf_plan *p = wf_plan_new(updates[0]->graph,
                             &(wf_plan_options){ .fetch = updates, .n_fetch = n, .pool = pool });
    ck_assert_msg(wf_plan_ok(p) && wf_run(p), "%s", wf_plan_error(p));
    wf_plan_free(p), wf_pool_free(pool);
}

static void expect_same_steps(int which, wf_dtype real, int threads) {
    wf_graph *g = new_graph(real);
    wf_tensor *fused[3], *apart[3], *updates[2];
    const wf_adam_options *adam = &(wf_adam_options){ 0.9, 0.98, 1e-8, 0.1, true };
    int64_t columns = sliced[which].columns;
    int products = sliced[which].products;
    open_leaves(g, false, columns, fused), open_leaves(g, true, columns, apart);
    wf_tensor *scale = wf_constant(g, 0.75), *dw = gradient_of(fused[0], sliced[which].uses);
    wf_tensor *rates = param_of(g, "rates", SHAPE(3), (double[]){ 0.01, 10, 50 });
    updates[0] = wf_adam_product_step(fused[0], fused[1], fused[2], dw, scale, rates, adam);
    updates[1] = wf_adam_step(apart[0], apart[1], apart[2], dw, scale, rates, adam);
    ck_assert_msg(wf_ok(g), "%s: %s", sliced[which].name, wf_error(g));
    ck_assert_str_eq(updates[0]->op->name, products ? "adam_product_step" : "adam_step");
    if (products) ck_assert_int_eq(updates[0]->n_in, 5 + 2 * products);
    perform(updates, 2, threads);
    for (int k = 0; k < 3; k++) {
        values v[2] = { { ROWS * columns, leaf_values(fused[k]) },
                        { ROWS * columns, leaf_values(apart[k]) } };
        ck_assert_msg(same_bits(v[0], v[1]), "%s: %s differs on %d threads", sliced[which].name,
                      fused[k]->name, threads);
        free_values(v, 2);
    }
    end_graph(g);
}

START_TEST(steps_within_products_have_the_bits_of_those_apart) {
    for (wf_dtype real = WF_F32; real <= WF_F64; real++)
        for (int threads = 1; threads <= 5; threads += threads == 1 ? 1 : 3)
            expect_same_steps(_i, real, threads);
}
END_TEST

Suite *updates_suite(void) {
    Suite *s = suite_create("updates");
    TCase *c = tcase_create("updates");
    tcase_add_loop_test(c, steps_within_products_have_the_bits_of_those_apart, 0, COUNT_OF(sliced));
    suite_add_tcase(s, c);
    return s;
}
