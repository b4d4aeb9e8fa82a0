/* nn/trainer_internal.h - inside the library: saves a training in the format of a model's file, and
 * gives access to a trainer's plans and tensors, to emit them as C. Not installed. */
#ifndef WEFT_NN_TRAINER_INTERNAL_H
#define WEFT_NN_TRAINER_INTERNAL_H

#include "nn/trainer.h"

/* Collective. Write a file of only these leaves and metadata, with moments and averages, as formats
 * of models need. A rank without memory for its list must still call it, with leaves NULL and n 1.
 * If that is rank 0 no file is written, and the other ranks do not wait. */
bool wf_trainer_write(wf_trainer *t, const char *path, wf_tensor *const *leaves, int n,
                      const wf_meta *meta, int n_meta);

/* The plans, tensors and numbers of a trainer of one process. */
typedef struct wf_trainer_parts {
    /* update: the plan that makes the update, if it has several micro-batches; average: the plan
     * that updates the averages. NULL: there is no such plan */
    wf_plan *update, *average;
    /* a micro-batch's plan fetches loss and count; the update's plan fetches the norm, or NULL */
    const wf_tensor *loss, *count, *norm;
    /* fed: rates to the plan that makes the update; `at` [2] to those of micro-batches, or NULL */
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
