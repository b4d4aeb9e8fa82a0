/* nn/attention.c - multi-head attention (Vaswani et al. 2017, 3.2), packed as
 * torch.nn.MultiheadAttention:
 *
 *     head_h = softmax(Q_h K_h^T / sqrt(d)) V_h,    output = concat(head_1 ... head_H) W_O + b_O
 *
 * in_proj_weight holds W_Q, W_K, W_V one below the other, so that self-attention computes all three
 * in one product, and cross-attention computes keys and values in one. The core, softmax(Q K^T /
 * sqrt(d)) V, is a fused op (ops/attention/attention_op.c). B batch, T queries, S keys, H heads, G
 * heads of keys and values, D model width, d width of a head: D / H unless the options set another
 * one. */
#include <math.h>

#include "core/compose.h"
#include "core/op_internal.h"
#include "core/product_hook.h"
#include "layers_internal.h"
#include "module.h"

/* False if the heads do not fit; the graph has then failed. Groups must divide the heads. Heads of
 * the default width must divide the model width; those with a head_dim need not. */
static bool heads_fit(wf_graph *g, const wf_block_options *o) {
    if (o->d_model < 1 || o->num_heads < 1 || wf_head_dim(o) < 1)
        wf_poison(g, "a width of %lld does not divide into %lld heads", (long long)o->d_model,
                  (long long)o->num_heads);
    else if (o->num_kv_heads < 1 || o->num_heads % o->num_kv_heads)
        wf_poison(g, "%lld heads do not divide into %lld groups", (long long)o->num_heads,
                  (long long)o->num_kv_heads);
    else
        return true;
    return false;
}

/* The total width of so many heads, heads * d; -1: three times this width overflows. */
static int64_t heads_width(int64_t heads, int64_t d) {
    int64_t width, three;
    return wf_mul_size(heads, d, &width) && wf_mul_size(3, width, &three) ? width : -1;
}

/* Fill the packed matrix with Xavier uniform values, and multiply the queries' rows, which are the
 * first init->b rows, by init->a. */
static void fill_scaled(const wf_init *init, uint64_t key, wf_dtype dtype, int ndim,
                        const int64_t *shape, void *data) {
    int64_t width = (int64_t)init->b, n = width * shape[1];
    wf_init usual = wf_init_xavier_uniform(shape[1], width);
    usual.fill(&usual, key, dtype, ndim, shape, data);
    for (int64_t i = 0; i < n && dtype == WF_F32; i++) ((float *)data)[i] *= (float)init->a;
    for (int64_t i = 0; i < n && dtype == WF_F64; i++) ((double *)data)[i] *= init->a;
}

/* The initial packed projection. If attention has a scale of its own, the queries start larger or
 * smaller, so that the first scores are as large as with the scale 1 / sqrt(d). */
static wf_init initial(const wf_block_options *o, int64_t width, int64_t d) {
    if (o->attention_scale == 0 || d < 1) return wf_init_xavier_uniform(o->d_model, width);
    double factor = 1 / (o->attention_scale * sqrt((double)d));
    return (wf_init){ .fill = fill_scaled, .a = factor, .b = (double)width };
}

static struct wf_mha_layer mha_new(wf_graph *g, const char *name, const wf_block_options *o) {
    struct wf_mha_layer l = { .embed_dim = o->d_model,
                              .num_heads = o->num_heads,
                              .num_kv_heads = o->num_kv_heads,
                              .dropout = o->attention_dropout,
                              .scale = o->attention_scale };
    const char *outer = wf_scope_push(g, name);
    int64_t width = -1, rows = -1;
    if (heads_fit(g, o)) {
        l.head_dim = wf_head_dim(o);
        width = heads_width(o->num_heads, l.head_dim);
    }
    /* cannot overflow: there are at most num_heads groups, so the sum is at most 3 * width */
    if (width > 0) rows = width + 2 * o->num_kv_heads * l.head_dim;
    l.in_proj_weight = wf_param(g, "in_proj_weight", 2, (int64_t[]){ rows, o->d_model },
                                initial(o, width > 0 ? width : 1, l.head_dim));
    if (o->bias || o->qkv_bias)
        l.in_proj_bias = wf_param(g, "in_proj_bias", 1, &rows, wf_init_zeros());
    if (o->qk_norm) {
        l.q_norm = wf_norm_new(g, "q_norm", WF_RMS_NORM, l.head_dim, o->layer_norm_eps, false);
        l.k_norm = wf_norm_new(g, "k_norm", WF_RMS_NORM, l.head_dim, o->layer_norm_eps, false);
    }
    l.out_proj = wf_linear_new(g, "out_proj", width, o->d_model, o->bias || o->out_bias);
    l.path = wf_scope(g, outer);
    return l;
}

