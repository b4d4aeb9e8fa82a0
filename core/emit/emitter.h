/* core/emit/emitter.h - for ops: how the kernel of an op writes one of its calls as C. Not
 * installed.
 *
 * An op's kernel has a function `emit` (kernel.h), which writes the body of a C function that
 * computes a call: the same bits as eval, for these shapes, in plain C11. The parameters of that
 * function are the operands, under the names of the op's formula; the results `out`, `out1`, ...,
 * or as wf_emit_result names them; `work`, the call's work memory, if the body uses it; and those
 * that the functions below ask for. A weight in int8 is two parameters: b is signed char,
 * row-major, and b_scales has a float for each row, so that b[i, j] b_scales[i] is the value.
 * core/emit/ writes the rest, and a function only once if several calls have the same body. Bodies
 * may call the functions in ops/emit/. */
#ifndef WEFT_CORE_EMIT_EMITTER_H
#define WEFT_CORE_EMIT_EMITTER_H

#include <stdarg.h>

#include "core/op_internal.h"

typedef struct wf_emitter wf_emitter;

/* Append text to the body. %s: text. %d: an int. %n: an int64_t that shapes determine, such as a
 * size, a stride or an offset. %f: a double as a constant of type float; %g: as a constant of type
 * double. %u: a uint64_t, as a constant of that type. Lines need no indentation: it is added by the
 * depth of braces. */
void wf_emit_text(wf_emitter *e, const char *format, ...);
/* The name of operand i, or "0" if the call does not have it. */
const char *wf_emit_operand(const wf_emitter *e, int i);
/* The name of result k, "out" or "out1"... If `name` is not NULL, the result gets this name, which
 * should say what it means. */
const char *wf_emit_result(wf_emitter *e, int k, const char *name);
/* The body uses the parameter `scratch`: this many floats, whose values are undefined at first. */
void wf_emit_scratch(wf_emitter *e, int64_t floats);
/* The body uses the parameter `uint64_t stream`, the number of the random stream of this step and
 * micro-batch. */
void wf_emit_stream(wf_emitter *e);
/* The body reads only those rows of operand `table` that operand `ids` picks. */
void wf_emit_table(wf_emitter *e, int table, int ids);
/* The body may return 1 if the data are bad, which makes the run return 1. The emitter adds the
 * `return 0` at its end. */
void wf_emit_may_fail(wf_emitter *e);

#endif
