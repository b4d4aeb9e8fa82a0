/* tools/data/text_input.h - opens text for all programs: a file, a pipe or stdin, plain or
 * compressed by gzip.
 *
 * A gzip file is recognised by its first two bytes, and decompressed by zlib while it is read. Its
 * checksums must be right, and it must end after them. In a build without zlib the first read fails
 * with a message. The first read also fails for a text in UTF-16, a model, a file of another
 * compression, an archive, and a pointer of Git LFS, which are recognised by their first bytes. */
#ifndef WEFT_TOOLS_DATA_TEXT_INPUT_H
#define WEFT_TOOLS_DATA_TEXT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "store.h"

struct unpacker;

enum { TEXT_HEAD = 48 }; /* bytes that tell the encoding, or another kind of file */

typedef struct text_input {
    int file;             /* -1: not open */
    bool packed;          /* it is a gzip file; for a pipe this is known after the first read */
    bool looked;          /* the first bytes have been examined */
    bool takes_archives;  /* it need not be a text, and may be an archive, as a model.npz */
    int n_first;          /* number of bytes of a pipe that were read to recognise it */
    char first[2];        /* these bytes, which are returned by the next read */
    char head[TEXT_HEAD]; /* the first bytes of the text, after unpacking */
    int n_head;
    char failure[256]; /* why text_input_read failed, if errno does not tell; else "" */
    struct unpacker *unpacker;
} text_input;

/* path NULL or "-" is stdin. False: see errno. */
bool text_input_open(text_input *in, const char *path);
void text_input_close(text_input *in);
/* Read up to n bytes. Returns 0 at the end. -1: see text_input_failure. */
ssize_t text_input_read(text_input *in, char *bytes, size_t n);
const char *text_input_failure(const text_input *in);
/* The words to put behind a message about a line of `in`, which may be NULL: that the file does not
 * look like a text, or how to convert one that is not UTF-8, else "". */
const char *text_input_remedy(const text_input *in, const char *message);
/* True if bytes or the end can be read without waiting for a writer. */
bool text_input_ready(const text_input *in);

/* ---- a file that is read several times from its start ---------------------------------------- */

/* Some input can be read only once: a pipe, a FIFO, a terminal, the output of another command, a
 * gzip file. A spool stores it while it is read for the first time: see store.h. An ordinary file
 * stays open, and is read again. Once it has changed, reading it fails. */
typedef struct spool {
    text_input in; /* its file is -1 if the spool is not open */
    /* keeps: the input can be read only once, and is stored; complete: it was read to its end */
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

/* Read a whole file of less than 256 MiB, text or not, into new memory, which the caller frees.
 * NULL with message[256]. */
char *spool_whole(const char *path, size_t *size, char *message);

#endif
