/* ops/reduce/scan.c - running sums, products and linear recurrences along an axis: cumsum, cumprod,
 * linear_scan; with `reverse` they start at the end of the axis. And carried_scan, the recurrence
 * of a decoder, whose total a state carries from one run to the next.
 *
 * The first three are y[i] = a[i] y[i-1] + b[i], computed in order and in double; cumsum has a = 1,
 * cumprod y[-1] = 1 and b = 0. Their gradients are composed of scans in the other direction. They
 * contain no division, so they are right where x is 0. */
#include <string.h>

#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/emit/loops.h"
#include "ops/ops_internal.h"

typedef struct scan_attrs {
    int axis;
    bool reverse;
} scan_attrs;

/* ---- what they share ------------------------------------------------------------------------- */

static bool shape_scan(wf_call *c) {
    const scan_attrs *s = c->attrs;
    const wf_view *x = &c->in[0];
    if (!wf_want_axis(c, s->axis, x->ndim) || !wf_same_as_operand(c)) return false;
    return c->n_in < 2 || wf_want_like(c, 1, false, "b");
}

/* The shape of the operands, which are row-major: [outer, n, inner]. */
typedef struct extent {
    int64_t outer, n, inner;
} extent;

static extent extent_of(const wf_call *c) {
    const scan_attrs *s = c->attrs;
    const wf_view *x = &c->in[0];
    extent e = { 1, x->shape[s->axis], 1 };
    for (int i = 0; i < s->axis; i++) e.outer *= x->shape[i];
    for (int i = s->axis + 1; i < x->ndim; i++) e.inner *= x->shape[i];
    return e;
}

enum { TOGETHER = 4 }; /* rows that the kernel computes together */

/* The number of rows in a task, if the axis is the last one. */
static int64_t row_grain(const extent *e) {
    int64_t rows = WF_GRAIN / (e->n + WF_ROW_COST);
    return rows > TOGETHER ? rows : e->outer >= 8 * TOGETHER ? TOGETHER : 1;
}

/* The number of columns in a task, if the axis is not the last one; or of slabs [n, inner], if a
 * task has all columns of a slab. */
static int64_t column_grain(const extent *e) {
    int64_t columns = WF_GRAIN / (e->n + 1);
    return columns > WF_ROW_COST ? columns : WF_ROW_COST;
}
static int64_t slab_grain(const extent *e) {
    int64_t slabs = WF_GRAIN / (e->n * e->inner + WF_ROW_COST);
    return slabs > 1 ? slabs : 1;
}

static int64_t tasks_scan(const wf_call *c, int phase) {
    extent e = extent_of(c);
    if (phase > 0) return 0;
    if (e.inner == 1) return wf_task_count(e.outer, row_grain(&e));
    return wf_task_count(e.outer, slab_grain(&e)) * wf_task_count(e.inner, column_grain(&e));
}

/* Computes the running totals of `chains` rows. Their first elements in memory are at `at`, at +
 * chain, at + 2 chain... */
static void scan_at(const wf_call *c, wf_scan kind, const extent *e, int64_t at, int64_t chains,
                    int64_t chain) {
    const scan_attrs *s = c->attrs;
    const wf_view *y = &c->out[0];
    if (s->reverse) at += (e->n - 1) * e->inner;
    const void *a = wf_at(&c->in[0], at), *b = kind == WF_SCAN_LINEAR ? wf_at(&c->in[1], at) : a;
    WF_KERNEL(y->dtype, scan(kind, e->n, chains, chain, s->reverse ? -e->inner : e->inner, a, b,
                             wf_at(y, at)));
}

