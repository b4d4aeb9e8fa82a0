/* tools/train/signals.c - handles SIGINT, SIGTERM and SIGHUP. See signals.h. */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "tools/cli/options/options.h"
#include "tools/cli/output.h"

/* Equal signals within so many milliseconds count as one: a terminal and a shell may send one each,
 * as GNU timeout does. For ranks their caller does this (core/ranks/processes.c), or mpirun. */
enum { REPEAT_WINDOW = 200 };

/* Atomic, because a rank receives its signals in a thread of the transport. */
static atomic_int caught;
static atomic_uint caught_at; /* in milliseconds, which wrap around */
static bool is_alone, has_terminal;

static void tell(const char *text) {
    if (!has_terminal) return;
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

static void on_signal(int number) {
    int none = 0, error = errno;
    unsigned now = (unsigned)(int64_t)(1e3 * wf_seconds_now());
    bool again = number == atomic_load(&caught) && now - atomic_load(&caught_at) < REPEAT_WINDOW;
    if ((is_alone && again) || (number == SIGHUP && atomic_load(&caught))) return;
    atomic_store(&caught_at, now);
    if (!atomic_compare_exchange_strong(&caught, &none, number)) {
        output_discard_all();
        tell("\nended at once: what was not saved is lost\n");
        _exit(EXIT_SIGNAL + number);
    }
    tell("\nends after this step; a second signal ends at once\n");
    errno = error;
}

void catch_signals(bool alone, bool tells) {
    is_alone = alone;
    has_terminal = tells && isatty(STDERR_FILENO);
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction before;
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
}

const char *signal_name(int number) {
    static const struct {
        int number;
        const char *name;
    } names[] = { { SIGINT, "SIGINT" }, { SIGTERM, "SIGTERM" }, { SIGHUP, "SIGHUP" } };
    size_t i = 0;
    while (names[i].number != number) i++;
    return names[i].name;
}

int caught_signal(void) {
    return atomic_load(&caught);
}
