/* models/transformer/transformer.c - "Attention Is All You Need" (Vaswani et al. 2017) as one
 * graph.
 *
 * Read it upwards from wf_transformer_new. It records source -> encoder -> memory, then target and
 * memory -> decoder -> logits, then logits and labels -> loss (record_model.c, the same for every
 * model). All of it is recorded once. Plans decide which parts run, when, and with which sizes
 * (plans.c, decoder.c). B batch, S source length, T target length, H heads, D model width, V
 * vocabulary. */
#include <math.h>
#include <stdio.h>

#include "models/model_internal.h"
#include "models/transformer.h"

#include "models/kind.h"
#include "models/message.h"
#include "nn/layers_internal.h"
#include "tied.h"

/* ---- embedding: tokens and their positions (3.4, 3.5) ---------------------------------------- */

/* A table of embeddings. shared: the output uses it, too. If the output's input is scaled
 * (scale_output), a shared table gets the initial values of one that is not shared. */
static struct wf_embedding_layer table(const wf_transformer *m, const char *name, int64_t rows,
                                       bool shared) {
    if (m->config.scale_output) shared = false;
    return wf_token_table(m->model.graph, name, rows, m->config.d_model, m->config.scale_embedding,
                          shared);
}

static wf_tensor *normed(const wf_transformer *m, bool wanted, const char *name, wf_tensor *x) {
    if (!wanted) return x;
    const wf_block_options o = wf_model_block(&m->model);
    struct wf_norm_layer norm = wf_block_norm_new(m->model.graph, name, &o);
    return wf_norm(&norm, x);
}

static struct wf_position_layer positions(const wf_transformer *m, const char *name) {
    const wf_transformer_config *c = &m->config;
    return wf_position_new(m->model.graph, name, c->positions, c->max_len, c->d_model);
}

/* The embeddings x [B,T,D] with zeros at position 0. */
static wf_tensor *without_start(wf_tensor *x) {
    wf_tensor *at = wf_cast(wf_position_ids(x, 1), wf_real(x->graph)); /* [T] */
    wf_tensor *later = wf_not_equal(at, wf_constant(x->graph, 0));
    return wf_mul(x, wf_unsqueeze(later, WF_LAST_AXIS));
}

/* [B,T] -> [B,T,D]. Source positions are always 0..S-1, whichever target position is decoded. */
static wf_tensor *embed(const wf_transformer *m, const struct wf_embedding_layer *tokens,
                        const struct wf_position_layer *places, const char *norm, wf_tensor *ids) {
    wf_tensor *x = wf_embed(tokens, ids);
    if (m->config.zero_start && ids == m->model.tgt) x = without_start(x);
    x = wf_add_positions(places, x, ids == m->model.src ? wf_arange(x, 1) : NULL);
    x = normed(m, m->config.embedding_norm, norm, x);
    return wf_drop(x, m->model.training.dropout, places->path); /* 5.4 */
}

/* The table of rotations by position for queries and keys of x [B,T,D] (Su et al. 2021). NULL:
 * positions are not rotary. With WF_POSITIONS_ROTARY it also rotates cross-attention, so that a
 * target token at first attends near its own position in the source. */
static wf_tensor *rotations(const wf_transformer *m, const struct wf_position_layer *places,
                            wf_tensor *x, bool source) {
    const wf_block_options o = wf_model_block(&m->model);
    int64_t head = wf_head_dim(&o);
    if (!wf_rotates(places->kind)) return NULL;
    return wf_rotary_positions(places, x, source ? wf_arange(x, 1) : NULL, head);
}

/* The mask of layer i's self-attention: the padding mask, or with relative positions (Raffel et al.
 * 2020) the bias of distances, which is -inf at padding. Layers that share a bias share its node:
 * `shared` is the mask of the layer before. */
static wf_tensor *self_mask(const wf_transformer *m, int64_t i, wf_tensor *x, bool source,
                            wf_tensor *shared) {
    const wf_transformer_config *c = &m->config;
    wf_tensor *mask = source ? m->memory_mask : NULL;
    if (!c->relative_buckets) return mask;
    if (i > 0 && !c->relative_per_layer) return shared;
    char name[48];
    if (c->relative_per_layer)
        snprintf(name, sizeof name, "layers.%lld.relative", (long long)i);
    else
        snprintf(name, sizeof name, "relative");
    struct wf_relative_layer l = wf_relative_new(m->model.graph, name, c->num_heads,
                                                 c->relative_buckets, c->relative_distance, source);
    wf_tensor *queries = source ? wf_arange(x, 1) : wf_position_ids(x, 1);
    wf_tensor *keys = source ? queries : wf_arange(wf_cache(x, 1), 1);
    return wf_relative_mask(wf_relative_bias(&l, queries, keys), mask); /* [B or 1,H,T,S] */
}

