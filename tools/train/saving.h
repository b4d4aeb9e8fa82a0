/* tools/train/saving.h - writes the files of a training: its checkpoint, and the best weights. */
#ifndef WEFT_TOOLS_TRAIN_SAVING_H
#define WEFT_TOOLS_TRAIN_SAVING_H

#include "session.h"

/* Writes the checkpoint to `path`, or with `checkpoint` false the weights alone, as the best ones.
 * All ranks must call it, and rank 0 writes. False: it was not written, and rank 0 has printed
 * why. */
bool write_model(session *s, const char *path, bool checkpoint);
/* Saves this step to --model, unless the file already has it. False: a warning has said why not. */
bool save(session *s);

#endif
