/* ops/elementwise/integer.h - elementwise ops on i32. Not installed. */
#ifndef WEFT_OPS_ELEMENTWISE_INTEGER_H
#define WEFT_OPS_ELEMENTWISE_INTEGER_H

#include "core/emit/emitter.h"
#include "core/op.h"
#include "ops/kernels/kernels.h"

/* True if this op has a row in integer.inc. */
bool wf_takes_integers(enum wf_binary f);
bool wf_takes_integer(enum wf_unary f);
/* Run one task of an op that has a row in integer.inc, with i32 operands. False after wf_fail: a
 * division by 0. */
bool wf_run_integers(const wf_call *c, enum wf_binary f, int64_t task);
bool wf_run_integer(const wf_call *c, enum wf_unary f, int64_t task);
/* The op as C: `value` for reals, the row of integer.inc for i32. */
bool wf_emit_binary(wf_emitter *e, const wf_call *c, enum wf_binary f, const char *value);
bool wf_emit_unary(wf_emitter *e, const wf_call *c, enum wf_unary f, const char *value);
/* y = condition ? a : b for i32; the condition is real */
bool wf_run_integer_where(const wf_call *c, int64_t task);

#endif
