/* ops/shape/arrange.c - ops that rearrange elements: roll, and functions composed of other ops:
 * tile, repeat_interleave, flatten, stack, split, chunk, tril, triu, outer, vecdot. */
#include <string.h>

#include "core/compose.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"

/* ---- roll: step i of an axis goes to i + shift, around its end ------------------------------- */

typedef struct roll {
    int axis;
    int64_t shift;
} roll;

static bool shape_roll(wf_call *c) {
    const roll *r = c->attrs;
    if (!wf_want_axis(c, r->axis, c->in[0].ndim)) return false;
    if (r->shift > INT32_MAX || r->shift < -INT32_MAX)
        return wf_fail(c, "a shift of %lld, not above -2^31 and below 2^31", (long long)r->shift);
    return wf_as_operand(c);
}

/* A row has the elements of the axis and of all axes after it. */
typedef struct roll_run {
    const wf_view *x, *y;
    int64_t row, shift; /* elements of a row, and by how many of them it is rolled */
} roll_run;

/* Copies elements [from, to) of the result: parts of rows. */
static void roll_part(const roll_run *t, int64_t from, int64_t to) {
    size_t size = wf_dtype_size(t->y->dtype);
    for (int64_t count; from < to; from += count) {
        int64_t at = from % t->row, end = at < t->shift ? t->shift : t->row;
        count = end - at < to - from ? end - at : to - from;
        int64_t source = from - t->shift + (at < t->shift ? t->row : 0);
        memcpy(wf_at(t->y, from), wf_at(t->x, source), (size_t)count * size);
    }
}

/* Writes whole rows of the result, the first at element `from`: the ends of all rows, then their
 * beginnings. */
static void roll_rows(const roll_run *t, int64_t from, int64_t rows) {
    int64_t row = t->row, shift = t->shift;
    wf_copy_rows(t->x->dtype, rows, row - shift, (wf_matrix){ wf_at(t->x, from), row, 1 },
                 (wf_matrix){ wf_at(t->y, from + shift), row, 1 });
    if (shift > 0)
        wf_copy_rows(t->x->dtype, rows, shift,
                     (wf_matrix){ wf_at(t->x, from + row - shift), row, 1 },
                     (wf_matrix){ wf_at(t->y, from), row, 1 });
}

static bool eval_roll(const wf_call *c, int phase, int64_t task, void *scratch) {
    const roll *r = c->attrs;
    const wf_view *x = &c->in[0];
    roll_run t = { x, &c->out[0], 1, 0 };
    int64_t n = x->shape[r->axis], from, to;
    (void)phase;
    (void)scratch;
    for (int i = r->axis + 1; i < x->ndim; i++) t.row *= x->shape[i];
    wf_task_range(wf_view_count(t.y), WF_GRAIN, task, &from, &to);
    if (from >= to) return true;
    t.shift = (r->shift % n + n) % n * t.row;
    t.row *= n;
    int64_t first = (from + t.row - 1) / t.row * t.row, last = to / t.row * t.row;
    if (first >= last) {
        roll_part(&t, from, to);
        return true;
    }
    roll_part(&t, from, first);
    roll_rows(&t, first, (last - first) / t.row);
    roll_part(&t, last, to);
    return true;
}

static bool emit_roll(wf_emitter *e, const wf_call *c) {
    const roll *r = c->attrs;
    const wf_view *x = &c->in[0];
    int64_t n = x->shape[r->axis], inner = 1;
    for (int i = r->axis + 1; i < x->ndim; i++) inner *= x->shape[i];
    if (wf_view_count(x) == 0) return true;
    wf_emit_text(e, "for (int i = 0; i < %n; i++) {\n", wf_view_count(x));
    wf_emit_text(e, "int row = i / %n, column = i %% %n;\n", n * inner, n * inner);
    wf_emit_text(e, "out[row * %n + (column + %n) %% %n] = x[i];\n}\n", n * inner,
                 (r->shift % n + n) % n * inner, n * inner);
    return true;
}

static void grad_roll(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const roll *r = y->attrs;
    (void)need;
    dx[0] = wf_roll(dy[0], -r->shift, r->axis);
}

/* Shapes: x of any type -> y as x.
 * Gradient: y_(i + shift) = x_i: dx is dy, rolled back by the same shift.
 * Limits: The shift may be negative, or larger than the axis. */
