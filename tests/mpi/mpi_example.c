/* tests/mpi/mpi_example.c - the example data_parallel over MPI. This file includes the example's
 * source and replaces wf_processes_run, which would start processes, by a function that uses the
 * ranks that mpirun has started. */
#define wf_processes_run run_over_mpi
#include "tools/examples/data_parallel.c"

#include "tools/train/ranks/mpi.h"

static void say(const char *sentence) {
    fprintf(stderr, "mpi-data-parallel: %s\n", sentence);
}

/* mpirun has started the ranks, so their number must be the one on the command line. */
int run_over_mpi(int n, int (*body)(wf_transport *t, void *user), void *user,
                 void (*leave)(int code), wf_processes_result *cause) {
    int here, code = 1;
    (void)leave;
    *cause = (wf_processes_result){ .rank = -1 };
    wf_transport *t = mpi_join(NULL, NULL, say, &here);
    if (t && t->size == n)
        code = body(t, user);
    else
        snprintf(cause->why, sizeof cause->why, "mpirun started another number of ranks");
    mpi_leave();
    return code;
}
