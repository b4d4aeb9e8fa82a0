/* nn/norm.c - LayerNorm (Ba et al. 2016) over the last axis, with a weight and an optional bias, and
 * RMSNorm (Zhang & Sennrich 2019), with a weight, as in PyTorch. */
#include "module.h"

static struct wf_norm_layer norm_new(wf_graph *g, const char *name, wf_norm_kind kind, int64_t dim,
                                     double eps, bool bias) {
    struct wf_norm_layer l = { .eps = eps, .kind = kind };
    const char *outer = wf_scope_push(g, name);
    l.weight = wf_param(g, "weight", 1, &dim, wf_init_constant(1));
    if (bias) l.bias = wf_param(g, "bias", 1, &dim, wf_init_zeros());
    l.path = wf_scope(g, outer);
    return l;
}

struct wf_norm_layer wf_norm_new(wf_graph *g, const char *name, int64_t dim, double eps,
                                 bool bias) {
    return norm_new(g, name, WF_LAYER_NORM, dim, eps, bias);
}

struct wf_norm_layer wf_rms_norm_new(wf_graph *g, const char *name, int64_t dim, double eps) {
    return norm_new(g, name, WF_RMS_NORM, dim, eps, false);
}

wf_tensor *wf_norm(const struct wf_norm_layer *l, wf_tensor *x) {
    if (!l || !l->weight) return no_layer(x, "a norm");
    const char *outer = enter(l->weight, l->path);
    return leave(outer, l->kind == WF_RMS_NORM ? wf_rms_norm(x, l->weight, l->eps)
                                               : wf_layer_norm(x, l->weight, l->bias, l->eps));
}
