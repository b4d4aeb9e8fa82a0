/* tools/train/signals.h - handles SIGINT, SIGTERM and SIGHUP: after the first, the step is finished
 * and saved; another one ends the program at once, but for a SIGHUP, of which a closed terminal may
 * send several. A signal that is ignored when the program starts stays so: SIGHUP after nohup,
 * SIGINT behind the & of a script. */
#ifndef WEFT_TOOLS_TRAIN_SIGNALS_H
#define WEFT_TOOLS_TRAIN_SIGNALS_H

#include <stdbool.h>

/* Until catch_signals is called, a signal ends the program at once. tells: the program prints then
 * that nothing was trained. */
void catch_early_signals(bool tells);
/* alone: there are no other ranks; equal signals within 0.2 s then count as one, which the parent
 * process or mpirun does for ranks. tells: each signal prints at once what it does, because the
 * step or the validation may take long. */
void catch_signals(bool alone, bool tells);
void signals_validate(bool begins); /* a validation begins, or ends */
int caught_signal(void);            /* its number; 0: none came */
const char *signal_name(int number);

#endif
