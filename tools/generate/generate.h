/* tools/generate/generate.h - inside generate: what its files share.
 *
 * generate.c         options, opening, closing
 * generate_search.c  how it is searched: options, and what the model's file says
 * generate_long.c    lines that are longer than the model reads
 * generate_lines.c   lines in, sorted by length and cut into batches; results out, in order
 * generate_output.c  a result as text or JSON; the comparison with references
 * generate_stream.c  text as it is made
 * explain.c          the page of --explain: explain.h */
#ifndef WEFT_TOOLS_GENERATE_GENERATE_H
#define WEFT_TOOLS_GENERATE_GENERATE_H

#include <stdio.h>

#include "attention_maps.h"
#include "models/generation.h"
#include "tools/cli/options/options.h"
#include "tools/cli/output.h"
#include "tools/data/language.h"
#include "tools/data/lines.h"
#include "tools/metrics/metrics.h"

#define TOKEN_IDS "token ids" /* the case of a model without a vocabulary */
/* the case of a language model, whose outputs continue the input */
#define GOES_ON "text that goes on"

enum { LONG_CROP, LONG_SPLIT, LONG_SKIP, LONG_STOP }; /* the words of --long-lines */

typedef struct settings {
    const char *model, *input, *output, *attention, *reference, *explain;
    /* the prompt that replaces the input lines; or NULL */
    const char *prompt;
    const char *source_language, *target_language; /* or NULL */
    const char *begin_suppress;                    /* ids, or NULL */
    bool stream, raw;
    int64_t max_new; /* most tokens of an output; 0: max_len_a and max_len_b decide */
    bool draw;       /* --attention - */
    bool score, json, quiet, sample;
    bool scores; /* a line begins with its score */
    int64_t beam, nbest, top_k, min_len, seed, no_repeat_ngram, decay_start;
    int64_t batch_size, threads;
    double max_len_a, max_len_b, length_penalty, top_p, temperature, repetition_penalty, decay;
    int penalty, stop, at_limit, weights, long_lines; /* indices into the words of each choice */
} settings;

typedef struct explanation explanation; /* explain.c */

/* A line of input, or a part of one, with its output. */
typedef struct sentence {
    int64_t line; /* its number, from 1 */
    int64_t part; /* the number of the part, from 1, if the line is split; 0: the whole line */
    bool more;    /* another part of its line follows */
    bool skipped; /* it was too long */
    int32_t *ids; /* the source, then the target if it is given */
    int64_t src_length, tgt_length;
    char *source;             /* the line as it came, for JSON and --explain; else NULL */
    wf_decoded decoded;       /* the outputs; none for an empty line */
    double *log_probs, total; /* or, when scoring: [tgt_length + 1] */
    bool done;
} sentence;

/* The output that is being streamed. */
typedef struct streaming {
    int32_t *ids;   /* [max_len] */
    int64_t n;      /* tokens so far */
    size_t written; /* bytes */
} streaming;

typedef struct job {
    const program *program; /* named in messages about failures */
    const settings *set;
    wf_generation generation;
    wf_decode_options options;
    language language;
    wf_file *file; /* the model's, while it is opened */
    wf_model *model;
    wf_pool *pool;
    wf_decoder *decoder;
    attention attention;
    streaming stream;
    lines in;
    /* a result without a stream goes to stdout; a picture without one is not drawn */
    output result, picture, page;
    explanation *explanation; /* NULL: none is wanted */
    FILE *out;
    jsonl line, weights;      /* JSON to the result; JSON to the picture */
    int64_t low, high;        /* lengths of lines it was trained on; high 0: not known */
    int64_t n, written, room; /* sentences in the window; those of them that are written */
    sentence *window;         /* [room], in the order of the input */
    int32_t *ids;             /* [max_len] of a source and [max_len] of a target, as read */
    int64_t around;           /* the special tokens around a source, which an empty one has too */
    char **reference;         /* [n_reference] */
    int64_t n_reference;
    metrics *metrics;
    int64_t out_of_range, unfinished, sentences, tokens;
    int64_t escaped;            /* line breaks, and tabs in columns */
    int64_t n_long, first_long; /* the number of lines that were too long; the first of them */
    int64_t last_long;          /* the last of them */
    char why_long[WF_MESSAGE];  /* and its length, as text */
    /* the joined outputs of the parts of a line so far, to compare with the reference */
    char *joined;
    bool drawn;     /* the picture of the first line is drawn */
    double seconds; /* spent working, without waiting for lines */
} job;

/* ---- generate_search.c ----------------------------------------------------------------------- */

void check_options(const program *p, settings *set); /* checks that need no model */
/* Choose the search settings: options, else those of the model's file f, else the defaults of
 * its kind. */
void choose_search(job *j, program *p, settings *set, const wf_file *f);
wf_decode_options decode_options(const settings *set, const wf_generation *lists);

/* ---- generate_long.c ------------------------------------------------------------------------- */

/* Encodes one side of a line as at most `most` ids. Returns their number, after cropping if the
 * line is too long; -1: skip the line. */
int64_t read_side(job *j, int side, const char *text, size_t bytes, int32_t *ids, int64_t most);
/* The number of a target's n ids to keep where `most` fit; -1: skip the line. */
int64_t shorten_target(job *j, int64_t n, int64_t most);
/* The bytes of the longest beginning of a line that fits as a part; 0: it fits as a whole, or
 * lines are not split. */
size_t part_that_fits(job *j, char *line, size_t bytes);
void warn_of_long_lines(const job *j);

/* ---- generate_lines.c ------------------------------------------------------------------------ */

/* Answers the lines before a bad one, then reports the bad one and exits. */
_Noreturn void refuse_line(job *j, const char *why);
/* The name of the input, for messages. */
const char *input_name(const job *j);
/* Reads all references. Checks that the input has as many lines, if they can be counted now. */
void open_references(job *j);
/* Room for a window of lines. */
void open_window(job *j);
/* Answers the prompt, or all lines of the input. */
void answer_lines(job *j);
void close_window(job *j);

/* ---- generate_stream.c ----------------------------------------------------------------------- */

/* With --stream: from now on each token is written when it is chosen. */
void open_stream(job *j);
void begin_stream(job *j);                               /* of another line, or part */
void end_stream(job *j, const char *text, size_t bytes); /* the rest of its text */

/* ---- explain.c ------------------------------------------------------------------------------- */

/* With --explain: from now on the search is recorded. */
void open_explanation(job *j);
void close_explanation(job *j);
void explain_answer(job *j, const sentence *s); /* writes the page */
bool explanation_written(const job *j);

/* ---- generate_output.c ----------------------------------------------------------------------- */

/* The text of an output, to be freed, without the tokens that it was forced to begin with. */
char *output_text(const job *j, const wf_hypothesis *h, size_t *bytes);
/* Writes a part of an output, with line breaks escaped unless --raw is given. */
void write_text(job *j, const char *text, size_t n);
/* Ends the program if the reader of its output is gone; called after every write. */
void check_reader(const job *j);
void write_answer(job *j, const sentence *s);
void write_prompt(job *j);
void draw_attention(job *j, const sentence *s);
void compare_answer(job *j, const sentence *s);
void write_metrics(job *j);
void say_speed(const job *j);

#endif
