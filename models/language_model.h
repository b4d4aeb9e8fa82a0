/* weft/models/language_model.h - a decoder-only Transformer as one graph, in the form of GPT-2
 * (Radford et al. 2019) or of Llama (Touvron et al. 2023): each token from those before it.
 *
 * A pair of source and target is one sequence: the source, the start token, the target; what comes
 * out of the source's positions does not count. So it learns what a Transformer does, and from
 * targets alone, their sources empty, to go on from any text. With start_first the start stands
 * before it all, and an output goes on from its source with nothing between: prompts of a model of
 * running text. wf_model_feed puts pairs together;
 * model.h has the plans, decode.h makes outputs.
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
    int64_t max_len; /* of a source, the start and a target together */
    int64_t d_model, num_heads, dim_feedforward, layers;
    wf_activation activation;
    wf_positions positions;
    bool tied; /* the output's matrix is the table of embeddings */
    bool norm_first;
    bool final_norm;
    bool scale_embedding; /* times sqrt(d_model) */
    bool bias;            /* of all norms and projections but the output's */
    bool output_bias;
    double layer_norm_eps;
    wf_norm_kind norm;        /* of all norms */
    int64_t num_kv_heads;     /* of keys and values, each shared by some heads; 0: num_heads */
    bool gated;               /* feed-forward: SwiGLU with WF_SILU */
    int32_t start_id, end_id; /* what stands between source and target; what follows a target */
    bool start_first;         /* the start stands before the source instead */
} wf_language_model_config;

/* D 512, 8 heads, 6 layers, F 2048, gelu-tanh, learned positions up to 1024, pre-norm with a final
 * norm, tied. Set the vocabulary, and the ids of start and end if they are not 0. */
WF_API wf_language_model_config wf_language_model_defaults(void);
/* Llama's architecture: RMSNorm, rotary positions, SwiGLU, no biases, not tied; F 1376, 2 heads of
 * keys and values. */
WF_API wf_language_model_config wf_language_model_llama(void);
/* Do the sizes fit each other? False: message[256] says which do not. */
WF_API bool wf_language_model_check(const wf_language_model_config *c, char *message);

typedef struct wf_language_model {
    wf_model model;
    wf_language_model_config config;
} wf_language_model;

/* Record everything, once: a wf_language_model, seen as the model that it begins with. As
 * wf_transformer_new. */
WF_API wf_model *wf_language_model_new(const wf_language_model_config *c,
                                       const wf_training_config *training, wf_dtype real,
                                       uint64_t seed, char *message);
/* The language model's own tensors; NULL: m is another kind of model, or NULL. */
WF_API const wf_language_model *wf_language_model_of(const wf_model *m);

#ifdef __cplusplus
}
#endif
#endif
