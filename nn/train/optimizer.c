/* nn/train/optimizer.c - optimizers as nodes of the graph: gradients, their global norm, one update
 * per parameter.
 *
 * The gradients are those of the summed loss; the updates scale them to the mean:
 *
 *     norm  = sqrt(sum of squares of all gradients, block by block) / count
 *     scale = min(1, clip / (norm + 1e-6)) / count       as torch.nn.utils.clip_grad_norm_
 *
 * Every update depends on the scale, and the scale on the norm. If the norm or a rate is not
 * finite, the run fails before any update. So a bad step changes nothing, with or without
 * clipping. With the option `unguarded` there is no norm, and the scale is 1 / count. Accumulation
 * of micro-batches records the same updates with sums in the place of the gradients:
 * accumulation.c. */
#include "accumulation.h"
#include "core/graph_internal.h"
#include "nn/module.h"
#include "nn/optimizer_internal.h"
#include "ops/base/scalars.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/update/sums.h"

/* ---- options --------------------------------------------------------------------------------- */

wf_optimizer_options wf_optimizer_defaults(wf_optimizer_kind kind) {
    return (wf_optimizer_options){ .kind = kind,
                                   .beta1 = 0.9,
                                   .beta2 = kind == WF_LION ? 0.99 : 0.999,
                                   .eps = kind == WF_ADAGRAD ? 1e-10 : 1e-8,
                                   .alpha = 0.99 };
}

/* Makes the graph fail if a number is outside [least, below). The ops check momentum and weight
 * decay. */
static bool in_range(wf_graph *g, const char *what, double value, double least, double below) {
    if (value >= least && value < below) return true;
    wf_poison(g, "%s is %g, not %s; wf_optimizer_defaults gives usual numbers to start from", what,
              value, below < INFINITY ? "at least 0 and below 1" : "above 0 and finite");
    return false;
}

static bool numbers_ok(wf_graph *g, const wf_optimizer_options *o) {
    bool betas = o->kind == WF_ADAM || o->kind == WF_ADAMW || o->kind == WF_LION;
    bool divides = o->kind != WF_SGD && o->kind != WF_LION;
    if (betas && !(in_range(g, "beta1", o->beta1, 0, 1) && in_range(g, "beta2", o->beta2, 0, 1)))
        return false;
    if (o->kind == WF_RMSPROP && !in_range(g, "alpha", o->alpha, 0, 1)) return false;
    return !divides || in_range(g, "eps", o->eps, DBL_MIN, INFINITY);
}

/* The error in the arguments, or NULL. */
static const char *missing(const wf_tensor *count, wf_tensor *const *params, int n,
                           const wf_optimizer_options *o) {
    if (!count) return "the count of an optimizer is NULL";
    if (!o) return "the options of an optimizer are NULL";
    if (o->kind < WF_SGD || o->kind > WF_LION) return "there is no such kind of optimizer";
    if (isnan(o->clip_norm)) return "the norm to clip at is not a number";
    if (o->unguarded && o->clip_norm > 0) return "an unguarded optimizer cannot clip";
    if (!(o->average_decay >= 0 && o->average_decay < 1))
        return "the decay of an average is not at least 0 and below 1";
    if (o->n_groups < 0 || (o->n_groups > 0 && !o->groups)) return "the groups are NULL";
    for (int i = 0; params && i < n; i++)
        if (!params[i]) return "a parameter of an optimizer is NULL";
    return params && n > 0 ? NULL : "an optimizer needs parameters";
}

/* ---- groups ---------------------------------------------------------------------------------- */

static const wf_parameter_group *group_of(const wf_optimizer_options *o, const wf_tensor *param) {
    for (int i = 0; param && i < o->n_groups; i++)
        if (wf_name_fits(o->groups[i].names, param->name)) return &o->groups[i];
    return NULL;
}

/* Makes the graph fail if a group has no parameters, as after a mistake in its names, or if its
 * rate is not above 0 and finite. */
static bool groups_ok(wf_graph *g, wf_tensor *const *params, int n, const wf_optimizer_options *o) {
    for (int i = 0; i < o->n_groups; i++) {
        const wf_parameter_group *group = &o->groups[i];
        const char *names = group->names ? group->names : "(NULL)";
        int k = 0;
        while (k < n && !(params[k] && wf_name_fits(group->names, params[k]->name))) k++;
        if (k == n)
            wf_poison(g, "no parameter of this optimizer has a name like '%s'", names);
        else if (!(group->rate > 0 && isfinite(group->rate)))
            wf_poison(g,
                      "the rate of the group '%s' is %g, not above 0; what is to be frozen is "
                      "left out of the parameters",
                      names, group->rate);
    }
    return wf_ok(g);
}

