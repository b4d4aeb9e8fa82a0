/* Exercise 7: the whole model.
 * The formulas: tools/learn/7_model/README.md
 *
 * You may call the functions of exercises 1 to 6. Fill the gaps, then run: tools/learn.sh 7 */
#include "model_task.h"

#include <math.h>
#include <string.h>

void transformer(const struct transformer_weights *w, const int *source, const float *keep, int S,
                 const int *target, int T, float *logits) {
    int D = w->D, H = w->H, F = w->F;
    float embedded[S * D], memory[S * D], y[T * D], next[T * D], looks[H * T * S];
    /* 1. memory: the encoder, on the source's input(). */

    /* 2. y: the target's input(), through all layers of the decoder. */

    /* 3. logits: linear of y, with wo and bo, from D to V. */
}

float cross_entropy(const float *logits, const int *labels, int n, int V, int pad) {
    /* -log p = log(the sum of exp(logits)) - the label's logit. Subtract the row's largest
     * logit before exp. */
    return NAN;
}
