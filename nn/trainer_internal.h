/* nn/trainer_internal.h - inside the library: saves a training in the format of a model's file, and
 * gives access to a trainer's plans and tensors, to emit them as C. Not installed. */
#ifndef WEFT_NN_TRAINER_INTERNAL_H
#define WEFT_NN_TRAINER_INTERNAL_H

#include "nn/trainer.h"

/* Collective. Write a file of these leaves (parameters, buffers), the moments and averages, and
 * only this metadata: wf_model_save needs its own format. A rank without memory for its list must
 * still call it, with leaves NULL and n 1. If that is rank 0 no file is written, and the other
 * ranks do not wait. */
bool wf_trainer_write(wf_trainer *t, const char *path, wf_tensor *const *leaves, int n,
                      const wf_meta *meta, int n_meta);

/* The plans, tensors and numbers of a trainer of one process. */
typedef struct wf_trainer_parts {
    /* update: the plan that makes the update, if it has several micro-batches; average: the plan
     * that updates the averages. NULL: there is no such plan */
    wf_plan *update, *average;
    /* the plan of a micro-batch fetches loss and count; the plan that makes the update fetches
     * norm, unless it is NULL */
    const wf_tensor *loss, *count, *norm;
    /* inputs: rates of the plan that makes the update, average_rate of `average`, `at` [2] of the
     * plans of micro-batches; the last two may be NULL */
    const wf_tensor *rates, *average_rate, *at;
    const wf_optimizer_options *options;
    const wf_schedule *schedule;
    int64_t micro_batches, steps, averaged_since;
} wf_trainer_parts;
/* False: the trainer failed, or it has other ranks. */
bool wf_trainer_parts_of(const wf_trainer *t, wf_trainer_parts *parts);
/* Make another plan of a micro-batch, for other sizes. It does not fetch the options' `fetch`.
 * NULL: out of memory. */
wf_plan *wf_trainer_step_plan(wf_trainer *t);

#endif
