/* core/plan/lend.h - inside the library: values that a plan reads where they lie, and memory given
 * back, for whoever passes much from one plan to another. Not installed. */
#ifndef WEFT_CORE_PLAN_LEND_H
#define WEFT_CORE_PLAN_LEND_H

#include "core/graph.h"

/* wf_feed without a copy: data, aligned to 64 bytes, stay as they are until t is fed anew or the
 * plan is freed. */
bool wf_feed_lent(wf_plan *p, const wf_tensor *t, void *data, size_t bytes);

/* Give back the memory of what the plan computed; the next run takes it again. */
void wf_plan_release(wf_plan *p);

#endif
