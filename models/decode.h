/* weft/models/decode.h - outputs of any model, by beam search or by sampling; and the probability
 * that it gives to known outputs.
 *
 * Sentences are passed as src [b,s], right-padded, with src_length [b]. Each length is from 1 to s;
 * the prompt of a decoder-only model may also be empty. */
#ifndef WEFT_MODELS_DECODE_H
#define WEFT_MODELS_DECODE_H

#include "model.h"
#include "shortlist.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A decoder has plans for encoding, decoding and scoring, and a state (the KV cache). It reuses
 * them for every batch. The output for a sentence depends only on the sentence and options, not its
 * batch, the threads, or the padding. A decoder runs one call at a time: a call from a callback
 * such as `heard` is refused. Scores are natural logarithms of probabilities over the whole
 * vocabulary, unless a rule of the options changes these, and include the end token. If a function
 * returns false, wf_decoder_error has the reason. */
typedef struct wf_decoder wf_decoder;
/* Make a decoder. pool NULL: one thread. The model must outlive the decoder. Returns NULL with
 * message (256 bytes, or NULL) if the model is NULL, failed or encoder-only, or out of memory. */
WF_API wf_decoder *wf_decoder_new(wf_model *m, wf_pool *pool, char *message);
/* Frees the decoder and not its model. NULL is allowed. */
WF_API void wf_decoder_free(wf_decoder *d);
/* The message of the last failure, or "". */
WF_API const char *wf_decoder_error(const wf_decoder *d);

/* The length penalty, by which the total log-probability of an output of n tokens is divided: 1;
 * ((5 + n) / 6)^alpha (Wu et al. 2016, eq. 14); or n^alpha, where alpha 1 gives the mean, and
 * 1 if n is 0. n includes the end token, if there is one. */
typedef enum { WF_PENALTY_NONE, WF_PENALTY_GNMT, WF_PENALTY_AVERAGE } wf_length_penalty;

/* When the beam search of a sentence ends at the latest. It ends earlier, without a change of
 * output, if no live hypothesis can become one of the nbest at any length. Decay or a
 * repetition_penalty below 1 may raise totals, and then there is no such early end.
 *   WF_STOP_FULL     when `beam` hypotheses have ended, even if a live one may become better, as in
 *                    fairseq; Hugging Face: early_stopping=True
 *   WF_STOP_PRESENT  when `beam` have ended, and no live one at its present length scores more than
 *                    the worst of them; Hugging Face: early_stopping=False
 *   WF_STOP_LONGEST  the same at the greatest length; Hugging Face: early_stopping="never"
 *   WF_STOP_SHRINK   when `beam` have ended. Each one that ends narrows the beam by one, as in
 *                    Marian
 * The best `beam` hypotheses that have ended are kept. With beam 1, the first end token ends the
 * search. */
typedef enum { WF_STOP_FULL, WF_STOP_PRESENT, WF_STOP_LONGEST, WF_STOP_SHRINK } wf_stop;

/* How a hypothesis ends at its length limit. WF_LIMIT_END: the end token is forced, and scored.
 * WF_LIMIT_FREE_END: it is forced with log-probability 0 (forced_eos_token_id of Hugging Face).
 * WF_LIMIT_NO_END: there is no end token, and the length does not count one. */
typedef enum { WF_LIMIT_END, WF_LIMIT_FREE_END, WF_LIMIT_NO_END } wf_limit_rule;

/* The fate of a continuation, which is a live hypothesis with one more token. LIVE: it is live in
 * the next step. ENDED: its token was the end. WORSE: enough others have a better total. STOPPED:
 * it would be live, but the search of its sentence is over. */
typedef enum { WF_FATE_LIVE, WF_FATE_ENDED, WF_FATE_WORSE, WF_FATE_STOPPED } wf_fate;
typedef struct wf_continuation {
    int parent; /* index of the live hypothesis that it continues */
    int32_t token;
    /* log-probability of its token after the rules; total of the hypothesis */
    double log_prob, total;
    double score; /* if it ended: total divided by the length penalty */
    bool cut;     /* if it ended: like wf_hypothesis.cut */
    wf_fate fate;
} wf_continuation;
/* One step in the search of one sentence. The k-th continuation that is live becomes the k-th live
 * hypothesis of the next step. In the first step there is one live hypothesis, which all draws of a
 * sample share. Pointers are valid during the call. */
typedef struct wf_search_step {
    int sentence;   /* index of the sentence in the batch */
    int64_t length; /* length of its live hypotheses in tokens */
    int n_live;
    /* [n_live] rows [V] of the model's logits, in the graph's real type */
    const void *const *logits;
    /* the same rows after the rules: -inf for tokens that are not allowed */
    const void *const *ranked;
    /* [n_live] log(sum exp(logits)) of the whole row. With a shortlist, log_prob is computed with
     * the sum over the sentence's candidates instead, and is higher */
    const double *normaliser;
    /* at most 3 beam continuations, best total first; a sample has one for each draw, in order */
    int n;
    const wf_continuation *continuations;
} wf_search_step;

