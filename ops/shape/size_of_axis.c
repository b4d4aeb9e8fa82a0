/* ops/shape/size_of_axis.c - sizes as values: the size of an axis (i32), and the number of elements
 * along axes (real). They are read when a plan runs, so they are the bound sizes. */
#include <math.h>
#include <string.h>

#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/emit/loops.h"
#include "ops/ops_internal.h"

/* ---- size_of: i32 [] ------------------------------------------------------------------------- */

static bool shape_size_of(wf_call *c) {
    const int *axis = c->attrs;
    if (!wf_want_axis(c, *axis, c->in[0].ndim)) return false;
    wf_set_shape(&c->out[0], WF_I32, 0, NULL);
    return true;
}

static bool eval_size_of(const wf_call *c, int phase, int64_t task, void *scratch) {
    const int *axis = c->attrs;
    int64_t size = c->in[0].shape[*axis];
    (void)phase;
    (void)task;
    (void)scratch;
    if (size > INT32_MAX) return wf_fail(c, "%lld is too large for i32", (long long)size);
    *(int32_t *)c->out[0].data = (int32_t)size;
    return true;
}

static bool emit_size_of(wf_emitter *e, const wf_call *c) {
    const int *axis = c->attrs;
    wf_emit_text(e, "out[0] = %n;\n", c->in[0].shape[*axis]);
    return true;
}

/* Shapes: like of any shape -> i32 [].
 * Limits: The size is the one bound for the run, which may differ from the recorded one. */
const wf_op wf_op_size_of = {
    .name = "size_of",
    .family = "constant",
    .formula = "size_of(like): the size of the axis",
    .arity = 1,
    .attr_bytes = sizeof(int),
    .attributes = "int axis",
    .shape = shape_size_of,
    .no_grad = "it reads only a shape",
    .shape_only = 1,
    .run = &(const wf_kernel){ .eval = eval_size_of, .strided = 1, .emit = emit_size_of },
};

wf_tensor *wf_size_of(wf_tensor *like, int axis) {
    axis = wf_pick_axis(axis, wf_rank(like));
    return wf_record(&wf_op_size_of, 1, &like, &axis);
}

/* ---- count_of: real [] ----------------------------------------------------------------------- */

static bool shape_count_of(wf_call *c) {
    const uint32_t *axes = c->attrs;
    if (!wf_want_axes(c, *axes, c->in[0].ndim)) return false;
    wf_set_shape(&c->out[0], wf_real(c->graph), 0, NULL);
    return true;
}

/* The number of elements of operand 0 along these axes. */
static double count_of(const wf_call *c, uint32_t axes) {
    double n = 1;
    for (int i = 0; i < c->in[0].ndim; i++)
        if (axes >> i & 1) n *= (double)c->in[0].shape[i];
    return n;
}

static bool eval_count_of(const wf_call *c, int phase, int64_t task, void *scratch) {
    (void)phase;
    (void)task;
    (void)scratch;
    wf_put(&c->out[0], 0, count_of(c, *(const uint32_t *)c->attrs));
    return true;
}

static bool emit_count_of(wf_emitter *e, const wf_call *c) {
    wf_emit_text(e, "out[0] = %f;\n", count_of(c, *(const uint32_t *)c->attrs));
    return true;
}

/* Shapes: like of any shape -> real [].
 * Limits: In f32 a count above 2^24 is rounded. */
const wf_op wf_op_count_of = {
    .name = "count_of",
    .family = "constant",
    .formula = "count_of(like): the product of the sizes of the axes",
    .arity = 1,
    .attr_bytes = sizeof(uint32_t),
    .attributes = "uint32_t axes",
    .shape = shape_count_of,
    .no_grad = "it reads only a shape",
    .shape_only = 1,
    .run = &(const wf_kernel){ .eval = eval_count_of, .strided = 1, .emit = emit_count_of },
};

wf_tensor *wf_count_of(wf_tensor *like, uint32_t axes) {
    axes = wf_axes(axes, wf_rank(like));
    return wf_record(&wf_op_count_of, 1, &like, &axes);
}

/* ---- inverse_count: 1 / max(elements along these axes - correction, 0) ----------------------- */

typedef struct count_attrs {
    uint32_t axes;
    double correction;
} count_attrs;

static bool shape_inverse_count(wf_call *c) {
    const count_attrs *a = c->attrs;
    if (!wf_want_axes(c, a->axes, c->in[0].ndim)) return false;
    if (!isfinite(a->correction))
        return wf_fail(c, "a correction of %g, not a finite number", a->correction);
    wf_set_shape(&c->out[0], wf_real(c->graph), 0, NULL);
    return true;
}

static bool eval_inverse_count(const wf_call *c, int phase, int64_t task, void *scratch) {
    const count_attrs *a = c->attrs;
    (void)phase;
    (void)task;
    (void)scratch;
    wf_put(&c->out[0], 0, 1 / fmax(count_of(c, a->axes) - a->correction, 0));
    return true;
}

static bool emit_inverse_count(wf_emitter *e, const wf_call *c) {
    const count_attrs *a = c->attrs;
    wf_emit_text(e, "double n = (double)%n - %g;\n", (int64_t)count_of(c, a->axes), a->correction);
    wf_emit_text(e, "out[0] = (float)(1 / (n > 0 ? n : 0));\n");
    return true;
}

/* Shapes: like of any shape -> real [].
 * Limits: A number of elements not above the correction gives an infinity. The sizes are those
 * bound for the run. */
const wf_op wf_op_inverse_count = {
    .name = "inverse_count",
    .family = "constant",
    .formula =
        "inverse_count(like): 1 / max(the number of elements along the axes - correction, 0)",
    .arity = 1,
    .attr_bytes = sizeof(count_attrs),
    .attributes = "uint32_t axes, double correction",
    .shape = shape_inverse_count,
    .no_grad = "it reads only a shape",
    .shape_only = 1,
    .run =
        &(const wf_kernel){ .eval = eval_inverse_count, .strided = 1, .emit = emit_inverse_count },
};

wf_tensor *wf_inverse_count(wf_tensor *like, uint32_t axes, double correction) {
    count_attrs a;
    memset(&a, 0, sizeof a);
    a.axes = wf_axes(axes, wf_rank(like));
    a.correction = correction;
    return wf_record(&wf_op_inverse_count, 1, &like, &a);
}
