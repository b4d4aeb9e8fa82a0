/* core/emit/writer.h - inside core: an emitted file while it is written. Not installed.
 *
 * emit.c          which plans are written, and their order in memory
 * emit_steps.c    a step of a schedule as a call of a C function
 * emit_panels.c   weights that products read in panels
 * emit_places.c   where an operand or a result lies
 * emit_runs.c     results of several runs of a plan, which are kept
 * emit_kept.c     caches that keep the input of a product instead of keys and values
 * emit_rows.c     tables of which only the first rows are needed
 * emit_numbers.c  numbers that depend on the position
 * emit_modules.c  the functions of steps and of modules
 * emit_results.c  the functions that copy results
 * emit_names.c    names in the file: members, functions, words of C
 * emit_plain.c    the functions of plain C that the file needs
 * emit_weights.c  the values of the leaves
 * emit_file.c     the parts of the file around these functions
 * c_text.c        text that grows, constants and identifiers of C */
#ifndef WEFT_CORE_EMIT_WRITER_H
#define WEFT_CORE_EMIT_WRITER_H

#include "c_text.h"
#include "core/emit.h"
#include "core/plan/plan.h"
#include "emitter.h"

enum { MOST_NAME = 128, MOST_PREFIX = 64, MOST_PARTS = 40, MOST_POSITIONS = 4 };
/* A leaf begins at a multiple of LEAF_UNIT floats, or of INT8_UNIT bytes in int8. EMIT_PANEL is the
 * number of rows in a panel, the same as in ops/emit/plain_rows.c. */
enum { LEAF_UNIT = 16, INT8_UNIT = 64, EMIT_PANEL = 32 };
/* The smallest size that a run may choose. Size 1 is excluded, because ops write other loops for
 * axes of size 1. */
enum { LEAST_SIZE = 2 };
/* The number of bytes before the weights in a file of weights. */
enum { FILE_HEAD = 64 };

/* The way in which the steps read a leaf. If steps read it in several ways, the largest of these
 * values counts. */
typedef enum panel_use {
    NO_USE,     /* no step that reads the leaf has been seen yet */
    EITHER_WAY, /* all steps that read the leaf can read panels, but only look rows up */
    IN_PANELS,  /* all steps can read panels, and one computes with the leaf, as a product does */
    BY_ROWS     /* a step cannot read panels, or a plan fetches the leaf */
} panel_use;

static inline const char *wf_c_type(wf_dtype dtype) {
    return dtype == WF_I32 ? "int32_t" : "float";
}

/* A C function that one or several steps call. */
typedef struct form {
    size_t code; /* offset in `codes` of its parameters and body, which end with a 0 byte */
    char name[MOST_NAME];
} form;

/* The location in memory of a fetched value at the largest position or size. */
typedef struct resting {
    bound_view value;
    size_t offset; /* offset of the value's storage, in bytes */
    bool moves;    /* true if the location or the strides differ at another position or size */
} resting;

/* The offset and the size of a storage in the arena of its plan, both in bytes. */
typedef struct storage_room {
    size_t offset, bytes;
} storage_room;

/* The place of a leaf among the floats of the weights: its first float, or that of its scales. */
typedef struct leaf_place {
    int64_t at;
    bool shared; /* another leaf has these values */
} leaf_place;

/* A range of floats in memory that is already taken. */
typedef struct span {
    int64_t from, to;
} span;

/* A plan that is written, and the function that runs it. */
typedef struct part {
    wf_plan *plan;
    const char *name; /* name of the function, without the prefix */
    int64_t arena;    /* index of the first float of the plan's arena */
    int64_t state;    /* index of the first float of the plan's caches */
    /* the last position at which the plan may run, or the largest size of a run */
    int64_t last;
    bool sized; /* a run chooses the size of an extent */
    /* by storage: its offset and size when the largest size is bound; NULL unless sized */
    storage_room *rooms;
    /* by storage: the first float of the results of runs that are kept; -1: none are */
    int64_t *keeps;
    /* by the plan's index of a node; NULL if the function has no parameter position or size */
    resting *resting;
    wf_text run; /* the body of the function */
    bool draws;  /* some of its steps draw random bits */
} part;

