/* ops/norm/softmax.c - softmax and log-softmax; the kernels work on the last axis.
 *
 * A column is open (not masked) where the mask is not 0 and, with causal, where j <= i + (columns -
 * rows). A row without open columns gives zeros, and its gradient is zero. Attention
 * (attention_op.c) uses mask functions of this file, but has kernels of its own. */
#include <float.h>
#include <math.h>

#include "core/compose.h"
#include "core/op_internal.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"
#include "rows.h"

/* ---- rows and masks -------------------------------------------------------------------------- */

static int64_t rows_of_task(int64_t columns) {
    return columns >= WF_GRAIN ? 1 : WF_GRAIN / (columns + WF_ROW_COST);
}

int64_t wf_row_tasks(const wf_call *c, int phase) {
    int64_t rows, columns;
    wf_view_rows(&c->in[0], &rows, &columns);
    return phase == 0 ? wf_task_count(rows, rows_of_task(columns)) : 0;
}

void wf_row_range(const wf_call *c, int64_t task, int64_t *from, int64_t *to) {
    int64_t rows, columns;
    wf_view_rows(&c->in[0], &rows, &columns);
    wf_task_range(rows, rows_of_task(columns), task, from, to);
}

bool wf_row_fits(wf_call *c, int i, int64_t columns, const char *what) {
    const wf_view *v = &c->in[i];
    if (v->ndim < 0) return true;
    if (!wf_want_real(c, i)) return false;
    return (v->ndim == 1 && v->shape[0] == columns) ||
           wf_fail(c, "%s %s does not fit the last axis of %s", what, wf_show(c, v),
                   wf_show(c, &c->in[0]));
}

bool wf_mask_fits(wf_call *c, const wf_view *mask, const wf_view *x) {
    wf_view both;
    if (mask->ndim < 0) return true;
    if (mask->dtype != x->dtype)
        return wf_fail(c, "the mask is %s where %s is needed", wf_dtype_name(mask->dtype),
                       wf_dtype_name(x->dtype));
    if (!wf_broadcast_shapes(c, mask, x, &both)) return false;
    return wf_same_shape(&both, x) ||
           wf_fail(c, "a mask %s does not broadcast to %s", wf_show(c, mask), wf_show(c, x));
}

/* Returns the mask of row number `row` of x, and sets *step to the distance of its elements; NULL
 * if there is no mask. */
static const void *mask_row(const wf_view *mask, const wf_view *x, int64_t row, int64_t *step) {
    int64_t at = 0;
    if (mask->ndim < 0) return NULL;
    for (int i = x->ndim - 2; i >= 0; row /= x->shape[i--])
        at += row % x->shape[i] * wf_broadcast_stride(mask, x, i);
    *step = wf_broadcast_stride(mask, x, x->ndim - 1);
    return wf_at(mask, at);
}

int64_t wf_open_columns(bool causal, int64_t row, int64_t rows, int64_t columns) {
    int64_t open = row + 1 + columns - rows;
    return !causal || open > columns ? columns : open > 0 ? open : 0;
}

/* ---- softmax: y = exp(x) / sum(exp(x)) over the open columns --------------------------------- */

typedef struct softmax_attrs {
    bool causal;
} softmax_attrs;

static bool shape_softmax(wf_call *c) {
    const softmax_attrs *a = c->attrs;
    if (c->in[0].ndim < (a->causal ? 2 : 1))
        return wf_fail(c, "%s has too few axes", wf_show(c, &c->in[0]));
    return wf_same_as_operand(c) && wf_mask_fits(c, &c->in[1], &c->in[0]);
}

static bool eval_softmax(const wf_call *c, int phase, int64_t task, void *scratch) {
    const softmax_attrs *a = c->attrs;
    const wf_view *x = &c->in[0], *y = &c->out[0];
    int64_t n = x->shape[x->ndim - 1], rows = x->ndim > 1 ? x->shape[x->ndim - 2] : 1, from, to,
            step = 0;
    (void)phase;
    (void)scratch;
    wf_row_range(c, task, &from, &to);
    if (!a->causal && c->in[1].ndim < 0) {
        WF_KERNEL(x->dtype, softmax_rows(to - from, n, wf_at(x, from * n), wf_at(y, from * n)));
        return true;
    }
    for (int64_t r = from; r < to; r++) {
        const void *mask = mask_row(&c->in[1], x, r, &step);
        int64_t open = wf_open_columns(a->causal, r % rows, rows, n);
        WF_KERNEL(x->dtype,
                  softmax_row(n, open, wf_at(x, r * n), 1, mask, step, false, wf_at(y, r * n)));
    }
    return true;
}

