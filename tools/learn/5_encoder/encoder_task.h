/* tools/learn/5_encoder/encoder_task.h - the functions of exercise 5. README.md explains them. */
#ifndef WEFT_TOOLS_LEARN_ENCODER_TASK_H
#define WEFT_TOOLS_LEARN_ENCODER_TASK_H

#include "block_task.h"

struct encoder_weights {
    struct attention_weights self;
    struct norm_weights norm1; /* after the attention */
    struct ff_weights ff;
    struct norm_weights norm2; /* after the feed-forward */
};

/* x and out [S, D]; keep [S]: 1 for a token, 0 for padding, which no query may look at. */
void encoder_layer(const struct encoder_weights *w, const float *x, const float *keep, int S, int D,
                   int H, int F, float *out);

/* Apply the layers w[0] to w[layers - 1], each to the result of the one before. */
void encoder(const struct encoder_weights *w, int layers, const float *x, const float *keep, int S,
             int D, int H, int F, float *out);

#endif
