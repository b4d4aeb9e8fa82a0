/* ops/base/op_base.h - what every op needs: kernel tables, elements of a view, other ops. Not
 * installed. */
#ifndef WEFT_OPS_BASE_OP_BASE_H
#define WEFT_OPS_BASE_OP_BASE_H

#include "ops/custom.h"
#include "ops/kernels/kernels.h"

/* Declares every op as wf_op_<name>. */
#define OP(name) extern const wf_op wf_op_##name;
#include "ops/list.inc"
#undef OP

/* Call a member of the kernel table for f32 or f64: WF_KERNEL(type, exp(n, x, y)). Pointers are
 * passed as void *, so that one expression works for both types. */
#define WF_KERNEL(type, ...) ((type) == WF_F64 ? wf_f64()->__VA_ARGS__ : wf_f32()->__VA_ARGS__)

enum { WF_ROW_COST = 64 }; /* the overhead of processing a row, expressed as a number of elements */

void wf_put_all(const wf_view *v, int64_t from, int64_t to, double value); /* elements [from, to) */

/* Result k of the node whose result 0 is y. If recording the node failed, y has no op, and y itself
 * is returned. */
static inline wf_tensor *wf_result(wf_tensor *y, int k) {
    return y->op ? y + k : y;
}
/* x as a separate node. If one tensor is two operands, each then gets its own gradient. */
static inline wf_tensor *wf_alias(wf_tensor *x) {
    return wf_record(&wf_op_reshape_like, 2, (wf_tensor *[]){ x, x }, NULL);
}
static inline wf_tensor *wf_constant_i32(wf_graph *g, int32_t value) {
    return wf_constant_array(g, WF_I32, 0, NULL, &value);
}
/* A zero of shape []. wf_zero gives a real one, wf_zero_like one of x's type. */
wf_tensor *wf_zero(wf_tensor *x);
wf_tensor *wf_zero_like(wf_tensor *x);
/* A mask as a real tensor, which ops require: an i32 mask is converted. NULL stays NULL. */
wf_tensor *wf_real_mask(wf_tensor *mask);

/* The gradient rule of ops that change no value: dx = dy. */
void wf_grad_same(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need);

#endif
