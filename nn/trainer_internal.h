/* nn/trainer_internal.h - inside the library: a trainer's files in the form of a model's. Not
 * installed. */
#ifndef WEFT_NN_TRAINER_INTERNAL_H
#define WEFT_NN_TRAINER_INTERNAL_H

#include "nn/trainer.h"

/* Collective. Write a file of only these leaves and metadata, with moments and averages, as formats
 * of models need. A rank without memory for its list must still call it, with leaves NULL and n 1.
 * If that is rank 0 no file is written, and the other ranks do not wait. */
bool wf_trainer_write(wf_trainer *t, const char *path, wf_tensor *const *leaves, int n,
                      const wf_meta *meta, int n_meta);

#endif
