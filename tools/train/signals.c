/* tools/train/signals.c - SIGINT and SIGTERM. See signals.h. */
#include "signals.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "tools/cli/options.h"

static volatile sig_atomic_t caught;

static void on_signal(int number) {
    if (caught) _exit(EXIT_SIGNAL + number);
    caught = number;
}

void catch_signals(void) {
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int caught_signal(void) {
    return caught;
}
