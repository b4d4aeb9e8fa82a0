/* ops/norm/layer_norm.c - layer normalisation over the last axis (Ba, Kiros & Hinton 2016).
 *
 * y = (x - mean) * rstd * weight + bias, rstd = 1 / sqrt(variance + eps), biased variance. The mean
 * and rstd of every row are saved for the backward ops: dx row by row, dweight and dbias summed
 * over the rows. The layer with its parameters is nn/norm.c. */
#include <string.h>

#include "core/compose.h"
#include "core/op_internal.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/emit/loops.h"
#include "ops/reduce/reduce.h"
#include "rows.h"

typedef struct layer_norm_attrs {
    double eps;
} layer_norm_attrs;

/* ---- sums over rows (rows.h) ----------------------------------------------------------------- */

enum { SUM_COLUMNS = 1024 }; /* columns of a task that adds up blocks */

bool wf_plan_row_blocks(wf_call *c, int sums) {
    const wf_view *x = &c->in[0];
    int64_t rows, columns;
    wf_view_rows(x, &rows, &columns);
    return wf_shape_bytes(x->dtype, 3,
                          (int64_t[]){ wf_task_count(rows, WF_BLOCK_ROWS), sums, columns },
                          &c->work_bytes) ||
           wf_fail(c, "%s is too large", wf_show(c, x));
}

int64_t wf_row_block_tasks(const wf_call *c, int phase) {
    int64_t rows, columns;
    wf_view_rows(&c->in[0], &rows, &columns);
    return phase == 0   ? wf_task_count(rows, WF_BLOCK_ROWS)
           : phase == 1 ? wf_task_count(columns, SUM_COLUMNS)
                        : 0;
}

void wf_add_row_blocks(const wf_call *c, int first, int sums, int64_t task) {
    wf_view work = { .data = c->work, .dtype = c->in[0].dtype };
    int64_t rows, n, from, to;
    wf_view_rows(&c->in[0], &rows, &n);
    wf_task_range(n, SUM_COLUMNS, task, &from, &to);
    for (int k = 0; k < sums; k++) {
        void *sum = wf_at(&c->out[first + k], from);
        memset(sum, 0, (size_t)(to - from) * wf_dtype_size(work.dtype));
        for (int64_t block = 0; block < wf_task_count(rows, WF_BLOCK_ROWS); block++)
            WF_KERNEL(work.dtype,
                      accumulate(to - from, wf_at(&work, (sums * block + k) * n + from), sum));
    }
}

wf_tensor *wf_sum_over_rows(wf_tensor *x) {
    return wf_rank(x) == 1 ? x : wf_sum(x, wf_other_axes(wf_rank(x) - 1, wf_rank(x)), false);
}

/* ---- layer_norm: x [..., D], weight, bias [D] or none -> y [..., D], mean, rstd [...] -------- */

static bool shape_layer_norm(wf_call *c) {
    const wf_view *x = &c->in[0];
    double eps = ((const layer_norm_attrs *)c->attrs)->eps;
    if (x->ndim < 1) return wf_fail(c, "a scalar has no last axis");
    if (!(eps >= 0)) return wf_fail(c, "eps is %g, not 0 or more", eps);
    if (!wf_same_as_operand(c)) return false;
    for (int k = 1; k <= 2; k++) wf_set_shape(&c->out[k], x->dtype, x->ndim - 1, x->shape);
    int64_t columns = x->shape[x->ndim - 1];
    return wf_row_fits(c, 1, columns, "weight") && wf_row_fits(c, 2, columns, "bias");
}

static bool eval_layer_norm(const wf_call *c, int phase, int64_t task, void *scratch) {
    const layer_norm_attrs *a = c->attrs;
    const wf_view *x = &c->in[0], *y = &c->out[0], *mean = &c->out[1], *rstd = &c->out[2];
    int64_t n = x->shape[x->ndim - 1], from, to;
    (void)phase;
    (void)scratch;
    wf_row_range(c, task, &from, &to);
    WF_KERNEL(x->dtype,
              layer_norm_rows(to - from, n, wf_at(x, from * n), c->in[1].data, c->in[2].data,
                              a->eps, wf_at(y, from * n), wf_at(mean, from), wf_at(rstd, from)));
    return true;
}

