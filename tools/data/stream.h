/* tools/data/stream.h - running text as one sequence of token ids, and the windows that are cut out
 * of it.
 *
 * The ids stand in a store, two bytes each if the vocabulary allows it, else four: up to a limit in
 * memory, beyond it in a mapped temporary file (store.h). Before the first document, between two
 * and after the last stands the end. A window is T tokens and the T that follow each of them; it
 * may begin and end anywhere. Every `message` has room for 256 bytes. */
#ifndef WEFT_TOOLS_DATA_STREAM_H
#define WEFT_TOOLS_DATA_STREAM_H

#include <stdint.h>

#include "batch.h"
#include "store.h"

typedef struct token_stream {
    store ids;
    int id_bytes; /* 2 or 4 */
    int32_t end;
    int64_t n;         /* ids, the ends among them */
    int64_t documents; /* those that are not empty */
    int64_t bytes;     /* of the text that the ids are of */
    int64_t ended;     /* of these, those of documents that have ended */
} token_stream;

/* ids are in 0..vocab-1; in_memory: bytes, 0: 64 MiB. */
bool stream_new(token_stream *s, int64_t vocab, int32_t end, size_t in_memory, char *message);
void stream_free(token_stream *s); /* all zeros: there is none */
/* Appends n ids, of so many bytes of text, to the current document. */
bool stream_add(token_stream *s, const int32_t *ids, int64_t n, int64_t bytes, char *message);
bool stream_end_document(token_stream *s, char *message); /* an empty one is none */
bool stream_seal(token_stream *s, char *message); /* nothing more comes; the last document ends */
void stream_ids(const token_stream *s, int64_t from, int64_t n, int32_t *ids);

/* ---- windows --------------------------------------------------------------------------------- */

typedef struct windows {
    const token_stream *of;
    int64_t T, rows, accum; /* tokens; windows in a batch; batches in an update */
    bool whole;             /* every token once, in order: the last window, and the last batch, may
                               be short. Else shuffled, and cut elsewhere in every epoch */
    uint64_t seed;
    int64_t n, batches; /* of an epoch: the same in all of them */
    int64_t first;      /* where the first window of this epoch begins */
    uint32_t *turn;     /* [n] the window whose turn comes i-th; NULL if whole */
} windows;

/* Cuts a sealed stream, which must outlive w, and arranges epoch 0. There are fewer rows if there
 * are not as many windows. False: the text is shorter than a window, or out of memory. */
bool windows_new(windows *w, const token_stream *of, int64_t T, int64_t rows, int64_t accum,
                 bool whole, uint64_t seed, char *message);
void windows_free(windows *w);
/* Arranges the windows of an epoch, 0 or more. */
void windows_epoch(windows *w, int64_t epoch);
int64_t windows_updates(const windows *w);             /* of an epoch */
int64_t windows_end(const windows *w, int64_t update); /* the batch after its last */
/* Writes batch i, 0..batches-1, into out: targets without sources. False: out of memory. */
bool windows_fill(const windows *w, int64_t i, batch *out);

#endif
