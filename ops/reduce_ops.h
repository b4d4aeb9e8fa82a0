/* weft/ops/reduce_ops.h - sets of axes; reductions, scans and sorting along axes. See ops.h. */
#ifndef WEFT_OPS_REDUCE_OPS_H
#define WEFT_OPS_REDUCE_OPS_H

#include "../core/graph.h"
#include "../core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sets of axes ---------------------------------------------------------------------------- */
/* `int axis` is the number of an axis. `uint32_t axes` is a set of axes: WF_AXIS(0) | WF_AXIS(-1).
 * A set carries a mark, so that a number passed as a set, or a set passed as a number, is an error.
 * i is -8..7, where -1 is the last axis; another i gives an axis that no tensor has */
#define WF_AXIS(i) (WF_NO_AXES | ((int)(i) >= -8 && (int)(i) < 8 ? 1u << ((int)(i)&31) : 1u << 8))
#define WF_LAST_AXIS 0x80010000u /* WF_AXIS(-1) */
#define WF_ALL_AXES 0x7fffffffu
#define WF_NO_AXES 0x00010000u /* the empty set; it is also the mark that every set carries */

/* ---- reductions: reduce.c, reductions.c, argmax.c, square_sum.c ------------------------------ */
/* wf_sum: the sum over the axes; 0 if there are no elements. wf_mean divides it by the number of
 * elements with the bound sizes. keepdim: reduced axes stay, with size 1. */
WF_API wf_tensor *wf_sum(wf_tensor *x, uint32_t axes, bool keepdim);
WF_API wf_tensor *wf_mean(wf_tensor *x, uint32_t axes, bool keepdim);
/* equal maxima get equal parts of the gradient */
WF_API wf_tensor *wf_max(wf_tensor *x, uint32_t axes, bool keepdim);
/* equal minima get equal parts of the gradient */
WF_API wf_tensor *wf_min(wf_tensor *x, uint32_t axes, bool keepdim);
WF_API wf_tensor *wf_prod(wf_tensor *x, uint32_t axes, bool keepdim); /* gradient right at 0 */
/* variance: sum of squared deviations / max(elements - correction, 0); std is its root, with
 * gradient 0 at 0 */
WF_API wf_tensor *wf_var(wf_tensor *x, uint32_t axes, double correction, bool keepdim);
WF_API wf_tensor *wf_std(wf_tensor *x, uint32_t axes, double correction, bool keepdim);
/* p is 1, 2 (with gradient 0 at 0), INFINITY or -INFINITY */
WF_API wf_tensor *wf_vector_norm(wf_tensor *x, double p, uint32_t axes, bool keepdim);
/* log(sum(exp(x))) without overflow; if all are -inf, or there are no elements, -inf with gradient
 * 0 */
WF_API wf_tensor *wf_logsumexp(wf_tensor *x, uint32_t axes, bool keepdim);
/* 1 or 0: whether any element, or every element, is not 0 */
WF_API wf_tensor *wf_any(wf_tensor *x, uint32_t axes, bool keepdim);
WF_API wf_tensor *wf_all(wf_tensor *x, uint32_t axes, bool keepdim);
/* sum of squares of all elements, shape [] */
WF_API wf_tensor *wf_square_sum(wf_tensor *x);
/* i32, without that axis: the index of the largest (argmax) or smallest (argmin) element, the first
 * of equal ones; not differentiable */
WF_API wf_tensor *wf_argmax(wf_tensor *x, int axis);
WF_API wf_tensor *wf_argmin(wf_tensor *x, int axis);
/* the bound size of an axis, i32 []; the product of the bound sizes of several axes, real []:
 * shape/size_of_axis.c */
WF_API wf_tensor *wf_size_of(wf_tensor *like, int axis);
WF_API wf_tensor *wf_count_of(wf_tensor *like, uint32_t axes);

/* ---- scans: scan.c. Along an axis, in order, in double; reverse: from its end ---------------- */
WF_API wf_tensor *wf_cumsum(wf_tensor *x, int axis, bool reverse);  /* x[0] + ... + x[i] */
WF_API wf_tensor *wf_cumprod(wf_tensor *x, int axis, bool reverse); /* x[0] * ... * x[i] */
/* y[i] = a[i] y[i-1] + b[i], y[-1] = 0; a, b and y have one shape */
WF_API wf_tensor *wf_linear_scan(wf_tensor *a, wf_tensor *b, int axis, bool reverse);

/* ---- sorting: sort.c. Stable; NaN is the largest; indices are i32 ---------------------------- */
typedef struct wf_sorted {
    wf_tensor *values, *indices;
} wf_sorted;
/* The values in order, and the index that each of them had in x. argsort gives only the indices. */
WF_API wf_sorted wf_sort(wf_tensor *x, int axis, bool descending);
WF_API wf_tensor *wf_argsort(wf_tensor *x, int axis, bool descending);
/* the k largest (or smallest) along the axis, the best first */
WF_API wf_sorted wf_topk(wf_tensor *x, int64_t k, int axis, bool largest);

#ifdef __cplusplus
}
#endif
#endif
