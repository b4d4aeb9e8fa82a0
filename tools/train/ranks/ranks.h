/* tools/train/ranks/ranks.h - a training by several ranks, to the bits of one process.
 *
 * The trainer (nn/trainer.h) shares the batches of an update among them. Rank 0 writes the files and
 * speaks. All must stop after the same step, but clocks and signals are each rank's own: they agree. */
#ifndef WEFT_TOOLS_TRAIN_RANKS_H
#define WEFT_TOOLS_TRAIN_RANKS_H

#include "tools/train/session.h"

/* This process is one of them from now on: its failures end all, and are told once. NULL: alone. */
void ranks_join(session *s, wf_transport *t);
void ranks_take(session *s, wf_transport *t); /* the same, of failures that are its own */
/* Is it the same training on all of them, from the same step, with the same kernels? Exits. */
void ranks_compare(session *s);
/* Gathers `bytes` bytes of each rank, in the order of ranks, to be freed. Exits if a rank failed. */
void *ranks_gather(session *s, const void *mine, size_t bytes);
/* Rank 0's answer. */
bool ranks_agree(session *s, bool yes);
/* After each step of several ranks: any rank's signal into s->signalled, and whether the time is up by
 * rank 0's clock into s->late. */
void ranks_notice(session *s);
/* Another rank has failed: ends this one, with the exit code of the cause. Or this one has. */
_Noreturn void ranks_leave(session *s);
_Noreturn void ranks_failed(session *s, const char *message);

/* find_non_finite of all: the first that any of them finds. False: why the step failed. */
bool ranks_find_non_finite(session *s, int64_t step, char name[256], char why[256]);

#endif
