/* nn/train/schedule.c - the learning rate as a function of the step. Numbers only: no graph. */
#include "nn/optimizer.h"

#include <math.h>

#include "ops/base/scalars.h"

/* The part of the decay that has passed: 0 at the end of the warm-up, 1 from step number `steps`
 * on. */
static double progress(const wf_schedule *s, int64_t step) {
    if (step >= s->steps) return 1;
    return ((double)step - (double)s->warmup) / ((double)s->steps - (double)s->warmup);
}

double wf_schedule_rate(const wf_schedule *s, int64_t step) {
    const double pi = 3.141592653589793;
    if (!s) return 0;
    if (step < 1) step = 1;
    if (step < s->warmup) return s->peak * (double)step / (double)s->warmup;
    switch (s->kind) {
    case WF_CONSTANT_RATE:
        break;
    case WF_LINEAR_DECAY:
        return s->peak + (s->floor - s->peak) * progress(s, step);
    case WF_COSINE:
        return s->floor + (s->peak - s->floor) * (1 + wf_cos_of(pi * progress(s, step))) / 2;
    case WF_INVERSE_SQRT:
    case WF_NOAM:
        return s->peak * sqrt((s->warmup > 1 ? (double)s->warmup : 1) / (double)step);
    }
    return s->peak;
}
