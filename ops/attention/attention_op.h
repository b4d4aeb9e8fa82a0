/* ops/attention/attention_op.h - declarations that attention_op.c and attention_backward.c share:
 * operands in the form that the kernels read, and how heads are divided into tasks.
 *
 * Not for other files. */
#ifndef WEFT_OPS_ATTENTION_ATTENTION_OP_H
#define WEFT_OPS_ATTENTION_ATTENTION_OP_H

#include "ops/base/op_base.h"

/* The last three are operands of the backward op. */
enum { IN_Q, IN_K, IN_V, IN_MASK, IN_DY, IN_Y, IN_STATS };

typedef struct attention_attrs {
    double scale; /* 0: 1 / sqrt(d_k) */
    double dropout;
    uint64_t site;
    int64_t window;
    bool causal, additive;
} attention_attrs;

/* Shape rule: operands q, k, v and mask. */
bool wf_attention_fits(wf_call *c);
bool wf_attention_plan(wf_call *c, void *plan); /* scratch for the kernels */
/* [B, H, rows, width] with B, H and rows of `rows`, laid out as [B, rows, H, width]: heads merge
 * without a copy. */
void wf_attention_view(wf_view *v, wf_dtype type, const wf_view *rows, int64_t width);
/* [B, H, 2, T], laid out as [H, 2, B, T] */
void wf_attention_stats_view(wf_view *v, wf_dtype type, const wf_view *q);

/* A head with the fields that are equal for all heads. */
wf_attention_head wf_attention_head_of(const wf_call *c);

typedef struct attention_place {
    int64_t batch, head;
} attention_place;
/* Point h to q, k, v and mask of head number `head` = b * H + h. The caller sets the rest. */
attention_place wf_attention_at(const wf_call *c, wf_attention_head *h, int64_t head);
/* The head's part of an operand or result [B, H, rows, columns]. */
wf_matrix wf_attention_matrix(const wf_view *x, attention_place at);
/* How many pieces, of `queries` rows of a head each, make a task. */
int64_t wf_attention_pieces(const wf_call *c, int64_t queries);
/* How many heads of q share one of k and v; the place of the one that a head of q uses. */
int64_t wf_attention_group(const wf_call *c);
attention_place wf_attention_key_place(const wf_call *c, attention_place at);
double wf_attention_pairs(const wf_call *c);

wf_tensor *wf_attention_primitives(wf_tensor *q, wf_tensor *k, wf_tensor *v, wf_tensor *mask,
                                   const attention_attrs *a);

#endif
