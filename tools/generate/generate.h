/* tools/generate/generate.h - inside generate: what its files share.
 *
 * generate.c         options, opening, closing
 * generate_search.c  how it is searched: options, and what the model's file says
 * generate_long.c    lines that are longer than the model reads
 * generate_lines.c   lines in, sorted by length and cut into batches; results out, in order
 * generate_output.c  a result as text or JSON; the comparison with references
 * generate_stream.c  text as it is made */
#ifndef WEFT_TOOLS_GENERATE_GENERATE_H
#define WEFT_TOOLS_GENERATE_GENERATE_H

#include <stdio.h>

#include "attention_maps.h"
#include "models/generation.h"
#include "tools/cli/options.h"
#include "tools/cli/output.h"
#include "tools/data/language.h"
#include "tools/data/lines.h"
#include "tools/metrics/metrics.h"

#define TOKEN_IDS "token ids"       /* the case of a model without a vocabulary */
#define GOES_ON "text that goes on" /* of one whose outputs go on from what they are given */

enum { LONG_CROP, LONG_SPLIT, LONG_SKIP, LONG_STOP }; /* the words of --long-lines */

typedef struct settings {
    const char *model, *input, *output, *attention, *reference;
    const char *prompt;                            /* instead of lines; or NULL */
    const char *source_language, *target_language; /* or NULL */
    const char *begin_suppress;                    /* ids, or NULL */
    bool stream, raw;
    int64_t max_new; /* tokens at most; 0: as max_len_a and max_len_b say */
    bool draw;       /* --attention - */
    bool score, json, quiet, sample;
    bool scores; /* a line begins with its score */
    int64_t beam, nbest, top_k, min_len, seed, no_repeat_ngram, decay_start;
    int64_t batch_size, threads;
    double max_len_a, max_len_b, length_penalty, top_p, temperature, repetition_penalty, decay;
    int penalty, stop, at_limit, weights, long_lines; /* which of the words */
} settings;

/* A line on its way through. */
typedef struct sentence {
    int64_t line; /* its number, from 1 */
    int64_t part; /* of a line that is split, from 1; 0: it is whole */
    bool more;    /* another part of its line follows */
    bool skipped; /* it was too long */
    int32_t *ids; /* the source, then the target if it is given */
    int64_t src_length, tgt_length;
    char *source;             /* the line as it came, for JSON; else NULL */
    wf_decoded decoded;       /* what was generated: nothing of an empty line */
    double *log_probs, total; /* or, when scoring: [tgt_length + 1] */
    bool done;
} sentence;

/* The output that is being made. */
typedef struct streaming {
    int32_t *ids;      /* [max_len] */
    int64_t n, forced; /* of its own tokens, and of those that it was made to begin with */
    size_t written;    /* bytes */
} streaming;

typedef struct job {
    const program *program; /* in whose name failures are told */
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
    output result, picture; /* without a stream: it goes to stdout; there is none */
    FILE *out;
    jsonl line, weights;      /* to out; to the picture */
    int64_t low, high;        /* lengths of lines it was trained on; high 0: not known */
    int64_t n, written, room; /* sentences in the window; those of them that are written */
    sentence *window;         /* [room], in the order of the input */
    int32_t *ids;             /* [max_len] of a source and [max_len] of a target, as read */
    int64_t around;           /* ids of a source without a token */
    char **reference;         /* [n_reference] */
    int64_t n_reference;
    metrics *metrics;
    int64_t out_of_range, unfinished, sentences, tokens;
    int64_t escaped;            /* line breaks, and tabs in columns */
    int64_t n_long, first_long; /* lines that were too long; the number of the first */
    int64_t last_long;          /* and of the last */
    char why_long[WF_MESSAGE];  /* and how long it was */
    char *joined;               /* the outputs of the parts of a line so far, for a comparison */
    bool drawn;                 /* a picture, which is of the first line */
    double seconds;             /* at work, not waiting for lines */
} job;

/* ---- generate_search.c ----------------------------------------------------------------------- */

void check_options(const program *p, settings *set); /* what can be told without the model */
/* Search settings of the model in f: those asked for, then what the file says, then its kind's defaults. */
void choose_search(job *j, program *p, settings *set, const wf_file *f);
wf_decode_options decode_options(const settings *set, const wf_generation *lists);

/* ---- generate_long.c ------------------------------------------------------------------------- */

/* A side of a line as ids, at most `most` of them: as many as there are, or what is kept of them, or
 * -1 if the line is to be skipped. */
int64_t read_side(job *j, int side, const char *text, size_t bytes, int32_t *ids, int64_t most);
/* How many of a target's n ids are kept where `most` fit; -1: the line is to be skipped. */
int64_t shorten_target(job *j, int64_t n, int64_t most);
/* How much of a line, from its beginning, is a part of it that fits; 0: it fits as a whole, or is not
 * to be split. */
size_t part_that_fits(job *j, char *line, size_t bytes);
void warn_of_long_lines(const job *j);

/* ---- generate_lines.c ------------------------------------------------------------------------ */

/* Lines before a bad one are answered; then the bad one is told. */
_Noreturn void refuse_line(job *j, const char *why);
/* The name of the input, for messages. */
const char *input_name(const job *j);
/* All references into memory; the input's lines must be as many, if they can be counted now. */
void open_references(job *j);
/* Room for a window of lines. */
void open_window(job *j);
/* The prompt, or everything from the first line to the last. */
void answer_lines(job *j);
void close_window(job *j);

/* ---- generate_stream.c ----------------------------------------------------------------------- */

/* If it is wanted: from now on what is chosen is written at once. */
void open_stream(job *j);
void begin_stream(job *j);                               /* of another line, or part */
void end_stream(job *j, const char *text, size_t bytes); /* the rest of its text */

/* ---- generate_output.c ----------------------------------------------------------------------- */

/* A part of an output, its line breaks escaped unless they are wanted as they are. */
void write_text(job *j, const char *text, size_t n);
/* After every write: a pipe that nobody reads any more ends the program. */
void check_reader(const job *j);
void write_answer(job *j, const sentence *s);
void write_prompt(job *j);
void draw_attention(job *j, const sentence *s);
void compare_answer(job *j, const sentence *s);
void write_metrics(job *j);
void say_speed(const job *j);

#endif
