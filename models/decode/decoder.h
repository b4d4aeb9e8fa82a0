/* models/decode/decoder.h - inside models: what the files of decoding share. Not installed.
 *
 * decoder.c         the decoder: its plans, its memory, a start, one cached step
 * decode_options.c  what may be asked for
 * search.c          wf_decode: sentences, their hypotheses, and the rows that these occupy
 * beam.c            how a sentence goes on: the likeliest hypotheses
 * sample.c          or tokens drawn at random
 * rules.c           what a hypothesis has already changes what may come: repetition, the end
 * candidates.c      the likeliest tokens of one row of logits
 * decode_results.c  what is handed back
 * score.c           forced scoring
 * generation.c      the settings of a search in a model's file
 *
 * A row is a place in the batch of the step plan. A hypothesis is the start of an output; each
 * live one occupies a row of its own. */
#ifndef WEFT_MODELS_DECODE_DECODER_H
#define WEFT_MODELS_DECODE_DECODER_H

#include "models/decode.h"

/* Memory of the host that only ever grows, aligned as plans like it. */
typedef struct grown {
    char *data;
    size_t bytes;
} grown;

/* What encoding handed over: one tensor, a slice for each sentence. */
typedef struct handed {
    wf_tensor *tensor;
    grown sentences;
    size_t slice; /* bytes */
} handed;

struct wf_decoder {
    wf_model *model;
    wf_pool *pool;
    wf_plan *encode, *prompt; /* of a source apart, or in one row: the other is NULL */
    wf_plan *step, *score;    /* score: NULL until it is asked for */
    wf_state *state;
    int capacity;       /* rows that the state has room for */
    handed *handed;     /* [model->n_handed] */
    int32_t *row_index; /* [capacity] of each row: its sentence, whose slices it reads */
    grown prompts;
    const void *logits; /* of the last step, [rows,V] in the model's type: the plan's */
    int64_t source_length;
    bool busy; /* inside a call: a callback that makes another one is refused */
    char error[512];
};

WF_PRINTF(2, 3) bool wf_decoder_fail(wf_decoder *d, const char *format, ...);
bool wf_decoder_fail_plan(wf_decoder *d, wf_plan *p); /* with the plan's error */
/* Around each public call. False: the decoder is inside another one. */
bool wf_decoder_enter(wf_decoder *d);
void wf_decoder_leave(wf_decoder *d);
/* Are there b sentences of at most s tokens, each of at least one if they are read apart, and none
 * too long? */
bool wf_decoder_lengths_ok(wf_decoder *d, int b, int s, const int32_t *src,
                           const int32_t *src_length);
/* Room for that many rows, and encode b sentences that are read apart. */
bool wf_decoder_begin(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length,
                      int most_rows);
/* From now on there are n rows; row i reads sentence owner[i]. */
bool wf_decoder_rows(wf_decoder *d, int n, const int *owner);
/* In one row: what stands at a position of a row up to its newest token; the source has n. */
int32_t wf_decoder_prompted(const wf_decoder *d, const int32_t *src, int64_t n, int64_t position);
/* In one row: the first n tokens of each of b rows go through the caches. */
bool wf_decoder_prompt(wf_decoder *d, int b, int s, const int32_t *src, int64_t n);
/* Feed each row its newest token; d->logits are what follows it. */
bool wf_decoder_step(wf_decoder *d, const int32_t *ids, int64_t position);

/* ---- candidates.c ---------------------------------------------------------------------------- */

typedef struct candidate {
    double log_prob; /* natural logarithm, by the whole vocabulary */
    int32_t token;
} candidate;

/* A row of logits, f32 or f64. open: of the same type; 0 where a token is not allowed. */
typedef struct logit_row {
    wf_dtype real;
    int64_t vocab;
    const void *logits, *open;
} logit_row;

double wf_logit_at(const logit_row *r, const void *values, int64_t i);
/* log(sum exp(logits)); not finite if a logit is NaN or infinite upwards */
double wf_logit_normaliser(const logit_row *r);
/* The k likeliest of those allowed, the best first, lower ids before their equals. Returns their
 * number: k, or all that are allowed. */
int wf_likeliest(const logit_row *r, double normaliser, int k, candidate *top);