/* An attention whose keys and values are computed in every run from the int8 input of a product. */
typedef struct kept_cache {
    const part *of;
    int step;         /* index of the product in the schedule */
    int keys, values; /* indices of the caches of keys and values */
    int64_t width;    /* width of the product's input */
} kept_cache;

/* An input that the program sets. */
typedef struct member {
    const wf_tensor *input;
    char name[MOST_NAME];
} member;

/* The name of a parameter of an emitted function. */
typedef char parameter_name[32];

struct wf_emitter {
    const char *prefix;
    /* the number of positions that the caches shall have room for; 0: all that extent P allows */
    int64_t positions;
    /* the most attentions that compute keys and values again in every run */
    int64_t recomputed;
    const char *sized_by; /* the extent whose size a run chooses, or NULL */
    int64_t kept_runs;    /* number of runs whose results are kept; at least 1 */
    part parts[MOST_PARTS];
    int n_parts;
    part *now; /* the part that is written */
    /* of the step that is written */
    int step; /* index of the step in the schedule */
    parameter_name operand[WF_MAX_OPERANDS], result[WF_MAX_RESULTS];
    wf_text body;
    bool uses_scratch, uses_stream, may_fail;
    int table, ids; /* rows of operand `table` are picked by operand `ids`; -1: none */
    /* of the whole file */
    wf_text codes, functions, modules, weights, int8_text, tables, names, getters, members;
    wf_text taken; /* the names at file scope that are taken, one a line */
    member *inputs;
    int n_inputs;
    form *forms;
    size_t n_forms, cap_forms;
    int64_t scratch;       /* most floats that a step asked for */
    panel_use *panel_uses; /* by node id: how the steps read the leaf */
    bool *is_placed;       /* by node id: the leaf has a place in the weights */
    /* the ids of the leaves that have a place in the weights, in the order of these places */
    int *leaves;
    /* by node id: the number of the leaf's rows, from the first on, that steps read */
    int64_t *rows;
    leaf_place *places; /* in the order of `leaves` */
    int n_leaves;
    int64_t n_weights, n_int8; /* number of floats; of weights in int8 */
    float *values;             /* [n_weights] the floats of all leaves */
    signed char *int8;
    /* the number of floats up to the end of the last leaf that is not all zeros */
    int64_t n_first;
    /* receives the leaves' values as bytes; NULL: the C file has them as arrays */
    wf_emit_weights *file;
    int64_t file_bytes;
    uint64_t checksum; /* checksum of the file's bytes */
    int64_t memory;    /* floats of all arenas and states */
    bool updates;
    bool alone;    /* the plans run one at a time, in the same memory */
    bool in_order; /* later plans may use the temporary memory of earlier ones */
    kept_cache *kept;
    int n_kept;
    size_t cap_kept;
    span *spans;
    int n_spans;
    size_t cap_spans;
    /* the module whose calls are collected */
    char module[MOST_NAME];
    wf_text calls;
    int n_calls, n_modules;
    /* a collected call may fail; one depends on the position or size */
    bool module_fails, module_moves;
    char message[ERROR_SIZE];
    bool lacks; /* the message says that memory is lacking */
};

/* The name of the int parameter of a plan's emitted functions: "position", "size", or "" for
 * none. */
static inline const char *wf_variable(const part *q) {
    if (q->plan->with_state) return "position";
    return q->sized ? "size" : "";
}

/* All three return false. The message of the first failure stays. */
bool wf_emitter_fail(wf_emitter *e, const char *format, ...) WF_PRINTF(2, 3);
bool wf_emitter_fail_plan(wf_emitter *e); /* with the error of the part's plan */
bool wf_emitter_lacks(wf_emitter *e);     /* with "out of memory"; sets e->lacks */

#endif
