/* tools/sources/dataset.h - the data that a model is trained and evaluated on: a task on numbers,
 * pairs of text (from files or from a task on text), or running text.
 *
 * A step's batch is a pure function of the dataset, the seed and the step, so a training can stop
 * and resume anywhere. Each kind of data is a row: source.h. Other files read pairs (corpus.h), cut
 * them into batches (batches.h), generate sequences (tasks.h, text_tasks.h), and read and cut
 * running text (stream.h). */
#ifndef WEFT_TOOLS_SOURCES_DATASET_H
#define WEFT_TOOLS_SOURCES_DATASET_H

#include "class_names.h"
#include "models/generation.h"
#include "models/text.h"
#include "source.h"
#include "spm_file.h"
#include "tools/data/batches.h"
#include "tools/data/pairs.h"
#include "tools/data/stream.h"

/* Pairs held out from training, with their original lines. */
typedef struct holdout {
    corpus corpus;
    batches order;    /* from short to long */
    int64_t n;        /* number of pairs */
    char **reference; /* [n]: the target's line */
    char **source;    /* [n] */
    size_t room[2];   /* elements that `source` and `reference` have room for */
} holdout;

enum { LEARNED, HELD }; /* indices of streams of running text: to learn from; held out */

/* Encodes the lines of one side. */
typedef struct side_reader {
    wf_tokenizer *tokenizer;
    const int32_t *first; /* [n_first]: tokens with which every output begins; NULL for sources */
    int n_first;
} side_reader;

typedef struct dataset {
    const source_kind *kind;
    int64_t accum;    /* batches in an update */
    int64_t epoch;    /* epoch whose order is set; -1: none yet */
    int64_t vocab[2]; /* of source and target */
    /* number of target tokens in an epoch; 0: an epoch never ends, or not all have a loss */
    int64_t tokens;
    double longer; /* how many tokens an output may be longer than its source */
    batch_ids ids;
    /* text */
    /* tokenizers of source and target, one object if the vocabulary is shared */
    wf_tokenizer *tokenizer[2];
    /* hash of the training text's tokens and their number, by which a resume recognises it; 0: no
     * text */
    uint64_t hash;
    /* such a hash for the validation text, if it has files of its own; else 0 */
    uint64_t valid_hash;
    /* for generated sequences */
    task numbers;
    int64_t rows, held; /* sequences in a batch of the training; number of sequences held out */
    /* pairs */
    /* settings of the model for generation, from which forced first tokens come */
    wf_generation generation;
    side_reader reader[2];
    corpus train;
    batches order;
    holdout valid, test; /* empty unless the data are pairs */
    bool one_file;       /* both sides of the training pairs are read from one file */
    bool same; /* the held-out pairs equal the training pairs: scores tell nothing of other pairs */
    const char *unheld; /* sentence to print because nothing is held out; NULL: there is none */
    /* running text */
    token_stream stream[2];
    windows windows[2];
    int64_t unknown[2]; /* number of tokens that are not in the vocabulary */
    int64_t zeros[2];   /* number of '\0' bytes, which are not expected in text */
    int64_t foreign[2]; /* 1 + the offset of the first byte that is not UTF-8; 0: there is none */
    /* hidden tokens: the id that hides a token; the seed by which tokens are hidden */
    int32_t mask;
    uint64_t mask_seed;
    /* spans: the ids that stand for them; the ids that the tokenizer puts around a line, of which
     * n_before stand before it; memory for a window */
    int32_t sentinel[WF_MOST_SENTINELS], around[2];
    int64_t n_sentinels, n_before, n_around;
    int32_t *window;
    /* labels of lines; number of lines that were cut because they are too long */
    class_names classes;
    int64_t cut;
} dataset;

struct dataset_options;
struct running_options;

/* Callbacks that set options by the data. For pairs: when the lines have been surveyed, and when
 * their tokens have been counted. For running text: when its size is known. */
typedef struct dataset_follower {
    void (*lines)(void *user, const survey *s, struct dataset_options *o);
    void (*tokens)(void *user, const corpus *c, struct dataset_options *o);
    void (*text)(void *user, double bytes, struct running_options *o);
    void *user;
} dataset_follower;

