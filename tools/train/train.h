/* tools/train/train.h - the training as one call: what main is, of any transport. */
#ifndef WEFT_TOOLS_TRAIN_TRAIN_H
#define WEFT_TOOLS_TRAIN_TRAIN_H

#include "core/transport.h"

/* The whole program, after terminal_open: its exit code. ranks: between the processes that were
 * started for this training, `here` of them on this machine, each of which calls this; NULL: there
 * is one, which may start others itself (--processes). May exit. */
int train_main(int argc, char **argv, wf_transport *ranks, int here);

#endif
