/* ops/elementwise/integer.h - elementwise ops on i32. Not installed. */
#ifndef WEFT_OPS_ELEMENTWISE_INTEGER_H
#define WEFT_OPS_ELEMENTWISE_INTEGER_H

#include "core/op.h"
#include "ops/kernels/kernels.h"

/* The number that is congruent to x modulo 2^32. */
static inline int32_t wf_wrap(uint32_t x) {
    return x <= INT32_MAX ? (int32_t)x : (int32_t)(x - 0x80000000u) + INT32_MIN;
}

/* Has this op a row in integer.inc? */
bool wf_takes_integers(enum wf_binary f);
bool wf_takes_integer(enum wf_unary f);
/* A task of it. False after wf_fail: a division by 0. */
bool wf_run_integers(const wf_call *c, enum wf_binary f, int64_t task);
bool wf_run_integer(const wf_call *c, enum wf_unary f, int64_t task);
/* y = condition ? a : b, of i32; the condition is real */
bool wf_run_integer_where(const wf_call *c, int64_t task);

#endif
