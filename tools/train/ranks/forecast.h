/* tools/train/ranks/forecast.h - simulates a training on more ranks than there are.
 *
 * This process is the last rank, whose share of the batches is the largest. The data of the other
 * ranks are faked: a part that another rank would send has this rank's own bytes, and zeros where
 * it is longer than these. Bytes are counted as if they were sent, so memory, bytes and computing
 * time are real. network.h estimates the time of an exchange. Here the waiting time is computed:
 * exchanges that begin during a backward pass overlap with it. */
#ifndef WEFT_TOOLS_TRAIN_FORECAST_H
#define WEFT_TOOLS_TRAIN_FORECAST_H

#include "tools/train/session.h"

/* Makes this process the last of --ranks simulated ranks. Exits if --network is invalid. */
void forecast_join(session *s);
/* Must be called before each step of a dry run with ranks, real or simulated. */
void forecast_step(void);
/* Reports the last step of the last rank. Returns the seconds of a step: `seconds` itself; for
 * simulated ranks the computing time, with the exchanges if --network is given. */
double forecast_say(session *s, double seconds);

#endif
