/* tools/train/ranks/main_mpi.c - the program `train-mpi`: train, as one of the ranks that mpirun starts. */
#include "mpi.h"

#include <string.h>

#include "tools/cli/terminal.h"
#include "tools/train/settings/settings.h"
#include "tools/train/train.h"

/* The last words of all: whichever rank has them. */
static void say(const char *sentence) {
    warn(&train_program, "%s", sentence);
}

/* Which needs no other ranks. */
static bool asks_for_help(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    return false;
}

/* Until the training has begun it knows of no ranks. */
static wf_transport *ranks;
static void tell(int code, const char *sentence) {
    wf_transport_fail(ranks, code, sentence);
}

int main(int argc, char **argv) {
    int here;
    terminal_open();
    if (asks_for_help(argc, argv)) options_parse(&train_program, argc, argv);
    ranks = mpi_join(&argc, &argv, say, &here);
    if (ranks && ranks->size > 1) tell_failures(tell);
    int status = ranks ? train_main(argc, argv, ranks, here) : EXIT_FAILED;
    mpi_leave();
    return status;
}
