/* ops/attention/attention_op.h - declarations that attention_op.c, attention_backward.c and
 * attention_emit.c share: operands in the form that the kernels read, and how heads are divided
 * into tasks.
 *
 * Not for other files. */
#ifndef WEFT_OPS_ATTENTION_ATTENTION_OP_H
#define WEFT_OPS_ATTENTION_ATTENTION_OP_H

#include "core/emit/emitter.h"
#include "ops/base/op_base.h"

/* Indices of operands. The last three are operands of the backward op. */
enum { IN_Q, IN_K, IN_V, IN_MASK, IN_DY, IN_Y, IN_STATS };

typedef struct attention_attrs {
    double scale; /* 0: 1 / sqrt(d_k) */
    double dropout;
    uint64_t site;
    int64_t window;
    bool causal, additive;
} attention_attrs;

/* The shape rule for operands q, k, v and mask. */
bool wf_attention_fits(wf_call *c);
/* Sets how much scratch memory the kernels need. Always true. */
bool wf_attention_plan(wf_call *c, void *plan);
/* Set v to the shape [B, H, rows, width], with B, H and rows from `rows`, and the layout [B, rows,
 * H, width], in which heads can be merged without a copy. */
void wf_attention_view(wf_view *v, wf_dtype type, const wf_view *rows, int64_t width);
/* Set v to the shape of the stats, [B, H, 2, T], and the layout [H, 2, B, T]. */
void wf_attention_stats_view(wf_view *v, wf_dtype type, const wf_view *q);

/* A head with the fields set that are equal for all heads. */
wf_attention_head wf_attention_head_of(const wf_call *c);

typedef struct attention_place {
    int64_t batch, head;
} attention_place;
/* Sets in h the matrices q, k, v and mask of head number `head` = b * H + i, and the number of its
 * first weight in the dropout stream. Returns b and i. The caller sets the other matrices. */
attention_place wf_attention_at(const wf_call *c, wf_attention_head *h, int64_t head);
/* The head's part of an operand or result [B, H, rows, columns]. */
wf_matrix wf_attention_matrix(const wf_view *x, attention_place at);
/* How many pieces make a task, if a piece is `queries` rows of one head. */
int64_t wf_attention_pieces(const wf_call *c, int64_t queries);
/* How many heads of q share one head of k and v. */
int64_t wf_attention_group(const wf_call *c);
attention_place wf_attention_key_place(const wf_call *c, attention_place at);
double wf_attention_pairs(const wf_call *c);

wf_tensor *wf_attention_primitives(wf_tensor *q, wf_tensor *k, wf_tensor *v, wf_tensor *mask,
                                   const attention_attrs *a);

/* attention_emit.c */
bool wf_emit_attention(wf_emitter *e, const wf_call *c);
bool wf_emit_attention_backward(wf_emitter *e, const wf_call *c);

#endif
