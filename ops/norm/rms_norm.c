/* ops/norm/rms_norm.c - RMS normalisation over the last axis (Zhang & Sennrich 2019).
 *
 * y = x * rstd * weight, rstd = 1 / sqrt(mean(x^2) + eps): layer_norm.c without mean and bias. The
 * rstd of every row is saved for the backward op, which computes dx and, in the same pass over x
 * and dy, dweight. */
#include <string.h>

#include "core/op_internal.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/emit/loops.h"
#include "rows.h"

typedef struct rms_norm_attrs {
    double eps;
} rms_norm_attrs;

/* ---- rms_norm: x [..., D], weight [D] or none -> y [..., D], rstd [...] ---------------------- */

static bool shape_rms_norm(wf_call *c) {
    const wf_view *x = &c->in[0];
    double eps = ((const rms_norm_attrs *)c->attrs)->eps;
    if (x->ndim < 1) return wf_fail(c, "a scalar has no last axis");
    if (!(eps >= 0)) return wf_fail(c, "eps is %g, not 0 or more", eps);
    if (!wf_same_as_operand(c)) return false;
    wf_set_shape(&c->out[1], x->dtype, x->ndim - 1, x->shape);
    return wf_row_fits(c, 1, x->shape[x->ndim - 1], "weight");
}

static bool eval_rms_norm(const wf_call *c, int phase, int64_t task, void *scratch) {
    const rms_norm_attrs *a = c->attrs;
    const wf_view *x = &c->in[0], *y = &c->out[0], *rstd = &c->out[1];
    int64_t n = x->shape[x->ndim - 1], from, to;
    (void)phase;
    (void)scratch;
    wf_row_range(c, task, &from, &to);
    WF_KERNEL(x->dtype, rms_norm_rows(to - from, n, wf_at(x, from * n), c->in[1].data, a->eps,
                                      wf_at(y, from * n), wf_at(rstd, from)));
    return true;
}

static bool emit_rms_norm(wf_emitter *e, const wf_call *c) {
    const rms_norm_attrs *a = c->attrs;
    int64_t rows, n;
    wf_view_rows(&c->in[0], &rows, &n);
    wf_emit_text(e, "for (int r = 0; r < %n; r++)\n", rows);
    wf_emit_result(e, 1, "rstd");
    wf_emit_text(e, "rms_norm_row(%n, x + r * %n, %s, %g, out + r * %n, rstd + r);\n", n, n,
                 wf_emit_operand(e, 1), a->eps, n);
    return true;
}

static void grad_rms_norm(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)need;
    if (!dy[0]) return; /* rstd is saved for the backward op; it has no gradient */
    wf_tensor *in[] = { y->in[0], y->in[1], y + 1, dy[0] };
    dx[0] = wf_record(&wf_op_rms_norm_backward, 4, in, y->attrs);
    dx[1] = wf_result(dx[0], 1);
}

/* x / sqrt(mean(x^2) + eps) */
static wf_tensor *normalised(wf_tensor *x, const rms_norm_attrs *a) {
    wf_tensor *mean = wf_mean(wf_square(x), WF_LAST_AXIS, true); /* [..., 1] */
    return wf_div(x, wf_sqrt(wf_affine(mean, 1, a->eps)));
}

static void decompose_rms_norm(wf_tensor *y, wf_tensor **results) {
    results[0] = normalised(y->in[0], y->attrs);
    if (y->in[1]) results[0] = wf_mul(results[0], y->in[1]);
}

/* Shapes: x [..., D] real, weight [D] or absent -> y as x; rstd [...], for the gradient.
 * Gradient: With h = x rstd and g = dy weight, rstd depends on x, too: dx = rstd (g - h mean(g
 * h)), the mean over the row (Zhang & Sennrich 2019). dweight = sum(dy h), over all rows.
 * Limits: eps is 0 or more; with eps 0 a row of zeros gives NaN. Rows whose squares overflow are
 * scaled first. */
const wf_op wf_op_rms_norm = {
    .name = "rms_norm",
    .family = "norm",
    .formula = "rms_norm(x, weight): x / sqrt(mean(x^2) + eps) weight, over the last axis",
    .arity = 2,
    .results = 2,
    .attr_bytes = sizeof(rms_norm_attrs),
    .attributes = "double eps",
    .shape = shape_rms_norm,
    .grad = grad_rms_norm,
    .decompose = decompose_rms_norm,
    .optional = 1 << 1,
    .run = &(const wf_kernel){ .tasks = wf_row_tasks,
                               .eval = eval_rms_norm,
                               .in_place = 1 << 0,
                               .emit = emit_rms_norm },
};

wf_tensor *wf_rms_norm(wf_tensor *x, wf_tensor *weight, double eps) {
    return wf_record(&wf_op_rms_norm, 2, (wf_tensor *[]){ x, weight }, &(rms_norm_attrs){ eps });
}

/* ---- rms_norm_backward: x, weight or none, rstd, dy -> dx, dweight [D] ----------------------- */

/* Let h = x * rstd and g = dy * weight. Since rstd depends on every x_j of the row, the projection
 * of g on h is subtracted: dx = rstd * (g - h * mean(g * h)), as in layer_norm.c with mean 0. y is
 * linear in weight: dweight = sum(dy * h) over the rows. */
