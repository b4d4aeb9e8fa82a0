/* ops/base/shapes.h - checks for shape rules, besides those of custom.h. Not installed. */
#ifndef WEFT_OPS_BASE_SHAPES_H
#define WEFT_OPS_BASE_SHAPES_H

#include "ops/custom.h"

/* Fails the call unless operand i is absent, or has operand 0's type and this shape. */
bool wf_addend_like(wf_call *c, int i, const wf_view *like);
bool wf_want_axes(wf_call *c, uint32_t axes, int ndim); /* fails the call if an axis is >= ndim */
bool wf_no_axes(wf_call *c, uint32_t axes, int ndim, const char *what); /* the same, for `what` */
bool wf_same_as_operand(wf_call *c);           /* a shape rule: out[0] is real and as operand 0 */
int wf_rank(const wf_tensor *x);               /* ndim; 0 for NULL */
int wf_pick_axis(int axis, int ndim);          /* a negative axis counts from the end */
bool wf_is_last(int axis, const wf_tensor *x); /* -1 or the number of the last axis */
uint32_t wf_axes(uint32_t axes, int ndim);     /* axes counted from the end become plain bits */

/* Is this number, which a program gave as a size, made of what wf_extent returned? No other is so
 * far below 0. Messages show its name. */
static inline bool wf_bound_later(int64_t size) {
    return size < INT32_MIN;
}
/* For `view`: the result is the operand itself. */
static inline int64_t wf_same_memory(wf_call *c) {
    for (int i = 0; i < c->out[0].ndim; i++) c->out[0].stride[i] = c->in[0].stride[i];
    return 0;
}

#endif
