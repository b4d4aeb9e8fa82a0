/* weft/models/transformer.h - the encoder-decoder Transformer (Vaswani et al. 2017) as one graph.
 *
 * wf_transformer_new records encoder, decoder and loss once. Everything after that is a plan over
 * the same graph: nn/trainer.h trains, model.h has plans for scores, and decode.h makes outputs.
 * Every `message` has room for 256 bytes, or is NULL. Axes: B batch, S source length, T target
 * length, H heads, D model width, d = D / H, V vocabulary. */
#ifndef WEFT_MODELS_TRANSFORMER_H
#define WEFT_MODELS_TRANSFORMER_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The architecture, which is stored in the model's file. */
typedef struct wf_transformer_config {
    int64_t src_vocab, tgt_vocab, max_len;
    int64_t d_model, num_heads, dim_feedforward, encoder_layers, decoder_layers;
    wf_activation activation;
    wf_positions positions;
    wf_tie tie;
    bool norm_first;
    bool encoder_norm, decoder_norm; /* each stack ends with a norm, wherever the other norms are */
    bool scale_embedding;            /* times sqrt(d_model) */
    bool embedding_norm; /* a norm after each sum of embeddings and positions, before its dropout */
    bool bias;           /* biases of all norms and projections except the output's */
    bool output_bias;
    double layer_norm_eps;
    /* ---- forms of T5 (Raffel et al. 2020); all of them 0 otherwise ---- */
    wf_norm_kind norm; /* kind of every norm */
    bool gated;        /* feed-forward layers are linear2(f(linear1 x) * linear3 x) */
    int64_t head_dim;  /* width of a head; 0: d_model / num_heads */
    /* factor of the scores of attention; 0: 1 / sqrt(width of a head) */
    double attention_scale;
    /* Relative positions: self-attention adds to each score a learned bias, which depends on the
     * head and on the bucket of the offset from query to key. Small offsets have a bucket each,
     * larger ones share buckets, and all from relative_distance on share the last. In the encoder,
     * half of the relative_buckets are for keys after the query. relative_buckets 0: no bias */
    int64_t relative_buckets, relative_distance;
    /* each layer has biases of its own; else the layers of a stack share them */
    bool relative_per_layer;
    bool scale_output; /* the output layer's input is divided by sqrt(d_model) */
    /* ---- forms of Marian (Junczys-Dowmunt et al. 2018); all of them 0 otherwise ---- */
    wf_decoder_kind decoder; /* the first sublayer of decoder layers: see wf_block_options */
    int64_t average_width;   /* average attention: width and activation of its feed-forward layer */
    wf_activation average_activation;
    bool raw_keys;   /* only with pre-norm: see wf_block_options */
    bool zero_start; /* the decoder reads zeros in place of the start token */
    /* id of source tokens that are not attended to, unless it is start_id or end_id; -1: none */
    int32_t pad_id;
    int32_t start_id, end_id; /* start and end of the target; never masked or ignored */
} wf_transformer_config;

/* The paper's base model: D 512, 8 heads, 6 + 6 layers, F 2048, relu, sinusoidal positions,
 * post-norm without final norms, scaled embeddings. Set the vocabularies, and the ids of start and
 * end if they are not 0. */
WF_API wf_transformer_config wf_transformer_defaults(void);

typedef struct wf_transformer {
    wf_model model;
    wf_transformer_config config;
    wf_tensor *memory;      /* [B,S,D] */
    wf_tensor *memory_mask; /* [B,1,1,S] */
    /* keys and values of the encoder's output for each decoder layer, [B,H,S,d]. Both are parts of
     * model.memory, which ends with memory_mask */
    wf_tensor **cross_k, **cross_v;
} wf_transformer;

/* Record the model's graph. The result is the wf_model at the beginning of a wf_transformer. seed
 * determines initial values and dropout. training NULL: no dropout, no smoothing, no hook. NULL
 * with a message on a bad configuration; otherwise check wf_ok(m->graph). */
WF_API wf_model *wf_transformer_new(const wf_transformer_config *c,
                                    const wf_training_config *training, wf_dtype real,
                                    uint64_t seed, char *message);
/* The wf_transformer that m belongs to. NULL: m is of another kind, or NULL. */
WF_API const wf_transformer *wf_transformer_of(const wf_model *m);

/* ---- PyTorch's state_dict: state_dict.c ------------------------------------------------------ */

/* Make a model from a state_dict, whose names may have any prefix. `given` has the settings that
 * the file does not show, such as the heads. Names and shapes in the file override its sizes,
 * layers, biases, final norms, ties, learned positions and their max_len. NULL with a message. */
WF_API wf_model *wf_transformer_from_state_dict(const wf_file *f,
                                                const wf_transformer_config *given, wf_dtype real,
                                                char *message);
/* Save only the Transformer's own parameters, in f32 or bf16, with a tied table under all its
 * names. load_state_dict of the same module accepts the file with strict=True. */
WF_API bool wf_transformer_save_state_dict(const wf_model *m, const char *path, bool bf16,
                                           char *message);

#ifdef __cplusplus
}
#endif
#endif
