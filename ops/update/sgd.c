/* ops/update/sgd.c - a step of stochastic gradient descent, with momentum or without:
 *
 *     g = scale grad + weight_decay p;   b = momentum b + (1 - dampening) g;   p -= rate b
 *
 * nesterov: p -= rate (g + momentum b); without a buffer: p -= rate g. Sutskever et al. (2013), in
 * the form of torch.optim.SGD: in the first step b = g, without dampening. */
#include "ops/base/shapes.h"
#include "ops/emit/loops.h"
#include "update.h"

enum { SGD_PARAM, SGD_BUFFER, SGD_GRAD, SGD_SCALE, SGD_RATES, SGD_OPERANDS };

/* The number of rates. Only dampening must know whether a step is the first. */
static int rate_count(const wf_sgd_options *o) {
    return o->dampening != 0 ? 2 : 1;
}

static bool numbers_fit(wf_call *c, const wf_sgd_options *o) {
    bool moves = c->in[SGD_BUFFER].ndim >= 0;
    if (o->momentum != 0 && !moves)
        return wf_fail(c, "a momentum of %g needs a buffer", o->momentum);
    if (o->nesterov && (!moves || !(o->momentum > 0) || o->dampening != 0))
        return wf_fail(c, "nesterov needs a momentum above 0 and no dampening, as in PyTorch");
    return wf_is_finite(c, "the momentum", o->momentum) &&
           wf_is_finite(c, "the dampening", o->dampening) &&
           wf_is_finite(c, "the weight decay", o->weight_decay);
}

static bool shape_sgd(wf_call *c) {
    const wf_sgd_options *o = c->attrs;
    wf_no_elements(c);
    return numbers_fit(c, o) && wf_fits_leaf(c, SGD_BUFFER, "the momentum buffer") &&
           wf_fits_leaf(c, SGD_GRAD, "the gradient") && wf_rates_fit(c, SGD_SCALE, rate_count(o));
}

static bool eval_sgd(const wf_call *c, int phase, int64_t task, void *scratch) {
    static const char *const names[] = { "the rate", "the factor of the dampening" };
    const wf_sgd_options *o = c->attrs;
    const wf_view *p = &c->in[SGD_PARAM], *b = &c->in[SGD_BUFFER], *rates = &c->in[SGD_RATES];
    int64_t from, to;
    (void)phase;
    (void)scratch;
    if (!wf_rates_finite(c, SGD_SCALE, names, rate_count(o))) return false;
    wf_sgd_rule rule = { .scale = wf_get(&c->in[SGD_SCALE], 0),
                         .rate = wf_get(rates, 0),
                         .momentum = o->momentum,
                         .decay = o->weight_decay,
                         .fresh = 1,
                         .nesterov = o->nesterov };
    if (o->dampening != 0) rule.fresh -= o->dampening * wf_get(rates, 1);
    wf_task_range(wf_view_count(p), WF_UPDATE_GRAIN, task, &from, &to);
    WF_KERNEL(p->dtype, sgd(to - from, wf_at(p, from), b->ndim < 0 ? NULL : wf_at(b, from),
                            wf_at(&c->in[SGD_GRAD], from), &rule));
    return true;
}

static bool emit_sgd(wf_emitter *e, const wf_call *c) {
    const wf_sgd_options *o = c->attrs;
    bool moves = c->in[SGD_BUFFER].ndim >= 0;
    wf_emit_finite_rates(e, rate_count(o));
    wf_emit_text(e, "float by = scale[0], step = rates[0];\n");
    if (moves && o->dampening != 0)
        wf_emit_text(e, "float fresh = (float)(1 - %g * (double)rates[1]);\n", o->dampening);
    wf_emit_text(e, "for (int i = 0; i < %n; i++) {\n", wf_view_count(&c->in[SGD_PARAM]));
    wf_emit_text(e, "float g = multiply_add(grad[i], by, %f * p[i]);\n", o->weight_decay);
    if (moves) {
        wf_emit_text(e, "float moved = faded(multiply_add(%f, b[i], %s * g));\n", o->momentum,
                     o->dampening != 0 ? "fresh" : "1.0f");
        wf_emit_text(e, "b[i] = moved;\n");
        if (o->nesterov)
            wf_emit_text(e, "g = multiply_add(%f, moved, g);\n", o->momentum);
        else
            wf_emit_text(e, "g = moved;\n");
    }
    wf_emit_text(e, "p[i] = multiply_add(-step, g, p[i]);\n}\n");
    return true;
}

static double flops_sgd(const wf_call *c) {
    return 6.0 * (double)wf_view_count(&c->in[SGD_PARAM]);
}

/* Shapes: param, grad and the momentum buffer (or absent) of one shape; scale []; rates [1], or
 * [2] with dampening -> no value.
 * Limits: It runs after all other readers of the parameter. A run that fails before its
 * updates, as for a check that is not finite, performs none. */
const wf_op wf_op_sgd_step = {
    .name = "sgd_step",
    .family = "update",
    .formula =
        "sgd_step(p, b, grad, scale, rates): g = scale grad + decay p; b = momentum b + (1 - "
        "dampening) g; p -= rate b",
    .arity = SGD_OPERANDS,
    .attr_bytes = sizeof(wf_sgd_options),
    .attributes = "double momentum, double weight_decay, double dampening, bool nesterov",
    .shape = shape_sgd,
    .no_grad = wf_no_update_value,
    .optional = 1 << SGD_BUFFER,
    .writes = 1 << SGD_PARAM | 1 << SGD_BUFFER,
    .run =
        &(const wf_kernel){
            .tasks = wf_update_tasks, .eval = eval_sgd, .flops = flops_sgd, .emit = emit_sgd },
};

wf_tensor *wf_sgd_step(wf_tensor *param, wf_tensor *momentum_buffer, wf_tensor *grad,
                       wf_tensor *scale, wf_tensor *rates, const wf_sgd_options *options) {
    wf_sgd_options o = options ? *options : (wf_sgd_options){ 0 };
    return wf_record(&wf_op_sgd_step, SGD_OPERANDS,
                     (wf_tensor *[]){ param, momentum_buffer, grad, scale, rates }, &o);
}