struct wf_mha_layer wf_mha_new(wf_graph *g, const char *name, int64_t embed_dim, int64_t num_heads,
                               int64_t num_kv_heads, bool bias, double dropout) {
    const wf_block_options o = { .d_model = embed_dim,
                                 .num_heads = num_heads,
                                 .num_kv_heads = num_kv_heads ? num_kv_heads : num_heads,
                                 .bias = bias,
                                 .attention_dropout = dropout };
    return mha_new(g, name, &o);
}

struct wf_mha_layer wf_self_attention_new(wf_graph *g, const char *name,
                                          const wf_block_options *o) {
    wf_block_options grouped = o ? *o : (wf_block_options){ .d_model = 0 };
    if (!grouped.num_kv_heads) grouped.num_kv_heads = grouped.num_heads;
    return mha_new(g, name, &grouped);
}

struct wf_mha_layer wf_cross_attention_new(wf_graph *g, const char *name,
                                           const wf_block_options *o) {
    if (!o) return wf_self_attention_new(g, name, NULL);
    const wf_block_options cross = { .d_model = o->d_model,
                                     .num_heads = o->num_heads,
                                     .num_kv_heads = o->num_heads,
                                     .head_dim = o->head_dim,
                                     .bias = o->bias,
                                     .attention_scale = o->attention_scale,
                                     .attention_dropout = o->attention_dropout };
    return mha_new(g, name, &cross);
}

/* True if the layer was made. A layer of a failed graph may have 0 heads, by which nothing can be
 * divided. */
static bool made(const struct wf_mha_layer *l) {
    return l && l->in_proj_weight && l->out_proj.weight && wf_ok(l->in_proj_weight->graph);
}

/* Fails the graph, because the layer was not made. Returns the graph's poison (its error node). If
 * the options request attention weights, these are the poison, too. */
static wf_tensor *no_attention(const wf_tensor *x, const wf_mha_options *o) {
    wf_tensor *poison = no_layer(x, "an attention");
    if (o->weights) *o->weights = poison;
    return poison;
}

/* Consecutive heads of the packed projection of x [B,T,D]. y [B,T,n d] has n heads. The first of
 * them is number `from` among all heads of the packed matrix. */
typedef struct projection {
    wf_tensor *x, *y;
    int64_t from;
} projection;

/* Applies heads [from, to) of the packed projection to x. The projection has the heads of queries
 * first, then those of keys, then those of values. */
static projection project(const struct wf_mha_layer *l, wf_tensor *x, int64_t from, int64_t to) {
    wf_tensor *weight = l->in_proj_weight, *bias = l->in_proj_bias;
    int64_t d = l->head_dim;
    if (to - from < l->num_heads + 2 * l->num_kv_heads) { /* a slice of the projection is enough */
        weight = wf_slice(weight, 0, from * d, to * d);
        if (bias) bias = wf_slice(bias, 0, from * d, to * d);
    }
    return (projection){ x, wf_gemm(x, weight, bias, WF_TRANSPOSE_B), from };
}

/* Takes n heads, from the i-th on, out of a projection: [B,n,T,d]. norm normalises each of these
 * heads; NULL, or without a weight: no norm. */
