/* tools/data/spool.h - a file of any kind that is read several times from its start.
 *
 * Some input can be read only once: a pipe, a FIFO, a terminal, the output of another command, a
 * gzip file. It is stored while it is read for the first time: see store.h. An ordinary file stays
 * open. If it changes before the last reading, that reading fails. */
#ifndef WEFT_TOOLS_DATA_SPOOL_H
#define WEFT_TOOLS_DATA_SPOOL_H

#include <sys/stat.h>
#include <sys/types.h>

#include "store.h"
#include "text_input.h"

typedef struct spool {
    text_input in; /* its file is -1 if the spool is not open */
    /* the input can be read only once and is stored; it has been read to the end */
    bool keeps, complete;
    struct stat first; /* status of the file when it was opened */
    store kept;
    char failure[256]; /* why spool_read failed, if errno does not tell; else "" */
} spool;

bool spool_open(spool *s, const char *path); /* "-": stdin. False: errno */
void spool_close(spool *s);

/* Read up to n bytes from offset `at` on. Returns 0 at the end, and -1 on failure: see
 * spool_failure. The first reading must go from the start to the end. */
ssize_t spool_read(spool *s, size_t at, char *bytes, size_t n);
const char *spool_failure(const spool *s);

/* Read a whole file of at most 256 MiB into new memory, which the caller frees. NULL with
 * message[256]. */
char *spool_whole(const char *path, size_t *size, char *message);

#endif
