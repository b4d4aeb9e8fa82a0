/* ops/elementwise/dropout.h - functions that attention and random tensors share with dropout. Not
 * installed. */
#ifndef WEFT_OPS_ELEMENTWISE_DROPOUT_H
#define WEFT_OPS_ELEMENTWISE_DROPOUT_H

#include "core/op.h"

typedef struct wf_drop_params { /* arguments of the dropout kernel */
    double scale;
    uint32_t threshold;
    uint64_t key, stream;
} wf_drop_params;
wf_drop_params wf_drop_of(const wf_call *c, double rate, uint64_t site);
/* fails the call unless the rate is in [0, 1) */
bool wf_want_rate(wf_call *c, double rate);
/* A hash of the graph's scope and the name `site`. For site NULL, the scope's count of such calls
 * stands for the name, and is incremented. */
uint64_t wf_site(const wf_tensor *x, const char *site);
wf_tensor *wf_dropout_at(wf_tensor *x, double rate, uint64_t site);

#endif
