/* nn/layers_internal.h - inside the library and its programs: which positions are rotary, relative
 * positions, and the norms and attentions of a block. Not installed. */
#ifndef WEFT_NN_LAYERS_INTERNAL_H
#define WEFT_NN_LAYERS_INTERNAL_H

#include "nn/blocks.h"

/* True if positions of this kind rotate queries and keys. */
bool wf_rotates(wf_positions kind);
/* A norm of the kind, width and eps of the options of a block: blocks.c. */
struct wf_norm_layer wf_block_norm_new(wf_graph *g, const char *name, const wf_block_options *o);
/* Make the self-attention, or the cross-attention, of a block with these options: attention.c. */
struct wf_mha_layer wf_self_attention_new(wf_graph *g, const char *name, const wf_block_options *o);
struct wf_mha_layer wf_cross_attention_new(wf_graph *g, const char *name,
                                           const wf_block_options *o);

/* ---- relative positions, as T5 and MPNet have them: embedding.c ------------------------------ */

/* One bias per head and bucket. A bucket is a range of distances between a key and a query. In each
 * direction, half of the buckets hold one distance each; the ranges of the others grow, and the
 * last one begins before `distance`. both: keys after the query have buckets of their own, as in an
 * encoder; else they all have bucket 0. */
struct wf_relative_layer {
    wf_tensor *weight; /* [buckets, H] */
    int64_t buckets, distance;
    bool both;
    const char *path;
};
/* True if a direction has 2 buckets or more, `distance` is more than half their number and at most
 * 65,536, and `buckets` is at most 131,072. */
bool wf_relative_fits(int64_t buckets, int64_t distance, bool both);
/* The bucket of an offset, the key's position minus the query's; 0 if wf_relative_fits is false. */
int32_t wf_relative_bucket(int64_t offset, int64_t buckets, int64_t distance, bool both);
struct wf_relative_layer wf_relative_new(wf_graph *g, const char *name, int64_t heads,
                                         int64_t buckets, int64_t distance, bool both);
/* The biases for positions of queries [T] and keys [S], i32 -> [1,H,T,S]: an additive mask for
 * attention (wf_mha_options). In a decoder with a cache, queries are wf_position_ids(x, 1), and
 * keys wf_arange(wf_cache(x, 1), 1): each step needs the bias for all keys so far. */
wf_tensor *wf_relative_bias(const struct wf_relative_layer *l, wf_tensor *queries, wf_tensor *keys);
/* The bias [1,H,T,S] where the mask [B,1,1,S] is not 0, and -inf elsewhere: [B,H,T,S]. mask NULL:
 * the bias itself. */
wf_tensor *wf_relative_mask(wf_tensor *bias, wf_tensor *mask);

/* The width of a head: the option head_dim, or else d_model / num_heads; 0 if the heads do not
 * divide the width. */
static inline int64_t wf_head_dim(const wf_block_options *o) {
    if (o->head_dim || o->num_heads < 1 || o->d_model % o->num_heads) return o->head_dim;
    return o->d_model / o->num_heads;
}

#endif
