/* ops/attention.h - what attention.c and attention_backward.c share: blocks of query rows.
 *
 * Not for other files. */
#ifndef WEFT_OPS_ATTENTION_H
#define WEFT_OPS_ATTENTION_H

#include "internal.h"

enum { IN_Q, IN_K, IN_V, IN_MASK, IN_DY };
enum { ATTENTION_BLOCK = 64 }; /* query rows of a task */
enum { ROW_ALIGN = 16 };       /* rows of scores start at multiples of so many elements */

typedef struct attention_attrs {
    double scale; /* 0: 1 / sqrt(d_k) */
    double dropout;
    uint64_t site;
    bool causal, additive;
} attention_attrs;

typedef struct attention_block {
    const wf_call *call;
    int64_t head, b, h;  /* head = b * H + h */
    int64_t from, to, n; /* query rows [from, to) see no key beyond the first n */
    int64_t row;         /* elements from one row of weights to the next */
    double scale;
    bool drops;
    wf_view weights; /* [to - from, n] in scratch memory: data and dtype alone */
} attention_block;

static inline int64_t attention_row(int64_t keys) {
    return (keys + ROW_ALIGN - 1) / ROW_ALIGN * ROW_ALIGN;
}

/* Shape rule: operands q, k, v and mask; scratch for so many blocks of scores and the matrix
 * product. */
bool attention_fits(wf_call *c, int score_blocks);
/* [B, H, rows, width] with B, H and rows of `rows`, laid out as [B, rows, H, width]: heads merge
 * without a copy. */
void attention_view(wf_view *v, wf_dtype type, const wf_view *rows, int64_t width);

attention_block attention_block_of(const wf_call *c, int64_t head, int64_t block, void *scratch);
/* The block's head of an operand or result, from a row on: data, and the strides of rows [0] and
 * columns [1]. */
wf_view attention_head(const attention_block *w, const wf_view *x, int64_t row);
/* w->weights = softmax(scale q k^T); gemm: scratch memory of the product. */
void attention_weights(const attention_block *w, void *gemm);
/* y = dropout(x), both laid out as the weights. */
void attention_dropout(const attention_block *w, const wf_view *x, const wf_view *y);
double attention_pairs(const wf_call *c);

wf_tensor *attention_primitives(wf_tensor *q, wf_tensor *k, wf_tensor *v, wf_tensor *mask,
                                const attention_attrs *a);

#endif
