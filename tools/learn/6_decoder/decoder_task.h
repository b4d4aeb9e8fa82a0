/* tools/learn/6_decoder/decoder_task.h - the function of exercise 6. README.md explains it. */
#ifndef WEFT_TOOLS_LEARN_DECODER_TASK_H
#define WEFT_TOOLS_LEARN_DECODER_TASK_H

#include "encoder_task.h"

struct decoder_weights {
    struct attention_weights self;
    struct norm_weights norm1; /* after it */
    struct attention_weights cross;
    struct norm_weights norm2; /* after it */
    struct ff_weights ff;
    struct norm_weights norm3; /* after it */
};

/* y and out [T, D]: the output so far. memory [S, D]: the encoder's result; keep [S] is 1 for its
 * rows that are tokens, and 0 for padding. cross_weights [H, T, S]: where the decoder looks in
 * memory. */
void decoder_layer(const struct decoder_weights *w, const float *y, int T, const float *memory,
                   const float *keep, int S, int D, int H, int F, float *cross_weights, float *out);

#endif
