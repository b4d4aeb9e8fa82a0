/* tests/bench/bench_ops.c - every op, on operands of a middle size (bench_ops.inc), and
 * convolutions, pooling, running sums and sorting of several sizes.
 *
 * tests/ops/ops_peer.py runs the rows of the same names in PyTorch, alternating with these. A
 * convolution has a weight of 3 x 3 with as many channels as x, and pads x so that the image keeps
 * its size (at stride 1). Gradients of convolutions run without the forward op, from a random
 * dy. */
#include "core/graph_internal.h"
#include "developer_bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/ops.h"

static wf_tensor *weight_of(const wf_tensor *x) {
    int64_t C = x->shape[1];
    return wf_param(x->graph, "weight", 4, (int64_t[]){ C, C, 3, 3 }, wf_init_normal(1));
}

static wf_tensor *convolve(wf_tensor *x, wf_tensor *weight, int64_t stride) {
    return wf_conv2d(x, weight, NULL,
                     &(wf_conv_options){ .stride = { stride, stride }, .padding = { 1, 1 } });
}

static wf_tensor *conv2d(wf_tensor *x, int stride) {
    return convolve(x, weight_of(x), stride);
}

/* The gradient of y by `of`, from a random dy. */
static wf_tensor *pulled_back(wf_tensor *y, wf_tensor *of) {
    wf_tensor *dy = wf_param(y->graph, "dy", y->ndim, y->shape, wf_init_normal(1)), *dx = NULL;
    wf_vjp(&y, &dy, 1, &of, 1, &dx);
    return dx;
}

static wf_tensor *conv2d_dx(wf_tensor *x, int stride) {
    return pulled_back(convolve(x, weight_of(x), stride), x);
}

static wf_tensor *conv2d_dw(wf_tensor *x, int stride) {
    wf_tensor *weight = weight_of(x);
    return pulled_back(convolve(x, weight, stride), weight);
}

static const wf_pool_options pool_2x2 = { .kernel = { 2, 2 } };

static wf_tensor *max_pool2d(wf_tensor *x, int unused) {
    (void)unused;
    return wf_max_pool2d(x, &pool_2x2);
}

/* The gradient of max pooling. Its time includes the forward op, which finds the places of the
 * maxima. */
static wf_tensor *max_pool2d_dx(wf_tensor *x, int unused) {
    (void)unused;
    return pulled_back(wf_max_pool2d(x, &pool_2x2), x);
}

static wf_tensor *avg_pool2d(wf_tensor *x, int unused) {
    (void)unused;
    return wf_avg_pool2d(x, &pool_2x2);
}

static wf_tensor *cumsum(wf_tensor *x, int axis) {
    return wf_cumsum(x, axis, false);
}

static wf_tensor *sort(wf_tensor *x, int axis) {
    return wf_sort(x, axis, false).values;
}

static wf_tensor *topk(wf_tensor *x, int k) {
    return wf_topk(x, k, -1, true).values;
}

/* ---- every op -------------------------------------------------------------------------------- */

typedef struct operands {
    wf_tensor *x, *y, *p, *u, *m, *v, *w, *t, *a, *b, *k, *l, *t3, *c3, *ids, *rows, *labels;
} operands;

#define GRADIENT(y, of) pulled_back(y, of)
/* clang-format off: the rows name what they need */
#define OP(name, expression)                                                                       \
    static wf_tensor *record_##name(const operands *o) {                                           \
        wf_tensor *x = o->x, *y = o->y, *p = o->p, *u = o->u, *m = o->m, *v = o->v, *w = o->w;     \
        wf_tensor *t = o->t, *a = o->a, *b = o->b, *k = o->k, *l = o->l, *t3 = o->t3, *c3 = o->c3; \
        wf_tensor *ids = o->ids, *rows = o->rows, *labels = o->labels;                             \
        (void)x, (void)y, (void)p, (void)u, (void)m, (void)v, (void)w, (void)t, (void)a, (void)b;  \
        (void)k, (void)l, (void)t3, (void)c3, (void)ids, (void)rows, (void)labels;                 \
        return expression;                                                                         \
    }
/* clang-format on */
#include "bench_ops.inc"
#undef OP

