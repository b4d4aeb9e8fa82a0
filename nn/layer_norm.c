/* nn/layer_norm.c - LayerNorm (Ba et al. 2016) over the last axis, with a weight and
 * an optional bias, as in PyTorch. */
#include "module.h"

struct wf_norm_layer wf_norm_new(wf_graph *g, const char *name, int64_t dim, double eps,
                                 bool bias) {
    struct wf_norm_layer l = { .eps = eps };
    const char *outer = wf_scope_push(g, name);
    l.weight = wf_param(g, "weight", 1, &dim, wf_init_constant(1));
    if (bias) l.bias = wf_param(g, "bias", 1, &dim, wf_init_zeros());
    l.path = wf_scope(g, outer);
    return l;
}

wf_tensor *wf_norm(const struct wf_norm_layer *l, wf_tensor *x) {
    if (!l || !l->weight) return no_layer(x, "a layer norm");
    const char *outer = enter(l->weight, l->path);
    return leave(outer, wf_layer_norm(x, l->weight, l->bias, l->eps));
}
