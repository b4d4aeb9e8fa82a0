/* ops/elementwise/dropout.h - functions that attention shares with dropout. Not installed. */
#ifndef WEFT_OPS_ELEMENTWISE_DROPOUT_H
#define WEFT_OPS_ELEMENTWISE_DROPOUT_H

#include "core/op.h"

typedef struct wf_drop_params { /* arguments of the kernel */
    double scale;
    uint32_t threshold;
    uint64_t key, stream;
} wf_drop_params;
wf_drop_params wf_drop_of(const wf_call *c, double rate, uint64_t site);
/* fails the call unless the rate is in [0, 1) */
bool wf_want_rate(wf_call *c, double rate);
/* a hash of the scope and the site */
uint64_t wf_site(const wf_tensor *x, const char *site);
wf_tensor *wf_dropout_at(wf_tensor *x, double rate, uint64_t site);

#endif
