/* models/decode/search.h - inside models: a search among hypotheses, shared by the files that
 * choose tokens (beam.c, sample.c), change logits (rules.c), tell a listener what each step ranks
 * and decides (watch.c), and write results. */
#ifndef WEFT_MODELS_DECODE_SEARCH_H
#define WEFT_MODELS_DECODE_SEARCH_H

#include "candidates.h"
#include "decoder.h"

/* One token of a hypothesis, with a link to the token before it. */
typedef struct trace {
    /* before: the index of the trace of the token before it; -1: it is the first token */
    int32_t token, before;
    double log_prob;
} trace;

typedef struct live {
    /* row: its row in the batch; sample: the number of the draw */
    int row, sample;
    /* the newest trace; -1: none */
    int32_t last;
    double total;
} live;

typedef struct ended {
    int32_t last;
    /* number of tokens, without the end token */
    int64_t length;
    double end_log_prob, total, score;
    bool cut;
} ended;

typedef struct sentence {
    /* index: the sentence's number for random draws; limit: the most tokens of its output */
    int64_t index, limit;
    /* the position whose logits choose the first token */
    int64_t begin;
    /* tokens of the prompt, which are fed at positions up to `begin`; NULL: there is none */
    const int32_t *prompt;
    int n_live, n_ended;
    /* beam: best first */
    live *live;
    /* beam: best first; draws: in their order */
    ended *ended;
} sentence;

/* a live hypothesis extended by one token */
typedef struct child {
    int parent, sample;
    int32_t token;
    double log_prob, total;
} child;

/* The step that is reported to options.watched. */
typedef struct watch {
    int n;
    wf_continuation *continuations; /* [n] */
    const void **logits;            /* [width] */
    void **ranked;                  /* [width], into rows */
    double *normaliser;             /* [width] */
    char *rows;
} watch;

typedef struct narrow narrow; /* narrow.c */

typedef struct search {
    wf_decoder *d;
    const wf_decode_options *o;
    /* sentences; the most live hypotheses of a sentence; the most candidates of a row */
    int b, width, per_row;
    sentence *sentences;
    live *all_live;
    ended *all_ended;
    /* position of each row's newest token in its sequence */
    int64_t position;
    /* number of rows in the batch, including idle ones */
    int rows;
    /* [2 b width] the sentence that each row belongs to; -1: the row is idle */
    int *owner;
    /* [2 b width] the row whose KV cache each row continues */
    int32_t *from;
    /* each row's newest token */
    int32_t *ids;
    /* copies of from and ids, which are read while rows are moved */
    int32_t *from_before, *ids_before;
    trace *traces;
    int32_t n_traces;
    size_t cap_traces;
    /* [b width, per_row] */
    candidate *candidates;
    /* [b width] */
    int *n_candidates;
    /* [b width] true if the end was forced, and was not the likeliest token */
    bool *cut;
    /* [width] */
    child *next;
    /* [width] each live hypothesis's next candidate in a beam; later the row of each child */
    int *heads;
    /* [V] masks of allowed tokens: open[0] before the minimum length, without the end; then
     * open[1] */
    void *open[2];
    /* one piece of memory per thread, with parts for drawing, for rules and for a shortlist */
    char *scratch;
    /* bytes of a piece, of its part for drawing, and of its parts for drawing and rules together */
    size_t stride, drawing, changing;
    narrow *narrow; /* NULL: there is no shortlist */
    watch *watch;   /* NULL: nobody watches */
} search;

/* Chooses the continuations of a sentence's live hypotheses: writes those that go on to q->next,
 * and finished ones to s->ended. Returns the number of hypotheses that go on; 0: the sentence is
 * done. */
int wf_beam_advance(search *q, sentence *s);
int wf_sample_advance(search *q, sentence *s);
/* Draws n tokens for a sentence: the draws number first, first + 1, ... */
void wf_draw_tokens(const search *q, const logit_row *r, double normaliser, const sentence *s,
                    int first, int n, char *scratch, candidate *out);
