/* ops/product/int8.h - the product with a weight in int8 panels; matmul.c divides it into tasks.
 * Not installed. */
#ifndef WEFT_OPS_PRODUCT_INT8_H
#define WEFT_OPS_PRODUCT_INT8_H

#include "ops/base/walk.h"

/* Operand a is view 1 of the walk `batch`, and has `count` matrices of m rows. In the first phase
 * each task rounds `group` of these rows into the call's work memory. The second phase multiplies
 * them. */
typedef struct wf_int8_plan {
    wf_walk batch;
    int64_t count, m, n, k, a_row, a_col;
    int64_t group;
    bool with_dot; /* kernels use VNNI */
} wf_int8_plan;

/* Computes group and with_dot from the other fields, and sets in the call how much work and scratch
 * memory it needs. */
void wf_int8_prepare(wf_int8_plan *p, wf_call *c);
int64_t wf_int8_round_tasks(const wf_int8_plan *p);
void wf_int8_round_rows(const wf_int8_plan *p, const wf_call *c, int64_t task, void *scratch);
/* Compute columns [j, j + n) of all rows of the result; d: their addend, or NULL. */
void wf_int8_multiply(const wf_int8_plan *p, const wf_call *c, int64_t j, int64_t n, const void *d,
                      int64_t d_row);

#endif
