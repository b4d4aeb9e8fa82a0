/* models/decode/candidates.c - finds the likeliest tokens of a row of logits without sorting it.
 *
 * The loop over the row compares 32 logits at a time with the least one in the list of the best so
 * far. A greater one is rare, so the loop runs at the speed of comparisons. */
#include "candidates.h"
#include "ops/kernels/kernels.h"

#include <assert.h>

enum { BLOCK = 32 };

double wf_logit_at(const logit_row *r, const void *values, int64_t i) {
    return r->real == WF_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

void wf_logit_put(wf_dtype real, void *values, int64_t i, double value) {
    if (real == WF_F64)
        ((double *)values)[i] = value;
    else
        ((float *)values)[i] = (float)value;
}

double wf_logit_normaliser(const logit_row *r) {
    double top, log_total;
    if (r->real == WF_F64)
        wf_f64()->log_sum_exp_rows(1, r->vocab, r->logits, &top, &log_total);
    else
        wf_f32()->log_sum_exp_rows(1, r->vocab, r->logits, &top, &log_total);
    return top + log_total;
}

/* The index of the first x[i..n) above limit; n if there is none. */
#define NEXT_ABOVE(real)                                                                           \
    static int64_t next_above_##real(const real *x, int64_t i, int64_t n, real limit) {            \
        for (; i + BLOCK <= n; i += BLOCK) {                                                       \
            int above = 0;                                                                         \
            for (int j = 0; j < BLOCK; j++) above |= x[i + j] > limit;                             \
            if (above) break;                                                                      \
        }                                                                                          \
        while (i < n && !(x[i] > limit)) i++;                                                      \
        return i;                                                                                  \
    }
NEXT_ABOVE(float)
NEXT_ABOVE(double)

static int64_t next_above(const logit_row *r, int64_t i, double limit) {
    return r->real == WF_F64 ? next_above_double(r->logits, i, r->vocab, limit)
                             : next_above_float(r->logits, i, r->vocab, (float)limit);
}

/* Insert candidates after equal ones, so that the lower id stays first. A list that is not full
 * takes every candidate, because a logit may be -inf. log_prob holds the logit for now. */
int wf_likeliest(const logit_row *r, double normaliser, int k, candidate *top) {
    int n = 0;
    assert(k >= 1 && r->logits && r->open);
    for (int64_t i = 0; i < r->vocab; i++) {
        if (n == k && (i = next_above(r, i, top[n - 1].log_prob)) == r->vocab) break;
        if (wf_logit_at(r, r->open, i) == 0) continue;
        double logit = wf_logit_at(r, r->logits, i);
        int at = n < k ? n++ : n - 1;
        for (; at > 0 && logit > top[at - 1].log_prob; at--) top[at] = top[at - 1];
        top[at] = (candidate){ logit, (int32_t)i };
    }
    for (int i = 0; i < n; i++) top[i].log_prob -= normaliser;
    return n;
}
