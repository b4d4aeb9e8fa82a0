/* tools/score.h - how likely a model finds given targets: `generate --score`.
 *
 * Pairs are added until the batch is full, then run at once. A pair's figures depend neither on the
 * pairs beside it nor on the padding between them. */
#ifndef WEFT_TOOLS_SCORE_H
#define WEFT_TOOLS_SCORE_H

#include "../models/transformer.h"

typedef struct scorer {
    const wf_transformer *model;
    wf_plan *plan;
    int64_t batch_size, most;  /* pairs in a batch; tokens in a sentence, start or end in it */
    int64_t n, S, T;           /* pairs added; the longest source; the longest target + 1 */
    int32_t *src, *src_length; /* [batch_size, most], [batch_size] */
    int32_t *tgt, *tgt_length; /* the same, the end not among them */
    int32_t *fed_src, *input, *labels; /* as fed: [n,S], [n,T], [n,T] */
    float *log_probs;                  /* [n,T], natural logarithms, after a run */
} scorer;

/* message[256] */
bool scorer_new(scorer *s, wf_transformer *m, wf_pool *pool, int64_t batch_size, char *message);
void scorer_free(scorer *s);
/* Room for the next pair's source and target, `most` and `most - 1` tokens; then add it. */
int32_t *scorer_src(const scorer *s);
int32_t *scorer_tgt(const scorer *s);
void scorer_add(scorer *s, int64_t src_length, int64_t tgt_length);
/* Score what was added. False: wf_plan_error(s->plan). The next pair after it begins a batch. */
bool scorer_run(scorer *s);
/* Pair i of the last run: log p of every target token and of the end, *n of them. */
const float *scorer_at(const scorer *s, int64_t i, int64_t *n);

#endif
