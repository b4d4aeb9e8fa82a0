/* tools/train/signals.c - handles SIGINT and SIGTERM. See signals.h. */
#include "signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "tools/cli/options/options.h"

/* Atomic, because a rank receives its signals in a thread of the transport. */
static atomic_int caught;

static void on_signal(int number) {
    if (atomic_exchange(&caught, number)) _exit(EXIT_SIGNAL + number);
}

void catch_signals(void) {
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int caught_signal(void) {
    return atomic_load(&caught);
}
