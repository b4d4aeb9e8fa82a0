/* ops/base/walk.h - walks through the rows of several strided views: besides custom.h. Not
 * installed. */
#ifndef WEFT_OPS_BASE_WALK_H
#define WEFT_OPS_BASE_WALK_H

#include "ops/custom.h"

/* The stride of `small` along an axis of `large`, to which it broadcasts: 0 if it is repeated. */
int64_t wf_broadcast_stride(const wf_view *small, const wf_view *large, int axis);

double wf_flops_of_operand(const wf_call *c); /* one for each element of operand 0 */

/* out[0] = in[0] in row-major order, whatever the shapes; tasks as elementwise. */
bool wf_copy_eval(const wf_call *c, int phase, int64_t task, void *scratch);

#endif
