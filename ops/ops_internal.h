/* ops/ops_internal.h - inside the library and its programs: the list of all ops, and those without
 * a public function. Not installed. */
#ifndef WEFT_OPS_OPS_INTERNAL_H
#define WEFT_OPS_OPS_INTERNAL_H

#include "ops/ops.h"

/* Every op of this library: wf_op_count is their number; wf_op_at gives op i, or NULL unless 0 <= i
 * < count. For tests, pictures and pages. */
int wf_op_count(void);
const wf_op *wf_op_at(int i);

/* wf_linear_scan(a, b, axis, false) for a decoder. In a plan with a state, each run goes on from
 * the last total of the run before. The state keeps only that total, where wf_cache keeps all rows.
 * Every total is rounded to the type of a, so that a run per position gives the bits of one run
 * over all. The axis must not be axis 0, the batch. */
wf_tensor *wf_carried_scan(wf_tensor *a, wf_tensor *b, int axis);

/* 1 / max(number of elements along these axes - correction, 0), with the bound sizes; shape []. */
wf_tensor *wf_inverse_count(wf_tensor *like, uint32_t axes, double correction);

#endif
