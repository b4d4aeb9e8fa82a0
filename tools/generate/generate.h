/* tools/generate/generate.h - shared by the files of generate.
 *
 * generate.c         options, opening, closing
 * generate_search.c  search settings: from options and from the model's file
 * generate_long.c    lines that are too long for the model
 * generate_lines.c   reads lines, sorts them by length into batches, writes results in order
 * generate_output.c  a result as text or JSON, also streamed; the comparison with references
 * generate_align.c   alignments of words, beside outputs or beside given targets
 * explain.c          the page of --explain: explain.h */
#ifndef WEFT_TOOLS_GENERATE_GENERATE_H
#define WEFT_TOOLS_GENERATE_GENERATE_H

#include <stdio.h>

#include "align.h"
#include "attention_maps.h"
#include "models/generation.h"
#include "tools/alignment/links.h"
#include "tools/cli/options/options.h"
#include "tools/cli/output.h"
#include "tools/cli/so_far.h"
#include "tools/data/language.h"
#include "tools/data/lines.h"
#include "tools/metrics/metrics.h"

#define TOKEN_IDS "token ids" /* names the case of defaults for a model without a vocabulary */
/* names the case of defaults for a language model, whose outputs continue the input */
#define GOES_ON "models of running text"
#define SCORES "--score" /* names the case of defaults for given outputs */

enum { LONG_CROP, LONG_SPLIT, LONG_SKIP, LONG_STOP }; /* indices of the words of --long-lines */

typedef struct settings {
    const char *model, *adapter, *input, *output, *attention, *reference, *explain;
    /* the prompt that replaces the input lines; or NULL */
    const char *prompt;
    const char *source_language, *target_language; /* or NULL */
    const char *suppress, *begin_suppress;         /* ids, or NULL */
    const char *shortlist;
    bool stream, raw, draw; /* draw: --attention - */
    int64_t max_new;        /* --max-new-tokens; 0: max_len_a and max_len_b determine the maximum */
    const char *alignment;  /* --alignment; NULL: none is wanted */
    align_rule align;       /* the same, after parsing */
    bool score, json, quiet, sample;
    bool scores; /* each output line begins with its score */
    int64_t beam, nbest, top_k, min_len, seed, no_repeat_ngram, decay_start;
    int64_t batch_size, threads;
    double max_len_a, max_len_b, length_penalty, top_p, temperature, repetition_penalty, decay;
    int penalty, stop, at_limit, weights, arithmetic, long_lines; /* indices of their words */
} settings;

typedef struct explanation explanation; /* explain.c */

/* A line of input, or a part of one, with its output. */
typedef struct sentence {
    int64_t line; /* its number, from 1 */
    int64_t part; /* number of the part, from 1, if the line was split; 0: it is a whole line */
    bool more;    /* another part of the same line follows */
    bool skipped; /* it was too long, and --long-lines skip leaves it out */
    int32_t *ids; /* ids of the source, and then of the target if it is given */
    int64_t src_length, tgt_length;
    char *source; /* the line as it was read, for JSON and --explain; otherwise NULL */
    /* the outputs; none for an empty line, unless the model continues it */
    wf_decoded decoded;
    double *log_probs, total; /* when scoring instead: log_probs [tgt_length + 1] and their sum */
    bool done;
    token_words src_words, tgt_words; /* with --alignment: words of the source; of a given target */
} sentence;

/* The output that is being streamed. */
typedef struct streaming {
    int32_t *ids;   /* [max_len] */
    int64_t n;      /* tokens so far */
    size_t written; /* bytes */
} streaming;

typedef struct job {
    const program *program; /* the program that messages about failures name */
    const settings *set;
    wf_generation generation;
    wf_decode_options options;
    wf_shortlist *shortlist; /* NULL: there is none */
    language language;
    wf_file *file; /* the model's file, while the model is opened */
    wf_model *model;
    wf_pool *pool;
    wf_decoder *decoder;
    attention attention;
    int align_head; /* the head by which words are aligned; -1: the mean of all */
    streaming stream;
    lines in;
    /* where outputs go. Without a stream, a result goes to stdout, and a picture is not drawn */
    output result, picture, page;
    explanation *explanation; /* NULL: none is wanted */
    FILE *out;
    jsonl line, weights; /* line: JSON of results; weights: JSON of the attention */
    int64_t low, high;   /* lengths of lines that the model was trained on; high 0: unknown */
    /* window: sentences in it, written ones, capacity; answered: written lines */
    int64_t n, written, room, answered;
    so_far progress;
    sentence *window; /* [room], in the order of the input */
    /* [max_len] for a source and [max_len] for a target, before they are copied */
    int32_t *ids;
    int64_t around;   /* special tokens around a source, which even an empty one has */
    char **reference; /* [n_reference] */
    int64_t n_reference;
    size_t reference_room;
    metrics *metrics;
    int64_t out_of_range, tabbed, unfinished, sentences, tokens; /* tabbed: sources with a tab */
    int64_t read, unknown;   /* tokens of the sources, and how many of them the vocabulary lacks */
    char first_unknown[160]; /* where the first unknown token is */
    /* line breaks, and with --nbest tabs, that were escaped; outputs cut at the model's length */
    int64_t escaped, filled;
    /* how many lines were too long; numbers of the first and the last; the message of the first */
    int64_t n_long, first_long, last_long;
    char why_long[WF_MESSAGE];
    int64_t last_outside; /* the last line that was counted in out_of_range */
    /* output so far of a line that was split, for comparing it with the reference */
    char *joined;
    bool drawn;     /* the picture of the first line has been drawn */
    double seconds; /* time spent working, without waiting for lines */
} job;

