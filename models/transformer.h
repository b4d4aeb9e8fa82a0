/* weft/models/transformer.h - the encoder-decoder Transformer (Vaswani et al. 2017) as one graph.
 *
 * wf_transformer_new records encoder, decoder, loss, gradients and updates once. Everything after that is a
 * plan over the same graph: training, evaluation, encoding, cached decoding, scores, attention.
 * Axes: B batch, S source length, T target length, V vocabulary. */
#ifndef WEFT_MODELS_TRANSFORMER_H
#define WEFT_MODELS_TRANSFORMER_H

#include "../nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WF_IGNORE_LABEL = -1 }; /* a label where nothing is counted: padding */

/* decoder input with output; and source too */
typedef enum { WF_TIE_NONE, WF_TIE_DECODER, WF_TIE_ALL } wf_tie;

/* What the model is: stored in its file. */
typedef struct wf_transformer_config {
    int64_t src_vocab, tgt_vocab, max_len;
    int64_t d_model, num_heads, dim_feedforward, encoder_layers, decoder_layers;
    wf_activation activation;
    wf_positions positions;
    wf_tie tie;
    bool norm_first, encoder_norm, decoder_norm; /* the final norms, in either mode */
    bool scale_embedding;                        /* times sqrt(d_model) */
    /* of every projection and norm but the output's, as torch.nn.Transformer's */
    bool bias;
    bool output_bias;
    double layer_norm_eps;
    /* keys that are this token are masked, unless it starts or ends; negative: none */
    int32_t pad_id;
    int32_t start_id, end_id;                    /* never masked or ignored */
} wf_transformer_config;

/* How it is trained. */
typedef struct wf_training_config {
    double dropout, attention_dropout, activation_dropout;
    double label_smoothing;
    wf_optimizer_options optimizer;
} wf_training_config;

/* d 512, 8 heads, 6+6, F 2048, relu, sinusoid, post-norm without final norms, scaled */
WF_API wf_transformer_config wf_transformer_defaults(void);
/* ranges; message[256] says which and why */
WF_API bool wf_transformer_check(const wf_transformer_config *c, char *message);

typedef struct wf_transformer_layer_weights { wf_tensor *self, *cross; } wf_transformer_layer_weights;

typedef struct wf_transformer {
    wf_graph *graph;
    wf_transformer_config config;
    wf_training_config training;
    /* inputs */
    wf_tensor *src, *src_length;  /* [B,S] i32, [B] i32 */
    /* [B,T] i32: decoder input; labels, WF_IGNORE_LABEL where nothing is counted */
    wf_tensor *tgt, *labels;
    /* values */
    wf_tensor *memory;            /* [B,S,D] */
    /* per decoder layer [B,H,S,d]: what `encode` fetches and `decode` feeds */
    wf_tensor **cross_k, **cross_v;
    wf_tensor *memory_mask;       /* [B,1,1,S] */
    wf_tensor *logits;            /* [B,T,V] */
    wf_tensor *log_probs;         /* [B,T,V] */
    wf_tensor *token_log_probs;   /* [B,T]: log p of each label; 0 where it is ignored */
    wf_tensor *correct;           /* counted positions whose largest logit is the label, real [] */
    wf_cross_entropy_result loss;
    wf_tensor **encoder_weights;  /* per encoder layer [B,H,S,S] */
    wf_transformer_layer_weights *decoder_weights; /* per decoder layer [B,H,T,T], [B,H,T,S] */
    wf_optimizer optimizer;
} wf_transformer;

/* Record everything, once. seed: initial values and dropout. training NULL: no gradients, no updates. NULL with
 * message[256] on a bad configuration; else check wf_ok(m->graph). */
WF_API wf_transformer *wf_transformer_new(const wf_transformer_config *c, const wf_training_config *training, wf_dtype real, uint64_t seed, char *message);
WF_API void wf_transformer_free(wf_transformer *m); /* with its graph */
WF_API int64_t wf_transformer_parameter_count(const wf_transformer *m);

/* Plans over the one graph. bind "B", "S", "T" (and "P" when decoding), feed, run, fetch. */
/* feeds src src_length tgt labels optimizer.rates; fetches loss.*, correct and optimizer.norm,
 * performs the updates */
WF_API wf_plan *wf_transformer_train_plan(wf_transformer *m, wf_pool *pool);
/* feeds src src_length tgt labels; fetches loss.*, correct */
WF_API wf_plan *wf_transformer_eval_plan(wf_transformer *m, wf_pool *pool);
/* the same feeds; fetches token_log_probs, logits */
WF_API wf_plan *wf_transformer_score_plan(wf_transformer *m, wf_pool *pool);
/* feeds src src_length; fetches cross_k, cross_v, memory_mask */
WF_API wf_plan *wf_transformer_encode_plan(wf_transformer *m, wf_pool *pool);
/* feeds tgt [B,n] and what encode fetched; with_state; fetches logits */
WF_API wf_plan *wf_transformer_decode_plan(wf_transformer *m, wf_pool *pool);
/* feeds src src_length tgt; fetches every layer's weights */
WF_API wf_plan *wf_transformer_attention_plan(wf_transformer *m, wf_pool *pool);

/* ---- decoding: decode.c -------------------------------------------------------------------------------------- */
/* an encode plan, a decode plan and a state, reused from batch to batch */
typedef struct wf_decoder wf_decoder;
/* NULL with message[256] */
WF_API wf_decoder *wf_decoder_new(wf_transformer *m, wf_pool *pool, char *message);
WF_API void wf_decoder_free(wf_decoder *d);
/* Greedy decoding of a batch: src [b, s] right-padded, src_length [b]; at most max_new tokens each, end excluded, into out
 * [b, max_new] (padded with end_id) and their counts into out_length[b]. False: wf_decoder_error. */
WF_API bool wf_decode_greedy(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length, int max_new, int32_t *out, int32_t *out_length);
WF_API const char *wf_decoder_error(const wf_decoder *d);

/* ---- the model file: model_file.c ------------------------------------------------------------------------------- */
/* Extra metadata goes with the weights; with checkpoint also the optimizer's moments. message[256]. */
WF_API bool wf_transformer_save(const wf_transformer *m, const char *path, bool checkpoint, const wf_meta *meta, int n_meta, char *message);
/* Read the configuration, record the model, load the weights (and moments if training and the file has them). */
WF_API wf_transformer *wf_transformer_load(const wf_file *f, const wf_training_config *training, wf_dtype real, uint64_t seed, char *message);
WF_API bool wf_transformer_read_config(const wf_file *f, wf_transformer_config *c, char *message);
/* names of model.md; separate q, k, v too */
WF_API bool wf_transformer_load_weights(wf_transformer *m, const wf_file *f, char *message);

#ifdef __cplusplus
}
#endif
#endif
