/* nn/optimizer.c - optimizers as nodes of the graph: gradients, their global norm, one update per
 * parameter.
 *
 * The gradients are those of the summed loss; the updates scale them to the mean:
 *
 *     norm  = sqrt(sum of squares of all gradients) / count
 *     scale = min(1, clip / (norm + 1e-6)) / count       as torch.nn.utils.clip_grad_norm_
 *
 * Every update depends on the scale, and the scale on the norm. A norm or rate that is not finite
 * fails the run, so that a bad step changes nothing, with or without clipping. With the option
 * `unguarded` there is no norm, and the scale is 1 / count. Accumulation of micro-batches works in
 * the same way, with sums in buffers instead of the gradients and the count. */
#include "module.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

wf_optimizer_options wf_optimizer_defaults(wf_optimizer_kind kind) {
    return (wf_optimizer_options){ .kind = kind, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8 };
}

/* Poison if a number is outside [least, below). Momentum and weight decay are checked by the
 * ops. */
static bool in_range(wf_graph *g, const char *what, double value, double least, double below) {
    if (value >= least && value < below) return true;
    wf_poison(g, "Adam's %s is %g; wf_optimizer_defaults gives usual numbers to start from", what,
              value);
    return false;
}

static bool numbers_ok(wf_graph *g, const wf_optimizer_options *o) {
    if (o->kind == WF_SGD) return true;
    return in_range(g, "beta1", o->beta1, 0, 1) && in_range(g, "beta2", o->beta2, 0, 1) &&
           in_range(g, "eps", o->eps, DBL_MIN, INFINITY);
}

/* The error in the arguments, or NULL. */
static const char *missing(const wf_tensor *loss, const wf_tensor *count, wf_tensor *const *params,
                           int n, const wf_optimizer_options *o) {
    if (!loss) return "the loss of an optimizer is NULL";
    if (!count) return "the count of an optimizer is NULL";
    if (!o) return "the options of an optimizer are NULL";
    if (o->kind < WF_SGD || o->kind > WF_ADAMW) return "there is no such kind of optimizer";
    if (isnan(o->clip_norm)) return "the norm to clip at is not a number";
    if (o->unguarded && o->clip_norm > 0) return "an unguarded optimizer cannot clip";
    if (!(o->average_decay >= 0 && o->average_decay < 1))
        return "the decay of an average is not at least 0 and below 1";
    return params && n > 0 ? NULL : "an optimizer needs parameters";
}

/* ---- the scale of a step --------------------------------------------------------------------- */

static wf_tensor *global_norm(wf_tensor *const *grads, int n, wf_tensor *count) {
    wf_tensor *sum = wf_square_sum(grads[0]);
    for (int i = 1; i < n; i++) sum = wf_add(sum, wf_square_sum(grads[i]));
    return wf_check_finite(wf_div(wf_sqrt(sum), count), "gradient norm");
}

static wf_tensor *step_scale(wf_tensor *norm, wf_tensor *count, double clip) {
    wf_graph *g = norm->graph;
    wf_tensor *limit = wf_constant(g, clip > 0 ? clip : INFINITY);
    wf_tensor *clipped = wf_minimum(wf_constant(g, 1), wf_div(limit, wf_affine(norm, 1, 1e-6)));
    return wf_div(clipped, count);
}

/* ---- one parameter --------------------------------------------------------------------------- */

static wf_tensor *buffer_of(wf_tensor *param, const char *name) {
    wf_graph *g = param->graph;
    const char *outer = wf_scope_push(g, param->name);
    return leave(outer, wf_buffer(g, name, wf_real(g), param->ndim, param->shape, wf_init_zeros()));
}

static void record_moments(wf_optimizer *r, wf_tensor *param, const wf_optimizer_options *o) {
    wf_tensor **next = r->moments + r->n_moments;
    if (o->kind != WF_SGD)
        next[0] = buffer_of(param, "m"), next[1] = buffer_of(param, "v");
    else if (o->momentum != 0)
        next[0] = buffer_of(param, "momentum");
    r->n_moments += o->kind != WF_SGD ? 2 : o->momentum != 0;
}

