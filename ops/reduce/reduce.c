/* ops/reduce/reduce.c - sums, maxima and minima over any axes.
 *
 * One code serves sum, sum_to (chain.c), max and min. An axis is reduced if the result, aligned on
 * the right, lacks it or has size 1 there. If the last axis is reduced, each result is folded over
 * its own elements ("across"), in blocks of BLOCK; otherwise whole rows are folded into a row of
 * results ("down"). The order of additions depends only on the number of terms and on which
 * of the two ways is taken. A mean is a sum times wf_inverse_count. */
#include <math.h>
#include <string.h>

#include "core/compose.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/ops_internal.h"
#include "reduce.h"
#include "reduction.h"

/* ---- the plan of a reduction ----------------------------------------------------------------- */

static bool is_reduced(const wf_view *x, const wf_view *y, int axis) {
    int own = axis - (x->ndim - y->ndim);
    return own < 0 || (y->shape[own] == 1 && x->shape[axis] != 1);
}

static int64_t reduced_length(const wf_view *x, const wf_view *y) {
    int64_t length = 1;
    for (int i = 0; i < x->ndim; i++)
        if (is_reduced(x, y, i)) length *= x->shape[i];
    return length;
}

static bool is_across(const wf_view *x, const wf_view *y) {
    return x->ndim > 0 && is_reduced(x, y, x->ndim - 1);
}

static int64_t piece_count(const wf_view *x, const wf_view *y) {
    return is_across(x, y) ? wf_task_count(reduced_length(x, y), BLOCK) : 1;
}

static void add_axis(wf_view *v, int64_t size, int64_t stride) {
    v->shape[v->ndim] = size;
    v->stride[v->ndim++] = stride;
}

static void plan_reduction(reduction *r, const wf_call *c) {
    const wf_view *x = &c->in[0], *y = &c->out[0];
    wf_view kept_x = { 0 }, kept_y = { 0 }, reduced = { 0 };
    for (int i = 0; i < x->ndim; i++) {
        if (is_reduced(x, y, i)) {
            add_axis(&reduced, x->shape[i], x->stride[i]);
        } else {
            add_axis(&kept_x, x->shape[i], x->stride[i]);
            add_axis(&kept_y, x->shape[i], y->stride[i - (x->ndim - y->ndim)]);
        }
    }
    wf_walk_start(&r->kept, 2, (const wf_view *[]){ &kept_y, &kept_x });
    wf_walk_start(&r->reduced, 1, (const wf_view *[]){ &reduced });
    r->type = x->dtype;
    r->across = is_across(x, y);
    r->results = wf_view_count(y);
    r->length = reduced_length(x, y);
    r->pieces = piece_count(x, y);
    int64_t one = r->length ? r->length : 1; /* the work of one result, in elements */
    if (r->across) {
        r->group = r->pieces > 1 ? 1 : (WF_GRAIN + one - 1) / one;
        return;
    }
    int64_t columns = r->kept.columns ? r->kept.columns : 1;
    int64_t wide = columns / MOST_STRIPES > FOLDED / one ? columns / MOST_STRIPES : FOLDED / one;
    r->stripe = (wide + STRIPE) / STRIPE * STRIPE;
    r->stripes = wf_task_count(columns, r->stripe);
    r->group = r->stripes > 1 ? 1 : (FOLDED + one * columns - 1) / (one * columns);
}

static int64_t first_phase_tasks(const reduction *r) {
    if (r->pieces > 1) return r->results * r->pieces;
    return r->across ? wf_task_count(r->results, r->group)
                     : wf_task_count(r->kept.rows, r->group) * r->stripes;
}

/* ---- across: the last axis is reduced, and a result is folded over its own elements ---------- */

/* True if the elements of x that are folded into one result are contiguous. */
static bool is_contiguous(const reduction *r) {
    return r->reduced.rows == 1 && r->reduced.step[0] == 1;
}

