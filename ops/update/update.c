/* ops/update/update.c - updates, which are ops that write a leaf. This file has assign, accumulate,
 * and what the optimizers' steps share. The steps are in files of their own.
 *
 * An update is fetched like a value and performed once per run, after everything else that reads
 * its leaf. It has no value: its result has no elements. The rate and the bias corrections are data
 * (`rates`), computed by the caller in double, so that one plan works for a whole schedule; `scale`
 * multiplies the gradient (clipping, 1 / count). Decay, momentum and betas are attributes. The
 * formulas are PyTorch's (torch.optim).
 *
 * Numbers that would make a leaf NaN are errors: attributes out of range fail the recording; a rate
 * or scale that is not finite fails the run before anything is written. */
#include <math.h>
#include <string.h>

#include "ops/base/shapes.h"
#include "ops/emit/loops.h"
#include "sums.h"
#include "update.h"

/* ---- helpers, which the other steps use, too (update.h) -------------------------------------- */

const char wf_no_update_value[] = "an update has no value to differentiate";

int64_t wf_update_tasks(const wf_call *c, int phase) {
    return phase == 0 ? wf_task_count(wf_view_count(&c->in[0]), WF_UPDATE_GRAIN) : 0;
}

void wf_no_elements(wf_call *c) {
    wf_set_shape(&c->out[0], c->in[0].dtype, 1, (int64_t[]){ 0 });
}

bool wf_fits_leaf(wf_call *c, int i, const char *what) {
    const wf_view *leaf = &c->in[0], *v = &c->in[i];
    if (v->ndim < 0) return true;
    if (v->dtype != leaf->dtype)
        return wf_fail(c, "%s is %s, the leaf %s", what, wf_dtype_name(v->dtype),
                       wf_dtype_name(leaf->dtype));
    return wf_same_shape(v, leaf) ||
           wf_fail(c, "%s is %s, the leaf %s", what, wf_show(c, v), wf_show(c, leaf));
}

bool wf_rates_fit(wf_call *c, int i, int64_t n) {
    const wf_view *scale = &c->in[i], *rates = &c->in[i + 1];
    if (!wf_want_real(c, 0) || !wf_want_real(c, i) || !wf_want_real(c, i + 1)) return false;
    if (scale->ndim != 0) return wf_fail(c, "scale is %s, not []", wf_show(c, scale));
    return (rates->ndim == 1 && rates->shape[0] >= n) ||
           wf_fail(c, "rates are %s, fewer than %lld", wf_show(c, rates), (long long)n);
}

bool wf_is_finite(const wf_call *c, const char *what, double value) {
    return isfinite(value) || wf_fail(c, "%s is not finite: %g", what, value);
}

bool wf_is_beta(wf_call *c, const char *what, double beta) {
    return (beta >= 0 && beta < 1) ||
           wf_fail(c, "%s is %g, not at least 0 and below 1", what, beta);
}

bool wf_is_eps(wf_call *c, double eps) {
    return (eps > 0 && isfinite(eps)) || wf_fail(c, "eps is %g, not a finite number above 0", eps);
}

bool wf_rates_finite(const wf_call *c, int i, const char *const *names, int n) {
    bool ok = wf_is_finite(c, "the scale", wf_get(&c->in[i], 0));
    for (int k = 0; ok && k < n; k++) ok = wf_is_finite(c, names[k], wf_get(&c->in[i + 1], k));
    return ok;
}

void wf_emit_finite_rates(wf_emitter *e, int n) {
    wf_emit_may_fail(e);
    wf_emit_text(e, "if (scale[0] - scale[0] != 0) return 1;\n");
    for (int k = 0; k < n; k++)
        wf_emit_text(e, "if (rates[%d] - rates[%d] != 0) return 1;\n", k, k);
}

/* ---- assign: leaf = value -------------------------------------------------------------------- */

static bool shape_assign(wf_call *c) {
    wf_no_elements(c);
    return wf_fits_leaf(c, 1, "the value");
}

static bool eval_assign(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *leaf = &c->in[0];
    int64_t from, to;
    (void)phase;
    (void)scratch;
    wf_task_range(wf_view_count(leaf), WF_UPDATE_GRAIN, task, &from, &to);
    memmove(wf_at(leaf, from), wf_at(&c->in[1], from),
            (size_t)(to - from) * wf_dtype_size(leaf->dtype));
    return true;
}

static bool emit_assign(wf_emitter *e, const wf_call *c) {
    wf_emit_text(e, "for (int i = 0; i < %n; i++) leaf[i] = value[i];\n", wf_view_count(&c->in[0]));
    return true;
}

/* Shapes: leaf, and value as the leaf -> no value.
 * Limits: A plan performs it after all other readers of the leaf. */
const wf_op wf_op_assign = {
    .name = "assign",
    .family = "update",
    .formula = "assign(leaf, value): leaf = value",
    .arity = 2,
    .shape = shape_assign,
    .no_grad = wf_no_update_value,
    .writes = 1 << 0,
    .run = &(const wf_kernel){ .tasks = wf_update_tasks, .eval = eval_assign, .emit = emit_assign },
};

wf_tensor *wf_assign(wf_tensor *leaf, wf_tensor *value) {
    return wf_record(&wf_op_assign, 2, (wf_tensor *[]){ leaf, value }, NULL);
}

