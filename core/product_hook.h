/* core/product_hook.h - inside the library: a hook of the products with matrices that layers
 * record, beside wf_on_param (graph.h). Not installed.
 *
 * A hook of parameters replaces a matrix by one that is computed, and then no product can read it
 * packed. This hook leaves the matrix as it is and adds to the product. */
#ifndef WEFT_CORE_PRODUCT_HOOK_H
#define WEFT_CORE_PRODUCT_HOOK_H

#include "core/graph.h"

/* y [...,n] is x [...,in] times the transpose of rows first..first+n-1 of weight [out,in], and
 * perhaps plus a bias. The hook returns y, or a tensor of its shape that is used instead, such as
 * y + x A^T B^T (LoRA). */
typedef wf_tensor *wf_product_hook(void *user, wf_tensor *y, wf_tensor *x, wf_tensor *weight,
                                   int64_t first);
/* From now on layers call this hook for each of their products with a matrix. NULL ends this. */
void wf_on_product(wf_graph *g, wf_product_hook *hook, void *user);
/* For layers: y, or the tensor that the graph's hook returns for this product. */
wf_tensor *wf_product_made(wf_tensor *y, wf_tensor *x, wf_tensor *weight, int64_t first);

#endif
