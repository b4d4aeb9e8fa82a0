/* tools/train/validation.h - validation during a training and the test at its end: evaluate.h computes
 * the figures, here they are printed, logged and compared with the best so far. */
#ifndef WEFT_TOOLS_TRAIN_VALIDATION_H
#define WEFT_TOOLS_TRAIN_VALIDATION_H

#include "session.h"

/* Validates after this step. Keeps the weights if their loss is the lowest. */
void validate(session *s);
/* The last lines of a training: on held-out files, the last validation again; for made-up tasks, a
 * stream that neither training nor validation has seen. */
void test(session *s);

#endif
