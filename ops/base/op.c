/* ops/base/op.c - reads and writes elements of a view as doubles, whatever their type;
 * constants. */
#include "op_base.h"

#include <string.h>

double wf_get(const wf_view *v, int64_t i) {
    switch (v->dtype) {
    case WF_F32:
        return ((const float *)v->data)[i];
    case WF_F64:
        return ((const double *)v->data)[i];
    default:
        return ((const int32_t *)v->data)[i];
    }
}

void wf_put(const wf_view *v, int64_t i, double value) {
    switch (v->dtype) {
    case WF_F32:
        ((float *)v->data)[i] = (float)value;
        break;
    case WF_F64:
        ((double *)v->data)[i] = value;
        break;
    default:
        ((int32_t *)v->data)[i] = (int32_t)value;
        break;
    }
}

/* Write the first element, and then copy elements that are already written, at most FILLED at a
 * time. */
enum { FILLED = 1 << 11 }; /* elements that are copied again and again: they stay in the cache */

void wf_put_all(const wf_view *v, int64_t from, int64_t to, double value) {
    size_t size = wf_dtype_size(v->dtype);
    int64_t n = to - from, most;
    if (from >= to) return;
    wf_put(v, from, value);
    for (int64_t done = 1; done < n; done += most) {
        most = done < FILLED ? done : FILLED;
        if (most > n - done) most = n - done;
        memcpy(wf_at(v, from + done), wf_at(v, from), (size_t)most * size);
    }
}

wf_tensor *wf_zero(wf_tensor *x) {
    return wf_constant(x ? x->graph : NULL, 0);
}

wf_tensor *wf_zero_like(wf_tensor *x) {
    return x && x->dtype == WF_I32 ? wf_constant_i32(x->graph, 0) : wf_zero(x);
}

wf_tensor *wf_real_mask(wf_tensor *mask) {
    return mask && mask->dtype == WF_I32 ? wf_cast(mask, wf_real(mask->graph)) : mask;
}
