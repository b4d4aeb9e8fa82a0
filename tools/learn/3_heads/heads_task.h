/* tools/learn/3_heads/heads_task.h - the functions of exercise 3. README.md explains them. */
#ifndef WEFT_TOOLS_LEARN_HEADS_TASK_H
#define WEFT_TOOLS_LEARN_HEADS_TASK_H

#include "attention_task.h"

/* Matrices [D, D], with a row for each output, and biases [D]. */
struct attention_weights {
    const float *wq, *bq, *wk, *bk, *wv, *bv; /* for queries, keys and values */
    const float *wo, *bo;                     /* of the output */
};

/* y [rows, out] = x [rows, in] w^T + b, with w [out, in] and b [out]. */
void linear(const float *x, int rows, int in, const float *w, const float *b, int out, float *y);

/* Queries come from x [T, D], keys and values from kv [S, D]; the mask [T, S], or NULL, is for all
 * H heads. weights [H, T, S], out [T, D]. H divides D. */
void multi_head(const struct attention_weights *w, const float *x, int T, const float *kv, int S,
                const float *mask, int D, int H, float *weights, float *out);

#endif
