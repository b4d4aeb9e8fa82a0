/* tools/history/tensorboard.h - writes scalars for TensorBoard: a file of events in a folder.
 *
 * A record is its length, a checksum of the length, an event, a checksum of the event (TFRecord,
 * with masked CRC-32C). An event is a message of protocol buffers: a time, a step, values with
 * tags such as "train/loss". Records are added whole, so the file can be read while the training
 * runs. */
#ifndef WEFT_TOOLS_HISTORY_TENSORBOARD_H
#define WEFT_TOOLS_HISTORY_TENSORBOARD_H

#include "history.h"

typedef struct tensorboard tensorboard;

/* Create a new file in the folder, which is created if necessary. Events of earlier files from step
 * `first` on become void: TensorBoard drops them. NULL with message[256]. */
tensorboard *tensorboard_open(const char *folder, int64_t first, char *message);
/* Add the values that were measured at a step. False with errno: nothing was added. */
bool tensorboard_add(tensorboard *t, int64_t step, const measured *m);
bool tensorboard_close(tensorboard *t); /* false: see errno; t may be NULL */

#endif
