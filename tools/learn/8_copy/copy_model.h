/* tools/learn/8_copy/copy_model.h - the copier behind exercise 8: a Transformer of weft; or, when
 * single functions are checked, one that records its arguments. */
#ifndef WEFT_TOOLS_LEARN_COPY_MODEL_H
#define WEFT_TOOLS_LEARN_COPY_MODEL_H

#include <stdbool.h>

#include "copy_task.h"
#include "tools/learn/lesson.h"

/* Make an untrained Transformer. False: message[256]. */
bool copy_model_new(struct copier **c, char *message);
void copy_model_free(struct copier *c);
/* The mean loss of the first 20 steps, and of the last 20. */
void copy_model_losses(const struct copier *c, double *first, double *last);
/* The last layer's cross-attention while the model copies `source`; shift makes the decoder's
 * input. [H, rows, columns], to be freed. */
float *copy_model_attention(struct copier *c, const int *source, int *heads, int *rows,
                            int *columns);

/* Train with the learner's functions, and draw the result: copy_trial.c. */
bool copy_trial(FILE *report);
bool copy_draw(picture *p);

/* The tasks that check `rate` and `adam` (copy_optimizer.c), and the constants of adam. */
extern const lesson_task copy_rate_task, copy_adam_task;
static const double beta1 = 0.9, beta2 = 0.98, eps = 1e-9;

/* Receives the calls of draw_sources, compute_gradient and next_logits while functions are
 * checked. */
struct copy_notes {
    void (*draw)(struct copier *c, int *sources);
    float (*gradient)(struct copier *c, const int *sources, const int *input, const int *labels);
    void (*next)(struct copier *c, const int *source, const int *tokens, int n, float *logits);
};
extern const struct copy_notes *copy_notes; /* NULL: the Transformer */

#endif
