/* ops/shape/concat.c - tensors joined along an axis, and the adjoint unconcat. */
#include <string.h>

#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"
#include "steps.h"

/* ---- concat: joins tensors along an axis ----------------------------------------------------- */

enum { MAX_PARTS = WF_MAX_OPERANDS - 1 }; /* one less, because unconcat has one operand more */

static bool shape_concat(wf_call *c) {
    const int *axis = c->attrs;
    const wf_view *first = &c->in[0];
    int64_t total = 0;
    if (!wf_want_axis(c, *axis, first->ndim)) return false;
    for (int i = 0; i < c->n_in; i++) {
        wf_view x = c->in[i];
        if (!wf_want(c, i, first->dtype)) return false;
        if (x.ndim > *axis && x.shape[*axis] > INT64_MAX - total)
            return wf_fail(c, "the result is too large");
        total += x.ndim > *axis ? x.shape[*axis] : 0;
        x.shape[*axis] = first->shape[*axis];
        if (!wf_same_shape(first, &x))
            return wf_fail(c, "%s and %s differ beside axis %d", wf_show(c, first),
                           wf_show(c, &c->in[i]), *axis);
    }
    wf_set_shape(&c->out[0], first->dtype, first->ndim, first->shape);
    c->out[0].shape[*axis] = total;
    return true;
}

static bool eval_concat(const wf_call *c, int phase, int64_t task, void *scratch) {
    const int *axis = c->attrs;
    wf_target v = wf_target_of(c, *axis, task);
    (void)phase;
    (void)scratch;
    for (int64_t i = 0, at = 0; i < c->n_in; at += c->in[i++].shape[*axis])
        wf_fill_steps(&v, at, at + c->in[i].shape[*axis], &c->in[i]);
    return true;
}

static bool emit_concat(wf_emitter *e, const wf_call *c) {
    const int *axis = c->attrs;
    wf_target v = wf_target_of(c, *axis, 0);
    int64_t at = 0;
    for (int k = 0; k < c->n_in; k++) {
        int64_t width = c->in[k].shape[*axis] * v.inner;
        if (!width || !v.row) continue;
        wf_emit_text(e, "for (int i = 0; i < %n; i++)\nfor (int j = 0; j < %n; j++)\n",
                     wf_view_count(v.out) / v.row, width);
        wf_emit_text(e, "out[i * %n + %n + j] = %s[i * %n + j];\n", v.row, at,
                     wf_emit_operand(e, k), width);
        at += width;
    }
    return true;
}

static wf_tensor *unconcat(wf_tensor *x, wf_tensor *const *like, int n, int axis, int index);

/* The gradient of each part is its range of dy. */
static void grad_concat(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const int *axis = y->attrs;
    for (int i = 0; i < y->n_in; i++)
        if (need >> i & 1) dx[i] = unconcat(dy[0], y->in, y->n_in, *axis, i);
}

/* Shapes: 1 to 32 tensors of one type, equal along all other axes -> the sum of their sizes along
 * the axis.
 * Limits: A node has at most 32 operands; wf_concat records several nodes for more than 31. */
const wf_op wf_op_concat = {
    .name = "concat",
    .family = "shape",
    .formula = "concat(x, ...): the operands one after the other along the axis",
    .arity = -1,
    .attr_bytes = sizeof(int),
    .attributes = "int axis",
    .shape = shape_concat,
    .grad = grad_concat,
    .run = &(
        const wf_kernel){ .tasks = wf_elementwise_tasks, .eval = eval_concat, .emit = emit_concat },
};

/* If there are more parts than one node can have, the concatenation of the first ones becomes a
 * part of the next. */
wf_tensor *wf_concat(wf_tensor *const *x, int n, int axis) {
    wf_tensor *part[MAX_PARTS], *y;
    int k = 0, i = 0;
    if (n < 1 || !x) return wf_poison(NULL, "concat: no operands");
    axis = wf_pick_axis(axis, wf_rank(x[0]));
    do {
        while (k < MAX_PARTS && i < n) part[k++] = x[i++];
        y = wf_record(&wf_op_concat, k, part, &axis);
        part[0] = y;
        k = 1;
    } while (i < n);
    return y;
}

/* ---- unconcat(x, like...): the part of x that like[index] has in a concatenation of all `like` */

typedef struct unconcat_attrs {
    int axis, index;
} unconcat_attrs;

static bool shape_unconcat(wf_call *c) {
    const unconcat_attrs *s = c->attrs;
    wf_view whole = c->in[s->index + 1];
    wf_set_shape(&c->out[0], c->in[0].dtype, whole.ndim, whole.shape);
    whole.shape[s->axis] = 0;
    for (int i = 1; i < c->n_in; i++) whole.shape[s->axis] += c->in[i].shape[s->axis];
    return wf_same_shape(&whole, &c->in[0]) ||
           wf_fail(c, "%s is not a concatenation to %s", wf_show(c, &c->in[0]), wf_show(c, &whole));
}

static int64_t view_unconcat(wf_call *c) {
    const unconcat_attrs *s = c->attrs;
    int64_t at = 0;
    for (int i = 1; i <= s->index; i++) at += c->in[i].shape[s->axis];
    memcpy(c->out[0].stride, c->in[0].stride, sizeof c->out[0].stride);
    return at * c->in[0].stride[s->axis];
}

/* The other parts have gradient 0. */
static void grad_unconcat(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const unconcat_attrs *s = y->attrs;
    wf_tensor *part[MAX_PARTS];
    (void)need;
    for (int i = 0; i < y->n_in - 1; i++)
        part[i] = i == s->index ? dy[0] : wf_fill(y->in[i + 1], 0);
    dx[0] = wf_concat(part, y->n_in - 1, s->axis);
}

/* Shapes: x in the shape of the concatenation of the other operands -> y in the shape of the one
 * with this index.
 * Limits: A view of x. Only the shapes of the other operands are read. */
const wf_op wf_op_unconcat = {
    .name = "unconcat",
    .family = "shape",
    .formula = "unconcat(dy, ...): the part of dy that stands where one operand of a concat stood",
    .arity = -1,
    .attr_bytes = sizeof(unconcat_attrs),
    .attributes = "int axis, int index",
    .shape = shape_unconcat,
    .view = view_unconcat,
    .grad = grad_unconcat,
    .shape_only = ~1u,
    .run = &(const wf_kernel){ .strided = 1 },
};

static wf_tensor *unconcat(wf_tensor *x, wf_tensor *const *like, int n, int axis, int index) {
    wf_tensor *in[WF_MAX_OPERANDS] = { x };
    memcpy(in + 1, like, (size_t)n * sizeof *in);
    return wf_record(&wf_op_unconcat, n + 1, in, &(unconcat_attrs){ axis, index });
}