/* Copies elements [from, to) of the reduced axes of x to `pack`. */
static void pack_elements(reduction *r, const wf_view *x, int64_t from, int64_t to, char *pack) {
    size_t size = wf_dtype_size(r->type);
    wf_part part = { 0 };
    while (wf_walk_part(&r->reduced, &from, to, &part)) {
        wf_copy_rows(r->type, part.rows, part.columns, wf_part_of(&r->reduced, &part, 0, x),
                     (wf_matrix){ pack, part.columns, 1 });
        pack += (size_t)(part.rows * part.columns) * size;
    }
}

/* Returns elements [from, to) of the reduced axes of x: in place if they are contiguous, else
 * copied to `pack`. */
static const void *elements(reduction *r, const wf_view *x, int64_t from, int64_t to, void *pack) {
    if (is_contiguous(r)) return wf_at(x, from);
    pack_elements(r, x, from, to, pack);
    return pack;
}

/* The neutral element: the value with which a reduction begins, and its result for no elements. */
static double start_of(fold_kind kind) {
    return kind == FOLD_MAX ? -INFINITY : kind == FOLD_MIN ? INFINITY : 0;
}

static double joined(fold_kind kind, double a, double b) {
    if (kind == FOLD_SUM) return a + b;
    return isnan(a) || (kind == FOLD_MAX ? a > b : a < b) ? a : b;
}

static double fold(reduction *r, const wf_view *x, int64_t from, int64_t to, fold_kind kind,
                   void *pack) {
    double total = start_of(kind);
    for (int64_t i = from, end; i < to; i = end) {
        end = i + PACK < to ? i + PACK : to;
        const void *p = elements(r, x, i, end, pack);
        double part = kind == FOLD_SUM   ? WF_KERNEL(r->type, sum(end - i, p))
                      : kind == FOLD_MAX ? (double)WF_KERNEL(r->type, max(end - i, p))
                                         : (double)WF_KERNEL(r->type, min(end - i, p));
        total = joined(kind, part, total);
    }
    return total;
}

/* The offset of result i in the memory of the results. *x becomes a view of its elements. */
static int64_t locate(reduction *r, const wf_call *c, int64_t i, wf_view *x) {
    wf_walk *w = &r->kept;
    wf_walk_seek(w, i / w->columns);
    *x = c->in[0];
    x->data = wf_at(x, w->at[1] + i % w->columns * w->step[1]);
    return w->at[0] + i % w->columns * w->step[0];
}

/* Computes results [from, to), which are neighbours in a row of results, with at most PACK elements
 * each. */
static void fold_short(reduction *r, const wf_call *c, int64_t from, int64_t to, fold_kind kind,
                       char *pack) {
    wf_view x;
    int64_t at = locate(r, c, from, &x), most = PACK / r->length, n;
    for (int64_t size = (int64_t)wf_dtype_size(r->type); from < to; from += n, at += n) {
        int64_t row = r->kept.step[1];
        const void *rows = x.data;
        n = is_contiguous(r) || to - from < most ? to - from : most;
        if (!is_contiguous(r)) {
            for (int64_t i = 0; i < n; i++) {
                pack_elements(r, &x, 0, r->length, pack + i * r->length * size);
                x.data = wf_at(&x, row);
            }
            rows = pack;
            row = r->length;
        }
        void *y = wf_at(&c->out[0], at);
        if (kind == FOLD_SUM)
            WF_KERNEL(r->type, sum_rows(n, r->length, rows, row, y));
        else if (kind == FOLD_MAX)
            WF_KERNEL(r->type, max_rows(n, r->length, rows, row, y));
        else
            WF_KERNEL(r->type, min_rows(n, r->length, rows, row, y));
    }
}

/* Computes results [from, to), taking those of one row of results together. */
static void fold_results(reduction *r, const wf_call *c, int64_t from, int64_t to, fold_kind kind,
                         void *pack) {
    for (int64_t n; from < to; from += n) {
        n = r->kept.columns - from % r->kept.columns;
        if (n > to - from) n = to - from;
        fold_short(r, c, from, from + n, kind, pack);
    }
}

