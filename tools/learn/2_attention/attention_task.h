/* tools/learn/2_attention/attention_task.h - the functions of exercise 2. README.md explains
 * them. */
#ifndef WEFT_TOOLS_LEARN_ATTENTION_TASK_H
#define WEFT_TOOLS_LEARN_ATTENTION_TASK_H

#include <stddef.h>

/* x and y [rows, columns]: each row of y is the softmax of the row of x. */
void softmax(const float *x, int rows, int columns, float *y);

/* mask [n, n]: 1 where query i (the row) may look at key j (the column), else 0. */
void causal_mask(int n, float *mask);

/* q [T, d], k [S, d], v [S, e], mask [T, S] or NULL: weights [T, S] and out [T, e]. */
void attention(const float *q, const float *k, const float *v, const float *mask, int T, int S,
               int d, int e, float *weights, float *out);

#endif
