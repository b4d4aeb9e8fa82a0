/* core/plan/rewrite.h - how ops tell a plan what may run in place of what was recorded. Not installed.
 *
 * A rule is a row of ops/rules.inc: a node of `op` whose operand `operand` is a node of `inner`.
 * Its function, in the file of the op that gains, asks what else must hold, and replaces the outer
 * node by another with the same result. The graph stays as it was recorded. */
#ifndef WEFT_CORE_PLAN_REWRITE_H
#define WEFT_CORE_PLAN_REWRITE_H

#include "core/op.h"

typedef struct wf_rewrite wf_rewrite;

typedef struct wf_rule {
    const wf_op *op;
    int operand;
    const wf_op *inner;
    /* Nobody fetches or feeds the inner node, and it has no other readers, or (shared) all of them
     * match such a rule: if one is then left as it is, the inner node is computed for that one. */
    bool shared;
    /* False: left as it is. */
    bool (*apply)(wf_rewrite *r, const wf_tensor *outer, const wf_tensor *inner);
} wf_rule;

/* The outer node becomes this one, in this plan. False: no memory, or it does not fit. */
bool wf_replace(wf_rewrite *r, const wf_op *op, int n_in, wf_tensor *const *in, const void *attrs);

/* What computes t in this plan. */
const wf_tensor *wf_rewritten(const wf_rewrite *r, const wf_tensor *t);

/* Is t wanted by nothing but one operand of one node? */
bool wf_read_once(const wf_rewrite *r, const wf_tensor *t);

#endif
