/* Exercise 4: feed-forward, residual and norm.
 * The formulas: tools/learn/4_block/README.md
 *
 * You may call linear() of exercise 3. Fill the gaps, then run: tools/learn.sh 4 */
#include "block_task.h"

#include <math.h>

void layer_norm(const struct norm_weights *w, const float *x, int rows, int D, float *y) {
    for (int t = 0; t < rows; t++) {
        float mean = 0, variance = 0;
        /* 1. The mean of row t, and the variance: the mean of the squared differences from the
         * mean. */

        /* 2. From each number subtract the mean, divide by sqrt(variance + EPS), multiply by
         * gamma[j], add beta[j]. */
    }
}

void feed_forward(const struct ff_weights *w, const float *x, int rows, int D, int F, float *y) {
    float inner[rows * F];
    /* linear from D to F, relu (negative numbers become 0), linear from F to D. */
}

void post_norm(const struct norm_weights *norm, const struct ff_weights *ff, const float *x,
               int rows, int D, int F, float *y) {
    float sum[rows * D];
    /* y = norm(x + feed_forward(x)) */
}

void pre_norm(const struct norm_weights *norm, const struct ff_weights *ff, const float *x,
              int rows, int D, int F, float *y) {
    float normed[rows * D];
    /* y = x + feed_forward(norm(x)) */
}
