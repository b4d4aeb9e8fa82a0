/* core/product_hook.h - inside the library: hooks that layers call for their products with
 * matrices and for the rows of their tables, beside wf_on_param (graph.h). Not installed.
 *
 * A hook of wf_on_param replaces a matrix by a computed tensor, which cannot be packed. These
 * hooks leave the matrix as it is, and may replace the result of its product or of a lookup. */
#ifndef WEFT_CORE_PRODUCT_HOOK_H
#define WEFT_CORE_PRODUCT_HOOK_H

#include "core/graph.h"

/* y [...,n] is x [...,in] times the transpose of rows first..first+n-1 of weight [out,in], and
 * perhaps plus a bias. The call returns y, or a tensor of its shape that is used instead, such as
 * y + x A^T B^T (LoRA). */
typedef struct wf_product_hook {
    wf_tensor *(*call)(void *user, wf_tensor *y, wf_tensor *x, wf_tensor *weight, int64_t first);
    void *user;
    /* NULL: none. y [...,k] has the rows of table [rows,k] that ids [...] name. The call returns y,
     * or a tensor of its shape that is used instead */
    wf_tensor *(*rows)(void *user, wf_tensor *y, wf_tensor *table, wf_tensor *ids);
} wf_product_hook;
/* The graph's hook. Linear layers and attention use `call` for each of their products with a
 * matrix; GRU and LSTM, which no model has, do not. Embeddings use `rows`. Both are NULL at
 * first. */
wf_product_hook *wf_product_hook_of(wf_graph *g);

/* A hook for wf_on_param, whose `user` is a wf_product_hook. It is called for every parameter,
 * first before any product is recorded, and makes `user` the product hook of the graph. Models make
 * their graphs themselves, so their callers cannot set the product hook directly. */
static inline wf_tensor *wf_set_product_hook(void *user, wf_tensor *param) {
    *wf_product_hook_of(param->graph) = *(const wf_product_hook *)user;
    return NULL;
}

/* For layers: y, or the tensor that the graph's hook returns for this product. */
static inline wf_tensor *wf_product_made(wf_tensor *y, wf_tensor *x, wf_tensor *weight,
                                         int64_t first) {
    const wf_product_hook *hook = wf_product_hook_of(y->graph);
    return hook->call && wf_ok(y->graph) ? hook->call(hook->user, y, x, weight, first) : y;
}

/* For layers: y, or the tensor that the graph's hook returns for these rows. */
static inline wf_tensor *wf_rows_made(wf_tensor *y, wf_tensor *table, wf_tensor *ids) {
    const wf_product_hook *hook = wf_product_hook_of(y->graph);
    return hook->rows && wf_ok(y->graph) ? hook->rows(hook->user, y, table, ids) : y;
}

#endif