/* The rates of a group: the first, which is the learning rate, is multiplied by the group's
 * factor. */
static wf_tensor *group_rates(wf_tensor *rates, const wf_parameter_group *group) {
    if (!group || group->rate == 1) return rates;
    wf_tensor *parts[] = { wf_scale(wf_slice(rates, 0, 0, 1), group->rate),
                           wf_slice(rates, 0, 1, WF_END) };
    return wf_concat(parts, 2, 0);
}

/* ---- the scale of a step --------------------------------------------------------------------- */

/* The sums of squares of the blocks of all gradients. */
static wf_tensor *square_sums(wf_tensor *const *grads, int n) {
    wf_tensor **parts = calloc((size_t)n, sizeof *parts);
    if (!parts) return wf_poison(grads[0]->graph, "out of memory");
    for (int i = 0; i < n; i++) parts[i] = wf_square_sums(grads[i]);
    wf_tensor *all = wf_concat(parts, n, 0);
    free(parts);
    return all;
}

static wf_tensor *global_norm(wf_tensor *squares, wf_tensor *count) {
    wf_tensor *sum = wf_sum(squares, WF_ALL_AXES, false);
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

/* The names of the moments that this kind of optimizer keeps for each parameter. Returns how many
 * there are. */
static int moment_names(const wf_optimizer_options *o, const char *names[WF_MOST_MOMENTS]) {
    int n = 0;
    bool adam = o->kind == WF_ADAM || o->kind == WF_ADAMW, lion = o->kind == WF_LION;
    if (adam || lion || (o->kind == WF_RMSPROP && o->centered)) names[n++] = "m";
    if (adam || o->kind == WF_RMSPROP || o->kind == WF_ADAGRAD) names[n++] = "v";
    if ((o->kind == WF_SGD || o->kind == WF_RMSPROP) && o->momentum != 0) names[n++] = "momentum";
    return n;
}

static void record_moments(wf_optimizer *r, const wf_optimizer_options *o) {
    const char *names[WF_MOST_MOMENTS];
    r->n_moments = moment_names(o, names);
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < r->n_moments; k++) r->moments[i][k] = buffer_of(r->params[i], names[k]);
}

/* The weight decay of a parameter. Decoupled decay (AdamW, Lion) leaves out parameters with fewer
 * than two axes, such as biases and norm weights, unless decay_all is set. */
static double decay_of(const wf_tensor *param, const wf_parameter_group *group,
                       const wf_optimizer_options *o) {
    bool decoupled = o->kind == WF_ADAMW || o->kind == WF_LION;
    if (decoupled && !o->decay_all && param->ndim < 2) return 0;
    return group ? group->weight_decay : o->weight_decay;
}

static wf_tensor *rmsprop(wf_tensor *param, wf_tensor *const *own, wf_tensor *grad,
                          wf_tensor *scale, wf_tensor *rates, double decay,
                          const wf_optimizer_options *o) {
    bool adagrad = o->kind == WF_ADAGRAD, centered = o->centered && !adagrad;
    double momentum = adagrad ? 0 : o->momentum;
    wf_tensor *average = centered ? *own++ : NULL, *squares = *own++;
    return wf_rmsprop_step(param, squares, average, momentum != 0 ? *own : NULL, grad, scale, rates,
                           &(wf_rmsprop_options){ .alpha = o->alpha,
                                                  .eps = o->eps,
                                                  .weight_decay = decay,
                                                  .momentum = momentum,
                                                  .centered = centered,
                                                  .sum = adagrad });
}