static void fold_across(reduction *r, const wf_call *c, int64_t task, fold_kind kind, void *pack) {
    int64_t from, to;
    wf_view x;
    if (r->pieces > 1) {
        locate(r, c, task / r->pieces, &x);
        wf_task_range(r->length, BLOCK, task % r->pieces, &from, &to);
        ((double *)c->work)[task] = fold(r, &x, from, to, kind, pack);
        return;
    }
    wf_task_range(r->results, r->group, task, &from, &to);
    if (r->length > 0 && r->length <= PACK && from < to) {
        fold_results(r, c, from, to, kind, pack);
        return;
    }
    for (int64_t i = from; i < to; i++) {
        int64_t at = locate(r, c, i, &x);
        wf_put(&c->out[0], at, fold(r, &x, 0, r->length, kind, pack));
    }
}

static void join_pieces(reduction *r, const wf_call *c, fold_kind kind) {
    const double *piece = c->work;
    wf_view x;
    for (int64_t i = 0; i < r->results; i++) {
        double total = start_of(kind);
        for (int64_t p = 0; p < r->pieces; p++, piece++) total = joined(kind, *piece, total);
        wf_put(&c->out[0], locate(r, c, i, &x), total);
    }
}

/* ---- down: rows into a row ------------------------------------------------------------------- */

/* n elements of x, `step` apart: in place if step is 1, else copied to `pack`. */
static const void *row(const wf_view *x, int64_t at, int64_t n, int64_t step, void *pack) {
    size_t size = wf_dtype_size(x->dtype);
    if (step == 1) return wf_at(x, at);
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)pack + (size_t)i * size, wf_at(x, at + i * step), size);
    return pack;
}

/* Does the work of fold_rows for sums of equally spaced rows: several rows and columns at a time,
 * but with the same order of additions. */
static void sum_even_rows(const reduction *r, const wf_view *x, int64_t from, int64_t n, void *y) {
    int64_t step = r->reduced.step[0];
    wf_put_all(&(wf_view){ .data = y, .dtype = r->type }, 0, n, 0);
    for (int64_t i = 0; i < r->length; i += ROWS) {
        int64_t rows = r->length - i < ROWS ? r->length - i : ROWS;
        WF_KERNEL(r->type, accumulate_rows(rows, n, wf_at(x, from + i * step), step, y));
    }
}

/* Computes at most PACK columns of one row of results, from element `from` of x on, into y.
 * scratch: memory for a packed row and a partial sum. */
static void fold_rows(reduction *r, const wf_view *x, int64_t from, int64_t n, void *y,
                      fold_kind kind, char *scratch) {
    wf_walk *w = &r->reduced;
    size_t bytes = (size_t)n * wf_dtype_size(r->type);
    if (kind == FOLD_SUM && w->rows == 1 && r->kept.step[1] == 1) {
        sum_even_rows(r, x, from, n, y);
        return;
    }
    void *part = r->length > ROWS && kind == FOLD_SUM ? scratch + PACK * sizeof(double) : y;
    wf_put_all(&(wf_view){ .data = y, .dtype = r->type }, 0, n, start_of(kind));
    wf_walk_seek(w, 0);
    for (int64_t i = 0, column = 0; i < r->length; i++) {
        if (part != y && i % ROWS == 0) memset(part, 0, bytes);
        const void *p = row(x, from + w->at[0] + column * w->step[0], n, r->kept.step[1], scratch);
        if (kind == FOLD_SUM)
            WF_KERNEL(r->type, accumulate(n, p, part));
        else if (kind == FOLD_MAX)
            WF_KERNEL(r->type, maximum_rows(n, p, y));
        else
            WF_KERNEL(r->type, minimum_rows(n, p, y));
        if (part != y && (i % ROWS == ROWS - 1 || i == r->length - 1))
            WF_KERNEL(r->type, accumulate(n, part, y));
        if (++column == w->columns) {
            column = 0;
            wf_walk_next(w);
        }
    }
}

