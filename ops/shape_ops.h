/* weft/ops/shape_ops.h - reshape, slice, join, pad: ops that move elements. See ops.h. */
#ifndef WEFT_OPS_SHAPE_OPS_H
#define WEFT_OPS_SHAPE_OPS_H

#include "../core/graph.h"
#include "../core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- shape: shape/ (reshape, permute, slice, expand and the like are views where possible) --- */
#define WF_KEEP 0    /* copies the size of an axis of x, see wf_reshape */
#define WF_REST (-1) /* inferred from the number of elements; at most once */
/* WF_KEEPs at the beginning of dims copy x's first axes, those at the end its last axes. Between
 * them are sizes, and at most one WF_REST: {KEEP,KEEP,H,REST} splits heads, {REST,KEEP} merges B
 * and T */
WF_API wf_tensor *wf_reshape(wf_tensor *x, int ndim, const int64_t *dims);
/* x in the shape of like, which has as many elements */
WF_API wf_tensor *wf_reshape_like(wf_tensor *x, wf_tensor *like);
/* result axis i is x's axis order[i]; ndim entries */
WF_API wf_tensor *wf_permute(wf_tensor *x, const int *order);
WF_API wf_tensor *wf_transpose(wf_tensor *x, int a, int b); /* swap two axes */
WF_API wf_tensor *wf_squeeze(wf_tensor *x, uint32_t axes);  /* remove axes of size 1 */
/* insert axes of size 1; the set names axes of the result */
WF_API wf_tensor *wf_unsqueeze(wf_tensor *x, uint32_t axes);
/* indices [from, to) of the axis; negative numbers count from the end of the axis, and WF_END is
 * that end */
WF_API wf_tensor *wf_slice(wf_tensor *x, int axis, int64_t from, int64_t to);
#define WF_END INT64_MAX
/* every step-th index of wf_slice(x, axis, from, to), the first included; step >= 1; strides.c */
WF_API wf_tensor *wf_slice_step(wf_tensor *x, int axis, int64_t from, int64_t to, int64_t step);
WF_API wf_tensor *wf_flip(wf_tensor *x, uint32_t axes); /* backwards along them */
/* x without axes a (rows) and b (columns). Its new last axis is the diagonal `offset` steps above
 * the main one */
WF_API wf_tensor *wf_diagonal(wf_tensor *x, int64_t offset, int a, int b);
/* repeats axes of size 1, and new axes in front, to these sizes; WF_KEEP leaves an axis as it is */
WF_API wf_tensor *wf_expand(wf_tensor *x, int ndim, const int64_t *dims);
/* the axis with `before` indices more at its beginning and `after` more at its end, filled with
 * this value */
WF_API wf_tensor *wf_pad(wf_tensor *x, int axis, int64_t before, int64_t after, double value);
/* the n tensors x joined one after the other along the axis; their other axes must be equal */
WF_API wf_tensor *wf_concat(wf_tensor *const *x, int n, int axis);
/* the n tensors x, all of one shape, joined along a new axis: axis number `axis` of the result */
WF_API wf_tensor *wf_stack(wf_tensor *const *x, int n, int axis);
/* Cut x along the axis into n consecutive parts of these sizes, stored in `parts`. Elements after
 * the last part are dropped. */
WF_API void wf_split(wf_tensor *x, int axis, const int64_t *sizes, int n, wf_tensor **parts);
/* n equal parts; n must divide the axis */
WF_API void wf_chunk(wf_tensor *x, int axis, int n, wf_tensor **parts);
WF_API wf_tensor *wf_flatten(wf_tensor *x, int from, int to); /* axes from..to merged into one */
/* tile repeats x times[i] times along axis i; repeat_interleave repeats each step of an axis n
 * times; arrange.c */
WF_API wf_tensor *wf_tile(wf_tensor *x, const int64_t *times);
WF_API wf_tensor *wf_repeat_interleave(wf_tensor *x, int64_t n, int axis);
/* index i of the axis moves to i + shift, modulo the size of the axis */
WF_API wf_tensor *wf_roll(wf_tensor *x, int64_t shift, int axis);
/* for matrices [...,m,n], real or i32: set elements above (tril) or below (triu) a diagonal to 0.
 * `diagonal` is its distance above the main one, or if negative below it */
WF_API wf_tensor *wf_tril(wf_tensor *x, int64_t diagonal);
WF_API wf_tensor *wf_triu(wf_tensor *x, int64_t diagonal);
/* x repeated to the shape of like */
WF_API wf_tensor *wf_broadcast_to(wf_tensor *x, wf_tensor *like);
/* i32 <-> real; gradient between reals only */
WF_API wf_tensor *wf_cast(wf_tensor *x, wf_dtype dtype);
WF_API wf_tensor *wf_detach(wf_tensor *x); /* x, without a gradient */

#ifdef __cplusplus
}
#endif
#endif
