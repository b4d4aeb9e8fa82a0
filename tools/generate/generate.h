/* tools/generate/generate.h - inside generate: what its files share.
 *
 * generate.c         options, opening, closing
 * generate_lines.c   lines in, sorted by length and cut into batches; results out, in order
 * generate_output.c  a result as text or JSON; the comparison with references
 * generate_stream.c  text as it is made */
#ifndef WEFT_TOOLS_GENERATE_GENERATE_H
#define WEFT_TOOLS_GENERATE_GENERATE_H

#include <stdio.h>

#include "attention.h"
#include "models/generation.h"
#include "tools/cli/options.h"
#include "tools/cli/output.h"
#include "tools/data/language.h"
#include "tools/data/lines.h"
#include "tools/metrics/metrics.h"

typedef struct settings {
    const char *model, *input, *output, *attention, *reference;
    const char *prompt;                            /* instead of lines; or NULL */
    const char *source_language, *target_language; /* or NULL */
    bool stream;
    int64_t max_new; /* tokens at most; 0: as max_len_a and max_len_b say */
    bool draw;       /* --attention - */
    bool score, json, quiet, sample;
    bool scores; /* a line begins with its score */
    int64_t beam, nbest, top_k, min_len, seed;
    int64_t batch_size, threads;
    double max_len_a, max_len_b, length_penalty, top_p, temperature;
    int penalty, stop, at_limit, weights; /* which of the words */
} settings;

/* A line on its way through. */
typedef struct sentence {
    int64_t line; /* its number, from 1 */
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
    bool drawn;     /* a picture, which is of the first line */
    double seconds; /* at work, not waiting for lines */
} job;

/* ---- generate_lines.c ------------------------------------------------------------------------ */

/* What to call the input. */
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
void begin_stream(job *j);                               /* of another line */
void end_stream(job *j, const char *text, size_t bytes); /* the rest of its text */

/* ---- generate_output.c ----------------------------------------------------------------------- */

void write_answer(job *j, const sentence *s);
void write_prompt(const job *j);
void draw_attention(job *j, const sentence *s);
void compare_answer(job *j, const sentence *s);
void write_metrics(job *j);
void say_speed(const job *j);

#endif
