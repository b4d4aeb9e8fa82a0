/* weft/ops/index_ops.h - embedding, gather, scatter, positions and resizing: ops with ids. See ops.h. */
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
/* y[i,k,j] = x[i,ids[i,k,j],j]: ids have x's axes, and its sizes or 1 beside that axis, K along it;
 * gather.c */
WF_API wf_tensor *wf_gather(wf_tensor *x, int axis, wf_tensor *ids);
/* x, and src[i,k,j] added to its element [i,ids[i,k,j],j]; src has the shape that gather gives */
WF_API wf_tensor *wf_scatter_add(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);
/* Scatter with the largest, or the smallest, of x and what is written there; equal ones get equal parts
 * of the gradient. The product, whose gradient is right at 0, that of the gradient where nothing is 0.
 * scatter: the last that is written there, in the order of k; x real or i32. scatter.c */
WF_API wf_tensor *wf_scatter_max(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);
WF_API wf_tensor *wf_scatter_min(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);
WF_API wf_tensor *wf_scatter_mul(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);
WF_API wf_tensor *wf_scatter(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);
/* ids [K]: the same steps of the axis everywhere */
WF_API wf_tensor *wf_index_select(wf_tensor *x, int axis, wf_tensor *ids);
WF_API wf_tensor *wf_index_add(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);
WF_API wf_tensor *wf_index_copy(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);
/* real [...,classes]: 1 where the class is the id, else 0; an id outside has no 1 */
WF_API wf_tensor *wf_one_hot(wf_tensor *ids, int64_t classes);
/* i32 [n], n the bound size of like's axis: 0, 1, ... n-1; for masks, one-hot rows, keys in a
 * cache */
WF_API wf_tensor *wf_arange(wf_tensor *like, int axis);
/* ids [...] -> [...,D]: PE[p,2i] = sin(p / 10000^(2i/D)), PE[p,2i+1] = cos(same); sinusoid.c */
WF_API wf_tensor *wf_sinusoid(wf_tensor *ids, int64_t dim);
WF_API wf_init wf_init_sinusoid(void); /* the same as a table [L,D] */
/* In other places and of other waves, h = D/2:
 *   WF_SINUSOID_HALVES   PE[p,i] = sin(p / 10000^(2i/D)), PE[p,h+i] = cos(same): Marian of
 *                        transformers; of an odd D the sines are one more
 *   WF_SINUSOID_FAIRSEQ  PE[p,i] = sin((p+2) / 10000^(i/(h-1))), PE[p,h+i] = cos(same): fairseq,
 *                        whose rows 0 and 1 are padding's, and M2M100; D even, 4 or more */
typedef enum { WF_SINUSOID_PAIRS, WF_SINUSOID_HALVES, WF_SINUSOID_FAIRSEQ } wf_sinusoid_form;
WF_API wf_tensor *wf_sinusoid_as(wf_tensor *ids, int64_t dim, wf_sinusoid_form form);
WF_API wf_init wf_init_sinusoid_as(wf_sinusoid_form form);
/* P, P+1, ... P+n-1, P the position: for queries, and for position embeddings */
WF_API wf_tensor *wf_position_ids(wf_tensor *like, int axis);

/* An axis resized, resize.c: to a size, to that of the same axis of like, or times a scale, as
 * torch.nn.functional.interpolate. The elements at the ends stay there if corners are aligned. Images are
 * resized axis after axis: wf_interpolate, x [N,C,...] with a size for each axis after C, WF_KEEP: as it
 * is. WF_RESIZE_LINEAR is then bilinear or trilinear, CUBIC bicubic. Nothing is smoothed before. */
typedef enum {
    WF_RESIZE_NEAREST,       /* the element at floor(i n / m), n elements become m */
    WF_RESIZE_NEAREST_EXACT, /* floor((i + 1/2) n / m) */
    WF_RESIZE_LINEAR,
    WF_RESIZE_CUBIC
} wf_resize_mode;
WF_API wf_tensor *wf_resize(wf_tensor *x, int axis, int64_t size, wf_resize_mode mode,
                            bool align_corners);
WF_API wf_tensor *wf_resize_like(wf_tensor *x, int axis, wf_tensor *like, wf_resize_mode mode,
                                 bool align_corners);
WF_API wf_tensor *wf_resize_by(wf_tensor *x, int axis, double scale, wf_resize_mode mode,
                               bool align_corners);
WF_API wf_tensor *wf_interpolate(wf_tensor *x, const int64_t *sizes, wf_resize_mode mode,
                                 bool align_corners);

#ifdef __cplusplus
}
#endif
#endif
