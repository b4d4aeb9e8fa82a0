/* tools/data/lines.h - lines from a stream as they come, and the token ids on them.
 *
 * A batch is as many lines as are there, so that a pipe is answered without waiting for its end. */
#ifndef WEFT_TOOLS_DATA_LINES_H
#define WEFT_TOOLS_DATA_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spool.h"
#include "text_input.h"

enum { LONGEST_LINE = 1 << 20 }; /* bytes */

typedef struct lines {
    text_input file;
    spool *from; /* instead of the file, if it is not NULL: read up to `at` */
    size_t at;
    char *buffer;
    size_t begin, end, capacity; /* what was read and not yet returned: [begin, end) */
    bool at_end;
    int64_t number; /* of the line returned last, from 1 */
    size_t length;  /* bytes of that line: it may hold '\0' */
} lines;

typedef enum { LINE_READ, LINE_WAIT, LINE_END, LINE_TOO_LONG, LINE_FAILED } line_status;

bool lines_open(lines *l, const char *path); /* NULL, "-": stdin. False: errno */
/* Starts at the beginning of an open spool. The first reading of a spool goes to its end. */
void lines_start(lines *l, spool *from);
const char *lines_failure(const lines *l); /* after LINE_FAILED: why, at once */
void lines_close(lines *l);

/* The next line, ended by '\0', valid until the next call; a byte order mark before the first one
 * is dropped. With wait false: LINE_WAIT if reading it would have to wait for the writer. */
line_status lines_next(lines *l, bool wait, char **line);

/* Ids separated by blanks, each in 0..vocab-1, of which the first `most` are written. Returns how
 * many there are, none if the line is blank, or -1 with the reason in message[256]. */
int64_t parse_ids(const char *line, int64_t vocab, int64_t most, int32_t *ids, char *message);

#endif
