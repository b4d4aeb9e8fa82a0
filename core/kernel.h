/* weft/core/kernel.h - how an op runs. Its meaning is in op.h.
 *
 * A plan calls panels and plan, without data, for every set of bound sizes, and with a state for
 * every position. A run calls tasks and eval. wf_step_at calls tasks and flops, even before the
 * first run, when there are no data. An op must give the same bits for any number of threads:
 * divide work by shapes and attributes, and give every sum one fixed order that depends only on the
 * reduced length. */
#ifndef WEFT_CORE_KERNEL_H
#define WEFT_CORE_KERNEL_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wf_call wf_call;     /* op.h */
typedef struct wf_kernel wf_kernel; /* an op's `run` */
struct wf_emitter;

struct wf_kernel {
    /* Compute everything that does not depend on data once, and store it in `plan`: plan_bytes
     * bytes, aligned to 16, which the other functions find in c->plan. Also set work_bytes and
     * scratch_bytes. Operands and results have their shapes, strides and layouts. False after
     * wf_fail. NULL: nothing to compute. */
    size_t plan_bytes;
    bool (*plan)(wf_call *c, void *plan);

    /* The number of tasks in this phase; 0: there are no more phases. All tasks of a phase end
     * before the next phase begins. NULL: one phase with one task. */
    int64_t (*tasks)(const wf_call *c, int phase);

    /* Run one task, on any thread. scratch: scratch_bytes bytes of the worker's own memory, 64-byte
     * aligned; it may be NULL if they are 0. For bad data, such as a label out of range, call
     * wf_fail and return false. */
    bool (*eval)(const wf_call *c, int phase, int64_t task, void *scratch);

    /* The number of floating-point operations of the call. NULL: one per element of out[0]. */
    double (*flops)(const wf_call *c);

    /* bit i: for the bound shapes, operand i may be packed in panels (wf_layout). If the result is
     * a view of it, the result is packed, too. A packed operand whose bit is 0 is first copied
     * row-major. NULL: no operand may be packed. */
    uint32_t (*panels)(const wf_call *c);

    /* bit i: operand i may have any strides; otherwise the planner makes it row-major */
    uint32_t strided;
    /* bit i: operand i may have a row_index (wf_view), so that rows of a batch can share memory */
    uint32_t indexed;
    /* bit i: out[0] may overwrite operand i, element by element: the plan does so only if both have
     * the same number of bytes and elements of the same size */
    uint32_t in_place;
    /* out[0] must not overwrite an operand whose memory is also read as another operand */
    bool exclusive;
    /* out[0] lives in the caller's state when the plan has one; see ops/shape/cache.c */
    bool cached;
    /* If the plan has a state, out[1] lives in it: each run begins with the out[1] that the last
     * run left. Its size does not depend on the position. out[0], which is not in the state, has as
     * many values as out[1] for each position of the run; see carried_scan in ops/reduce/scan.c */
    bool carried;
    /* Write the body of a C function that computes what eval does, to the bit, for the bound shapes
     * (core/emit/emitter.h). False after wf_fail. NULL: plans with this op have no form in C. */
    bool (*emit)(struct wf_emitter *e, const wf_call *c);
};

#ifdef __cplusplus
}
#endif
#endif
