/* tools/evaluate.h - how well a model does on sequences that it was not trained on.
 *
 * Loss and token accuracy come from the evaluation plan (the right target is fed); the exact match
 * from greedy decoding, where the model sees nothing but the source. */
#ifndef WEFT_TOOLS_EVALUATE_H
#define WEFT_TOOLS_EVALUATE_H

#include "../models/transformer.h"
#include "tasks.h"

enum { SAMPLES = 3 };

typedef struct evaluation {
    int64_t sequences, exact;
    double nll, tokens, correct; /* sums over target tokens */
    char *samples[SAMPLES];      /* "source | reference | output" of the first; NULL: no memory */
} evaluation;

typedef struct evaluator {
    wf_plan *plan;
    wf_decoder *decoder;
    wf_transformer *model;
    batch batch;
    int32_t *out, *out_length; /* [rows, max_len + 1], [rows] */
} evaluator;

/* message[256] */
bool evaluator_new(evaluator *e, wf_transformer *m, wf_pool *pool, int64_t max_len, char *message);
void evaluator_free(evaluator *e);
bool evaluate(evaluator *e, const task *t, task_stream stream, int64_t n, evaluation *out,
              char *message);
void evaluation_free(evaluation *v);

#endif
