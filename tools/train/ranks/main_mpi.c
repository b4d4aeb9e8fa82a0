/* tools/train/ranks/main_mpi.c - the program `train-mpi`: train as one of the ranks that mpirun
 * starts. */
#include "mpi.h"

#include <string.h>

#include "tools/cli/terminal.h"
#include "tools/train/settings/settings.h"
#include "tools/train/train.h"

/* Prints the sentence of the rank that failed first. */
static void tell_once(const char *sentence) {
    warn(&train_program, "%s", sentence);
}

/* True if the command line asks for help or the like, which needs no other ranks. */
static bool asks_for_text(int argc, char **argv) {
    static const char *const asks[] = { "--help", "-h", "--version", "-V", "--man" };
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--completion", 12) == 0) return true;
        for (size_t k = 0; k < sizeof asks / sizeof *asks; k++)
            if (strcmp(argv[i], asks[k]) == 0) return true;
    }
    return false;
}

/* Prints the help, the version or another such text, with this program's name and examples. */
static void print_text(int argc, char **argv) {
    settings_new(); /* the defaults that --help prints */
    train_program.name = "train-mpi";
    train_program.examples = "  mpirun -n 2 train-mpi --task sort -o ranks.safetensors\n"
                             "  mpirun -n 2 train-mpi --train pairs.tsv --valid held-back.tsv "
                             "--accum 2 -o shared.safetensors\n"
                             "  mpirun -n 2 train-mpi --train pairs.tsv --valid held-back.tsv "
                             "--epochs 40 --resume -o shared.safetensors\n";
    options_parse(&train_program, argc, argv);
}

/* Ends all ranks, for a failure before train_main has joined them. */
static void tell(void *transport, int code, const char *sentence) {
    wf_transport_fail(transport, code, sentence);
}

int main(int argc, char **argv) {
    int here;
    terminal_open();
    if (asks_for_text(argc, argv)) print_text(argc, argv);
    wf_transport *ranks = mpi_join(&argc, &argv, tell_once, &here);
    if (ranks && ranks->size > 1) tell_failures(tell, ranks);
    int status = ranks ? train_main(argc, argv, ranks, here) : EXIT_FAILED;
    mpi_leave();
    return status;
}
