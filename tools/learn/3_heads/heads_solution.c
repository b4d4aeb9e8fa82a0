/* The solution of exercise 3. */
#include "heads_task.h"

void linear(const float *x, int rows, int in, const float *w, const float *b, int out, float *y) {
    for (int t = 0; t < rows; t++) {
        for (int o = 0; o < out; o++) {
            float sum = b[o];
            for (int i = 0; i < in; i++) sum += x[t * in + i] * w[o * in + i];
            y[t * out + o] = sum;
        }
    }
}

/* The columns of head h, x [n, D] -> part [n, d]: columns h * d to h * d + d - 1. */
static void take_head(const float *x, int n, int D, int h, int d, float *part) {
    for (int t = 0; t < n; t++)
        for (int c = 0; c < d; c++) part[t * d + c] = x[t * D + h * d + c];
}

/* Puts these columns back into x. */
static void put_head(const float *part, int n, int D, int h, int d, float *x) {
    for (int t = 0; t < n; t++)
        for (int c = 0; c < d; c++) x[t * D + h * d + c] = part[t * d + c];
}

void multi_head(const struct attention_weights *w, const float *x, int T, const float *kv, int S,
                const float *mask, int D, int H, float *weights, float *out) {
    int d = D / H;
    float q[T * D], k[S * D], v[S * D], joined[T * D];
    float q_part[T * d], k_part[S * d], v_part[S * d], out_part[T * d];
    linear(x, T, D, w->wq, w->bq, D, q);
    linear(kv, S, D, w->wk, w->bk, D, k);
    linear(kv, S, D, w->wv, w->bv, D, v);
    for (int h = 0; h < H; h++) {
        take_head(q, T, D, h, d, q_part);
        take_head(k, S, D, h, d, k_part);
        take_head(v, S, D, h, d, v_part);
        attention(q_part, k_part, v_part, mask, T, S, d, d, weights + h * T * S, out_part);
        put_head(out_part, T, D, h, d, joined);
    }
    linear(joined, T, D, w->wo, w->bo, D, out);
}
