/* The solution of exercise 4. */
#include "block_task.h"

#include <math.h>

void layer_norm(const struct norm_weights *w, const float *x, int rows, int D, float *y) {
    for (int t = 0; t < rows; t++) {
        float mean = 0, variance = 0;
        for (int j = 0; j < D; j++) mean += x[t * D + j];
        mean /= D;
        for (int j = 0; j < D; j++) {
            float distance = x[t * D + j] - mean;
            variance += distance * distance;
        }
        variance /= D;
        for (int j = 0; j < D; j++) {
            float z = (x[t * D + j] - mean) / sqrtf(variance + EPS);
            y[t * D + j] = z * w->gamma[j] + w->beta[j];
        }
    }
}

void feed_forward(const struct ff_weights *w, const float *x, int rows, int D, int F, float *y) {
    float inner[rows * F];
    linear(x, rows, D, w->w1, w->b1, F, inner);
    for (int i = 0; i < rows * F; i++) inner[i] = inner[i] > 0 ? inner[i] : 0;
    linear(inner, rows, F, w->w2, w->b2, D, y);
}

void post_norm(const struct norm_weights *norm, const struct ff_weights *ff, const float *x,
               int rows, int D, int F, float *y) {
    float sum[rows * D];
    feed_forward(ff, x, rows, D, F, sum);
    for (int i = 0; i < rows * D; i++) sum[i] += x[i];
    layer_norm(norm, sum, rows, D, y);
}

void pre_norm(const struct norm_weights *norm, const struct ff_weights *ff, const float *x,
              int rows, int D, int F, float *y) {
    float normed[rows * D];
    layer_norm(norm, x, rows, D, normed);
    feed_forward(ff, normed, rows, D, F, y);
    for (int i = 0; i < rows * D; i++) y[i] += x[i];
}
