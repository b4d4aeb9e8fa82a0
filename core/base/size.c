/* core/base/size.c - checked sizes and the element types.
 *
 * Sizes that a program or a file declares are multiplied here. A product that overflows gives
 * false, never a wrapped number. */
#include "core/op_internal.h"
#include "core/record/record.h"

bool wf_mul_size(int64_t a, int64_t b, int64_t *out) {
    if (!out || a < 0 || b < 0 || (a > 0 && b > INT64_MAX / a)) return false;
    *out = a * b;
    return true;
}

/* The bytes of a tensor of this shape; -1: overflow, or no valid dtype or shape. An axis of size 0
 * counts as 1, because strides are products of the other axes and must not overflow either. */
static int64_t bytes_of(wf_dtype dtype, int ndim, const int64_t *shape) {
    int64_t bytes = (int64_t)wf_dtype_size(dtype);
    if (bytes == 0 || ndim < 0 || ndim > WF_MAX_DIMS) return -1;
    for (int i = 0; i < ndim; i++)
        if (!wf_mul_size(bytes, shape[i] ? shape[i] : 1, &bytes)) return -1;
    return bytes;
}

bool wf_shape_counts(wf_dtype dtype, int ndim, const int64_t *shape) {
    return bytes_of(dtype, ndim, shape) >= 0;
}

bool wf_shape_bytes(wf_dtype dtype, int ndim, const int64_t *shape, size_t *out) {
    int64_t bytes = out && (shape || ndim < 1) ? bytes_of(dtype, ndim, shape) : -1;
    /* on 32-bit machines a size that int64_t holds may be too large for memory */
    if (bytes < 0 || bytes > PTRDIFF_MAX) return false;
    for (int i = 0; i < ndim; i++)
        if (shape[i] == 0) bytes = 0;
    *out = (size_t)bytes;
    return true;
}

size_t wf_dtype_size(wf_dtype dtype) {
    static const size_t size[] = { [WF_F32] = 4, [WF_F64] = 8, [WF_I32] = 4 };
    return (unsigned)dtype < sizeof size / sizeof *size ? size[dtype] : 0;
}

const char *wf_dtype_name(wf_dtype dtype) {
    static const char *const name[] = { [WF_F32] = "f32", [WF_F64] = "f64", [WF_I32] = "i32" };
    return (unsigned)dtype < sizeof name / sizeof *name ? name[dtype] : "?";
}
