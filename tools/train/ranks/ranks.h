/* tools/train/ranks/ranks.h - trains with several ranks, with the same bits as one process.
 *
 * The trainer (nn/trainer.h) divides the batches of an update among them. Rank 0 writes the files
 * and prints. All ranks must stop after the same step; since clocks and signals differ between
 * ranks, they agree on it after each step. */
#ifndef WEFT_TOOLS_TRAIN_RANKS_H
#define WEFT_TOOLS_TRAIN_RANKS_H

#include "tools/train/session.h"

/* Makes this process a rank: its failures end all ranks, and are reported once. t NULL: a single
 * process. */
void ranks_join(session *s, wf_transport *t);
/* Exits unless all ranks have the same version of weft, settings and data, and are at the same
 * step. */
void ranks_compare(session *s);
/* Gathers `bytes` bytes from each rank, in the order of ranks; the caller frees them. Exits if a
 * rank failed. */
void *ranks_gather(session *s, const void *mine, size_t bytes);
/* Returns rank 0's value of `yes` on every rank. */
bool ranks_agree(session *s, bool yes);
/* Called after each step with several ranks. s->signalled becomes the signal that any rank got, and
 * s->late true if --max-time is over by rank 0's clock. */
void ranks_notice(session *s);
/* ranks_leave ends this rank, with the exit code of the rank that failed. ranks_failed first
 * reports a failure of this rank, unless another rank has failed already. */
_Noreturn void ranks_leave(session *s);
_Noreturn void ranks_failed(session *s, const char *message);

#endif
