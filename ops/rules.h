/* ops/rules.h - the functions of the rewrite rules of rules.inc. Not installed. */
#ifndef WEFT_OPS_RULES_H
#define WEFT_OPS_RULES_H

#include "core/plan/rewrite.h"

#define RULE(op, operand, inner, function)                                                         \
    bool function(wf_rewrite *r, const wf_tensor *outer, const wf_tensor *inner);
#include "rules.inc"
#undef RULE

/* For rules about a sum a + y of gradients, where y's operand number `addend` is absent. Replaces
 * the sum by y's op with a as that operand. False: the rule does not apply, or wf_replace failed.
 * rewrite_rules.c */
bool wf_fuse_addend(wf_rewrite *r, const wf_tensor *sum, const wf_tensor *y, int addend);

#endif
