/* Exercise 3: multi-head attention.
 * The formulas: tools/learn/3_heads/README.md
 *
 * You may call attention() of exercise 2. Fill the gaps, then run: tools/learn.sh 3 */
#include "heads_task.h"

void linear(const float *x, int rows, int in, const float *w, const float *b, int out, float *y) {
    /* Output o of row t: the product of row t of x and row o of w, plus the bias b[o]. */
}

static void take_head(const float *x, int n, int D, int h, int d, float *part) {
    /* The columns of head h, x [n, D] -> part [n, d]: columns h * d to h * d + d - 1. */
}

static void put_head(const float *part, int n, int D, int h, int d, float *x) {
    /* Put them back: part [n, d] -> columns h * d to h * d + d - 1 of x [n, D]. */
}

void multi_head(const struct attention_weights *w, const float *x, int T, const float *kv, int S,
                const float *mask, int D, int H, float *weights, float *out) {
    int d = D / H;
    float q[T * D], k[S * D], v[S * D], joined[T * D];
    float q_part[T * d], k_part[S * d], v_part[S * d], out_part[T * d];
    /* 1. Compute q, k and v with linear, and with their weights and biases. */

    /* 2. For each head: take its columns of q, k and v, call attention, whose weights begin at
     * weights + h * T * S, and put its result into the head's columns of joined. */

    /* 3. Compute out with linear from joined, wo and bo. */
}
