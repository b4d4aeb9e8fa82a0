/* ops/reduce/reduce.h - the kernel of sum, for sum_to. Not installed. */
#ifndef WEFT_OPS_REDUCE_REDUCE_H
#define WEFT_OPS_REDUCE_REDUCE_H

#include "core/kernel.h"

/* out[0] = in[0] summed over the axes where out[0], aligned on the right, has size 1: reduce.c. */
extern const wf_kernel wf_sum_kernel;

#endif
