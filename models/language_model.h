/* weft/models/language_model.h - a decoder-only Transformer as one graph, in the form of GPT-2
 * (Radford et al. 2019) or of Llama (Touvron et al. 2023). It predicts each token from those before
 * it.
 *
 * A pair of source and target is one sequence: the source, the start token, the target. Predictions
 * at the source's positions do not count in the loss. So the model can learn everything that an
 * encoder-decoder can; with empty sources it learns to continue any text. With start_first the
 * start token comes before the source, and the output continues the source directly: this is for
 * prompts of running text. wf_model_feed joins pairs; model.h has the plans, and decode.h makes
 * outputs. With start_if_empty a sequence begins with the prompt itself, without a start token.
 * Axes: B batch, T length, H heads, D model width, V vocabulary. */
#ifndef WEFT_MODELS_LANGUAGE_MODEL_H
#define WEFT_MODELS_LANGUAGE_MODEL_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The architecture, which is stored in the model's file. */
typedef struct wf_language_model_config {
    int64_t vocab;
    int64_t max_len; /* most tokens of a source, the start and a target together */
    int64_t d_model, num_heads, dim_feedforward, layers;
    wf_activation activation;
    wf_positions positions;
    bool tied; /* the output's matrix is the table of embeddings */
    bool norm_first;
    bool final_norm;
    bool scale_embedding; /* times sqrt(d_model) */
    bool bias;            /* biases of all norms and projections except the output's */
    bool output_bias;
    double layer_norm_eps;
    wf_norm_kind norm; /* of all norms */
    /* number of heads of keys and values, which heads of queries share; 0: num_heads */
    int64_t num_kv_heads;
    bool gated;               /* feed-forward layers are gated: SwiGLU with WF_SILU */
    int32_t start_id, end_id; /* the token between source and target; the token after a target */
    bool start_first;         /* start_id comes before the source, not after it */
    /* with start_first: no start token is put before a source, but only before an output without a
     * source. Imported models need this, because their tokenizers add a start token to the source
     * if it needs one */
    bool start_if_empty;
    int64_t head_dim;        /* width of a head; 0: d_model / num_heads */
    bool qkv_bias, out_bias; /* where `bias` is false: biases of attention */
    bool qk_norm;            /* an RMSNorm on each head of queries and of keys */
    int64_t window;          /* a token sees the last `window` tokens, itself among them; 0: all */
    /* rotary positions: the base of their angles, 0: 10000, and how these are stretched. See
     * wf_rotary_table */
    double rotary_base;
    wf_rotary_scaling rotary_scaling;
} wf_language_model_config;

/* The configuration of a form. Both have D 512, 8 heads, 6 layers, up to 1024 tokens, and pre-norm
 * with a final norm. Set the vocabulary, and the ids of start and end if they are not 0. */
typedef enum {
    WF_GPT2, /* F 2048, gelu-tanh, learned positions, LayerNorm, biases, tied */
    /* F 1376, SwiGLU, rotary positions, RMSNorm, no biases, not tied; 2 heads of keys and values */
    WF_LLAMA
} wf_language_model_form;
WF_API wf_language_model_config wf_language_model_defaults(wf_language_model_form form);

typedef struct wf_language_model {
    wf_model model;
    wf_language_model_config config;
} wf_language_model;

/* Record the model's graph. The result is the wf_model at the beginning of a wf_language_model.
 * Arguments and errors are those of wf_transformer_new. */
WF_API wf_model *wf_language_model_new(const wf_language_model_config *c,
                                       const wf_training_config *training, wf_dtype real,
                                       uint64_t seed, char *message);
/* The wf_language_model that m belongs to. NULL: m is of another kind, or NULL. */
WF_API const wf_language_model *wf_language_model_of(const wf_model *m);

#ifdef __cplusplus
}
#endif
#endif