static const struct {
    const char *name;
    wf_tensor *(*record)(const operands *o);
} every_op[] = {
#define OP(name, expression) { #name, record_##name },
#include "bench_ops.inc"
#undef OP
};

static wf_tensor *normal_leaf(wf_graph *g, const char *name, int ndim, const int64_t *shape) {
    return wf_param(g, name, ndim, shape, wf_init_normal(1));
}

/* Functions that make initial values. They are called only for rows that use the leaf. */

static int64_t count_of(int ndim, const int64_t *shape) {
    int64_t n = 1;
    for (int i = 0; i < ndim; i++) n *= shape[i];
    return n;
}

/* Element i is i * 7 modulo init->a. */
static void fill_ids(const wf_init *init, uint64_t key, wf_dtype type, int ndim,
                     const int64_t *shape, void *data) {
    int32_t *id = data;
    (void)key;
    (void)type;
    for (int64_t i = 0; i < count_of(ndim, shape); i++) id[i] = (int32_t)(i * 7 % (int64_t)init->a);
}

static void fill_normal(uint64_t key, wf_dtype type, int ndim, const int64_t *shape, void *data) {
    wf_init normal = wf_init_normal(1);
    normal.fill(&normal, key, type, ndim, shape, data);
}

/* |normal numbers| */
static void fill_positive(const wf_init *init, uint64_t key, wf_dtype type, int ndim,
                          const int64_t *shape, void *data) {
    float *value = data;
    (void)init;
    fill_normal(key, type, ndim, shape, data);
    for (int64_t i = 0; i < count_of(ndim, shape); i++) value[i] = fabsf(value[i]);
}

/* 1 and 0 at random */
static void fill_mask(const wf_init *init, uint64_t key, wf_dtype type, int ndim,
                      const int64_t *shape, void *data) {
    float *value = data;
    (void)init;
    fill_normal(key, type, ndim, shape, data);
    for (int64_t i = 0; i < count_of(ndim, shape); i++) value[i] = value[i] > 0;
}

static wf_tensor *ids_leaf(wf_graph *g, const char *name, int ndim, const int64_t *shape, int n) {
    return wf_buffer(g, name, WF_I32, ndim, shape, (wf_init){ .fill = fill_ids, .a = n });
}

static void open_operands(wf_graph *g, operands *o) {
    static const int64_t image[] = { 64, 32, 16, 16 }, table[] = { 4096, 256 },
                         square[] = { 256, 256 }, heads[] = { 8, 8, 128, 64 },
                         sound[] = { 16, 64, 512 }, filter[] = { 64, 64, 3 };
    o->x = normal_leaf(g, "x", 4, image);
    o->y = normal_leaf(g, "y", 4, image);
    o->p = wf_param(g, "p", 4, image, (wf_init){ .fill = fill_positive });
    o->m = wf_param(g, "m", 4, image, (wf_init){ .fill = fill_mask });
    o->u = wf_param(g, "u", 4, image, wf_init_uniform(0.99));
    o->v = normal_leaf(g, "v", 1, image + 3);
    o->w = normal_leaf(g, "w", 3, (int64_t[]){ 32, 1, 1 });
    o->t = normal_leaf(g, "t", 2, table);
    o->a = normal_leaf(g, "a", 2, square);
    o->b = normal_leaf(g, "b", 2, square);
    o->k = normal_leaf(g, "k", 4, heads);
    o->l = normal_leaf(g, "l", 4, heads);
    o->t3 = normal_leaf(g, "t3", 3, sound);
    o->c3 = normal_leaf(g, "c3", 3, filter);
    o->ids = ids_leaf(g, "ids", 4, image, 16);
    o->rows = ids_leaf(g, "rows", 1, table, 256);
    o->labels = ids_leaf(g, "labels", 1, table, 256);
}

/* ---- ops of several sizes -------------------------------------------------------------------- */

