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
    double began;
    const text_input *in; /* NULL: nothing is said */
    off_t from;           /* where its first line begins; -1: its lines can't be counted */
    int64_t total;        /* lines of the input; -1: unknown */
} so_far;

/* Begins to wait for lines. Nothing is said about lines that a person types, or if `quiet`. */
void so_far_begin(so_far *f, const program *p, const text_input *in, bool quiet);
/* Tells how many lines are done. */
void so_far_show(so_far *f, int64_t done);
/* The text: "1,200 of 40,000 lines, 85 lines/s, about 8 min left"; total -1: it is not known. */
enum { SO_FAR_TEXT = 128 };
const char *so_far_text(int64_t done, int64_t total, double seconds, char text[SO_FAR_TEXT]);

/* The number of lines of a file from `from` on. -1: it is not an ordinary file, or compressed. */
int64_t lines_in(const text_input *in, off_t from);

#endif
