/* ops/base/draw.h - random numbers for initial values and random ops. Not installed. */
#ifndef WEFT_OPS_BASE_DRAW_H
#define WEFT_OPS_BASE_DRAW_H

#include "core/graph.h"
#include "ops/kernels/kernels.h"

/* Element i of `value` is random number first + i of this key and stream. For stream 0
 * wf_draw_uniform gives the numbers of wf_random_uniform, and wf_draw_normal gives those of
 * wf_random_normal, times std. */
void wf_draw_uniform(uint64_t key, uint64_t stream, uint64_t first, double value[WF_DRAWN]);
/* uniform, rounded down to a multiple of 2^-24, which f32 holds exactly and which is never 1 */
void wf_draw_single(uint64_t key, uint64_t stream, uint64_t first, float value[WF_DRAWN]);
void wf_draw_normal(double std, uint64_t key, uint64_t stream, uint64_t first,
                    double value[WF_DRAWN]);

#endif
