/* ops/norm/rows.h - checks of operands, and masks, for ops that work on the rows along the last
 * axis. Not installed. */
#ifndef WEFT_OPS_NORM_ROWS_H
#define WEFT_OPS_NORM_ROWS_H

#include "ops/custom.h"

/* Fails the call unless operand i is absent or has the shape [columns]. */
bool wf_row_fits(wf_call *c, int i, int64_t columns, const char *what);

/* Fails the call unless the mask is absent, or real and broadcasts to x. */
bool wf_mask_fits(wf_call *c, const wf_view *mask, const wf_view *x);
/* How many columns of a row a causal mask leaves open; all of them unless `causal` is set. */
int64_t wf_open_columns(bool causal, int64_t row, int64_t rows, int64_t columns);

#endif