typedef struct wf_decode_options {
    /* hypotheses kept at every step, 1..1024; 1: greedy search. b * beam is at most 2^20 */
    int beam;
    wf_length_penalty penalty;
    /* alpha of the length penalty, 0..10 */
    double alpha;
    /* number of outputs for a sentence, 1..beam; with sample, number of draws, 1..1024 */
    int nbest;
    wf_stop stop;
    /* maximum length of the output for a source of n tokens: max_len_a n + max_len_b, rounded down,
     * but not above wf_model_room. If the maximum is 0, the output is empty */
    double max_len_a, max_len_b;
    wf_limit_rule at_limit;
    /* minimum length: no end before this many tokens, unless the maximum is lower */
    int64_t min_len;
    /* [n_banned] tokens that are never chosen; the end cannot be among them */
    const int32_t *banned;
    int n_banned;
    /* [n_forced] tokens with which every output begins, at log-probability 0, such as a target
     * language. The maximum length may cut them */
    const int32_t *forced;
    int n_forced;
    /* [n_begin_banned] tokens that may not come first in an output, or first after the forced ones:
     * begin_suppress_tokens of transformers. The end may be among them */
    const int32_t *begin_banned;
    int n_begin_banned;
    /* Tokens are chosen only among the end token and the candidates that this list has for a
     * sentence's source, and their probabilities sum to 1. A decoder-only model can't use a list.
     * NULL: tokens are chosen from the whole vocabulary */
    const wf_shortlist *shortlist;
    /* Rules of transformers. They look at all tokens that the decoder has read: the start, a
     * prompt, the output. Greedy search and sampling apply them to logits. A beam of two or more
     * applies them to log-probabilities, and its totals are sums of the changed values. */
    /* no sequence of this many tokens occurs twice; 0: no such rule */
    int no_repeat_ngram;
    /* 1e-3..1e3. If a token has occurred, its score is multiplied by this number if the score is
     * below 0, else divided by the number; 1: no such rule */
    double repetition_penalty;
    /* When an output has n tokens more than decay_start, |x| (decay^n - 1) is added to the end
     * token's score x: exponential_decay_length_penalty */
    int64_t decay_start;
    /* 1e-3..1e3; 1: none */
    double decay;
    /* with a beam of two or more: the probabilities of the allowed tokens sum to 1 */
    bool renormalize;
    /* draw each token at random (beam must be 1), with p ~ exp(logit / temperature). Only the top_k
     * likeliest tokens (0: all) are drawn, and of these only the fewest whose probabilities sum to
     * top_p (1: all) */
    bool sample;
    int top_k;
    /* top_p is above 0 and at most 1; temperature is 1e-3..1e3 */
    double top_p, temperature;
    /* seed of the random numbers. Each depends on the seed, the sentence's index, the step and the
     * number of the draw */
    uint64_t seed;
    /* If each sentence has one hypothesis (beam 1, or one draw), called for every token as soon as
     * it is chosen. sentence: its index in the batch. If it returns false, wf_decode stops and
     * fails. NULL: no calls. */
    bool (*heard)(void *listener, int sentence, int32_t token);
    void *listener;
    /* Called for every sentence in every step, after the decision, for drawings. It cannot change a
     * result. If it returns false, wf_decode stops and fails. NULL: no calls. */
    bool (*watched)(void *listener, const wf_search_step *step);
} wf_decode_options;
/* Greedy search with max_len_a 1 and max_len_b 10. The rules are off, and temperature is 1. */
WF_API wf_decode_options wf_decode_defaults(void);

typedef struct wf_hypothesis {
    /* [length] tokens, without start and end */
    const int32_t *tokens;
    /* [length + 1] log-probabilities of the tokens and of the end (0 if it is free or missing) */
    const double *log_probs;
    int64_t length;
    /* sum of the log-probabilities; that sum divided by the length penalty */
    double total, score;
    /* true if the end was forced, by the maximum length or by rules, and was not the likeliest */
    bool cut;
} wf_hypothesis;

/* The outputs of one sentence. A search gives different ones, best score first; a sample gives its
 * draws in their order. n is less than nbest if there are no more sequences. */
typedef struct wf_decoded {
    int n;
    wf_hypothesis *best;
} wf_decoded;

/* Decodes a batch. Free results [b] by wf_decoded_free, also after a failure. sentence_index [b] is
 * for sampling alone: a number for each sentence, on which its random numbers depend. NULL: its
 * index in the batch. */
WF_API bool wf_decode(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length,
                      const int64_t *sentence_index, const wf_decode_options *options,
                      wf_decoded *results);
/* Frees what the b results hold, not the array. */
WF_API void wf_decoded_free(wf_decoded *results, int b);

/* Greedy search that gives tokens alone: at most max_new for each sentence, and at most
 * wf_model_room. out [b,max_new] gets the tokens, padded with end_id; out_length [b] their
 * count. */
WF_API bool wf_decode_greedy(wf_decoder *d, int b, int s, const int32_t *src,
                             const int32_t *src_length, int max_new, int32_t *out,
                             int32_t *out_length);

/* Score given outputs tgt [b,t], right-padded, without start and end; t is below the model's
 * max_len. tgt_length [b] is from 0 to t and at most wf_model_room. log_probs [b,t+1] receives the
 * log-probabilities of the tokens and of the end, then 0. totals [b] receives their sums. Either
 * may be NULL. */
WF_API bool wf_score(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length,
                     int t, const int32_t *tgt, const int32_t *tgt_length, double *log_probs,
                     double *totals);

#ifdef __cplusplus
}
#endif
#endif
