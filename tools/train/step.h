/* tools/train/step.h - one update: its batches, and what is done with their gradients. */
#ifndef WEFT_TOOLS_TRAIN_STEP_H
#define WEFT_TOOLS_TRAIN_STEP_H

#include "session.h"

/* The sums of a batch, as the plan that ran has them. */
typedef struct batch_sums {
    float loss, nll, count, correct;
} batch_sums;

/* Part `part` of the step into s->batch; exits if there is no memory. */
void next_batch(session *s, int64_t step, int64_t part);
bool fetch_sums(const session *s, wf_plan *p, batch_sums *sums);
void add_to_interval(session *s, const batch_sums *sums);

/* False: nothing was updated, and s->failed is the plan that says why. */
bool run_step(session *s, int64_t step);

#endif
