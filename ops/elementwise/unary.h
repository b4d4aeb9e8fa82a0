/* ops/elementwise/unary.h - the derivatives of gelu, gelu_tanh and silu, each of which is an op
 * itself. Not installed. */
#ifndef WEFT_OPS_ELEMENTWISE_UNARY_H
#define WEFT_OPS_ELEMENTWISE_UNARY_H

#include "core/graph.h"

wf_tensor *wf_gelu_slope(wf_tensor *x);      /* gelu' */
wf_tensor *wf_gelu_tanh_slope(wf_tensor *x); /* gelu_tanh' */
wf_tensor *wf_silu_slope(wf_tensor *x);      /* silu' */

#endif
