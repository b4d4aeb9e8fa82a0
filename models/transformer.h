/* weft/models/transformer.h - the encoder-decoder Transformer (Vaswani et al. 2017) as one graph.
 *
 * wf_transformer_new records encoder, decoder, loss, gradients and updates once. Everything after
 * that is a plan over the same graph: training, evaluation, encoding, cached decoding, scores,
 * attention. Every `message` has room for 256 bytes, or is NULL.
 * Axes: B batch, S source length, T target length, H heads, D model width, d = D / H,
 * V vocabulary. */
#ifndef WEFT_MODELS_TRANSFORMER_H
#define WEFT_MODELS_TRANSFORMER_H

#include "../nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WF_IGNORE_LABEL = -1 }; /* a label where nothing is counted: padding */

/* What shares one table: nothing; decoder input and output; these and encoder input. */
typedef enum { WF_TIE_NONE, WF_TIE_DECODER, WF_TIE_ALL } wf_tie;

/* What the model is: stored in its file. */
typedef struct wf_transformer_config {
    int64_t src_vocab, tgt_vocab, max_len;
    int64_t d_model, num_heads, dim_feedforward, encoder_layers, decoder_layers;
    wf_activation activation;
    wf_positions positions;
    wf_tie tie;
    bool norm_first;
    bool encoder_norm, decoder_norm; /* a final norm on each stack, wherever the others are */
    bool scale_embedding;            /* times sqrt(d_model) */
    bool bias;                       /* of all norms and projections but the output's */
    bool output_bias;
    double layer_norm_eps;
    int32_t pad_id;           /* source tokens not attended to, unless start or end; -1: none */
    int32_t start_id, end_id; /* of the target; never masked or ignored */
} wf_transformer_config;

/* How it is trained. */
typedef struct wf_training_config {
    double dropout; /* of residuals and of the sums of embeddings and positions */
    double attention_dropout, activation_dropout;
    double label_smoothing;
    wf_optimizer_options optimizer; /* its name is always "optimizer", as files have it */
} wf_training_config;

/* The paper's base model: D 512, 8 heads, 6 + 6 layers, F 2048, relu, sinusoid, post-norm
 * without final norms, scaled. Set the vocabularies, and the ids of start and end if they are
 * not 0. */
WF_API wf_transformer_config wf_transformer_defaults(void);
WF_API bool wf_transformer_check(const wf_transformer_config *c, char *message);

typedef struct wf_transformer_layer_weights {
    wf_tensor *self, *cross; /* [B,H,T,T], [B,H,T,S] */
} wf_transformer_layer_weights;

typedef struct wf_transformer {
    wf_graph *graph;
    wf_transformer_config config;
    wf_training_config training;
    /* inputs, i32 */
    wf_tensor *src, *src_length; /* [B,S], right-padded; [B] */
    wf_tensor *tgt;              /* [B,T]: decoder input, right-padded */
    wf_tensor *labels;           /* [B,T]: next tokens; WF_IGNORE_LABEL where nothing counts */
    /* values */
    wf_tensor *memory;              /* [B,S,D] */
    wf_tensor *memory_mask;         /* [B,1,1,S] */
    wf_tensor **cross_k, **cross_v; /* per decoder layer [B,H,S,d] */
    wf_tensor *logits;              /* [B,T,V] */
    wf_tensor *log_probs;           /* [B,T,V] */
    wf_tensor *token_log_probs;     /* [B,T]: log p of each label; 0 where it is not counted */
    wf_tensor *correct;             /* []: counted positions whose largest logit is the label */
    wf_cross_entropy_result loss;   /* []: sums, and their count */
    wf_tensor **encoder_weights;    /* per encoder layer [B,H,S,S] */
    wf_transformer_layer_weights *decoder_weights; /* per decoder layer */
    wf_optimizer optimizer;                        /* nothing in it if training was NULL */
    int own_nodes; /* the ids of what a program records after wf_transformer_new begin here */
} wf_transformer;

/* Record everything, once. seed: of initial values and dropout. training NULL: no gradients, no
 * updates. NULL with a message on a bad configuration; else check wf_ok(m->graph). */
