/* ops/update/sums.h - ops that only a training's own graph records: sums over blocks for the norm of
 * gradients, and sums over micro-batches. For nn/train; not installed. */
#ifndef WEFT_OPS_UPDATE_SUMS_H
#define WEFT_OPS_UPDATE_SUMS_H

#include "core/graph.h"

/* Sums of squares of each WF_SQUARE_BLOCK elements, in row-major order; not differentiable. */
enum { WF_SQUARE_BLOCK = 16384 };
wf_tensor *wf_square_sums(wf_tensor *x);

/* sums [n,...] is a stack of partial sums of tensors like value; at: real [2] = { how many are on it,
 * how many of these, from the top, the value is added to }. The sum takes their place. So values are
 * summed in any order that a tree has: nn/train/sum_tree.h. */
wf_tensor *wf_accumulate(wf_tensor *sums, wf_tensor *value, wf_tensor *at);

#endif
