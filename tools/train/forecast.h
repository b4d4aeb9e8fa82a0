/* tools/train/forecast.h - what a training would take with ranks that are not there.
 *
 * One of them is: the last, whose share of the batches is the largest. What the others would send
 * is what it sends itself, which is counted; so memory, bytes and its own time are what they are. How long
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
