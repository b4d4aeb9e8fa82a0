/* tools/train/saving.h - the files of a training: its checkpoint, and the best weights. */
#ifndef WEFT_TOOLS_TRAIN_SAVING_H
#define WEFT_TOOLS_TRAIN_SAVING_H

#include "session.h"

/* Writes the checkpoint, or the best weights alone. All ranks call it, and rank 0 writes. */
bool write_model(session *s, const char *path, bool checkpoint);
/* Saves this step to --model, unless the file has it already. False: a warning said why not. */
bool save(session *s);

#endif