/* ---- accumulate: adds a value to the last sums on a stack ------------------------------------ */

enum { AT_DEPTH, AT_ADDED, AT_NUMBERS };

static bool shape_accumulate(wf_call *c) {
    const wf_view *sums = &c->in[0], *value = &c->in[1], *at = &c->in[2];
    wf_no_elements(c);
    if (!wf_want_real(c, 0) || !wf_want(c, 1, sums->dtype) || !wf_want_real(c, 2)) return false;
    bool fits = sums->ndim == value->ndim + 1;
    for (int i = 0; fits && i < value->ndim; i++) fits = sums->shape[i + 1] == value->shape[i];
    if (!fits)
        return wf_fail(c, "the value is %s, the sums %s", wf_show(c, value), wf_show(c, sums));
    return (at->ndim == 1 && at->shape[0] == AT_NUMBERS) ||
           wf_fail(c, "at is %s, not [2]", wf_show(c, at));
}

static int64_t tasks_accumulate(const wf_call *c, int phase) {
    return phase == 0 ? wf_task_count(wf_view_count(&c->in[1]), WF_UPDATE_GRAIN) : 0;
}

static bool plan_accumulate(wf_call *c, void *plan) {
    (void)plan;
    c->scratch_bytes = (WF_UPDATE_GRAIN + WF_TASK_MORE) * wf_dtype_size(c->in[0].dtype);
    return true;
}

/* Adds the sums from the top of the stack down: ... + (sums[depth - 2] + (sums[depth - 1] +
 * value)). */
static void add_from_top(const wf_call *c, int64_t depth, int64_t added, int64_t from, int64_t to,
                         void *sum) {
    const wf_view *sums = &c->in[0], *value = &c->in[1];
    int64_t n = wf_view_count(value);
    memcpy(sum, wf_at(value, from), (size_t)(to - from) * wf_dtype_size(sums->dtype));
    for (int64_t i = 1; i <= added; i++)
        WF_KERNEL(sums->dtype, accumulate(to - from, wf_at(sums, (depth - i) * n + from), sum));
}

static bool eval_accumulate(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *sums = &c->in[0], *value = &c->in[1];
    double depth = wf_get(&c->in[2], AT_DEPTH), added = wf_get(&c->in[2], AT_ADDED);
    int64_t n = wf_view_count(value), from, to;
    (void)phase;
    if (!(added >= 0 && added <= depth && depth - added < (double)sums->shape[0] &&
          depth <= (double)sums->shape[0]))
        return wf_fail(c, "%g of %g sums, where there is room for %lld", added, depth,
                       (long long)sums->shape[0]);
    wf_task_range(n, WF_UPDATE_GRAIN, task, &from, &to);
    void *top = wf_at(sums, (int64_t)(depth - added) * n + from);
    if (added == 1) { /* in place, because a sum of two has only one order */
        WF_KERNEL(sums->dtype, accumulate(to - from, wf_at(value, from), top));
        return true;
    }
    add_from_top(c, (int64_t)depth, (int64_t)added, from, to, scratch);
    memcpy(top, scratch, (size_t)(to - from) * wf_dtype_size(sums->dtype));
    return true;
}

static bool emit_accumulate(wf_emitter *e, const wf_call *c) {
    int64_t n = wf_view_count(&c->in[1]), room = c->in[0].shape[0];
    wf_emit_may_fail(e);
    wf_emit_text(e, "double depth = (double)at[%d], added = (double)at[%d];\n", AT_DEPTH, AT_ADDED);
    wf_emit_text(e, "if (!(added >= 0 && added <= depth && depth - added < %n && depth <= %n)) ",
                 room, room);
    wf_emit_text(e, "return 1;\nint top = (int)depth, left = (int)(depth - added);\n");
    wf_emit_text(e, "for (int i = 0; i < %n; i++) {\nfloat sum = value[i];\n", n);
    wf_emit_text(e, "for (int k = 1; k <= (int)added; k++) sum += sums[(top - k) * %n + i];\n", n);
    wf_emit_text(e, "sums[left * %n + i] = sum;\n}\n", n);
    return true;
}

/* Shapes: sums [depth, ...] is a stack of partial sums, value [...] real, at [2] -> no value. at[0]
 * is how many partial sums the stack holds, at[1] how many of them are added to the value.
 * Limits: The run fails unless at[1] <= at[0] <= depth and there is room for the result. The order
 * of additions is that of a binary tree, which does not depend on how micro-batches are divided
 * among ranks. */
const wf_op wf_op_accumulate = {
    .name = "accumulate",
    .family = "update",
    .formula =
        "accumulate(sums, value, at): value + the topmost sums take the place of these on the "
        "stack",
    .arity = 3,
    .shape = shape_accumulate,
    .no_grad = wf_no_update_value,
    .writes = 1 << 0,
    .run = &(const wf_kernel){ .plan = plan_accumulate,
                               .tasks = tasks_accumulate,
                               .eval = eval_accumulate,
                               .emit = emit_accumulate },
};

wf_tensor *wf_accumulate(wf_tensor *sums, wf_tensor *value, wf_tensor *at) {
    return wf_record(&wf_op_accumulate, 3, (wf_tensor *[]){ sums, value, at }, NULL);
}
