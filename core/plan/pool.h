/* core/plan/pool.h - inside core: runs tasks on threads. run.h has wf_pool_new and wf_pool_free.
 *
 *     bool task(void *arg, int64_t index, int worker) { ... }
 *     wf_pool_run(pool, 100, task, arg);
 *
 * Worker w of W begins with the w-th part of the tasks, and then takes tasks of other workers.
 * Which worker runs a task is not deterministic: results may depend only on the task's index. */
#ifndef WEFT_CORE_PLAN_POOL_H
#define WEFT_CORE_PLAN_POOL_H

#include "core/graph.h"

/* Run tasks 0..n-1, each once, on the calling thread (worker 0) and the pool's (1..threads-1);
 * return when all are done. If a task returns false, so does wf_pool_run, and tasks that have not
 * begun are skipped. pool NULL: on the calling thread only, in order. Several callers take turns; a
 * task must not call wf_pool_run with the same pool. */
bool wf_pool_run(wf_pool *pool, int64_t n, bool (*task)(void *arg, int64_t index, int worker),
                 void *arg);

/* The floating-point mode of kernels, that of IEEE 754: round to nearest, denormals as they are, no
 * traps. Flushing to zero is off because x86 and ARM would flush different numbers. Workers are
 * always in this mode; the calling thread enters it for a run. On processors other than these two
 * the functions do nothing. */
unsigned wf_float_mode_enter(void); /* returns the argument that leave needs */
void wf_float_mode_leave(unsigned mode);

/* For threads that wait: the number of processors that this program may use, and a pause of 10 to
 * 50 ns. */
int wf_processors(void);
void wf_relax(void);

#endif
