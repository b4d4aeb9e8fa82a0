/* ops/shape/steps.h - results that are assembled along an axis: what slice.c and concat.c share.
 *
 * Not for other folders. */
#ifndef WEFT_OPS_SHAPE_STEPS_H
#define WEFT_OPS_SHAPE_STEPS_H

#include "core/op.h"

/* The part of a result that one task writes. The result is assembled along an axis. */
typedef struct wf_target {
    const wf_view *out;
    int64_t inner;    /* elements in one step along the axis */
    int64_t row;      /* elements in the whole axis */
    int64_t from, to; /* the range of elements that the task writes */
    bool add;         /* add to the values in memory, instead of replacing them */
} wf_target;
wf_target wf_target_of(const wf_call *c, int axis, int64_t task);
/* Write x to steps [begin, end) of the axis, in the elements of this task. */
void wf_fill_steps(const wf_target *v, int64_t begin, int64_t end, const wf_view *x);

#endif
