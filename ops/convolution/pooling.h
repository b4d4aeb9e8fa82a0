/* ops/convolution/pooling.h - declarations that pooling.c and pooling_emit.c share. Not for other
 * files. */
#ifndef WEFT_OPS_CONVOLUTION_POOLING_H
#define WEFT_OPS_CONVOLUTION_POOLING_H

#include "convolution.h"

typedef struct pool {
    conv window; /* stride, padding before and dilation of the windows; groups is 1 */
    int64_t kernel[2];
    /* padding after the last element, which may exceed that before the first if sizes are rounded
     * up (ceil_mode) */
    int64_t after[2];
    bool ceil_mode;
} pool;

/* Write the three ops of max_pool2d as C: pooling_emit.c. */
bool wf_emit_max_pool2d(wf_emitter *e, const wf_call *c);
bool wf_emit_max_pool2d_scatter(wf_emitter *e, const wf_call *c);
bool wf_emit_max_pool2d_gather(wf_emitter *e, const wf_call *c);

#endif
