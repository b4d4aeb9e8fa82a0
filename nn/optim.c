/* nn/optim.c - optimizers as nodes of the graph: gradients, their global norm, one update per
 * parameter.
 *
 * The gradients are those of the summed loss; the updates scale them to the mean:
 *
 *     norm  = sqrt(sum of squares of all gradients) / count
 *     scale = min(1, clip / (norm + 1e-6)) / count       as torch.nn.utils.clip_grad_norm_
 *
 * Every update reads the scale, the scale reads the norm, and a norm or a rate that is not finite
 * fails the run: a bad step changes nothing, clipped or not. To accumulate over micro-batches,
 * fetch `grads` and the count of each, and feed their sums to a plan that fetches the updates. */
#include "module.h"

#include <math.h>
#include <stdlib.h>

static wf_optimizer_options with_defaults(const wf_optimizer_options *o) {
    wf_optimizer_options r = *o;
    if (r.beta1 == 0) r.beta1 = 0.9;
    if (r.beta2 == 0) r.beta2 = 0.999;
    if (r.eps == 0) r.eps = 1e-8;
    return r;
}

/* Why this cannot be an optimizer, or NULL. Betas, eps and the like are checked by their ops. */
static const char *missing(const wf_tensor *loss, const wf_tensor *count, wf_tensor *const *params,
                           int n, const wf_optimizer_options *o) {
    if (!loss) return "the loss of an optimizer is NULL";
    if (!count) return "the count of an optimizer is NULL";
    if (!o) return "the options of an optimizer are NULL";
    if (o->kind < WF_SGD || o->kind > WF_ADAMW) return "there is no such kind of optimizer";
    if (isnan(o->clip_norm)) return "the norm to clip at is not a number";
    return params && n > 0 ? NULL : "an optimizer needs parameters";
}

/* ---- the scale of a step --------------------------------------------------------------------- */

static wf_tensor *global_norm(const wf_optimizer *r, wf_tensor *count) {
    wf_tensor *sum = wf_square_sum(r->grads[0]);
    for (int i = 1; i < r->n; i++) sum = wf_add(sum, wf_square_sum(r->grads[i]));
    return wf_check_finite(wf_div(wf_sqrt(sum), count), "gradient norm");
}

static wf_tensor *step_scale(wf_tensor *norm, wf_tensor *count, double clip) {
    wf_graph *g = norm->graph;
    wf_tensor *limit = wf_constant(g, clip > 0 ? clip : INFINITY);
    wf_tensor *clipped = wf_minimum(wf_constant(g, 1), wf_div(limit, wf_affine(norm, 1, 1e-6)));
    return wf_div(clipped, count);
}

/* ---- one parameter --------------------------------------------------------------------------- */

static wf_tensor *moment(wf_optimizer *r, wf_tensor *param) {
    wf_graph *g = param->graph;
    const char *outer = wf_scope_push(g, param->name);
    static const char *const names[] = { "m", "v" };
    const char *name = r->kind == WF_SGD ? "momentum" : names[r->n_moments % 2];
    wf_tensor *t = wf_buffer(g, name, wf_real(g), param->ndim, param->shape, wf_init_zeros());
    return leave(outer, r->moments[r->n_moments++] = t);
}

