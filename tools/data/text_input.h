/* tools/data/text_input.h - the one place where programs open text: a file, a pipe or stdin, as it
 * stands or packed by gzip.
 *
 * A gzip file is known by its first two bytes and unpacked by zlib while it is read; its checksums
 * must be right, and it must end where they say. In a build without zlib the first reading fails
 * and says so. */
#ifndef WEFT_TOOLS_DATA_TEXT_INPUT_H
#define WEFT_TOOLS_DATA_TEXT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct unpacker;

typedef struct text_input {
    int file;         /* -1: not open */
    bool packed;      /* a gzip file, as far as is known: of a pipe after the first reading */
    bool looked;      /* the first bytes have been seen */
    int n_first;      /* bytes of a pipe that were read to see what it is */
    char first[2];    /* these bytes, which are still to be returned */
    char failure[96]; /* why text_input_read failed, if it was not the file; else "" */
    struct unpacker *unpacker;
} text_input;

/* NULL or "-" is stdin. False: errno. */
bool text_input_open(text_input *in, const char *path);
void text_input_close(text_input *in);
/* Reads up to n bytes. Returns 0 at the end; -1: text_input_failure says why, or errno is EINTR:
 * try again. */
ssize_t text_input_read(text_input *in, char *bytes, size_t n);
const char *text_input_failure(const text_input *in);
/* Can it be read, bytes or the end, without waiting for a writer? */
bool text_input_ready(const text_input *in);

#endif
