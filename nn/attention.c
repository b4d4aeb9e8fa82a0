/* nn/attention.c - multi-head attention (Vaswani et al. 2017, 3.2), packed as
 * torch.nn.MultiheadAttention:
 *
 *     head_h = softmax(Q_h K_h^T / sqrt(d)) V_h,    output = concat(head_1 ... head_H) W_O + b_O
 *
 * in_proj_weight holds W_Q, W_K, W_V one below the other, so that self-attention computes all
 * three in one product, and cross-attention keys and values in one. The core, softmax(Q K^T /
 * sqrt(d)) V, is a fused op (ops/attention/attention.c). B batch, T queries, S keys, H heads, D = H
 * d model width. */
#include "module.h"

struct wf_mha_layer wf_mha_new(wf_graph *g, const char *name, int64_t embed_dim, int64_t num_heads,
                               bool bias, double dropout) {
    struct wf_mha_layer l = { .embed_dim = embed_dim, .num_heads = num_heads, .dropout = dropout };
    const char *outer = wf_scope_push(g, name);
    if (embed_dim < 1 || num_heads < 1 || embed_dim % num_heads)
        wf_poison(g, "a width of %lld does not divide into %lld heads", (long long)embed_dim,
                  (long long)num_heads);
    int64_t rows;
    if (!wf_mul_size(embed_dim, 3, &rows)) rows = -1;
    l.in_proj_weight = wf_param(g, "in_proj_weight", 2, (int64_t[]){ rows, embed_dim },
                                wf_init_xavier_uniform(embed_dim, embed_dim));
    if (bias) l.in_proj_bias = wf_param(g, "in_proj_bias", 1, &rows, wf_init_zeros());
    l.out_proj = wf_linear_new(g, "out_proj", embed_dim, embed_dim, bias);
    l.path = wf_scope(g, outer);
    return l;
}

static bool made(const struct wf_mha_layer *l) {
    return l && l->in_proj_weight && l->out_proj.weight;
}

/* Poison, also for the weights if the options request them. */
static wf_tensor *no_attention(const wf_tensor *x, const wf_mha_options *o) {
    wf_tensor *poison = no_layer(x, "an attention");
    if (o->weights) *o->weights = poison;
    return poison;
}

/* Rows [from, to) of the packed projection, applied to x: [B,T,D] -> [B,T,to-from]. from and to
 * count in D. */
static wf_tensor *project(const struct wf_mha_layer *l, wf_tensor *x, int64_t from, int64_t to) {
    wf_tensor *weight = l->in_proj_weight, *bias = l->in_proj_bias;
    if (to - from < 3) { /* only a part of the projection */
        weight = wf_slice(weight, 0, from * l->embed_dim, to * l->embed_dim);
        if (bias) bias = wf_slice(bias, 0, from * l->embed_dim, to * l->embed_dim);
    }
    return wf_gemm(x, weight, bias, WF_TRANSPOSE_B);
}

/* The i-th D columns of what project returned, as heads: [B,T,n D] -> [B,H,T,d]. */
static wf_tensor *heads(const struct wf_mha_layer *l, wf_tensor *packed, int64_t i) {
    int64_t D = l->embed_dim, split[] = { WF_KEEP, WF_KEEP, l->num_heads, WF_REST };
    wf_tensor *x = wf_reshape(wf_slice(packed, 2, i * D, (i + 1) * D), 4, split); /* [B,T,H,d] */
    return wf_permute(x, (int[]){ 0, 2, 1, 3 });
}

/* Merge the heads and apply the output projection: [B,H,T,d] -> [B,T,D]. */
static wf_tensor *combine(const struct wf_mha_layer *l, wf_tensor *x) {
    int64_t merge[] = { WF_KEEP, WF_KEEP, l->embed_dim };
    return wf_linear(&l->out_proj, wf_reshape(wf_permute(x, (int[]){ 0, 2, 1, 3 }), 3, merge));
}

/* q, k, v in heads -> [B,T,D]; also the weights, if the options request them. */
static wf_tensor *attend(const struct wf_mha_layer *l, wf_tensor *q, wf_tensor *k, wf_tensor *v,
                         const wf_mha_options *o) {
    wf_attention_options options = { .causal = o->causal, .dropout = l->dropout };
    if (o->weights) *o->weights = wf_attention_weights(q, k, o->mask, &options); /* [B,H,T,S] */
    return combine(l, wf_attention(q, k, v, o->mask, &options));
}

static wf_tensor *self_attention(const struct wf_mha_layer *l, wf_tensor *x,
                                 const wf_mha_options *o) {
    wf_tensor *qkv = project(l, x, 0, 3); /* [B,T,3D] */
    wf_tensor *k = heads(l, qkv, 1), *v = heads(l, qkv, 2);
    if (o->cache) k = wf_cache(k, 2), v = wf_cache(v, 2);
    return attend(l, heads(l, qkv, 0), k, v, o);
}

wf_tensor *wf_mha(const struct wf_mha_layer *l, wf_tensor *query, wf_tensor *key_value,
                  const wf_mha_options *o) {
    const wf_mha_options plain = { 0 };
    if (!o) o = &plain;
    if (!made(l)) return no_attention(query, o);
    if (query == key_value) {
        const char *outer = enter(l->in_proj_weight, l->path);
        return leave(outer, self_attention(l, query, o));
    }
    wf_tensor *k, *v;
    wf_mha_keys_values(l, key_value, &k, &v);
    return wf_mha_attend(l, query, k, v, o);
}

void wf_mha_keys_values(const struct wf_mha_layer *l, wf_tensor *memory, wf_tensor **k,
                        wf_tensor **v) {
    wf_tensor *unwanted;
    if (!k) k = &unwanted;
    if (!v) v = &unwanted;
    if (!made(l)) {
        *k = *v = no_layer(memory, "an attention");
        return;
    }
    const char *outer = enter(l->in_proj_weight, l->path);
    wf_tensor *kv = project(l, memory, 1, 3); /* [B,S,2D] */
    *k = heads(l, kv, 0);
    *v = leave(outer, heads(l, kv, 1));
}

wf_tensor *wf_mha_attend(const struct wf_mha_layer *l, wf_tensor *query, wf_tensor *k, wf_tensor *v,
                         const wf_mha_options *o) {
    const wf_mha_options plain = { 0 };
    if (!o) o = &plain;
    if (!made(l)) return no_attention(query, o);
    const char *outer = enter(l->in_proj_weight, l->path);
    return leave(outer, attend(l, heads(l, project(l, query, 0, 1), 0), k, v, o));
}

wf_tensor *wf_key_mask(wf_tensor *lengths, wf_tensor *like, int axis) {
    wf_tensor *ends = wf_unsqueeze(lengths, WF_AXIS(1) | WF_AXIS(2) | WF_AXIS(3)); /* [B,1,1,1] */
    return wf_less(wf_arange(like, axis), ends);
}
