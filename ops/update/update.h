/* ops/update/update.h - what update.c and update_rows.c share: Adam's operands and its
 * numbers.
 *
 * Not for other files. */
#ifndef WEFT_OPS_UPDATE_UPDATE_H
#define WEFT_OPS_UPDATE_UPDATE_H

#include "ops/base/op.h"

/* adam_step's operands; the first three are written. */
enum { ADAM_PARAM, ADAM_M, ADAM_V, ADAM_GRAD, ADAM_SCALE, ADAM_RATES, ADAM_OPERANDS };
enum { WF_UPDATE_GRAIN = 4096 }; /* elements of a task: each has four places in memory */

/* Is t a leaf with values, or a view of one? A step that reads it as it goes may read what it, or
 * another update, has written. */
bool wf_sees_leaf(const wf_tensor *t);

/* Shape rule: options in their ranges; param, m and v alike; operand `scale`, and the rates behind
 * it. */
bool wf_adam_fits(wf_call *c, const wf_adam_options *o, int scale);
/* The numbers of this run; false after wf_fail if one is not finite. */
bool wf_adam_rule_of(const wf_call *c, const wf_adam_options *o, int scale, wf_adam_rule *rule);

#endif
