/* ops/rules.c - what core needs of the ops: four of them, and the rules of rules.inc; and what several
 * rules do. */
#include "rules.h"
#include "core/basis.h"
#include "ops/base/op.h"

enum { ALONE = false, SHARED = true };

static const wf_rule rules[] = {
#define RULE(op, operand, inner, readers, function)                                                \
    { &wf_op_##op, operand, &wf_op_##inner, readers, function },
#include "rules.inc"
#undef RULE
    { .op = NULL },
};

const struct wf_basis wf_basis = {
    .copy = &wf_op_copy,
    .add = &wf_op_add,
    .fill = &wf_op_fill,
    .sum_to = &wf_op_sum_to,
    .rules = rules,
};

/* Sums among gradients alone: what a program adds is added in the order that it wrote. */
bool wf_begin_with(wf_rewrite *r, const wf_tensor *sum, const wf_tensor *share, int addend) {
    wf_tensor *in[WF_MAX_OPERANDS];
    if (!sum->forward || share->in[addend]) return false;
    for (int i = 0; i < share->n_in; i++) in[i] = share->in[i];
    in[addend] = sum->in[0];
    return wf_replace(r, share->op, share->n_in, in, share->attrs);
}
