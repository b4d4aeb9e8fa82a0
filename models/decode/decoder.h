/* models/decode/decoder.h - inside models: shared by the files of decoding. Not installed.
 *
 * decoder.c         the decoder: its plans and memory, reading a batch, one cached step
 * decode_options.c  defaults and checks of options
 * search.c          wf_decode: sentences, their hypotheses, the batch rows they occupy, results
 * hypothesis.c      the length, the candidates and the end of a hypothesis
 * beam.c            extends the likeliest hypotheses
 * sample.c          or draws tokens at random
 * rules.c           changes logits by the tokens so far: repetition, the end
 * shortlist.c       reads lexical shortlists: the candidates of a source
 * narrow.c          chooses among these candidates
 * few_logits.c      computes the logits of these candidates alone
 * watch.c           tells a listener what each step ranks and decides
 * candidates.c      finds the likeliest tokens of a row of logits
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

/* One tensor of the encoder outputs of all sentences; each sentence has a slice of it. */
typedef struct memory_part {
    wf_tensor *tensor;
    grown sentences;
    /* bytes of one sentence's slice */
    size_t slice;
} memory_part;

struct wf_decoder {
    wf_model *model;
    wf_pool *pool;
    /* the plan that reads sources: encode in an encoder-decoder, prompt in a decoder-only model.
     * The other one is NULL */
    wf_plan *encode, *prompt;
    /* plans that are run with the state or for scores: step computes logits. The others are made
     * when they are first needed: hidden_step ends at the last layer's output, and score serves
     * wf_score */
    wf_plan *step, *hidden_step, *score;
    /* the step that this search runs: step or hidden_step */
    wf_plan *running;
    wf_state *state;
    /* number of rows that the state has room for */
    int capacity;
    /* [model->n_memory] */
    memory_part *memory;
    /* [capacity]: for each row, the index of the sentence whose slices of `memory` it reads */
    int32_t *row_index;
    grown prompts;
    /* logits of the last step, [rows,V] in the model's type; after hidden_step the last layer's
     * output [rows,D]. The memory belongs to the plan, or to few_logits.c */
    const void *logits;
    int64_t source_length;
    /* true during a public call, so that calls from a callback are refused */
    bool busy;
    char error[512];
};

WF_PRINTF(2, 3) bool wf_decoder_fail(wf_decoder *d, const char *format, ...);
/* Fails with the plan's error. */
bool wf_decoder_fail_plan(wf_decoder *d, wf_plan *p);
/* Called around each public call. False: the decoder is inside another call. */
bool wf_decoder_enter(wf_decoder *d);
void wf_decoder_leave(wf_decoder *d);
/* Checks b sentences of at most s tokens. False if one is too long, or if a model with an encoder
 * gets an empty one. */
bool wf_decoder_lengths_ok(wf_decoder *d, int b, int s, const int32_t *src,
                           const int32_t *src_length);
/* Allocates the state for most_rows rows, and in an encoder-decoder encodes the b sentences. */
bool wf_decoder_begin(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length,
                      int most_rows);
/* Sets the number of rows to n; row i belongs to sentence owner[i]. */
bool wf_decoder_rows(wf_decoder *d, int n, const int *owner);
/* The token that is fed at `position`, from 0 to n, before the output. n is wf_model_begin of the
 * prompt's length. Encoder-decoder: src is NULL and n is 0, and the token is the start.
 * Decoder-only: src is the prompt, and the start token comes before it (start_first) or after it;
 * with start_if_empty there is a start token only if src is NULL. */
int32_t wf_decoder_prompted(const wf_decoder *d, const int32_t *src, int64_t n, int64_t position);
/* Decoder-only: runs the first n tokens of each of b sequences, which fills the KV cache. */
bool wf_decoder_prompt(wf_decoder *d, int b, int s, const int32_t *src, int64_t n);
/* Makes steps end at the last layer's output, without logits, until another search begins. */
bool wf_decoder_stop_at_hidden(wf_decoder *d);
/* Runs a step: feeds each row's newest token, ids [rows], at this position. Afterwards d->logits
 * predict the next token, or are the last layer's output [rows,D] if steps end there. */
bool wf_decoder_step(wf_decoder *d, const int32_t *ids, int64_t position);

/* ---- decode_options.c ------------------------------------------------------------------------ */

bool wf_options_ok(wf_decoder *d, const wf_decode_options *o, int b);

#endif
