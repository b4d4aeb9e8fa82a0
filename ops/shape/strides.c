/* ops/shape/strides.c - views made by changing strides: expand repeats axes of size 1, every_nth
 * takes every n-th step (wf_slice_step), flip reverses an axis, diagonal follows two axes at once.
 *
 * None of them copies, with one exception: if a part of a flipped axis, such as a slice, does not
 * begin at its start, the engine first copies the flipped tensor (core/plan/bind.c). The adjoint of
 * every_nth and of diagonal is place: zeros, with dy at the elements that the view reads. */
#include <stdio.h>
#include <string.h>

#include "core/compose.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"

/* ---- expand: repeats axes of size 1, and adds axes in front ---------------------------------- */

typedef struct expand {
    int ndim;
    int64_t dims[WF_MAX_DIMS];
} expand;

static bool shape_expand(wf_call *c) {
    const expand *e = c->attrs;
    const wf_view *x = &c->in[0];
    int64_t shape[WF_MAX_DIMS] = { 0 };
    if (e->ndim < x->ndim || e->ndim > WF_MAX_DIMS)
        return wf_fail(c, "%s to %d axes, not %d to %d", wf_show(c, x), e->ndim, x->ndim,
                       WF_MAX_DIMS);
    for (int i = 0; i < e->ndim; i++) {
        int own = i - (e->ndim - x->ndim);
        int64_t had = own < 0 ? 1 : x->shape[own];
        shape[i] = e->dims[i] == WF_KEEP && own >= 0 ? had : e->dims[i];
        char which[32] = "a new axis";
        if (own >= 0) snprintf(which, sizeof which, "axis %d", own);
        if (wf_bound_later(shape[i]))
            return wf_fail(c,
                           "%s of %s to a size of %lld, which is bound later: WF_KEEP keeps "
                           "an axis, wf_broadcast_to takes a tensor that has it",
                           which, wf_show(c, x), (long long)shape[i]);
        if (shape[i] < (own < 0) || (had != 1 && shape[i] != had))
            return wf_fail(c, "%s of %s to a size of %lld%s", which, wf_show(c, x),
                           (long long)e->dims[i], had == 1 ? "" : ": only a size of 1 is expanded");
    }
    wf_set_shape(&c->out[0], x->dtype, e->ndim, shape);
    return true;
}

/* Shapes: x of any type -> the given sizes, at least as many axes.
 * Gradient: Each x_j stands in several places of y: dx_j is the sum of dy over them. The rule
 * returns dy, and the engine sums it to the shape of x.
 * Limits: A view. Only axes of size 1 grow; WF_KEEP keeps one. An extent is no size: use
 * broadcast_to. */
const wf_op wf_op_expand = {
    .name = "expand",
    .family = "shape",
    .formula = "expand(x): x repeated along axes of size 1",
    .arity = 1,
    .attr_bytes = sizeof(expand),
    .shape = shape_expand,
    .view = wf_broadcast_view,
    .grad = wf_grad_same,
    .run = &(const wf_kernel){ .strided = 1 },
};

wf_tensor *wf_expand(wf_tensor *x, int ndim, const int64_t *dims) {
    expand e = { .ndim = ndim };
    if (ndim > 0 && !dims) e.ndim = -1;
    for (int i = 0; i < e.ndim && i < WF_MAX_DIMS; i++) e.dims[i] = dims[i];
    return wf_record(&wf_op_expand, 1, &x, &e);
}

/* ---- parts of a tensor that have strides of their own ---------------------------------------- */

typedef enum { EVERY_NTH, DIAGONAL } part_kind;

/* A part of x: every `number`-th step of axis a; or the diagonal that is `number` steps above the
 * main one, for rows a and columns b. */
typedef struct part {
    part_kind kind;
    int a, b;
    int64_t number;
} part;

static int64_t diagonal_length(const wf_view *x, const part *p) {
    int64_t rows = x->shape[p->a] + (p->number < 0 ? p->number : 0);
    int64_t columns = x->shape[p->b] - (p->number > 0 ? p->number : 0);
    int64_t n = rows < columns ? rows : columns;
    return n > 0 ? n : 0;
}

static bool part_ok(wf_call *c, const wf_view *x, const part *p) {
    for (int k = 0; k < 2; k++) {
        int axis = k ? p->b : p->a;
        if (axis < 0 || axis >= x->ndim) return wf_no_axis(c, x, axis);
    }
    if (p->kind == EVERY_NTH)
        return p->number > 0 || wf_fail(c, "a step of %lld, not 1 or more", (long long)p->number);
    if (p->a == p->b) return wf_fail(c, "a diagonal of axis %d with itself", p->a);
    return (p->number > -INT32_MAX && p->number < INT32_MAX) ||
           wf_fail(c, "an offset of %lld, not above -2^31 + 1 and below 2^31 - 1",
                   (long long)p->number);
}

