/* weft/models/decode.h - outputs of a model, whichever it is: searched for, or drawn at random; and
 * how likely it finds outputs that are given.
 *
 * Sentences come as src [b,s], right-padded, and src_length [b], each from 1 to s; of a decoder-only
 * model from 0 on: the prompt. */
#ifndef WEFT_MODELS_DECODE_H
#define WEFT_MODELS_DECODE_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Plans for encoding, decoding and scoring, and a state, reused from batch to batch. One call at a
 * time. What is made of a sentence depends on it and the options alone: not on its batch, the
 * threads, or the padding.
 * A call on a decoder that is inside another one, as from `heard`, is refused.
 * Scores are natural logarithms, by the model's distribution over the whole vocabulary unless a rule
 * of the options changes it, and count the end token. A false result: wf_decoder_error. */
typedef struct wf_decoder wf_decoder;
/* or NULL */
WF_API wf_decoder *wf_decoder_new(wf_model *m, wf_pool *pool, char *message);
/* The model stays. */
WF_API void wf_decoder_free(wf_decoder *d);
/* The sentence of the last failure, or "". */
WF_API const char *wf_decoder_error(const wf_decoder *d);
/* Bytes that it takes to decode b sentences of s tokens, a row each, into outputs of at most n. 0:
 * wf_decoder_error. */
WF_API size_t wf_decoder_memory(wf_decoder *d, int b, int s, int64_t n);

/* The divisor of a total of n tokens, the end token included: 1; ((5 + n) / 6)^alpha (Wu et al.
 * 2016, eq. 14); or n^alpha, where alpha 1 gives the mean. */
typedef enum { WF_PENALTY_NONE, WF_PENALTY_GNMT, WF_PENALTY_AVERAGE } wf_length_penalty;

/* When a beam search is done with a sentence: when `beam` hypotheses have ended,
 *   WF_STOP_SURE     or the nbest of them are final, whatever may come (Huang, Zhao and Ma 2017);
 *   WF_STOP_FULL     at once: early_stopping=True of Hugging Face, whose names stand here;
 *   WF_STOP_PRESENT  and none that is live scores more at its present length: early_stopping=False;
 *   WF_STOP_LONGEST  and none could by its total so far, were it as long as can be: "never".
 * The last three keep the `beam` best of those that have ended. Beam 1 ends with the first end. */
typedef enum { WF_STOP_SURE, WF_STOP_FULL, WF_STOP_PRESENT, WF_STOP_LONGEST } wf_stop;

/* The end of a hypothesis at its length limit. The end token is forced, and scored; or it is
 * forced, with log-probability 0 (forced_eos_token_id of Hugging Face); or the hypothesis has no
 * end token, and its length does not count one. */
typedef enum { WF_LIMIT_END, WF_LIMIT_FREE_END, WF_LIMIT_NO_END } wf_limit_rule;

/* The fate of a continuation, which is a live hypothesis with one more token: it is live in the
 * next step; it ended, as its token is the end; its total is worse than that of as many as may go on;
 * or it would be live, but the search of its sentence is done. */
typedef enum { WF_FATE_LIVE, WF_FATE_ENDED, WF_FATE_WORSE, WF_FATE_STOPPED } wf_fate;
typedef struct wf_continuation {
    int parent; /* which live hypothesis of the step */
    int32_t token;
    double log_prob, total; /* of the token, after the rules; of the hypothesis */
    double score;           /* if it ended: total divided by the penalty */
    bool cut;               /* if it ended: as wf_hypothesis says */
    wf_fate fate;
} wf_continuation;
/* One step of the search of one sentence. The k-th continuation that is live becomes the k-th live
 * hypothesis of the next step; at first there is one, or of a sample all draws share one. Pointers
 * are valid during the call. */
typedef struct wf_search_step {
    int sentence;   /* its place in the batch */
    int64_t length; /* of its live hypotheses, in tokens */
    int n_live;
    const void *const *logits; /* [n_live] of [V], in the graph's real type: those of the model */
    const void *const *ranked; /* and with the rules applied: -inf of a token that may not come */
    const double *normaliser;  /* [n_live] log(sum exp(logits)) */
    int n; /* best total first: up to 2 of the beam and as many that are worse */
    const wf_continuation *continuations;
} wf_search_step;

