/* tools/train/ranks/forecast.h - what a training would take with ranks that are not there.
 *
 * One of them is: the last, whose share of the batches is the largest. Of what the
 * others would send it gets what it sends to all, and zeros where each sends its own. Bytes are
 * counted as if they travelled; so memory, bytes and its own time are what they are. How long an
 * exchange takes is said in network.h, and what the training waits for it here: what goes out
 * during a backward pass is on its way meanwhile. */
#ifndef WEFT_TOOLS_TRAIN_FORECAST_H
#define WEFT_TOOLS_TRAIN_FORECAST_H

#include "tools/train/session.h"

/* Makes this process the last of --ranks simulated ones. Exits if --network can't be read. */
void forecast_join(session *s);
/* To be called before each step of a dry run with ranks, real or simulated. */
void forecast_step(void);
/* Reports what the last rank did in the last step. Returns the seconds of a step: `seconds` itself, or
 * for simulated ranks the time without exchanges, or with those of --network. */
double forecast_say(session *s, double seconds);

#endif
