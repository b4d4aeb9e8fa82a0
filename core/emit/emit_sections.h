/* core/emit/emit_sections.h - inside core/emit: functions that its files share. Each file writes or
 * decides a section of an emitted file. Steps and places have headers of their own. Not
 * installed. */
#ifndef WEFT_CORE_EMIT_EMIT_SECTIONS_H
#define WEFT_CORE_EMIT_EMIT_SECTIONS_H

#include "writer.h"

/* ---- panels ---------------------------------------------------------------------------------- */

/* Choose the layout of each leaf from the steps that read it in all plans, which must be bound. */
void wf_choose_panels(wf_emitter *e);
/* Set v->layout, the layout of operand i of a step of the current plan. False: the operand is in
 * panels, which the step cannot read. */
bool wf_set_panels(wf_emitter *e, const exec *x, int i, wf_view *v);
/* Reorder the values of a leaf from row-major to panels. False: out of memory. */
bool wf_pack_panels(const wf_tensor *leaf, float *values);

/* ---- rows of tables -------------------------------------------------------------------------- */

/* Operand `ids` of a step picks rows of operand `table`. Returns the number of floats, from the
 * table's start, that it can pick at the current size or position; 0: data decide it; -1: out of
 * memory. */
int64_t wf_floats_picked(const wf_emitter *e, const exec *x, int table, int ids);
/* Note that a step reads only the first n floats of the leaf; 0: all of them. */
void wf_note_floats(wf_emitter *e, const wf_tensor *t, int64_t n);
/* The number of the leaf's rows that the file contains. */
int64_t wf_rows_of(const wf_emitter *e, const wf_tensor *t);

/* ---- names ----------------------------------------------------------------------------------- */

/* True if the name is a keyword of C, or a name that emitted files use themselves. */
bool wf_is_word_of_c(const char *name);
/* The name of a leaf as an identifier. In the file it stands between the prefix at_ and the leaf's
 * id. */
void wf_leaf_name(const wf_tensor *t, char name[MOST_NAME]);
/* Reserve a name at file scope, and write it to `name`: `wanted`, with in_ in front if it begins
 * with at_ or ids_, and with _2, _3... behind it if it is taken. False: out of memory. */
bool wf_claim_name(wf_emitter *e, const char *wanted, char name[MOST_NAME]);
/* wf_claim_public claims the names by which programs use the file, which must differ.
 * wf_name_members names the members for inputs. */
bool wf_claim_public(wf_emitter *e);
bool wf_name_members(wf_emitter *e);
const char *wf_member_of(const wf_emitter *e, const wf_tensor *input);
/* The name of the emitted function for a fetch of a plan, which copies the fetched value (verb
 * "get") or returns its address (verb "see"). */
void wf_getter_name(const wf_emitter *e, const part *of, const char *verb, const wf_tensor *t,
                    char *to, size_t size);

/* ---- results and inputs ---------------------------------------------------------------------- */

/* True if the file gets a function that copies the value of node i of a plan: the node is fetched
 * and no update, and no later plan is fed with it. (The last does not count if the plans run one at
 * a time, or if the plan itself is fed with the node.) */
bool wf_has_getter(const wf_emitter *e, const part *of, int i);
/* Write the shape of a fetch and the body of the function that copies it, for the position or size
 * bound now. */
bool wf_describe_getter(wf_emitter *e, int index, wf_text *t);
bool wf_write_getter(wf_emitter *e, int index, int n, const wf_text *const *texts,
                     const int64_t *positions);
bool wf_describe_member(wf_emitter *e, int index, wf_text *t);
bool wf_write_member(wf_emitter *e, int index, int n, const wf_text *const *texts,
                     const int64_t *positions);

/* ---- the file -------------------------------------------------------------------------------- */

/* Read the values of the leaves that steps read, and write them as arrays or as the bytes of a
 * second file. */
bool wf_write_weights(wf_emitter *e);
/* The number of floats in that array or second file. If runs update leaves, the program's weights
 * are copied from there, and weights beyond it begin as 0. */
int64_t wf_first_weights(const wf_emitter *e);
/* The bytes of memory that a run needs. */
int64_t wf_arena_bytes(const wf_emitter *e);
/* Write an if statement that runs `leave`, such as "return 1;", if the position or size is out of
 * range. */
void wf_add_limits(const wf_emitter *e, const part *q, const char *leave, wf_text *t);
char *wf_join_file(wf_emitter *e);

#endif
