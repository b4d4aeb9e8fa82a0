/* tests/mpi/mpi_collectives.c - the transport over MPI without a training: its collectives, and
 * the end of all ranks when one fails. Run by mpi.sh.
 *
 *     mpirun -n 3 mpi-collectives [fail|kill|stop|code|speed|which] */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/core/ranks/speed.h"
#include "tests/support/collectives.h"
#include "tools/train/ranks/mpi.h"

static void say(const char *sentence) {
    fprintf(stderr, "mpi-collectives: %s\n", sentence);
}

static int break_something(wf_transport *t, const char *what) {
    bool last = t->rank == t->size - 1;
    if (!wf_barrier(t)) return 20;
    if (strcmp(what, "code") == 0) return 21; /* all alike */
    if (last && strcmp(what, "fail") == 0) wf_transport_fail(t, 5, "the disk is full");
    if (last && strcmp(what, "kill") == 0) raise(SIGKILL);
    if (last && strcmp(what, "stop") == 0) raise(SIGSTOP);
    return wf_barrier(t) ? 22 : 23;
}

static int say_which(void) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    return puts(version) < 0;
}

int main(int argc, char **argv) {
    int here, code;
    if (argc > 1 && strcmp(argv[1], "which") == 0) return say_which();
    wf_transport *t = mpi_join(&argc, &argv, say, &here);
    int64_t most = t->size == 2 ? 70 << 20 : 1 << 20; /* of two ranks: in more than one message */
    if (argc > 1 && strcmp(argv[1], "speed") == 0)
        code = measure_speed(t, "MPI");
    else
        code = argc > 1 ? break_something(t, argv[1]) : check_collectives(t, &most);
    if (argc == 1 && t->rank == 0 && code == 0) printf("%d ranks, %d here: right\n", t->size, here);
    mpi_leave();
    return code;
}
