/* weft/core/kernel.h - how an op runs: what a plan asks for, beside what the op means (op.h).
 *
 * Planning, for every set of bound sizes, and with a state for every position: panels, plan, tasks,
 * without data. Running: tasks and eval. The same call must give the same bits whatever the number of
 * threads: cut work by shapes and attributes, and give every sum one fixed order that depends on the
 * reduced length only. */
#ifndef WEFT_CORE_KERNEL_H
#define WEFT_CORE_KERNEL_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wf_call wf_call;     /* op.h */
typedef struct wf_kernel wf_kernel; /* an op's `run` */

struct wf_kernel {
    /* Work out what does not depend on data, once: into plan, which has plan_bytes, is aligned to
     * 16 bytes, and which the call has from then on as c->plan. Set work_bytes and scratch_bytes.
     * Operands and results have their shapes, strides and layouts. False after wf_fail. NULL: there
     * is nothing to work out. */
    size_t plan_bytes;
    bool (*plan)(wf_call *c, void *plan);

    /* How many tasks in this phase; 0 ends. All tasks of a phase end before the next begins. NULL:
     * one phase with one task. */
    int64_t (*tasks)(const wf_call *c, int phase);

    /* Do one task, from any thread. scratch: scratch_bytes of this worker, 64-byte aligned, or
     * NULL. False after wf_fail: bad data, such as a label out of range. */
    bool (*eval)(const wf_call *c, int phase, int64_t task, void *scratch);

    /* NULL: one per element of out[0] */
    double (*flops)(const wf_call *c);

    /* Bits of the operands that may lie in panels (wf_layout), as bound; a view's result then lies
     * so too. The planner makes others row-major. NULL: none. */
    uint32_t (*panels)(const wf_call *c);

    /* bit i: operand i may have any strides; else the planner makes it row-major */
    uint32_t strided;
    /* bit i: out[0] may overwrite operand i (same bytes, element by element) */
    uint32_t in_place;
    /* then no other operand may lie there too: they are read in an order of their own */
    bool exclusive;
    /* out[0] lives in the caller's state when the plan has one; see ops/shape/cache.c */
    bool cached;
};

#ifdef __cplusplus
}
#endif
#endif