static void scan_task(const wf_call *c, wf_scan kind, int64_t task) {
    extent e = extent_of(c);
    int64_t from, to, left, right;
    if (e.outer * e.n * e.inner == 0) return;
    if (e.inner == 1) {
        wf_task_range(e.outer, row_grain(&e), task, &from, &to);
        scan_at(c, kind, &e, from * e.n, to - from, e.n);
        return;
    }
    int64_t stripes = wf_task_count(e.inner, column_grain(&e));
    wf_task_range(e.outer, slab_grain(&e), task / stripes, &from, &to);
    wf_task_range(e.inner, column_grain(&e), task % stripes, &left, &right);
    for (int64_t slab = from; slab < to; slab++)
        for (int64_t j = left, n; j < right; j += n) {
            n = right - j < WF_SCANNED ? right - j : WF_SCANNED;
            scan_at(c, kind, &e, slab * e.n * e.inner + j, n, 1);
        }
}

/* begin: C for the total before the first element. step: C for the total with element k. */
static bool emit_scan(wf_emitter *e, const wf_call *c, const char *begin, const char *step) {
    const scan_attrs *s = c->attrs;
    extent x = extent_of(c);
    wf_emit_text(e, "for (int i = 0; i < %n; i++)\nfor (int j = 0; j < %n; j++) {\n", x.outer,
                 x.inner);
    wf_emit_text(e, "double total = %s;\n", begin);
    wf_emit_text(e,
                 s->reverse ? "for (int r = %n - 1; r >= 0; r--) {\n"
                            : "for (int r = 0; r < %n; r++) {\n",
                 x.n);
    wf_emit_text(e, "int k = (i * %n + r) * %n + j;\n", x.n, x.inner);
    wf_emit_text(e, "total = %s;\nout[k] = (float)total;\n}\n}\n", step);
    return true;
}

#define SCAN(name, kind, begin, step)                                                              \
    static bool emit_##name(wf_emitter *e, const wf_call *c) {                                     \
        return emit_scan(e, c, begin, step);                                                       \
    }                                                                                              \
    static bool eval_##name(const wf_call *c, int phase, int64_t task, void *scratch) {            \
        (void)phase, (void)scratch;                                                                \
        scan_task(c, kind, task);                                                                  \
        return true;                                                                               \
    }
SCAN(cumsum, WF_SCAN_SUM, "0", "total + (double)x[k]")
SCAN(cumprod, WF_SCAN_PRODUCT, "1", "total * (double)x[k]")
SCAN(linear_scan, WF_SCAN_LINEAR, "0", "multiply_add_double((double)a[k], total, (double)b[k])")

/* x moved by one step: y[i] = x[i - 1] and y[0] = first; if reverse, y[i] = x[i + 1], and the last
 * element is `first`. */
static wf_tensor *previous(wf_tensor *x, int axis, bool reverse, double first) {
    if (reverse) return wf_slice(wf_pad(x, axis, 0, 1, first), axis, 1, WF_END);
    return wf_slice(wf_pad(x, axis, 1, 0, first), axis, 0, -1);
}

static wf_tensor *record_scan(const wf_op *op, wf_tensor *a, wf_tensor *b, int axis, bool reverse) {
    scan_attrs s = { wf_pick_axis(axis, wf_rank(a)), reverse };
    return wf_record(op, op->arity, (wf_tensor *[]){ a, b }, &s);
}

/* ---- cumsum: y[i] = x[0] + ... + x[i] -------------------------------------------------------- */

/* x[i] is a term of every y[k] with k >= i, so dx is a running sum of dy from the other end. */
static void grad_cumsum(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const scan_attrs *s = y->attrs;
    (void)need;
    dx[0] = wf_cumsum(dy[0], s->axis, !s->reverse);
}

/* Shapes: x real -> y as x.
 * Limits: The running sum is kept in double; each y[i] is it, rounded to the type of x. */
const wf_op wf_op_cumsum = {
    .name = "cumsum",
    .family = "reduce",
    .formula = "cumsum(x): x[0] + ... + x[i] along the axis",
    .arity = 1,
    .attr_bytes = sizeof(scan_attrs),
    .attributes = "int axis, bool reverse",
    .shape = shape_scan,
    .grad = grad_cumsum,
    .run =
        &(const wf_kernel){
            .tasks = tasks_scan, .eval = eval_cumsum, .in_place = 1, .emit = emit_cumsum },
};

