/* tools/train/validation.h - validation during a training and the test at its end. evaluate.h
 * computes the figures; here they are printed, logged and compared with the best so far. */
#ifndef WEFT_TOOLS_TRAIN_VALIDATION_H
#define WEFT_TOOLS_TRAIN_VALIDATION_H

#include "session.h"

/* Validate after this step. Saves the weights as best ones if their loss is the lowest so far. */
void validate(session *s);
/* Print the last lines of a training. On held-out text they repeat the last validation, or make one
 * if none followed the last step; for generated tasks, they test a stream that neither training nor
 * validation has used. */
void test(session *s);

#endif