static bool emit_softmax(wf_emitter *e, const wf_call *c) {
    const softmax_attrs *a = c->attrs;
    const wf_view *x = &c->in[0];
    int64_t n = x->shape[x->ndim - 1], count, rows = x->ndim > 1 ? x->shape[x->ndim - 2] : 1;
    wf_view row = *x;
    wf_walk w;
    wf_view_rows(x, &count, &n);
    row.ndim--; /* a walk over the rows of x and of the mask */
    wf_view mask = c->in[1];
    int64_t step = mask.ndim > 0 ? wf_broadcast_stride(&c->in[1], x, x->ndim - 1) : 0;
    if (mask.ndim > 0) mask.ndim--;
    if (mask.ndim < 0) mask = (wf_view){ 0 };
    wf_walk_start(&w, 2, (const wf_view *[]){ &row, &mask });
    wf_emit_rows(e, &w, 'i');
    wf_emit_text(e, "for (int j = 0; j < %n; j++) {\nint r = (", w.columns);
    wf_emit_element_at(e, &w, 0, "j");
    wf_emit_text(e, ") / %n;\n", n ? n : 1);
    if (a->causal)
        wf_emit_text(e, "int open = r %% %n + %n;\n", rows, 1 + n - rows);
    else
        wf_emit_text(e, "int open = %n;\n", n);
    wf_emit_text(e, "softmax_row(%n, open, x + r * %n, ", n, n);
    if (c->in[1].ndim >= 0) {
        wf_emit_text(e, "mask + ");
        wf_emit_element_at(e, &w, 1, "j");
    } else {
        wf_emit_text(e, "0");
    }
    wf_emit_text(e, ", %n, out + r * %n);\n}\n", step, n);
    return true;
}

/* dy_i/dx_j = y_i (i == j) - y_i y_j, so dx = y * (dy - sum(dy * y)); closed columns have y = 0,
 * and dx = 0. Bridle (1990), "Probabilistic interpretation of feedforward classification network
 * outputs". */
static void grad_softmax(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)need;
    dx[0] = wf_record(&wf_op_softmax_backward, 2, (wf_tensor *[]){ y, dy[0] }, NULL);
}

/* The position along an axis, counted from its end: ..., -2, -1, 0. */
static wf_tensor *from_end(wf_tensor *x, int axis) {
    wf_tensor *i = wf_cast(wf_arange(x, axis), wf_real(x->graph)); /* [n] */
    return wf_sub(i, wf_slice(i, 0, -1, WF_END));
}

/* A mask of the open columns: x's mask combined with the causal triangle [rows, columns]. NULL: all
 * are open. */
static wf_tensor *open_mask(wf_tensor *x, wf_tensor *mask, bool causal) {
    if (!causal) return mask;
    wf_tensor *row = wf_unsqueeze(from_end(x, -2), WF_AXIS(1)); /* [rows, 1] */
    wf_tensor *triangle = wf_greater_equal(row, from_end(x, -1));
    return mask ? wf_mul(mask, triangle) : triangle;
}

/* The largest value is subtracted to avoid overflow. The result does not depend on it, so it is
 * treated as a constant. In a row without open columns the largest value is -inf, and the sum is
 * 0. */
static void decompose_softmax(wf_tensor *y, wf_tensor **results) {
    const softmax_attrs *a = y->attrs;
    wf_tensor *x = y->in[0], *open = open_mask(x, y->in[1], a->causal);
    if (open) x = wf_where(open, x, wf_constant(x->graph, -INFINITY));
    wf_tensor *top = wf_clamp(wf_max(wf_detach(x), WF_LAST_AXIS, true), -FLT_MAX, FLT_MAX);
    wf_tensor *e = wf_exp(wf_sub(x, top)), *sum = wf_sum(e, WF_LAST_AXIS, true);
    results[0] = wf_div(e, wf_where(sum, sum, wf_constant(x->graph, 1)));
}

/* Shapes: x [..., n] real; mask real, broadcasts to x, or absent -> y as x.
 * Limits: Rows sum to 1, or to 0 where all is masked. causal wants two axes. +infinity makes its
 * row NaN. */
