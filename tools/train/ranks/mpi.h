/* tools/train/ranks/mpi.h - a transport over MPI with a watchdog, for `train-mpi` alone.
 *
 *     int here;
 *     wf_transport *t = mpi_join(&argc, &argv, say, &here);
 *     ...                          every rank, to its end
 *     mpi_leave();
 *
 * If a rank dies, mpirun notices. If a rank hangs, its neighbour notices within 15 s. In both cases
 * all ranks end, as they do after wf_transport_fail. An MPI without MPI_THREAD_MULTIPLE has no
 * watchdog for hung ranks; the first rank then prints a warning. */
#ifndef WEFT_TOOLS_TRAIN_MPI_H
#define WEFT_TOOLS_TRAIN_MPI_H

#include "core/transport.h"

/* Join as a rank. here: number of ranks on this machine. say: prints the sentence about a failure,
 * once. NULL: a failure was printed. */
wf_transport *mpi_join(int *argc, char ***argv, void (*say)(const char *sentence), int *here);
/* Leave MPI, together with all ranks. */
void mpi_leave(void);

#endif
