/* models/language_model/language_model.c - a decoder-only Transformer (Radford et al. 2019) as one
 * graph.
 *
 * It computes tokens and positions -> layers of causal self-attention -> logits. The rest is in
 * record_model.c, which all models share. Keys and values pass through caches, and positions count
 * from "P", so that a plan with a state can read token by token or a whole prompt at once. B batch,
 * T length, D model width, V vocabulary. */
#include "models/language_model.h"
#include "models/model_internal.h"

#include "models/kind.h"
#include "models/message.h"
#include "nn/layers_internal.h"

static const char *const tied_names[] = { "embedding.weight", "output.weight" };

/* [B,T] -> [B,T,D] */
static wf_tensor *embed(const wf_language_model *l, const struct wf_embedding_layer *table,
                        const struct wf_position_layer *places) {
    wf_tensor *x = wf_add_positions(places, wf_embed(table, l->model.tgt), NULL);
    return wf_drop(x, l->model.training.dropout, "position");
}

/* A layer is an encoder layer with a causal mask. [B,T,D] -> [B,T,D] */
static wf_tensor *layers(const wf_language_model *l, const struct wf_position_layer *places,
                         wf_tensor *x) {
    const wf_language_model_config *c = &l->config;
    wf_graph *g = l->model.graph;
    const wf_block_options o = wf_model_block(&l->model);
    wf_tensor *turns = wf_rotary_positions(places, x, NULL, wf_head_dim(&o));
    const char *outer = wf_scope_push(g, "transformer");
    char name[32];
    for (int64_t i = 0; i < c->layers; i++) {
        struct wf_encoder_block layer = wf_encoder_layer_new(g, wf_layer_name(i, name), &o);
        wf_mha_options self = {
            .causal = true,
            .window = c->window,
            .cache = true,
            .rotary = turns,
            .weights = &l->model.maps[0].weights[i],
        };
        x = wf_named(wf_encoder_layer(&layer, x, &self), name);
    }
    if (c->final_norm) {
        struct wf_norm_layer norm = wf_block_norm_new(g, "norm", &o);
        x = wf_norm(&norm, x);
    }
    wf_scope(g, outer);
    return x;
}

static void forward(wf_language_model *l) {
    const wf_language_model_config *c = &l->config;
    wf_model_inputs(&l->model);
    struct wf_embedding_layer table = wf_token_table(l->model.graph, "embedding", c->vocab,
                                                     c->d_model, c->scale_embedding, c->tied);
    struct wf_position_layer places =
        wf_position_new(l->model.graph, "position", c->positions, c->max_len, c->d_model);
    if (c->rotary_base != 0) places.base = c->rotary_base;
    places.scaling = c->rotary_scaling;
    l->model.hidden = layers(l, &places, embed(l, &table, &places));     /* [B,T,D] */
    wf_model_output(&l->model, c->tied ? &table : NULL, c->output_bias); /* [B,T,V] */
}

static wf_language_model *allocate(const wf_language_model_config *c, char *message) {
    wf_language_model *l =
        (wf_language_model *)wf_model_alloc(&wf_language_model_kind, sizeof *l, 0, message);
    if (!l) return NULL;
    wf_model *m = &l->model;
    l->config = *c;
    m->config = &l->config;
    m->src_vocab = m->tgt_vocab = c->vocab;
    m->max_len = c->max_len;
    m->start_id = c->start_id;
    m->end_id = c->end_id;
    m->start_first = c->start_first;
    m->start_if_empty = c->start_if_empty;
    if (c->tied) {
        m->tied = tied_names;
        m->n_tied = 2;
    }
    if (wf_model_add_map(m, "self", false, false, c->layers)) return l;
    fail(message, "out of memory");
    return wf_model_free(m), NULL;
}

wf_model *wf_language_model_new(const wf_language_model_config *c,
                                const wf_training_config *training, wf_dtype real, uint64_t seed,
                                char *message) {
    if (!wf_language_model_check(c, message)) return NULL;
    wf_language_model *l = allocate(c, message);
    if (!l) return NULL;
    wf_model_begin_graph(&l->model, training, real, seed);
    forward(l);
    wf_model_finish(&l->model);
    return &l->model;
}

const wf_language_model *wf_language_model_of(const wf_model *m) {
    return m && m->kind == &wf_language_model_kind ? (const wf_language_model *)m : NULL;
}
