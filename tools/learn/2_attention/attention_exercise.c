/* Exercise 2: attention.
 * The formulas: tools/learn/2_attention/README.md
 *
 * A matrix is an array of its rows: element (i, j) of x [rows, columns] is x[i * columns + j].
 * Fill the gaps, then run: tools/learn.sh 2 */
#include "attention_task.h"

#include <math.h>

void softmax(const float *x, int rows, int columns, float *y) {
    /* For each row: the exponentials of its numbers, divided by their sum. Subtract the row's
     * largest number before exp: the result is the same, and exp of a large number is infinite. */
}

void causal_mask(int n, float *mask) {
    /* Position i may look at itself and at earlier positions. */
}

void attention(const float *q, const float *k, const float *v, const float *mask, int T, int S,
               int d, int e, float *weights, float *out) {
    float scores[T * S];
    /* 1. scores[i][j]: the product of row i of q and row j of k, divided by sqrt(d). */

    /* 2. Where there is a mask and it is 0: a score of -INFINITY. */

    /* 3. weights: the softmax of the scores. A row that may look nowhere has weights of 0. */

    /* 4. out[i]: the sum of all rows j of v, each times weights[i][j]. */
}
