/* tools/train/diagnose.h - finds the tensor that is not finite after a failed step. */
#ifndef WEFT_TOOLS_TRAIN_DIAGNOSE_H
#define WEFT_TOOLS_TRAIN_DIAGNOSE_H

#include "models/model.h"
#include "tools/data/batch.h"

/* Find the first tensor with a NaN or an infinity after a failed step, and write what it is to
 * `name`. Parameters are searched first; then the loss, the gradients and their norm, which are
 * computed again from batch b, without an update. b NULL: only the parameters. False: all are
 * finite, or the computation failed. */
bool find_non_finite(wf_model *m, const wf_optimizer *o, const batch *b, uint64_t step,
                     char name[256]);

#endif
