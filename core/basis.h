/* core/basis.h - what core needs of those who define ops: the four that it records and runs itself,
 * and the rules of its plans. ops/rules.c defines it; core knows no other op. Not installed. */
#ifndef WEFT_CORE_BASIS_H
#define WEFT_CORE_BASIS_H

#include "core/op.h"
#include "core/plan/rewrite.h"

extern const struct wf_basis {
    const wf_op *copy;    /* (x): row-major, of any type and strides; one phase */
    const wf_op *add;     /* (a, b) of one shape */
    const wf_op *fill;    /* (like): its attribute, a double, in like's shape */
    const wf_op *sum_to;  /* (x, like): x summed over what a broadcast of like repeated */
    const wf_rule *rules; /* tried in their order; the last has no op */
} wf_basis;

#endif
