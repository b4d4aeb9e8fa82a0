/* The solution of exercise 8. */
#include "copy_task.h"

#include <math.h>

void shift(const int *source, int n, int *input, int *labels) {
    input[0] = MARK;
    for (int i = 0; i < n; i++) {
        input[i + 1] = source[i];
        labels[i] = source[i];
    }
    labels[n] = MARK;
}

float rate(int step, float peak, int warmup) {
    float rising = (float)step / (float)warmup, falling = sqrtf((float)warmup / (float)step);
    return peak * fminf(rising, falling);
}

void adam(float *x, float *m, float *v, const float *grad, int n, float learning_rate, int step) {
    const float beta1 = 0.9F, beta2 = 0.98F, eps = 1e-9F;
    for (int i = 0; i < n; i++) {
        m[i] = beta1 * m[i] + (1 - beta1) * grad[i];
        v[i] = beta2 * v[i] + (1 - beta2) * grad[i] * grad[i];
        double mean = m[i] / (1 - pow(0.9, step));
        double square = v[i] / (1 - pow(0.98, step));
        x[i] -= (float)(learning_rate * mean / (sqrt(square) + eps));
    }
}

void train(struct copier *c, int steps) {
    int B = c->batch, n = c->length;
    int sources[B * n], input[B * (n + 1)], labels[B * (n + 1)];
    for (int step = 1; step <= steps; step++) {
        draw_sources(c, sources);
        for (int b = 0; b < B; b++)
            shift(sources + b * n, n, input + b * (n + 1), labels + b * (n + 1));
        compute_gradient(c, sources, input, labels);
        for (int i = 0; i < c->arrays; i++)
            adam(c->x[i], c->m[i], c->v[i], c->grad[i], c->size[i], rate(step, PEAK, WARMUP), step);
    }
}

int greedy(struct copier *c, const int *source, int most, int *out) {
    int tokens[most + 1];
    float logits[c->V];
    tokens[0] = MARK;
    for (int n = 0; n < most; n++) {
        int best = 0;
        next_logits(c, source, tokens, n + 1, logits);
        for (int v = 1; v < c->V; v++)
            if (logits[v] > logits[best]) best = v;
        if (best == MARK) return n;
        tokens[n + 1] = best;
        out[n] = best;
    }
    return most;
}
