/* nn/norm.c - normalisation layers, as in PyTorch: LayerNorm (Ba et al. 2016) over the last axis,
 * with a weight and an optional bias; RMSNorm (Zhang & Sennrich 2019), with a weight; BatchNorm
 * (Ioffe & Szegedy 2015) and GroupNorm (Wu & He 2018), over channels. */
#include "module.h"

struct wf_norm_layer wf_norm_new(wf_graph *g, const char *name, wf_norm_kind kind, int64_t dim,
                                 double eps, bool bias) {
    struct wf_norm_layer l = { .eps = eps, .kind = kind };
    if (kind != WF_LAYER_NORM && kind != WF_RMS_NORM)
        wf_poison(g, "there is no norm number %d", (int)kind);
    const char *outer = wf_scope_push(g, name);
    l.weight = wf_param(g, "weight", 1, &dim, wf_init_constant(1));
    if (bias && kind == WF_LAYER_NORM) l.bias = wf_param(g, "bias", 1, &dim, wf_init_zeros());
    l.path = wf_scope(g, outer);
    return l;
}

wf_tensor *wf_norm(const struct wf_norm_layer *l, wf_tensor *x) {
    if (!l || !l->weight) return no_layer(x, "a norm");
    const char *outer = enter(l->weight, l->path);
    return leave(outer, l->kind == WF_RMS_NORM
                            ? wf_rms_norm(x, l->weight, l->eps)
                            : wf_layer_norm(x, WF_LAST_AXIS, l->weight, l->bias, l->eps));
}

/* ---- by channels ----------------------------------------------------------------------------- */

struct wf_group_norm_layer wf_group_norm_new(wf_graph *g, const char *name, int64_t groups,
                                             int64_t channels, double eps) {
    struct wf_group_norm_layer l = { .groups = groups, .eps = eps };
    const char *outer = wf_scope_push(g, name);
    if (groups < 1 || channels < 1 || channels % groups != 0) {
        wf_poison(g, "%lld channels do not divide into %lld groups", (long long)channels,
                  (long long)groups);
    } else {
        l.weight = wf_param(g, "weight", 1, &channels, wf_init_constant(1));
        l.bias = wf_param(g, "bias", 1, &channels, wf_init_zeros());
    }
    l.path = wf_scope(g, outer);
    return l;
}

wf_tensor *wf_norm_groups(const struct wf_group_norm_layer *l, wf_tensor *x) {
    if (!l || !l->weight) return no_layer(x, "a group norm");
    const char *outer = enter(l->weight, l->path);
    return leave(outer, wf_group_norm(x, l->groups, l->weight, l->bias, l->eps));
}

struct wf_batch_norm_layer wf_batch_norm_new(wf_graph *g, const char *name, int64_t channels,
                                             double eps, double momentum) {
    struct wf_batch_norm_layer l = { .eps = eps, .momentum = momentum };
    const char *outer = wf_scope_push(g, name);
    if (channels < 1 || !(momentum >= 0 && momentum <= 1)) {
        wf_poison(g,
                  "a batch norm of %lld channels with a momentum of %g: it has 1 or more channels, "
                  "and a momentum from 0 to 1",
                  (long long)channels, momentum);
    } else {
        wf_init one = wf_init_constant(1);
        wf_dtype real = wf_real(g);
        l.weight = wf_param(g, "weight", 1, &channels, one);
        l.bias = wf_param(g, "bias", 1, &channels, wf_init_zeros());
        l.running_mean = wf_buffer(g, "running_mean", real, 1, &channels, wf_init_zeros());
        l.running_var = wf_buffer(g, "running_var", real, 1, &channels, one);
    }
    l.path = wf_scope(g, outer);
    return l;
}

/* Records an update that assigns running + momentum (value - running) to running; in plans that do
 * not train, running keeps its value. No gradient passes through it. */
static wf_tensor *move(wf_tensor *running, wf_tensor *value, double momentum, const char *what) {
    wf_tensor *step = wf_scale(wf_sub(wf_detach(value), running), momentum);
    wf_tensor *trains = wf_is_training(running);
    wf_tensor *next = wf_add(running, wf_where(trains, step, wf_constant(running->graph, 0)));
    return wf_assign(running, wf_check_finite(next, what));
}

/* The biased variance times n / (n - 1), where n is the number of elements in a channel. */
static wf_tensor *unbiased(wf_tensor *variance, wf_tensor *x) {
    uint32_t axes = WF_AXIS(0);
    for (int i = 2; i < x->ndim; i++) axes |= WF_AXIS(i);
    wf_tensor *n = wf_count_of(x, axes);
    return wf_mul(variance, wf_div(n, wf_affine(n, 1, -1)));
}

wf_tensor *wf_norm_batch(const struct wf_batch_norm_layer *l, wf_tensor *x, wf_tensor **updates) {
    if (updates) updates[0] = updates[1] = NULL;
    if (!l || !l->weight) return no_layer(x, "a batch norm");
    const char *outer = enter(l->weight, l->path);
    wf_batch_norm_result r =
        wf_batch_norm(x, l->running_mean, l->running_var, l->weight, l->bias, l->eps);
    if (updates && wf_ok(r.y->graph)) {
        wf_tensor *variance = unbiased(r.variance, x);
        updates[0] = move(l->running_mean, r.mean, l->momentum, "a running mean");
        updates[1] = move(l->running_var, variance, l->momentum, "a running variance");
    }
    return leave(outer, r.y);
}
