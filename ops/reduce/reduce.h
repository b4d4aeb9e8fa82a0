/* ops/reduce/reduce.h - functions of the reductions that other ops use. Not installed. */
#ifndef WEFT_OPS_REDUCE_REDUCE_H
#define WEFT_OPS_REDUCE_REDUCE_H

#include "core/op.h"

/* Sums in[0] to out[0] over the axes that out[0], aligned on the right, lacks or has with size 1:
 * reduce.c. */
extern const wf_kernel wf_sum_kernel;
/* The gradient rule of such a sum: dx is dy, broadcast. */
void wf_grad_sum(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need);

/* wf_max with keepdim. Without elements it gives -inf, where wf_max fails. */
wf_tensor *wf_max_or_least(wf_tensor *x, uint32_t axes);

/* x with the axes that are not in `axes` first, and then those in `axes` merged into one. *kept
 * becomes the number of axes that are not in `axes`. order[i] becomes the axis of x that would be
 * axis i without merging. `op` names the op in messages. */
wf_tensor *wf_merge_last(const char *op, wf_tensor *x, uint32_t axes, int *kept, int *order);

#endif
