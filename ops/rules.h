/* ops/rules.h - the functions of rules.inc: what a plan may run in place of what was recorded. Not installed. */
#ifndef WEFT_OPS_RULES_H
#define WEFT_OPS_RULES_H

#include "core/plan/rewrite.h"

/* Rules: what a plan may run in place of what was recorded. */
#define RULE(op, operand, inner, readers, function)                                                \
    bool function(wf_rewrite *r, const wf_tensor *outer, const wf_tensor *taken);
#include "rules.inc"
#undef RULE

/* a + share as the share's op, whose operand `addend` is absent so far: it becomes a. rules.c */
bool wf_begin_with(wf_rewrite *r, const wf_tensor *sum, const wf_tensor *share, int addend);

#endif
