/* tools/cli/so_far.h - prints the progress of a filter in one line on stderr: how many lines are
 * done.
 *
 * Nothing is printed in the first seconds. Afterwards a terminal shows the line, redrawn in place;
 * a pipe or a file gets a line every 30 s. */
#ifndef WEFT_TOOLS_CLI_SO_FAR_H
#define WEFT_TOOLS_CLI_SO_FAR_H

#include <sys/types.h>

#include "report.h"
#include "tools/data/text_input.h"

typedef struct so_far {
    report report;
    /* seconds of work up to the last so_far_rest; time of the last so_far_work */
    double worked, since;
    const text_input *in; /* NULL: nothing is said */
    off_t from;           /* offset in `in` of the first line; -1: lines can't be counted */
    int64_t total;        /* lines of the input; -1: unknown; -2: not counted yet */
} so_far;

/* Begin. Nothing is printed about lines that a person types, or if `quiet`. */
void so_far_begin(so_far *f, const program *p, const text_input *in, bool quiet);
/* Call this before waiting for lines: the 30 s until the next line of progress start anew. */
void so_far_wait(so_far *f);
/* Call so_far_work before a piece of work and so_far_rest after it. Only time between these two
 * calls counts for the speed, so waits for input do not. */
void so_far_work(so_far *f);
void so_far_rest(so_far *f);
/* During work: print how many lines are done, if it is time to. */
void so_far_show(so_far *f, int64_t done);
/* The text: "1,200 of 40,000 lines, 85 lines/s, about 8 min left". total -1: unknown. */
enum { SO_FAR_TEXT = 128 };
const char *so_far_text(int64_t done, int64_t total, double seconds, char text[SO_FAR_TEXT]);

/* The number of lines of a file from `from` on. -1: it is not an ordinary file, is
 * compressed, or cannot be read. */
int64_t lines_in(const text_input *in, off_t from);

#endif
