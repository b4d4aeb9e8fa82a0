/* tools/train/train.h - the training as one call: what main is, of any transport. */
#ifndef WEFT_TOOLS_TRAIN_TRAIN_H
#define WEFT_TOOLS_TRAIN_TRAIN_H

#include "core/transport.h"

/* The whole program, after terminal_open: its exit code. transport: between the
 * processes that were started for this training, `here` of them on this machine; each calls this.
 * NULL: a single process, which may start others itself (--processes). May exit. */
int train_main(int argc, char **argv, wf_transport *transport, int here);

#endif
