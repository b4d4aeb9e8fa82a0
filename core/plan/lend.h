/* core/plan/lend.h - inside the library: values that a plan reads, and that are read, where they
 * lie, as soon as they are computed, and memory given back, for whoever passes much between plans.
 * Not installed. */
#ifndef WEFT_CORE_PLAN_LEND_H
#define WEFT_CORE_PLAN_LEND_H

#include "core/graph.h"

/* wf_feed without a copy: data, aligned to 64 bytes, stay as they are until t is fed anew or the
 * plan is freed. row: NULL, or row i of t's first axis is row[i] of data, so that rows of a batch
 * share memory; it stays as it is, too, and all readers of t must be able to look it up (`indexed`
 * of kernel.h). bytes: of t as bound. */
bool wf_feed_lent(wf_plan *p, const wf_tensor *t, void *data, size_t bytes, const int32_t *row);

/* wf_feed of values that the caller then writes to *place; NULL there: no run needs them. */
bool wf_feed_place(wf_plan *p, const wf_tensor *t, size_t bytes, void **place);

/* wf_fetch without a copy: row-major, until p runs again or is bound to other extents. NULL:
 * wf_plan_error. */
const void *wf_fetched(wf_plan *p, const wf_tensor *t);

/* The values of a parameter or buffer in rows, where they lie; NULL: it has none yet, or is packed. */
const void *wf_leaf_lent(const wf_tensor *leaf);

/* Give its memory back: its value is the initial one again. No plan that has run with it may run
 * again. */
void wf_leaf_forget(wf_tensor *leaf);

/* Runs of p tell which node is computed, as soon as it is, but for views and what was rewritten;
 * NULL: no longer. */
void wf_plan_watch(wf_plan *p, void (*computed)(void *user, const wf_tensor *node), void *user);

/* Give back the memory of what the plan computed; the next run takes it again. */
void wf_plan_release(wf_plan *p);

#endif
