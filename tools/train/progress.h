/* tools/train/progress.h - prints what will be trained and how, and the progress of a training.
 *
 * On a terminal a bar shows the progress, redrawn in place at most ten times a second. A pipe or a
 * file gets a line per interval, and at least one every 30 s, without control characters. There are
 * no colours, so NO_COLOR has no effect. */
#ifndef WEFT_TOOLS_TRAIN_PROGRESS_H
#define WEFT_TOOLS_TRAIN_PROGRESS_H

#include "tools/cli/report.h"

typedef struct progress {
    int64_t step, total;
    /* the unit that has losses: "tokens" (NULL, too), "lines", or "hidden" tokens alone */
    const char *unit;
    double epoch; /* passes over the text so far; 0 if the data are not text */
    /* loss per unit with label smoothing, which is the training objective */
    double loss;
    /* loss per unit without smoothing, from which perplexity is computed */
    double nll;
    /* loss of guided alignment per token; negative: no alignments are learned */
    double alignment;
    double accuracy;           /* share of right units, 0..1 */
    double speed;              /* target tokens, or what unit says, per second */
    double norm, rate;         /* norm of the gradient; learning rate */
    double elapsed, remaining; /* seconds */
    /* share of the time spent in exchanges with other ranks; negative: there are no other ranks */
    double exchange_share;
    bool learned;       /* the validation pairs are the training pairs themselves */
    int64_t bytes_sent; /* bytes sent to other ranks in the last update */
} progress;

struct session;
/* Before the first step, print data, model, recipe, machine and resume on stderr, and send the
 * event "run". memory: the bytes that this process will need at its peak. */
void announce(struct session *s, double memory);

/* counts_lines: is the unit "lines"? speed_key: the name of the speed in events, "lines_per_second"
 * for this unit, else "tokens_per_second". */
bool counts_lines(const char *unit);
const char *speed_key(const char *unit);
/* Print a line, unless a progress bar is shown, and send the event "step". */
void report_step(report *r, const progress *p);
/* Print the loss of a validation and the scores of its outputs; scores "": there are no outputs. */
void report_valid(report *r, const progress *p, const char *scores);
/* Draw the progress bar. Where none is shown, print a line if none was printed for 30 s. */
void report_bar(report *r, const progress *p);

#endif
