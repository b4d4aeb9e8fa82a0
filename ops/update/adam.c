/* ops/update/adam.c - a step of Adam or AdamW:
 *
 *     g = scale grad;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
 *     p -= rate (c1 m) / (sqrt(c2 v) + eps)          with c1 = 1 / (1 - beta1^t), c2 likewise
 *
 * (Kingma & Ba 2015, algorithm 1). Weight decay: g += weight_decay p; decoupled, instead,
 * p -= rate weight_decay p before the step (Loshchilov & Hutter 2019, algorithm 2). */
#include "ops/base/shapes.h"
#include "ops/emit/loops.h"
#include "update.h"

static const wf_adam_options adam_default = { 0.9, 0.999, 1e-8, 0, false };

/* Indices of operands. The first three are written. */
enum { PARAM, M, V, GRAD, SCALE, RATES, OPERANDS };

static bool shape_adam(wf_call *c) {
    const wf_adam_options *o = c->attrs;
    wf_no_elements(c);
    return wf_is_beta(c, "beta1", o->beta1) && wf_is_beta(c, "beta2", o->beta2) &&
           wf_is_eps(c, o->eps) && wf_is_finite(c, "the weight decay", o->weight_decay) &&
           wf_fits_leaf(c, M, "m") && wf_fits_leaf(c, V, "v") && wf_rates_fit(c, SCALE, 3) &&
           wf_fits_leaf(c, GRAD, "the gradient");
}

/* Computes the numbers of this step. False after wf_fail if one is not finite. */
static bool rule_of(const wf_call *c, wf_adam_rule *rule) {
    static const char *const names[] = { "the rate", "the bias correction of beta1",
                                         "the bias correction of beta2" };
    const wf_adam_options *o = c->attrs;
    const wf_view *rates = &c->in[RATES];
    if (!wf_rates_finite(c, SCALE, names, 3)) return false;
    *rule = (wf_adam_rule){ wf_get(&c->in[SCALE], 0),
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

static bool eval_adam(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *p = &c->in[PARAM];
    wf_adam_rule rule;
    int64_t from, to;
    (void)phase;
    (void)scratch;
    if (!rule_of(c, &rule)) return false;
    wf_task_range(wf_view_count(p), WF_UPDATE_GRAIN, task, &from, &to);
    WF_KERNEL(p->dtype, adam(to - from, wf_at(p, from), wf_at(&c->in[M], from),
                             wf_at(&c->in[V], from), wf_at(&c->in[GRAD], from), &rule));
    return true;
}

static bool emit_adam(wf_emitter *e, const wf_call *c) {
    const wf_adam_options *o = c->attrs;
    wf_emit_finite_rates(e, 3);
    wf_emit_text(e, "float by = scale[0], step = rates[0], keep = 1.0f;\n");
    if (o->decoupled)
        wf_emit_text(e, "keep = (float)(1 - (double)rates[0] * %g);\n", o->weight_decay);
    wf_emit_text(e, "for (int i = 0; i < %n; i++) {\n", wf_view_count(&c->in[PARAM]));
    wf_emit_text(e, "float g = multiply_add(grad[i], by, %f * p[i]);\n",
                 o->decoupled ? 0 : o->weight_decay);
    wf_emit_text(e, "m[i] = faded(multiply_add(%f, m[i], %f * g));\n", o->beta1, 1 - o->beta1);
    wf_emit_text(e, "v[i] = faded(multiply_add(%f, v[i], %f * g * g));\n", o->beta2, 1 - o->beta2);
    wf_emit_text(e, "float change = m[i] * rates[1] / (sqrt_of(v[i] * rates[2]) + %f);\n", o->eps);
    wf_emit_text(e, "p[i] = multiply_add(-step, change, p[i] * keep);\n}\n");
    return true;
}

static double flops_adam(const wf_call *c) {
    return 15.0 * (double)wf_view_count(&c->in[PARAM]);
}

/* Shapes: param, m, v and grad of one shape; scale []; rates [3] -> no value.
 * Limits: 0 <= beta < 1 and eps > 0. The corrections of the bias are computed by the caller, in
 * double. */
const wf_op wf_op_adam_step = {
    .name = "adam_step",
    .family = "update",
    .formula =
        "adam_step(p, m, v, grad, scale, rates): g = scale grad; m = beta1 m + (1 - beta1) g; v "
        "= beta2 v + (1 - beta2) g^2; p -= rate (c1 m) / (sqrt(c2 v) + eps)",
    .arity = OPERANDS,
    .attr_bytes = sizeof(wf_adam_options),
    .attributes = "double beta1, double beta2, double eps, double weight_decay, bool decoupled",
    .shape = shape_adam,
    .no_grad = wf_no_update_value,
    .writes = 1 << PARAM | 1 << M | 1 << V,
    .run =
        &(const wf_kernel){
            .tasks = wf_update_tasks, .eval = eval_adam, .flops = flops_adam, .emit = emit_adam },
};

wf_tensor *wf_adam_step(wf_tensor *param, wf_tensor *m, wf_tensor *v, wf_tensor *grad,
                        wf_tensor *scale, wf_tensor *rates, const wf_adam_options *options) {
    wf_adam_options o = options ? *options : adam_default;
    return wf_record(&wf_op_adam_step, OPERANDS, (wf_tensor *[]){ param, m, v, grad, scale, rates },
                     &o);
}