WF_API wf_transformer *wf_transformer_new(const wf_transformer_config *c,
                                          const wf_training_config *training, wf_dtype real,
                                          uint64_t seed, char *message);
WF_API void wf_transformer_free(wf_transformer *m); /* with its graph */
WF_API int64_t wf_transformer_parameter_count(const wf_transformer *m);

/* ---- plans over the one graph: plans.c ------------------------------------------------------- */

/* Bind "B", "S", "T" (and "P", the position, when decoding), feed, run, fetch. */

/* Feeds src src_length tgt labels optimizer.rates; fetches loss.*, correct and optimizer.norm if
 * there is one, and performs the updates. */
WF_API wf_plan *wf_transformer_train_plan(wf_transformer *m, wf_pool *pool);
/* A pair for updates from several micro-batches; both fail unless training.optimizer.accumulates.
 * Each micro-batch runs the first, which feeds as train but optimizer.accumulation.more in place of
 * the rates (0 for the first of an update, 1 for the others), fetches loss.* and correct, and adds
 * gradients and count to the sums; wf_random_step numbers micro-batches from 0. Then the second
 * feeds optimizer.rates, fetches accumulation.norm, if there is one, and performs the updates. The
 * sums are allocated by the first plan made. */
WF_API wf_plan *wf_transformer_accumulate_plan(wf_transformer *m, wf_pool *pool);
WF_API wf_plan *wf_transformer_apply_plan(wf_transformer *m, wf_pool *pool);
/* After each update: feeds optimizer.averages.rate and moves the averages of the weights. Fails
 * unless training.optimizer.average_decay. */
WF_API wf_plan *wf_transformer_average_plan(wf_transformer *m, wf_pool *pool);
/* Feeds src src_length tgt labels; fetches loss.* and correct. */
WF_API wf_plan *wf_transformer_eval_plan(wf_transformer *m, wf_pool *pool);
/* The same feeds; fetches token_log_probs and logits. */
WF_API wf_plan *wf_transformer_score_plan(wf_transformer *m, wf_pool *pool);
/* Feeds src src_length tgt; fetches every layer's attention weights. */
WF_API wf_plan *wf_transformer_attention_plan(wf_transformer *m, wf_pool *pool);
/* Feeds src src_length; fetches cross_k, cross_v and memory_mask. */
WF_API wf_plan *wf_transformer_encode_plan(wf_transformer *m, wf_pool *pool);
/* Feeds what encode fetched, and tgt [B,n]; runs with a state; fetches logits. */
WF_API wf_plan *wf_transformer_decode_plan(wf_transformer *m, wf_pool *pool);

/* ---- decoding: decode.c, search.c, beam.c, sample.c, score.c ------------------------------ */

/* Plans for encoding, decoding and scoring, and a state, reused from batch to batch. One call at a
 * time. Sentences come as src [b,s], right-padded, and src_length [b], each from 1 to s. What is
 * made of one depends on it and the options alone: not on its batch, the threads, or the padding.
 * Scores are natural logarithms, by the model's distribution over the whole vocabulary, and count
 * the end token. A false result: wf_decoder_error. */
typedef struct wf_decoder wf_decoder;
WF_API wf_decoder *wf_decoder_new(wf_transformer *m, wf_pool *pool, char *message); /* or NULL */
WF_API void wf_decoder_free(wf_decoder *d);
WF_API const char *wf_decoder_error(const wf_decoder *d);
/* Bytes that it takes to decode b sentences of s tokens, a row each, into outputs of at most n. 0:
 * wf_decoder_error. */
WF_API size_t wf_decoder_memory(wf_decoder *d, int b, int s, int64_t n);

/* What a total is divided by, n tokens with the end: 1; ((5 + n) / 6)^alpha (Wu et al. 2016, eq.
 * 14); n^alpha, of which alpha 1 is the mean. */
typedef enum { WF_PENALTY_NONE, WF_PENALTY_GNMT, WF_PENALTY_AVERAGE } wf_length_penalty;

