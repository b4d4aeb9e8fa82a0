/* models/decode/decoder.h - inside models: shared by the files of decoding. Not installed.
 *
 * decoder.c         the decoder: its plans and memory, reading a batch, one cached step
 * decode_options.c  defaults and checks of options
 * search.c          wf_decode: sentences, their hypotheses, and the batch rows they occupy
 * beam.c            extends the likeliest hypotheses
 * sample.c          or draws tokens at random
 * rules.c           changes logits by the tokens so far: repetition, the end
 * watch.c           tells a listener what each step ranks and decides
 * candidates.c      finds the likeliest tokens of a row of logits
 * decode_results.c  writes the results
 * score.c           the log-probabilities of given outputs
 * generation.c      decoding settings in a model's file */
#ifndef WEFT_MODELS_DECODE_DECODER_H
#define WEFT_MODELS_DECODE_DECODER_H

#include "models/decode.h"

/* Host memory that only grows, aligned as plans need it. */
typedef struct grown {
    char *data;
    size_t bytes;
} grown;

/* One tensor of the encoder outputs: it has a slice for each sentence. */
typedef struct memory_part {
    wf_tensor *tensor;
    grown sentences;
    /* bytes */
    size_t slice;
} memory_part;

struct wf_decoder {
    wf_model *model;
    wf_pool *pool;
    /* an encoder-decoder has the first, a decoder-only model the second; the other one is NULL */
    wf_plan *encode, *prompt;
    /* step: one decoding step; score: made when it is first needed */
    wf_plan *step, *score;
    wf_state *state;
    /* number of rows that the state has room for */
    int capacity;
    /* [model->n_memory] */
    memory_part *memory;
    /* [capacity]: the sentence of each row, whose slices the row reads */
    int32_t *row_index;
    grown prompts;
    /* logits of the last step, [rows,V] in the model's type; the memory belongs to the plan */
    const void *logits;
    int64_t source_length;
    /* inside a call: calls from a callback are refused */
    bool busy;
    char error[512];
};

WF_PRINTF(2, 3) bool wf_decoder_fail(wf_decoder *d, const char *format, ...);
/* with the plan's error */
bool wf_decoder_fail_plan(wf_decoder *d, wf_plan *p);
/* Called around each public call. False: the decoder is inside another call. */
bool wf_decoder_enter(wf_decoder *d);
void wf_decoder_leave(wf_decoder *d);
/* Checks b sentences of at most s tokens. False if one is too long, or if an encoder gets an empty
 * one. */
bool wf_decoder_lengths_ok(wf_decoder *d, int b, int s, const int32_t *src,
                           const int32_t *src_length);
/* Allocates the state for so many rows; an encoder-decoder encodes the b sentences. */
bool wf_decoder_begin(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length,
                      int most_rows);
/* Sets the number of rows to n; row i belongs to sentence owner[i]. */
bool wf_decoder_rows(wf_decoder *d, int n, const int *owner);
/* Decoder-only: the token at a position of a row, up to the start token. The prompt has n
 * tokens. */
int32_t wf_decoder_prompted(const wf_decoder *d, const int32_t *src, int64_t n, int64_t position);
/* Decoder-only: runs the first n tokens of each of b rows through the KV cache. */
bool wf_decoder_prompt(wf_decoder *d, int b, int s, const int32_t *src, int64_t n);
/* Feeds each row its newest token. Afterwards d->logits predict the next token. */
bool wf_decoder_step(wf_decoder *d, const int32_t *ids, int64_t position);

/* ---- candidates.c ---------------------------------------------------------------------------- */

typedef struct candidate {
    /* natural logarithm of its probability in the whole vocabulary */
    double log_prob;
    int32_t token;
} candidate;

/* A row of logits, f32 or f64. open: a mask of the same type, 0 where a token is not allowed. */
typedef struct logit_row {
    wf_dtype real;
    int64_t vocab;
    const void *logits, *open;
} logit_row;

double wf_logit_at(const logit_row *r, const void *values, int64_t i);
/* log(sum exp(logits)); not finite if a logit is NaN or infinite upwards */
double wf_logit_normaliser(const logit_row *r);
/* Writes the k likeliest allowed tokens, best first, lower ids before equal ones. Returns their
 * number: k, or the number of allowed tokens if that is less. */
int wf_likeliest(const logit_row *r, double normaliser, int k, candidate *top);

/* ---- a search: search.c ---------------------------------------------------------------------- */

/* one token of a hypothesis, and its predecessor */
typedef struct trace {
    /* index; -1: none */
    int32_t token, before;
    double log_prob;
} trace;

typedef struct live {
    /* row: index in the batch; sample: the number of the draw */
    int row, sample;
    /* the newest trace; -1: none */
    int32_t last;
    double total;
} live;

typedef struct ended {
    int32_t last;
    /* length in tokens, without the end token */
    int64_t length;
    double end_log_prob, total, score;
    bool cut;
} ended;

