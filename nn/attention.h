/* weft/nn/attention.h - MultiHeadAttention: attention.c. Axes as in nn.h. */
#ifndef WEFT_NN_ATTENTION_H
#define WEFT_NN_ATTENTION_H

#include "layers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* softmax(Q K^T / sqrt(d)) V per head (Vaswani et al. 2017, 3.2.2). d is D / H, or the option
 * head_dim of a block; out_proj is [D, H d]. */
struct wf_mha_layer {
    /* [(H + 2 G) d, D]; [(H + 2 G) d] or NULL. Rows: H d of W_Q, then G d of W_K and G d of W_V */
    wf_tensor *in_proj_weight, *in_proj_bias;
    struct wf_linear_layer out_proj;
    int64_t embed_dim, num_heads, num_kv_heads; /* D, H, G */
    int64_t head_dim;                           /* d */
    /* RMSNorms of each head of queries and of keys, before they are rotated; weight NULL: none */
    struct wf_norm_layer q_norm, k_norm;
    double dropout; /* dropout rate of the attention weights */
    double scale;   /* used if wf_mha_options.scale is 0; 0: 1 / sqrt(d) */
    const char *path;
};
typedef struct wf_mha_options {
    /* the mask, real or i32, [T,S], [B,T,S], [B,1,1,S] or [B,H,T,S]: a query attends to the keys
     * where it is not 0. NULL: no mask */
    wf_tensor *mask;
    /* the mask holds numbers that are added to the scores, as position biases are; -inf excludes a
     * key */
    bool additive;
    bool causal; /* query i of T sees keys j <= i + S - T */
    /* query i sees no key j <= i + S - T - window; only `causal` excludes later keys. 0: no such
     * limit */
    int64_t window;
    bool cache; /* self-attention: keys and values pass through wf_cache */
    /* the table of rotary positions (wf_rotary_positions) that rotates queries, and in
     * self-attention keys; NULL: no rotation. `interleaved` is that of the position layer. Keys are
     * cached after the rotation. Before wf_mha_attend, the caller rotates the keys by wf_rotate */
    wf_tensor *rotary;
    bool interleaved;
    /* receives the attention weights [B,H,T,S] before dropout. Only plans that fetch this tensor
     * compute it. NULL: it is not recorded */
    wf_tensor **weights;
    /* factor of the products of queries and keys; T5 uses 1. 0: the layer's scale */
    double scale;
} wf_mha_options;
/* num_kv_heads: the number of heads of keys and values; 0: num_heads. Fewer make grouped-query
 * attention (Ainslie et al. 2023): num_heads / num_kv_heads consecutive heads of queries share
 * one. */
WF_API struct wf_mha_layer wf_mha_new(wf_graph *g, const char *name, int64_t embed_dim,
                                      int64_t num_heads, int64_t num_kv_heads, bool bias,
                                      double dropout);
/* [B,T,D], [B,S,D] -> [B,T,D]; key_value == query is self-attention. Options may be NULL. */
WF_API wf_tensor *wf_mha(const struct wf_mha_layer *l, wf_tensor *query, wf_tensor *key_value,
                         const wf_mha_options *o);
/* wf_mha in two steps, so that a decoder computes keys and values of its memory only once: k and v
 * are [B,G,S,d]. */
WF_API void wf_mha_keys_values(const struct wf_mha_layer *l, wf_tensor *memory, wf_tensor **k,
                               wf_tensor **v);
WF_API wf_tensor *wf_mha_attend(const struct wf_mha_layer *l, wf_tensor *query, wf_tensor *k,
                                wf_tensor *v, const wf_mha_options *o);
/* Mask of keys from lengths [B] i32 -> [B,1,1,S]: 1 where j < length, for j = 0..S-1. S is the size
 * of axis number `axis` of `like`. For self-attention with a cache use like = wf_cache(x, axis),
 * whose axis has the length of all keys so far. */
WF_API wf_tensor *wf_key_mask(wf_tensor *lengths, wf_tensor *like, int axis);

#ifdef __cplusplus
}
#endif
#endif
