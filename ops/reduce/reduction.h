/* ops/reduce/reduction.h - how a sum, a maximum or a minimum over axes is computed: the plan that
 * reduce.c runs and reduce_emit.c writes as C. Not for other folders.
 *
 * "Across": the last axis is reduced, and each result is folded over its own elements. "Down": it
 * is not reduced, and whole rows are folded into a row of results. */
#ifndef WEFT_OPS_REDUCE_REDUCTION_H
#define WEFT_OPS_REDUCE_REDUCTION_H

#include "ops/base/walk.h"
#include "ops/emit/loops.h"

enum {
    BLOCK = 16384,         /* elements of one partial sum */
    FOLDED = 2 * WF_GRAIN, /* elements that a task of "down" reads (reduce.c) */
    PACK = 4096,           /* elements gathered at a time: the block of the sum kernel */
    STRIPE = 64,           /* fewest columns of a task of "down" */
    MOST_STRIPES = 16,
    ROWS = 128 /* rows of a partial sum: keeps f32 sums accurate */
};

typedef enum fold_kind { FOLD_SUM, FOLD_MAX, FOLD_MIN } fold_kind;

typedef struct reduction {
    /* walks through the result, and through x along the axes that it shares with the result */
    wf_walk kept;
    wf_walk reduced; /* walks through x along the reduced axes */
    wf_dtype type;
    bool across;
    int64_t results, length; /* number of results; number of elements that each is made of */
    int64_t pieces, group;   /* across: partial sums in a result, results in a task */
    int64_t stripe, stripes; /* down: columns of a task, stripes in a row; group: rows of a task */
} reduction;

bool wf_emit_reduction(wf_emitter *e, const wf_call *c, fold_kind kind);

#endif
