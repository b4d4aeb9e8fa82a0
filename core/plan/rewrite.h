/* core/plan/rewrite.h - rewrite rules, by which a plan runs other nodes than the recorded ones. Not
 * installed.
 *
 * A rule is a row of ops/rules.inc. It matches a node of `op` whose operand number `operand` is a
 * node of `inner`. Its function checks further conditions, and replaces the outer node by another
 * with the same result. The graph itself does not change. */
#ifndef WEFT_CORE_PLAN_REWRITE_H
#define WEFT_CORE_PLAN_REWRITE_H

#include "core/op.h"

typedef struct wf_rewrite wf_rewrite;

typedef struct wf_rule {
    const wf_op *op;
    int operand;
    const wf_op *inner;
    /* Replaces the outer node, or returns false. Called only if the inner node has no other reader
     * and is neither fetched nor fed. */
    bool (*apply)(wf_rewrite *r, const wf_tensor *outer, const wf_tensor *inner);
} wf_rule;

/* Replace the outer node by a node of this op, in this plan. False: out of memory, or the op's
 * shape rule fails. */
bool wf_replace(wf_rewrite *r, const wf_op *op, int n_in, wf_tensor *const *in, const void *attrs);

/* The node that computes t in this plan: t itself, or its replacement. */
const wf_tensor *wf_rewritten(const wf_rewrite *r, const wf_tensor *t);

/* True if only one operand of one node reads t, and t is neither fetched nor fed. */
bool wf_read_once(const wf_rewrite *r, const wf_tensor *t);

#endif
