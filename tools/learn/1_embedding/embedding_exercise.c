/* Exercise 1: embeddings and positions.
 * The formulas: tools/learn/1_embedding/README.md
 *
 * A matrix is an array of its rows: element (i, j) of x [rows, columns] is x[i * columns + j].
 * Fill the gaps, then run: tools/learn.sh 1 */
#include "embedding_task.h"

#include <math.h>

void embed(const float *table, const int *ids, int T, int D, float *out) {
    /* Row t of out: row ids[t] of the table, times sqrt(D). */
}

void positions(int T, int D, float *out) {
    /* Even columns 2i have a sine, odd columns 2i + 1 the cosine of the same angle. */
}

void input(const float *table, const int *ids, int T, int D, float *out) {
    /* Both functions above, added. */
}
