/* tools/train/forecast.h - what a training would take with ranks that are not there.
 *
 * One of them is: the last, whose share of the batches is the largest. Of what the
 * others would send it gets what it sends to all, and zeros where each sends its own. Bytes are
 * counted as if they travelled; so memory, bytes and its own time are what they are. How long
 * exchanges take is said in network.h. */
#ifndef WEFT_TOOLS_TRAIN_FORECAST_H
#define WEFT_TOOLS_TRAIN_FORECAST_H

#include "session.h"

/* This process is the last of --ranks from now on. Exits if --network is none. */
void forecast_join(session *s);
/* Of a dry run of so many steps by ranks, there or not: what the last of them did in the last.
 * Returns what that step takes: `seconds`, but without exchanges, or with those of --network, if the
 * others are not there. */
double forecast_say(session *s, int64_t steps, double seconds);

#endif