/* ---- encoder (3.1, left) --------------------------------------------------------------------- */

/* [B,S,D] -> the memory [B,S,D] */
static wf_tensor *encoder(wf_transformer *m, wf_tensor *rotary, wf_tensor *x) {
    const wf_transformer_config *c = &m->config;
    const char *outer = wf_scope_push(m->model.graph, "transformer.encoder");
    wf_block_options o = wf_model_block(&m->model);
    const wf_attention_map *map = &m->model.maps[0];
    wf_tensor *mask = NULL, *ids = m->model.src;
    char name[32];
    for (int64_t i = 0; i < c->encoder_layers; i++) {
        struct wf_encoder_block layer =
            wf_encoder_layer_new(m->model.graph, wf_layer_name(i, name), &o);
        mask = self_mask(m, i, ids, true, mask);
        wf_mha_options self = { .mask = mask,
                                .additive = c->relative_buckets > 0,
                                .rotary = rotary,
                                .weights = &map->weights[i] };
        x = wf_named(wf_encoder_layer(&layer, x, &self), name);
    }
    x = normed(m, c->encoder_norm, "norm", x);
    wf_scope(m->model.graph, outer);
    return x;
}

/* ---- decoder (3.1, right) -------------------------------------------------------------------- */

/* [B,T,D] -> [B,T,D]. cross_k and cross_v are each layer's keys and values of the memory. One plan
 * computes them once per sentence, and the plan of a decoding step is fed with them. */
static wf_tensor *decoder(wf_transformer *m, wf_tensor *memory_rotary, wf_tensor *rotary,
                          wf_tensor *x) {
    const wf_transformer_config *c = &m->config;
    const char *outer = wf_scope_push(m->model.graph, "transformer.decoder");
    wf_block_options o = wf_model_block(&m->model);
    wf_tensor *across = c->positions == WF_POSITIONS_ROTARY ? rotary : NULL;
    const wf_attention_map *cross_map = &m->model.maps[m->model.n_maps - 1];
    const wf_attention_map *self_map = cross_map - 1; /* unless there is no self-attention */
    bool attends = c->decoder == WF_DECODER_ATTENTION;
    wf_tensor *mask = NULL, *ids = m->model.tgt;
    char name[32];
    for (int64_t i = 0; i < c->decoder_layers; i++) {
        struct wf_decoder_block layer =
            wf_decoder_layer_new(m->model.graph, wf_layer_name(i, name), &o);
        wf_mha_keys_values(&layer.multihead_attn, m->memory, &m->cross_k[i], &m->cross_v[i]);
        if (across) m->cross_k[i] = wf_rotate(m->cross_k[i], memory_rotary, false);
        if (attends) mask = self_mask(m, i, ids, false, mask);
        wf_mha_options self = { .mask = mask,
                                .additive = c->relative_buckets > 0,
                                .causal = true,
                                .cache = true,
                                .rotary = rotary,
                                .weights = attends ? &self_map->weights[i] : NULL };
        wf_mha_options cross = { .mask = m->memory_mask,
                                 .rotary = across,
                                 .weights = &cross_map->weights[i] };
        x = wf_decoder_layer(&layer, x, m->cross_k[i], m->cross_v[i], &self, &cross);
        wf_named(x, name);
    }
    x = normed(m, c->decoder_norm, "norm", x);
    wf_scope(m->model.graph, outer);
    return x;
}

/* ---- inputs, masks --------------------------------------------------------------------------- */

static void inputs(wf_transformer *m) {
    wf_graph *g = m->model.graph;
    int64_t B = wf_model_inputs(&m->model), S = wf_extent(g, "S", m->config.max_len);
    m->model.src = wf_input(g, "src", WF_I32, 2, (int64_t[]){ B, S });
    m->model.src_length = wf_input(g, "src_length", WF_I32, 1, &B);
}

