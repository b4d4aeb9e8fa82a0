/* ops/update/update.c - updates: ops that write a leaf. assign, accumulate, and the optimizers'
 * steps; the step of Adam for the gradient of an embedding table is in update_rows.c.
 *
 * An update is fetched like a value and performed once per run, after everything else that reads
 * its leaf. It has no value: its result has no elements. The rate and the bias corrections are data
 * (`rates`), computed by the caller in double, so that one plan works for a whole schedule; `scale`
 * multiplies the gradient (clipping, 1 / count). Decay, momentum and betas are attributes. The
 * formulas are PyTorch's (torch.optim.SGD, Adam, AdamW).
 *
 * Numbers that would make a leaf NaN are errors: attributes out of range fail the recording; a rate
 * or scale that is not finite fails the run before anything is written. */
#include <math.h>
#include <string.h>

#include "ops/base/shapes.h"
#include "update.h"

static const char no_value[] = "an update has no value to differentiate";

/* ---- helpers --------------------------------------------------------------------------------- */

static void set_no_elements(wf_call *c) {
    wf_set_shape(&c->out[0], c->in[0].dtype, 1, (int64_t[]){ 0 });
}

static int64_t tasks_update(const wf_call *c, int phase) {
    return phase == 0 ? wf_task_count(wf_view_count(&c->in[0]), WF_UPDATE_GRAIN) : 0;
}

static bool fits_leaf(wf_call *c, int i, const char *what) {
    const wf_view *leaf = &c->in[0], *v = &c->in[i];
    if (v->ndim < 0) return true;
    if (v->dtype != leaf->dtype)
        return wf_fail(c, "%s is %s, the leaf %s", what, wf_dtype_name(v->dtype),
                       wf_dtype_name(leaf->dtype));
    return wf_same_shape(v, leaf) ||
           wf_fail(c, "%s is %s, the leaf %s", what, wf_show(c, v), wf_show(c, leaf));
}

/* scale: real []; rates: real, n of them or more */
static bool rates_fit(wf_call *c, int i, int64_t n) {
    const wf_view *scale = &c->in[i], *rates = &c->in[i + 1];
    if (!wf_want_real(c, 0) || !wf_want_real(c, i) || !wf_want_real(c, i + 1)) return false;
    if (scale->ndim != 0) return wf_fail(c, "scale is %s, not []", wf_show(c, scale));
    return (rates->ndim == 1 && rates->shape[0] >= n) ||
           wf_fail(c, "rates are %s, fewer than %lld", wf_show(c, rates), (long long)n);
}

static bool is_finite(const wf_call *c, const char *what, double value) {
    return isfinite(value) || wf_fail(c, "%s is not finite: %g", what, value);
}

/* Checks the scale, operand i, and n numbers of the rates, the next operand. Every task calls this
 * before it writes. All tasks of all steps read the same numbers, so either all of them write or
 * none. */
static bool rates_finite(const wf_call *c, int i, int n) {
    static const char *const names[] = { "the rate", "the bias correction of beta1",
                                         "the bias correction of beta2" };
    bool ok = is_finite(c, "the scale", wf_get(&c->in[i], 0));
    for (int k = 0; ok && k < n; k++) ok = is_finite(c, names[k], wf_get(&c->in[i + 1], k));
    return ok;
}

/* ---- assign: leaf = value -------------------------------------------------------------------- */

static bool shape_assign(wf_call *c) {
    set_no_elements(c);
    return fits_leaf(c, 1, "the value");
}

static bool eval_assign(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *leaf = &c->in[0];
    int64_t from, to;
    (void)phase, (void)scratch;
    wf_task_range(wf_view_count(leaf), WF_UPDATE_GRAIN, task, &from, &to);
    memmove(wf_at(leaf, from), wf_at(&c->in[1], from),
            (size_t)(to - from) * wf_dtype_size(leaf->dtype));
    return true;
}

const wf_op wf_op_assign = {
    .name = "assign",
    .family = "update",
    .arity = 2,
    .shape = shape_assign,
    .no_grad = no_value,
    .writes = 1 << 0,
    .run = &(const wf_kernel){ .tasks = tasks_update, .eval = eval_assign },
};

wf_tensor *wf_assign(wf_tensor *leaf, wf_tensor *value) {
    return wf_record(&wf_op_assign, 2, (wf_tensor *[]){ leaf, value }, NULL);
}

