/* tools/train/signals.h - handles SIGINT and SIGTERM: after the first, the step is finished and
 * saved; another one ends the program at once. Each says so in a terminal. Equal ones at once count
 * as one. */
#ifndef WEFT_TOOLS_TRAIN_SIGNALS_H
#define WEFT_TOOLS_TRAIN_SIGNALS_H

void catch_signals(void);
int caught_signal(void); /* its number; 0: none came */

#endif
