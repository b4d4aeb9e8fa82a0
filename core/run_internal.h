/* core/run_internal.h - inside the library and its programs: callbacks of a run, memory that a plan
 * gives back, the node that computes a fused node, values as text. Not installed. */
#ifndef WEFT_CORE_RUN_INTERNAL_H
#define WEFT_CORE_RUN_INTERNAL_H

#include "core/run.h"

/* The recorded node that computes t in this plan: t itself, or the node into which a rewrite rule
 * fused it. NULL: the plan does not compute t. */
const wf_tensor *wf_computed_in(const wf_plan *p, const wf_tensor *t);
/* Bytes that the state has allocated. */
size_t wf_state_bytes(const wf_state *s);
/* The number of threads of a pool, the calling thread included; 1 for NULL. */
int wf_pool_threads(const wf_pool *pool);
/* Each run of p calls `computed` for each node as soon as it has its value, on the thread that
 * called wf_run. For a node that a rewrite rule replaced, the callback gets the replacement, which
 * has the same id. It is not called for views, nor for nodes that were fused into others. It must
 * not use the plan. NULL ends the calls. */
void wf_plan_watch(wf_plan *p, void (*computed)(void *user, const wf_tensor *node), void *user);
/* The text of wf_print in new memory, which the caller frees. NULL: out of memory, or the plan does
 * not fetch t. */
char *wf_print_new(wf_plan *p, const wf_tensor *t);
/* Free the memory of the plan's results; the next run allocates it again. */
void wf_plan_release(wf_plan *p);

#endif
