/* nn/module.h - inside nn: records a layer in the scope of its own name. Errors, pictures and
 * dropout sites then contain this name, wherever the layer is used:
 *
 *     if (!l || !l->weight) return no_layer(x, "a linear layer");
 *     const char *outer = enter(l->weight, l->path);
 *     return leave(outer, wf_matmul(x, wf_transpose(l->weight, 0, 1))); */
#ifndef WEFT_NN_MODULE_H
#define WEFT_NN_MODULE_H

#include "nn.h"

/* Fails the graph of x, because a layer is NULL or was not made. Returns the graph's poison (its
 * error node). */
static inline wf_tensor *no_layer(const wf_tensor *x, const char *what) {
    return wf_poison(x ? x->graph : NULL, "%s is NULL or has no parameters", what);
}

/* Fails the graph, because the options of a new layer are NULL. Returns the graph's poison. */
static inline wf_tensor *no_options(wf_graph *g, const char *what) {
    return wf_poison(g, "%s has no options: they are NULL", what);
}

static inline const char *enter(const wf_tensor *parameter, const char *path) {
    return wf_scope(parameter->graph, path);
}

static inline wf_tensor *leave(const char *outer, wf_tensor *y) {
    wf_scope(y->graph, outer);
    return y;
}

#endif
