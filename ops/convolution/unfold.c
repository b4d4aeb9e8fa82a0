/* ops/convolution/unfold.c - unfold, which shows the windows of an axis as a view, and its adjoint,
 * fold.
 *
 * Windows that overlap show the same memory several times, by the strides of the two axes that
 * replace the one. So nothing may be written through such a view. A kernel overwrites only operands
 * that are row-major (core/plan/plan_memory.c), which no view with overlapping windows is. */
#include <string.h>

#include "core/op_internal.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"

typedef struct unfold {
    int axis;
    int64_t size, step, dilation;
} unfold;

/* Computes how many windows fit into an axis of n elements. Fails the call if there are none. */
static bool count_windows(wf_call *c, const unfold *u, const wf_view *x, int64_t *count) {
    if (!wf_want_axis(c, u->axis, x->ndim)) return false;
    if (x->ndim == WF_MAX_DIMS)
        return wf_fail(c, "%s has %d axes already", wf_show(c, x), WF_MAX_DIMS);
    if (u->size < 1 || u->step < 1 || u->dilation < 1)
        return wf_fail(c, "size %lld, step %lld, dilation %lld: all must be at least 1",
                       (long long)u->size, (long long)u->step, (long long)u->dilation);
    int64_t n = x->shape[u->axis], reach;
    bool fits = wf_mul_size(u->size - 1, u->dilation, &reach) && reach < n;
    if (!fits)
        return wf_fail(c, "no window of %lld elements, %lld apart, fits into axis %d of %s",
                       (long long)u->size, (long long)u->dilation, u->axis, wf_show(c, x));
    *count = (n - reach - 1) / u->step + 1;
    return true;
}

static void windows_of(const unfold *u, const wf_view *x, int64_t count, wf_view *y) {
    wf_set_shape(y, x->dtype, x->ndim + 1, x->shape);
    y->shape[u->axis] = count;
    y->shape[x->ndim] = u->size;
}

static bool shape_unfold(wf_call *c) {
    int64_t count = 0;
    if (!count_windows(c, c->attrs, &c->in[0], &count)) return false;
    windows_of(c->attrs, &c->in[0], count, &c->out[0]);
    return true;
}

static int64_t view_unfold(wf_call *c) {
    const unfold *u = c->attrs;
    const wf_view *x = &c->in[0];
    int64_t n = x->shape[u->axis], stride = x->stride[u->axis];
    memcpy(c->out[0].stride, x->stride, sizeof x->stride);
    /* a step of n or more is never taken, so any stride will do: the product could overflow */
    c->out[0].stride[u->axis] = u->step < n ? stride * u->step : stride;
    c->out[0].stride[x->ndim] = u->dilation < n ? stride * u->dilation : stride;
    return 0;
}

static wf_tensor *fold(wf_tensor *y, wf_tensor *like, const unfold *u) {
    return wf_record(&wf_op_fold, 2, (wf_tensor *[]){ y, like }, u);
}

/* y_wk = x_(step w + dilation k): an element of x gets the sum over the windows that it is in. */
static void grad_unfold(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)need;
    dx[0] = fold(dy[0], y->in[0], y->attrs);
}

/* Shapes: x of any type -> the axis becomes the number of windows, and a last axis has their
 * elements.
 * Limits: A view, in which elements stand several times. A window that does not fit into the axis
 * fails. */
const wf_op wf_op_unfold = {
    .name = "unfold",
    .family = "shape",
    .formula = "unfold(x): y[w,k] = x[step w + dilation k]: the windows of an axis",
    .arity = 1,
    .attr_bytes = sizeof(unfold),
    .attributes = "int axis, int64_t size, int64_t step, int64_t dilation",
    .shape = shape_unfold,
    .view = view_unfold,
    .grad = grad_unfold,
    .run = &(const wf_kernel){ .strided = 1 },
};

wf_tensor *wf_unfold(wf_tensor *x, int axis, int64_t size, int64_t step, int64_t dilation) {
    unfold u = { wf_pick_axis(axis, wf_rank(x)), size, step, dilation };
    return wf_record(&wf_op_unfold, 1, &x, &u);
}

/* ---- fold(y, like): the sum of the windows y, each added at its place in like's shape -------- */

static bool shape_fold(wf_call *c) {
    const wf_view *like = &c->in[1];
    wf_view windows;
    int64_t count = 0;
    if (!wf_want_real(c, 0) || !count_windows(c, c->attrs, like, &count)) return false;
    windows_of(c->attrs, like, count, &windows);
    if (!wf_same_shape(&c->in[0], &windows))
        return wf_fail(c, "%s are not the windows of %s", wf_show(c, &c->in[0]), wf_show(c, like));
    wf_set_shape(&c->out[0], c->in[0].dtype, like->ndim, like->shape);
    return true;
}

/* For n rows side by side, sum element i of the axis over all windows that contain it, in the order
 * of its place k in the window. y points to the first window of the first row; the next window of a
 * row is inner * size elements further. */
