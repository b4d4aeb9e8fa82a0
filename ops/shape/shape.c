/* ops/shape/shape.c - ops that give another view of the same elements: reshape, permute, squeeze,
 * unsqueeze, cast, detach.
 *
 * All results are views, with two exceptions: casts between reals and i32, and a reshape whose
 * result cannot be expressed by strides. Slices and pads are in slice.c, concatenations in
 * concat.c, broadcasts in chain.c and strides.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/compose.h"
#include "core/graph_internal.h"
#include "core/op_internal.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"

/* ---- reshape: the same elements in row-major order, cut into other axes ---------------------- */

typedef struct reshape {
    int ndim;
    int64_t dims[WF_MAX_DIMS];
} reshape;

/* Counts the leading and the trailing WF_KEEPs. */
static void count_kept_axes(const reshape *r, int *lead, int *trail) {
    *lead = *trail = 0;
    while (*lead < r->ndim && r->dims[*lead] == WF_KEEP) ++*lead;
    while (*trail < r->ndim - *lead && r->dims[r->ndim - 1 - *trail] == WF_KEEP) ++*trail;
}

/* Computes the sizes between the kept axes: dims, with WF_REST replaced so that they hold `total`
 * elements. kept: there are kept axes. */
static bool infer_sizes(wf_call *c, int64_t total, int n, const int64_t *dims, int64_t *out,
                        bool kept) {
    int64_t known = 1;
    int rest = -1;
    for (int i = 0; i < n; i++) {
        if (dims[i] == WF_REST && rest >= 0) return wf_fail(c, "WF_REST occurs twice");
        if (dims[i] == WF_KEEP)
            return wf_fail(c,
                           "WF_KEEP, a 0, between sizes: it keeps first or last axes; a size of 0 "
                           "is written WF_REST");
        if (wf_bound_later(dims[i]))
            return wf_fail(c,
                           "a size of %lld, which is bound later: WF_KEEP keeps an axis of the "
                           "operand, WF_REST takes what is left",
                           (long long)dims[i]);
        if (dims[i] < WF_REST)
            return wf_fail(c, "a size of %lld: sizes are positive, WF_KEEP or WF_REST",
                           (long long)dims[i]);
        if (dims[i] == WF_REST)
            rest = i;
        else if (!wf_mul_size(known, out[i] = dims[i], &known))
            return wf_fail(c, "the sizes are too large");
    }
    if (rest >= 0 && total % known == 0) {
        out[rest] = total / known;
        return true;
    }
    if (rest < 0 && total == known) return true;
    return wf_fail(c, "%s: %lld elements cannot be cut into %lld%s%s", wf_show(c, &c->in[0]),
                   (long long)total, (long long)known, rest < 0 ? "" : " x a rest",
                   kept ? ", where a 0 keeps an axis; a size of 0 is written WF_REST" : "");
}

static bool shape_reshape(wf_call *c) {
    const reshape *r = c->attrs;
    const wf_view *x = &c->in[0];
    int64_t shape[WF_MAX_DIMS] = { 0 }, total = 1;
    int lead, trail;
    if (r->ndim < 0 || r->ndim > WF_MAX_DIMS)
        return wf_fail(c, "%d axes, not 0 to %d", r->ndim, WF_MAX_DIMS);
    count_kept_axes(r, &lead, &trail);
    if (lead + trail > x->ndim)
        return wf_fail(c, "%s has fewer than the %d axes to keep", wf_show(c, x), lead + trail);
    for (int i = 0; i < lead; i++) shape[i] = x->shape[i];
    for (int i = 1; i <= trail; i++) shape[r->ndim - i] = x->shape[x->ndim - i];
    for (int i = lead; i < x->ndim - trail; i++) total *= x->shape[i];
    if (!infer_sizes(c, total, r->ndim - lead - trail, r->dims + lead, shape + lead,
                     lead + trail > 0))
        return false;
    wf_set_shape(&c->out[0], x->dtype, r->ndim, shape);
    return true;
}

/* Adjacent axes of x that are contiguous in memory form a block. The result is a view if each of
 * its axes lies within one block. */
static int64_t view_reshape(wf_call *c) {
    const wf_view *x = &c->in[0];
    wf_view *y = &c->out[0];
    int i = x->ndim - 1;
    int64_t left = 1, step = 1, stride[WF_MAX_DIMS];
    if (wf_view_count(x) == 0) return 0;
    for (int j = y->ndim - 1; j >= 0; j--) {
        while (left == 1 && i >= 0) { /* the next block */
            step = x->stride[i];
            left = x->shape[i--];
            while (i >= 0 && (x->shape[i] == 1 || x->stride[i] == step * left))
                left *= x->shape[i--];
        }
        if (left % y->shape[j]) return -1;
        stride[j] = step;
        step *= y->shape[j];
        left /= y->shape[j];
    }
    memcpy(y->stride, stride, (size_t)y->ndim * sizeof *stride);
    return 0;
}

