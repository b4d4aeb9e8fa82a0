/* tools/train/signals.h - handles SIGINT, SIGTERM and SIGHUP: after the first signal, the step is
 * finished and saved; another one ends the program at once. A second SIGHUP does not, because a
 * closed terminal may send several. A signal that is ignored when the program starts stays ignored:
 * SIGHUP after nohup, SIGINT of a command that a script starts with &. */
#ifndef WEFT_TOOLS_TRAIN_SIGNALS_H
#define WEFT_TOOLS_TRAIN_SIGNALS_H

#include <stdbool.h>

/* Handle signals until catch_signals is called: each ends the program at once. tells: the program
 * then prints that nothing was trained. */
void catch_early_signals(bool tells);
/* alone: there are no other ranks. Equal signals within 0.2 s then count as one; for ranks, the
 * parent process or mpirun merges them. tells: each signal prints at once what it does, because the
 * step or the validation may take long. */
void catch_signals(bool alone, bool tells);
void signals_validate(bool begins); /* a validation begins, or ends */
int caught_signal(void);            /* number of the first signal; 0: none came */
const char *signal_name(int number);

#endif
