/* core/basis.h - the ops that core records and runs itself, and the rewrite rules of its plans.
 * Defined in ops/rewrite_rules.c; core refers to no other op by name. Not installed. */
#ifndef WEFT_CORE_BASIS_H
#define WEFT_CORE_BASIS_H

#include "core/op.h"
#include "core/plan/rewrite.h"

extern const struct wf_basis {
    /* (x): row-major copy of x, whose type and strides may be any; its kernel has one phase */
    const wf_op *copy;
    const wf_op *add; /* (a, b) of one shape */
    /* (like): a tensor of like's shape, filled with the op's attribute, a double */
    const wf_op *fill;
    const wf_op *sum_to; /* (x, like): x summed over the axes along which like was broadcast */
    /* the rewrite rules in the order in which a plan tries them; a row without an op ends the
     * list */
    const wf_rule *rules;
    /* source lines of the plain C functions for emitted files (core/emit/); "" separates two
     * functions, NULL ends the list */
    const char *const *plain;
} wf_basis;

#endif
