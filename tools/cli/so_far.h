/* tools/cli/so_far.h - says how far a filter is in its lines, in one line on stderr.
 *
 * A run of a few seconds says nothing. Afterwards a terminal shows the line, redrawn in place; a
 * pipe or a file gets one every 30 s. */
#ifndef WEFT_TOOLS_CLI_SO_FAR_H
#define WEFT_TOOLS_CLI_SO_FAR_H

#include <sys/types.h>

#include "report.h"
#include "tools/data/text_input.h"

typedef struct so_far {
    report report;
    double worked, since; /* seconds of work until its last rest; time when it went on */
    const text_input *in; /* NULL: nothing is said */
    off_t from;           /* where its first line begins; -1: its lines can't be counted */
    int64_t total;        /* lines of the input; -1: unknown */
} so_far;

/* Opens it. Nothing is said about lines that a person types, or if `quiet`. */
void so_far_begin(so_far *f, const program *p, const text_input *in, bool quiet);
/* Call this before waiting for lines: the time of the wait is not silence. */
void so_far_wait(so_far *f);
/* Call these around work. Their time is the speed's; a wait for input between them is not. */
void so_far_work(so_far *f);
void so_far_rest(so_far *f);
/* Tells how many lines are done, while it works. */
void so_far_show(so_far *f, int64_t done);
/* The text: "1,200 of 40,000 lines, 85 lines/s, about 8 min left"; total -1: it is not known. */
enum { SO_FAR_TEXT = 128 };
const char *so_far_text(int64_t done, int64_t total, double seconds, char text[SO_FAR_TEXT]);

/* The number of lines of a file from `from` on. -1: it is not an ordinary file, is
 * compressed, or cannot be read. */
int64_t lines_in(const text_input *in, off_t from);

#endif
