/* ops/emit/loops.h - loops in C for ops that are emitted (core/emit/emitter.h). Not installed. */
#ifndef WEFT_OPS_EMIT_LOOPS_H
#define WEFT_OPS_EMIT_LOOPS_H

#include "core/emit/c_text.h"
#include "core/emit/emitter.h"
#include "ops/custom.h"

/* Loops over the elements of out[0], with "out[...] = value;" inside. value is an expression of the
 * operands' names, which broadcast to the result, and of functions of ops/emit/plain_*.c. It may be
 * written as in unary.inc and binary.inc: v_exp is exp_of, real is float. At most three operands.
 * False after wf_fail: for i32, or if a function is not there. */
bool wf_emit_elements(wf_emitter *e, const wf_call *c, const char *value);
/* Like wf_emit_elements, but operands and result may be of any type, i32 too. */
bool wf_emit_choice(wf_emitter *e, const wf_call *c, const char *value);
/* Write loops in which the run fails if the condition is true for an element. */
bool wf_emit_fails_if(wf_emitter *e, const wf_call *c, const char *condition);

/* Write "for (int i0 = 0; ...)" for every axis of a walk except the row's own. The variables are
 * named by `letter` and a number. */
void wf_emit_rows(wf_emitter *e, const wf_walk *w, char letter);
/* Write the offset of the current row in view v, "i0 * 12 + i1", in loops with this letter.
 * wf_emit_element_at writes the offset of element j of that row, in loops with the letter i. */
void wf_emit_row_at(wf_emitter *e, const wf_walk *w, char letter, int v);
void wf_emit_element_at(wf_emitter *e, const wf_walk *w, int v, const char *j);

/* Write loops that copy the elements of the array `value`, which has the view `from`, to `out`,
 * which has the view `to`. */
void wf_emit_copy(wf_emitter *e, const wf_view *to, const wf_view *from, const char *value);

/* Write sums over rows in blocks of at most `grain` rows, as wf_task_range cuts them. Between these
 * two calls, write how row r adds to scratch[0, sums n). Each block begins with zeros, and is then
 * added to results of n elements: to result 1 if sums is 1, to results 0 and 1 if it is 2. */
void wf_emit_block_begin(wf_emitter *e, int64_t rows, int64_t grain, int64_t n, int sums);
void wf_emit_block_end(wf_emitter *e, int64_t n, int sums);
/* "static const int NAME[] = { 0, ... };": where the tasks of n elements begin, and the end.
 * Returns their number. */
int64_t wf_emit_ranges(wf_emitter *e, const char *name, int64_t n, int64_t grain);

#endif
