/* ops/elementwise/full.c - a tensor filled with one value: a constant of one element, repeated by a
 * stride of 0. */
#include <math.h>

#include "ops/base/op_base.h"

/* A constant with one element of this type. */
static wf_tensor *one_element(wf_graph *g, wf_dtype dtype, double value) {
    if (dtype != WF_I32)
        return wf_constant_array(g, dtype, 0, NULL,
                                 dtype == WF_F64 ? (const void *)&value : &(float){ (float)value });
    if (!(value >= INT32_MIN && value <= INT32_MAX) || value != trunc(value))
        return wf_poison(g, "full: %g is no i32", value);
    return wf_constant_i32(g, (int32_t)value);
}

wf_tensor *wf_full(wf_graph *g, wf_dtype dtype, int ndim, const int64_t *shape, double value) {
    return wf_broadcast_to(one_element(g, dtype, value), wf_shape(g, ndim, shape));
}

wf_tensor *wf_zeros(wf_graph *g, wf_dtype dtype, int ndim, const int64_t *shape) {
    return wf_full(g, dtype, ndim, shape, 0);
}

wf_tensor *wf_ones(wf_graph *g, wf_dtype dtype, int ndim, const int64_t *shape) {
    return wf_full(g, dtype, ndim, shape, 1);
}
