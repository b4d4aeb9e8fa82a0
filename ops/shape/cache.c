/* ops/shape/cache.c - the KV cache of a generation: keys and values of earlier positions.
 *
 * In a plan without a state the result is x itself. With a state, x has the newest n rows along
 * `axis`. They are written to rows [P, P + n) of the state's memory, and the result is a view of
 * its rows [0, P + n). The engine gives out[0] that memory, with the strides of its full
 * capacity. */
#include <string.h>

#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"

typedef struct cache_attrs {
    int axis;
} cache_attrs;

static bool shape_cache(wf_call *c) {
    const cache_attrs *a = c->attrs;
    const wf_view *x = &c->in[0];
    int axis = wf_axis(a->axis, x->ndim);
    char text[WF_AXIS_TEXT];
    if (axis < 1)
        return wf_fail(c, "%s cannot grow along %s: it must be an axis after the batch",
                       wf_show(c, x), wf_axis_text(a->axis, text));
    wf_set_shape(&c->out[0], x->dtype, x->ndim, x->shape);
    if (c->with_state) c->out[0].shape[axis] += c->position;
    return true;
}

static int64_t view_cache(wf_call *c) {
    return c->with_state ? -1 : wf_same_memory(c);
}

static void copy_rows(const wf_view *to, const wf_view *from) {
    size_t size = wf_dtype_size(from->dtype);
    wf_walk w;
    wf_walk_start(&w, 2, (const wf_view *[]){ to, from });
    for (int64_t row = 0; row < w.rows; row++, wf_walk_next(&w)) {
        bool whole = w.step[0] == 1 && w.step[1] == 1;
        for (int64_t i = 0, n = whole ? w.columns : 1; i < w.columns; i += n)
            memcpy(wf_at(to, w.at[0] + i * w.step[0]), wf_at(from, w.at[1] + i * w.step[1]),
                   (size_t)n * size);
    }
}

static bool eval_cache(const wf_call *c, int phase, int64_t task, void *scratch) {
    const cache_attrs *a = c->attrs;
    const wf_view *x = &c->in[0], *memory = &c->out[0];
    wf_view rows = *x; /* rows [P, P + n) of the memory */
    (void)phase;
    (void)task;
    (void)scratch;
    memcpy(rows.stride, memory->stride, sizeof rows.stride);
    rows.data = wf_at(memory, c->position * memory->stride[wf_axis(a->axis, x->ndim)]);
    copy_rows(&rows, x);
    return true;
}

static bool emit_cache(wf_emitter *e, const wf_call *c) {
    const cache_attrs *a = c->attrs;
    const wf_view *x = &c->in[0];
    wf_view rows = *x; /* rows [P, P + n) of the memory */
    memcpy(rows.stride, c->out[0].stride, sizeof rows.stride);
    wf_emit_text(e, "out += %n;\n", c->position * rows.stride[wf_axis(a->axis, x->ndim)]);
    wf_emit_copy(e, &rows, x, wf_emit_operand(e, 0));
    return true;
}

/* Shapes: x of any type; the axis comes after the batch -> x, or with a state P + n rows along the
 * axis instead of n.
 * Gradient: It exists only in plans without a state, where y is x: dx = dy.
 * Limits: The state has a capacity, which a run may not exceed. A plan that computes gradients has
 * no state. */
const wf_op wf_op_cache = {
    .name = "cache",
    .family = "shape",
    .formula = "cache(x): x; with a state the rows of all positions so far",
    .arity = 1,
    .attr_bytes = sizeof(cache_attrs),
    .attributes = "int axis",
    .shape = shape_cache,
    .view = view_cache,
    .grad = wf_grad_same,
    .run =
        &(const wf_kernel){
            .eval = eval_cache, .strided = 1 << 0, .cached = true, .emit = emit_cache },
};

wf_tensor *wf_cache(wf_tensor *x, int axis) {
    return wf_record(&wf_op_cache, 1, &x, &(cache_attrs){ axis });
}
