/* tools/learn/7_model/model_task.h - the functions of exercise 7. README.md explains them. */
#ifndef WEFT_TOOLS_LEARN_MODEL_TASK_H
#define WEFT_TOOLS_LEARN_MODEL_TASK_H

#include "decoder_task.h"
#include "embedding_task.h"

struct transformer_weights {
    /* sizes of the model; layers: number in the encoder, and also in the decoder */
    int V, D, H, F, layers;
    const float *source_table, *target_table; /* [V, D] */
    const struct encoder_weights *encoder;    /* [layers] */
    const struct decoder_weights *decoder;    /* [layers] */
    /* [V, D], [V]: turn the last layer's output into logits */
    const float *wo, *bo;
};

/* source [S] with its keep [S], target [T] -> logits [T, V] for the token after each one of the
 * target. */
void transformer(const struct transformer_weights *w, const int *source, const float *keep, int S,
                 const int *target, int T, float *logits);

/* logits [n, V], labels [n]: the mean of -log p(label) over the rows whose label is not `pad`. */
float cross_entropy(const float *logits, const int *labels, int n, int V, int pad);

#endif
