/* weft/ops/index_ops.h - ops with ids: embedding, gather, scatter, positions, and resizing. See
 * ops.h. */
#ifndef WEFT_OPS_INDEX_OPS_H
#define WEFT_OPS_INDEX_OPS_H

#include "../core/graph.h"
#include "../core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- index: index.c. ids are i32 ------------------------------------------------------------- */
/* [V,D], [...] -> [...,D]; an id outside 0..V-1 fails the run */
WF_API wf_tensor *wf_embedding(wf_tensor *table, wf_tensor *ids);
/* y[i,k,j] = x[i,ids[i,k,j],j]. ids has as many axes as x; its sizes are x's or 1, and K along this
 * axis; gather.c */
WF_API wf_tensor *wf_gather(wf_tensor *x, int axis, wf_tensor *ids);
/* x with src[i,k,j] added to its element [i,ids[i,k,j],j]; src has the shape of gather's result */
WF_API wf_tensor *wf_scatter_add(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);
/* x whose element [i,ids[i,k,j],j] is replaced by src[i,k,j]. Of several written to one element,
 * the one with the largest k stays. x may be real or i32. scatter.c */
WF_API wf_tensor *wf_scatter(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);
/* x whose element [i,ids[i,k,j],j] becomes the maximum, minimum or product of itself and all
 * src[i,k,j] for it. For max and min, equal elements get equal parts of the gradient. The gradient
 * of a product is right where factors are 0, but the gradient of the gradient only where none is
 * 0. */
typedef enum { WF_SCATTER_MAX, WF_SCATTER_MIN, WF_SCATTER_MUL } wf_scatter_reduction;
WF_API wf_tensor *wf_scatter_reduce(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src,
                                    wf_scatter_reduction how);
/* gather, scatter_add and scatter with ids [K], which stand for the same K indices of this axis at
 * all indices of the other axes */
WF_API wf_tensor *wf_index_select(wf_tensor *x, int axis, wf_tensor *ids);
WF_API wf_tensor *wf_index_add(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);
WF_API wf_tensor *wf_index_copy(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);
/* real [...,classes]: 1 where the class equals the id, else 0. An id out of range gives only
 * zeros */
WF_API wf_tensor *wf_one_hot(wf_tensor *ids, int64_t classes);
/* i32 [n]: 0, 1, ... n-1, where n is the bound size of this axis of `like`. For masks, one-hot
 * rows, keys in a cache */
WF_API wf_tensor *wf_arange(wf_tensor *like, int axis);
/* Orders of columns and wave lengths of sinusoidal positions, with h = D/2; sinusoid.c:
 *   WF_SINUSOID_PAIRS   PE[p,2i] = sin(p / 10000^(2i/D)), PE[p,2i+1] = cos(same): the paper's
 *   WF_SINUSOID_HALVES  the same sines and cosines, all sines before all cosines
 *   WF_SINUSOID_FAIRSEQ  PE[p,i] = sin((p+2) / 10000^(i/(h-1))), PE[p,h+i] = cos(same): as fairseq,
 * whose rows 0 and 1 are for padding, and M2M100; D must be even, and 4 or more
 *   WF_SINUSOID_TENSOR2TENSOR  the same with p instead of p+2: as tensor2tensor and Marian */
typedef enum {
    WF_SINUSOID_PAIRS,
    WF_SINUSOID_HALVES,
    WF_SINUSOID_FAIRSEQ,
    WF_SINUSOID_TENSOR2TENSOR
} wf_sinusoid_form;
WF_API wf_tensor *wf_sinusoid(wf_tensor *ids, int64_t dim, wf_sinusoid_form form); /* [...,D] */
WF_API wf_init wf_init_sinusoid(wf_sinusoid_form form); /* the same values as a table [L,D] */
/* i32 [n]: P, P+1, ... P+n-1: positions of queries, also for position embeddings. n is the bound
 * size of this axis of `like`; P is how many rows KV caches hold, or 0 in a plan without a state */
WF_API wf_tensor *wf_position_ids(wf_tensor *like, int axis);

/* Resize an axis as torch.nn.functional.interpolate does, without antialiasing (resize.c).
 * wf_interpolate resizes images axis after axis: x [N,C,...] with a size for each axis after C, or
 * WF_KEEP. WF_RESIZE_LINEAR is then bilinear or trilinear, WF_RESIZE_CUBIC bicubic. */
typedef enum {
    WF_RESIZE_NEAREST,       /* takes the element at floor(i n / m), where n elements become m */
    WF_RESIZE_NEAREST_EXACT, /* floor((i + 1/2) n / m) */
    WF_RESIZE_LINEAR,
    WF_RESIZE_CUBIC
} wf_resize_mode;
typedef struct wf_resize_options {
    /* the new size, by exactly one of three members; the others are 0. size: the number itself;
     * like: a tensor whose same axis has the size, which may be an extent; scale: the old size
     * times the scale, rounded down */
    int64_t size;
    wf_tensor *like;
    double scale;
    wf_resize_mode mode;
    /* the first and the last element stay first and last, as PyTorch's align_corners */
    bool align_corners;
} wf_resize_options;
WF_API wf_tensor *wf_resize(wf_tensor *x, int axis, const wf_resize_options *options);
WF_API wf_tensor *wf_interpolate(wf_tensor *x, const int64_t *sizes, wf_resize_mode mode,
                                 bool align_corners);

#ifdef __cplusplus
}
#endif
#endif