static void grad_reshape(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)need;
    dx[0] = wf_reshape_like(dy[0], y->in[0]);
}

/* The result has the elements of x in row-major order. */
static bool emit_reshape(wf_emitter *e, const wf_call *c) {
    wf_view to = c->in[0];
    wf_dense_strides(to.ndim, to.shape, to.stride);
    wf_emit_copy(e, &to, &c->in[0], wf_emit_operand(e, 0));
    return true;
}

/* Shapes: x of any type -> the given sizes, with the same number of elements.
 * Gradient: y has the elements of x in their order: dx is dy in the shape of x.
 * Limits: A view, unless no strides over the memory of x describe y. One size may be WF_REST;
 * WF_KEEPs stand at the ends. */
const wf_op wf_op_reshape = {
    .name = "reshape",
    .family = "shape",
    .formula = "reshape(x): the elements of x in another shape",
    .arity = 1,
    .attr_bytes = sizeof(reshape),
    .shape = shape_reshape,
    .view = view_reshape,
    .grad = grad_reshape,
    .run = &(const wf_kernel){ .tasks = wf_elementwise_tasks,
                               .eval = wf_copy_eval,
                               .strided = 1,
                               .emit = emit_reshape },
};

wf_tensor *wf_reshape(wf_tensor *x, int ndim, const int64_t *dims) {
    reshape r = { .ndim = ndim };
    if (ndim > 0 && !dims) r.ndim = -1;
    for (int i = 0; i < r.ndim && i < WF_MAX_DIMS; i++) r.dims[i] = dims[i];
    return wf_record(&wf_op_reshape, 1, &x, &r);
}

/* ---- reshape_like: into another tensor's shape ----------------------------------------------- */

static bool shape_reshape_like(wf_call *c) {
    const wf_view *x = &c->in[0], *like = &c->in[1];
    if (wf_view_count(x) != wf_view_count(like))
        return wf_fail(c, "%s and %s differ in their number of elements", wf_show(c, x),
                       wf_show(c, like));
    wf_set_shape(&c->out[0], x->dtype, like->ndim, like->shape);
    return true;
}

/* Shapes: x of any type, like with as many elements -> y of the shape of like.
 * Gradient: y has the elements of x in their order: dx is dy in the shape of x.
 * Limits: Only the shape of like is read. */
const wf_op wf_op_reshape_like = {
    .name = "reshape_like",
    .family = "shape",
    .formula = "reshape_like(x, like): the elements of x in the shape of like",
    .arity = 2,
    .shape = shape_reshape_like,
    .view = view_reshape,
    .grad = grad_reshape,
    .shape_only = 2,
    .run = &(const wf_kernel){ .tasks = wf_elementwise_tasks,
                               .eval = wf_copy_eval,
                               .strided = 3,
                               .emit = emit_reshape },
};

wf_tensor *wf_reshape_like(wf_tensor *x, wf_tensor *like) {
    return wf_record(&wf_op_reshape_like, 2, (wf_tensor *[]){ x, like }, NULL);
}

/* ---- permute: axis i of the result is axis order[i] of x ------------------------------------- */

typedef struct permute {
    int n;
    int order[WF_MAX_DIMS];
} permute;

static bool shape_permute(wf_call *c) {
    const permute *p = c->attrs;
    const wf_view *x = &c->in[0];
    wf_set_shape(&c->out[0], x->dtype, x->ndim, x->shape);
    for (int i = 0; i < p->n; i++) {
        if (!wf_want_axis(c, p->order[i], x->ndim)) return false;
        for (int j = 0; j < i; j++)
            if (p->order[i] == p->order[j]) return wf_fail(c, "axis %d occurs twice", p->order[i]);
        c->out[0].shape[i] = x->shape[p->order[i]];
    }
    return true;
}

static int64_t view_permute(wf_call *c) {
    const permute *p = c->attrs;
    for (int i = 0; i < p->n; i++) c->out[0].stride[i] = c->in[0].stride[p->order[i]];
    return 0;
}

/* The gradient is permuted by the inverse permutation. */
static void grad_permute(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const permute *p = y->attrs;
    int inverse[WF_MAX_DIMS];
    (void)need;
    for (int i = 0; i < p->n; i++) inverse[p->order[i]] = i;
    dx[0] = wf_permute(dy[0], inverse);
}

/* Shapes: x of any type, axis i of y is axis order[i] of x.
 * Limits: A view. Each axis occurs once. */
