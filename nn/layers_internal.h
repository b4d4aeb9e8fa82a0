/* nn/layers_internal.h - inside the library and its programs: what kinds of positions do, and the
 * self-attention of a block. Not installed. */
#ifndef WEFT_NN_LAYERS_INTERNAL_H
#define WEFT_NN_LAYERS_INTERNAL_H

#include "nn/blocks.h"

/* True if positions of this kind rotate queries and keys. */
bool wf_rotates(wf_positions kind);
/* A self-attention with the options of a block: attention.c. */
struct wf_mha_layer wf_self_attention_new(wf_graph *g, const char *name, const wf_block_options *o);
/* The width of a head; 0 if the heads do not divide the model width. */
static inline int64_t wf_head_dim(const wf_block_options *o) {
    if (o->head_dim || o->num_heads < 1 || o->d_model % o->num_heads) return o->head_dim;
    return o->d_model / o->num_heads;
}

#endif