wf_tensor *wf_cumsum(wf_tensor *x, int axis, bool reverse) {
    return record_scan(&wf_op_cumsum, x, NULL, axis, reverse);
}

/* ---- cumprod: y[i] = x[0] * ... * x[i] ------------------------------------------------------- */

/* dy_k/dx_i = (x_0 ... x_{i-1}) (x_{i+1} ... x_k) for k >= i. The first factor is y_{i-1}; the sum
 * of dy_k times the second is s_i = dy_i + x_{i+1} s_{i+1}: a recurrence from the end. */
static void grad_cumprod(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const scan_attrs *s = y->attrs;
    wf_tensor *next = previous(y->in[0], s->axis, !s->reverse, 0);
    (void)need;
    dx[0] = wf_mul(previous(y, s->axis, s->reverse, 1),
                   wf_linear_scan(next, dy[0], s->axis, !s->reverse));
}

/* Shapes: x real -> y as x.
 * Limits: The products are kept in double. The gradient is right where x is 0. */
const wf_op wf_op_cumprod = {
    .name = "cumprod",
    .family = "reduce",
    .formula = "cumprod(x): x[0] ... x[i] along the axis",
    .arity = 1,
    .attr_bytes = sizeof(scan_attrs),
    .attributes = "int axis, bool reverse",
    .shape = shape_scan,
    .grad = grad_cumprod,
    .run =
        &(const wf_kernel){
            .tasks = tasks_scan, .eval = eval_cumprod, .in_place = 1, .emit = emit_cumprod },
};

wf_tensor *wf_cumprod(wf_tensor *x, int axis, bool reverse) {
    return record_scan(&wf_op_cumprod, x, NULL, axis, reverse);
}

/* ---- linear_scan: y[i] = a[i] y[i-1] + b[i], y[-1] = 0 --------------------------------------- */

/* y_i reaches the loss by itself and through y_{i+1}: db_i = dy_i + a_{i+1} db_{i+1}, the same
 * recurrence from the end; and da_i = db_i y_{i-1} (backpropagation through time, Werbos 1990). */
static void grad_linear_scan(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const scan_attrs *s = y->attrs;
    wf_tensor *next = previous(y->in[0], s->axis, !s->reverse, 0);
    dx[1] = wf_linear_scan(next, dy[0], s->axis, !s->reverse);
    if (need & 1) dx[0] = wf_mul(dx[1], previous(y, s->axis, s->reverse, 0));
}

static double flops_linear_scan(const wf_call *c) {
    return 2.0 * (double)wf_view_count(&c->out[0]);
}

/* Shapes: a and b real, of one shape -> y as they are.
 * Limits: In double, in order: it takes time in proportion to the axis, and one row is not
 * divided among threads. */
const wf_op wf_op_linear_scan = {
    .name = "linear_scan",
    .family = "reduce",
    .formula = "linear_scan(a, b): y[i] = a[i] y[i-1] + b[i] along the axis",
    .arity = 2,
    .attr_bytes = sizeof(scan_attrs),
    .attributes = "int axis, bool reverse",
    .shape = shape_scan,
    .grad = grad_linear_scan,
    .run = &(const wf_kernel){ .tasks = tasks_scan,
                               .eval = eval_linear_scan,
                               .flops = flops_linear_scan,
                               .emit = emit_linear_scan,
                               .in_place = 3 },
};

wf_tensor *wf_linear_scan(wf_tensor *a, wf_tensor *b, int axis, bool reverse) {
    return record_scan(&wf_op_linear_scan, a, b, axis, reverse);
}

/* ---- carried_scan: linear_scan, in a state from the total of the run before ------------------ */

static bool shape_carried(wf_call *c) {
    const scan_attrs *s = c->attrs;
    const wf_view *x = &c->in[0];
    char text[WF_AXIS_TEXT];
    if (!shape_scan(c)) return false;
    if (s->axis < 1)
        return wf_fail(c, "%s has no positions along %s: it must be an axis after the batch",
                       wf_show(c, x), wf_axis_text(s->axis, text));
    wf_set_shape(&c->out[1], x->dtype, x->ndim, x->shape);
    c->out[1].shape[s->axis] = 1;
    return true;
}

