/* The solution of exercise 2. */
#include "attention_task.h"

#include <math.h>

void softmax(const float *x, int rows, int columns, float *y) {
    for (int i = 0; i < rows; i++) {
        float most = -INFINITY, sum = 0;
        for (int j = 0; j < columns; j++) most = fmaxf(most, x[i * columns + j]);
        for (int j = 0; j < columns; j++) {
            y[i * columns + j] = expf(x[i * columns + j] - most);
            sum += y[i * columns + j];
        }
        for (int j = 0; j < columns; j++) y[i * columns + j] /= sum;
    }
}

void causal_mask(int n, float *mask) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) mask[i * n + j] = j <= i;
}

void attention(const float *q, const float *k, const float *v, const float *mask, int T, int S,
               int d, int e, float *weights, float *out) {
    float scores[T * S];
    for (int i = 0; i < T; i++) {
        for (int j = 0; j < S; j++) {
            float sum = 0;
            for (int c = 0; c < d; c++) sum += q[i * d + c] * k[j * d + c];
            scores[i * S + j] = sum / sqrtf((float)d);
            if (mask && mask[i * S + j] == 0) scores[i * S + j] = -INFINITY;
        }
    }
    softmax(scores, T, S, weights);
    for (int i = 0; i < T; i++)
        for (int j = 0; j < S; j++)
            if (isnan(weights[i * S + j])) weights[i * S + j] = 0;
    for (int i = 0; i < T; i++) {
        for (int c = 0; c < e; c++) {
            float sum = 0;
            for (int j = 0; j < S; j++) sum += weights[i * S + j] * v[j * e + c];
            out[i * e + c] = sum;
        }
    }
}
