/* tools/train/ranks/mpi.h - ranks over MPI, and who watches over them there: in `train-mpi` alone.
 *
 *     int here;
 *     wf_transport *t = mpi_join(&argc, &argv, say, &here);
 *     ...                          every rank, to its end
 *     mpi_leave();
 *
 * A rank that dies is noticed by mpirun; one that stands still, by its neighbour, within 15 s. Both
 * end all of them, and so does wf_transport_fail. An MPI without MPI_THREAD_MULTIPLE leaves no room
 * for who notices that: the first rank warns of it. */
#ifndef WEFT_TOOLS_TRAIN_MPI_H
#define WEFT_TOOLS_TRAIN_MPI_H

#include "core/transport.h"

/* here: ranks on this machine. say: tells the sentence of what failed, once. NULL: said. */
wf_transport *mpi_join(int *argc, char ***argv, void (*say)(const char *sentence), int *here);
/* Leaves MPI, together with all ranks. */
void mpi_leave(void);

#endif
