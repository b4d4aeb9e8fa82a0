/* ops/base/shapes.h - checks for shape rules, besides those of custom.h. Not installed. */
#ifndef WEFT_OPS_BASE_SHAPES_H
#define WEFT_OPS_BASE_SHAPES_H

#include "ops/custom.h"

/* Fails the call unless operand i is real and has operand 0's shape, or if `rows` is set, one
 * element for each row of operand 0. `what` names it in the message. */
bool wf_want_like(wf_call *c, int i, bool rows, const char *what);
/* Fails the call unless 0 <= axis < ndim. */
bool wf_want_axis(wf_call *c, int axis, int ndim);
/* Fails the call unless operand i is absent, or has the type of operand 0 and the shape of
 * `like`. */
bool wf_addend_like(wf_call *c, int i, const wf_view *like);
/* fails the call unless `axes` is a set of axes of a tensor with ndim axes */
bool wf_want_axes(wf_call *c, uint32_t axes, int ndim);
/* True if `axes` is a set of axes of an operand with ndim axes, which messages call `what`. If not,
 * text says why. */
enum { WF_AXES_TEXT = 320 };
bool wf_axes_fit(uint32_t axes, int ndim, const char *what, char text[WF_AXES_TEXT]);
/* Write an axis for a message: "axis 5", or for a set "axis WF_AXIS(1), which is a set of axes".
 * Returns text. */
enum { WF_AXIS_TEXT = 80 };
const char *wf_axis_text(int axis, char text[WF_AXIS_TEXT]);
/* Fails the call, because x has no such axis. Returns false. */
bool wf_no_axis(wf_call *c, const wf_view *x, int axis);
/* Shape rules by which out[0] has the shape of operand 0. wf_as_operand: it has its type, too,
 * which may be any; wf_same_as_operand: both are real; wf_real_like_operand: out[0] is real. */
bool wf_as_operand(wf_call *c);
bool wf_same_as_operand(wf_call *c);
bool wf_real_like_operand(wf_call *c);
int wf_rank(const wf_tensor *x); /* ndim; 0 for NULL */
/* the axis as a number from 0; a negative one counts from the end. An axis that does not exist is
 * returned unchanged */
int wf_pick_axis(int axis, int ndim);
/* true if axis is -1 or the number of the last axis */
bool wf_is_last(int axis, const wf_tensor *x);
/* Turns axes that are counted from the end into plain bits. A value that is no set of axes does not
 * change. */
uint32_t wf_axes(uint32_t axes, int ndim);
uint32_t wf_other_axes(int i, int ndim); /* all of ndim axes except axis i */

/* True if a program computed this size from the value of wf_extent: no other number is so far below
 * 0. Messages then show the extent's name. */
static inline bool wf_bound_later(int64_t size) {
    return size < INT32_MIN;
}
/* A `view` function for ops whose result is the operand itself. */
static inline int64_t wf_same_memory(wf_call *c) {
    for (int i = 0; i < c->out[0].ndim; i++) c->out[0].stride[i] = c->in[0].stride[i];
    return 0;
}
/* A `view` function for ops whose result is operand 0, broadcast: walk.c. */
int64_t wf_broadcast_view(wf_call *c);

/* Is x a matrix with its axes exchanged by wf_transpose or wf_permute? */
bool wf_is_turned(const wf_tensor *x);

#endif
