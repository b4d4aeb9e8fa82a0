/* ops/reduce/argmax.c - the index of the largest element of an axis, the first of equal ones.
 *
 * The axis is removed, and there is no gradient. The largest element itself is wf_max, in
 * reduce.c. */
#include <math.h>

#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"

enum { SEARCHED = 256 }; /* size of the blocks whose maximum is computed at a time */

static bool shape_argmax(wf_call *c) {
    const int *axis = c->attrs;
    const wf_view *x = &c->in[0];
    if (!wf_want_real(c, 0) || !wf_want_axis(c, *axis, x->ndim)) return false;
    if (x->shape[*axis] == 0) return wf_fail(c, "%s: no elements to choose from", wf_show(c, x));
    wf_set_shape(&c->out[0], WF_I32, x->ndim, x->shape);
    c->out[0].ndim--;
    for (int i = *axis; i < x->ndim - 1; i++) c->out[0].shape[i] = x->shape[i + 1];
    return true;
}

/* The index of the largest of n contiguous elements, or of the first NaN. First its block is found,
 * then its place in the block. */
#define LARGEST(real, table)                                                                       \
    static int32_t largest_##real(const real *x, int64_t n) {                                      \
        int64_t at = 0;                                                                            \
        real best = table()->max(n < SEARCHED ? n : SEARCHED, x);                                  \
        for (int64_t i = SEARCHED; i < n && !isnan(best); i += SEARCHED) {                         \
            real top = table()->max(n - i < SEARCHED ? n - i : SEARCHED, x + i);                   \
            if (!(top <= best)) best = top, at = i;                                                \
        }                                                                                          \
        while (x[at] != best && !isnan(x[at])) at++;                                               \
        return (int32_t)at;                                                                        \
    }
LARGEST(float, wf_f32)
LARGEST(double, wf_f64)

/* Like largest_float and largest_double, for elements `step` apart. */
static int32_t largest_strided(const wf_view *x, void *first, int64_t n, int64_t step) {
    wf_view row = *x;
    row.data = first;
    int64_t at = 0;
    double best = wf_get(&row, 0);
    for (int64_t i = 1; i < n && !isnan(best); i++) {
        double value = wf_get(&row, i * step);
        if (!(value <= best)) {
            best = value;
            at = i;
        }
    }
    return (int32_t)at;
}

static int64_t argmax_grain(const wf_call *c) {
    const int *axis = c->attrs;
    int64_t row = c->in[0].shape[*axis];
    return row >= WF_GRAIN ? 1 : WF_GRAIN / (row + WF_ROW_COST);
}

static int64_t tasks_argmax(const wf_call *c, int phase) {
    return phase == 0 ? wf_task_count(wf_view_count(&c->out[0]), argmax_grain(c)) : 0;
}

/* x without its axis. */
static wf_view rows_of(const wf_call *c) {
    const int *axis = c->attrs;
    wf_view x = c->in[0];
    x.ndim--;
    for (int i = *axis; i < x.ndim; i++) {
        x.shape[i] = x.shape[i + 1];
        x.stride[i] = x.stride[i + 1];
    }
    return x;
}

static bool eval_argmax(const wf_call *c, int phase, int64_t task, void *scratch) {
    const int *axis = c->attrs;
    wf_view x = rows_of(c);
    int64_t n = c->in[0].shape[*axis], step = c->in[0].stride[*axis], from, to;
    wf_walk w;
    (void)phase;
    (void)scratch;
    wf_walk_start(&w, 1, (const wf_view *[]){ &x });
    wf_task_range(wf_view_count(&x), argmax_grain(c), task, &from, &to);
    for (int64_t i = from; i < to; i++) {
        wf_walk_seek(&w, i / w.columns);
        void *p = wf_at(&x, w.at[0] + i % w.columns * w.step[0]);
        int32_t *y = wf_at(&c->out[0], i);
        *y = step != 1           ? largest_strided(&x, p, n, step)
             : x.dtype == WF_F64 ? largest_double(p, n)
                                 : largest_float(p, n);
    }
    return true;
}

static bool emit_argmax(wf_emitter *e, const wf_call *c) {
    const int *axis = c->attrs;
    wf_view x = rows_of(c);
    wf_walk w;
    wf_walk_start(&w, 2, (const wf_view *[]){ &c->out[0], &x });
    wf_emit_rows(e, &w, 'i');
    wf_emit_text(e, "for (int j = 0; j < %n; j++) {\nconst float *row = x + ", w.columns);
    wf_emit_element_at(e, &w, 1, "j");
    wf_emit_text(e, ";\nint at = 0;\n");
    wf_emit_text(e, "for (int k = 1; k < %n && row[at * %n] == row[at * %n]; k++)\n",
                 c->in[0].shape[*axis], c->in[0].stride[*axis], c->in[0].stride[*axis]);
    wf_emit_text(e, "if (!(row[k * %n] <= row[at * %n])) at = k;\nout[", c->in[0].stride[*axis],
                 c->in[0].stride[*axis]);
    wf_emit_element_at(e, &w, 0, "j");
    wf_emit_text(e, "] = at;\n}\n");
    return true;
}

/* Shapes: x real -> i32, without the axis.
 * Limits: An axis of size 0 fails. A NaN is the largest. */
const wf_op wf_op_argmax = {
    .name = "argmax",
    .family = "reduce",
    .formula = "argmax(x): the index of the largest element along the axis",
    .arity = 1,
    .attr_bytes = sizeof(int),
    .attributes = "int axis",
    .shape = shape_argmax,
    .no_grad = "an index is piecewise constant",
    .run = &(const wf_kernel){ .tasks = tasks_argmax,
                               .eval = eval_argmax,
                               .emit = emit_argmax,
                               .flops = wf_flops_of_operand,
                               .strided = 1 },
};

wf_tensor *wf_argmax(wf_tensor *x, int axis) {
    axis = wf_pick_axis(axis, wf_rank(x));
    return wf_record(&wf_op_argmax, 1, &x, &axis);
}
