/* ops/update/update.h - shared by the updates: checks of operands and numbers.
 *
 * Not for other files. */
#ifndef WEFT_OPS_UPDATE_UPDATE_H
#define WEFT_OPS_UPDATE_UPDATE_H

#include "core/emit/emitter.h"
#include "ops/base/op_base.h"

/* Elements in a task: fewer than WF_GRAIN, because a step reads up to five tensors. */
enum { WF_UPDATE_GRAIN = 4096 };

extern const char wf_no_update_value[]; /* why an update has no gradient */

/* ---- update.c: parts of shape rules; each is false after wf_fail ----------------------------- */

/* sets the shape of the result to no elements, because an update has no value */
void wf_no_elements(wf_call *c);
/* checks that operand i, if it is there, has the type and shape of operand 0 */
bool wf_fits_leaf(wf_call *c, int i, const char *what);
/* checks that operand i, the scale, is real []; and that the next one, the rates, is real with at
 * least n numbers */
bool wf_rates_fit(wf_call *c, int i, int64_t n);
bool wf_is_finite(const wf_call *c, const char *what, double value);
bool wf_is_beta(wf_call *c, const char *what, double beta); /* in [0, 1) */
bool wf_is_eps(wf_call *c, double eps);                     /* above 0 */

/* ---- update.c: parts of kernels -------------------------------------------------------------- */

int64_t wf_update_tasks(const wf_call *c, int phase);
/* True if the scale (operand i) and the first n of the rates (the next operand) are finite. Every
 * task checks this before it writes. All tasks of all steps read the same numbers, so either all of
 * them write or none does. */
bool wf_rates_finite(const wf_call *c, int i, const char *const *names, int n);

/* Writes C by which an emitted step fails if the scale, or one of the first n rates, is not
 * finite. */
void wf_emit_finite_rates(wf_emitter *e, int n);

#endif