/* ---- a search: search.c ---------------------------------------------------------------------- */

typedef struct trace {     /* one token of a hypothesis, and what came before it */
    int32_t token, before; /* index; -1: nothing */
    double log_prob;
} trace;

typedef struct live {
    int row, sample; /* sample: which of the draws it is */
    int32_t last;    /* its trace, -1: no token yet */
    double total;
} live;

typedef struct ended {
    int32_t last;
    int64_t length; /* tokens, the end not among them */
    double end_log_prob, total, score;
    bool cut;
} ended;

typedef struct sentence {
    int64_t index, limit;  /* its name for drawing; tokens at most */
    int64_t begin;         /* the position whose logits its first token is chosen by */
    const int32_t *prompt; /* [begin] what is fed before the start */
    int n_live, n_ended;
    live *live;   /* beam: the best first */
    ended *ended; /* beam: the best first; draws: in their order */
} sentence;

typedef struct child { /* a live hypothesis and one token more */
    int parent, sample;
    int32_t token;
    double log_prob, total;
} child;

typedef struct search {
    wf_decoder *d;
    const wf_decode_options *o;
    int b, width, per_row; /* live hypotheses of a sentence, and candidates of a row, at most */
    sentence *sentences;
    live *all_live;
    ended *all_ended;
    int64_t position; /* of the newest token of every row */
    int rows;         /* in the plan's batch, those that nobody occupies among them */
    int *owner;       /* [2 most_rows] sentence, -1: nobody */
    int32_t *from;    /* which row it was */
    int32_t *ids;     /* its newest token */
    int32_t *from_before, *ids_before; /* the same, while rows change places */
    trace *traces;
    int32_t n_traces;
    size_t cap_traces;
    candidate *candidates;  /* [most_rows, per_row] */
    int *n_candidates;      /* [most_rows] */
    bool *cut;              /* [most_rows] the end is forced on it, and was not the likeliest */
    child *next;            /* [width] */
    int *heads;             /* [width] */
    void *open[2];          /* [V] which tokens are allowed: before an end may come, and then */
    char *scratch;          /* of each thread, to draw in, and behind that for the rules */
    size_t stride, drawing; /* bytes of a thread; of these, to draw in */
} search;

/* Tokens of each of its live hypotheses; below 0: it still reads its prompt. */
int64_t wf_length_of(const search *q, const sentence *s);
const candidate *wf_candidates_of(const search *q, const live *h);
/* The hypothesis ends here; its place among those that have ended is `at`. */
void wf_end_hypothesis(const search *q, sentence *s, const live *h, const candidate *end, int at);
double wf_length_penalty_of(const wf_decode_options *o, int64_t length); /* length with the end */
/* Of a hypothesis that ends now. */
double wf_end_penalty(const search *q, const sentence *s);

/* What follows a sentence's live hypotheses: into q->next, and among the ended. Returns the
 * number of children, 0 if the sentence is done. */
int wf_beam_advance(search *q, sentence *s);
int wf_sample_advance(search *q, sentence *s);
/* Draw n tokens for a sentence, the draws first, first + 1, ... */
void wf_draw_tokens(const search *q, const logit_row *r, double normaliser, const sentence *s,
                    int first, int n, char *scratch, candidate *out);
size_t wf_draw_scratch(int64_t vocab); /* bytes */

/* ---- rules.c --------------------------------------------------------------------------------- */

bool wf_ranks_log_probs(const wf_decode_options *o); /* a beam; else logits decide */
size_t wf_rules_scratch(const wf_decode_options *o, const wf_model *m);
/* Does any rule change a row, of a hypothesis with so many tokens? */
bool wf_rules_apply_to(const search *q, const logit_row *r, double normaliser, int64_t length);
/* The row's logits become those in scratch, which the rules have changed, and its normaliser that
 * of what is allowed if there is one wanted. False: no token is allowed. */
bool wf_apply_rules(const search *q, const sentence *s, int row, char *scratch, logit_row *of,
                    double *normaliser);

/* ---- decode_options.c, decode_results.c ------------------------------------------------------ */

bool wf_options_ok(wf_decoder *d, const wf_decode_options *o, int b);
bool wf_make_results(search *q, wf_decoded *results);

#endif
