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

/* Bits that the model needs for a byte of running text: -log2 p of all tokens, ends of documents
 * included, divided by the bytes. No window sees the one before it. */
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
/* Bytes that evaluation and decoding need for the largest batches; 0 with a message. */
double evaluator_memory(evaluator *e, char *message);
/* Evaluates the dataset's stream for validation or test. All ranks call it. */
bool evaluate(evaluator *e, task_stream stream, evaluation *out, char *message);
/* Text that the model generates without a source, sampled, to be freed. NULL: message. */
char *write_sample(evaluator *e, int64_t tokens, uint64_t seed, char *message);
void evaluation_free(evaluation *v);

#endif
