/* ops/rewrite_rules.c - what core needs of the ops: four ops, the rewrite rules of rules.inc, and
 * the text of the plain C functions. Also a function that several rules share. */
#include "core/basis.h"
#include "ops/base/op_base.h"
#include "rules.h"

extern const char *const wf_plain_text[]; /* the text of emit/plain_*.c, made when weft is built */

static const wf_rule rules[] = {
#define RULE(op, operand, inner, function) { &wf_op_##op, operand, &wf_op_##inner, function },
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
    .plain = wf_plain_text,
};

/* Fuses only sums of gradients. Additions that a program records are not fused, and neither are
 * their copies in regions that gradients compute again, so both keep their order. */
bool wf_fuse_addend(wf_rewrite *r, const wf_tensor *sum, const wf_tensor *y, int addend) {
    wf_tensor *in[WF_MAX_OPERANDS];
    if (!sum->forward || sum->recomputed || y->in[addend]) return false;
    for (int i = 0; i < y->n_in; i++) in[i] = y->in[i];
    in[addend] = sum->in[0];
    return wf_replace(r, y->op, y->n_in, in, y->attrs);
}
