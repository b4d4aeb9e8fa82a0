/* core/emit/emit_steps.h - inside core: a step of a plan as texts of C. Not installed. */
#ifndef WEFT_CORE_EMIT_EMIT_STEPS_H
#define WEFT_CORE_EMIT_EMIT_STEPS_H

#include "writer.h"

/* The texts of a step, in which numbers stand between marks. */
typedef struct step_text {
    const char *formula; /* formula of the op, or NULL */
    wf_text name, code, arguments, results;
    bool may_fail, writes;
    char module[MOST_NAME];
} step_text;
void wf_step_free(step_text *s);
/* Write the body of a step. */
bool wf_write_body(wf_emitter *e, const exec *x);
/* Describe step `index` of the current plan's schedule, as the plan is bound now. */
bool wf_describe_step(wf_emitter *e, int index, step_text *s);
/* Write a step as a call in the function of its module. s[k] describes the step at positions[k], or
 * at that size; the n texts are merged into one by wf_merge_numbers. A step without code writes
 * nothing. */
bool wf_write_step(wf_emitter *e, int n, step_text *const *s, const int64_t *positions);
bool wf_end_module(wf_emitter *e);

/* Merge the texts for n positions or sizes into one. A number that differs becomes "(position * b +
 * a)", or `size` instead of `position`, or the text `instead` if that is not NULL; *moves is then
 * true. False: the texts differ in more than such numbers, linear in the position or size. */
bool wf_merge_numbers(const part *q, int n, const wf_text *const *texts, const int64_t *positions,
                      const char *instead, wf_text *to, bool *moves);

#endif
