/* weft/core/tensor.h - a node of a graph: element types, layouts, the struct, and the values of
 * leaves. It is a part of graph.h, which explains how the parts fit together. */
#ifndef WEFT_CORE_TENSOR_H
#define WEFT_CORE_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WF_MAX_DIMS = 8 };

/* Element types. A graph computes in WF_F32 or WF_F64; ids, labels and lengths are WF_I32. */
typedef enum { WF_F32, WF_F64, WF_I32 } wf_dtype;

/* The layout of a parameter in memory. A matrix [N, K] in panels is stored in groups of R rows,
 * each group column by column, so that a product with the transposed parameter reads it once, in
 * order. R depends on the kernels in use; no result and no file depends on it. In WF_PANELS,
 * element (n, k) is at n / R * R * K + k * w + n % R: w is R, or N % R in a last panel with fewer
 * rows. bf16 halves the bytes: the upper 16 bits of an f32, rounded to nearest even. int8 quarters
 * them: element (n, k) is scale[n] * q, with q from -127 to 127 rounded to nearest even. scale[n]
 * is the largest |x| of row n, divided by 127 and rounded to 17 bits so that scale[n] * q is exact;
 * a row whose largest |x| is below 2^-118 becomes zeros. A product quantises its other operand's
 * rows in the same way (to zeros below 2^-100) and sums exactly: no result depends on other rows,
 * on threads or on the instruction set. */
typedef enum { WF_ROW_MAJOR, WF_PANELS, WF_PANELS_BF16, WF_PANELS_INT8 } wf_layout;
/* A multiple of the panel height R of all kernels. */
enum { WF_PANEL_MOST = 64 };

typedef enum { WF_COMPUTED, WF_PARAM, WF_BUFFER, WF_INPUT, WF_CONSTANT } wf_kind;

typedef struct wf_graph wf_graph;
/* op.h */
typedef struct wf_op wf_op;

/* One node of the graph. Immutable once recorded; owned by its graph. */
typedef struct wf_tensor {
    wf_graph *graph;
    wf_kind kind;
    wf_dtype dtype;
    int ndim;
    /* as recorded: a named extent has its nominal size */
    int64_t shape[WF_MAX_DIMS];
    /* full name of a leaf; for other nodes, the module path under which it was recorded */
    const char *name;
    /* the full name that wf_named first gave this computed tensor; or NULL */
    const char *label;
    /* position in the graph: operands come before results */
    int32_t id;
    /* index of this tensor among the results of its op; result 0 is `tensor - result` */
    int result;
    /* NULL for a leaf */
    const wf_op *op;
    /* [n_in] operands; an absent optional one is NULL */
    struct wf_tensor *const *in;
    int n_in;
    /* the op's attributes */
    const void *attrs;
    /* in a gradient: the forward node that it belongs to; else NULL */
    const struct wf_tensor *forward;
    /* the node is a copy of a forward node, and gradients read its value instead of the original's:
     * see wf_block_options.recompute */
    bool recomputed;
    /* name of the composed function, such as "softmax", that recorded this node; or NULL */
    const char *function;
} wf_tensor;

/* An initial value. fill writes all elements, of type dtype, as a pure function of (key, element
 * index). It runs when the leaf is first used; it may wf_read other leaves, but not the leaf that
 * it fills. The common initial values are in ops/ops.h. */
typedef struct wf_init {
    void (*fill)(const struct wf_init *init, uint64_t key, wf_dtype dtype, int ndim,
                 const int64_t *shape, void *data);
    /* parameters of fill */
    double a, b;
} wf_init;

/* The number of elements, and of bytes, of the shape as recorded; a plan may bind other sizes. */
WF_API int64_t wf_count(const wf_tensor *t);
WF_API size_t wf_bytes(const wf_tensor *t);
WF_API size_t wf_dtype_size(wf_dtype dtype);
/* "f32" ... */
WF_API const char *wf_dtype_name(wf_dtype dtype);

/* ---- values of leaves ------------------------------------------------------------------------ */

/* Write or read the values of a leaf; constants can only be read. bytes must be the exact size.
 * False for inputs and computed tensors, out of memory, and if a leaf kept as WF_PANELS_INT8 would
 * get values that are not finite. Do not call these functions while a plan that reads or updates
 * the leaf is running. */
WF_API bool wf_write(wf_tensor *leaf, const void *data, size_t bytes);
WF_API bool wf_read(const wf_tensor *leaf, void *data, size_t bytes);
/* Keep a matrix of parameters in this layout from now on; wf_write and wf_read convert. An op that
 * cannot read the layout gets a row-major copy, made in every run; wf_pack_weights (ops.h) chooses
 * only parameters that need no copies. False, without any change, for tensors other than parameters
 * of two axes, while the graph has plans, or out of memory; for bf16 and int8 in a graph of f64;
 * for int8 with a NaN, an infinity, or rows of 0 or more than 131,072 elements. */
WF_API bool wf_set_layout(wf_tensor *parameter, wf_layout layout);

#ifdef __cplusplus
}
#endif
#endif
