/* tools/data/corpus.h - aligned sentences as token ids, which may be more than fit in memory.
 *
 * Lines are read and encoded once. One store holds the ids (two bytes each if the vocabularies
 * allow it, else four), another an index of 24 bytes per pair. Each store keeps up to `in_memory`
 * bytes in memory; a larger one is a mapped temporary file: see store.h. Pairs with more tokens
 * than the limits are left out and counted. batches.h makes batches of a corpus; pairs.h checks the
 * files. Every `message` has room for 256 bytes. */
#ifndef WEFT_TOOLS_DATA_CORPUS_H
#define WEFT_TOOLS_DATA_CORPUS_H

#include "pairs.h"
#include "store.h"
#include "tools/alignment/links.h"

/* The tokenizer of a side. */
typedef struct text_encoder {
    /* Encode a line. Returns the number of ids, and writes them if they fit in capacity. -1 with
     * message: the line cannot be encoded. */
    int64_t (*encode)(void *user, const char *line, size_t bytes, int32_t *ids, int64_t capacity,
                      char *message);
    void *user;
    int64_t vocab; /* every id is in 0..vocab-1 */
    int64_t first; /* how many ids `encode` itself puts before a line that has tokens */
} text_encoder;

typedef struct corpus_limits {
    /* most tokens of a source and of a target, as encoded; longer pairs are left out */
    int64_t tokens[2];
    bool targets;     /* a source may be empty: the pair is then a target alone */
    bool aligned;     /* every pair has an alignment */
    size_t in_memory; /* bytes that each store keeps in memory; 0: 64 MiB */
} corpus_limits;

typedef struct corpus_pair {
    int64_t offset; /* index in `tokens` of the source's first id; the target follows the source */
    int32_t length[2]; /* tokens of source and target, at least 1 unless the side may be empty */
    int64_t line;      /* number of its line in the files */
} corpus_pair;

typedef struct corpus {
    int64_t pairs, too_long; /* kept; left out */
    int64_t total[2];        /* tokens of all sources and of all targets */
    int32_t longest[2];
    text_encoder encoder[2];
    corpus_limits limits;
    store tokens, index;
    int id_bytes; /* 2 or 4 */
    int32_t *line[2];
    int refused; /* the side because of which corpus_add returned false: 0 source, 1 target */
    /* with limits.aligned: links of the tokens of all pairs */
    link_store links;
    /* of the last pair: its links between words; the word of each token; number of tokens */
    pair_links given;
    int32_t *word[2];
    int32_t length[2];
} corpus;

bool corpus_new(corpus *c, const text_encoder encoder[2], const corpus_limits *limits,
                char *message);
void corpus_free(corpus *c);

/* Add a pair, or count it if it is too long. False: the encoder rejects a side, or a side has no
 * tokens (a source may be empty if limits.targets is set), and the message names `line`; or the
 * pair cannot be stored. */
bool corpus_add(corpus *c, const char *const text[2], const size_t bytes[2], int64_t line,
                char *message);
/* end adding, before the first corpus_at or corpus_ids; false with message, also for an empty
 * corpus */
bool corpus_seal(corpus *c, char *message);

/* Add the pair that p returned last, with its alignment if limits.aligned is set. */
bool corpus_take(corpus *c, const pair_lines *p, char *message);
/* Read all pairs of the files and seal the corpus. */
bool corpus_read(corpus *c, pair_lines *p, char *message);

const corpus_pair *corpus_at(const corpus *c, int64_t pair);
/* Copy the ids of one side into ids[length[side]]. */
void corpus_ids(const corpus *c, int64_t pair, int side, int32_t *ids);

/* "skipped 12 of 3000 pairs: longer than 100 tokens", or "" if none was skipped. Returns
 * buffer[128]. */
const char *corpus_skipped(const corpus *c, char *buffer);

#endif