static wf_tensor *update(const wf_optimizer *r, int i, wf_tensor *grad, wf_tensor *scale,
                         const wf_optimizer_options *o) {
    wf_tensor *param = r->params[i], *const *own = r->moments[i];
    const wf_parameter_group *group = group_of(o, param);
    wf_tensor *rates = group_rates(r->rates, group);
    double decay = decay_of(param, group, o);
    switch (o->kind) {
    case WF_SGD:
        return wf_sgd_step(param, o->momentum != 0 ? own[0] : NULL, grad, scale, rates,
                           &(wf_sgd_options){ o->momentum, decay, o->dampening, o->nesterov });
    case WF_ADAM:
    case WF_ADAMW:
        return wf_adam_step(
            param, own[0], own[1], grad, scale, rates,
            &(wf_adam_options){ o->beta1, o->beta2, o->eps, decay, o->kind == WF_ADAMW });
    case WF_RMSPROP:
    case WF_ADAGRAD:
        return rmsprop(param, own, grad, scale, rates, decay, o);
    case WF_LION:
        break;
    }
    return wf_lion_step(param, own[0], grad, scale, rates,
                        &(wf_lion_options){ o->beta1, o->beta2, decay });
}

/* ---- all parameters -------------------------------------------------------------------------- */

static bool allocate(wf_optimizer *r, const wf_optimizer_options *o) {
    wf_tensor ***lists[] = { &r->params, &r->grads, &r->updates, &r->averages,
                             &r->average_updates };
    r->moments = calloc((size_t)r->n, sizeof *r->moments);
    bool ok = r->moments;
    for (int i = 0; i < (o->average_decay > 0 ? 5 : 3); i++)
        ok &= (*lists[i] = calloc((size_t)r->n, sizeof(wf_tensor *))) != NULL;
    return ok;
}

wf_tensor *wf_record_updates(const wf_optimizer *r, const wf_gradients *of,
                             const wf_optimizer_options *o, wf_tensor **updates) {
    wf_tensor *norm = NULL, *scale = of->scale;
    if (!o->unguarded) {
        norm = global_norm(of->squares ? of->squares : square_sums(of->grads, r->n), of->count);
        scale = step_scale(norm, of->count, o->clip_norm);
    }
    for (int i = 0; i < r->n; i++) updates[i] = update(r, i, of->grads[i], scale, o);
    return norm;
}

/* The gradients with the numbers that scale them. If the count is 0, updates divide by 1; the
 * gradients are 0 then. */
wf_gradients wf_gradients_of(wf_tensor *const *grads, wf_tensor *count,
                             const wf_optimizer_options *o) {
    wf_tensor *one = wf_constant(count->graph, 1);
    wf_gradients of = { .grads = grads, .count = wf_maximum(count, one) };
    if (o->unguarded) of.scale = wf_div(wf_constant(count->graph, 1), of.count);
    return of;
}

/* average -= rate * (average - param): an SGD step with weight decay 1 and gradient -param. */
static void record_averages(wf_optimizer *r) {
    wf_graph *g = r->rates->graph;
    r->average_rate = wf_input(g, "average_rate", wf_real(g), 1, (int64_t[]){ 1 });
    wf_tensor *minus = wf_constant(g, -1);
    for (int i = 0; i < r->n; i++) {
        r->averages[i] = buffer_of(r->params[i], "average");
        r->average_updates[i] =
            wf_sgd_step(r->averages[i], NULL, r->params[i], minus, r->average_rate,
                        &(wf_sgd_options){ .weight_decay = 1 });
    }
}

/* Records the optimizer. The count and, if unguarded, the scale are recorded before the gradients:
 * plans compute nodes in the order of recording, so these two do not wait for the gradients. */
static void record(wf_optimizer *r, wf_tensor *loss, wf_tensor *const *grads, wf_tensor *count,
                   wf_tensor *squares, const wf_optimizer_options *o) {
    wf_gradients of = wf_gradients_of(r->grads, count, o);
    of.squares = squares;
    for (int i = 0; grads && i < r->n; i++)
        if (!grads[i]) wf_poison(count->graph, "gradient %d of an optimizer is NULL", i);
    if (!wf_ok(count->graph)) return;
    if (grads) memcpy(r->grads, grads, (size_t)r->n * sizeof(wf_tensor *));
    if (!grads && !wf_grad(loss, r->params, r->n, r->grads)) return;
    record_moments(r, o);
    r->norm = wf_record_updates(r, &of, o, r->updates);
    if (o->average_decay > 0) record_averages(r);
}

const char *wf_optimizer_scope(wf_graph *g, const wf_optimizer_options *o) {
    return wf_scope_push(g, o->name && o->name[0] ? o->name : WF_OPTIMIZER_SCOPE);
}

