/* tools/cli/report.c - prints progress for readers, and events for programs. See report.h; the
 * profile is in profile.c. */
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "output.h"
#include "retry.h"
#include "terminal.h"

/* ---- opening and closing --------------------------------------------------------------------- */

static bool can_redraw(void) {
    const char *terminal = getenv("TERM");
    return isatty(STDERR_FILENO) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

/* Ends a line that a power cut or a full disk left incomplete, so that the next event begins on a
 * line of its own. */
static bool end_line(int log) {
    char last = '\n';
    off_t size = lseek(log, 0, SEEK_END);
    ssize_t done = 1;
    if (size > 0) RETRY(done, pread(log, &last, 1, size - 1));
    if (done == 1 && last != '\n') RETRY(done, write(log, "\n", 1));
    return done == 1;
}

bool report_open(report *r, const program *p, bool quiet, bool json, const char *log, bool append) {
    *r = (report){ .quiet = quiet, .json = json, .program = p, .log = -1 };
    r->bar = !quiet && can_redraw();
    if (!log) return true;
    r->log = append_open(log, append);
    return r->log >= 0 && (!append || end_line(r->log));
}

bool report_due(const report *r, double now) {
    enum { SILENCE = 30 };
    if (r->bar) return !r->drawn || now - r->drawn_at >= 0.1;
    return !r->quiet && now - r->said_at >= SILENCE;
}

void report_draw(report *r, const char *text, double now) {
    bar_draw(text);
    r->drawn = true;
    r->drawn_at = now;
}

void report_clear(report *r) {
    bar_clear();
    r->drawn = false;
}

bool report_close(report *r) {
    report_clear(r);
    json_free(&r->event);
    /* close is called, even after a failure */
    bool closed = r->log < 0 || close(r->log) == 0 || errno == EINTR;
    r->log = -1;
    if (!closed) warn(r->program, "the log could not be written: %s", strerror(errno));
    return closed && !r->failed;
}

void say(report *r, const char *format, ...) {
    if (r->quiet) return;
    va_list arguments;
    va_start(arguments, format);
    report_clear(r);
    say_clean(stderr, true, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    r->said_at = wf_seconds_now();
}

/* ---- events ---------------------------------------------------------------------------------- */

void report_failed_because(report *r, const char *what, const char *why) {
    if (r->failed) return;
    r->failed = true;
    warn(r->program, "%s: %s; the work goes on", what, why);
}

void report_failed(report *r, const char *what) {
    report_failed_because(r, what, strerror(errno));
}

/* Begins an event in memory, because it may go to two places. */
jsonl *event(report *r, const char *name) {
    if (r->log < 0 && !r->json) return NULL;
    r->event.length = 0;
    r->event.failed = false;
    json_begin(&r->event, name);
    return &r->event;
}

void event_send(report *r) {
    jsonl *e = &r->event;
    if (r->log < 0 && !r->json) return;
    json_end(e);
    if (e->failed) {
        errno = ENOMEM;
        report_failed(r, "an event is missing");
        return;
    }
    if (r->log >= 0 && !append_record(r->log, e->text, e->length))
        report_failed(r, "the log could not be written");
    if (!r->json) return;
    bool written = fwrite(e->text, 1, e->length, stdout) == e->length && fflush(stdout) == 0;
    if (written) return;
    r->json = false;
    if (!nobody_reads(STDOUT_FILENO)) report_failed(r, "stdout could not be written");
}