const wf_op wf_op_permute = {
    .name = "permute",
    .family = "shape",
    .formula = "permute(x): x with its axes in another order",
    .arity = 1,
    .attr_bytes = sizeof(permute),
    .shape = shape_permute,
    .view = view_permute,
    .grad = grad_permute,
    .run = &(const wf_kernel){ .strided = 1 },
};

bool wf_is_turned(const wf_tensor *x) {
    const permute *p = x->op == &wf_op_permute ? x->attrs : NULL;
    return p && p->n == 2 && p->order[0] == 1;
}

wf_tensor *wf_permute(wf_tensor *x, const int *order) {
    permute p = { .n = wf_rank(x) };
    if (p.n && !order) return wf_poison(x->graph, "permute: no order is given");
    for (int i = 0; i < p.n; i++) p.order[i] = wf_pick_axis(order[i], p.n);
    return wf_record(&wf_op_permute, 1, &x, &p);
}

wf_tensor *wf_transpose(wf_tensor *x, int a, int b) {
    WF_COMPOSE("transpose", x);
    int ndim = wf_rank(x), order[WF_MAX_DIMS], i = wf_axis(a, ndim), j = wf_axis(b, ndim);
    char text[64], axis[WF_AXIS_TEXT];
    if (x && (i < 0 || j < 0))
        return wf_poison(x->graph, "transpose: %s has no %s",
                         wf_shape_text(x->graph, ndim, x->shape, text, sizeof text),
                         wf_axis_text(i < 0 ? a : b, axis));
    for (int k = 0; k < ndim; k++) order[k] = k == i ? j : k == j ? i : k;
    return wf_composed(wf_permute(x, order));
}

/* ---- squeeze, unsqueeze: remove and insert axes of size 1 ------------------------------------ */

static bool shape_squeeze(wf_call *c) {
    const uint32_t *axes = c->attrs;
    const wf_view *x = &c->in[0];
    int64_t shape[WF_MAX_DIMS];
    int n = 0;
    if (!wf_want_axes(c, *axes, x->ndim)) return false;
    for (int i = 0; i < x->ndim; i++) {
        if (!(*axes >> i & 1))
            shape[n++] = x->shape[i];
        else if (x->shape[i] != 1)
            return wf_fail(c, "axis %d of %s has size %lld, not 1", i, wf_show(c, x),
                           (long long)x->shape[i]);
    }
    wf_set_shape(&c->out[0], x->dtype, n, shape);
    return true;
}

static int64_t view_squeeze(wf_call *c) {
    const uint32_t *axes = c->attrs;
    for (int i = 0, n = 0; i < c->in[0].ndim; i++)
        if (!(*axes >> i & 1)) c->out[0].stride[n++] = c->in[0].stride[i];
    return 0;
}

static void grad_squeeze(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const uint32_t *axes = y->attrs;
    (void)need;
    dx[0] = wf_unsqueeze(dy[0], *axes);
}

/* Shapes: x of any type -> x without these axes.
 * Gradient: y has the elements of x: dx is dy with the axes of size 1 put back.
 * Limits: A view. Each of the axes has size 1, or the graph or the plan fails. */
const wf_op wf_op_squeeze = {
    .name = "squeeze",
    .family = "shape",
    .formula = "squeeze(x): x without axes of size 1",
    .arity = 1,
    .attr_bytes = sizeof(uint32_t),
    .attributes = "uint32_t axes",
    .shape = shape_squeeze,
    .view = view_squeeze,
    .grad = grad_squeeze,
    .run = &(const wf_kernel){ .strided = 1 },
};

wf_tensor *wf_squeeze(wf_tensor *x, uint32_t axes) {
    axes = wf_axes(axes, wf_rank(x));
    return wf_record(&wf_op_squeeze, 1, &x, &axes);
}

static int axis_count(uint32_t axes) {
    int n = 0;
    for (axes &= ~WF_NO_AXES; axes; axes &= axes - 1) n++;
    return n;
}

static bool shape_unsqueeze(wf_call *c) {
    const uint32_t *axes = c->attrs;
    const wf_view *x = &c->in[0];
    int64_t shape[WF_MAX_DIMS];
    int ndim = x->ndim + axis_count(*axes);
    char result[32], text[WF_AXES_TEXT];
    if (*axes == WF_ALL_AXES) return wf_fail(c, "WF_ALL_AXES does not say how many");
    snprintf(result, sizeof result, "a result of %d axes", ndim);
    if (!wf_axes_fit(*axes, ndim < WF_MAX_DIMS ? ndim : WF_MAX_DIMS, result, text))
        return wf_fail(c, "%s", text);
    if (ndim > WF_MAX_DIMS) return wf_fail(c, "%d axes, at most %d", ndim, WF_MAX_DIMS);
    for (int i = 0, n = 0; i < ndim; i++) shape[i] = *axes >> i & 1 ? 1 : x->shape[n++];
    wf_set_shape(&c->out[0], x->dtype, ndim, shape);
    return true;
}

