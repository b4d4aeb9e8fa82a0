/* tools/data/stream.h - running text as one sequence of token ids, and windows cut from it.
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
#include "store.h"

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
bool stream_end_document(token_stream *s, char *message); /* an empty document is not counted */
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
 * windows than rows, batches have fewer rows. False: the text is shorter than a window, or out of
 * memory. */
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
