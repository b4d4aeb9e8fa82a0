/* tools/train/main_mpi.c - the program `train-mpi`: train, as one of the ranks that mpirun starts. */
#include "mpi.h"
#include "settings.h"
#include "tools/cli/terminal.h"
#include "train.h"

static void say(const char *sentence) {
    warn(&train_program, "%s", sentence);
}

int main(int argc, char **argv) {
    int here;
    terminal_open();
    wf_transport *ranks = mpi_join(&argc, &argv, say, &here);
    int status = ranks ? train_main(argc, argv, ranks, here) : EXIT_FAILED;
    mpi_leave();
    return status;
}
