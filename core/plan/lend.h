/* core/plan/lend.h - inside the library: zero-copy feeds and fetches, callbacks when a node has
 * been computed, and early release of memory. For the decoder and the sharded optimizer, which pass
 * much between plans. Not installed. */
#ifndef WEFT_CORE_PLAN_LEND_H
#define WEFT_CORE_PLAN_LEND_H

#include "core/graph.h"

/* wf_feed without a copy: the 64-byte aligned data must stay unchanged until t is fed again or the
 * plan is freed. bytes: of t as bound. row: NULL, or an index: row i of t's first axis is row[i] of
 * data, so that rows of a batch share memory. It must stay unchanged, too, and all readers of t must
 * follow such an index (`indexed` of kernel.h). */
bool wf_feed_lent(wf_plan *p, const wf_tensor *t, void *data, size_t bytes, const int32_t *row);

/* Feed values that the caller writes to *place afterwards; *place is NULL if no run needs them. */
bool wf_feed_place(wf_plan *p, const wf_tensor *t, size_t bytes, void **place);

/* wf_fetch without a copy: a row-major view, valid until p runs again or is bound to other extents.
 * NULL: see wf_plan_error. */
const void *wf_fetched(wf_plan *p, const wf_tensor *t);

/* A view of the values of a parameter or buffer. NULL: it has no values yet, or is packed. */
const void *wf_leaf_lent(const wf_tensor *leaf);

/* Free a leaf's values: it has its initial ones again. No plan that has run with it may run
 * again. */
void wf_leaf_forget(wf_tensor *leaf);

/* Runs of p call `computed` for each node as soon as it has its value, except for views and for
 * nodes that a rewrite replaced. NULL: no longer. */
void wf_plan_watch(wf_plan *p, void (*computed)(void *user, const wf_tensor *node), void *user);

/* Free the memory of the plan's results; the next run allocates it again. */
void wf_plan_release(wf_plan *p);

#endif