const wf_op wf_op_roll = {
    .name = "roll",
    .family = "shape",
    .formula = "roll(x): y[i + shift] = x[i] along the axis, around its end",
    .arity = 1,
    .attr_bytes = sizeof(roll),
    .attributes = "int axis, int64_t shift",
    .shape = shape_roll,
    .grad = grad_roll,
    .run =
        &(const wf_kernel){ .tasks = wf_elementwise_tasks, .eval = eval_roll, .emit = emit_roll },
};

wf_tensor *wf_roll(wf_tensor *x, int64_t shift, int axis) {
    return wf_record(&wf_op_roll, 1, &x, &(roll){ wf_pick_axis(axis, wf_rank(x)), shift });
}

/* ---- repetition ------------------------------------------------------------------------------ */

/* Merges axes i and i + 1. */
static wf_tensor *merged(wf_tensor *x, int i) {
    int64_t dims[WF_MAX_DIMS] = { 0 };
    dims[i] = WF_REST; /* the other axes stay as they are (WF_KEEP) */
    return wf_reshape(x, wf_rank(x) - 1, dims);
}

/* x repeated n times along axis i. each: every step of the axis is repeated n times. */
static wf_tensor *repeated(wf_tensor *x, int64_t n, int i, bool each) {
    int64_t dims[WF_MAX_DIMS] = { 0 };
    dims[i + each] = n;
    return merged(wf_expand(wf_unsqueeze(x, WF_AXIS(i + each)), wf_rank(x) + 1, dims), i);
}

wf_tensor *wf_tile(wf_tensor *x, const int64_t *times) {
    WF_COMPOSE("tile", x);
    wf_graph *g = x ? x->graph : NULL;
    wf_tensor *y = x;
    int ndim = wf_rank(x);
    if (ndim && !times) return wf_poison(g, "tile: no numbers are given");
    if (ndim == WF_MAX_DIMS) return wf_poison(g, "tile: %d axes, at most %d", ndim, ndim - 1);
    for (int i = 0; i < ndim; i++) {
        if (times[i] < 1)
            return wf_poison(g, "tile: axis %d %lld times, not 1 or more", i, (long long)times[i]);
        if (times[i] > 1) y = repeated(y, times[i], i, false);
    }
    return wf_composed(y == x ? wf_alias(x) : y);
}

wf_tensor *wf_repeat_interleave(wf_tensor *x, int64_t n, int axis) {
    WF_COMPOSE("repeat_interleave", x);
    wf_graph *g = x ? x->graph : NULL;
    int ndim = wf_rank(x), i = wf_axis(axis, ndim);
    char text[WF_AXIS_TEXT];
    if (i < 0 || ndim == WF_MAX_DIMS)
        return wf_poison(g, "repeat_interleave: %d axes, and %s", ndim, wf_axis_text(axis, text));
    if (n < 1) return wf_poison(g, "repeat_interleave: %lld times, not 1 or more", (long long)n);
    return wf_composed(repeated(x, n, i, true));
}

/* ---- joining and cutting --------------------------------------------------------------------- */

wf_tensor *wf_flatten(wf_tensor *x, int from, int to) {
    WF_COMPOSE("flatten", x);
    int ndim = wf_rank(x), first = wf_axis(from, ndim), last = wf_axis(to, ndim);
    int64_t dims[WF_MAX_DIMS] = { 0 };
    char a[WF_AXIS_TEXT], b[WF_AXIS_TEXT];
    if (first < 0 || last < first)
        return wf_poison(x ? x->graph : NULL,
                         "flatten: from %s to %s of %d: these are not two axes in order",
                         wf_axis_text(from, a), wf_axis_text(to, b), ndim);
    dims[first] = WF_REST;
    return wf_composed(wf_reshape(x, ndim - (last - first), dims));
}

/* One node has few operands, so the parts are joined in groups. The result of a group is the first
 * part of the next. */
