/* tools/train/main.c - the program `train`: one process, or several of one machine. */
#include "tools/cli/terminal.h"
#include "train.h"

int main(int argc, char **argv) {
    terminal_open();
    return train_main(argc, argv, NULL, 1);
}
