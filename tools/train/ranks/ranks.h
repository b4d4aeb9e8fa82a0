/* tools/train/ranks/ranks.h - a training by several ranks, to the bits of one process.
 *
 * The trainer (nn/trainer.h) shares the batches of an update among them. Rank 0 writes the files and
 * speaks. All must stop after the same step, but clocks and signals are each rank's own: they agree. */
#ifndef WEFT_TOOLS_TRAIN_RANKS_H
#define WEFT_TOOLS_TRAIN_RANKS_H

#include "tools/train/session.h"

/* Makes this process a rank: its failures end all ranks, and are told once. NULL: a single process. */
void ranks_join(session *s, wf_transport *t);
void ranks_take(session *s, wf_transport *t); /* the same, of failures that are its own */
/* Exits unless all ranks have the same training, from the same step, with the same kernels. */
void ranks_compare(session *s);
/* Gathers `bytes` bytes of each rank, in the order of ranks, to be freed. Exits if a rank failed. */
void *ranks_gather(session *s, const void *mine, size_t bytes);
/* Rank 0's answer. */
bool ranks_agree(session *s, bool yes);
/* Called after each step of several ranks: puts any rank's signal into s->signalled, and rank 0's
 * time limit into s->late. */
void ranks_notice(session *s);
/* ranks_leave ends this rank after another's failure, with its exit code; ranks_failed tells a
 * failure of this rank first. */
_Noreturn void ranks_leave(session *s);
_Noreturn void ranks_failed(session *s, const char *message);

/* Runs find_non_finite on all ranks and returns the first finding. False: why the step failed. */
bool ranks_find_non_finite(session *s, int64_t step, char name[256], char why[256]);

#endif
