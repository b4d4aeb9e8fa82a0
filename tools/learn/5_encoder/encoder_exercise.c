/* Exercise 5: the encoder.
 * The formulas: tools/learn/5_encoder/README.md
 *
 * You may call the functions of exercises 1 to 4. Fill the gaps, then run: tools/learn.sh 5 */
#include "encoder_task.h"

void encoder_layer(const struct encoder_weights *w, const float *x, const float *keep, int S, int D,
                   int H, int F, float *out) {
    float mask[S * S], weights[H * S * S], sum[S * D], normed[S * D];
    /* 1. mask[i][j]: may query i look at key j? Only if j is not padding. */

    /* 2. normed = norm1(x + multi_head(x, x)) */

    /* 3. out = norm2(normed + feed_forward(normed)), which is post_norm of exercise 4. */
}

void encoder(const struct encoder_weights *w, int layers, const float *x, const float *keep, int S,
             int D, int H, int F, float *out) {
    /* Layer 0 reads x, layer 1 reads the result of layer 0, and so on. A layer must not write to
     * the array that it reads. */
}
