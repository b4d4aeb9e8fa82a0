/* ops/base/walk.h - walks through the rows of several strided views, in addition to those of
 * custom.h. Not installed. */
#ifndef WEFT_OPS_BASE_WALK_H
#define WEFT_OPS_BASE_WALK_H

#include "ops/custom.h"
#include "ops/kernels/kernels.h"

/* The stride of `small` along an axis of `large`, to which it broadcasts: 0 if it is repeated
 * there. */
int64_t wf_broadcast_stride(const wf_view *small, const wf_view *large, int axis);

/* wf_walk_start begins a walk over n views, at row 0. wf_walk_seek goes to a row, wf_walk_next to
 * the next one. */
void wf_walk_start(wf_walk *w, int n, const wf_view *const *views);
void wf_walk_seek(wf_walk *w, int64_t row);
void wf_walk_next(wf_walk *w);

/* The number of equally spaced rows from the current one on, along the axis before the row's own,
 * but at most `most`. wf_walk_skip moves on by `rows` of them. */
int64_t wf_walk_ahead(const wf_walk *w, int64_t most);
void wf_walk_skip(wf_walk *w, int64_t rows);

/* The distance in elements between neighbouring rows of view v along the axis before the row's own;
 * 0 if the walk has one row. */
static inline int64_t wf_walk_row(const wf_walk *w, int v) {
    return w->ndim ? w->stride[v][w->ndim - 1] : 0;
}

/* Copies `rows` rows of `columns` elements from x to y, which have any strides. */
void wf_copy_rows(wf_dtype type, int64_t rows, int64_t columns, wf_matrix x, wf_matrix y);

/* A part of a walk: `rows` neighbouring rows, and in each of them `columns` elements from `column`
 * on. */
typedef struct wf_part {
    int64_t rows, columns, column;
} wf_part;
/* The next part of elements [*from, to); *from moves past it. False: there are no more. The part
 * must be all 0 before the first call. */
bool wf_walk_part(wf_walk *w, int64_t *from, int64_t to, wf_part *part);
/* The elements of this part in x, which is view number v of the walk. */
wf_matrix wf_part_of(const wf_walk *w, const wf_part *part, int v, const wf_view *x);

/* Copies elements [from, to) of the walk w from x to y. y is view 0 of the walk, x is view 1. */
void wf_copy_walked(wf_walk *w, int64_t from, int64_t to, const wf_view *x, const wf_view *y);

double wf_flops_of_operand(const wf_call *c); /* one operation for each element of operand 0 */

/* Copies in[0] to out[0] in row-major order, whatever their shapes. Its tasks are those of
 * elementwise ops. */
bool wf_copy_eval(const wf_call *c, int phase, int64_t task, void *scratch);

#endif