typedef struct wf_decode_options {
    /* hypotheses that go on at every step, 1..1024; 1: the likeliest token (greedy) */
    int beam;
    wf_length_penalty penalty;
    /* of the penalty, 0..10 */
    double alpha;
    /* outputs of a sentence, 1..beam; of a sample, how many are drawn, 1..1024 */
    int nbest;
    wf_stop stop;
    /* a source of n tokens gets at most a n + b, rounded down: no more than wf_model_room; 0:
     * the end at once */
    double max_len_a, max_len_b;
    wf_limit_rule at_limit;
    /* no end before this many tokens, if the maximum allows as many */
    int64_t min_len;
    /* [n_banned] tokens that are never put out; not the end */
    const int32_t *banned;
    int n_banned;
    /* [n_forced] what every output begins with, at log-probability 0: a target language. As many
     * as the limit allows */
    const int32_t *forced;
    int n_forced;
    /* [n_begin_banned] tokens that are not the first of an output, behind those forced:
     * begin_suppress_tokens. The end may be */
    const int32_t *begin_banned;
    int n_begin_banned;
    /* Rules of transformers, over all that the decoder is fed: the start, a prompt, an output.
     * Greedy search and samples apply them to logits, a beam of two or more to log-probabilities,
     * which are then what its totals add up. */
    /* no run of so many tokens comes twice; 0: any may */
    int no_repeat_ngram;
    /* 1e-3..1e3: a score below 0 of a token that was there is multiplied by this, one above 0
     * divided; 1: none */
    double repetition_penalty;
    /* after so many tokens the end's score x gets |x| (decay^n - 1) more, n tokens later:
     * exponential_decay_length_penalty */
    int64_t decay_start;
    /* 1e-3..1e3; 1: none */
    double decay;
    /* a beam's log-probabilities are those among the tokens that are allowed */
    bool renormalize;
    /* draw every token (beam 1): p ~ exp(logit / temperature), of these the top_k likeliest (0:
     * all), of these the fewest that hold top_p (1: all) */
    bool sample;
    int top_k;
    /* above 0 to 1; 1e-3..1e3 */
    double top_p, temperature;
    /* with the sentence's index, the step and the draw: the choice */
    uint64_t seed;
    /* Called with every token as it is chosen, in the order of the steps, if each sentence has one
     * hypothesis (beam 1, or one draw); sentence: its place in the batch. false: wf_decode stops
     * and fails. NULL: nobody listens. */
    bool (*heard)(void *listener, int sentence, int32_t token);
    void *listener;
    /* Called with every step of the search of every sentence, after its decision; for pictures. It
     * changes no result. false: wf_decode stops and fails. NULL: nobody watches. */
    bool (*watched)(void *listener, const wf_search_step *step);
} wf_decode_options;
/* greedy, a 1, b 10; what multiplies, 1 */
WF_API wf_decode_options wf_decode_defaults(void);

typedef struct wf_hypothesis {
    /* [length], neither start nor end */
    const int32_t *tokens;
    /* [length + 1], of each token and of the end */
    const double *log_probs;
    int64_t length;
    /* their sum; and that divided by the penalty */
    double total, score;
    /* ended by the maximum: another token was likelier than the end */
    bool cut;
} wf_hypothesis;

/* The outputs of one sentence: the best score first, no two alike; of a sample, in the order of the
 * draws. n is less than nbest where there are no more sequences. */
typedef struct wf_decoded {
    int n;
    wf_hypothesis *best;
} wf_decoded;

/* results [b]: to be freed by wf_decoded_free, after a failure too. sentence_index [b], for samples
 * alone: a sentence's place in all that is drawn with this seed; NULL: its place in the batch. */
WF_API bool wf_decode(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length,
                      const int64_t *sentence_index, const wf_decode_options *options,
                      wf_decoded *results);
/* Frees what the b results hold, not the array. */
WF_API void wf_decoded_free(wf_decoded *results, int b);

/* wf_decode's greedy tokens alone, at most max_new of each sentence (and wf_model_room), into out
 * [b,max_new], filled up with end_id; their number into out_length [b]. */
WF_API bool wf_decode_greedy(wf_decoder *d, int b, int s, const int32_t *src,
                             const int32_t *src_length, int max_new, int32_t *out,
                             int32_t *out_length);

/* Forced scoring: of outputs tgt [b,t], right-padded, tgt_length [b] from 0 to t, neither start
 * nor end among them; at most wf_model_room. log_probs [b,t+1]: of each token and of the end, then
 * 0. totals [b]: their sums. Either may be NULL. */
WF_API bool wf_score(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length,
                     int t, const int32_t *tgt, const int32_t *tgt_length, double *log_probs,
                     double *totals);

#ifdef __cplusplus
}
#endif
#endif