/* Sources, tokenizers and batches for pairs of text. Fields that are NULL or 0 are not used. */
typedef struct dataset_options {
    int text_task; /* a text_task_kind; -1: the pairs are in files */
    /* files of source and target; [1] NULL: one file of both with TABs */
    const char *train[2];
    /* file with an alignment for each pair of the training; NULL: there are none */
    const char *alignments;
    /* files for validation, in the same form; [0] NULL: `held` pairs are held out */
    const char *valid[2];
    /* most pairs of the training to hold out; never more than 1 % of them */
    int64_t held;
    int64_t valid_size;             /* of a text task: pairs to validate with */
    wf_tokenizer_options tokens[2]; /* options for learning the vocabularies of source and target */
    /* .spm files with the vocabularies of source and target; NULL: they are learned */
    const char *spm[2];
    spm_ids ids;                  /* of tokenizers from files */
    const char *json, *end_token; /* a tokenizer.json instead; its token that ends an output */
    bool shared;                  /* both sides share one vocabulary */
    bool targets;                 /* targets without a source are allowed */
    int64_t max_tokens; /* most tokens of a sentence; longer pairs are left out, or lines cut */
    batches_limits batches;
    dataset_follower follow; /* its callbacks may be NULL */
} dataset_options;

/* Sources, tokenizers and batches for running text. Fields that are NULL or 0 are not used. */
typedef struct running_options {
    /* files of text to learn from and to validate with; eval NULL: the end of `text` is held out */
    const char *text, *eval;
    int64_t eval_bytes;           /* bytes held out at the end of `text`; at most a tenth */
    const char *marker;           /* a line that ends a document */
    wf_tokenizer_options tokens;  /* options for learning a vocabulary */
    const char *json, *end_token; /* a tokenizer.json instead, and its token that ends a document */
    int64_t window, rows;         /* tokens in a window; windows in a batch */
    uint64_t seed;
    dataset_follower follow;
} running_options;

/* Options for the open functions of all rows in source.h. */
typedef struct source_options {
    task numbers;
    int64_t rows, held; /* for generated sequences: how many in a batch; how many held out */
    int64_t accum;      /* batches in an update; the last update of an epoch may have fewer */
    dataset_options pairs;
    running_options running;
} source_options;

/* Open a dataset. f: a model's file whose vocabulary is used, or NULL to learn one. False with
 * message[256]. */
bool dataset_open(dataset *m, const source_kind *kind, const source_options *o, const wf_file *f,
                  char *message);
void dataset_free(dataset *m);        /* also after a failed dataset_open */
bool dataset_holds(const dataset *m); /* true if anything is held out */
/* The unit that has losses: "tokens", "lines", or "hidden" tokens alone. */
const char *dataset_unit(const dataset *m);
/* True if it has tokenizers. Otherwise ids have a meaning only within a task. */
bool dataset_is_text(const dataset *m);

int64_t dataset_vocab(const dataset *m, int side);
/* Updates in an epoch; 0: an epoch never ends. */
int64_t dataset_updates(const dataset *m);

/* Number of batches in the update of a step, which counts from 1. */
int64_t dataset_parts(dataset *m, int64_t step);
/* Write batch `part` of that update into out. False: out of memory. */
bool dataset_batch(dataset *m, int64_t step, int64_t part, batch *out);

/* ---- functions that rows share, with the contracts of source_kind ---------------------------- */

/* source_running.c, for all rows that cut windows out of a text */
bool open_running(dataset *m, const source_options *o, const wf_file *f, char *message);
void close_running(dataset *m);
void announce_running(const dataset *m, report *r);
int64_t count_windows(const dataset *m, task_stream stream);
void arrange_windows(dataset *m, int64_t epoch);
int64_t no_sequence(const dataset *m, task_stream stream, int64_t k, int64_t i,
                    const char *text[2]);
const windows *windows_of(const dataset *m, task_stream stream);

/* source_pairs.c, for all rows that read pairs. find_lines is the `sequence` of encoders: it gives
 * a row's lines, and returns -1, because there is no output to evaluate. */
bool open_pairs(dataset *m, const source_options *o, const wf_file *f, char *message);
void close_pairs(dataset *m);
int64_t count_pairs_batches(const dataset *m, task_stream stream);
void arrange_pairs(dataset *m, int64_t epoch);
int64_t find_lines(const dataset *m, task_stream stream, int64_t k, int64_t i, const char *text[2]);

/* Set the encoders of lines and of their labels (source_classify.c). */
void classify_encoders(dataset *m, text_encoder encoder[2]);

#endif