/* True if no other optimizer has this name, which is the current scope. */
static bool name_is_free(wf_graph *g) {
    const char *name = wf_scope_push(g, "rates"), *rates = wf_scope(g, name);
    if (!wf_find(g, rates)) return true;
    return wf_refuse(g, "there is an optimizer of this name: give the second one its own, "
                        "wf_optimizer_options.name");
}

/* Makes an optimizer, from a loss or from gradients. */
static wf_optimizer optimizer_of(wf_graph *g, wf_tensor *loss, wf_tensor *const *grads,
                                 wf_tensor *count, wf_tensor *squares, wf_tensor *const *params,
                                 int n, const wf_optimizer_options *options) {
    const char *why = missing(count, params, n, options);
    if (!loss && !grads) why = "the loss of an optimizer is NULL";
    const wf_optimizer_options o = why ? (wf_optimizer_options){ 0 } : *options;
    wf_optimizer r = { .kind = o.kind, .n = n };
    const char *outer = wf_optimizer_scope(g, &o);
    if (why)
        wf_poison(g, "%s", why);
    else if (numbers_ok(g, &o) && name_is_free(g) && groups_ok(g, params, n, &o)) {
        r.rates = wf_input(g, "rates", wf_real(g), 1, (int64_t[]){ 3 });
        if (allocate(&r, &o)) {
            memcpy(r.params, params, (size_t)n * sizeof *params);
            record(&r, loss, grads, count, squares, &o);
        } else
            wf_poison(g, "out of memory");
    }
    if (!wf_ok(g)) wf_optimizer_free(&r);
    wf_scope(g, outer);
    return r;
}

wf_optimizer wf_optimizer_new(wf_graph *g, wf_tensor *loss_sum, wf_tensor *count,
                              wf_tensor *const *params, int n,
                              const wf_optimizer_options *options) {
    return optimizer_of(g, loss_sum, NULL, count, NULL, params, n, options);
}

wf_optimizer wf_optimizer_from_gradients(wf_graph *g, wf_tensor *const *grads, wf_tensor *count,
                                         wf_tensor *squares, wf_tensor *const *params, int n,
                                         const wf_optimizer_options *options) {
    if (!grads) wf_poison(g, "the gradients of an optimizer are NULL");
    return optimizer_of(g, NULL, grads, count, squares, params, n, options);
}

void wf_optimizer_free(wf_optimizer *o) {
    if (!o) return;
    free(o->params), free(o->grads), free(o->updates), free(o->moments);
    free(o->averages), free(o->average_updates);
    *o = (wf_optimizer){ 0 };
}

void wf_optimizer_rates(const wf_optimizer_options *options, double rate, int64_t step,
                        double out[3]) {
    if (!out) return;
    out[0] = rate;
    out[1] = out[2] = 1;
    bool adam = options && (options->kind == WF_ADAM || options->kind == WF_ADAMW);
    double t = step < 1 ? 1 : (double)step;
    if (options && options->kind == WF_SGD && options->dampening != 0 && t == 1) out[1] = 0;
    if (!adam) return;
    out[1] = 1 / (1 - wf_pow_of(options->beta1, t));
    out[2] = 1 / (1 - wf_pow_of(options->beta2, t));
}

double wf_optimizer_average_rate(const wf_optimizer_options *o, int64_t k) {
    double d = o ? o->average_decay : 0;
    return (1 - d) / (1 - wf_pow_of(d, k < 1 ? 1 : (double)k));
}

/* ---- averages -------------------------------------------------------------------------------- */

/* room: twice the bytes of a */
static bool exchange(wf_tensor *a, wf_tensor *b, char *room) {
    size_t bytes = wf_bytes(a);
    char *other = room + bytes;
    return wf_read(a, room, bytes) && wf_read(b, other, bytes) && wf_write(a, other, bytes) &&
           wf_write(b, room, bytes);
}

/* Memory is requested once, before anything is exchanged, because undoing would need it, too. */
bool wf_optimizer_swap_averages(const wf_optimizer *o) {
    if (!o || !o->averages) return false;
    size_t most = 0;
    for (int i = 0; i < o->n; i++)
        if (wf_bytes(o->params[i]) > most) most = wf_bytes(o->params[i]);
    char *room = malloc(2 * most + 1);
    int i = 0;
    while (room && i < o->n && exchange(o->params[i], o->averages[i], room)) i++;
    bool ok = room && i == o->n;
    while (!ok && i-- > 0) exchange(o->params[i], o->averages[i], room);
    free(room);
    return ok;
}
