/* tools/data/spool.h - a file that is read several times from its start, whatever kind of file it
 * is.
 *
 * What can be read once only (a pipe, a FIFO, a terminal, the output of another command, a gzip
 * file) is kept while it is read for the first time: see store.h. An ordinary file stays open and must not change
 * until the last reading: that it did is a failure, not another text. */
#ifndef WEFT_TOOLS_DATA_SPOOL_H
#define WEFT_TOOLS_DATA_SPOOL_H

#include <sys/stat.h>
#include <sys/types.h>

#include "store.h"
#include "text_input.h"

typedef struct spool {
    text_input in;        /* its file is -1: not open */
    bool keeps, complete; /* it can be read once only, from start to end; and that was done */
    struct stat first;    /* as it was when it was opened */
    store kept;
    char failure[256]; /* why spool_read failed, if it was not the file; else "" */
} spool;

bool spool_open(spool *s, const char *path); /* "-": stdin. False: errno */
void spool_close(spool *s);

/* Up to n bytes from `at` on; 0 at the end; -1: spool_failure says why. The first reading goes
 * from the start to the end. */
ssize_t spool_read(spool *s, size_t at, char *bytes, size_t n);
const char *spool_failure(const spool *s);

#endif