/* ---- accumulate: leaf = value, or leaf + value ----------------------------------------------- */

static bool shape_accumulate(wf_call *c) {
    set_no_elements(c);
    if (!wf_want_real(c, 0) || !wf_want_real(c, 2) || !fits_leaf(c, 1, "the value")) return false;
    return c->in[2].ndim == 0 || wf_fail(c, "more is %s, not []", wf_show(c, &c->in[2]));
}

static bool eval_accumulate(const wf_call *c, int phase, int64_t task, void *scratch) {
    int64_t from, to;
    if (wf_get(&c->in[2], 0) == 0) return eval_assign(c, phase, task, scratch);
    wf_task_range(wf_view_count(&c->in[0]), WF_UPDATE_GRAIN, task, &from, &to);
    WF_KERNEL(c->in[0].dtype,
              accumulate(to - from, wf_at(&c->in[1], from), wf_at(&c->in[0], from)));
    return true;
}

const wf_op wf_op_accumulate = {
    .name = "accumulate",
    .family = "update",
    .arity = 3,
    .shape = shape_accumulate,
    .no_grad = no_value,
    .writes = 1 << 0,
    .run = &(const wf_kernel){ .tasks = tasks_update, .eval = eval_accumulate },
};

wf_tensor *wf_accumulate(wf_tensor *leaf, wf_tensor *value, wf_tensor *more) {
    return wf_record(&wf_op_accumulate, 3, (wf_tensor *[]){ leaf, value, more }, NULL);
}

/* ---- sgd_step -------------------------------------------------------------------------------- */

/* g = scale * grad + weight_decay * p;  b = momentum * b + g;  p -= rate * b
 * and without a buffer p -= rate * g.
 * Sutskever et al. (2013), in the form of torch.optim.SGD with dampening 0. */
typedef struct sgd_attrs {
    double momentum, weight_decay;
} sgd_attrs;
enum { SGD_PARAM, SGD_BUFFER, SGD_GRAD, SGD_SCALE, SGD_RATES, SGD_OPERANDS };

static bool shape_sgd(wf_call *c) {
    const sgd_attrs *a = c->attrs;
    set_no_elements(c);
    if (a->momentum != 0 && c->in[SGD_BUFFER].ndim < 0)
        return wf_fail(c, "a momentum of %g needs a buffer", a->momentum);
    return is_finite(c, "the momentum", a->momentum) &&
           is_finite(c, "the weight decay", a->weight_decay) &&
           fits_leaf(c, SGD_BUFFER, "the momentum buffer") &&
           fits_leaf(c, SGD_GRAD, "the gradient") && rates_fit(c, SGD_SCALE, 1);
}

static bool eval_sgd(const wf_call *c, int phase, int64_t task, void *scratch) {
    const sgd_attrs *a = c->attrs;
    const wf_view *p = &c->in[SGD_PARAM], *b = &c->in[SGD_BUFFER];
    double scale = wf_get(&c->in[SGD_SCALE], 0), rate = wf_get(&c->in[SGD_RATES], 0);
    int64_t from, to;
    (void)phase, (void)scratch;
    if (!rates_finite(c, SGD_SCALE, 1)) return false;
    wf_task_range(wf_view_count(p), WF_UPDATE_GRAIN, task, &from, &to);
    WF_KERNEL(p->dtype,
              sgd(to - from, wf_at(p, from), b->ndim < 0 ? NULL : wf_at(b, from),
                  wf_at(&c->in[SGD_GRAD], from), scale, rate, a->momentum, a->weight_decay));
    return true;
}

static double flops_sgd(const wf_call *c) {
    return 6.0 * (double)wf_view_count(&c->in[SGD_PARAM]);
}

const wf_op wf_op_sgd_step = {
    .name = "sgd_step",
    .family = "update",
    .arity = SGD_OPERANDS,
    .attr_bytes = sizeof(sgd_attrs),
    .shape = shape_sgd,
    .no_grad = no_value,
    .optional = 1 << SGD_BUFFER,
    .writes = 1 << SGD_PARAM | 1 << SGD_BUFFER,
    .run = &(const wf_kernel){ .tasks = tasks_update, .eval = eval_sgd, .flops = flops_sgd },
};

