/* ops/reduce/reduce.h - what reductions lend to other ops. Not installed. */
#ifndef WEFT_OPS_REDUCE_REDUCE_H
#define WEFT_OPS_REDUCE_REDUCE_H

#include "core/op.h"

/* out[0] = in[0] summed over the axes where out[0], aligned on the right, has size 1: reduce.c. */
extern const wf_kernel wf_sum_kernel;

/* wf_max with keepdim; of no elements it is -inf. */
wf_tensor *wf_max_or_least(wf_tensor *x, uint32_t axes);

/* 1 / max(elements along these axes - correction, 0), shape [] */
wf_tensor *wf_inverse_freedom(wf_tensor *like, uint32_t axes, double correction);

/* x with the other axes first, `kept` of them, and then these axes as one; order[i] is the axis of x
 * that would be axis i if they were not merged. `op` is for messages. */
wf_tensor *wf_merge_last(const char *op, wf_tensor *x, uint32_t axes, int *kept, int *order);

#endif
