/* ops/ops_internal.h - inside the library and its programs: the list of all ops. Not installed. */
#ifndef WEFT_OPS_OPS_INTERNAL_H
#define WEFT_OPS_OPS_INTERNAL_H

#include "ops/ops.h"

/* Every op of this library: their number, and op i, 0..count-1. For tests, pictures and pages. */
int wf_op_count(void);
const wf_op *wf_op_at(int i);

#endif