static wf_tensor *heads(const struct wf_mha_layer *l, projection p, int64_t i, int64_t n,
                        const struct wf_norm_layer *norm) {
    int64_t d = l->head_dim, split[] = { WF_KEEP, WF_KEEP, n, WF_REST };
    wf_tensor *y = wf_slice(p.y, 2, i * d, (i + n) * d); /* [B,T,n d] */
    y = wf_product_made(y, p.x, l->in_proj_weight, (p.from + i) * d);
    wf_tensor *x = wf_reshape(y, 4, split); /* [B,T,n,d] */
    if (norm && norm->weight) x = wf_norm(norm, x);
    return wf_permute(x, (int[]){ 0, 2, 1, 3 });
}

/* Merge the heads and apply the output projection: [B,H,T,d] -> [B,T,D]. */
static wf_tensor *combine(const struct wf_mha_layer *l, wf_tensor *x) {
    int64_t merge[] = { WF_KEEP, WF_KEEP, l->num_heads * l->head_dim };
    return wf_linear(&l->out_proj, wf_reshape(wf_permute(x, (int[]){ 0, 2, 1, 3 }), 3, merge));
}

/* Rotates queries or keys, [B,H,T,d], by their positions if the options have rotary positions. */
static wf_tensor *turn(wf_tensor *x, const wf_mha_options *o) {
    return o->rotary ? wf_rotate(x, o->rotary, o->interleaved) : x;
}

/* Attention of q, k and v, split into heads -> [B,T,D]. Also records the weights if the options
 * request them. */
static wf_tensor *attend(const struct wf_mha_layer *l, wf_tensor *q, wf_tensor *k, wf_tensor *v,
                         const wf_mha_options *o) {
    wf_attention_options options = { .additive = o->additive,
                                     .causal = o->causal,
                                     .window = o->window,
                                     .scale = o->scale != 0 ? o->scale : l->scale,
                                     .dropout = l->dropout };
    if (o->weights) *o->weights = wf_attention_weights(q, k, o->mask, &options); /* [B,H,T,S] */
    return combine(l, wf_attention(q, k, v, o->mask, &options));
}

static wf_tensor *self_attention(const struct wf_mha_layer *l, wf_tensor *x,
                                 const wf_mha_options *o) {
    int64_t H = l->num_heads, G = l->num_kv_heads;
    projection qkv = project(l, x, 0, H + 2 * G);
    wf_tensor *k = turn(heads(l, qkv, H, G, &l->k_norm), o);
    wf_tensor *v = heads(l, qkv, H + G, G, NULL);
    if (o->cache) {
        k = wf_cache(k, 2);
        v = wf_cache(v, 2);
    }
    return attend(l, turn(heads(l, qkv, 0, H, &l->q_norm), o), k, v, o);
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
    if (o->rotary)
        wf_poison(l->in_proj_weight->graph,
                  "the table of rotary positions is that of the queries: turn the keys of "
                  "wf_mha_keys_values by wf_rotate, then call wf_mha_attend");
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
    int64_t H = l->num_heads, G = l->num_kv_heads;
    projection kv = project(l, memory, H, H + 2 * G);
    *k = heads(l, kv, 0, G, &l->k_norm);
    *v = leave(outer, heads(l, kv, G, G, NULL));
}

wf_tensor *wf_mha_attend(const struct wf_mha_layer *l, wf_tensor *query, wf_tensor *k, wf_tensor *v,
                         const wf_mha_options *o) {
    const wf_mha_options plain = { 0 };
    if (!o) o = &plain;
    if (!made(l)) return no_attention(query, o);
    const char *outer = enter(l->in_proj_weight, l->path);
    int64_t H = l->num_heads;
    wf_tensor *q = heads(l, project(l, query, 0, H), 0, H, &l->q_norm);
    return leave(outer, attend(l, turn(q, o), k, v, o));
}

wf_tensor *wf_key_mask(wf_tensor *lengths, wf_tensor *like, int axis) {
    WF_COMPOSE("key_mask", lengths, like);
    wf_tensor *ends = wf_unsqueeze(lengths, WF_AXIS(1) | WF_AXIS(2) | WF_AXIS(3)); /* [B,1,1,1] */
    return wf_composed(wf_less(wf_arange(like, axis), ends));
}
