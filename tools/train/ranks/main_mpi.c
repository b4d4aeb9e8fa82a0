/* tools/train/ranks/main_mpi.c - the program `train-mpi`: train, as one of the ranks that mpirun starts. */
#include "mpi.h"

#include <string.h>

#include "tools/cli/terminal.h"
#include "tools/train/settings/settings.h"
#include "tools/train/train.h"

/* Prints the sentence of the rank that failed first. */
static void tell_once(const char *sentence) {
    warn(&train_program, "%s", sentence);
}

/* Help is printed without starting MPI. */
static bool asks_for_help(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    return false;
}

/* A failure before train_main has joined the ranks ends them, too. */
static void tell(void *transport, int code, const char *sentence) {
    wf_transport_fail(transport, code, sentence);
}

int main(int argc, char **argv) {
    int here;
    terminal_open();
    if (asks_for_help(argc, argv)) options_parse(&train_program, argc, argv);
    wf_transport *ranks = mpi_join(&argc, &argv, tell_once, &here);
    if (ranks && ranks->size > 1) tell_failures(tell, ranks);
    int status = ranks ? train_main(argc, argv, ranks, here) : EXIT_FAILED;
    mpi_leave();
    return status;
}