static wf_tensor *update(wf_optimizer *r, wf_tensor *param, wf_tensor *grad, wf_tensor *scale,
                         const wf_optimizer_options *o) {
    if (o->kind == WF_SGD) {
        wf_tensor *buffer = o->momentum != 0 ? moment(r, param) : NULL;
        return wf_sgd_step(param, buffer, grad, scale, r->rates, o->momentum, o->weight_decay);
    }
    bool decoupled = o->kind == WF_ADAMW;
    bool decays = !decoupled || param->ndim >= 2; /* AdamW spares biases and gains */
    wf_adam_options adam = { o->beta1, o->beta2, o->eps, decays ? o->weight_decay : 0, decoupled };
    wf_tensor *m = moment(r, param), *v = moment(r, param);
    return wf_adam_step(param, m, v, grad, scale, r->rates, &adam);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool allocate(wf_optimizer *r, int n) {
    size_t size = (size_t)n;
    r->updates = calloc(size, sizeof(wf_tensor *));
    r->grads = calloc(size, sizeof(wf_tensor *));
    r->moments = calloc(size, 2 * sizeof(wf_tensor *));
    return r->updates && r->grads && r->moments;
}

static void record(wf_optimizer *r, wf_tensor *count, wf_tensor *const *params,
                   const wf_optimizer_options *o) {
    wf_graph *g = r->rates->graph;
    count = wf_maximum(count, wf_constant(g, 1)); /* nothing counted: gradient 0, and 0 / 1 = 0 */
    r->norm = global_norm(r, count);
    wf_tensor *scale = step_scale(r->norm, count, o->clip_norm);
    for (int i = 0; i < r->n; i++) r->updates[i] = update(r, params[i], r->grads[i], scale, o);
}

wf_optimizer wf_optimizer_new(wf_graph *g, wf_tensor *loss_sum, wf_tensor *count,
                              wf_tensor *const *params, int n,
                              const wf_optimizer_options *options) {
    const char *outer = wf_scope_push(g, "optimizer");
    const char *why = missing(loss_sum, count, params, n, options);
    wf_optimizer_options o = why ? (wf_optimizer_options){ 0 } : with_defaults(options);
    wf_optimizer r = { .kind = o.kind, .n = n };
    r.rates = wf_input(g, "rates", wf_real(g), 1, (int64_t[]){ 3 });
    if (why) wf_poison(g, "%s", why);
    else if (!allocate(&r, n)) wf_poison(g, "out of memory");
    else if (wf_grad(loss_sum, params, n, r.grads)) record(&r, count, params, &o);
    if (!wf_ok(g)) wf_optimizer_free(&r);
    wf_scope(g, outer);
    return r;
}

void wf_optimizer_free(wf_optimizer *o) {
    if (!o) return;
    free(o->updates), free(o->grads), free(o->moments);
    *o = (wf_optimizer){ 0 };
}

void wf_optimizer_rates(const wf_optimizer_options *options, double rate, int64_t step,
                        double out[3]) {
    if (!out) return;
    out[0] = rate, out[1] = out[2] = 1;
    if (!options || options->kind == WF_SGD) return;
    wf_optimizer_options o = with_defaults(options);
    double t = step < 1 ? 1 : (double)step;
    out[1] = 1 / (1 - pow(o.beta1, t));
    out[2] = 1 / (1 - pow(o.beta2, t));
}

bool wf_feed_reals(wf_plan *p, const wf_tensor *t, const double *values, int n) {
    bool real = t && t->dtype != WF_I32;
    bool fits = real && n >= 0 && wf_bound_bytes(p, t) == (size_t)n * wf_dtype_size(t->dtype);
    if (!fits || !values) return wf_feed(p, t, NULL); /* which refuses, unless nothing is read */
    if (t->dtype == WF_F64) return wf_feed(p, t, values);
    float few[16] = { 0 }, *converted = n <= 16 ? few : malloc((size_t)n * sizeof *converted);
    if (!converted) return false;
    for (int i = 0; i < n; i++) converted[i] = (float)values[i];
    bool ok = wf_feed(p, t, converted);
    if (converted != few) free(converted);
    return ok;
}

int wf_parameters(const wf_graph *g, wf_tensor **out, int capacity) {
    int n = 0;
    for (int id = 0; id < wf_node_count(g); id++) {
        const wf_tensor *t = wf_node(g, id);
        if (t->kind != WF_PARAM) continue;
        if (out && n < capacity) out[n] = wf_find(g, t->name);
        n++;
    }
    return n;
}
