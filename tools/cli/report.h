/* tools/cli/report.h - what `train` says: to a person on stderr, to a program as JSON lines.
 *
 * An event that can't be composed or written is a failure that is told at once; the training goes
 * on, and report_close knows of it.
 *
 * On a terminal a bar shows the progress, redrawn in place at most ten times a second; in a pipe
 * or a file there is a line per interval, one every 30 s at least, and never a control character. No colours, so NO_COLOR
 * has nothing to do. */
#ifndef WEFT_TOOLS_CLI_REPORT_H
#define WEFT_TOOLS_CLI_REPORT_H

#include "core/graph.h"
#include "jsonl.h"
#include "options.h"

typedef struct progress {
    int64_t step, total;
    double epoch;              /* passes over the text so far; 0 if it is no text */
    double loss;               /* per token, with label smoothing: the training objective */
    double nll;                /* per token, without smoothing: gives the perplexity */
    double accuracy;           /* of tokens, 0..1 */
    double tokens_per_second;  /* target tokens */
    double norm, rate;         /* norm of the gradient; learning rate */
    double elapsed, remaining; /* seconds */
    /* share of the time spent in exchanges with other ranks; negative: a single rank */
    double exchange_share;
    int64_t bytes_sent; /* to other ranks, in the last update */
} progress;

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

void report_step(report *r, const progress *p); /* a line, or nothing under a bar; and an event */
/* validation: loss, and scores of outputs for held-out data; "": no outputs were made */
void report_valid(report *r, const progress *p, const char *scores);
/* The bar; where there is none, a line if there was none for 30 s. */
void report_bar(report *r, const progress *p);
void report_profile(report *r, wf_plan *plan); /* prints the profile by op; and events */

#endif