static int64_t view_unsqueeze(wf_call *c) {
    const uint32_t *axes = c->attrs;
    for (int i = 0, n = 0; i < c->out[0].ndim; i++)
        c->out[0].stride[i] = *axes >> i & 1 ? 0 : c->in[0].stride[n++];
    return 0;
}

static void grad_unsqueeze(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const uint32_t *axes = y->attrs;
    (void)need;
    dx[0] = wf_squeeze(dy[0], *axes);
}

/* Shapes: x of any type -> x with axes of size 1 at these places of y.
 * Gradient: y has the elements of x: dx is dy without the axes of size 1.
 * Limits: A view. At most 8 axes. */
const wf_op wf_op_unsqueeze = {
    .name = "unsqueeze",
    .family = "shape",
    .formula = "unsqueeze(x): x with new axes of size 1",
    .arity = 1,
    .attr_bytes = sizeof(uint32_t),
    .attributes = "uint32_t axes",
    .shape = shape_unsqueeze,
    .view = view_unsqueeze,
    .grad = grad_unsqueeze,
    .run = &(const wf_kernel){ .strided = 1 },
};

wf_tensor *wf_unsqueeze(wf_tensor *x, uint32_t axes) {
    if (axes != WF_ALL_AXES) axes = wf_axes(axes, wf_rank(x) + axis_count(axes));
    return wf_record(&wf_op_unsqueeze, 1, &x, &axes);
}

/* ---- cast: reals to ids and back ------------------------------------------------------------- */

static bool shape_cast(wf_call *c) {
    const wf_dtype *type = c->attrs;
    wf_dtype real = wf_real(c->graph);
    if (*type != WF_I32 && *type != real)
        return wf_fail(c, "to %s, in a graph that computes in %s", wf_dtype_name(*type),
                       wf_dtype_name(real));
    wf_set_shape(&c->out[0], *type, c->in[0].ndim, c->in[0].shape);
    return true;
}

static int64_t view_cast(wf_call *c) {
    return c->in[0].dtype == c->out[0].dtype ? wf_same_memory(c) : -1;
}

/* A cast to i32 rounds towards 0, saturates at the ends of i32, and turns NaN into 0. */
static bool eval_cast(const wf_call *c, int phase, int64_t task, void *scratch) {
    wf_dtype from = c->in[0].dtype, to = c->out[0].dtype;
    wf_runs r;
    (void)phase;
    (void)scratch;
    for (wf_runs_start(&r, c, task, false); wf_runs_next(&r);)
        if (to == WF_I32)
            WF_KERNEL(from, to_ids(r.n, r.in[0], r.out));
        else
            WF_KERNEL(to, from_ids(r.n, r.in[0], r.out));
    return true;
}

static bool emit_cast(wf_emitter *e, const wf_call *c) {
    return wf_emit_choice(e, c, c->out[0].dtype == WF_I32 ? "id_of(x)" : "(float)x");
}

/* Shapes: x of any type -> y of the same shape, of the given type.
 * Gradient: Between reals a cast is the identity. i32 has no gradient.
 * Limits: To i32 or to the real type of the graph; a fraction is cut off. */
const wf_op wf_op_cast = {
    .name = "cast",
    .family = "shape",
    .formula = "cast(x): x in another type",
    .arity = 1,
    .attr_bytes = sizeof(wf_dtype),
    .shape = shape_cast,
    .view = view_cast,
    .grad = wf_grad_same,
    .run =
        &(const wf_kernel){
            .tasks = wf_elementwise_tasks, .eval = eval_cast, .strided = 1, .emit = emit_cast },
};

wf_tensor *wf_cast(wf_tensor *x, wf_dtype dtype) {
    return wf_record(&wf_op_cast, 1, &x, &dtype);
}

/* ---- detach: x, as a constant ---------------------------------------------------------------- */

/* Shapes: x of any type -> y as x.
 * Limits: A view of x: a detach copies nothing. */
const wf_op wf_op_detach = {
    .name = "detach",
    .family = "shape",
    .formula = "detach(x): x; its gradient is 0",
    .arity = 1,
    .shape = wf_as_operand,
    .view = wf_same_memory,
    .no_grad = "it is a detach",
    .detaches = true,
    .run = &(const wf_kernel){ .strided = 1 },
};

wf_tensor *wf_detach(wf_tensor *x) {
    return wf_record(&wf_op_detach, 1, &x, NULL);
}
