/* ops/rules.c - the rules of rules.inc as core reads them, and what several of them do. */
#include "internal.h"

enum { ALONE = false, SHARED = true };

const wf_rule wf_rules[] = {
#define RULE(op, operand, inner, readers, function)                                                \
    { &wf_op_##op, operand, &wf_op_##inner, readers, function },
#include "rules.inc"
#undef RULE
    { .op = NULL },
};

/* Sums among gradients alone: what a program adds is added in the order that it wrote. */
bool wf_begin_with(wf_rewrite *r, const wf_tensor *sum, const wf_tensor *share, int addend) {
    wf_tensor *in[WF_MAX_OPERANDS];
    if (!sum->forward || share->in[addend]) return false;
    for (int i = 0; i < share->n_in; i++) in[i] = share->in[i];
    in[addend] = sum->in[0];
    return wf_replace(r, share->op, share->n_in, in, share->attrs);
}
