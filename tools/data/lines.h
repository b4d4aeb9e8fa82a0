/* tools/data/lines.h - reads lines from a stream as they arrive, and the token ids in them.
 *
 * A program takes as many lines as have arrived, so that it answers a pipe without waiting for its
 * end. */
#ifndef WEFT_TOOLS_DATA_LINES_H
#define WEFT_TOOLS_DATA_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text_input.h"

enum { LONGEST_LINE = 1 << 20 }; /* bytes */

typedef struct lines {
    text_input file;
    /* a spool that is read instead of `file`, or NULL; `at`: offset of the next read */
    spool *from;
    size_t at;
    char *buffer;
    size_t begin, end, capacity; /* data read and not yet returned: [begin, end) */
    bool at_end;
    int64_t number; /* number of the last line returned, counted from 1 */
    size_t length;  /* bytes of that line, which may contain '\0' */
} lines;

typedef enum { LINE_READ, LINE_WAIT, LINE_END, LINE_TOO_LONG, LINE_FAILED } line_status;

bool lines_open(lines *l, const char *path); /* NULL, "-": stdin. False: errno */
/* Start at the beginning of an open spool. The first reading of a spool must go to its end. */
void lines_start(lines *l, spool *from);
const char *lines_failure(const lines *l); /* the reason of a LINE_FAILED; call it at once */
void lines_close(lines *l);

/* The next line, terminated by '\0', valid until the next call. A byte order mark at the start is
 * dropped. With wait false it returns LINE_WAIT instead of waiting for the writer. */
line_status lines_next(lines *l, bool wait, char **line);

/* The words to put behind a message about a line: see text_input_remedy. */
const char *lines_remedy(const lines *l, const char *message);

/* Read ids separated by spaces, each in 0..vocab-1, and write the first `most`. Returns how many
 * there are, 0 for a blank line, or -1 with the reason in message[256]. */
int64_t parse_ids(const char *line, int64_t vocab, int64_t most, int32_t *ids, char *message);

#endif
