/* tools/sources/source.h - a kind of training data is a row: sequences that are made up, pairs, running
 * text. dataset.c asks the row; nothing else of `train` knows which kinds there are.
 *
 * A new kind is a file with its row, and a line in SOURCES. */
#ifndef WEFT_TOOLS_SOURCES_SOURCE_H
#define WEFT_TOOLS_SOURCES_SOURCE_H

#include "core/file.h"
#include "tasks.h"
#include "tools/cli/report.h"
#include "tools/data/batch.h"

struct dataset;
struct source_options;

typedef struct source_kind {
    /* It is text: it has tokenizers, and the training counts in epochs. */
    bool text;
    /* Rows are windows of one text, targets without sources: for decoder-only models. */
    bool running;
    /* Opens the data. f: a model's file whose vocabulary is taken, or NULL. False with message[256]. */
    bool (*open)(struct dataset *m, const struct source_options *o, const wf_file *f,
                 char *message);
    /* Frees what open has made, of a dataset that failed too; may be NULL. */
    void (*close)(struct dataset *m);
    /* Prints the sizes of the data, the vocabularies, and what is missing; NULL: nothing to print. */
    void (*announce)(const struct dataset *m, report *r);
    /* Batches in an epoch of the training stream, 0: it never ends; or in a stream that is held out. */
    int64_t (*batches)(const struct dataset *m, task_stream stream);
    /* Puts the training's batches into the order of an epoch, 0 or more; NULL: the order never
     * changes. */
    void (*arrange)(struct dataset *m, int64_t epoch);
    /* Batch k of a stream into out, which grows as needed. False: out of memory. */
    bool (*fill)(const struct dataset *m, task_stream stream, int64_t k, batch *out);
    /* B, S and T of the stream's batch with the most tokens on that side, 0 or 1, or on both, 2. False:
     * the stream has no batches. */
    bool (*largest)(const struct dataset *m, task_stream stream, int side, int64_t *B, int64_t *S,
                    int64_t *T);
    /* The number of row i of batch k in a held-out stream; text[2] gets its lines, or NULLs if it
     * has ids alone. -1: it has no source, so that there is no output to judge. */
    int64_t (*sequence)(const struct dataset *m, task_stream stream, int64_t k, int64_t i,
                        const char *text[2]);
} source_kind;

/* Each row, with the words of --task that choose it, one for each kind of its data. */
#define SOURCES(ROW)                                                                               \
    ROW(made, "copy|reverse|sort")                                                                 \
    ROW(pairs, "|add|date|text")                                                                   \
    ROW(running, "|lm")                                                                            \
    /* the next one: "|word" */

#define DECLARE_SOURCE(name, words) extern const source_kind source_##name;
SOURCES(DECLARE_SOURCE)

#define WORDS_OF_SOURCE(name, words) words
#define LEARN_WORDS SOURCES(WORDS_OF_SOURCE)
/* The row of the word at this place in LEARN_WORDS; NULL below 0. */
const source_kind *source_of_word(int word);

#endif
