/* ops/norm/rows.h - what ops on the rows along the last axis share: checks of operands, masks, and
 * sums over blocks of rows. Not installed. */
#ifndef WEFT_OPS_NORM_ROWS_H
#define WEFT_OPS_NORM_ROWS_H

#include "ops/custom.h"

/* Sums over the rows of operand 0, for gradients of weights: layer_norm.c. In phase 0 a task has a
 * block of WF_BLOCK_ROWS rows, and writes their sums to the work memory [blocks, sums, columns]. In
 * phase 1, wf_add_row_blocks adds up some columns of all blocks, in order; result `first` gets the
 * first of the sums. So the bits do not depend on the number of threads. */
enum { WF_BLOCK_ROWS = 32 };
bool wf_plan_row_blocks(wf_call *c, int sums); /* false after wf_fail */
int64_t wf_row_block_tasks(const wf_call *c, int phase);
void wf_add_row_blocks(const wf_call *c, int first, int sums, int64_t task);
/* The sum of x over all axes but the last, recorded as an op. */
wf_tensor *wf_sum_over_rows(wf_tensor *x);

/* Fails the call unless operand i is absent or has the shape [columns]. */
bool wf_row_fits(wf_call *c, int i, int64_t columns, const char *what);

/* Fails the call unless the mask is absent, or real and broadcasts to x. */
bool wf_mask_fits(wf_call *c, const wf_view *mask, const wf_view *x);
/* How many columns of a row a causal mask leaves open; all of them unless `causal` is set. */
int64_t wf_open_columns(bool causal, int64_t row, int64_t rows, int64_t columns);

#endif