typedef struct sentence {
    /* index: the sentence's number for random draws; limit: the maximum length of its output */
    int64_t index, limit;
    /* the position whose logits choose the first token of the output */
    int64_t begin;
    /* [begin] the tokens that are fed before the start */
    const int32_t *prompt;
    int n_live, n_ended;
    /* beam: best first */
    live *live;
    /* finished hypotheses: the best first for a beam, in order of the draws for a sample */
    ended *ended;
} sentence;

/* a live hypothesis extended by one token */
typedef struct child {
    int parent, sample;
    int32_t token;
    double log_prob, total;
} child;

/* The description of a step for options.watched. */
typedef struct watch {
    int n;
    wf_continuation *continuations; /* [n] */
    const void **logits;            /* [width] */
    void **ranked;                  /* [width], into rows */
    double *normaliser;             /* [width] */
    char *rows;
} watch;

typedef struct search {
    wf_decoder *d;
    const wf_decode_options *o;
    /* number of sentences; most live hypotheses of a sentence; most candidates of a row */
    int b, width, per_row;
    sentence *sentences;
    live *all_live;
    ended *all_ended;
    /* position of the newest token in every row */
    int64_t position;
    /* number of rows in the batch, including idle ones */
    int rows;
    /* [2 most_rows] sentence; -1: idle */
    int *owner;
    /* for each row, the row from which it was copied */
    int32_t *from;
    /* its newest token */
    int32_t *ids;
    /* copies of from and ids, used while rows change places */
    int32_t *from_before, *ids_before;
    trace *traces;
    int32_t n_traces;
    size_t cap_traces;
    /* [most_rows, per_row] */
    candidate *candidates;
    /* [most_rows] */
    int *n_candidates;
    /* [most_rows] true where the end was forced although another token was likelier */
    bool *cut;
    /* [width] */
    child *next;
    /* [width] */
    int *heads;
    /* [V] masks of allowed tokens: before the end token may come, and afterwards */
    void *open[2];
    /* one piece per thread, used first for drawing and then for the rules */
    char *scratch;
    /* bytes of a piece; bytes of its part for drawing */
    size_t stride, drawing;
    watch *watch; /* NULL: nobody watches */
} search;

/* The number of tokens in each live hypothesis of s; below 0 while the sentence still reads its
 * prompt. */
int64_t wf_length_of(const search *q, const sentence *s);
const candidate *wf_candidates_of(const search *q, const live *h);
/* Finishes a hypothesis, and inserts it at index `at` among the finished ones. */
void wf_end_hypothesis(const search *q, sentence *s, const live *h, const candidate *end, int at);
double wf_length_penalty_of(const wf_decode_options *o,
                            /* length counts the end token */
                            int64_t length);
/* The length penalty of a hypothesis that ends in this step. */
double wf_end_penalty(const search *q, const sentence *s);

/* Chooses the continuations of a sentence's live hypotheses: writes q->next and the finished ones.
 * Returns the number of children; 0: the sentence is done. */
int wf_beam_advance(search *q, sentence *s);
int wf_sample_advance(search *q, sentence *s);
/* Draws n tokens for a sentence, with the draw numbers first, first + 1, ... */
void wf_draw_tokens(const search *q, const logit_row *r, double normaliser, const sentence *s,
                    int first, int n, char *scratch, candidate *out);
/* bytes */
size_t wf_draw_scratch(int64_t vocab);

/* ---- watch.c --------------------------------------------------------------------------------- */

bool wf_watch_open(search *q); /* false: out of memory */
void wf_watch_close(search *q);
/* true if there is a listener, and room for one more continuation */
bool wf_watch_wants(const search *q);
void wf_watch_note(const search *q, const sentence *s, int parent, const candidate *c,
                   wf_fate fate);
/* Reports the step of a sentence that goes on with n hypotheses. False: the listener ends the
 * search. */
bool wf_watch_step(search *q, const sentence *s, int n);

/* ---- rules.c --------------------------------------------------------------------------------- */

/* True for a beam, which ranks by log-probabilities. Other searches rank by logits. */
bool wf_ranks_log_probs(const wf_decode_options *o);
size_t wf_rules_scratch(const wf_decode_options *o, const wf_model *m);
/* True if a rule may change the row of a hypothesis of so many tokens. */
bool wf_rules_apply_to(const search *q, const logit_row *r, double normaliser, int64_t length);
/* Copies the row's logits to scratch and applies the rules. The normaliser becomes that of the
 * allowed tokens, if one is needed. False: no token is allowed. */
bool wf_apply_rules(const search *q, const sentence *s, int row, char *scratch, logit_row *of,
                    double *normaliser);

/* ---- decode_options.c, decode_results.c ------------------------------------------------------ */

bool wf_options_ok(wf_decoder *d, const wf_decode_options *o, int b);
bool wf_make_results(search *q, wf_decoded *results);

#endif
