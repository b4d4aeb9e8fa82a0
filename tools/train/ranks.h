/* tools/train/ranks.h - a training by several ranks, to the bits of one process.
 *
 * Each has the whole model, computes its share of an update's batches, and owns a share of the
 * optimizer (nn/sharded.h). Rank 0 writes the files and speaks. What all must do alike, such as
 * when to stop, is agreed on, as what a rank sees of clocks, signals and disks is its own. Whoever
 * is alone agrees with itself. */
#ifndef WEFT_TOOLS_TRAIN_RANKS_H
#define WEFT_TOOLS_TRAIN_RANKS_H

#include "session.h"

/* This process is one of them from now on: its failures end all, and are told once. NULL: alone. */
void ranks_join(session *s, wf_transport *t);
void ranks_take(session *s, wf_transport *t); /* the same, of failures that are its own */
/* Is it the same training on all of them, from the same step, with the same kernels? Exits. */
void ranks_compare(session *s);
/* As many bytes of each, into all, in the order of ranks. */
void ranks_exchange(session *s, const void *mine, void *all, size_t bytes);
/* What rank 0 says. */
bool ranks_agree(session *s, bool yes);
/* Another rank has failed: ends this one, with the exit code of the cause. Or this one has. */
_Noreturn void ranks_leave(session *s);
_Noreturn void ranks_failed(session *s, const char *message);

/* The share of the optimizer, with what a checkpoint has of it. Not of one that is alone. */
void ranks_open(session *s);
void ranks_close(session *s);
/* As run_step: false on all of them if the gradient is not finite. */
bool ranks_step(session *s, int64_t step);
/* find_non_finite of all: the first that any of them finds. False: why the step failed. */
bool ranks_find_non_finite(session *s, int64_t step, char name[256], char why[256]);

/* What a checkpoint holds, into rank 0's model, until it is released. */
void ranks_gather(session *s);
void ranks_release(session *s);
/* wf_optimizer_swap_averages on all of them. */
bool ranks_swap_averages(session *s);

#endif
