/* weft/nn/attention.h - MultiHeadAttention: attention.c. Axes as in nn.h. */
#ifndef WEFT_NN_ATTENTION_H
#define WEFT_NN_ATTENTION_H

#include "layers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* softmax(Q K^T / sqrt(d)) V per head (Vaswani et al. 2017, 3.2.2). */
struct wf_mha_layer {
    wf_tensor *in_proj_weight, *in_proj_bias; /* [3D, D], [3D] or NULL: W_Q, W_K, W_V */
    struct wf_linear_layer out_proj;
    int64_t embed_dim, num_heads;
    double dropout; /* of the weights */
    const char *path;
};
typedef struct wf_mha_options {
    wf_tensor *mask;     /* 1 = may attend; [T,S], [B,T,S], [B,1,1,S] or [B,H,T,S]; or NULL */
    bool causal;         /* query i sees keys j <= i + (keys - queries) */
    bool cache;          /* self-attention: keys and values pass through wf_cache */
    wf_tensor **weights; /* out: [B,H,T,S] from primitives, before dropout; NULL: not recorded */
} wf_mha_options;
WF_API struct wf_mha_layer wf_mha_new(wf_graph *g, const char *name, int64_t embed_dim,
                                      int64_t num_heads, bool bias, double dropout);
/* [B,T,D], [B,S,D] -> [B,T,D]; key_value == query is self-attention. Options may be NULL. */
WF_API wf_tensor *wf_mha(const struct wf_mha_layer *l, wf_tensor *query, wf_tensor *key_value,
                         const wf_mha_options *o);
/* wf_mha in two steps, so that a decoder projects its memory only once: k and v are [B,H,S,d]. */
WF_API void wf_mha_keys_values(const struct wf_mha_layer *l, wf_tensor *memory, wf_tensor **k,
                               wf_tensor **v);
WF_API wf_tensor *wf_mha_attend(const struct wf_mha_layer *l, wf_tensor *query, wf_tensor *k,
                                wf_tensor *v, const wf_mha_options *o);
/* lengths [B] i32 -> [B,1,1,S]: 1 where j < length, j = 0..S-1, S the size of like's axis. For
 * self-attention with a cache use like = wf_cache(x, axis), which has the length of all keys so
 * far. */
WF_API wf_tensor *wf_key_mask(wf_tensor *lengths, wf_tensor *like, int axis);

#ifdef __cplusplus
}
#endif
#endif
