/* tools/cli/report.c - what `train` says while it works. See report.h; the profile is in profile.c. */
#include "report.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "append.h"
#include "core/base/clock.h"
#include "numbers.h"
#include "retry.h"
#include "terminal.h"

/* ---- opening and closing ------------------------------------------------------------------- */

static bool can_redraw(void) {
    const char *terminal = getenv("TERM");
    return isatty(STDERR_FILENO) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

/* Ends a line that a power cut or a full disk left incomplete, so that the next one begins on
 * its own. */
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

void report_clear(report *r) {
    if (r->drawn) fputs("\r\033[K", stderr);
    r->drawn = false;
}

bool report_close(report *r) {
    report_clear(r);
    json_free(&r->event);
    bool closed = r->log < 0 || close(r->log) == 0 || errno == EINTR; /* it is closed then, too */
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

/* ---- events -------------------------------------------------------------------------------- */

void report_failed(report *r, const char *what) {
    int reason = errno;
    if (r->failed) return;
    r->failed = true;
    report_clear(r);
    warn(r->program, "%s: %s; the work goes on", what, strerror(reason));
}

/* Composes the event in memory, since it may go to two places. */
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

/* ---- progress ------------------------------------------------------------------------------ */

static void heading(report *r, const progress *p) {
    if (r->titled) return;
    r->titled = true;
    say(r, "%s%*s %10s %10s %8s %10s %9s %9s %8s %8s", p->epoch > 0 ? " epoch " : "", 15,
        "step        ", "loss/token", "perplexity", "accuracy", "tokens/s", "gradient", "rate",
        "elapsed", "left");
}

/* The beginning that lines of training and of validation share. */
static const char *beginning(const progress *p, char text[80]) {
    if (p->epoch > 0)
        snprintf(text, 80, "%6.2f %7lld/%-7lld %10.4g %10.5g %6.1f %%", p->epoch,
                 (long long)p->step, (long long)p->total, p->loss, exp(p->nll), 100 * p->accuracy);
    else
        snprintf(text, 80, "%7lld/%-7lld %10.4g %10.5g %6.1f %%", (long long)p->step,
                 (long long)p->total, p->loss, exp(p->nll), 100 * p->accuracy);
    return text;
}

static void print_step(report *r, const progress *p) {
    char text[80], speed[OPTION_TEXT_SIZE], elapsed[OPTION_TEXT_SIZE], left[OPTION_TEXT_SIZE];
    heading(r, p);
    say(r, "%s %10s %9.3g %9.3g %8s %8s", beginning(p, text),
        thousands(p->tokens_per_second, speed), p->norm, p->rate, duration(p->elapsed, elapsed),
        duration(p->remaining, left));
}

void report_valid(report *r, const progress *p, const char *scores) {
    char text[80];
    heading(r, p);
    say(r, "%s  on unseen ones%s%s", beginning(p, text), *scores ? ": " : "", scores);
}

void report_step(report *r, const progress *p) {
    if (!r->bar) print_step(r, p);
    jsonl *e = event(r, "step");
    json_int(e, "step", p->step);
    if (p->epoch > 0) json_real(e, "epoch", p->epoch);
    json_real(e, "loss", p->loss);
    json_real(e, "perplexity", exp(p->nll));
    json_real(e, "accuracy", p->accuracy);
    json_real(e, "tokens_per_second", p->tokens_per_second);
    json_real(e, "gradient_norm", p->norm);
    json_real(e, "rate", p->rate);
    if (p->exchange_share >= 0) {
        json_real(e, "exchange_share", p->exchange_share);
        json_int(e, "bytes_sent", p->bytes_sent);
    }
    json_real(e, "seconds", p->elapsed);
    event_send(r);
}

static int terminal_width(void) {
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : 80;
}

void report_bar(report *r, const progress *p) {
    enum { CELLS = 10, SILENCE = 30 };
    char cells[CELLS + 1], text[200], speed[OPTION_TEXT_SIZE], left[OPTION_TEXT_SIZE];
    double now = wf_seconds_now();
    if (!r->bar && !r->quiet && now - r->said_at >= SILENCE) print_step(r, p);
    if (!r->bar || (r->drawn && now - r->drawn_at < 0.1)) return;
    int done = (int)(CELLS * p->step / p->total);
    for (int i = 0; i < CELLS; i++) cells[i] = i < done ? '#' : '.';
    cells[CELLS] = '\0';
    snprintf(text, sizeof text, "%lld/%lld [%s] %s left, loss %.3f, %.1f %% right, %s tokens/s",
             (long long)p->step, (long long)p->total, cells, duration(p->remaining, left), p->loss,
             100 * p->accuracy, thousands(p->tokens_per_second, speed));
    fprintf(stderr, "\r\033[K%.*s", terminal_width() - 1, text);
    fflush(stderr);
    r->drawn = true;
    r->drawn_at = now;
}
