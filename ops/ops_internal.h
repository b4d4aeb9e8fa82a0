/* ops/ops_internal.h - inside the library and its programs: the list of all ops, and those without
 * a public function. Not installed. */
#ifndef WEFT_OPS_OPS_INTERNAL_H
#define WEFT_OPS_OPS_INTERNAL_H

#include "ops/ops.h"

/* Every op of this library: wf_op_count is their number; wf_op_at gives op i, or NULL unless 0 <= i
 * < count. For tests, pictures and pages. */
int wf_op_count(void);
const wf_op *wf_op_at(int i);

/* wf_linear_scan(a, b, axis, false) for a decoder: in a plan with a state the total goes on from
 * one run to the next, as keys and values do by wf_cache, but in memory of a constant size. Every
 * total is rounded to the type of a, so that a run per position gives the bits of one run over all.
 * The axis comes after the batch. */
wf_tensor *wf_carried_scan(wf_tensor *a, wf_tensor *b, int axis);

/* 1 / max(number of elements along these axes - correction, 0), with the bound sizes; shape []. */
wf_tensor *wf_inverse_count(wf_tensor *like, uint32_t axes, double correction);

#endif
