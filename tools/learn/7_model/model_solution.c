/* The solution of exercise 7. */
#include "model_task.h"

#include <math.h>
#include <string.h>

void transformer(const struct transformer_weights *w, const int *source, const float *keep, int S,
                 const int *target, int T, float *logits) {
    int D = w->D, H = w->H, F = w->F;
    float embedded[S * D], memory[S * D], y[T * D], next[T * D], looks[H * T * S];
    input(w->source_table, source, S, D, embedded);
    encoder(w->encoder, w->layers, embedded, keep, S, D, H, F, memory);
    input(w->target_table, target, T, D, y);
    for (int l = 0; l < w->layers; l++) {
        decoder_layer(&w->decoder[l], y, T, memory, keep, S, D, H, F, looks, next);
        memcpy(y, next, sizeof y);
    }
    linear(y, T, D, w->wo, w->bo, w->V, logits);
}

float cross_entropy(const float *logits, const int *labels, int n, int V, int pad) {
    float total = 0;
    int counted = 0;
    for (int i = 0; i < n; i++) {
        float most = -INFINITY, sum = 0;
        if (labels[i] == pad) continue;
        for (int v = 0; v < V; v++) most = fmaxf(most, logits[i * V + v]);
        for (int v = 0; v < V; v++) sum += expf(logits[i * V + v] - most);
        total += logf(sum) + most - logits[i * V + labels[i]];
        counted++;
    }
    return counted > 0 ? total / (float)counted : 0;
}
