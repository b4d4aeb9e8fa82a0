/* ops/update/sums.h - ops that only a trainer records: sums over blocks for the norm of gradients,
 * and sums over micro-batches. They are for nn/train; not installed. */
#ifndef WEFT_OPS_UPDATE_SUMS_H
#define WEFT_OPS_UPDATE_SUMS_H

#include "core/graph.h"

/* The sum of squares of each block of WF_SQUARE_BLOCK elements in row-major order, the last of
 * which may be shorter; not differentiable. */
enum { WF_SQUARE_BLOCK = 16384 };
wf_tensor *wf_square_sums(wf_tensor *x);

/* Updates a stack of partial sums, sums [n,...], each of the shape of value. at is real [2]: at[0]
 * sums are on the stack before the update, and the topmost at[1] of them are popped. Their total
 * with the value is pushed. So values can be summed in the order of any tree: nn/train/sum_tree.h.
 * The tensor returned is the update, which has no value. */
wf_tensor *wf_accumulate(wf_tensor *sums, wf_tensor *value, wf_tensor *at);

#endif
