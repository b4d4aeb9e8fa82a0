/* tools/train/evaluate.h - how well a model does on sequences that it was not trained on.
 *
 * Loss and token accuracy come from the evaluation plan (the right target is fed); exact matches,
 * and for text BLEU and its like, from greedy decoding, where the model sees nothing but the
 * source.
 *
 * Ranks take turns with the batches. What is real is added up in the order of the batches on each
 * of them, so that all have what one process has, to the bit. */
#ifndef WEFT_TOOLS_TRAIN_EVALUATE_H
#define WEFT_TOOLS_TRAIN_EVALUATE_H

#include "core/transport.h"
#include "models/decode.h"
#include "tools/metrics/metrics.h"
#include "tools/sources/dataset.h"

/* Sequences that are shown, and what of each. */
enum { SAMPLES = 3 };
enum { SAMPLE_SOURCE, SAMPLE_REFERENCE, SAMPLE_OUTPUT, SAMPLE_TEXTS };

typedef struct evaluation_counts {
    int64_t sequences;     /* unseen ones */
    int64_t judged, exact; /* outputs for them: none if there are no sources */
    metric_counts text;    /* of text: what the metrics are made of */
} evaluation_counts;

typedef struct evaluation {
    evaluation_counts counts;
    double nll, tokens, correct;           /* sums over target tokens */
    double bytes;                          /* of the running text that they are of; else 0 */
    char *samples[SAMPLES * SAMPLE_TEXTS]; /* of the first sequences; NULL: there are fewer */
} evaluation;

/* What it takes to write the running text down: -log2 p of all of it, ends of documents too, by its
 * bytes. Each window is read from its own beginning. */
double bits_per_byte(const evaluation *v);

typedef struct evaluator {
    wf_plan *plan;
    wf_decoder *decoder;
    wf_model *model;
    dataset *dataset;
    wf_transport *transport; /* between the ranks that evaluate together; NULL: alone */
    batch batch;
} evaluator;

/* message[256] */
bool evaluator_new(evaluator *e, wf_model *m, wf_pool *pool, dataset *what, wf_transport *transport,
                   char *message);
void evaluator_free(evaluator *e);
/* What its plans and its decoding take for the largest batches; 0 with a message. */
double evaluator_memory(evaluator *e, char *message);
/* Of the dataset's stream, validation or test. All ranks call it. */
bool evaluate(evaluator *e, task_stream stream, evaluation *out, char *message);
/* What the model writes on its own, drawn at random; to be freed. NULL: message. */
char *write_sample(evaluator *e, int64_t tokens, uint64_t seed, char *message);
void evaluation_free(evaluation *v);

#endif
