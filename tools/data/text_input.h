/* tools/data/text_input.h - opens text for all programs: a file, a pipe or stdin, plain or
 * compressed by gzip.
 *
 * A gzip file is recognised by its first two bytes, and decompressed by zlib while it is read. Its
 * checksums must be right, and it must end after them. In a build without zlib the first read fails
 * with a message. So it does for a text in UTF-16, a model, a file of another compression, and a
 * pointer of Git LFS, which are recognised by their first bytes. */
#ifndef WEFT_TOOLS_DATA_TEXT_INPUT_H
#define WEFT_TOOLS_DATA_TEXT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct unpacker;

enum { TEXT_HEAD = 48 }; /* bytes that tell the encoding, or another kind of file */

typedef struct text_input {
    int file;             /* -1: not open */
    bool packed;          /* it is a gzip file; for a pipe this is known after the first read */
    bool looked;          /* the first bytes have been examined */
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
/* True if bytes or the end can be read without waiting for a writer. */
bool text_input_ready(const text_input *in);

#endif
