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
    double epoch;              /* of text: how often it was seen; else 0 */
    double loss;               /* per token, smoothed if labels are: what is trained */
    double nll;                /* per token, unsmoothed: what perplexity comes from */
    double accuracy;           /* of tokens, 0..1 */
    double tokens_per_second;  /* target tokens */
    double norm, rate;         /* of the gradient; of learning */
    double elapsed, remaining; /* seconds */
    double exchange_share;     /* of the time, with other ranks; below 0: there are none */
    int64_t bytes_sent;        /* to them, in the last update */
} progress;

typedef struct report {
    bool quiet, json;         /* nothing on stderr; events on stdout */
    bool bar;                 /* stderr is a terminal that can redraw */
    bool drawn;               /* a bar stands on the current line */
    bool titled;              /* the lines have had their heading */
    double drawn_at, said_at; /* the bar; a line */
    const program *program;   /* in whose name failures are told */
    int log;                  /* descriptor; -1: none */
    jsonl event;              /* the one being composed */
    bool failed;              /* something that was to be told is not */
} report;

/* log: NULL, or the file to write (append: go on with it). False: it can't be opened (errno). */
bool report_open(report *r, const program *p, bool quiet, bool json, const char *log, bool append);
bool report_close(report *r); /* false: events are missing, as was told */

void report_clear(report *r); /* take the bar off the screen, for what is not said by say */
void say(report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* jsonl *e = event(r, "step"); json_int(e, ...); event_send(r); NULL if nobody reads events. */
jsonl *event(report *r, const char *name);
void event_send(report *r);
void report_failed(report *r, const char *what); /* tell it once, with errno */

void report_step(report *r, const progress *p); /* a line, or nothing under a bar; and an event */
/* what outputs for unseen sequences are worth; "": none were made */
void report_valid(report *r, const progress *p, const char *scores);
/* The bar; where there is none, a line if there was none for 30 s. */
void report_bar(report *r, const progress *p);
void report_profile(report *r, wf_plan *plan); /* where the time went, by op; and events */

#endif
