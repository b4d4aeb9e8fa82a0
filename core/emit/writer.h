/* core/emit/writer.h - inside core: an emitted file while it is written. Not installed.
 *
 * emit.c        what is written: plans, their order in memory, the file at the end
 * emit_steps.c  a step of a schedule as a call of a C function
 * emit_file.c   the parts of the file around these functions
 * c_text.c      text that grows, constants and identifiers of C */
#ifndef WEFT_CORE_EMIT_WRITER_H
#define WEFT_CORE_EMIT_WRITER_H

#include "c_text.h"
#include "core/plan/plan.h"
#include "emitter.h"

enum { MOST_NAME = 128, MOST_PREFIX = 64, MOST_PARTS = 8, MOST_POSITIONS = 4 };
/* A leaf begins at a multiple of so many floats. */
enum { LEAF_UNIT = 16 };

static inline const char *wf_c_type(wf_dtype dtype) {
    return dtype == WF_I32 ? "int32_t" : "float";
}

/* A function that computes one or several steps. */
typedef struct form {
    size_t code; /* where its parameters and body begin in the codes, which 0 ends */
    char name[MOST_NAME];
} form;

/* A plan, and the function that runs it. */
typedef struct part {
    wf_plan *plan;
    const char *name; /* of the function, after the prefix */
    int64_t arena;    /* first float of its arena */
    int64_t state;    /* first float of its caches */
    wf_text run;      /* the body of the function */
    bool fails;       /* some of its steps may fail */
} part;

struct wf_emitter {
    const char *prefix;
    part parts[MOST_PARTS];
    int n_parts;
    part *now; /* the part that is written */
    /* of the step that is written */
    char operand[WF_MAX_OPERANDS][32];
    wf_text body;
    bool uses_scratch, uses_stream, may_fail;
    /* of the whole file */
    wf_text codes, functions, modules, weights, tables, names, getters;
    form *forms;
    size_t n_forms, cap_forms;
    int64_t scratch; /* most floats that a step asked for */
    bool *is_placed; /* by node id: the leaf has a place in the weights */
    int *leaves;     /* the ids of those leaves in the order of their places */
    int n_leaves;
    int64_t n_weights;
    int64_t memory; /* floats of all arenas and states */
    bool updates;
    /* the module whose calls are collected */
    char module[MOST_NAME];
    wf_text calls;
    int n_calls, n_modules;
    bool module_fails, module_moves; /* some call may fail, or depends on the position */
    char message[ERROR_SIZE];
};

bool wf_emitter_fail(wf_emitter *e, const char *format, ...) WF_PRINTF(2, 3);
bool wf_emitter_fail_plan(wf_emitter *e); /* with the error of the part's plan */

/* emit_steps.c */

/* The texts of a step, in which numbers stand between marks. */
typedef struct step_text {
    const char *formula; /* of the op, or NULL */
    wf_text name, code, arguments;
    bool may_fail, writes;
    char module[MOST_NAME], shape[112];
} step_text;
void wf_step_free(step_text *s);
/* Describe step `index` of the part's schedule as it is bound now. */
bool wf_describe_step(wf_emitter *e, int index, step_text *s);
/* One text from those for n positions: numbers that differ become "(a + b * position)". False: the
 * texts differ in more than numbers that grow evenly. */
bool wf_merge_numbers(int n, const wf_text *const *texts, const int64_t *positions, wf_text *to);
/* Write a step from its texts for n positions: a call in the function of its module. */
bool wf_write_step(wf_emitter *e, int n, step_text *const *s, const int64_t *positions);
void wf_end_module(wf_emitter *e);
/* The place of a value of the part, which a run of the part fetches or is fed; written: of an
 * operand that the step updates. */
bool wf_add_place(wf_emitter *e, location at, wf_dtype dtype, bool written, wf_text *t);
/* The value that an earlier part fetches and this one is fed. NULL: none does. */
const bound_view *wf_linked(const wf_emitter *e, const wf_tensor *t, const part **of);

/* The floats of a row of a cache; the first float of cache `index`, which after the last one is
 * that behind them. */
int64_t wf_slot_floats(const slot *s);
int64_t wf_slot_at(const part *p, int index);

/* emit_file.c */
bool wf_write_getters(wf_emitter *e);
bool wf_write_weights(wf_emitter *e);
char *wf_join_file(wf_emitter *e);

#endif
