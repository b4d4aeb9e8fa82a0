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

/* Equal signals within so many milliseconds count as one: GNU timeout, for example, sends one to
 * its child and one to the child's process group. For ranks, the process that started them
 * (core/ranks/processes.c) or mpirun merges equal signals. */
enum { REPEAT_WINDOW = 200 };

/* Atomic, because a rank receives its signals in a thread of the transport. */
static atomic_int caught;
static atomic_uint caught_at; /* in milliseconds, which wrap around */
static bool is_alone, has_terminal, tells_all, tells_early;
static atomic_bool validates;

/* Prints the text on stderr; on a terminal on a new line, because a progress bar may be there. */
static void tell(const char *text) {
    if (!tells_all) return;
    ssize_t written = has_terminal ? write(STDERR_FILENO, "\n", 1) : 0;
    written = write(STDERR_FILENO, text, strlen(text));
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
        tell("ended at once: what was not saved is lost\n");
        _exit(EXIT_SIGNAL + number);
    }
    tell(atomic_load(&validates) ? "ends after this validation; a second signal ends at once\n"
                                 : "ends after this step; a second signal ends at once\n");
    errno = error;
}

static void on_early_signal(int number) {
    static const char text[] = "\nended before this run trained anything: no model was written\n";
    output_discard_all();
    ssize_t written = tells_early ? write(STDERR_FILENO, text, sizeof text - 1) : 0;
    (void)written;
    signal(number, SIG_DFL);
    raise(number);
}

static void handle(void (*handler)(int), int flags) {
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction before, action = { .sa_handler = handler, .sa_flags = flags };
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < 3; i++)
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
}

void catch_early_signals(bool tells) {
    tells_early = tells;
    handle(on_early_signal, 0);
}

void catch_signals(bool alone, bool tells) {
    is_alone = alone;
    tells_all = tells;
    has_terminal = isatty(STDERR_FILENO);
    handle(on_signal, SA_RESTART);
}

void signals_validate(bool begins) {
    atomic_store(&validates, begins);
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