/* ---- generate_search.c ----------------------------------------------------------------------- */

void check_options(const program *p, settings *set); /* exits if options are invalid */
/* Choose each search setting: the option if it was given, else that of the model's file f, else the
 * default for such a model. */
void choose_search(job *j, program *p, settings *set, const wf_file *f);
wf_decode_options decode_options(const settings *set, const wf_generation *lists);

/* ---- generate_long.c ------------------------------------------------------------------------- */

/* Encode one side of a line as at most `most` ids. Returns their number, after cropping if the line
 * is too long. -1: skip the line. */
int64_t read_side(job *j, int side, const char *text, size_t bytes, int32_t *ids, int64_t most);
/* How many of a target's n ids to keep if only `most` fit. -1: skip the line. */
int64_t shorten_target(job *j, int64_t n, int64_t most);
/* The length in bytes of the next part to cut off a line that is too long. 0: no cut, because the
 * line fits, lines are not split, or not even its first character fits. */
size_t part_that_fits(job *j, char *line, size_t bytes);
void warn_of_long_lines(const job *j);

/* ---- generate_lines.c ------------------------------------------------------------------------ */

/* Answer the lines before an invalid one, then report the invalid line and exit. */
_Noreturn void refuse_line(job *j, const char *why);
const char *input_name(const job *j); /* for messages */
void warn_of_limits(const job *j);    /* warns at the end of lines that were cut, and the like */
/* Read all references. Check that the input has the same number of lines, if they can be counted
 * now. */
void open_references(job *j);
void open_window(job *j);  /* allocates the window of lines */
void answer_lines(job *j); /* answers the prompt, or all lines of the input */
void close_window(job *j);

/* ---- generate_output.c: streaming ------------------------------------------------------------ */

/* For --stream: from now on each token is written as soon as it is chosen. */
void open_stream(job *j);
void begin_stream(job *j);                               /* begins another line or part */
void end_stream(job *j, const char *text, size_t bytes); /* writes the rest of its text */

/* ---- explain.c ------------------------------------------------------------------------------- */

/* For --explain: from now on the search is recorded. */
void open_explanation(job *j);
void close_explanation(job *j);
void explain_answer(job *j, const sentence *s); /* writes the page */
bool explanation_written(const job *j);

/* ---- generate_align.c ------------------------------------------------------------------------ */

/* Chooses the head of --alignment, which f may name. Exits if the model has no cross-attention. */
void open_alignment(job *j, const wf_file *f);
/* Find the words of a sentence's source, and of its given target. Without --alignment these
 * functions do nothing. */
void note_source_words(job *j, sentence *s, const char *line, size_t bytes);
void note_target_words(job *j, sentence *s, const char *line, size_t bytes);
void free_words(sentence *s);
/* Write the alignment of an output, of a given target, or of an empty line, which has no links. */
void align_output(job *j, const sentence *s, const wf_hypothesis *h);
void align_given(job *j, const sentence *s);
void align_nothing(job *j);

/* ---- generate_output.c ----------------------------------------------------------------------- */

/* The text of an output, which the caller frees. Forced first tokens that are not text are left
 * out. */
char *output_text(const job *j, const wf_hypothesis *h, size_t *bytes);
/* Write a part of an output, with line breaks escaped unless --raw is given. */
void write_text(job *j, const char *text, size_t n);
void write_answer(job *j, const sentence *s);
void write_prompt(job *j);
void draw_attention(job *j, const sentence *s);
void compare_answer(job *j, const sentence *s);
void write_metrics(job *j);
void say_speed(const job *j);

#endif
