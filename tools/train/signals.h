/* tools/train/signals.h - SIGINT and SIGTERM: the step is finished and saved first; the second one
 * ends the program at once. */
#ifndef WEFT_TOOLS_TRAIN_SIGNALS_H
#define WEFT_TOOLS_TRAIN_SIGNALS_H

void catch_signals(void);
int caught_signal(void); /* its number; 0: none came */

#endif
