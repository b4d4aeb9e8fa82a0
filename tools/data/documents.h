/* tools/data/documents.h - reads running text from a file: lines with their line breaks, and the
 * boundaries of documents.
 *
 * A line that consists of the marker alone ends a document, and is not text itself. The text comes
 * in parts: a line, or for a very long line a piece that ends between characters. So files of any
 * size are read with little memory. Nothing is dropped or changed, not even "\r" or invalid UTF-8.
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
    size_t at, stop; /* offset that is read next; offset at which reading stops */
    const char *marker;
    char *buffer; /* [LONGEST_PART + 1] */
    size_t begin, end;
    bool inside; /* the next part continues a long line */
} documents;

typedef enum { TEXT_FAILED = -1, TEXT_END, TEXT_PART, TEXT_MARKER } text_status;

/* Start reading from byte `from` to `stop`, and on to the end of the line there. The first reading
 * of a spool must go to its end. marker NULL: the text is one document. */
void documents_start(documents *d, spool *s, size_t from, size_t stop, const char *marker);
/* Return a part, which is valid until the next call, or TEXT_MARKER for the line of a marker. After
 * TEXT_FAILED call spool_failure at once. */
text_status documents_next(documents *d, const char **part, size_t *bytes);
void documents_close(documents *d);

/* The offset of the next part. */
size_t documents_at(const documents *d);

#endif
