/* tools/learn/4_block/block_task.h - the functions of exercise 4. README.md explains them. */
#ifndef WEFT_TOOLS_LEARN_BLOCK_TASK_H
#define WEFT_TOOLS_LEARN_BLOCK_TASK_H

#include "heads_task.h"

struct norm_weights {
    const float *gamma, *beta; /* [D] */
};

struct ff_weights {
    const float *w1, *b1; /* [F, D], [F] */
    const float *w2, *b2; /* [D, F], [D] */
};

#define EPS 1e-5F /* of every layer norm */

/* All x and y are [rows, D]. */
void layer_norm(const struct norm_weights *w, const float *x, int rows, int D, float *y);

void feed_forward(const struct ff_weights *w, const float *x, int rows, int D, int F, float *y);

/* y = norm(x + feed_forward(x)), as in the paper. */
void post_norm(const struct norm_weights *norm, const struct ff_weights *ff, const float *x,
               int rows, int D, int F, float *y);

/* y = x + feed_forward(norm(x)), as in most models since. */
void pre_norm(const struct norm_weights *norm, const struct ff_weights *ff, const float *x,
              int rows, int D, int F, float *y);

#endif