static const struct {
    const char *name;
    wf_tensor *(*make)(wf_tensor *x, int argument);
    int argument; /* a stride, an axis, or k */
    const char *argument_name;
} ops[] = {
    { "conv2d", conv2d, 1, "stride" },
    { "conv2d dx", conv2d_dx, 1, "stride" },
    { "conv2d dw", conv2d_dw, 1, "stride" },
    { "conv2d", conv2d, 2, "stride" },
    { "conv2d dx", conv2d_dx, 2, "stride" },
    { "conv2d dw", conv2d_dw, 2, "stride" },
    { "max_pool2d", max_pool2d, 2, "size" },
    { "max_pool2d dx", max_pool2d_dx, 2, "size" },
    { "avg_pool2d", avg_pool2d, 2, "size" },
    { "cumsum", cumsum, -1, "axis" },
    { "cumsum", cumsum, 0, "axis" },
    { "sort", sort, -1, "axis" },
    { "topk", topk, 1, "k" },
    { "topk", topk, 100, "k" },
};
enum { OPS = sizeof ops / sizeof *ops, IMAGE_OPS = 9 };

static const int64_t images[][4] = {
    { 8, 16, 28, 28 }, { 8, 32, 28, 28 }, { 8, 64, 28, 28 },
    { 8, 16, 56, 56 }, { 8, 32, 56, 56 }, { 8, 64, 56, 56 },
};
static const int64_t matrices[][2] = { { 1024, 1000 }, { 64, 32768 } };

/* Measures a plan that computes y, and frees the graph. */
static void measure_tensor(bench_settings *set, const char *name, wf_tensor *y, wf_graph *g,
                           wf_pool *pool) {
    if (!wf_ok(g)) fail(&bench_program, "%s", wf_error(g));
    wf_plan *plan = plan_of(g, (wf_plan_options){ .fetch = &y, .n_fetch = 1, .pool = pool });
    line l = { .name = name };
    if (!measure(set, run_plan, plan, &l.time)) fail(&bench_program, "%s", wf_plan_error(plan));
    work_of(plan, &l.flops, &l.bytes);
    double compute = at_peak(&l.time, l.flops), move = l.bytes / set->bandwidth;
    l.limit = compute > move ? compute : move;
    print_line(set, &l);
    wf_plan_free(plan);
    wf_graph_free(g);
}

static bool is_wanted(const bench_settings *set, const char *name) {
    return !set->name_prefix || strncmp(name, set->name_prefix, strlen(set->name_prefix)) == 0;
}

/* Measures the row, and returns 1, if it is wanted. Else returns 0. */
static int measure_row(bench_settings *set, size_t i, wf_pool *pool) {
    operands o;
    if (!is_wanted(set, every_op[i].name)) return 0;
    wf_graph *g = wf_graph_new(NULL);
    open_operands(g, &o);
    measure_tensor(set, every_op[i].name, every_op[i].record(&o), g, pool);
    return 1;
}

static int measure_op(bench_settings *set, int i, int ndim, const int64_t *shape, wf_pool *pool) {
    char name[80], shape_text[32];
    wf_shape_text(NULL, ndim, shape, shape_text, sizeof shape_text);
    snprintf(name, sizeof name, "%s %s %d %s", ops[i].name, ops[i].argument_name, ops[i].argument,
             shape_text);
    if (!is_wanted(set, name)) return 0;
    wf_graph *g = wf_graph_new(NULL);
    wf_tensor *y = ops[i].make(wf_param(g, "x", ndim, shape, wf_init_normal(1)), ops[i].argument);
    measure_tensor(set, name, y, g, pool);
    return 1;
}

void bench_ops(bench_settings *set) {
    wf_pool *pool = wf_pool_new((int)set->threads);
    int measured = 0;
    for (size_t i = 0; i < sizeof every_op / sizeof *every_op; i++)
        measured += measure_row(set, i, pool);
    for (int i = 0; i < IMAGE_OPS; i++)
        for (size_t k = 0; k < sizeof images / sizeof *images; k++)
            measured += measure_op(set, i, 4, images[k], pool);
    for (int i = IMAGE_OPS; i < OPS; i++)
        for (size_t k = 0; k < sizeof matrices / sizeof *matrices; k++)
            measured += measure_op(set, i, 2, matrices[k], pool);
    wf_pool_free(pool);
    if (!measured) fail(&bench_program, "no op's name begins with '%.60s'", set->name_prefix);
}
