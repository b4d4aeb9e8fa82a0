/* tools/train/diagnose.h - finds which number of a failed step is not finite. */
#ifndef WEFT_TOOLS_TRAIN_DIAGNOSE_H
#define WEFT_TOOLS_TRAIN_DIAGNOSE_H

#include "models/model.h"
#include "tools/data/batch.h"

/* Find the first value that is not finite after a failed step, and write what it is to `name`.
 * First come the parameters; then the loss, the gradients and their norm, which are computed again
 * from batch b, without an update. b NULL: only the parameters. False: nothing was found, or the
 * computation failed. */
bool find_non_finite(wf_model *m, const wf_optimizer *o, const batch *b, uint64_t step,
                     char name[256]);

#endif
