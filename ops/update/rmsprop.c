/* ops/update/rmsprop.c - a step of RMSprop, and of Adagrad, which sums the squares instead of
 * averaging them:
 *
 *     g = scale grad + weight_decay p;   v = alpha v + (1 - alpha) g^2, or v + g^2;
 *     d = g / (sqrt(v) + eps);        p -= rate d, or with momentum b = momentum b + d; p -= rate b
 *
 * centered: a = alpha a + (1 - alpha) g, and the root is that of the variance v - a^2 instead of v.
 * Tieleman & Hinton (2012), Graves (2013), Duchi et al. (2011), in the form of torch.optim.RMSprop
 * and Adagrad. A variance that rounding makes negative is taken as 0. */
#include "ops/base/shapes.h"
#include "ops/emit/loops.h"
#include "update.h"

enum { PARAM, SQUARES, AVERAGE, BUFFER, GRAD, SCALE, RATES, OPERANDS };

static const wf_rmsprop_options rmsprop_default = { .alpha = 0.99, .eps = 1e-8 };

/* Checks the options, and that the operands they need are there. */
static bool options_fit(wf_call *c, const wf_rmsprop_options *o) {
    if (o->sum && o->centered) return wf_fail(c, "a sum of squares has no variance: centered");
    if (o->centered != (c->in[AVERAGE].ndim >= 0))
        return wf_fail(c, "an average of the gradient is for centered, and needed there");
    if (o->momentum != 0 && c->in[BUFFER].ndim < 0)
        return wf_fail(c, "a momentum of %g needs a buffer", o->momentum);
    return (o->sum || wf_is_beta(c, "alpha", o->alpha)) && wf_is_eps(c, o->eps) &&
           wf_is_finite(c, "the momentum", o->momentum) &&
           wf_is_finite(c, "the weight decay", o->weight_decay);
}

static bool shape_rmsprop(wf_call *c) {
    static const char *const names[] = { [SQUARES] = "the average of squares",
                                         [AVERAGE] = "the average of the gradient",
                                         [BUFFER] = "the momentum buffer",
                                         [GRAD] = "the gradient" };
    wf_no_elements(c);
    for (int i = SQUARES; i <= GRAD; i++)
        if (!wf_fits_leaf(c, i, names[i])) return false;
    return options_fit(c, c->attrs) && wf_rates_fit(c, SCALE, 1);
}

static void *elements(const wf_view *v, int64_t from) {
    return v->ndim < 0 ? NULL : wf_at(v, from);
}

static bool eval_rmsprop(const wf_call *c, int phase, int64_t task, void *scratch) {
    static const char *const names[] = { "the rate" };
    const wf_rmsprop_options *o = c->attrs;
    const wf_view *p = &c->in[PARAM];
    int64_t from, to;
    (void)phase;
    (void)scratch;
    if (!wf_rates_finite(c, SCALE, names, 1)) return false;
    wf_rmsprop_rule rule = { .scale = wf_get(&c->in[SCALE], 0),
                             .rate = wf_get(&c->in[RATES], 0),
                             .keep = o->sum ? 1 : o->alpha,
                             .fresh = o->sum ? 1 : 1 - o->alpha,
                             .eps = o->eps,
                             .momentum = o->momentum,
                             .decay = o->weight_decay };
    wf_task_range(wf_view_count(p), WF_UPDATE_GRAIN, task, &from, &to);
    WF_KERNEL(p->dtype, rmsprop(to - from, wf_at(p, from), wf_at(&c->in[SQUARES], from),
                                elements(&c->in[AVERAGE], from), elements(&c->in[BUFFER], from),
                                wf_at(&c->in[GRAD], from), &rule));
    return true;
}

static bool emit_rmsprop(wf_emitter *e, const wf_call *c) {
    const wf_rmsprop_options *o = c->attrs;
    double keep = o->sum ? 1 : o->alpha, fresh = o->sum ? 1 : 1 - o->alpha;
    wf_emit_finite_rates(e, 1);
    wf_emit_text(e, "float by = scale[0], step = rates[0];\n");
    wf_emit_text(e, "for (int i = 0; i < %n; i++) {\n", wf_view_count(&c->in[PARAM]));
    wf_emit_text(e, "float g = multiply_add(grad[i], by, %f * p[i]);\n", o->weight_decay);
    wf_emit_text(e, "float spread = faded(multiply_add(%f, v[i], %f * g * g));\n", keep, fresh);
    wf_emit_text(e, "v[i] = spread;\n");
    if (c->in[AVERAGE].ndim >= 0) {
        wf_emit_text(e, "float mean = faded(multiply_add(%f, average[i], %f * g));\n", keep, fresh);
        wf_emit_text(e, "average[i] = mean;\n");
        wf_emit_text(e, "spread = max_of(multiply_add(-mean, mean, spread), 0.0f);\n");
    }
    wf_emit_text(e, "float change = g / (sqrt_of(spread) + %f);\n", o->eps);
    if (c->in[BUFFER].ndim >= 0) {
        wf_emit_text(e, "change = faded(multiply_add(%f, b[i], change));\n", o->momentum);
        wf_emit_text(e, "b[i] = change;\n");
    }
    wf_emit_text(e, "p[i] = multiply_add(-step, change, p[i]);\n}\n");
    return true;
}

static double flops_rmsprop(const wf_call *c) {
    return 10.0 * (double)wf_view_count(&c->in[PARAM]);
}

/* Shapes: param, squares, average and buffer (or absent) and grad of one shape; scale []; rates
 * [1] -> no value.
 * Limits: The average is for centered, the buffer for a momentum. A negative variance, which
 * rounding makes, counts as 0. */
const wf_op wf_op_rmsprop_step = {
    .name = "rmsprop_step",
    .family = "update",
    .formula =
        "rmsprop_step(p, v, average, b, grad, scale, rates): g = scale grad; v = alpha v + (1 - "
        "alpha) g^2; p -= rate g / (sqrt(v) + eps)",
    .arity = OPERANDS,
    .attr_bytes = sizeof(wf_rmsprop_options),
    .attributes =
        "double alpha, double eps, double weight_decay, double momentum, bool centered, bool sum",
    .shape = shape_rmsprop,
    .no_grad = wf_no_update_value,
    .optional = 1 << AVERAGE | 1 << BUFFER,
    .writes = 1 << PARAM | 1 << SQUARES | 1 << AVERAGE | 1 << BUFFER,
    .run = &(const wf_kernel){ .tasks = wf_update_tasks,
                               .eval = eval_rmsprop,
                               .flops = flops_rmsprop,
                               .emit = emit_rmsprop },
};

wf_tensor *wf_rmsprop_step(wf_tensor *param, wf_tensor *squares, wf_tensor *average,
                           wf_tensor *momentum_buffer, wf_tensor *grad, wf_tensor *scale,
                           wf_tensor *rates, const wf_rmsprop_options *options) {
    wf_rmsprop_options o = options ? *options : rmsprop_default;
    wf_tensor *in[] = { param, squares, average, momentum_buffer, grad, scale, rates };
    return wf_record(&wf_op_rmsprop_step, OPERANDS, in, &o);
}
