/* tools/data/batch.h - one padded mini-batch on the host: sequences side by side, padded on the right to
 * the longest.
 *
 * Not here: where the sequences come from (tasks.h, batches.h). */
#ifndef WEFT_TOOLS_DATA_BATCH_H
#define WEFT_TOOLS_DATA_BATCH_H

#include "models/model.h"

/* B rows; S the longest source; T the longest answer + 1: the start, or the
 * end, is in it. */
typedef struct batch {
    int64_t B, S, T;
    int32_t *src, *src_length; /* [B, S] padded on the right, [B] */
    int32_t *tgt, *labels;     /* [B, T]: start + answer; answer + end, -1 where nothing counts */
    int32_t *answer;           /* [B, T - 1]: the answers alone, to compare with */
    int32_t *answer_length;    /* [B] */
    int64_t rows, src_cells, tgt_cells; /* for how many there is room */
} batch;

/* Ids that begin, end and pad a row. */
typedef struct batch_ids {
    int32_t start, end, pad;
} batch_ids;

void batch_free(batch *b);
/* Sets B, S and T and makes room for them; the contents are lost. False: out of memory. */
bool batch_shape(batch *b, int64_t B, int64_t S, int64_t T);
/* Writes row i from n_src <= S source ids and n_answer < T ids of the answer. The ids may stand in
 * row i of src and of answer already. */
void batch_row(batch *b, int64_t i, batch_ids ids, int64_t n_src, const int32_t *src,
               int64_t n_answer, const int32_t *answer);
/* Binds the plan to the batch and feeds it; false: wf_plan_error. */
bool batch_feed(const batch *b, wf_plan *p, const wf_model *m);

#endif
