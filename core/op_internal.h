/* core/op_internal.h - inside the library: sizes and strides of views, checked. Not installed. */
#ifndef WEFT_CORE_OP_INTERNAL_H
#define WEFT_CORE_OP_INTERNAL_H

#include "core/op.h"

/* The bytes of an element in memory. */
size_t wf_view_unit(const wf_view *v);
/* The bytes of this many elements of a view. In int8 each row is padded to a multiple of 4 bytes
 * and has a float as its scale. */
size_t wf_view_bytes(const wf_view *v, int64_t elements);
/* True if the view is row-major without gaps. */
bool wf_view_dense(const wf_view *v);
/* The view as a matrix. columns: the size of the last axis; rows: the product of the other
 * sizes. */
void wf_view_rows(const wf_view *v, int64_t *rows, int64_t *columns);
/* The strides of a row-major view without gaps. */
void wf_dense_strides(int ndim, const int64_t *shape, int64_t *stride);
/* Store the product of two sizes, or the bytes of a shape, in *out. False: overflow of int64_t or
 * size_t, or a negative size. */
bool wf_mul_size(int64_t a, int64_t b, int64_t *out);
bool wf_shape_bytes(wf_dtype dtype, int ndim, const int64_t *shape, size_t *out);

#endif
