/* tools/bench/bench_ops.c - ops that programs of their own are made of: convolutions, pooling,
 * running sums, sorting.
 *
 * A row is an op on one operand x, which is random. tests/ops/ops_peer.py runs the same rows in
 * PyTorch, by their names, in turns with these. Of a convolution the weight is 3 x 3 with as many
 * channels as x, padded to keep the image's size; its gradients are run alone, from a random dy. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

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

/* Forward, too: that is where the maxima are found. */
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

static void measure_op(bench_settings *set, int i, int ndim, const int64_t *shape, wf_pool *pool) {
    char name[80], shape_text[32];
    wf_graph *g = wf_graph_new(NULL);
    wf_tensor *y = ops[i].make(wf_param(g, "x", ndim, shape, wf_init_normal(1)), ops[i].argument);
    if (!wf_ok(g)) fail(&bench_program, "%s", wf_error(g));
    wf_shape_text(NULL, ndim, shape, shape_text, sizeof shape_text);
    snprintf(name, sizeof name, "%s %s %d %s", ops[i].name, ops[i].argument_name, ops[i].argument,
             shape_text);
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

void bench_ops(bench_settings *set) {
    wf_pool *pool = wf_pool_new((int)set->threads);
    for (int i = 0; i < IMAGE_OPS; i++)
        for (size_t k = 0; k < sizeof images / sizeof *images; k++)
            measure_op(set, i, 4, images[k], pool);
    for (int i = IMAGE_OPS; i < OPS; i++)
        for (size_t k = 0; k < sizeof matrices / sizeof *matrices; k++)
            measure_op(set, i, 2, matrices[k], pool);
    wf_pool_free(pool);
}