wf_tensor *wf_sgd_step(wf_tensor *param, wf_tensor *momentum_buffer, wf_tensor *grad,
                       wf_tensor *scale, wf_tensor *rates, double momentum, double weight_decay) {
    return wf_record(&wf_op_sgd_step, SGD_OPERANDS,
                     (wf_tensor *[]){ param, momentum_buffer, grad, scale, rates },
                     &(sgd_attrs){ momentum, weight_decay });
}

/* ---- adam_step ------------------------------------------------------------------------------- */

/* g = scale * grad;  m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2;
 * p -= rate * (c1 * m) / (sqrt(c2 * v) + eps)           with c1 = 1 / (1 - beta1^t), c2 likewise
 * (Kingma & Ba 2015, algorithm 1). Weight decay: g += weight_decay * p; decoupled, instead,
 * p -= rate * weight_decay * p before the step (Loshchilov & Hutter 2019, algorithm 2). */
static const wf_adam_options adam_default = { 0.9, 0.999, 1e-8, 0, false };

bool wf_is_stored_memory(const wf_tensor *t) {
    while (t->op && t->op->view) t = t->in[0];
    return t->kind == WF_PARAM || t->kind == WF_BUFFER;
}

static bool is_beta(wf_call *c, const char *what, double beta) {
    return (beta >= 0 && beta < 1) ||
           wf_fail(c, "%s is %g, not at least 0 and below 1", what, beta);
}

bool wf_adam_fits(wf_call *c, const wf_adam_options *o, int scale) {
    set_no_elements(c);
    if (!is_beta(c, "beta1", o->beta1) || !is_beta(c, "beta2", o->beta2)) return false;
    if (!(o->eps > 0 && isfinite(o->eps)))
        return wf_fail(c, "eps is %g, not a finite number above 0", o->eps);
    return is_finite(c, "the weight decay", o->weight_decay) && fits_leaf(c, ADAM_M, "m") &&
           fits_leaf(c, ADAM_V, "v") && rates_fit(c, scale, 3);
}

bool wf_adam_rule_of(const wf_call *c, const wf_adam_options *o, int scale, wf_adam_rule *rule) {
    const wf_view *rates = &c->in[scale + 1];
    if (!rates_finite(c, scale, 3)) return false;
    *rule = (wf_adam_rule){ wf_get(&c->in[scale], 0),
                            wf_get(rates, 0),
                            wf_get(rates, 1),
                            wf_get(rates, 2),
                            o->beta1,
                            o->beta2,
                            o->eps,
                            o->weight_decay,
                            o->decoupled };
    return true;
}

static bool shape_adam(wf_call *c) {
    return wf_adam_fits(c, c->attrs, ADAM_SCALE) && fits_leaf(c, ADAM_GRAD, "the gradient");
}

static bool eval_adam(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *p = &c->in[ADAM_PARAM];
    wf_adam_rule rule;
    int64_t from, to;
    (void)phase, (void)scratch;
    if (!wf_adam_rule_of(c, c->attrs, ADAM_SCALE, &rule)) return false;
    wf_task_range(wf_view_count(p), WF_UPDATE_GRAIN, task, &from, &to);
    WF_KERNEL(p->dtype, adam(to - from, wf_at(p, from), wf_at(&c->in[ADAM_M], from),
                             wf_at(&c->in[ADAM_V], from), wf_at(&c->in[ADAM_GRAD], from), &rule));
    return true;
}

static double flops_adam(const wf_call *c) {
    return 15.0 * (double)wf_view_count(&c->in[ADAM_PARAM]);
}

const wf_op wf_op_adam_step = {
    .name = "adam_step",
    .family = "update",
    .arity = ADAM_OPERANDS,
    .attr_bytes = sizeof(wf_adam_options),
    .shape = shape_adam,
    .no_grad = no_value,
    .writes = 1 << ADAM_PARAM | 1 << ADAM_M | 1 << ADAM_V,
    .run = &(const wf_kernel){ .tasks = tasks_update, .eval = eval_adam, .flops = flops_adam },
};

wf_tensor *wf_adam_step(wf_tensor *param, wf_tensor *m, wf_tensor *v, wf_tensor *grad,
                        wf_tensor *scale, wf_tensor *rates, const wf_adam_options *options) {
    wf_adam_options o = options ? *options : adam_default;
    return wf_record(&wf_op_adam_step, ADAM_OPERANDS,
                     (wf_tensor *[]){ param, m, v, grad, scale, rates }, &o);
}
