/* ops/update.h - what update.c, update_product.c and update_rows.c share: Adam's operands and its
 * numbers.
 *
 * Not for other files. */
#ifndef WEFT_OPS_UPDATE_H
#define WEFT_OPS_UPDATE_H

#include "internal.h"

enum { ADAM_PARAM, ADAM_M, ADAM_V }; /* the operands that are written; the others differ */
enum { WF_UPDATE_GRAIN = 4096 };     /* elements of a task: each has four places in memory */

/* Is t the parameter or a moment, or a view of one? A step that reads it as it goes would read what
 * it has written. */
typedef struct wf_adam_leaves {
    const wf_tensor *leaf[3];
} wf_adam_leaves;
bool wf_adam_writes(const wf_adam_leaves *leaves, const wf_tensor *t);

extern const wf_adam_options wf_adam_default;

/* Shape rule: options in their ranges; param, m and v alike; operand `scale`, and the rates behind
 * it. */
bool wf_adam_fits(wf_call *c, const wf_adam_options *o, int scale);
/* The numbers of this run; false after wf_fail if one is not finite. */
bool wf_adam_rule_of(const wf_call *c, const wf_adam_options *o, int scale, wf_adam_rule *rule);

#endif
