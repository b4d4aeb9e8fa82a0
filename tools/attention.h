/* tools/attention.h - where a model looks: the attention weights of one source and its output. */
#ifndef WEFT_TOOLS_ATTENTION_H
#define WEFT_TOOLS_ATTENTION_H

#include <stdio.h>

#include "../models/transformer.h"

typedef struct attention {
    wf_transformer *model;
    wf_plan *plan;
} attention;

bool attention_new(attention *a, wf_transformer *m, wf_pool *pool, char *message);
void attention_free(attention *a);

/* Run the model on src [n] and tgt [t], which begins with the start token. False: message[256]. */
bool attention_run(attention *a, int64_t n, const int32_t *src, int64_t t, const int32_t *tgt,
                   char *message);

/* After a run: all weights of it as one JSON object on one line. tgt as above. */
bool attention_json(attention *a, int64_t n, const int32_t *src, int64_t t, const int32_t *tgt,
                    FILE *out);

/* After a run: the heads of the last decoder layer's cross-attention as an SVG. */
bool attention_svg(attention *a, int64_t n, const int32_t *src, int64_t t, const int32_t *tgt,
                   FILE *out);

#endif
