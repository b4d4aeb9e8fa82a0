/* core/plan/pool.h - inside the engine: tasks on threads. To make and free a pool: graph.h.
 *
 *     bool task(void *arg, int64_t index, int worker) { ... }
 *     wf_pool_run(pool, 100, task, arg);
 *
 * Worker w of W begins with the w-th part of the tasks and helps others when its own are done. Who
 * does a task in the end is left to chance: results may depend on the index alone. */
#ifndef WEFT_CORE_PLAN_POOL_H
#define WEFT_CORE_PLAN_POOL_H

#include "core/graph.h"

/* Do tasks 0..n-1, each once, on the calling thread (worker 0) and the pool's (1..threads-1);
 * return when all are done. A false task makes the result false, and what has not begun is skipped.
 * pool NULL: the calling thread alone, in order. Callers take turns; a task must not call. */
bool wf_pool_run(wf_pool *pool, int64_t n, bool (*task)(void *arg, int64_t index, int worker),
                 void *arg);

/* Denormal numbers as zeros, round to nearest, no traps: so kernels run, and so a pool's workers
 * always are. The calling thread brackets its run with these two. They do nothing but on x86. */
unsigned wf_float_mode_enter(void); /* returns what to give to leave */
void wf_float_mode_leave(unsigned mode);

#endif
