/* core/emit/emit_sections.h - inside core/emit: what its files, each of which writes or decides a
 * section of an emitted file, use of each other. Not installed. Steps and places have headers of
 * their own. */
#ifndef WEFT_CORE_EMIT_EMIT_SECTIONS_H
#define WEFT_CORE_EMIT_EMIT_SECTIONS_H

#include "writer.h"

/* ---- panels ---------------------------------------------------------------------------------- */

/* Choose how each leaf lies, from its readers in all parts, which are bound. */
void wf_choose_panels(wf_emitter *e);
/* Set the layout of operand i of a step of the part. False: it lies in panels that the step cannot
 * read. */
bool wf_set_panels(wf_emitter *e, const exec *x, int i, wf_view *v);
/* Reorder the values of a leaf in panels. False: out of memory. */
bool wf_pack_panels(const wf_tensor *leaf, float *values);

/* ---- rows of tables -------------------------------------------------------------------------- */

/* The number of first floats of operand `table` from which operand `ids` of a step picks rows, at
 * the size or position now; 0: data decide it; -1: out of memory. */
int64_t wf_floats_picked(const wf_emitter *e, const exec *x, int table, int ids);
/* Only the first n floats of the leaf are read; 0: all. */
void wf_note_floats(wf_emitter *e, const wf_tensor *t, int64_t n);
/* The rows that the file has of a leaf. */
int64_t wf_rows_of(const wf_emitter *e, const wf_tensor *t);

/* ---- names ----------------------------------------------------------------------------------- */

/* Is it a word of C, or a name that every file has for itself? */
bool wf_is_word_of_c(const char *name);
/* The name of a leaf, between at_ and its id. */
void wf_leaf_name(const wf_tensor *t, char name[MOST_NAME]);
/* A name at file scope like `wanted`, with a number behind it if another has it. */
bool wf_claim_name(wf_emitter *e, const char *wanted, char name[MOST_NAME]);
/* The names that the program uses, which must differ; and the members for inputs. */
bool wf_claim_public(wf_emitter *e);
bool wf_name_members(wf_emitter *e);
const char *wf_member_of(const wf_emitter *e, const wf_tensor *input);
/* The name of the function that copies a fetch of the part, "get", or says where it lies, "see". */
void wf_getter_name(const wf_emitter *e, const part *of, const char *verb, const wf_tensor *t,
                    char *to, size_t size);

/* ---- results and inputs ---------------------------------------------------------------------- */

/* Is node i of a part fetched for the program? */
bool wf_has_getter(const wf_emitter *e, const part *of, int i);
/* Describe the function for a fetch, and the shape of a feed, at the position now. */
bool wf_describe_getter(wf_emitter *e, int index, wf_text *t);
bool wf_write_getter(wf_emitter *e, int index, int n, const wf_text *const *texts,
                     const int64_t *positions);
bool wf_describe_member(wf_emitter *e, int index, wf_text *t);
bool wf_write_member(wf_emitter *e, int index, int n, const wf_text *const *texts,
                     const int64_t *positions);

/* ---- the file -------------------------------------------------------------------------------- */

/* Read the values of all leaves, and make the array or the file of them. */
bool wf_write_weights(wf_emitter *e);
/* The floats that the array or the file has. What a run updates is copied from it, and the rest of
 * that is 0. */
int64_t wf_first_weights(const wf_emitter *e);
/* The memory that a run needs. */
int64_t wf_arena_bytes(const wf_emitter *e);
/* A statement that leaves a function of the part if its parameter is out of range. */
void wf_add_limits(const wf_emitter *e, const part *q, const char *leave, wf_text *t);
char *wf_join_file(wf_emitter *e);

#endif