wf_tensor *wf_stack(wf_tensor *const *x, int n, int axis) {
    enum { GROUP = 16 };
    wf_tensor *part[GROUP + 1];
    char text[WF_AXIS_TEXT];
    int k = 0;
    if (n < 1 || !x) return wf_poison(NULL, "stack: no operands");
    wf_compose("stack", n, x);
    if (x[0] && wf_axis(axis, wf_rank(x[0]) + 1) < 0)
        return wf_poison(x[0]->graph, "stack: a result of %d axes has no %s", wf_rank(x[0]) + 1,
                         wf_axis_text(axis, text));
    for (int i = 0; i < n; i++) {
        part[k++] = wf_unsqueeze(x[i], WF_AXIS(axis));
        if (k > GROUP || i == n - 1) {
            part[0] = wf_concat(part, k, axis);
            k = 1;
        }
    }
    return wf_composed(part[0]);
}

void wf_split(wf_tensor *x, int axis, const int64_t *sizes, int n, wf_tensor **parts) {
    if (!parts || n < 1) return;
    WF_COMPOSE("split", x);
    for (int64_t i = 0, at = 0; i < n; i++) {
        bool fits = sizes && sizes[i] >= 0 && sizes[i] < WF_END - at;
        parts[i] =
            fits ? wf_slice(x, axis, at, at + sizes[i])
                 : wf_poison(
                       x ? x->graph : NULL,
                       "split: size %d, counted from 0, is not 0 or more, or there are no sizes",
                       (int)i);
        if (fits) at += sizes[i];
    }
    wf_composed(parts[0]);
}

void wf_chunk(wf_tensor *x, int axis, int n, wf_tensor **parts) {
    int ndim = wf_rank(x), i = wf_axis(axis, ndim);
    int64_t dims[WF_MAX_DIMS] = { 0 };
    char text[WF_AXIS_TEXT];
    wf_tensor *whole = NULL;
    WF_COMPOSE("chunk", x);
    if (i < 0 || n < 1 || ndim == WF_MAX_DIMS)
        whole = wf_poison(x ? x->graph : NULL,
                          "chunk: %s of %d into %d: there is no such axis, or no part",
                          wf_axis_text(axis, text), ndim, n);
    else {
        dims[i] = n;
        dims[i + 1] = WF_REST;
        whole = wf_reshape(x, ndim + 1, dims);
    }
    for (int k = 0; parts && k < n; k++)
        parts[k] = i < 0 ? whole : wf_squeeze(wf_slice(whole, i, k, k + 1), WF_AXIS(i));
    wf_composed(whole);
}

/* ---- matrices and vectors -------------------------------------------------------------------- */

/* x where `keeps`(column, row + diagonal) is true, else 0. x is real or i32. */
static wf_tensor *triangle(wf_tensor *x, int64_t diagonal,
                           wf_tensor *(*keeps)(wf_tensor *, wf_tensor *)) {
    wf_graph *g = x ? x->graph : NULL;
    wf_tensor *zero = x && x->dtype == WF_I32 ? wf_constant_i32(g, 0) : wf_zero(x);
    if (wf_rank(x) < 2) return wf_poison(g, "a triangle of %d axes, not of a matrix", wf_rank(x));
    wf_tensor *row = wf_cast(wf_arange(x, -2), wf_real(g)), /* [rows] */
        *column = wf_cast(wf_arange(x, -1), wf_real(g));    /* [columns] */
    row = wf_unsqueeze(wf_affine(row, 1, (double)diagonal), WF_LAST_AXIS);
    return wf_where(keeps(column, row), x, zero);
}

wf_tensor *wf_tril(wf_tensor *x, int64_t diagonal) {
    WF_COMPOSE("tril", x);
    return wf_composed(triangle(x, diagonal, wf_less_equal));
}

wf_tensor *wf_triu(wf_tensor *x, int64_t diagonal) {
    WF_COMPOSE("triu", x);
    return wf_composed(triangle(x, diagonal, wf_greater_equal));
}

wf_tensor *wf_outer(wf_tensor *a, wf_tensor *b) {
    WF_COMPOSE("outer", a, b);
    wf_tensor *row = wf_unsqueeze(b, WF_AXIS(-2));
    return wf_composed(wf_mul(wf_unsqueeze(a, WF_AXIS(-1)), row));
}

wf_tensor *wf_vecdot(wf_tensor *a, wf_tensor *b) {
    WF_COMPOSE("vecdot", a, b);
    return wf_composed(wf_sum(wf_mul(a, b), WF_LAST_AXIS, false));
}
