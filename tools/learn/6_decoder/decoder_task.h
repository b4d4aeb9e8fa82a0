/* tools/learn/6_decoder/decoder_task.h - the function of exercise 6. README.md explains it. */
#ifndef WEFT_TOOLS_LEARN_DECODER_TASK_H
#define WEFT_TOOLS_LEARN_DECODER_TASK_H

#include "encoder_task.h"

struct decoder_weights {
    struct attention_weights self;
    struct norm_weights norm1; /* after the self-attention */
    struct attention_weights cross;
    struct norm_weights norm2; /* after the cross-attention */
    struct ff_weights ff;
    struct norm_weights norm3; /* after the feed-forward */
};

/* y [T, D]: the layer's input, a row for each output token so far; out [T, D]: its result. memory
 * [S, D]: the encoder's result; keep [S]: 1 if that row is a token, 0 if it is padding.
 * cross_weights [H, T, S]: where the decoder looks in memory. */
void decoder_layer(const struct decoder_weights *w, const float *y, int T, const float *memory,
                   const float *keep, int S, int D, int H, int F, float *cross_weights, float *out);

#endif
