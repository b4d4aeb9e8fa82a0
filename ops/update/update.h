/* ops/update/update.h - what the files of updates share: checks of operands and numbers.
 *
 * Not for other files. */
#ifndef WEFT_OPS_UPDATE_UPDATE_H
#define WEFT_OPS_UPDATE_UPDATE_H

#include "ops/base/op_base.h"

/* Elements of a task: less than WF_GRAIN, as each is in four tensors. */
enum { WF_UPDATE_GRAIN = 4096 };

extern const char wf_no_update_value[]; /* why an update has no gradient */

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

#endif
