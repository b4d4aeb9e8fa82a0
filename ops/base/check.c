/* ops/base/check.c - check_finite: its result is its operand, and a NaN or an infinity in that
 * fails the run.
 *
 * It guards a loss or a gradient norm: a run that fails here performs no updates. It can run in
 * place, and then costs one pass of reading. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "op_base.h"
#include "ops/emit/loops.h"
#include "shapes.h"
#include "walk.h"

typedef struct check_attrs {
    char what[96];
} check_attrs;

static bool says_which(const wf_call *c, int64_t from, int64_t to) {
    const check_attrs *a = c->attrs;
    const wf_view *x = &c->in[0];
    while (from + 1 < to && isfinite(wf_get(x, from))) from++;
    if (wf_view_count(x) == 1) return wf_fail(c, "%s is not finite: %g", a->what, wf_get(x, 0));
    return wf_fail(c, "%s is not finite: element %lld is %g", a->what, (long long)from,
                   wf_get(x, from));
}

static bool eval_check(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *x = &c->in[0], *y = &c->out[0];
    int64_t from, to;
    (void)phase;
    (void)scratch;
    wf_task_range(wf_view_count(x), WF_GRAIN, task, &from, &to);
    if (!WF_KERNEL(x->dtype, finite(to - from, wf_at(x, from)))) return says_which(c, from, to);
    if (x->data != y->data)
        memcpy(wf_at(y, from), wf_at(x, from), (size_t)(to - from) * wf_dtype_size(x->dtype));
    return true;
}

static bool emit_check(wf_emitter *e, const wf_call *c) {
    wf_emit_may_fail(e);
    wf_emit_text(e, "for (int i = 0; i < %n; i++)\nif (x[i] - x[i] != 0) return 1;\n",
                 wf_view_count(&c->in[0]));
    wf_emit_text(e, "for (int i = 0; i < %n; i++) out[i] = x[i];\n", wf_view_count(&c->in[0]));
    return true;
}

/* Shapes: x real, of any shape -> y as x.
 * Gradient: If the run does not fail, y is x, so dx = dy.
 * Limits: A run that fails here performs no updates. */
const wf_op wf_op_check_finite = {
    .name = "check_finite",
    .family = "elementwise",
    .formula = "check_finite(x): x; the run fails if it holds a NaN or an infinity",
    .arity = 1,
    .attr_bytes = sizeof(check_attrs),
    .shape = wf_same_as_operand,
    .grad = wf_grad_same,
    .run = &(const wf_kernel){ .tasks = wf_elementwise_tasks,
                               .eval = eval_check,
                               .in_place = 1 << 0,
                               .emit = emit_check },
};

wf_tensor *wf_check_finite(wf_tensor *x, const char *what) {
    check_attrs a = { { 0 } };
    snprintf(a.what, sizeof a.what, "%s", what && what[0] ? what : "a value");
    return wf_record(&wf_op_check_finite, 1, &x, &a);
}
