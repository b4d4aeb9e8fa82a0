/* weft/core/lend.h - memory that a plan and its program share, instead of copies: zero-copy feeds
 * and fetches, values where they are stored, callbacks when a node is computed, memory given back
 * early.
 *
 * wf_feed and wf_fetch (graph.h) copy, and are right nearly always. These are for programs that
 * pass much from plan to plan, such as a decoder's encoder outputs, or gradients on their way to
 * other processes. A pointer is valid as long as its function says, and no longer. */
#ifndef WEFT_CORE_LEND_H
#define WEFT_CORE_LEND_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns in *place where the caller writes the values of t, after this call and before the run.
 * They stay fed until t is fed again. bytes: as in wf_feed. *place is NULL after a failure, or if
 * no run needs t. */
WF_API bool wf_feed_place(wf_plan *p, const wf_tensor *t, size_t bytes, void **place);

/* wf_feed without a copy: the 64-byte aligned data are read by each run, and must stay until t is
 * fed again or the plan is freed. row: NULL, or an index that stays as long: row i of t's first
 * axis is row[i] of data, so that rows of a batch share memory. Only attention reads keys, values
 * and masks by such an index; with another reader of t the call fails. */
WF_API bool wf_feed_lent(wf_plan *p, const wf_tensor *t, void *data, size_t bytes,
                         const int32_t *row);

/* wf_fetch without a copy: a row-major view, valid until p runs again, is bound to other extents,
 * is released or freed. NULL: see wf_plan_error. */
WF_API const void *wf_fetched(wf_plan *p, const wf_tensor *t);

/* The values of a parameter or buffer where they are stored, row-major; valid as long as they are
 * neither written nor updated. NULL: it has no values yet, or is packed. */
WF_API const void *wf_leaf_lent(const wf_tensor *leaf);

/* Free the values of a parameter or buffer, which gets its initial values again. Plans that have
 * run with it must not run again. */
WF_API void wf_leaf_forget(wf_tensor *leaf);

/* Runs of p call `computed` for each node as soon as it has its value, on the thread that runs; not
 * for views, nor for nodes that a rewrite rule replaced. The callback must not use the plan. NULL
 * ends the calls. */
WF_API void wf_plan_watch(wf_plan *p, void (*computed)(void *user, const wf_tensor *node),
                          void *user);

/* Free the memory of the plan's results; the next run allocates it again. */
WF_API void wf_plan_release(wf_plan *p);

#ifdef __cplusplus
}
#endif
#endif
