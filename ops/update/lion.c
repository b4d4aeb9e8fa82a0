/* ops/update/lion.c - a step of Lion (Chen et al. 2023, "Symbolic discovery of optimization
 * algorithms", algorithm 2):
 *
 *     g = scale grad;   p -= rate (sign(beta1 m + (1 - beta1) g) + weight_decay p);
 *     m = beta2 m + (1 - beta2) g
 *
 * sign(0) is 0, and the m in the sign is the m before the step. */
#include "ops/base/shapes.h"
#include "ops/emit/loops.h"
#include "update.h"

enum { PARAM, MOMENTUM, GRAD, SCALE, RATES, OPERANDS };

static const wf_lion_options lion_default = { 0.9, 0.99, 0 };

static bool shape_lion(wf_call *c) {
    const wf_lion_options *o = c->attrs;
    wf_no_elements(c);
    return wf_is_beta(c, "beta1", o->beta1) && wf_is_beta(c, "beta2", o->beta2) &&
           wf_is_finite(c, "the weight decay", o->weight_decay) && wf_fits_leaf(c, MOMENTUM, "m") &&
           wf_fits_leaf(c, GRAD, "the gradient") && wf_rates_fit(c, SCALE, 1);
}

static bool eval_lion(const wf_call *c, int phase, int64_t task, void *scratch) {
    static const char *const names[] = { "the rate" };
    const wf_lion_options *o = c->attrs;
    const wf_view *p = &c->in[PARAM];
    int64_t from, to;
    (void)phase;
    (void)scratch;
    if (!wf_rates_finite(c, SCALE, names, 1)) return false;
    wf_lion_rule rule = { .scale = wf_get(&c->in[SCALE], 0),
                          .rate = wf_get(&c->in[RATES], 0),
                          .beta1 = o->beta1,
                          .beta2 = o->beta2,
                          .decay = o->weight_decay };
    wf_task_range(wf_view_count(p), WF_UPDATE_GRAIN, task, &from, &to);
    WF_KERNEL(p->dtype, lion(to - from, wf_at(p, from), wf_at(&c->in[MOMENTUM], from),
                             wf_at(&c->in[GRAD], from), &rule));
    return true;
}

static bool emit_lion(wf_emitter *e, const wf_call *c) {
    const wf_lion_options *o = c->attrs;
    wf_emit_finite_rates(e, 1);
    wf_emit_text(e, "float by = scale[0], step = rates[0];\n");
    wf_emit_text(e, "float keep = (float)(1 - (double)step * %g);\n", o->weight_decay);
    wf_emit_text(e, "for (int i = 0; i < %n; i++) {\n", wf_view_count(&c->in[PARAM]));
    wf_emit_text(e, "float g = grad[i] * by, mixed = multiply_add(%f, m[i], %f * g);\n", o->beta1,
                 1 - o->beta1);
    wf_emit_text(e,
                 "float sign = mixed == 0 || mixed != mixed ? mixed : with_sign(1.0f, mixed);\n");
    wf_emit_text(e, "m[i] = faded(multiply_add(%f, m[i], %f * g));\n", o->beta2, 1 - o->beta2);
    wf_emit_text(e, "p[i] = multiply_add(-step, sign, p[i] * keep);\n}\n");
    return true;
}

static double flops_lion(const wf_call *c) {
    return 10.0 * (double)wf_view_count(&c->in[PARAM]);
}

/* Shapes: param, m and grad of one shape; scale []; rates [1] -> no value.
 * Limits: 0 <= beta < 1. Besides the decay, an element moves by the rate, or not at all if the
 * sign is 0. */
const wf_op wf_op_lion_step = {
    .name = "lion_step",
    .family = "update",
    .formula =
        "lion_step(p, m, grad, scale, rates): g = scale grad; p -= rate (sign(beta1 m + (1 - "
        "beta1) g) + decay p); m = beta2 m + (1 - beta2) g",
    .arity = OPERANDS,
    .attr_bytes = sizeof(wf_lion_options),
    .attributes = "double beta1, double beta2, double weight_decay",
    .shape = shape_lion,
    .no_grad = wf_no_update_value,
    .writes = 1 << PARAM | 1 << MOMENTUM,
    .run =
        &(const wf_kernel){
            .tasks = wf_update_tasks, .eval = eval_lion, .flops = flops_lion, .emit = emit_lion },
};

wf_tensor *wf_lion_step(wf_tensor *param, wf_tensor *m, wf_tensor *grad, wf_tensor *scale,
                        wf_tensor *rates, const wf_lion_options *options) {
    wf_lion_options o = options ? *options : lion_default;
    return wf_record(&wf_op_lion_step, OPERANDS, (wf_tensor *[]){ param, m, grad, scale, rates },
                     &o);
}