static bool emit_layer_norm(wf_emitter *e, const wf_call *c) {
    const layer_norm_attrs *a = c->attrs;
    int64_t rows, n;
    wf_view_rows(&c->in[0], &rows, &n);
    wf_emit_result(e, 1, "mean");
    wf_emit_result(e, 2, "rstd");
    wf_emit_text(e, "for (int r = 0; r < %n; r++)\n", rows);
    wf_emit_text(e,
                 "layer_norm_row(%n, x + r * %n, %s, %s, %g, out + r * %n, mean + r, rstd + r);\n",
                 n, n, wf_emit_operand(e, 1), wf_emit_operand(e, 2), a->eps, n);
    return true;
}

static void grad_layer_norm(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    wf_tensor *x = y->in[0], *weight = y->in[1], *mean = y + 1, *rstd = y + 2;
    if (!dy[0]) return; /* mean and rstd are saved for the backward op; they have no gradient */
    if (need & 1)
        dx[0] = wf_record(&wf_op_layer_norm_backward, 5,
                          (wf_tensor *[]){ x, weight, mean, rstd, dy[0] }, y->attrs);
    if (need & 6) {
        dx[1] = wf_record(&wf_op_layer_norm_weight_backward, 4,
                          (wf_tensor *[]){ x, mean, rstd, dy[0] }, y->attrs);
        dx[2] = wf_result(dx[1], 1);
    }
}

/* (x - mean) / sqrt(variance + eps) */
static wf_tensor *normalised(wf_tensor *x, const layer_norm_attrs *a) {
    wf_tensor *centred = wf_sub(x, wf_mean(x, WF_LAST_AXIS, true));        /* [..., D] */
    wf_tensor *variance = wf_mean(wf_square(centred), WF_LAST_AXIS, true); /* [..., 1] */
    return wf_div(centred, wf_sqrt(wf_affine(variance, 1, a->eps)));
}

static void decompose_layer_norm(wf_tensor *y, wf_tensor **results) {
    results[0] = normalised(y->in[0], y->attrs);
    if (y->in[1]) results[0] = wf_mul(results[0], y->in[1]);
    if (y->in[2]) results[0] = wf_add(results[0], y->in[2]);
}

/* Shapes: x [..., D] real, weight and bias [D] or absent -> y as x; mean and rstd [...], for the
 * gradient.
 * Gradient: With h = (x - mean) rstd and g = dy weight, mean and rstd depend on x, too: dx = rstd
 * (g - mean(g) - h mean(g h)), means over the row (Ba, Kiros & Hinton 2016). dweight = sum(dy h)
 * and dbias = sum(dy), over all rows.
 * Limits: eps is 0 or more. A row of equal elements gives the bias, or with eps 0 NaN. Rows whose
 * squares overflow are scaled first. */
const wf_op wf_op_layer_norm = {
    .name = "layer_norm",
    .family = "norm",
    .formula =
        "layer_norm(x, weight, bias): (x - mean) / sqrt(variance + eps) weight + bias, over the "
        "last axis",
    .arity = 3,
    .results = 3,
    .attr_bytes = sizeof(layer_norm_attrs),
    .attributes = "double eps",
    .shape = shape_layer_norm,
    .grad = grad_layer_norm,
    .decompose = decompose_layer_norm,
    .optional = 1 << 1 | 1 << 2,
    .run = &(const wf_kernel){ .tasks = wf_row_tasks,
                               .eval = eval_layer_norm,
                               .in_place = 1 << 0,
                               .emit = emit_layer_norm },
};

static wf_tensor *over_rows(wf_tensor *x, wf_tensor *weight, wf_tensor *bias, double eps) {
    return wf_record(&wf_op_layer_norm, 3, (wf_tensor *[]){ x, weight, bias },
                     &(layer_norm_attrs){ eps });
}