static bool shape_rms_norm_backward(wf_call *c) {
    const wf_view *x = &c->in[0];
    if (!wf_same_as_operand(c) || !wf_want_like(c, 2, true, "rstd") ||
        !wf_want_like(c, 3, false, "dy"))
        return false;
    wf_set_shape(&c->out[1], x->dtype, 1, &x->shape[x->ndim - 1]);
    return wf_row_fits(c, 1, x->shape[x->ndim - 1], "weight");
}

static bool plan_rms_norm_backward(wf_call *c, void *plan) {
    (void)plan;
    return wf_plan_row_blocks(c, 1);
}

static void differentiate_block(const wf_call *c, int64_t block) {
    const wf_view *x = &c->in[0], *rstd = &c->in[2], *dy = &c->in[3], *dx = &c->out[0];
    wf_view work = { .data = c->work, .dtype = x->dtype };
    int64_t rows, n, from, to;
    wf_view_rows(x, &rows, &n);
    wf_task_range(rows, WF_BLOCK_ROWS, block, &from, &to);
    if (n == 0) return;
    void *dweight = wf_at(&work, block * n);
    memset(dweight, 0, (size_t)n * wf_dtype_size(x->dtype));
    WF_KERNEL(x->dtype, rms_norm_backward_rows(to - from, n, wf_at(x, from * n), c->in[1].data,
                                               wf_at(rstd, from), wf_at(dy, from * n),
                                               wf_at(dx, from * n), dweight));
}

static bool eval_rms_norm_backward(const wf_call *c, int phase, int64_t task, void *scratch) {
    (void)scratch;
    if (phase == 0)
        differentiate_block(c, task);
    else
        wf_add_row_blocks(c, 1, 1, task);
    return true;
}

/* dweight first, because dx may overwrite x or dy. */
static bool emit_rms_norm_backward(wf_emitter *e, const wf_call *c) {
    int64_t rows, n;
    const char *weight = wf_emit_operand(e, 1);
    wf_view_rows(&c->in[0], &rows, &n);
    wf_emit_result(e, 1, "dweight");
    wf_emit_block_begin(e, rows, WF_BLOCK_ROWS, n, 1);
    wf_emit_text(e, "for (int j = 0; j < %n; j++)\n", n);
    wf_emit_text(
        e, "scratch[j] = multiply_add(dy[r * %n + j], x[r * %n + j] * rstd[r], scratch[j]);\n", n,
        n);
    wf_emit_block_end(e, n, 1);
    wf_emit_text(e, "for (int r = 0; r < %n; r++) {\ndouble scale = (double)rstd[r];\n", rows);
    wf_emit_text(e, "double product = weighted_dot(%n, %s, dy + r * %n, x + r * %n, 0.0f);\n", n,
                 weight, n, n);
    wf_emit_text(e, "float along = (float)(product / %g * scale * scale);\n", (double)n);
    wf_emit_text(e, "for (int j = 0; j < %n; j++) {\n", n);
    wf_emit_text(e, "float g = %s%s * dy[r * %n + j];\n", c->in[1].ndim < 0 ? "1.0f" : weight,
                 c->in[1].ndim < 0 ? "" : "[j]", n);
    wf_emit_text(e, "out[r * %n + j] = rstd[r] * multiply_add(x[r * %n + j], -along, g);\n}\n}\n",
                 n, n);
    return true;
}

static void decompose_rms_norm_backward(wf_tensor *dx, wf_tensor **results) {
    wf_tensor *x = wf_alias(dx->in[0]), *weight = dx->in[1], *dy = dx->in[3];
    wf_tensor *h = normalised(x, dx->attrs), *y = weight ? wf_mul(h, weight) : h;
    wf_tensor *product = wf_mul(dy, h); /* [..., D] */
    wf_vjp(&y, &dy, 1, &x, 1, results);
    results[1] = wf_sum_over_rows(product);
}

static double flops_rms_norm_backward(const wf_call *c) {
    return 9.0 * (double)wf_view_count(&c->in[0]);
}

/* Shapes: x and dy [..., D], weight [D] or absent, rstd [...] -> dx as x, dweight [D].
 * Gradient: It comes from the decomposition: the derivative of rms_norm written with sums and
 * products.
 * Limits: rstd is what rms_norm saved. */
const wf_op wf_op_rms_norm_backward = {
    .name = "rms_norm_backward",
    .family = "norm",
    .formula =
        "rms_norm_backward(x, weight, rstd, dy): dx = rstd (g - n mean(g n)), dweight = sum(dy "
        "n), with g = dy weight and n = x rstd",
    .arity = 4,
    .results = 2,
    .attr_bytes = sizeof(rms_norm_attrs),
    .attributes = "double eps",
    .shape = shape_rms_norm_backward,
    .decompose = decompose_rms_norm_backward,
    .optional = 1 << 1,
    .run = &(const wf_kernel){ .plan = plan_rms_norm_backward,
                               .tasks = wf_row_block_tasks,
                               .eval = eval_rms_norm_backward,
                               .emit = emit_rms_norm_backward,
                               .flops = flops_rms_norm_backward,
                               .in_place = 1 << 0 | 1 << 3 },
};
