/* tools/cli/so_far.c - prints the progress of a filter. See so_far.h. */
#include "so_far.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "numbers.h"
#include "retry.h"

enum { PATIENCE = 3 }; /* seconds of work in which a terminal shows nothing */
enum { UNCOUNTED = -2 };

int64_t lines_in(const text_input *in, off_t from) {
    static char part[1 << 16];
    struct stat s;
    int64_t n = 0;
    char last = '\n';
    if (in->packed || from < 0 || fstat(in->file, &s) != 0 || !S_ISREG(s.st_mode)) return -1;
    for (ssize_t got;; from += got) {
        RETRY(got, pread(in->file, part, sizeof part, from));
        if (got < 0) return -1;
        if (got == 0) break;
        for (ssize_t i = 0; i < got; i++) n += part[i] == '\n';
        last = part[got - 1];
    }
    return n + (last != '\n');
}

void so_far_begin(so_far *f, const program *p, const text_input *in, bool quiet) {
    *f = (so_far){ .total = UNCOUNTED, .since = wf_seconds_now() };
    if (quiet || in->file < 0 || isatty(in->file)) return;
    report_open(&f->report, p, false, false, NULL, false);
    f->report.said_at = f->since;
    f->in = in;
    f->from = lseek(in->file, 0, SEEK_CUR);
}

void so_far_wait(so_far *f) {
    f->report.said_at = wf_seconds_now();
}

void so_far_work(so_far *f) {
    f->since = wf_seconds_now();
}

void so_far_rest(so_far *f) {
    f->worked += wf_seconds_now() - f->since;
    report_clear(&f->report);
}

/* "40 s", "7 min" or "2.5 h". */
static const char *roughly(double seconds, char text[OPTION_TEXT_SIZE]) {
    enum { MINUTE = 60, HOUR = 3600 };
    if (seconds < 1.5 * MINUTE)
        snprintf(text, OPTION_TEXT_SIZE, "%.0f s", seconds);
    else if (seconds < 1.5 * HOUR)
        snprintf(text, OPTION_TEXT_SIZE, "%.0f min", seconds / MINUTE);
    else
        snprintf(text, OPTION_TEXT_SIZE, "%.1f h", seconds / HOUR);
    return text;
}

const char *so_far_text(int64_t done, int64_t total, double seconds, char text[SO_FAR_TEXT]) {
    char part[3][OPTION_TEXT_SIZE], left[OPTION_TEXT_SIZE];
    double speed = seconds > 0 ? (double)done / seconds : 0;
    thousands((double)done, part[0]);
    if (speed < 9.95)
        snprintf(part[1], OPTION_TEXT_SIZE, "%.1f", speed);
    else
        thousands(speed, part[1]);
    if (total < done || done == 0)
        snprintf(text, SO_FAR_TEXT, "%s lines, %s lines/s", part[0], part[1]);
    else
        snprintf(text, SO_FAR_TEXT, "%s of %s lines, %s lines/s, about %s left", part[0],
                 thousands((double)total, part[2]), part[1],
                 roughly((double)(total - done) / speed, left));
    return text;
}

void so_far_show(so_far *f, int64_t done) {
    char text[SO_FAR_TEXT];
    double now = wf_seconds_now(), worked = f->worked + now - f->since;
    if (!f->in || (f->report.bar && worked < PATIENCE) || !report_due(&f->report, now)) return;
    /* a long file is counted once, and only for a run that is long itself */
    if (f->total == UNCOUNTED) f->total = lines_in(f->in, f->from);
    so_far_text(done, f->total, worked, text);
    if (f->report.bar)
        report_draw(&f->report, text, now);
    else
        say(&f->report, "%s", text);
}