/* Other axes than the last are merged into one last axis, and this is undone afterwards. */
wf_tensor *wf_layer_norm(wf_tensor *x, uint32_t axes, wf_tensor *weight, wf_tensor *bias,
                         double eps) {
    int ndim = wf_rank(x), kept = 0, order[WF_MAX_DIMS], inverse[WF_MAX_DIMS];
    axes = wf_axes(axes, ndim);
    if (axes == wf_axes(WF_LAST_AXIS, ndim)) return over_rows(x, weight, bias, eps);
    WF_COMPOSE("layer_norm", x, weight ? weight : x, bias ? bias : x);
    wf_tensor *merged = wf_merge_last("layer_norm", x, axes, &kept, order);
    if (!x || !wf_ok(x->graph)) return wf_composed(merged);
    if (kept == ndim) return wf_poison(x->graph, "layer_norm: over no axis");
    if (weight) weight = wf_flatten(weight, 0, -1);
    if (bias) bias = wf_flatten(bias, 0, -1);
    for (int i = 0; i < ndim; i++) inverse[order[i]] = i;
    wf_tensor *y = over_rows(merged, weight, bias, eps);
    return wf_composed(wf_permute(wf_reshape_like(y, wf_permute(x, order)), inverse));
}

/* ---- layer_norm_backward: x, weight or none, mean, rstd, dy -> dx ---------------------------- */

/* Let h = (x - mean) * rstd and g = dy * weight. Since mean and rstd depend on every x_j of the
 * row, the mean of g and its projection on h are subtracted: dx = rstd * (g - mean(g) - h * mean(g
 * * h)), as in batch normalisation, but along rows (Ioffe & Szegedy 2015, section 3). */
static bool shape_layer_norm_backward(wf_call *c) {
    const wf_view *x = &c->in[0];
    return wf_same_as_operand(c) && wf_want_like(c, 2, true, "mean") &&
           wf_want_like(c, 3, true, "rstd") && wf_want_like(c, 4, false, "dy") &&
           wf_row_fits(c, 1, x->shape[x->ndim - 1], "weight");
}

static bool eval_layer_norm_backward(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *x = &c->in[0], *mean = &c->in[2], *rstd = &c->in[3], *dy = &c->in[4],
                  *dx = &c->out[0];
    int64_t n = x->shape[x->ndim - 1], from, to;
    (void)phase;
    (void)scratch;
    wf_row_range(c, task, &from, &to);
    WF_KERNEL(x->dtype, layer_norm_backward_rows(to - from, n, wf_at(x, from * n), c->in[1].data,
                                                 wf_at(mean, from), wf_at(rstd, from),
                                                 wf_at(dy, from * n), wf_at(dx, from * n)));
    return true;
}

static bool emit_layer_norm_backward(wf_emitter *e, const wf_call *c) {
    int64_t rows, n;
    wf_view_rows(&c->in[0], &rows, &n);
    wf_emit_text(e, "for (int r = 0; r < %n; r++)\n", rows);
    wf_emit_text(e,
                 "layer_norm_backward_row(%n, x + r * %n, %s, mean[r], rstd[r], dy + r * %n, "
                 "out + r * %n);\n",
                 n, n, wf_emit_operand(e, 1), n, n);
    return true;
}

static void decompose_layer_norm_backward(wf_tensor *dx, wf_tensor **results) {
    wf_tensor *x = wf_alias(dx->in[0]), *weight = dx->in[1], *dy = dx->in[4],
              *y = normalised(x, dx->attrs);
    if (weight) y = wf_mul(y, weight);
    wf_vjp(&y, &dy, 1, &x, 1, results);
}

/* Shapes: x and dy [..., D], weight [D] or absent, mean and rstd [...] -> dx as x.
 * Gradient: It comes from the decomposition: the derivative of layer_norm written with sums and
 * products.
 * Limits: mean and rstd are those that layer_norm saved. */
const wf_op wf_op_layer_norm_backward = {
    .name = "layer_norm_backward",
    .family = "norm",
    .formula =
        "layer_norm_backward(x, weight, mean, rstd, dy): dx = rstd (g - mean(g) - n mean(g n)), "
        "with g = dy weight and n = (x - mean) rstd",
    .arity = 5,
    .attr_bytes = sizeof(layer_norm_attrs),
    .attributes = "double eps",
    .shape = shape_layer_norm_backward,
    .decompose = decompose_layer_norm_backward,
    .optional = 1 << 1,
    .run = &(const wf_kernel){ .tasks = wf_row_tasks,
                               .eval = eval_layer_norm_backward,
                               .in_place = 1 << 0 | 1 << 4,
                               .emit = emit_layer_norm_backward },
};

/* ---- layer_norm_weight_backward: x, mean, rstd, dy -> dweight [D], dbias [D] ----------------- */

