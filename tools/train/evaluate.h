/* tools/train/evaluate.h - evaluates a model on sequences that it was not trained on.
 *
 * Loss and token accuracy come from the evaluation plan, which is fed the reference targets. Exact
 * matches, and for text BLEU and other metrics, come from greedy decoding, where the model sees
 * only the source.
 *
 * With R ranks, rank r evaluates batches r, r + R, r + 2 R, ... Every rank adds all real numbers in
 * the order of the batches, so that the bits are those of one process. */
#ifndef WEFT_TOOLS_TRAIN_EVALUATE_H
#define WEFT_TOOLS_TRAIN_EVALUATE_H

#include "core/transport.h"
#include "models/decode.h"
#include "tools/metrics/metrics.h"
#include "tools/sources/dataset.h"

/* Number of samples that are shown, and the texts of each. */
enum { SAMPLES = 3 };
enum { SAMPLE_SOURCE, SAMPLE_REFERENCE, SAMPLE_OUTPUT, SAMPLE_TEXTS };

typedef struct evaluation_counts {
    int64_t sequences; /* number of sequences that were evaluated */
    /* number of outputs that were compared, and that matched exactly; 0 without sources */
    int64_t judged, exact;
    metric_counts text; /* for text: counts from which metrics are computed */
} evaluation_counts;

typedef struct evaluation {
    evaluation_counts counts;
    /* sums over target tokens; with --task mask over hidden tokens, with classify over lines, and
     * with pairs over the lines of both sides */
    double nll, tokens, correct;
    /* for --task pairs: the value of nll if each vector is equally near to all candidates in its
     * batch; else 0 */
    double chance;
    /* size in bytes of the running text that was evaluated; 0 for other data, and if hidden tokens
     * are predicted (--task mask and spans) */
    double bytes;
    /* texts of the first SAMPLES sequences; NULL if there are fewer */
    char *samples[SAMPLES * SAMPLE_TEXTS];
} evaluation;

/* Bits per byte of running text: -log2 p of all tokens, including ends of documents, divided by the
 * number of bytes. A window does not see the window before it. */
double bits_per_byte(const evaluation *v);

typedef struct evaluator {
    wf_plan *plan;
    wf_decoder *decoder; /* NULL: the model is an encoder, which has no outputs */
    wf_model *model;
    dataset *dataset;
    wf_transport *transport; /* connects the ranks that evaluate together; NULL: a single process */
    batch batch;
} evaluator;

/* message[256] */
bool evaluator_new(evaluator *e, wf_model *m, wf_pool *pool, dataset *what, wf_transport *transport,
                   char *message);
void evaluator_free(evaluator *e);
/* Write the bytes of memory that the largest batches need: most[0] for their losses, which is used
 * only during an evaluation, and most[1] for decoding. False with message[256]. */
bool evaluator_memory(evaluator *e, size_t most[2], char *message);
/* Evaluate the dataset's stream for validation or test. All ranks must call it. False with
 * message[256]. */
bool evaluate(evaluator *e, task_stream stream, evaluation *out, char *message);
/* A text that the model generates without a source, by sampling; the caller frees it. NULL: see
 * message. */
char *write_sample(evaluator *e, int64_t tokens, uint64_t seed, char *message);
void evaluation_free(evaluation *v);

#endif
