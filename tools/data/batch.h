/* tools/data/batch.h - one padded mini-batch on the host: sequences as rows, padded on the right to
 * the length of the longest.
 *
 * tasks.h, batches.h and stream.h fill batches. */
#ifndef WEFT_TOOLS_DATA_BATCH_H
#define WEFT_TOOLS_DATA_BATCH_H

#include "models/model.h"

/* An answer is a target without its start and end. B is the number of rows, S the length of the
 * longest source, and T that of the longest answer + 1, because the start or the end is added. */
typedef struct batch {
    int64_t B, S, T;
    int32_t *src, *src_length; /* sources [B, S], padded on the right; their lengths [B] */
    /* [B, T]: start + answer; answer + end, and -1 in the padding, which the loss ignores */
    int32_t *tgt, *labels;
    int32_t *answer;        /* [B, T - 1]: the answers alone, for comparisons */
    int32_t *answer_length; /* [B] */
    /* [B, T, S]: 1 if a target token is linked to a source token, else 0; used only if `aligned` */
    int32_t *alignment;
    bool aligned;
    /* allocated rows, cells of sources, of targets and of links */
    int64_t rows, src_cells, tgt_cells, links;
} batch;

/* The ids that begin, end and pad a row. */
typedef struct batch_ids {
    int32_t start, end, pad;
} batch_ids;

void batch_free(batch *b);
/* Set B, S and T, and make room for them. The contents are lost. False: out of memory. */
bool batch_shape(batch *b, int64_t B, int64_t S, int64_t T);
/* Make room for links, all 0, until the next batch_shape. False: out of memory. */
bool batch_align(batch *b);
/* Write row i from n_src <= S source ids and n_answer < T answer ids. These may already be in row i
 * of src and of answer. */
void batch_row(batch *b, int64_t i, batch_ids ids, int64_t n_src, const int32_t *src,
               int64_t n_answer, const int32_t *answer);
/* Bind the plan to the batch and feed it. False: see wf_plan_error. */
bool batch_feed(const batch *b, wf_plan *p, const wf_model *m);

#endif
