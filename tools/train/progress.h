/* tools/train/progress.h - the lines of a training's progress.
 *
 * On a terminal a bar shows the progress, redrawn in place at most ten times a second. In a pipe or a
 * file there is a line per interval, one every 30 s at least, and never a control character. There are
 * no colours, so NO_COLOR has nothing to do. */
#ifndef WEFT_TOOLS_TRAIN_PROGRESS_H
#define WEFT_TOOLS_TRAIN_PROGRESS_H

#include "tools/cli/report.h"

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

/* Prints a line, or nothing under a bar; and sends the event "step". */
void report_step(report *r, const progress *p);
/* Prints the loss of a validation, and scores of its outputs; "": there are no outputs. */
void report_valid(report *r, const progress *p, const char *scores);
/* Draws the bar; where there is none, prints a line if there was none for 30 s. */
void report_bar(report *r, const progress *p);

#endif