static int64_t tasks_carried(const wf_call *c, int phase) {
    extent e = extent_of(c);
    if (phase > 0) return 0;
    return wf_task_count(e.outer, slab_grain(&e)) * wf_task_count(e.inner, column_grain(&e));
}

/* Computes columns [left, right) of a slab, and keeps their last totals in result 1, from which the
 * next run goes on. */
static void carry(const wf_call *c, const extent *e, int64_t slab, int64_t left, int64_t right) {
    int64_t at = slab * e->n * e->inner + left, end = at + e->n * e->inner;
    size_t bytes = (size_t)(right - left) * wf_dtype_size(c->out[0].dtype);
    void *total = wf_at(&c->out[1], slab * e->inner + left), *y = wf_at(&c->out[0], at);
    const void *a = wf_at(&c->in[0], at), *b = wf_at(&c->in[1], at);
    WF_KERNEL(c->out[0].dtype,
              scan_from(e->n, right - left, e->inner, c->position ? total : NULL, a, b, y));
    if (e->n)
        memcpy(total, wf_at(&c->out[0], end - e->inner), bytes);
    else if (!c->position)
        memset(total, 0, bytes);
}

static bool eval_carried_scan(const wf_call *c, int phase, int64_t task, void *scratch) {
    extent e = extent_of(c);
    int64_t stripes = wf_task_count(e.inner, column_grain(&e)), from, to, left, right;
    (void)phase;
    (void)scratch;
    wf_task_range(e.outer, slab_grain(&e), task / stripes, &from, &to);
    wf_task_range(e.inner, column_grain(&e), task % stripes, &left, &right);
    for (int64_t slab = from; slab < to; slab++) carry(c, &e, slab, left, right);
    return true;
}

static bool emit_carried_scan(wf_emitter *e, const wf_call *c) {
    extent x = extent_of(c);
    const char *last = wf_emit_result(e, 1, "last");
    if (c->with_state) wf_emit_text(e, "int begun = %n;\n", c->position);
    wf_emit_text(e, "for (int i = 0; i < %n; i++)\nfor (int j = 0; j < %n; j++) {\n", x.outer,
                 x.inner);
    if (c->with_state)
        wf_emit_text(e, "float total = begun ? %s[i * %n + j] : 0;\n", last, x.inner);
    else
        wf_emit_text(e, "float total = 0;\n");
    wf_emit_text(e, "for (int r = 0; r < %n; r++) {\nint k = (i * %n + r) * %n + j;\n", x.n, x.n,
                 x.inner);
    wf_emit_text(e, "total = (float)multiply_add_double((double)a[k], (double)total, "
                    "(double)b[k]);\nout[k] = total;\n}\n");
    wf_emit_text(e, "%s[i * %n + j] = total;\n}\n", last, x.inner);
    return true;
}

/* Shapes: a and b real, of one shape, the axis comes after the batch -> y as they are.
 * Gradient: It exists only in plans without a state, where the first total is 0.
 * Limits: Every total is rounded to the type of a, in which a state carries it. A plan that
 * computes gradients has no state. */
const wf_op wf_op_carried_scan = {
    .name = "carried_scan",
    .family = "reduce",
    .formula =
        "carried_scan(a, b): y[i] = a[i] y[i-1] + b[i] along the axis; with a state y[-1] is "
        "the last y of the run before",
    .arity = 2,
    .results = 2,
    .attr_bytes = sizeof(scan_attrs),
    .attributes = "int axis, bool reverse",
    .shape = shape_carried,
    .grad = grad_linear_scan,
    .run = &(const wf_kernel){ .tasks = tasks_carried,
                               .eval = eval_carried_scan,
                               .flops = flops_linear_scan,
                               .carried = true,
                               .emit = emit_carried_scan,
                               .in_place = 3 },
};

wf_tensor *wf_carried_scan(wf_tensor *a, wf_tensor *b, int axis) {
    return record_scan(&wf_op_carried_scan, a, b, axis, false);
}
