/* tools/train/diagnose.h - finds which number of a failed step is not finite. */
#ifndef WEFT_TOOLS_TRAIN_DIAGNOSE_H
#define WEFT_TOOLS_TRAIN_DIAGNOSE_H

#include "models/model.h"
#include "tools/data/batch.h"

/* Repeat the step of this optimizer without its update, and name the first number that is not
 * finite: a parameter, the loss, or a gradient. False: everything is finite, and the step failed
 * for another reason. */
bool find_non_finite(wf_model *m, const wf_optimizer *o, const batch *b, uint64_t step,
                     char name[256]);

#endif
