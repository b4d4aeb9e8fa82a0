/* models/decode/candidates.h - inside models: the likeliest tokens of a row of logits. */
#ifndef WEFT_MODELS_DECODE_CANDIDATES_H
#define WEFT_MODELS_DECODE_CANDIDATES_H

#include <stdint.h>

#include "core/graph.h"

typedef struct candidate {
    /* the token's logit less the row's normaliser: its log-probability */
    double log_prob;
    int32_t token;
} candidate;

/* A row of logits [vocab], f32 or f64. open [vocab]: a mask of the same type, 0 where a token is
 * not allowed. */
typedef struct logit_row {
    wf_dtype real;
    int64_t vocab;
    const void *logits, *open;
} logit_row;

/* Read and write value i of an array of the row's type. */
double wf_logit_at(const logit_row *r, const void *values, int64_t i);
void wf_logit_put(wf_dtype real, void *values, int64_t i, double value);
/* log(sum exp(logits)); not finite if a logit is NaN or +infinity */
double wf_logit_normaliser(const logit_row *r);
/* Writes the k likeliest allowed tokens, best first; of equal ones the lowest id is first. Returns
 * their number: k, or the number of allowed tokens if that is less. */
int wf_likeliest(const logit_row *r, double normaliser, int k, candidate *top);

#endif
