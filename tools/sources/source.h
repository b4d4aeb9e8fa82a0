/* tools/sources/source.h - the kinds of training data, as rows: generated sequences, pairs, running
 * text, hidden tokens, spans, labels. dataset.c calls the functions of a row; other parts of
 * `train` read its flags.
 *
 * To add a kind, write a file with its row, and add a line to SOURCES. */
#ifndef WEFT_TOOLS_SOURCES_SOURCE_H
#define WEFT_TOOLS_SOURCES_SOURCE_H

#include "core/file.h"
#include "tasks.h"
#include "tools/cli/report.h"
#include "tools/data/batch.h"

struct dataset;
struct source_options;

typedef struct source_kind {
    /* It is text: it has tokenizers, and the training counts epochs. */
    bool text;
    /* Rows of a batch are windows of one text; for decoder-only models they are targets without
     * sources. */
    bool running;
    /* The model is an encoder, which has no outputs. */
    bool encoder;
    /* Tokens of a text are hidden, and the model predicts them. */
    bool masks;
    /* With masks: spans of tokens are hidden, and the model has an encoder and a decoder, as T5. */
    bool spans;
    /* Targets are labels of classes, and the model finds them. */
    bool classifies;
    /* Open the data. f: a model's file whose vocabulary is used, or NULL. False with
     * message[256]. */
    bool (*open)(struct dataset *m, const struct source_options *o, const wf_file *f,
                 char *message);
    /* Free what `open` has allocated, even if it failed; may be NULL. */
    void (*close)(struct dataset *m);
    /* Print the sizes of the data, the vocabularies, and what is missing; NULL: nothing to
     * print. */
    void (*announce)(const struct dataset *m, report *r);
    /* The number of batches in an epoch of the training stream (0: it never ends), or in a held-out
     * stream. */
    int64_t (*batches)(const struct dataset *m, task_stream stream);
    /* Put the training batches into the order of an epoch, 0 or more; NULL: their order never
     * changes. */
    void (*arrange)(struct dataset *m, int64_t epoch);
    /* Write batch k of a stream into out, which grows as needed. False: out of memory. */
    bool (*fill)(const struct dataset *m, task_stream stream, int64_t k, batch *out);
    /* B, S and T of the stream's batch with the most tokens on one side (0, 1) or on both (2).
     * False: the stream has no batches. */
    bool (*largest)(const struct dataset *m, task_stream stream, int side, int64_t *B, int64_t *S,
                    int64_t *T);
    /* The number of row i of batch k in a held-out stream. text[2] gets its lines, or NULLs if it
     * has only ids. -1: the row has no source, so there is no output to evaluate. */
    int64_t (*sequence)(const struct dataset *m, task_stream stream, int64_t k, int64_t i,
                        const char *text[2]);
} source_kind;

/* All rows, with the words of --task that select each one. */
#define SOURCES(ROW)                                                                               \
    ROW(made, "copy|reverse|sort")                                                                 \
    ROW(pairs, "|add|date|text")                                                                   \
    ROW(running, "|lm")                                                                            \
    ROW(contrast, "|pairs")                                                                        \
    ROW(mask, "|mask")                                                                             \
    ROW(classify, "|classify")                                                                     \
    ROW(spans, "|spans")                                                                           \
    /* the next one: "|word" */

#define DECLARE_SOURCE(name, words) extern const source_kind source_##name;
SOURCES(DECLARE_SOURCE)

#define WORDS_OF_SOURCE(name, words) words
#define LEARN_WORDS SOURCES(WORDS_OF_SOURCE)
/* The row for index `word` of LEARN_WORDS; NULL: there is no such index. */
const source_kind *source_of_word(int word);

#endif
