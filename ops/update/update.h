/* ops/update/update.h - declarations that update.c and update_rows.c share: the operands of Adam
 * and its numbers.
 *
 * Not for other files. */
#ifndef WEFT_OPS_UPDATE_UPDATE_H
#define WEFT_OPS_UPDATE_UPDATE_H

#include "ops/base/op.h"

/* adam_step's operands; the first three are written. */
enum { ADAM_PARAM, ADAM_M, ADAM_V, ADAM_GRAD, ADAM_SCALE, ADAM_RATES, ADAM_OPERANDS };
/* Elements of a task: less than WF_GRAIN, as each is in four tensors. */
enum { WF_UPDATE_GRAIN = 4096 };

/* Is t a parameter or buffer, or a view of one? A step that reads t while it writes could then read
 * values that it, or another update, has just written. */
bool wf_is_stored_memory(const wf_tensor *t);

/* Shape rule: options in range; param, m and v of one shape; operand `scale`, and the rates, which
 * are the next operand. */
bool wf_adam_fits(wf_call *c, const wf_adam_options *o, int scale);
/* The numbers of this step; false after wf_fail if one is not finite. */
bool wf_adam_rule_of(const wf_call *c, const wf_adam_options *o, int scale, wf_adam_rule *rule);

#endif
