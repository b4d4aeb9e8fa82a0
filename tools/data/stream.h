/* tools/data/stream.h - running text: a file in parts, one sequence of token ids, and windows cut
 * from it.
 *
 * A store holds the ids, two bytes each if the vocabulary allows it, else four: up to a limit in
 * memory, beyond it in a mapped temporary file (store.h). The end token comes before the first
 * document, between documents, and after the last one. A window has T tokens, and as labels the
 * token after each of them. It may begin and end anywhere. Every `message` has room for 256
 * bytes. */
#ifndef WEFT_TOOLS_DATA_STREAM_H
#define WEFT_TOOLS_DATA_STREAM_H

#include <stdint.h>

#include "batch.h"
#include "text_input.h"

/* ---- documents: a text in parts -------------------------------------------------------------- */

/* A line that consists of the marker alone ends a document, and is not text itself. The text comes
 * in parts: a line, or for a very long line a piece that ends between characters. So files of any
 * size are read with little memory. Nothing is dropped or changed, not even "\r" or invalid UTF-8.
 *
 *     documents d;
 *     documents_start(&d, from, 0, SIZE_MAX, "<|endoftext|>");
 *     while ((status = documents_next(&d, &part, &bytes)) > 0) ...
 *     documents_close(&d); */

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

/* ---- ids ------------------------------------------------------------------------------------- */

typedef struct token_stream {
    store ids;
    int id_bytes; /* 2 or 4 */
    int32_t end;
    int64_t n;         /* number of ids, including end tokens */
    int64_t documents; /* number of documents that are not empty */
    int64_t bytes;     /* bytes of the text that the ids stand for */
    int64_t ended;     /* bytes of the documents that have ended */
} token_stream;

/* Make a stream for ids in 0..vocab-1. in_memory: the limit in bytes, 0 for 64 MiB. */
bool stream_new(token_stream *s, int64_t vocab, int32_t end, size_t in_memory, char *message);
void stream_free(token_stream *s); /* does nothing for a stream of zeros */
/* Append n ids, which stand for `bytes` bytes of text, to the current document. */
bool stream_add(token_stream *s, const int32_t *ids, int64_t n, int64_t bytes, char *message);
bool stream_end_document(token_stream *s, char *message); /* ignores an empty document */
bool stream_seal(token_stream *s, char *message); /* ends appending, and the last document */
void stream_ids(const token_stream *s, int64_t from, int64_t n, int32_t *ids);

/* ---- windows --------------------------------------------------------------------------------- */

typedef struct windows {
    const token_stream *of;
    int64_t T, rows; /* tokens in a window; windows in a batch */
    /* every token is used once, in order; the last window and the last batch may be short.
     * Otherwise windows are shuffled, and cut at another offset in every epoch */
    bool whole;
    uint64_t seed;
    int64_t n, batches; /* number of windows and of batches in an epoch, the same in all epochs */
    int64_t first;      /* offset of the first window in this epoch */
    uint32_t *turn;     /* [n]: the i-th window of this epoch; NULL if whole */
} windows;

/* Cut a sealed stream, which must live longer than w, and arrange epoch 0. If there are fewer
 * windows than rows, batches have fewer rows. False with message: the text has not one window and
 * the token after it (if whole, not 2 tokens), there are 2^32 windows or more, or out of memory. */
bool windows_new(windows *w, const token_stream *of, int64_t T, int64_t rows, bool whole,
                 uint64_t seed, char *message);
void windows_free(windows *w);
/* Arrange the windows of an epoch, 0 or more. */
void windows_epoch(windows *w, int64_t epoch);
/* Write the tokens of row `row` of batch i, at most T, into ids. Returns how many there are. */
int64_t windows_tokens(const windows *w, int64_t i, int64_t row, int32_t *ids);
/* The number of rows of batch i. */
int64_t windows_rows(const windows *w, int64_t i);
/* Write batch i, 0..batches-1, into out, as targets without sources. False: out of memory. */
bool windows_fill(const windows *w, int64_t i, batch *out);

#endif
