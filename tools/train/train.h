/* tools/train/train.h - a whole training as one function, for main functions with any transport. */
#ifndef WEFT_TOOLS_TRAIN_TRAIN_H
#define WEFT_TOOLS_TRAIN_TRAIN_H

#include "core/transport.h"

/* Run the whole program after terminal_open; returns its exit code, or exits. transport connects
 * the processes that were started for this training, `here` of them on this machine, and each of
 * them calls this. NULL: a single process, which may start others itself (--processes). */
int train_main(int argc, char **argv, wf_transport *transport, int here);

#endif