/* *y becomes the view of part p of x; returns the offset of its first element. */
static int64_t part_of(const wf_view *x, const part *p, wf_view *y) {
    int n = 0;
    if (p->kind == EVERY_NTH) {
        *y = *x;
        y->shape[p->a] = x->shape[p->a] ? (x->shape[p->a] - 1) / p->number + 1 : 0;
        y->stride[p->a] *= p->number < x->shape[p->a] ? p->number : 1;
        return 0;
    }
    wf_set_shape(y, x->dtype, x->ndim - 1, x->shape);
    for (int i = 0; i < x->ndim; i++)
        if (i != p->a && i != p->b) {
            y->shape[n] = x->shape[i];
            y->stride[n++] = x->stride[i];
        }
    y->shape[n] = diagonal_length(x, p);
    y->stride[n] = x->stride[p->a] + x->stride[p->b];
    if (y->shape[n] == 0) return 0;
    return p->number > 0 ? p->number * x->stride[p->b] : -p->number * x->stride[p->a];
}

static bool shape_part(wf_call *c) {
    wf_view y;
    if (!part_ok(c, &c->in[0], c->attrs)) return false;
    part_of(&c->in[0], c->attrs, &y);
    wf_set_shape(&c->out[0], y.dtype, y.ndim, y.shape);
    return true;
}

static int64_t view_part(wf_call *c) {
    wf_view y;
    int64_t at = part_of(&c->in[0], c->attrs, &y);
    memcpy(c->out[0].stride, y.stride, sizeof y.stride);
    return at;
}

/* Elements that are not in the part have gradient 0. */
static void grad_part(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)need;
    dx[0] = wf_record(&wf_op_place, 2, (wf_tensor *[]){ dy[0], y->in[0] }, y->attrs);
}

/* Shapes: x of any type -> as x, with ceil(n / step) steps along the axis.
 * Limits: A view. The step is 1 or more. */
const wf_op wf_op_every_nth = {
    .name = "every_nth",
    .family = "shape",
    .formula = "every_nth(x): every n-th step of the axis",
    .arity = 1,
    .attr_bytes = sizeof(part),
    .attributes = "int kind, int a, int b, int64_t number",
    .shape = shape_part,
    .view = view_part,
    .grad = grad_part,
    .run = &(const wf_kernel){ .strided = 1 },
};

wf_tensor *wf_slice_step(wf_tensor *x, int axis, int64_t from, int64_t to, int64_t step) {
    WF_COMPOSE("slice_step", x);
    int a = wf_pick_axis(axis, wf_rank(x));
    x = wf_slice(x, axis, from, to);
    return wf_composed(
        step == 1 ? x : wf_record(&wf_op_every_nth, 1, &x, &(part){ EVERY_NTH, a, a, step }));
}

/* Shapes: x of any type -> x without axes a and b, and the diagonal as the last axis.
 * Limits: A view. An offset beyond the matrix gives a diagonal without elements. */
const wf_op wf_op_diagonal = {
    .name = "diagonal",
    .family = "shape",
    .formula = "diagonal(x): the elements x[i, i + offset] of two axes",
    .arity = 1,
    .attr_bytes = sizeof(part),
    .attributes = "int kind, int a, int b, int64_t number",
    .shape = shape_part,
    .view = view_part,
    .grad = grad_part,
    .run = &(const wf_kernel){ .strided = 1 },
};

wf_tensor *wf_diagonal(wf_tensor *x, int64_t offset, int a, int b) {
    int ndim = wf_rank(x);
    part p = { DIAGONAL, wf_pick_axis(a, ndim), wf_pick_axis(b, ndim), offset };
    return wf_record(&wf_op_diagonal, 1, &x, &p);
}

/* ---- place(dy, like): zeros like `like`, with dy in that part -------------------------------- */

static bool shape_place(wf_call *c) {
    wf_view like = c->in[1], y;
    if (!wf_want_real(c, 0) || !part_ok(c, &like, c->attrs)) return false;
    part_of(&like, c->attrs, &y);
    if (!wf_same_shape(&c->in[0], &y))
        return wf_fail(c, "%s is not that part of %s", wf_show(c, &c->in[0]), wf_show(c, &like));
    wf_set_shape(&c->out[0], c->in[0].dtype, like.ndim, like.shape);
    return true;
}

