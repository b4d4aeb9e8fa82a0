/* weft/nn/blocks.h - the blocks of the Transformer: feed-forward, encoder layer, decoder layer;
 * blocks.c. */
#ifndef WEFT_NN_BLOCKS_H
#define WEFT_NN_BLOCKS_H

#include "attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A row per activation: the enumerator, its name in options and files, the function. Old files hold
 * the number of a row instead of its name, so new rows are added at the end. */
/* clang-format off */
#define WF_ACTIVATIONS(ROW)                                                                        \
    ROW(WF_RELU, "relu", wf_relu)                                                                  \
    ROW(WF_GELU, "gelu", wf_gelu)                                                                  \
    ROW(WF_GELU_TANH, "gelu-tanh", wf_gelu_tanh)                                                   \
    ROW(WF_SILU, "silu", wf_silu)                                                                  \
    /* and so on */
#define WF_ENUMERATOR(value, name, function) value,
#define WF_ONE_MORE(value, name, function) +1
typedef enum { WF_ACTIVATIONS(WF_ENUMERATOR) } wf_activation;
enum { WF_ACTIVATION_COUNT = WF_ACTIVATIONS(WF_ONE_MORE) };
/* clang-format on */
WF_API wf_tensor *wf_activate(wf_activation a, wf_tensor *x);

/* A row per kind of a decoder layer's first sublayer: the enumerator, and its name in options and
 * files. SSRU is the simpler simple recurrent unit (Kim et al. 2019), average is average attention
 * (Zhang et al. 2018). Unlike a KV cache, the states of these two do not grow with the position. */
/* clang-format off */
#define WF_DECODER_KINDS(ROW)                                                                      \
    ROW(WF_DECODER_ATTENTION, "attention")                                                         \
    ROW(WF_DECODER_SSRU, "ssru")                                                                   \
    ROW(WF_DECODER_AVERAGE, "average")                                                             \
    /* and so on */
#define WF_DECODER_ENUMERATOR(value, name) value,
typedef enum { WF_DECODER_KINDS(WF_DECODER_ENUMERATOR) } wf_decoder_kind;
/* clang-format on */

typedef struct wf_block_options {
    int64_t d_model, num_heads, dim_feedforward;
    wf_activation activation;
    bool norm_first; /* pre-norm: x + Dropout(f(LN(x))); else post-norm: LN(x + Dropout(f(x))) */
    bool bias;       /* biases in projections and norms, as in torch.nn.Transformer */
    double dropout, attention_dropout, activation_dropout, layer_norm_eps;
    /* gradient checkpointing (Chen et al. 2016): a training plan keeps only the input of each layer
     * for its backward pass, which computes the layer's values again, with the same bits */
    bool recompute;
    wf_norm_kind norm; /* kind of every norm; RMSNorm has no bias */
    /* true: feed-forward is linear2(activation(linear1(x)) * linear3(x)), as in Shazeer 2020:
     * SwiGLU with WF_SILU, GeGLU with WF_GELU, ReGLU with WF_RELU. linear1 and linear3 are [F, D]:
     * linear1, linear2, linear3 are w1, w2, w3 of Llama, and gate_proj, down_proj, up_proj of
     * Hugging Face */
    bool gated;
    /* heads of keys and values in self-attention, see wf_mha_new; 0: num_heads */
    int64_t num_kv_heads;
    /* width of a head; 0: d_model / num_heads */
    int64_t head_dim;
    /* self-attention has biases even if `bias` is false: qkv_bias those of queries, keys and values
     * (Qwen 2), out_bias that of the output projection */
    bool qkv_bias, out_bias;
    /* in self-attention: an RMSNorm of each head of queries and of keys, before they are rotated
     * (Qwen 3), with layer_norm_eps */
    bool qk_norm;
    /* factor of the scores of all attentions; 0: 1 / sqrt(head_dim). T5 uses 1, and its initial
     * queries are smaller instead */
    double attention_scale;
    /* the first sublayer of decoder layers. SSRU and average attention have no mask and no heads,
     * so wf_decoder_layer ignores its options for self-attention */
    wf_decoder_kind decoder;
    /* for average attention: the width of its feed-forward (0: dim_feedforward), and its
     * activation */
    int64_t average_width;
    wf_activation average_activation;
    /* with pre-norm and no rotary positions: only the queries of self-attention are computed from
     * the normalised x, keys and values from x itself, as in Marian */
    bool raw_keys;
} wf_block_options;

struct wf_feed_forward_layer {
    /* parameters have these names in the current scope */
    struct wf_linear_layer linear1, linear2, linear3;
    wf_activation activation;
    bool gated; /* false: there is no linear3 */
    double dropout;
};
/* Make the layers linear1, linear2 and, if gated, linear3, in the current scope and with the sizes
 * of the options. */
WF_API struct wf_feed_forward_layer wf_feed_forward_new(wf_graph *g, const wf_block_options *o);
/* [..., D] -> [..., D] */
WF_API wf_tensor *wf_feed_forward(const struct wf_feed_forward_layer *l, wf_tensor *x);

struct wf_encoder_block {
    struct wf_mha_layer self_attn;
    struct wf_feed_forward_layer ff;
    struct wf_norm_layer norm1, norm2;
    wf_block_options o;
    const char *path;
};
/* f = sigmoid(forget(x)), c[t] = f[t] c[t-1] + (1 - f[t]) input(x)[t], relu(c): [B,T,D]. A decoding
 * state holds only c of the last position. */
struct wf_ssru_layer {
    struct wf_linear_layer input, forget; /* [D, D], input without a bias */
    const char *path;
};
/* m[t] = the mean of x[0] to x[t], normalised if pre-norm; y = outer(activation(inner(m))); the
 * result is sigmoid(input_gate(x)) x + sigmoid(forget_gate(y)) y: [B,T,D]. A decoding state holds
 * only the mean of the last position. */
struct wf_average_layer {
    /* weights: inner [W, D], outer [D, W], gates [D, D]. If W equals D, there is no `outer`, and
     * outer.weight is NULL */
    struct wf_linear_layer inner, outer, input_gate, forget_gate;
    wf_activation activation;
    double dropout;
    const char *path;
};
struct wf_decoder_block {
    /* the option `decoder` chooses one of self_attn, ssru and average */
    struct wf_mha_layer self_attn, multihead_attn;
    struct wf_ssru_layer ssru;
    struct wf_average_layer average;
    struct wf_feed_forward_layer ff;
    struct wf_norm_layer norm1, norm2, norm3;
    wf_block_options o;
    const char *path;
};
/* Make a block, whose parameters are in the scope of this name. */
WF_API struct wf_encoder_block wf_encoder_layer_new(wf_graph *g, const char *name,
                                                    const wf_block_options *o);
WF_API struct wf_decoder_block wf_decoder_layer_new(wf_graph *g, const char *name,
                                                    const wf_block_options *o);
/* [B,S,D] -> [B,S,D]. With o->causal and o->cache it is a layer of a decoder-only model. */
WF_API wf_tensor *wf_encoder_layer(const struct wf_encoder_block *l, wf_tensor *x,
                                   const wf_mha_options *o);
/* [B,T,D] -> [B,T,D]. cross_k and cross_v are the results of wf_mha_keys_values for multihead_attn
 * and the memory. */
WF_API wf_tensor *wf_decoder_layer(const struct wf_decoder_block *l, wf_tensor *x,
                                   wf_tensor *cross_k, wf_tensor *cross_v,
                                   const wf_mha_options *self, const wf_mha_options *cross);

#ifdef __cplusplus
}
#endif
#endif
