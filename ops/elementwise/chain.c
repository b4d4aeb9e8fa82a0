/* ops/elementwise/chain.c - copy, fill and sum_to, which the engine uses itself (core/basis.h), and
 * broadcast_to, the adjoint of sum_to. The engine's fourth op, add, is a row of binary.inc. */
#include "ops/base/op_base.h"
#include "ops/base/panels.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"
#include "ops/reduce/reduce.h"

/* ---- copy: any strides, or panels, to row-major; row-major to panels ------------------------- */

static bool repacks(const wf_call *c) {
    return c->in[0].layout || c->out[0].layout;
}

static int64_t tasks_copy(const wf_call *c, int phase) {
    return repacks(c) ? wf_repack_tasks(c, phase) : wf_elementwise_tasks(c, phase);
}

static bool eval_copy(const wf_call *c, int phase, int64_t task, void *scratch) {
    return (repacks(c) ? wf_repack_eval : wf_copy_eval)(c, phase, task, scratch);
}

static bool emit_copy(wf_emitter *e, const wf_call *c) {
    wf_view to = c->out[0];
    wf_emit_copy(e, &to, &c->in[0], wf_emit_operand(e, 0));
    return true;
}

/* Shapes: y as x, of any type.
 * Gradient: y is x: dx = dy.
 * Limits: none. Plans insert it where an op needs a row-major operand. */
const wf_op wf_op_copy = {
    .name = "copy",
    .family = "shape",
    .formula = "copy(x): x",
    .arity = 1,
    .shape = wf_as_operand,
    .grad = wf_grad_same,
    .run = &(
        const wf_kernel){ .tasks = tasks_copy, .eval = eval_copy, .strided = 1, .emit = emit_copy },
};

/* ---- fill: one value in the shape of another tensor ------------------------------------------ */

static bool eval_fill(const wf_call *c, int phase, int64_t task, void *scratch) {
    const double *value = c->attrs;
    int64_t from, to;
    (void)phase;
    (void)scratch;
    wf_task_range(wf_view_count(&c->out[0]), WF_GRAIN, task, &from, &to);
    wf_put_all(&c->out[0], from, to, *value);
    return true;
}

static bool emit_fill(wf_emitter *e, const wf_call *c) {
    const double *value = c->attrs;
    wf_emit_text(e, "for (int i = 0; i < %n; i++) out[i] = %f;\n", wf_view_count(&c->out[0]),
                 *value);
    return true;
}

/* Shapes: `like` of any shape and type -> y of that shape, real.
 * Limits: the values of `like` are not read. */
const wf_op wf_op_fill = {
    .name = "fill",
    .family = "constant",
    .formula = "fill(like): value everywhere, in the shape of like",
    .arity = 1,
    .attr_bytes = sizeof(double),
    .attributes = "double value",
    .shape = wf_real_like_operand,
    .no_grad = "it reads only a shape",
    .shape_only = 1,
    .run =
        &(const wf_kernel){
            .tasks = wf_elementwise_tasks, .eval = eval_fill, .strided = 1, .emit = emit_fill },
};

wf_tensor *wf_fill(wf_tensor *like, double value) {
    return wf_record(&wf_op_fill, 1, &like, &value);
}

/* ---- broadcast_to: x repeated along axes of size 1 ------------------------------------------- */

/* True if `small` broadcasts to the shape of `large`. */
static bool broadcasts_to(const wf_view *small, const wf_view *large) {
    int extra = large->ndim - small->ndim;
    if (extra < 0) return false;
    for (int i = 0; i < small->ndim; i++)
        if (small->shape[i] != 1 && small->shape[i] != large->shape[extra + i]) return false;
    return true;
}

static bool shape_broadcast_to(wf_call *c) {
    if (!broadcasts_to(&c->in[0], &c->in[1]))
        return wf_fail(c, "%s does not broadcast to %s", wf_show(c, &c->in[0]),
                       wf_show(c, &c->in[1]));
    wf_set_shape(&c->out[0], c->in[0].dtype, c->in[1].ndim, c->in[1].shape);
    return true;
}

/* Shapes: x and like of any type; the shape of x, aligned on the right, has the sizes of like or
 * 1 -> y of the shape of like.
 * Gradient: Each x_j stands in several places of y: dx_j is the sum of dy over them. The rule
 * returns dy, and the engine sums it to the shape of x.
 * Limits: It is a view: no element is copied. A shape that does not broadcast fails the graph. */
const wf_op wf_op_broadcast_to = {
    .name = "broadcast_to",
    .family = "shape",
    .formula = "broadcast_to(x, like): x repeated to the shape of like",
    .arity = 2,
    .shape = shape_broadcast_to,
    .view = wf_broadcast_view,
    .grad = wf_grad_same,
    .shape_only = 2,
    .run = &(const wf_kernel){ .strided = 3 },
};

wf_tensor *wf_broadcast_to(wf_tensor *x, wf_tensor *like) {
    return wf_record(&wf_op_broadcast_to, 2, (wf_tensor *[]){ x, like }, NULL);
}

/* ---- sum_to: the sum over broadcast axes ----------------------------------------------------- */

static bool shape_sum_to(wf_call *c) {
    if (!wf_want_real(c, 0)) return false;
    if (!broadcasts_to(&c->in[1], &c->in[0]))
        return wf_fail(c, "%s does not broadcast to %s", wf_show(c, &c->in[1]),
                       wf_show(c, &c->in[0]));
    wf_set_shape(&c->out[0], c->in[0].dtype, c->in[1].ndim, c->in[1].shape);
    return true;
}

/* The result is a view of x if nothing was broadcast, or only leading axes of size 1 were added. */
static int64_t view_sum_to(wf_call *c) {
    const wf_view *x = &c->in[0];
    wf_view *y = &c->out[0];
    int extra = x->ndim - y->ndim;
    if (wf_view_count(x) != wf_view_count(y)) return -1;
    for (int i = 0; i < y->ndim; i++) y->stride[i] = x->stride[extra + i];
    return 0;
}

/* Shapes: x real; the shape of like broadcasts to that of x -> y of the shape of like.
 * Gradient: y = sum of x over the broadcast axes: every derivative is 1.
 * Limits: The order of each sum depends on its length alone. A shape that does not fit fails the
 * graph. */
const wf_op wf_op_sum_to = {
    .name = "sum_to",
    .family = "reduce",
    .formula = "sum_to(x, like): x summed over the axes along which like was broadcast",
    .arity = 2,
    .shape = shape_sum_to,
    .view = view_sum_to,
    .grad = wf_grad_sum,
    .shape_only = 2,
    .run = &wf_sum_kernel,
};

wf_tensor *wf_sum_to(wf_tensor *x, wf_tensor *like) {
    return wf_record(&wf_op_sum_to, 2, (wf_tensor *[]){ x, like }, NULL);
}