/* First zeros, then dy. */
static int64_t tasks_place(const wf_call *c, int phase) {
    if (phase == 0) return wf_elementwise_tasks(c, 0);
    return phase == 1 ? wf_task_count(wf_view_count(&c->in[0]), WF_GRAIN) : 0;
}

static void place_elements(const wf_call *c, int64_t from, int64_t to) {
    const wf_view *x = &c->in[0], *whole = &c->out[0];
    wf_view y;
    wf_walk w;
    int64_t first = part_of(whole, c->attrs, &y);
    y.data = wf_at(whole, first);
    wf_walk_start(&w, 2, (const wf_view *[]){ &y, x });
    wf_copy_walked(&w, from, to, x, &y);
}

static bool eval_place(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *y = &c->out[0];
    int64_t from, to;
    (void)scratch;
    wf_task_range(wf_view_count(phase ? &c->in[0] : y), WF_GRAIN, task, &from, &to);
    if (phase == 0)
        wf_put_all(y, from, to, 0);
    else if (from < to)
        place_elements(c, from, to);
    return true;
}

static bool emit_place(wf_emitter *e, const wf_call *c) {
    wf_view y;
    wf_walk w;
    int64_t first = part_of(&c->out[0], c->attrs, &y);
    wf_emit_text(e, "for (int i = 0; i < %n; i++) out[i] = 0;\n", wf_view_count(&c->out[0]));
    if (wf_view_count(&c->in[0]) == 0) return true;
    wf_walk_start(&w, 2, (const wf_view *[]){ &y, &c->in[0] });
    wf_emit_rows(e, &w, 'i');
    wf_emit_text(e, "for (int j = 0; j < %n; j++) out[%n + ", w.columns, first);
    wf_emit_element_at(e, &w, 0, "j");
    wf_emit_text(e, "] = dy[");
    wf_emit_element_at(e, &w, 1, "j");
    wf_emit_text(e, "];\n");
    return true;
}

/* place copies dy to some of the places of a tensor of zeros, so the gradient of dy is the
 * cotangent at these places: every_nth or diagonal of it. */
static void grad_place(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const part *p = y->attrs;
    const wf_op *op = p->kind == EVERY_NTH ? &wf_op_every_nth : &wf_op_diagonal;
    (void)need;
    dx[0] = wf_record(op, 1, &dy[0], p);
}

/* Shapes: dy real, of the shape of that part of like -> y as like.
 * Limits: Only the shape of like is read. */
const wf_op wf_op_place = {
    .name = "place",
    .family = "shape",
    .formula = "place(dy, like): zeros like `like`, with dy where the view had read",
    .arity = 2,
    .attr_bytes = sizeof(part),
    .attributes = "int kind, int a, int b, int64_t number",
    .shape = shape_place,
    .grad = grad_place,
    .shape_only = 2,
    .run =
        &(const wf_kernel){
            .tasks = tasks_place, .eval = eval_place, .strided = 3, .emit = emit_place },
};

/* ---- flip: backwards along axes -------------------------------------------------------------- */

static bool shape_flip(wf_call *c) {
    const uint32_t *axes = c->attrs;
    return wf_want_axes(c, *axes, c->in[0].ndim) && wf_as_operand(c);
}

/* The view has a negative stride, and begins at the last step. */
static int64_t view_flip(wf_call *c) {
    const uint32_t *axes = c->attrs;
    const wf_view *x = &c->in[0];
    int64_t at = 0;
    memcpy(c->out[0].stride, x->stride, sizeof x->stride);
    for (int i = 0; i < x->ndim; i++) {
        if (!(*axes >> i & 1) || x->shape[i] < 2) continue;
        c->out[0].stride[i] = -x->stride[i];
        at += (x->shape[i] - 1) * x->stride[i];
    }
    return wf_view_count(x) ? at : 0;
}

static void grad_flip(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const uint32_t *axes = y->attrs;
    (void)need;
    dx[0] = wf_flip(dy[0], *axes);
}

/* Shapes: x of any type -> y as x.
 * Gradient: y_i = x_(n-1-i): dx is dy, flipped along the same axes.
 * Limits: A view, with strides below 0. */
const wf_op wf_op_flip = {
    .name = "flip",
    .family = "shape",
    .formula = "flip(x): x backwards along the axes",
    .arity = 1,
    .attr_bytes = sizeof(uint32_t),
    .attributes = "uint32_t axes",
    .shape = shape_flip,
    .view = view_flip,
    .grad = grad_flip,
    .run = &(const wf_kernel){ .strided = 1 },
};

wf_tensor *wf_flip(wf_tensor *x, uint32_t axes) {
    axes = wf_axes(axes, wf_rank(x));
    return wf_record(&wf_op_flip, 1, &x, &axes);
}
