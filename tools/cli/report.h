/* tools/cli/report.h - what `train` and `bench` say while they work: to a person on stderr, to a program
 * as JSON lines.
 *
 * An event that can't be composed or written is a failure that is told at once; the work goes on, and
 * report_close knows of it. */
#ifndef WEFT_TOOLS_CLI_REPORT_H
#define WEFT_TOOLS_CLI_REPORT_H

#include "core/graph.h"
#include "jsonl.h"
#include "tools/cli/options/options.h"

typedef struct report {
    bool quiet, json;         /* nothing on stderr; events on stdout */
    bool bar;                 /* stderr is a terminal that can redraw */
    bool drawn;               /* a bar stands on the current line */
    bool titled;              /* the heading of the lines is printed */
    double drawn_at, said_at; /* times of the last bar and the last line */
    const program *program;   /* named in messages about failures */
    int log;                  /* descriptor; -1: none */
    jsonl event;              /* the event that is being composed */
    bool failed;              /* an event could not be written */
} report;

/* log: NULL, or the file to write (append: go on with it). False: it can't be opened (errno). */
bool report_open(report *r, const program *p, bool quiet, bool json, const char *log, bool append);
bool report_close(report *r); /* false: events are missing, and a message said so */

void report_clear(report *r); /* clears the bar, before output that does not go through say */
void say(report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* jsonl *e = event(r, "step"); json_int(e, ...); event_send(r); NULL if nobody reads events. */
jsonl *event(report *r, const char *name);
void event_send(report *r);
/* reports a failure, with errno; only the first is printed */
void report_failed(report *r, const char *what);

void report_profile(report *r, wf_plan *plan); /* prints the profile by op; and events */

#endif
