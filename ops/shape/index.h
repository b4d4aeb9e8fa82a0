/* ops/shape/index.h - checks of ids, and the gradients of ops that pick by ids. Not installed. */
#ifndef WEFT_OPS_SHAPE_INDEX_H
#define WEFT_OPS_SHAPE_INDEX_H

#include "ops/custom.h"

/* Calls wf_fail because `id`, element i of a tensor of this shape, is not in [0, below). Returns
 * false. */
bool wf_id_outside(const wf_call *c, int64_t id, const wf_view *shape, int64_t i, int64_t below);

/* Checks that ids have as many axes as x, and along each axis but `axis` the size of x or 1;
 * otherwise the call fails. Sets *picked to the shape of the picked elements. */
bool wf_ids_fit(wf_call *c, int axis, const wf_view *x, const wf_view *ids, wf_view *picked);
/* Start a walk through `picked`, the ids, and x, which has step 0 along the axis. */
void wf_ids_walk(wf_walk *w, const wf_view *picked, const wf_view *ids, const wf_view *x, int axis);
/* ids [K] in a shape that applies to every row of x: [1, ..., K, ..., 1]. For ids with other than
 * one axis, or an axis that x does not have, it returns a failed tensor, with a message that names
 * the op. */
wf_tensor *wf_ids_of_axis(const char *op, wf_tensor *x, int axis, wf_tensor *ids);

/* Phase 0 of ops that add to an addend, or to zeros if that operand is absent: a task copies its
 * part of the addend to the result, or writes zeros there. */
void wf_addend_or_zeros(const wf_call *c, int operand, int64_t task);

/* Zeros like x with src added where ids point along the axis. It is the gradient of gather and
 * sort. */
wf_tensor *wf_scatter_like(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);

/* The number of rows of this width in a task. */
static inline int64_t row_grain(int64_t width) {
    return width ? (WF_GRAIN + width - 1) / width : WF_GRAIN;
}

#endif
