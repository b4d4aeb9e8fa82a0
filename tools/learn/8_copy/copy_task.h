/* tools/learn/8_copy/copy_task.h - the functions of exercise 8. README.md explains them. */
#ifndef WEFT_TOOLS_LEARN_COPY_TASK_H
#define WEFT_TOOLS_LEARN_COPY_TASK_H

/* ---- what is there --------------------------------------------------------------------------- */

enum { MARK = 0 }; /* the id that begins a decoder's input and ends an output */
enum { WARMUP = 100 };
#define PEAK 5e-3F

/* A model in training: its sizes, and its parameters as arrays. */
struct copier {
    int batch, length, V; /* sources are [batch, length], with ids 1 to V - 1 */
    int arrays;           /* number of arrays of parameters */
    int *size;            /* [arrays] */
    /* x[i] and grad[i] are arrays of size[i] numbers: parameters and their gradients */
    float **x, **grad;
    float **m, **v; /* arrays of the same sizes for adam, 0 at first */
};

/* Draw new random sources [batch, length]. */
void draw_sources(struct copier *c, int *sources);

/* Run the model on a batch. Returns its mean loss, and sets c->grad. input and labels are [batch,
 * length + 1]. */
float compute_gradient(struct copier *c, const int *sources, const int *input, const int *labels);

/* The logits [V] of the token after these n tokens, of which the first is MARK. source [length]. */
void next_logits(struct copier *c, const int *source, const int *tokens, int n, float *logits);

/* ---- what you write -------------------------------------------------------------------------- */

/* From a source [n], make the decoder's input [n + 1] and its labels [n + 1]. */
void shift(const int *source, int n, int *input, int *labels);

/* The learning rate of a step, counted from 1. */
float rate(int step, float peak, int warmup);

/* Move x [n] against its gradient grad, by one step of Adam. step counts from 1; beta1 is 0.9,
 * beta2 0.98, eps 1e-9. */
void adam(float *x, float *m, float *v, const float *grad, int n, float learning_rate, int step);

/* Train for so many steps, each with a new batch. */
void train(struct copier *c, int steps);

/* Write the likeliest token each time, until MARK or `most` tokens. out does not get MARK. Returns
 * how many. */
int greedy(struct copier *c, const int *source, int most, int *out);

#endif
