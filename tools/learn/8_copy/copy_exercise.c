/* Exercise 8: the copy task.
 * The formulas: tools/learn/8_copy/README.md
 *
 * Fill the gaps, then run: tools/learn.sh 8. When all is right, your loop trains a Transformer. */
#include "copy_task.h"

#include <math.h>

void shift(const int *source, int n, int *input, int *labels) {
    /* The decoder reads MARK and the source. Its labels are the source and MARK. */
}

float rate(int step, float peak, int warmup) {
    /* The rate rises linearly to `peak` at step `warmup`, then falls as 1 / sqrt(step). */
    return NAN;
}

void adam(float *x, float *m, float *v, const float *grad, int n, float learning_rate, int step) {
    /* For each number: m and v move towards the gradient and its square. Both begin at 0, so
     * they are divided by 1 - beta^step. Then x moves by learning_rate * m / (sqrt(v) + eps). */
}

void train(struct copier *c, int steps) {
    int B = c->batch, n = c->length;
    int sources[B * n], input[B * (n + 1)], labels[B * (n + 1)];
    /* Each step: draw sources, shift() each of them to get the decoder's input and labels, compute
     * the gradient, and call adam() for each array of parameters. */
}

int greedy(struct copier *c, const int *source, int most, int *out) {
    int tokens[most + 1];
    float logits[c->V];
    /* tokens begins with MARK. In each step, take the logits of the next token; the largest one is
     * that token. */
    return -1;
}