static void fold_down(reduction *r, const wf_call *c, int64_t task, fold_kind kind, void *scratch) {
    wf_walk *w = &r->kept;
    int64_t from, to, left, right;
    wf_task_range(w->rows, r->group, task / r->stripes, &from, &to);
    wf_task_range(w->columns, r->stripe, task % r->stripes, &left, &right);
    if (r->results == 0) return;
    wf_walk_seek(w, from);
    for (int64_t i = from; i < to; i++, wf_walk_next(w))
        for (int64_t column = left, n; column < right; column += n) {
            n = right - column < PACK ? right - column : PACK;
            fold_rows(r, &c->in[0], w->at[1] + column * w->step[1], n,
                      wf_at(&c->out[0], w->at[0] + column), kind, scratch);
        }
}

static bool reduce(const wf_call *c, int phase, int64_t task, fold_kind kind, void *scratch) {
    reduction r = *(const reduction *)c->plan; /* a copy, because its walks are advanced */
    if (phase == 1)
        join_pieces(&r, c, kind);
    else if (r.across)
        fold_across(&r, c, task, kind, scratch);
    else
        fold_down(&r, c, task, kind, scratch);
    return true;
}

/* ---- sum ------------------------------------------------------------------------------------- */

static bool plan_sum(wf_call *c, void *plan) {
    reduction *r = plan;
    plan_reduction(r, c);
    if (r->pieces > 1) c->work_bytes = (size_t)(r->results * r->pieces) * sizeof(double);
    c->scratch_bytes = 2 * PACK * sizeof(double);
    return true;
}

static int64_t tasks_sum(const wf_call *c, int phase) {
    const reduction *r = c->plan;
    if (phase == 0) return first_phase_tasks(r);
    return phase == 1 && r->pieces > 1;
}

static bool eval_sum(const wf_call *c, int phase, int64_t task, void *scratch) {
    return reduce(c, phase, task, FOLD_SUM, scratch);
}

static bool emit_sum(wf_emitter *e, const wf_call *c) {
    return wf_emit_reduction(e, c, FOLD_SUM);
}

const wf_kernel wf_sum_kernel = { .plan_bytes = sizeof(reduction),
                                  .plan = plan_sum,
                                  .tasks = tasks_sum,
                                  .eval = eval_sum,
                                  .flops = wf_flops_of_operand,
                                  .strided = 1,
                                  .emit = emit_sum };

/* Sets the result's shape: the operand's, with size 1 along `axes`. */
static bool reduced_shape(wf_call *c, uint32_t axes) {
    const wf_view *x = &c->in[0];
    if (!wf_want_real(c, 0) || !wf_want_axes(c, axes, x->ndim)) return false;
    wf_set_shape(&c->out[0], x->dtype, x->ndim, x->shape);
    for (int i = 0; i < x->ndim; i++)
        if (axes >> i & 1) c->out[0].shape[i] = 1;
    return true;
}

static bool shape_sum(wf_call *c) {
    return reduced_shape(c, *(const uint32_t *)c->attrs);
}

/* y = sum of x: every derivative is 1. */
void wf_grad_sum(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)need;
    dx[0] = wf_broadcast_to(dy[0], y->in[0]);
}

/* Shapes: x real -> the axes removed, or of size 1 with keepdim; all axes: [].
 * Limits: A sum of no elements is 0. The order of additions depends only on the number of terms and
 * on whether the last axis is reduced, so threads change no bit. */
const wf_op wf_op_sum = {
    .name = "sum",
    .family = "reduce",
    .formula = "sum(x): the sum of x over the axes",
    .arity = 1,
    .attr_bytes = sizeof(uint32_t),
    .attributes = "uint32_t axes",
    .shape = shape_sum,
    .grad = wf_grad_sum,
    .run = &wf_sum_kernel,
};

wf_tensor *wf_sum(wf_tensor *x, uint32_t axes, bool keepdim) {
    axes = wf_axes(axes, wf_rank(x));
    wf_tensor *y = wf_record(&wf_op_sum, 1, &x, &axes);
    return keepdim || axes == WF_NO_AXES ? y : wf_squeeze(y, axes);
}

