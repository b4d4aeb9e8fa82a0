/* tools/cli/report.h - progress of `train`, `bench` and `generate` while they work: text on stderr
 * for readers, and JSON lines for programs.
 *
 * If an event cannot be composed or written, a message says so at once. The work goes on, and
 * report_close returns the failure. */
#ifndef WEFT_TOOLS_CLI_REPORT_H
#define WEFT_TOOLS_CLI_REPORT_H

#include "core/graph.h"
#include "jsonl.h"
#include "tools/cli/options/options.h"

typedef struct report {
    bool quiet, json;         /* quiet: nothing on stderr; json: events on stdout */
    bool bar;                 /* stderr is a terminal on which a bar can be redrawn */
    bool drawn;               /* a bar was drawn, and no line said since */
    bool titled;              /* the heading of the lines has been printed */
    double drawn_at, said_at; /* time of the last bar; time of the last line */
    const program *program;   /* the program that messages about failures name */
    int log;                  /* descriptor; -1: none */
    jsonl event;              /* the event that is being composed */
    bool failed;              /* an event could not be written */
} report;

/* log: the file to write, or NULL; append: continue it. False: it cannot be opened (errno). */
bool report_open(report *r, const program *p, bool quiet, bool json, const char *log, bool append);
bool report_close(report *r); /* false: events are missing, and a message has said so */

/* True if it is time to say how far the work is: a bar is redrawn at most ten times a second, and
 * without one a line is due if none was printed for 30 s. */
bool report_due(const report *r, double now);
void report_draw(report *r, const char *text, double now); /* draws the bar */
/* removes the bar, before output that does not go through this file */
void report_clear(report *r);
void say(report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Begins an event: jsonl *e = event(r, "step"); json_int(e, ...); event_send(r). NULL if there is
 * no log and `json` is false; json_... and event_send then do nothing. */
jsonl *event(report *r, const char *name);
void event_send(report *r);
/* report a failure with errno, or with its reason in words; only the first is printed */
void report_failed(report *r, const char *what);
void report_failed_because(report *r, const char *what, const char *why);

/* ---- the time of a plan, summed by op: profile.c --------------------------------------------- */

typedef struct profile_row {
    const char *op;
    double seconds, flops, bytes;
    int64_t calls;
} profile_row;

/* The rows, slowest first; the caller frees them. NULL: out of memory. */
profile_row *profile_rows(wf_plan *plan, int *n);
/* prints the rows, and sends them as events */
void report_profile(report *r, wf_plan *plan);

#endif
