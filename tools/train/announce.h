/* tools/train/announce.h - prints, before the first step, what will be trained and how. */
#ifndef WEFT_TOOLS_TRAIN_ANNOUNCE_H
#define WEFT_TOOLS_TRAIN_ANNOUNCE_H

#include "session.h"

/* Prints data, model, recipe, machine and resume on stderr, and sends the event "run". memory: the
 * bytes that this process will need at its peak. */
void announce(session *s, double memory);

#endif
