/* tools/train/signals.c - handles SIGINT and SIGTERM. See signals.h. */
#include "signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "tools/cli/options/options.h"
#include "tools/cli/output.h"

/* Equal signals within so many seconds count as one: a terminal and a shell may send one each, as
 * GNU timeout does. The caller of ranks has done this for them: core/ranks/processes.c. */
#define REPEAT_WINDOW 0.2

/* Atomic, because a rank receives its signals in a thread of the transport. */
static atomic_int caught;
static _Atomic double caught_at;

static pid_t main_process; /* it began the training; ranks are others */

/* Writes a text if somebody sees it at once. */
static void tell(const char *text) {
    if (getpid() != main_process || !isatty(STDERR_FILENO)) return;
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

static bool is_repeated(int number) {
    return getpid() == main_process && number == atomic_load(&caught) &&
           wf_seconds_now() < atomic_load(&caught_at) + REPEAT_WINDOW;
}

static void on_signal(int number) {
    int none = 0;
    if (is_repeated(number)) return;
    atomic_store(&caught_at, wf_seconds_now());
    if (atomic_compare_exchange_strong(&caught, &none, number)) {
        tell("\nstops after this step and saves; a second signal ends at once, without saving\n");
        return;
    }
    output_discard_all();
    tell("\nended at once: steps since the last save are lost\n");
    _exit(EXIT_SIGNAL + number);
}

void catch_signals(void) {
    main_process = getpid();
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int caught_signal(void) {
    return atomic_load(&caught);
}
