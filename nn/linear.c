/* nn/linear.c - the affine map y = x W^T + b over the last axis, and dropout in a named scope. */
#include "core/product_hook.h"
#include "module.h"

struct wf_linear_layer wf_linear_new(wf_graph *g, const char *name, int64_t in, int64_t out,
                                     bool bias) {
    struct wf_linear_layer l = { 0 };
    const char *outer = wf_scope_push(g, name);
    l.weight = wf_param(g, "weight", 2, (int64_t[]){ out, in }, wf_init_xavier_uniform(in, out));
    if (bias) l.bias = wf_param(g, "bias", 1, &out, wf_init_zeros());
    l.path = wf_scope(g, outer);
    return l;
}

wf_tensor *wf_linear(const struct wf_linear_layer *l, wf_tensor *x) {
    if (!l || !l->weight) return no_layer(x, "a linear layer");
    const char *outer = enter(l->weight, l->path);
    wf_tensor *y = wf_gemm(x, l->weight, l->bias, WF_TRANSPOSE_B); /* [..., out] */
    return leave(outer, wf_product_made(y, x, l->weight, 0));
}

wf_tensor *wf_drop(wf_tensor *x, double rate, const char *name) {
    if (!x) return wf_poison(NULL, "dropout of NULL");
    if (rate == 0) return x;
    const char *outer = wf_scope_push(x->graph, name);
    return leave(outer, wf_dropout(x, rate, NULL));
}