static wf_tensor *update(const wf_optimizer *r, int i, wf_tensor *param, wf_tensor *grad,
                         wf_tensor *scale, const wf_optimizer_options *o) {
    wf_tensor *const *own = r->moments + (size_t)i * (size_t)(r->n_moments / r->n);
    if (o->kind == WF_SGD)
        return wf_sgd_step(param, o->momentum != 0 ? own[0] : NULL, grad, scale, r->rates,
                           o->momentum, o->weight_decay);
    bool decoupled = o->kind == WF_ADAMW;
    bool decays = !decoupled || param->ndim >= 2; /* AdamW does not decay biases and norm weights */
    wf_adam_options adam = { o->beta1, o->beta2, o->eps, decays ? o->weight_decay : 0, decoupled };
    return wf_adam_step(param, own[0], own[1], grad, scale, r->rates, &adam);
}

/* ---- all parameters -------------------------------------------------------------------------- */

static bool allocate(wf_optimizer *r, const wf_optimizer_options *o) {
    wf_accumulation *a = &r->accumulation;
    wf_averages *v = &r->averages;
    wf_tensor ***lists[] = { &r->updates, &r->grads,  &r->moments, &a->sums,   &a->adds,
                             &a->updates, &v->params, &v->values,  &v->updates };
    bool ok = true;
    for (int i = 0; i < 9; i++)
        if (i < 3 || (i < 6 ? o->accumulates : o->average_decay > 0))
            ok &= (*lists[i] = calloc(2 * (size_t)r->n, sizeof(wf_tensor *))) != NULL;
    return ok;
}

/* Record an update of every parameter from the gradients of a sum of `count` losses. If unguarded
 * the scale is given; else it is computed from the norm, which is returned. */
static wf_tensor *record_updates(const wf_optimizer *r, wf_tensor *const *params,
                                 wf_tensor *const *grads, wf_tensor *count, wf_tensor *scale,
                                 const wf_optimizer_options *o, wf_tensor **updates) {
    wf_tensor *norm = NULL;
    if (!o->unguarded) {
        norm = global_norm(grads, r->n, count);
        scale = step_scale(norm, count, o->clip_norm);
    }
    for (int i = 0; i < r->n; i++) updates[i] = update(r, i, params[i], grads[i], scale, o);
    return norm;
}

/* If nothing was counted, divide by 1: the gradient is 0. */
static wf_tensor *at_least_one(wf_tensor *count) {
    return wf_maximum(count, wf_constant(count->graph, 1));
}

static wf_tensor *inverse(wf_tensor *count) {
    return wf_div(wf_constant(count->graph, 1), count);
}

static void record_accumulation(wf_optimizer *r, wf_tensor *count, wf_tensor *const *params,
                                const wf_optimizer_options *o) {
    wf_accumulation *a = &r->accumulation;
    wf_graph *g = count->graph;
    int n = r->n;
    a->more = wf_input(g, "more", wf_real(g), 0, NULL);
    for (int i = 0; i < n; i++) a->sums[i] = buffer_of(params[i], "sum");
    a->sums[n] = wf_buffer(g, "count", wf_real(g), 0, NULL, wf_init_zeros());
    for (int i = 0; i < n; i++) a->adds[i] = wf_accumulate(a->sums[i], r->grads[i], a->more);
    a->adds[n] = wf_accumulate(a->sums[n], count, a->more);
    wf_tensor *total = at_least_one(a->sums[n]), *scale = o->unguarded ? inverse(total) : NULL;
    a->norm = record_updates(r, params, a->sums, total, scale, o, a->updates);
}

/* average -= rate * (average - param): an SGD step with weight decay 1 and gradient -param. */
static void record_averages(wf_optimizer *r, wf_tensor *const *params) {
    wf_graph *g = r->rates->graph;
    wf_averages *a = &r->averages;
    a->rate = wf_input(g, "average_rate", wf_real(g), 1, (int64_t[]){ 1 });
    wf_tensor *minus = wf_constant(g, -1);
    a->n = r->n;
    for (int i = 0; i < r->n; i++) {
        a->params[i] = params[i];
        a->values[i] = buffer_of(params[i], "average");
        a->updates[i] = wf_sgd_step(a->values[i], NULL, params[i], minus, a->rate, 0, 1);
    }
}

/* The scale is recorded before the gradients, so that a plan need not compute it after them. */
static void record(wf_optimizer *r, wf_tensor *loss, wf_tensor *count, wf_tensor *const *params,
                   const wf_optimizer_options *o) {
    wf_tensor *total = at_least_one(count), *scale = o->unguarded ? inverse(total) : NULL;
    if (!wf_grad(loss, params, r->n, r->grads)) return;
    for (int i = 0; i < r->n; i++) record_moments(r, params[i], o);
    r->norm = record_updates(r, params, r->grads, total, scale, o, r->updates);
    if (o->accumulates) record_accumulation(r, count, params, o);
    if (o->average_decay > 0) record_averages(r, params);
}