/* y is linear in weight and bias: dweight = sum(dy * (x - mean) * rstd) and dbias = sum(dy) over
 * the rows. */
static bool shape_weight_backward(wf_call *c) {
    const wf_view *x = &c->in[0];
    int64_t rows, columns;
    wf_view_rows(x, &rows, &columns);
    if (!wf_want_real(c, 0) || !wf_want_like(c, 1, true, "mean") ||
        !wf_want_like(c, 2, true, "rstd") || !wf_want_like(c, 3, false, "dy"))
        return false;
    for (int k = 0; k < 2; k++) wf_set_shape(&c->out[k], x->dtype, 1, &columns);
    return true;
}

static bool plan_weight_backward(wf_call *c, void *plan) {
    (void)plan;
    return wf_plan_row_blocks(c, 2);
}

static void sum_rows_of_block(const wf_call *c, int64_t block) {
    const wf_view *x = &c->in[0], *mean = &c->in[1], *rstd = &c->in[2], *dy = &c->in[3];
    wf_view work = { .data = c->work, .dtype = x->dtype };
    int64_t rows, n, from, to;
    wf_view_rows(x, &rows, &n);
    wf_task_range(rows, WF_BLOCK_ROWS, block, &from, &to);
    if (n == 0) return;
    void *dweight = wf_at(&work, 2 * block * n), *dbias = wf_at(&work, (2 * block + 1) * n);
    memset(dweight, 0, 2 * (size_t)n * wf_dtype_size(x->dtype));
    WF_KERNEL(x->dtype,
              layer_norm_weight_rows(to - from, n, wf_at(x, from * n), wf_at(mean, from),
                                     wf_at(rstd, from), wf_at(dy, from * n), dweight, dbias));
}

static bool eval_weight_backward(const wf_call *c, int phase, int64_t task, void *scratch) {
    (void)scratch;
    if (phase == 0)
        sum_rows_of_block(c, task);
    else
        wf_add_row_blocks(c, 0, 2, task);
    return true;
}

static bool emit_weight_backward(wf_emitter *e, const wf_call *c) {
    int64_t rows, n;
    wf_view_rows(&c->in[0], &rows, &n);
    wf_emit_result(e, 0, "dweight");
    wf_emit_result(e, 1, "dbias");
    wf_emit_block_begin(e, rows, WF_BLOCK_ROWS, n, 2);
    wf_emit_text(e, "for (int j = 0; j < %n; j++) {\n", n);
    wf_emit_text(e, "float g = dy[r * %n + j];\n", n);
    wf_emit_text(
        e, "scratch[j] = multiply_add(g, (x[r * %n + j] - mean[r]) * rstd[r], scratch[j]);\n", n);
    wf_emit_text(e, "scratch[%n + j] += g;\n}\n", n);
    wf_emit_block_end(e, n, 2);
    return true;
}

static void decompose_weight_backward(wf_tensor *dw, wf_tensor **results) {
    wf_tensor *x = dw->in[0], *dy = dw->in[3];
    results[0] = wf_sum_over_rows(wf_mul(dy, normalised(x, dw->attrs)));
    results[1] = wf_sum_over_rows(dy);
}

static double flops_weight_backward(const wf_call *c) {
    return 5.0 * (double)wf_view_count(&c->in[0]);
}

/* Shapes: x and dy [..., D], mean and rstd [...] -> dweight and dbias [D].
 * Gradient: The decomposition is differentiated instead of this op: dweight = sum(dy h) and
 * dbias = sum(dy) over the rows, where h is x normalised.
 * Limits: The rows are added in one order, whatever the number of threads. */
const wf_op wf_op_layer_norm_weight_backward = {
    .name = "layer_norm_weight_backward",
    .family = "norm",
    .formula = "layer_norm_weight_backward(x, mean, rstd, dy): dweight = sum(dy (x - mean) rstd), "
               "dbias = sum(dy), over the rows",
    .arity = 4,
    .results = 2,
    .attr_bytes = sizeof(layer_norm_attrs),
    .attributes = "double eps",
    .shape = shape_weight_backward,
    .decompose = decompose_weight_backward,
    .run = &(const wf_kernel){ .plan = plan_weight_backward,
                               .tasks = wf_row_block_tasks,
                               .eval = eval_weight_backward,
                               .emit = emit_weight_backward,
                               .flops = flops_weight_backward },
};
