/* ops/shape/index.h - ids of rows of a table, and the gradients of what ids pick. Not installed. */
#ifndef WEFT_OPS_SHAPE_INDEX_H
#define WEFT_OPS_SHAPE_INDEX_H

#include "ops/custom.h"

/* zeros like the table, and dy[i, :] added to row ids[i] */
wf_tensor *wf_embedding_backward(wf_tensor *dy, wf_tensor *ids, wf_tensor *table);

/* False, after wf_fail: element i of a tensor of this shape is an id outside 0..below - 1. */
bool wf_id_outside(const wf_call *c, int64_t id, const wf_view *shape, int64_t i, int64_t below);

/* Fails the call unless ids have the axes of x and, beside `axis`, its sizes or 1. Sets *picked to
 * the shape of what they pick. */
bool wf_ids_fit(wf_call *c, int axis, const wf_view *x, const wf_view *ids, wf_view *picked);
/* A walk through `picked`, the ids, and x without a step along the axis. */
void wf_ids_walk(wf_walk *w, const wf_view *picked, const wf_view *ids, const wf_view *x, int axis);
/* ids [K] as ids of every row of x: [1, ..., K, ..., 1]; poison, with the op's name, else. */
wf_tensor *wf_ids_of_axis(const char *op, wf_tensor *x, int axis, wf_tensor *ids);

/* Phase 0 of ops that add to zeros or to an addend: a task of wf_elementwise_tasks writes these. */
void wf_addend_or_zeros(const wf_call *c, int operand, int64_t task);

/* Zeros like x, and src added where ids point along the axis: the gradient of gather and sort. */
wf_tensor *wf_scatter_like(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);

#endif