/* Called in the scope of the optimizer's name. */
static bool name_is_free(wf_graph *g) {
    const char *name = wf_scope_push(g, "rates"), *rates = wf_scope(g, name);
    if (!wf_find(g, rates)) return true;
    wf_poison(g, "there is an optimizer of this name: give the second one its own, "
                 "wf_optimizer_options.name");
    return false;
}

wf_optimizer wf_optimizer_new(wf_graph *g, wf_tensor *loss_sum, wf_tensor *count,
                              wf_tensor *const *params, int n,
                              const wf_optimizer_options *options) {
    const char *why = missing(loss_sum, count, params, n, options);
    const wf_optimizer_options o = why ? (wf_optimizer_options){ 0 } : *options;
    wf_optimizer r = { .kind = o.kind, .n = n };
    const char *outer = wf_scope_push(g, o.name && o.name[0] ? o.name : "optimizer");
    if (why)
        wf_poison(g, "%s", why);
    else if (numbers_ok(g, &o) && name_is_free(g)) {
        r.rates = wf_input(g, "rates", wf_real(g), 1, (int64_t[]){ 3 });
        if (allocate(&r, &o))
            record(&r, loss_sum, count, params, &o);
        else
            wf_poison(g, "out of memory");
    }
    if (!wf_ok(g)) wf_optimizer_free(&r);
    wf_scope(g, outer);
    return r;
}

void wf_optimizer_free(wf_optimizer *o) {
    if (!o) return;
    free(o->updates), free(o->grads), free(o->moments);
    free(o->accumulation.sums), free(o->accumulation.adds), free(o->accumulation.updates);
    free(o->averages.params), free(o->averages.values), free(o->averages.updates);
    *o = (wf_optimizer){ 0 };
}

void wf_optimizer_rates(const wf_optimizer_options *options, double rate, int64_t step,
                        double out[3]) {
    if (!out) return;
    out[0] = rate, out[1] = out[2] = 1;
    if (!options || options->kind == WF_SGD) return;
    double t = step < 1 ? 1 : (double)step;
    out[1] = 1 / (1 - pow(options->beta1, t));
    out[2] = 1 / (1 - pow(options->beta2, t));
}

double wf_optimizer_average_rate(const wf_optimizer_options *o, int64_t k) {
    double d = o ? o->average_decay : 0;
    return (1 - d) / (1 - pow(d, k < 1 ? 1 : (double)k));
}

static bool exchange(wf_tensor *a, wf_tensor *b) {
    size_t bytes = wf_bytes(a);
    char *was = malloc(2 * bytes + 1), *other = was + bytes;
    bool ok = was && wf_read(a, was, bytes) && wf_read(b, other, bytes) &&
              wf_write(a, other, bytes) && wf_write(b, was, bytes);
    free(was);
    return ok;
}

bool wf_optimizer_swap_averages(const wf_optimizer *o) {
    const wf_averages *a = o ? &o->averages : NULL;
    int i = 0;
    if (!a || a->n == 0) return false;
    while (i < a->n && exchange(a->params[i], a->values[i])) i++;
    if (i == a->n) return true;
    while (i-- > 0) exchange(a->params[i], a->values[i]);
    return false;
}

bool wf_feed_reals(wf_plan *p, const wf_tensor *t, const double *values, int n) {
    bool real = t && t->dtype != WF_I32;
    size_t bytes = real && n >= 0 ? (size_t)n * wf_dtype_size(t->dtype) : SIZE_MAX;
    bool fits = wf_bound_bytes(p, t) == bytes;
    if (!fits || !values || t->dtype == WF_F64) return wf_feed(p, t, values, bytes);
    float few[16] = { 0 }, *converted = n <= 16 ? few : malloc((size_t)n * sizeof *converted);
    if (!converted) return false;
    for (int i = 0; i < n; i++) converted[i] = (float)values[i];
    bool ok = wf_feed(p, t, converted, bytes);
    if (converted != few) free(converted);
    return ok;
}

int wf_parameters(const wf_graph *g, wf_tensor **out, int capacity) {
    int n = 0;
    for (int id = 0; id < wf_node_count(g); id++) {
        wf_tensor *t = wf_node(g, id);
        if (t->kind != WF_PARAM) continue;
        if (out && n < capacity) out[n] = t;
        n++;
    }
    return n;
}