/* The bytes of scratch memory that wf_draw_tokens needs. */
size_t wf_draw_scratch(int64_t vocab);

/* ---- hypothesis.c ---------------------------------------------------------------------------- */

/* The number of tokens of each live hypothesis so far; below 0 while the sentence still reads its
 * prompt. */
int64_t wf_length_of(const search *q, const sentence *s);
/* The logits of a row of this sentence, and which tokens are allowed. */
logit_row wf_row_of(const search *q, const sentence *s, int row);
const candidate *wf_candidates_of(const search *q, const live *h);
/* Finishes a hypothesis, and writes it to s->ended[at]. */
void wf_end_hypothesis(const search *q, sentence *s, const live *h, const candidate *end, int at);
double wf_length_penalty_of(const wf_decode_options *o,
                            /* length counts the end token */
                            int64_t length);
/* The length penalty by which the score of a hypothesis that ends now is divided. */
double wf_end_penalty(const search *q, const sentence *s);

/* ---- watch.c --------------------------------------------------------------------------------- */

bool wf_watch_open(search *q); /* false: out of memory */
void wf_watch_close(search *q);
/* True if there is a listener, and its report of this step has room for one more continuation. */
bool wf_watch_wants(const search *q);
void wf_watch_note(const search *q, const sentence *s, int parent, const candidate *c,
                   wf_fate fate);
/* Reports the step of a sentence, of which n hypotheses go on. False: the listener wants to
 * stop. */
bool wf_watch_step(search *q, const sentence *s, int n);

/* ---- rules.c --------------------------------------------------------------------------------- */

/* True for a beam of two or more, which ranks tokens by log-probabilities. Greedy search and
 * sampling use logits. */
bool wf_ranks_log_probs(const wf_decode_options *o);
size_t wf_rules_scratch(const wf_decode_options *o, const wf_model *m);
/* True if a rule may change the logits of a hypothesis that has `length` tokens. */
bool wf_rules_apply_to(const search *q, const logit_row *r, double normaliser, int64_t length);
/* Copies the row's logits to scratch and applies the rules. With options.renormalize and a beam of
 * two or more, the normaliser becomes that of the allowed tokens. False: no token is allowed. */
bool wf_apply_rules(const search *q, const sentence *s, int row, char *scratch, logit_row *of,
                    double *normaliser);

/* ---- narrow.c -------------------------------------------------------------------------------- */

/* Find the candidates of every sentence, if there is a shortlist. Steps then compute only the
 * logits of the batch's candidates, unless these are more than half of all tokens, or a listener
 * reads whole rows. */
bool wf_narrow_open(search *q, int s, const int32_t *src, const int32_t *src_length);
void wf_narrow_close(search *q);
/* Runs a step of all rows: see wf_decoder_step. */
bool wf_narrow_step(search *q);
/* The bytes of scratch memory that wf_narrow_few and wf_narrow_row need together. */
size_t wf_narrow_scratch(const wf_decode_options *o, const wf_model *m);
/* A short row with the logits of a sentence's candidates alone, gathered into scratch. Without a
 * shortlist the result is the row `of` itself. */
logit_row wf_narrow_few(const search *q, const sentence *s, const logit_row *of, char *scratch);
/* Turns the tokens of n candidates from indices in the short row (wf_narrow_few) into ids. */
void wf_narrow_tokens(const search *q, const sentence *s, candidate *c, int n);
/* Copies a whole row to scratch, with minus infinity for tokens that are no candidates. */
void wf_narrow_row(const search *q, const sentence *s, char *scratch, logit_row *of);
/* True if a sentence can go on with one of its candidates. False: the minimum length does not allow
 * the end token yet, and all other candidates are banned. */
bool wf_narrow_leaves(const search *q, const sentence *s, const logit_row *r);

#endif
