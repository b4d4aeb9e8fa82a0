/* tools/train/diagnose.h - finds the tensor that is not finite after a failed step. */
#ifndef WEFT_TOOLS_TRAIN_DIAGNOSE_H
#define WEFT_TOOLS_TRAIN_DIAGNOSE_H

#include "session.h"

/* Look for a value that is not finite, on all ranks, after a step that failed. True: `name` is the
 * first tensor with one. False: there is none, and `why` is the error of the step. */
bool diagnose(session *s, int64_t step, char name[256], char why[256]);

#endif
