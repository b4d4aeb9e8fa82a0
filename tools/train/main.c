/* tools/train/main.c - the program `train`, which runs one process, or several on one machine. */
#include "tools/cli/terminal.h"
#include "train.h"

int main(int argc, char **argv) {
    terminal_open();
    return train_main(argc, argv, NULL, 1);
}