/* The mask of source tokens that may be attended to: [B,1,1,S]. It hides padding as keys; the
 * outputs of padding as queries are never read. Targets are padded on the right, where the causal
 * mask already hides the padding. */
static wf_tensor *source_mask(const wf_transformer *m) {
    const char *outer = wf_scope_push(m->model.graph, "memory_mask");
    wf_tensor *mask = wf_key_mask(m->model.src_length, m->model.src, 1);
    int32_t pad = m->config.pad_id;
    if (pad >= 0 && pad != m->config.start_id && pad != m->config.end_id) {
        wf_tensor *ids =
            wf_cast(wf_unsqueeze(m->model.src, WF_AXIS(1) | WF_AXIS(2)), wf_real(m->model.graph));
        mask = wf_mul(mask, wf_not_equal(ids, wf_constant(m->model.graph, pad)));
    }
    wf_scope(m->model.graph, outer);
    return mask;
}

/* ---- the model ------------------------------------------------------------------------------- */

static void forward(wf_transformer *m) {
    const wf_transformer_config *c = &m->config;
    bool inputs_tied = wf_first_tied(c->tie) == 0;
    bool tied = c->tie == WF_TIE_DECODER || c->tie == WF_TIE_ALL;
    inputs(m);
    m->memory_mask = source_mask(m);

    struct wf_embedding_layer src = table(m, "src_embedding", c->src_vocab, inputs_tied && tied);
    struct wf_position_layer places = positions(m, "src_position");
    wf_tensor *x = embed(m, &src, &places, "src_embedding_norm", m->model.src); /* [B,S,D] */
    wf_tensor *src_rotary = rotations(m, &places, x, true);
    m->memory = encoder(m, src_rotary, x); /* [B,S,D] */

    struct wf_embedding_layer tgt = src;
    if (!inputs_tied) tgt = table(m, "tgt_embedding", c->tgt_vocab, tied);
    places = positions(m, "tgt_position");
    wf_tensor *y = embed(m, &tgt, &places, "tgt_embedding_norm", m->model.tgt); /* [B,T,D] */
    wf_tensor *tgt_rotary = rotations(m, &places, y, false);
    y = decoder(m, src_rotary, tgt_rotary, y);
    m->model.hidden = c->scale_output ? wf_scale(y, 1 / sqrt((double)c->d_model)) : y; /* [B,T,D] */
    wf_model_output(&m->model, tied ? &tgt : NULL, c->output_bias);                    /* [B,T,V] */
    m->model.memory[m->model.n_memory - 1] = m->memory_mask;
}

static wf_transformer *allocate(const wf_transformer_config *c, char *message) {
    int64_t encoder = c->encoder_layers, decoder = c->decoder_layers;
    wf_transformer *t = (wf_transformer *)wf_model_alloc(&wf_transformer_kind, sizeof *t,
                                                         (int)(2 * decoder + 1), message);
    if (!t) return NULL;
    wf_model *m = &t->model;
    t->config = *c;
    m->config = &t->config;
    t->cross_k = m->memory;
    t->cross_v = m->memory + decoder;
    m->src_vocab = c->src_vocab;
    m->tgt_vocab = c->tgt_vocab;
    m->max_len = c->max_len;
    m->start_id = c->start_id;
    m->end_id = c->end_id;
    m->n_tied = wf_n_tied(c->tie);
    if (m->n_tied) m->tied = wf_tables + wf_first_tied(c->tie);
    if (wf_model_add_map(m, "encoder_self", true, true, encoder) &&
        (c->decoder != WF_DECODER_ATTENTION ||
         wf_model_add_map(m, "decoder_self", false, false, decoder)) &&
        wf_model_add_map(m, "cross", false, true, decoder))
        return t;
    fail(message, "out of memory");
    return wf_model_free(m), NULL;
}

wf_model *wf_transformer_new(const wf_transformer_config *c, const wf_training_config *training,
                             wf_dtype real, uint64_t seed, char *message) {
    if (!wf_transformer_check(c, message)) return NULL;
    wf_transformer *m = allocate(c, message);
    if (!m) return NULL;
    wf_model_begin_graph(&m->model, training, real, seed);
    forward(m);
    wf_model_finish(&m->model);
    return &m->model;
}

const wf_transformer *wf_transformer_of(const wf_model *m) {
    return m && m->kind == &wf_transformer_kind ? (const wf_transformer *)m : NULL;
}
