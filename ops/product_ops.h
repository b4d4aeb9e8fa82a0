/* weft/ops/product_ops.h - matrix products. See ops.h. */
#ifndef WEFT_OPS_PRODUCT_OPS_H
#define WEFT_OPS_PRODUCT_OPS_H

#include "../core/graph.h"
#include "../core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- products: matmul.c, einsum.c ------------------------------------------------------------ */
/* [...,m,k] x [...,k,n] -> [...,m,n]; leading axes broadcast. An element is one chain of
 * multiply-adds over k, in order. So are the elements of the gradients, with one exception: if b is
 * a matrix of at most 2^15 elements and a has many rows, b's gradient is summed in up to 8
 * parts. */
WF_API wf_tensor *wf_matmul(wf_tensor *a, wf_tensor *b);
/* a b + addend, where the flags swap the last two axes of a factor. The addend (may be NULL)
 * broadcasts to the product */
enum { WF_TRANSPOSE_A = 1, WF_TRANSPOSE_B = 2 };
WF_API wf_tensor *wf_gemm(wf_tensor *a, wf_tensor *b, wf_tensor *addend, unsigned transposed);
/* "nqhd,nkhd->nhqk"; the output may be implicit; spaces are ignored; repeated letters take
 * diagonals; "..." stands for axes that broadcast, and comes first in an implicit output */
WF_API wf_tensor *wf_einsum(const char *formula, wf_tensor *const *operands, int n);
WF_API wf_tensor *wf_outer(wf_tensor *a, wf_tensor *b);  /* [...,m], [...,n] -> [...,m,n] */
WF_API wf_tensor *wf_vecdot(wf_tensor *a, wf_tensor *b); /* [...,n], [...,n] -> [...] */

/* Pack the weights: keep parameter matrices in this layout (panels.c), so that a product reads each
 * of them once, in order. A matrix is packed if products read it transposed, and no other ops than
 * embeddings read it. WF_PANELS does not change a bit of the results; WF_ROW_MAJOR unpacks all
 * matrices. Call it before the graph's first plan, and best before values are written. False:
 * message[256], which may be NULL, says why. */
WF_API bool wf_pack_weights(wf_graph *g, wf_layout layout, char *message);

#ifdef __cplusplus
}
#endif
#endif