const wf_op wf_op_softmax = {
    .name = "softmax",
    .family = "norm",
    .formula =
        "softmax(x, mask): e^x / (the sum of e^x over the last axis), of what the mask leaves "
        "open",
    .arity = 2,
    .attr_bytes = sizeof(softmax_attrs),
    .attributes = "bool causal",
    .shape = shape_softmax,
    .grad = grad_softmax,
    .decompose = decompose_softmax,
    .optional = 1 << 1,
    .nondiff = 1 << 1,
    .run =
        &(const wf_kernel){
            .tasks = wf_row_tasks, .eval = eval_softmax, .in_place = 1 << 0, .emit = emit_softmax },
};

wf_tensor *wf_masked_softmax(wf_tensor *x, wf_tensor *mask, bool causal) {
    WF_COMPOSE("masked_softmax", x, mask ? mask : x);
    return wf_composed(wf_record(&wf_op_softmax, 2, (wf_tensor *[]){ x, wf_real_mask(mask) },
                                 &(softmax_attrs){ causal }));
}

/* Exchanges the axis with the last one, and back afterwards. */
wf_tensor *wf_softmax(wf_tensor *x, int axis) {
    WF_COMPOSE("softmax", x);
    if (wf_is_last(axis, x)) return wf_composed(wf_masked_softmax(x, NULL, false));
    return wf_composed(
        wf_transpose(wf_masked_softmax(wf_transpose(x, axis, -1), NULL, false), axis, -1));
}

/* ---- softmax_backward: dx = y * (dy - sum(dy * y)) ------------------------------------------- */

static bool shape_backward(wf_call *c) {
    return wf_same_as_operand(c) && wf_want_like(c, 1, false, "dy");
}

static bool eval_softmax_backward(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *y = &c->in[0], *dy = &c->in[1], *dx = &c->out[0];
    int64_t n = y->shape[y->ndim - 1], from, to;
    (void)phase;
    (void)scratch;
    wf_row_range(c, task, &from, &to);
    WF_KERNEL(y->dtype, softmax_backward_rows(to - from, n, wf_at(y, from * n), wf_at(dy, from * n),
                                              wf_at(dx, from * n)));
    return true;
}

static bool emit_softmax_backward(wf_emitter *e, const wf_call *c) {
    int64_t rows, n;
    wf_view_rows(&c->in[0], &rows, &n);
    wf_emit_text(e, "for (int i = 0; i < %n; i += %n) {\n", rows * n, n ? n : 1);
    wf_emit_text(e, "float mean = (float)dot(%n, dy + i, y + i);\n", n);
    wf_emit_text(e, "for (int j = i; j < i + %n; j++) out[j] = y[j] * (dy[j] - mean);\n}\n", n);
    return true;
}

static void decompose_softmax_backward(wf_tensor *dx, wf_tensor **results) {
    wf_tensor *y = dx->in[0], *dy = dx->in[1];
    results[0] = wf_mul(y, wf_sub(dy, wf_sum(wf_mul(dy, y), WF_LAST_AXIS, true)));
}

/* Shapes: y [..., n] and dy as y -> dx as y.
 * Gradient: It comes from the decomposition, y (dy - sum(dy y)). So do all higher gradients.
 * Limits: y is what softmax gave: nothing checks that its rows sum to 1. */
const wf_op wf_op_softmax_backward = {
    .name = "softmax_backward",
    .family = "norm",
    .formula = "softmax_backward(y, dy): dx = y (dy - sum(dy y)), sums over the last axis",
    .arity = 2,
    .shape = shape_backward,
    .decompose = decompose_softmax_backward,
    .run = &(const wf_kernel){ .tasks = wf_row_tasks,
                               .eval = eval_softmax_backward,
                               .in_place = 1 << 0 | 1 << 1,
                               .emit = emit_softmax_backward },
};

/* ---- log_softmax: y = x - log(sum(exp(x))) --------------------------------------------------- */

static bool shape_log_softmax(wf_call *c) {
    return c->in[0].ndim > 0 ? wf_same_as_operand(c) : wf_fail(c, "a scalar has no last axis");
}

static bool eval_log_softmax(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *x = &c->in[0], *y = &c->out[0];
    int64_t n = x->shape[x->ndim - 1], from, to;
    (void)phase;
    (void)scratch;
    wf_row_range(c, task, &from, &to);
    WF_KERNEL(x->dtype, log_softmax_rows(to - from, n, wf_at(x, from * n), wf_at(y, from * n)));
    return true;
}

