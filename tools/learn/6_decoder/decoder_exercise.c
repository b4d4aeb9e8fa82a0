/* Exercise 6: the decoder.
 * The formulas: tools/learn/6_decoder/README.md
 *
 * You may call the functions of exercises 1 to 5. Fill the gaps, then run: tools/learn.sh 6 */
#include "decoder_task.h"

void decoder_layer(const struct decoder_weights *w, const float *y, int T, const float *memory,
                   const float *keep, int S, int D, int H, int F, float *cross_weights,
                   float *out) {
    float causal[T * T], padding[T * S], weights[H * T * T];
    float sum[T * D], a[T * D], b[T * D];
    /* 1. Two masks: no position looks at a later one, and no position looks at padding of the
     * memory. */

    /* 2. a = norm1(y + multi_head(y, y)), with the causal mask. */

    /* 3. b = norm2(a + multi_head(a, memory)), with the mask of padding. */

    /* 4. out = norm3(b + feed_forward(b)) */
}
