/* ops/update/update.h - what the files of updates share: the operands of Adam, checks of operands
 * and numbers.
 *
 * Not for other files. */
#ifndef WEFT_OPS_UPDATE_UPDATE_H
#define WEFT_OPS_UPDATE_UPDATE_H

#include "ops/base/op_base.h"

/* adam_step's operands; the first three are written. */
enum { ADAM_PARAM, ADAM_M, ADAM_V, ADAM_GRAD, ADAM_SCALE, ADAM_RATES, ADAM_OPERANDS };
/* Elements of a task: less than WF_GRAIN, as each is in four tensors. */
enum { WF_UPDATE_GRAIN = 4096 };

extern const char wf_no_update_value[]; /* why an update has no gradient */

/* Is t a parameter or buffer, or a view of one? A step that reads t while it writes could then read
 * values that it, or another update, has just written. */
bool wf_is_stored_memory(const wf_tensor *t);

/* ---- update.c: parts of shape rules; each is false after wf_fail ------------------------------ */

void wf_no_elements(wf_call *c); /* the shape of the result: an update has no value */
/* operand i, if it is there, has the type and shape of operand 0 */
bool wf_fits_leaf(wf_call *c, int i, const char *what);
/* operand i, the scale, is real []; the next one, the rates, real with n numbers or more */
bool wf_rates_fit(wf_call *c, int i, int64_t n);
bool wf_is_finite(const wf_call *c, const char *what, double value);
bool wf_is_beta(wf_call *c, const char *what, double beta); /* in [0, 1) */
bool wf_is_eps(wf_call *c, double eps);                     /* above 0 */

/* ---- and of kernels --------------------------------------------------------------------------- */

int64_t wf_update_tasks(const wf_call *c, int phase);
/* Are the scale, operand i, and the first n of the rates, the next operand, finite? Every task asks
 * before it writes. All tasks of all steps read the same numbers, so either all of them write or
 * none. */
bool wf_rates_finite(const wf_call *c, int i, const char *const *names, int n);

/* ---- adam.c ----------------------------------------------------------------------------------- */

/* Shape rule: options in range; param, m and v of one shape; operand `scale`, and the rates, which
 * are the next operand. */
bool wf_adam_fits(wf_call *c, const wf_adam_options *o, int scale);
/* The numbers of this step; false after wf_fail if one is not finite. */
bool wf_adam_rule_of(const wf_call *c, const wf_adam_options *o, int scale, wf_adam_rule *rule);

#endif
