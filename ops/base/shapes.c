/* ops/base/shapes.c - checks that shape rules make: types, shapes and axes of operands. */
#include "shapes.h"

#include <stdio.h>

#include "ops/ops.h"

bool wf_want(wf_call *c, int i, wf_dtype type) {
    if (c->in[i].dtype == type) return true;
    return wf_fail(c, "operand %d, %s, is %s where %s is needed", i, wf_show(c, &c->in[i]),
                   wf_dtype_name(c->in[i].dtype), wf_dtype_name(type));
}

bool wf_want_real(wf_call *c, int i) {
    return wf_want(c, i, wf_real(c->graph));
}

bool wf_want_like(wf_call *c, int i, bool rows, const char *what) {
    wf_view like = c->in[0];
    if (!wf_want_real(c, i)) return false;
    if (rows && --like.ndim < 0) return wf_fail(c, "a scalar has no last axis");
    return wf_same_shape(&c->in[i], &like) ||
           wf_fail(c, "%s %s does not fit %s", what, wf_show(c, &c->in[i]), wf_show(c, &c->in[0]));
}

bool wf_addend_like(wf_call *c, int i, const wf_view *like) {
    const wf_view *addend = &c->in[i];
    if (addend->ndim < 0) return true;
    return wf_want(c, i, c->in[0].dtype) &&
           (wf_same_shape(addend, like) ||
            wf_fail(c, "%s is not like %s", wf_show(c, addend), wf_show(c, like)));
}

bool wf_want_axis(wf_call *c, int axis, int ndim) {
    return (axis >= 0 && axis < ndim) || wf_no_axis(c, &c->in[0], axis);
}

bool wf_as_operand(wf_call *c) {
    wf_set_shape(&c->out[0], c->in[0].dtype, c->in[0].ndim, c->in[0].shape);
    return true;
}

bool wf_same_as_operand(wf_call *c) {
    return wf_want_real(c, 0) && wf_as_operand(c);
}

bool wf_real_like_operand(wf_call *c) {
    wf_set_shape(&c->out[0], wf_real(c->graph), c->in[0].ndim, c->in[0].shape);
    return true;
}

bool wf_same_as_operands(wf_call *c) {
    if (c->n_in >= WF_WALKERS)
        return wf_fail(c, "%d operands, at most %d element by element", c->n_in, WF_WALKERS - 1);
    wf_view shape = c->in[0];
    for (int i = 0; i < c->n_in; i++) {
        if (c->in[i].ndim < 0) return wf_fail(c, "operand %d is absent", i);
        if (!wf_want_real(c, i) || !wf_broadcast_shapes(c, &shape, &c->in[i], &shape)) return false;
    }
    wf_set_shape(&c->out[0], c->in[0].dtype, shape.ndim, shape.shape);
    return true;
}

int wf_rank(const wf_tensor *x) {
    return x ? x->ndim : 0;
}

int wf_pick_axis(int axis, int ndim) {
    int i = wf_axis(axis, ndim);
    return i < 0 ? axis : i;
}

bool wf_is_last(int axis, const wf_tensor *x) {
    return axis == -1 || axis == wf_rank(x) - 1;
}

/* ---- sets of axes: bits 0..7; 24..31 for -8..-1; WF_NO_AXES, the mark; 8: no tensor's axis --- */

enum { FROM_END = 32 - WF_MAX_DIMS }; /* the bit of axis -8 */

static bool is_set(uint32_t axes) {
    uint32_t unused = ~(~0u << FROM_END) & ~0x1ffu & ~WF_NO_AXES;
    return axes == WF_ALL_AXES || ((axes & WF_NO_AXES) && !(axes & unused));
}

static int number_of(int bit) {
    return bit < FROM_END ? bit : bit - 32;
}

const char *wf_axis_text(int axis, char text[WF_AXIS_TEXT]) {
    uint32_t axes = (uint32_t)axis;
    if (!is_set(axes)) {
        snprintf(text, WF_AXIS_TEXT, "axis %d", axis);
        return text;
    }
    for (int i = 0; i < 32; i++)
        if (axes == WF_AXIS(number_of(i))) {
            snprintf(text, WF_AXIS_TEXT, "axis WF_AXIS(%d), which is a set of axes: write %d",
                     number_of(i), number_of(i));
            return text;
        }
    snprintf(text, WF_AXIS_TEXT, "axis 0x%x, which is a set of axes", (unsigned)axes);
    return text;
}

bool wf_no_axis(wf_call *c, const wf_view *x, int axis) {
    char text[WF_AXIS_TEXT];
    return wf_fail(c, "%s has no %s", wf_show(c, x), wf_axis_text(axis, text));
}

bool wf_axes_fit(uint32_t axes, int ndim, const char *what, char text[WF_AXES_TEXT]) {
    if (!is_set(axes)) {
        int axis = (int)axes;
        const char *empty = axis ? "" : "; the empty set is WF_NO_AXES";
        snprintf(text, WF_AXES_TEXT, "%d is an axis, not a set of axes: WF_AXIS(%d)%s", axis, axis,
                 empty);
        return false;
    }
    uint32_t too_far = axes & ~WF_NO_AXES & ~0u << ndim;
    if (!too_far) return true;
    int bit = ndim;
    while (!(too_far >> bit & 1)) bit++;
    if (bit == WF_MAX_DIMS)
        snprintf(text, WF_AXES_TEXT, "%s has no axis below -%d or above %d", what, WF_MAX_DIMS,
                 WF_MAX_DIMS - 1);
    else
        snprintf(text, WF_AXES_TEXT, "%s has no axis %d", what, number_of(bit));
    return false;
}

bool wf_want_axes(wf_call *c, uint32_t axes, int ndim) {
    char text[WF_AXES_TEXT];
    return wf_axes_fit(axes, ndim, wf_show(c, &c->in[0]), text) || wf_fail(c, "%s", text);
}

uint32_t wf_axes(uint32_t axes, int ndim) {
    if (!is_set(axes) || ndim > WF_MAX_DIMS) return axes;
    if (axes == WF_ALL_AXES) return WF_NO_AXES | ((1u << ndim) - 1);
    if (ndim < 1) return axes;
    uint32_t from_end = axes & ~0u << FROM_END, plain = axes & ~(~0u << FROM_END);
    return plain | from_end >> (32 - ndim) | (from_end & ~(~0u << (32 - ndim)));
}

uint32_t wf_other_axes(int i, int ndim) {
    return WF_NO_AXES | (((1u << ndim) - 1) & ~(1u << i));
}
