/* ops/base/panels.h - weights packed in panels. Not installed. */
#ifndef WEFT_OPS_BASE_PANELS_H
#define WEFT_OPS_BASE_PANELS_H

#include "core/op.h"

/* The number of rows in a whole panel, for the kernel table in use. */
int64_t wf_panel_rows(wf_dtype type);

/* Computes out[0] = in[0], where one of them is packed in panels. */
int64_t wf_repack_tasks(const wf_call *c, int phase);
bool wf_repack_eval(const wf_call *c, int phase, int64_t task, void *scratch);
/* unpack one row of a matrix that is packed in panels */
void wf_panel_row(const wf_view *x, int64_t row, void *out);
/* Copy row rows[i] of a matrix to row i of another one in the same layout, in panels or not: in
 * int8 the integers themselves. False: out of memory. */
bool wf_take_rows(const wf_view *x, const int32_t *rows, const wf_view *y);

#endif
