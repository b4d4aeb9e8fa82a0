/* core/basis.h - the ops that core records and runs itself, and the rewrite rules of its plans.
 * Defined in ops/rewrite_rules.c; core names no other op. Not installed. */
#ifndef WEFT_CORE_BASIS_H
#define WEFT_CORE_BASIS_H

#include "core/op.h"
#include "core/plan/rewrite.h"

extern const struct wf_basis {
    const wf_op *copy;    /* (x): row-major copy of x, of any type and strides; one phase */
    const wf_op *add;     /* (a, b) of one shape */
    const wf_op *fill;    /* (like): fills the shape of like with its attribute, a double */
    const wf_op *sum_to;  /* (x, like): x summed over the axes along which like was broadcast */
    const wf_rule *rules; /* tried in this order; a row without an op ends the list */
    /* source lines of the plain C functions for emitted files (core/emit/); "" separates two
     * functions, NULL ends the list */
    const char *const *plain;
} wf_basis;

#endif
