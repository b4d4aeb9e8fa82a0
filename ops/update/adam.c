/* ops/update/adam.c - a step of Adam or AdamW:
 *
 *     g = scale grad;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
 *     p -= rate (c1 m) / (sqrt(c2 v) + eps)          with c1 = 1 / (1 - beta1^t), c2 likewise
 *
 * (Kingma & Ba 2015, algorithm 1). Weight decay: g += weight_decay p; decoupled, instead,
 * p -= rate weight_decay p before the step (Loshchilov & Hutter 2019, algorithm 2). */
#include "ops/base/shapes.h"
#include "update.h"

static const wf_adam_options adam_default = { 0.9, 0.999, 1e-8, 0, false };

bool wf_adam_fits(wf_call *c, const wf_adam_options *o, int scale) {
    wf_no_elements(c);
    return wf_is_beta(c, "beta1", o->beta1) && wf_is_beta(c, "beta2", o->beta2) &&
           wf_is_eps(c, o->eps) && wf_is_finite(c, "the weight decay", o->weight_decay) &&
           wf_fits_leaf(c, ADAM_M, "m") && wf_fits_leaf(c, ADAM_V, "v") &&
           wf_rates_fit(c, scale, 3);
}

bool wf_adam_rule_of(const wf_call *c, const wf_adam_options *o, int scale, wf_adam_rule *rule) {
    static const char *const names[] = { "the rate", "the bias correction of beta1",
                                         "the bias correction of beta2" };
    const wf_view *rates = &c->in[scale + 1];
    if (!wf_rates_finite(c, scale, names, 3)) return false;
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
    return wf_adam_fits(c, c->attrs, ADAM_SCALE) && wf_fits_leaf(c, ADAM_GRAD, "the gradient");
}

static bool eval_adam(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *p = &c->in[ADAM_PARAM];
    wf_adam_rule rule;
    int64_t from, to;
    (void)phase;
    (void)scratch;
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
    .no_grad = wf_no_update_value,
    .writes = 1 << ADAM_PARAM | 1 << ADAM_M | 1 << ADAM_V,
    .run = &(const wf_kernel){ .tasks = wf_update_tasks, .eval = eval_adam, .flops = flops_adam },
};

wf_tensor *wf_adam_step(wf_tensor *param, wf_tensor *m, wf_tensor *v, wf_tensor *grad,
                        wf_tensor *scale, wf_tensor *rates, const wf_adam_options *options) {
    wf_adam_options o = options ? *options : adam_default;
    return wf_record(&wf_op_adam_step, ADAM_OPERANDS,
                     (wf_tensor *[]){ param, m, v, grad, scale, rates }, &o);
}