#define SUM_WINDOWS(real)                                                                          \
    /* As sum_windows, for step 1 and dilation 1: every k from `first` to `last` is in the sum. */ \
    static void sum_neighbours_##real(const unfold *u, const real *y, int64_t windows,             \
                                      int64_t inner, int64_t i, int64_t n, real *x) {              \
        const int64_t size = u->size, step = inner * size;                                         \
        const int64_t first = i < windows ? 0 : i - windows + 1, last = i < size ? i : size - 1;   \
        for (int64_t j = 0; j < n; j++, y += size) {                                               \
            double sum = 0;                                                                        \
            for (int64_t k = first; k <= last; k++) sum += y[(i - k) * step + k];                  \
            x[j] = (real)sum;                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void sum_windows_##real(const unfold *u, const real *y, int64_t windows, int64_t inner, \
                                   int64_t i, int64_t n, real *x) {                                \
        const int64_t size = u->size, step = u->step, dilation = u->dilation;                      \
        if (step == 1 && dilation == 1) {                                                          \
            sum_neighbours_##real(u, y, windows, inner, i, n, x);                                  \
            return;                                                                                \
        }                                                                                          \
        for (int64_t j = 0; j < n; j++, y += size) {                                               \
            double sum = 0;                                                                        \
            for (int64_t k = 0, from = i; k < size && from >= 0; k++, from -= dilation) {          \
                int64_t window = from / step;                                                      \
                if (window < windows && window * step == from)                                     \
                    sum += y[window * inner * size + k];                                           \
            }                                                                                      \
            x[j] = (real)sum;                                                                      \
        }                                                                                          \
    }
SUM_WINDOWS(float)
SUM_WINDOWS(double)

static bool eval_fold(const wf_call *c, int phase, int64_t task, void *scratch) {
    const unfold *u = c->attrs;
    const wf_view *y = &c->in[0], *x = &c->out[0];
    int64_t n = x->shape[u->axis], windows = y->shape[u->axis], inner = 1, from, to;
    (void)phase;
    (void)scratch;
    for (int a = u->axis + 1; a < x->ndim; a++) inner *= x->shape[a];
    wf_task_range(wf_view_count(x), WF_GRAIN, task, &from, &to);
    if (from >= to) return true;
    int64_t column = from % inner, i = from / inner % n, outer = from / inner / n;
    for (int64_t count; from < to; from += count, column = 0) {
        count = inner - column < to - from ? inner - column : to - from;
        const void *first = wf_at(y, (outer * windows * inner + column) * u->size);
        if (x->dtype == WF_F64)
            sum_windows_double(u, first, windows, inner, i, count, wf_at(x, from));
        else
            sum_windows_float(u, first, windows, inner, i, count, wf_at(x, from));
        if (++i < n) continue;
        i = 0;
        outer++;
    }
    return true;
}

static bool emit_fold(wf_emitter *e, const wf_call *c) {
    const unfold *u = c->attrs;
    const wf_view *x = &c->out[0];
    int64_t inner = 1, windows = c->in[0].shape[u->axis];
    for (int a = u->axis + 1; a < x->ndim; a++) inner *= x->shape[a];
    if (wf_view_count(x) == 0) return true;
    /* The written C uses int. A step or dilation above INT32_MAX becomes INT32_MAX, which also
     * leaves the axis at once, so the windows are the same. */
    int64_t step = u->step < INT32_MAX ? u->step : INT32_MAX;
    int64_t dilation = u->dilation < INT32_MAX ? u->dilation : INT32_MAX;
    wf_emit_text(e, "for (int i = 0; i < %n; i++) {\ndouble sum = 0;\n", wf_view_count(x));
    wf_emit_text(e, "int j = i %% %n, from = i / %n %% %n, slab = i / %n;\n", inner, inner,
                 x->shape[u->axis], inner * x->shape[u->axis]);
    wf_emit_text(e, "for (int k = 0; k < %n && from >= 0; k++) {\nint w = from / %n;\n", u->size,
                 step);
    wf_emit_text(e, "if (w < %n && w * %n == from)\nsum += (double)", windows, step);
    wf_emit_text(e, "dy[((slab * %n + w) * %n + j) * %n + k];\nfrom -= %n;\n}\n", windows, inner,
                 u->size, dilation);
    wf_emit_text(e, "out[i] = (float)sum;\n}\n");
    return true;
}

/* The op is linear, and unfold is its adjoint. */
static void grad_fold(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const unfold *u = y->attrs;
    (void)need;
    dx[0] = wf_unfold(dy[0], u->axis, u->size, u->step, u->dilation);
}

/* Shapes: y real, the windows of like -> as like.
 * Limits: Windows are added in one order. Elements between windows are 0. */
const wf_op wf_op_fold = {
    .name = "fold",
    .family = "shape",
    .formula = "fold(dy, like): dx[j] = the sum of dy[w,k] over step w + dilation k = j",
    .arity = 2,
    .attr_bytes = sizeof(unfold),
    .attributes = "int axis, int64_t size, int64_t step, int64_t dilation",
    .shape = shape_fold,
    .grad = grad_fold,
    .shape_only = 2,
    .run =
        &(const wf_kernel){ .tasks = wf_elementwise_tasks, .eval = eval_fold, .emit = emit_fold },
};

wf_tensor *wf_fold(wf_tensor *y, wf_tensor *like, int axis, int64_t size, int64_t step,
                   int64_t dilation) {
    unfold u = { wf_pick_axis(axis, wf_rank(like)), size, step, dilation };
    return fold(y, like, &u);
}