wf_tensor *wf_mean(wf_tensor *x, uint32_t axes, bool keepdim) {
    WF_COMPOSE("mean", x);
    return wf_composed(wf_mul(wf_sum(x, axes, keepdim), wf_inverse_count(x, axes, 0)));
}

/* ---- max, min -------------------------------------------------------------------------------- */

typedef struct extreme_attrs {
    uint32_t axes;
    uint32_t least_of_none; /* 1: the maximum of no elements is -inf; 0: it is an error */
} extreme_attrs;

static bool shape_extreme(wf_call *c) {
    const extreme_attrs *a = c->attrs;
    if (!reduced_shape(c, a->axes)) return false;
    if (!a->least_of_none && reduced_length(&c->in[0], &c->out[0]) == 0)
        return wf_fail(c, "%s: no elements to choose from", wf_show(c, &c->in[0]));
    return true;
}

/* The derivative is 1 for the x that equals y, 0 for the others. If several are equal, dy is
 * divided equally among them: the subgradient of least norm. */
static void grad_extreme(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const extreme_attrs *a = y->attrs;
    wf_tensor *hit = wf_equal(y->in[0], y);
    (void)need;
    dx[0] = wf_mul(hit, wf_div(dy[0], wf_sum(hit, a->axes, true)));
}

/* Shapes: x real -> the axes removed, or of size 1 with keepdim.
 * Limits: If there are no elements to choose from, the graph fails, or the plan if sizes are known
 * only there; wf_max_or_least gives -inf instead. If an element is NaN, the result is NaN. */
#define EXTREME(NAME, FOLD, text)                                                                  \
    static bool eval_##NAME(const wf_call *c, int phase, int64_t task, void *scratch) {            \
        return reduce(c, phase, task, FOLD, scratch);                                              \
    }                                                                                              \
    static bool emit_##NAME(wf_emitter *e, const wf_call *c) {                                     \
        return wf_emit_reduction(e, c, FOLD);                                                      \
    }                                                                                              \
    const wf_op wf_op_##NAME = {                                                                   \
        .name = #NAME,                                                                             \
        .family = "reduce",                                                                        \
        .formula = #NAME "(x): " text,                                                             \
        .arity = 1,                                                                                \
        .attr_bytes = sizeof(extreme_attrs),                                                       \
        .attributes = "uint32_t axes, uint32_t least_of_none",                                     \
        .shape = shape_extreme,                                                                    \
        .grad = grad_extreme,                                                                      \
        .run = &(const wf_kernel){ .plan_bytes = sizeof(reduction),                                \
                                   .plan = plan_sum,                                               \
                                   .tasks = tasks_sum,                                             \
                                   .eval = eval_##NAME,                                            \
                                   .flops = wf_flops_of_operand,                                   \
                                   .strided = 1,                                                   \
                                   .emit = emit_##NAME },                                          \
    };
EXTREME(max, FOLD_MAX, "the largest element over the axes")
EXTREME(min, FOLD_MIN, "the smallest element over the axes")
#undef EXTREME

static wf_tensor *record_extreme(const wf_op *op, wf_tensor *x, uint32_t axes, bool least_of_none,
                                 bool keepdim) {
    axes = wf_axes(axes, wf_rank(x));
    wf_tensor *y = wf_record(op, 1, &x, &(extreme_attrs){ axes, least_of_none });
    return keepdim || axes == WF_NO_AXES ? y : wf_squeeze(y, axes);
}

wf_tensor *wf_max(wf_tensor *x, uint32_t axes, bool keepdim) {
    return record_extreme(&wf_op_max, x, axes, false, keepdim);
}

wf_tensor *wf_max_or_least(wf_tensor *x, uint32_t axes) {
    return record_extreme(&wf_op_max, x, axes, true, true);
}

wf_tensor *wf_min(wf_tensor *x, uint32_t axes, bool keepdim) {
    return record_extreme(&wf_op_min, x, axes, false, keepdim);
}
