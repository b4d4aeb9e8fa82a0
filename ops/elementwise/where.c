/* ops/elementwise/where.c - selects element by element: y = condition != 0 ? a : b, with
 * broadcasting. */
#include "core/compose.h"
#include "integer.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"

static bool shape_where(wf_call *c) {
    wf_view both = { 0 };
    if (!wf_want_real(c, 0) || !wf_want(c, 2, c->in[1].dtype)) return false;
    if (!wf_broadcast_shapes(c, &c->in[1], &c->in[2], &both)) return false;
    if (!wf_broadcast_shapes(c, &c->in[0], &both, &c->out[0])) return false;
    c->out[0].dtype = c->in[1].dtype;
    return true;
}

static bool eval_where(const wf_call *c, int phase, int64_t task, void *scratch) {
    wf_runs r;
    (void)phase;
    (void)scratch;
    if (c->out[0].dtype == WF_I32) return wf_run_integer_where(c, task);
    for (wf_runs_start(&r, c, task, true); wf_runs_next(&r);)
        WF_KERNEL(c->out[0].dtype,
                  where(r.n, r.in[0], r.step[0], r.in[1], r.step[1], r.in[2], r.step[2], r.out));
    return true;
}

static bool emit_where(wf_emitter *e, const wf_call *c) {
    return wf_emit_choice(e, c, "condition != 0.0f ? a : b");
}

/* dy goes to a where the condition holds, and to b elsewhere. The condition has no gradient: y is
 * piecewise constant in it. */
static void grad_where(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    wf_tensor *condition = y->in[0];
    if (need & 2) dx[1] = wf_where(condition, dy[0], wf_zero(y));
    if (need & 4) dx[2] = wf_where(condition, wf_zero(y), dy[0]);
}

/* Shapes: condition real or i32; a and b of one type, real or i32; the three broadcast -> y of
 * their common shape.
 * Limits: A NaN as the condition is true, as every number but 0. An element that is not chosen
 * may be NaN: it is not multiplied with 0. */
const wf_op wf_op_where = {
    .name = "where",
    .family = "elementwise",
    .formula = "where(condition, a, b): a where condition is not 0, else b",
    .arity = 3,
    .shape = shape_where,
    .grad = grad_where,
    .nondiff = 1,
    .run = &(const wf_kernel){ .tasks = wf_elementwise_tasks,
                               .eval = eval_where,
                               .strided = 7,
                               .in_place = 7,
                               .emit = emit_where },
};

wf_tensor *wf_where(wf_tensor *condition, wf_tensor *a, wf_tensor *b) {
    return wf_record(&wf_op_where, 3, (wf_tensor *[]){ wf_real_mask(condition), a, b }, NULL);
}

/* The mask is broadcast to x first, so that the result has the shape of x. */
wf_tensor *wf_masked_fill(wf_tensor *x, wf_tensor *mask, double value) {
    WF_COMPOSE("masked_fill", x, mask);
    return wf_composed(wf_where(wf_broadcast_to(wf_real_mask(mask), x),
                                wf_constant(x ? x->graph : NULL, value), x));
}
