/* ops/update/sums.h - ops that only a trainer records: sums over blocks for the norm of gradients,
 * and sums over micro-batches. They are for nn/train; not installed. */
#ifndef WEFT_OPS_UPDATE_SUMS_H
#define WEFT_OPS_UPDATE_SUMS_H

#include "core/graph.h"

/* The sum of squares of each WF_SQUARE_BLOCK elements, in row-major order; not differentiable. */
enum { WF_SQUARE_BLOCK = 16384 };
wf_tensor *wf_square_sums(wf_tensor *x);

/* sums [n,...] is a stack of partial sums of tensors like value. at is real [2]: how many sums are
 * on the stack, and how many of these, from the top, are added to the value. The result replaces
 * them. So values can be summed in the order of any tree: nn/train/sum_tree.h. */
wf_tensor *wf_accumulate(wf_tensor *sums, wf_tensor *value, wf_tensor *at);

#endif
