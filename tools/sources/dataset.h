/* tools/sources/dataset.h - what a model is trained on and held to: a task on numbers, pairs of text,
 * from files or from a task on text, or running text.
 *
 * A step's batch is a pure function of the dataset, the seed and the step: so a training can stop
 * and go on anywhere. Which kind of data it is, its row says: source.h. What is not here: how pairs are read (corpus.h), cut into batches (batches.h)
 * or made up (tasks.h, text_tasks.h), how running text is read (documents.h) and cut (stream.h). */
#ifndef WEFT_TOOLS_SOURCES_DATASET_H
#define WEFT_TOOLS_SOURCES_DATASET_H

#include "models/generation.h"
#include "models/text.h"
#include "source.h"
#include "tools/data/batches.h"
#include "tools/data/stream.h"
#include "tools/data/survey.h"

/* Pairs held back from training, with their lines as they came. */
typedef struct holdout {
    corpus corpus;
    batches order;    /* from short to long */
    int64_t n;        /* corpus.pairs */
    char **reference; /* [n]: the target's line */
    char **source;    /* [n] */
} holdout;

enum { LEARNED, HELD }; /* of running text: what is learned from, and what is held back */

/* The encoder of a side's lines. */
typedef struct side_reader {
    wf_tokenizer *tokenizer;
    const int32_t *first; /* [n_first]: what every output begins with */
    int n_first;
} side_reader;

typedef struct dataset {
    const source_kind *kind;
    int64_t accum;    /* batches in an update */
    int64_t epoch;    /* whose order is arranged; -1: none yet */
    int64_t vocab[2]; /* of source and target */
    int64_t tokens;   /* of the targets in an epoch; 0: it never ends */
    double longer;    /* tokens that an output may have more than its source */
    batch_ids ids;
    /* text */
    wf_tokenizer *tokenizer[2]; /* of source and target: one object if the vocabulary is shared */
    uint64_t
        hash; /* of the training text's tokens and their number, to know it again; 0: not text */
    /* sequences that are made up */
    task numbers;
    int64_t rows, held; /* in a batch of the training; held out */
    /* pairs */
    wf_generation generation; /* how the model is used, for its forced first tokens */
    side_reader reader[2];
    corpus train;
    batches order;
    holdout valid, test; /* without pairs: there is none */
    bool same;           /* the held-out pairs are those of the training */
    const char *unheld;  /* why nothing is held out, though it was asked for; NULL: something is */
    /* running text */
    token_stream stream[2];
    windows windows[2];
    int64_t unknown[2]; /* tokens that the vocabulary does not have */
    int64_t zeros[2];   /* bytes that no text has */
} dataset;

struct dataset_options;
struct running_options;

/* Functions that set options by the data: called when the lines are surveyed, and when their tokens
 * are counted. */
typedef struct dataset_follower {
    void (*lines)(void *user, const survey *s, struct dataset_options *o);
    void (*tokens)(void *user, const corpus *c, struct dataset_options *o);
    void (*text)(void *user, double bytes, struct running_options *o); /* running text */
    void *user;
} dataset_follower;

/* Sources, tokenizers and batches of pairs of text. A field that is NULL or 0 is not used. */
typedef struct dataset_options {
    int text_task;                  /* a text_task_kind; -1: files */
    const char *train[2];           /* source and target; [1] NULL: a file of both with TABs */
    const char *valid[2];           /* the same; [0] NULL: `held` is held back */
    int64_t held;                   /* pairs of the training's at most, and at most 1 % of them */
    int64_t valid_size;             /* of a text task */
    wf_tokenizer_options tokens[2]; /* how to learn a vocabulary of source and target */
    const char *spm[2];             /* or the files that have it, of source and target */
    bool shared;                    /* one vocabulary for both sides */
    bool targets;                   /* there may be targets without a source */
    int64_t max_tokens;             /* of a sentence: longer pairs are left out */
    batches_limits batches;
    dataset_follower follow; /* its functions may be NULL */
} dataset_options;

/* Sources, tokenizers and batches of running text. A field that is NULL or 0 is not used. */
typedef struct running_options {
    const char *text, *eval;     /* files; no second: what is held back is the end of the first, */
    int64_t eval_bytes;          /* so many bytes, but no more than a tenth */
    const char *marker;          /* a line that ends a document */
    wf_tokenizer_options tokens; /* how to learn a vocabulary */
    int64_t window, rows, accum; /* tokens; windows in a batch; batches in an update */
    uint64_t seed;
    dataset_follower follow;
} running_options;

/* Options for the open functions of all rows of source.h. */
typedef struct source_options {
    task numbers;
    int64_t rows, held; /* sequences that are made up: in a batch; held out */
    dataset_options pairs;
    running_options running;
} source_options;

/* f: a model's file whose vocabulary is taken, or NULL: it is learned. False with message[256]. */
bool dataset_open(dataset *m, const source_kind *kind, const source_options *o, const wf_file *f,
                  char *message);
void dataset_free(dataset *m);        /* also of one that failed */
bool dataset_holds(const dataset *m); /* is anything held out? */
/* Does it have tokenizers? Else its sequences are ids that mean nothing outside their task. */
bool dataset_is_text(const dataset *m);

int64_t dataset_vocab(const dataset *m, int side);
/* Updates in an epoch; 0: it never ends. */
int64_t dataset_updates(const dataset *m);

/* Batches in the update of step `step`, from 1. */
int64_t dataset_parts(dataset *m, int64_t step);
/* Writes batch `part` of that update into out. False: out of memory. */
bool dataset_batch(dataset *m, int64_t step, int64_t part, batch *out);

#endif
