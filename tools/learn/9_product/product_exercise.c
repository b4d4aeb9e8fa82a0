/* Exercise 9: make it fast.
 * From three loops to the peak:
 * tools/learn/9_product/README.md
 *
 * First make it right, then fast: tools/learn.sh 9 checks both. It is measured with 288 x 288
 * matrices, compiled with -O3 -march=native -ffast-math. */
#include "product_task.h"

void product(const float *a, const float *b, float *c, int m, int k, int n) {
    /* c[i][j] is the sum of a[i][p] * b[p][j] over all p. */
}
