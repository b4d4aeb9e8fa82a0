/* tools/data/documents.h - running text, as it stands in a file: lines with their ends, and where
 * one document ends and the next begins.
 *
 * A document ends where a line is the marker and nothing else; that line is no text. A part of the
 * text is a line, or of a very long one a piece that ends between characters, so that a file of
 * any size is read with little memory. Nothing is dropped or changed: not "\r", not what is no
 * UTF-8.
 *
 *     documents d;
 *     documents_start(&d, from, 0, SIZE_MAX, "<|endoftext|>");
 *     while ((status = documents_next(&d, &part, &bytes)) > 0) ...
 *     documents_close(&d); */
#ifndef WEFT_TOOLS_DATA_DOCUMENTS_H
#define WEFT_TOOLS_DATA_DOCUMENTS_H

#include "spool.h"

enum { LONGEST_PART = 1 << 16 }; /* bytes */

typedef struct documents {
    spool *from;
    size_t at, stop; /* what is read next, and where to stop reading */
    const char *marker;
    char *buffer; /* [LONGEST_PART + 1] */
    size_t begin, end;
    bool inside; /* a long line: what comes is the rest of it */
} documents;

typedef enum { TEXT_FAILED = -1, TEXT_END, TEXT_PART, TEXT_MARKER } text_status;

/* Starts to read the bytes from `from` to `stop`, and on to the end of the line there. The first
 * reading of a spool goes to its end. marker NULL: all is one document. */
void documents_start(documents *d, spool *s, size_t from, size_t stop, const char *marker);
/* Returns a part, which is valid until the next call, or TEXT_MARKER for the line of a marker.
 * After TEXT_FAILED call spool_failure at once. */
text_status documents_next(documents *d, const char **part, size_t *bytes);
void documents_close(documents *d);

/* The offset of the next part. */
size_t documents_at(const documents *d);

#endif