typedef struct wf_decode_options {
    int beam; /* hypotheses that go on at every step, 1..1024; 1: the likeliest token (greedy) */
    wf_length_penalty penalty;
    double alpha; /* of the penalty, 0..10 */
    int nbest;    /* outputs of a sentence, 1..beam; of a sample, how many are drawn, 1..1024 */
    double max_len_a, max_len_b; /* a source of n tokens gets at most a n + b, rounded down: no
                                  * fewer than 1, no more than max_len - 1. There the end is forced
                                  * on it, and scored */
    int64_t min_len;             /* no end before this many tokens, if the maximum allows as many */
    const int32_t *banned;       /* [n_banned] tokens that are never put out; not the end */
    int n_banned;
    bool sample; /* draw every token (beam 1): p ~ exp(logit / temperature), of these the top_k
                  * likeliest (0: all), of these the fewest that hold top_p (1: all) */
    int top_k;
    double top_p, temperature; /* above 0 to 1; 1e-3..1e3 */
    uint64_t seed;             /* with the sentence's index, the step and the draw: the choice */
} wf_decode_options;
WF_API wf_decode_options wf_decode_defaults(void); /* greedy, a 1, b 10; top_p and temperature 1 */

typedef struct wf_hypothesis {
    const int32_t *tokens;   /* [length], neither start nor end */
    const double *log_probs; /* [length + 1], of each token and of the end */
    int64_t length;
    double total, score; /* their sum; and that divided by the penalty */
    bool cut;            /* ended by the maximum: another token was likelier than the end */
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
WF_API void wf_decoded_free(wf_decoded *results, int b);

/* wf_decode's greedy tokens alone, at most max_new of each sentence (and max_len - 1), into out
 * [b,max_new], filled up with end_id; their number into out_length [b]. */
WF_API bool wf_decode_greedy(wf_decoder *d, int b, int s, const int32_t *src,
                             const int32_t *src_length, int max_new, int32_t *out,
                             int32_t *out_length);

/* Forced scoring: of outputs tgt [b,t], right-padded, tgt_length [b] from 0 to t, neither start
 * nor end among them; t at most max_len - 1. log_probs [b,t+1]: of each token and of the end, then
 * 0. totals [b]: their sums. Either may be NULL. */
WF_API bool wf_score(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length,
                     int t, const int32_t *tgt, const int32_t *tgt_length, double *log_probs,
                     double *totals);

/* ---- the model's file: model_file.c ---------------------------------------------------------- */

/* The configuration, the weights, meta; with checkpoint also the optimizer's moments and averages.
 * The metadata's "weft.kind" says which it is, "checkpoint" or "model", or what meta has for it.
 * Parameters that a program has added to the graph are stored, too, under their names. */
WF_API bool wf_transformer_save(const wf_transformer *m, const char *path, bool checkpoint,
                                const wf_meta *meta, int n_meta, char *message);
/* Read the configuration, record the model, load the weights, and what of moments and averages
 * training and the file have; those that the file lacks are zeros, as before step 1. NULL with a
 * message. */
WF_API wf_transformer *wf_transformer_load(const wf_file *f, const wf_training_config *training,
                                           wf_dtype real, uint64_t seed, char *message);
WF_API bool wf_transformer_read_config(const wf_file *f, wf_transformer_config *c, char *message);
/* Names of torch.nn.Transformer; packed or separate q, k, v; tied tables under any of their
 * names. A file that does not fit leaves the model as it was. Added parameters are loaded if the
 * file and the graph have them: record them after wf_transformer_load, then load the weights again;
 * one that the file lacks keeps its values, one that the graph lacks stays in the file. */
WF_API bool wf_transformer_load_weights(wf_transformer *m, const wf_file *f, char *message);

/* ---- PyTorch's state_dict: state_dict.c ------------------------------------------------------ */

/* A model from a state_dict in safetensors, whatever precedes the names. What names and shapes say
 * overrides `given`: sizes, layers, biases, final norms, ties, learned positions and with them
 * max_len. NULL with a message. */
WF_API wf_transformer *wf_transformer_from_state_dict(const wf_file *f,
                                                      const wf_transformer_config *given,
                                                      wf_dtype real, char *message);
/* The Transformer's own parameters alone, in f32 or bf16, a tied table under all its names: what
 * load_state_dict of the same module takes with strict=True. */
WF_API bool wf_transformer_save_state_dict(const wf_transformer *m, const char *path, bool bf16,
                                           char *message);

#ifdef __cplusplus
}
#endif
#endif
