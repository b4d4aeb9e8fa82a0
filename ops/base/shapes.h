/* ops/base/shapes.h - checks for shape rules, besides those of custom.h. Not installed. */
#ifndef WEFT_OPS_BASE_SHAPES_H
#define WEFT_OPS_BASE_SHAPES_H

#include "ops/custom.h"

/* Fails the call unless operand i is absent, or has operand 0's type and this shape. */
bool wf_addend_like(wf_call *c, int i, const wf_view *like);
bool wf_want_axes(wf_call *c, uint32_t axes, int ndim); /* fails the call if an axis is >= ndim */
/* Are axes a set of axes of `what`, which has ndim axes? If not, text says why. */
enum { WF_AXES_TEXT = 320 };
bool wf_axes_fit(uint32_t axes, int ndim, const char *what, char text[WF_AXES_TEXT]);
/* "axis 5"; if it is a set of axes, "axis WF_AXIS(1), which is a set of axes". Returns text. */
enum { WF_AXIS_TEXT = 80 };
const char *wf_axis_text(int axis, char text[WF_AXIS_TEXT]);
bool wf_no_axis(wf_call *c, const wf_view *x, int axis); /* fails the call: x has no such axis */
bool wf_same_as_operand(wf_call *c);           /* a shape rule: out[0] is real and as operand 0 */
int wf_rank(const wf_tensor *x);               /* ndim; 0 for NULL */
int wf_pick_axis(int axis, int ndim);          /* a negative axis counts from the end */
bool wf_is_last(int axis, const wf_tensor *x); /* -1 or the number of the last axis */
/* Axes counted from the end become plain bits; what is not a set of axes stays as it is. */
uint32_t wf_axes(uint32_t axes, int ndim);
uint32_t wf_other_axes(int i, int ndim); /* all of ndim axes but i */

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