static bool emit_log_softmax(wf_emitter *e, const wf_call *c) {
    int64_t rows, n;
    wf_view_rows(&c->in[0], &rows, &n);
    wf_emit_text(e, "for (int i = 0; i < %n; i += %n) {\ndouble log_total;\n", rows * n, n ? n : 1);
    wf_emit_text(e, "float top = log_sum_exp(%n, x + i, &log_total);\n", n);
    wf_emit_text(e, "float rest = (float)log_total;\n");
    wf_emit_text(e, "for (int j = i; j < i + %n; j++) out[j] = (x[j] - top) - rest;\n}\n", n);
    return true;
}

/* dy_i/dx_j = (i == j) - p_j with p = exp(y), so dx = dy - exp(y) sum(dy): the derivative of
 * log-sum-exp is softmax (Goodfellow et al. 2016, "Deep Learning", 6.2.2.3). */
static void grad_log_softmax(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)need;
    dx[0] = wf_record(&wf_op_log_softmax_backward, 2, (wf_tensor *[]){ y, dy[0] }, NULL);
}

static void decompose_log_softmax(wf_tensor *y, wf_tensor **results) {
    wf_tensor *x = y->in[0];
    wf_tensor *shifted = wf_sub(x, wf_detach(wf_max(x, WF_LAST_AXIS, true)));
    results[0] = wf_sub(shifted, wf_log(wf_sum(wf_exp(shifted), WF_LAST_AXIS, true)));
}

/* Shapes: x [..., n] real -> y as x.
 * Limits: No e^x overflows: the largest x is subtracted first. A scalar has no last axis. */
const wf_op wf_op_log_softmax = {
    .name = "log_softmax",
    .family = "norm",
    .formula = "log_softmax(x): x - log(the sum of e^x over the last axis)",
    .arity = 1,
    .shape = shape_log_softmax,
    .grad = grad_log_softmax,
    .decompose = decompose_log_softmax,
    .run = &(const wf_kernel){ .tasks = wf_row_tasks,
                               .eval = eval_log_softmax,
                               .in_place = 1 << 0,
                               .emit = emit_log_softmax },
};

wf_tensor *wf_log_softmax(wf_tensor *x, int axis) {
    WF_COMPOSE("log_softmax", x);
    if (wf_is_last(axis, x)) return wf_composed(wf_record(&wf_op_log_softmax, 1, &x, NULL));
    return wf_composed(wf_transpose(wf_log_softmax(wf_transpose(x, axis, -1), -1), axis, -1));
}

/* ---- log_softmax_backward: dx = dy - exp(y) * sum(dy) ---------------------------------------- */

static bool eval_log_softmax_backward(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *y = &c->in[0], *dy = &c->in[1], *dx = &c->out[0];
    int64_t n = y->shape[y->ndim - 1], from, to;
    (void)phase;
    (void)scratch;
    wf_row_range(c, task, &from, &to);
    for (int64_t i = from * n; i < to * n; i += n)
        WF_KERNEL(y->dtype, log_softmax_backward_row(n, wf_at(y, i), wf_at(dy, i), wf_at(dx, i)));
    return true;
}

static bool emit_log_softmax_backward(wf_emitter *e, const wf_call *c) {
    int64_t rows, n;
    wf_view_rows(&c->in[0], &rows, &n);
    wf_emit_text(e, "for (int i = 0; i < %n; i += %n) {\n", rows * n, n ? n : 1);
    wf_emit_text(e, "float total = (float)sum(%n, dy + i);\n", n);
    wf_emit_text(e,
                 "for (int j = i; j < i + %n; j++)\n"
                 "out[j] = multiply_add(-exp_of(y[j]), total, dy[j]);\n}\n",
                 n);
    return true;
}

static void decompose_log_softmax_backward(wf_tensor *dx, wf_tensor **results) {
    wf_tensor *y = dx->in[0], *dy = dx->in[1];
    results[0] = wf_sub(dy, wf_mul(wf_exp(y), wf_sum(dy, WF_LAST_AXIS, true)));
}

/* Shapes: y [..., n] and dy as y -> dx as y.
 * Gradient: It comes from the decomposition, dy - e^y sum(dy). So do all higher gradients.
 * Limits: y is what log_softmax gave. */
const wf_op wf_op_log_softmax_backward = {
    .name = "log_softmax_backward",
    .family = "norm",
    .formula = "log_softmax_backward(y, dy): dx = dy - e^y sum(dy), sums over the last axis",
    .arity = 2,
    .shape = shape_backward,
    .decompose = decompose_log_softmax_backward,
    .run = &(const wf_kernel){ .tasks = wf_row_tasks,
                               .eval = eval_log_softmax_backward,
                               .in_place = 1 << 0 | 1 << 1,
                               .emit = emit_log_softmax_backward },
};
