/* models/transformer/transformer.c - "Attention Is All You Need" (Vaswani et al. 2017) as one graph.
 *
 * Read from wf_transformer_new at the end upwards: source -> encoder -> memory; target and
 * memory -> decoder -> logits; logits and labels -> loss; loss -> gradients -> updates. All of
 * it is recorded once. What is run of it, when, and with which sizes is a matter of plans
 * (plans.c, decode.c). B batch, S source length, T target length, H heads, D model width, V
 * vocabulary. */
#include "models/transformer.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_BATCH = 1 << 20 };

/* ---- embedding: tokens and their places (3.4, 3.5) ------------------------------------------- */

/* A table that also is the output's starts small, as a scaled one does: logits of N(0, 1) rows
 * would be sqrt(D) too large. */
static struct wf_embedding_layer embedding(const wf_transformer *m, const char *name, int64_t rows,
                                           bool tied) {
    const wf_transformer_config *c = &m->config;
    struct wf_embedding_layer l =
        wf_embedding_new(m->graph, name, rows, c->d_model, c->scale_embedding || tied);
    if (!c->scale_embedding) l.scale = 1;
    return l;
}

/* [B,T] -> [B,T,D]. The source stands at 0..S-1 wherever the target is. */
static wf_tensor *embed(const wf_transformer *m, const struct wf_embedding_layer *tokens,
                        const char *position, wf_tensor *ids) {
    const wf_transformer_config *c = &m->config;
    struct wf_position_layer places =
        wf_position_new(m->graph, position, c->positions, c->max_len, c->d_model);
    wf_tensor *x = wf_embed(tokens, ids);
    x = ids == m->src ? wf_add_positions_at(&places, x, wf_arange(x, 1))
                      : wf_add_positions(&places, x);
    return wf_drop(x, m->training.dropout, position); /* 5.4 */
}

/* ---- encoder (3.1, left) --------------------------------------------------------------------- */

static wf_block_options block_options(const wf_transformer *m) {
    const wf_transformer_config *c = &m->config;
    return (wf_block_options){
        .d_model = c->d_model,
        .num_heads = c->num_heads,
        .dim_feedforward = c->dim_feedforward,
        .activation = c->activation,
        .norm_first = c->norm_first,
        .bias = c->bias,
        .dropout = m->training.dropout,
        .attention_dropout = m->training.attention_dropout,
        .activation_dropout = m->training.activation_dropout,
        .layer_norm_eps = c->layer_norm_eps,
    };
}

static const char *layer_name(int64_t i, char name[32]) {
    snprintf(name, 32, "layers.%lld", (long long)i);
    return name;
}

static wf_tensor *final_norm(const wf_transformer *m, bool wanted, wf_tensor *x) {
    if (!wanted) return x;
    const wf_transformer_config *c = &m->config;
    struct wf_norm_layer norm =
        wf_norm_new(m->graph, "norm", c->d_model, c->layer_norm_eps, c->bias);
    return wf_norm(&norm, x);
}

/* [B,S,D] -> the memory [B,S,D] */
static wf_tensor *encoder(wf_transformer *m, wf_tensor *x) {
    const wf_transformer_config *c = &m->config;
    const char *outer = wf_scope_push(m->graph, "transformer.encoder");
    wf_block_options o = block_options(m);
    char name[32];
    for (int64_t i = 0; i < c->encoder_layers; i++) {
        struct wf_encoder_block layer = wf_encoder_layer_new(m->graph, layer_name(i, name), &o);
        wf_mha_options self = { .mask = m->memory_mask, .weights = &m->encoder_weights[i] };
        x = wf_encoder_layer(&layer, x, &self);
    }
    x = final_norm(m, c->encoder_norm, x);
    wf_scope(m->graph, outer);
    return x;
}

/* ---- decoder (3.1, right) -------------------------------------------------------------------- */

/* [B,T,D] -> [B,T,D]. Each layer's keys and values of the memory are named, so that a plan can
 * compute them once per sentence and another take them from there. */
static wf_tensor *decoder(wf_transformer *m, wf_tensor *x) {
    const wf_transformer_config *c = &m->config;
    const char *outer = wf_scope_push(m->graph, "transformer.decoder");
    wf_block_options o = block_options(m);
    char name[32];
    for (int64_t i = 0; i < c->decoder_layers; i++) {
        struct wf_decoder_block layer = wf_decoder_layer_new(m->graph, layer_name(i, name), &o);
        wf_mha_keys_values(&layer.multihead_attn, m->memory, &m->cross_k[i], &m->cross_v[i]);
        wf_transformer_layer_weights *seen = &m->decoder_weights[i];
        wf_mha_options self = { .causal = true, .cache = true, .weights = &seen->self };
        wf_mha_options cross = { .mask = m->memory_mask, .weights = &seen->cross };
        x = wf_decoder_layer(&layer, x, m->cross_k[i], m->cross_v[i], &self, &cross);
    }
    x = final_norm(m, c->decoder_norm, x);
    wf_scope(m->graph, outer);
    return x;
}

/* [B,T,D] -> logits [B,T,V]. Tied, the output's matrix is an embedding's table. */
static wf_tensor *output(const wf_transformer *m, wf_tensor *x,
                         const struct wf_embedding_layer *tokens) {
    const wf_transformer_config *c = &m->config;
    if (c->tie == WF_TIE_NONE) {
        struct wf_linear_layer l =
            wf_linear_new(m->graph, "output", c->d_model, c->tgt_vocab, c->output_bias);
        return wf_linear(&l, x);
    }
    const char *outer = wf_scope_push(m->graph, "output");
    struct wf_linear_layer l = { .weight = tokens->weight };
    if (c->output_bias) l.bias = wf_param(m->graph, "bias", 1, &c->tgt_vocab, wf_init_zeros());
    l.path = wf_scope(m->graph, outer);
    return wf_linear(&l, x);
}

/* ---- inputs, masks, loss --------------------------------------------------------------------- */

static void inputs(wf_transformer *m) {
    wf_graph *g = m->graph;
    int64_t B = wf_extent(g, "B", MAX_BATCH);
    int64_t S = wf_extent(g, "S", m->config.max_len), T = wf_extent(g, "T", m->config.max_len);
    wf_extent(g, "P", m->config.max_len - 1);
    m->src = wf_input(g, "src", WF_I32, 2, (int64_t[]){ B, S });
    m->src_length = wf_input(g, "src_length", WF_I32, 1, &B);
    m->tgt = wf_input(g, "tgt", WF_I32, 2, (int64_t[]){ B, T });
    m->labels = wf_input(g, "labels", WF_I32, 2, (int64_t[]){ B, T });
}

/* Which source tokens may be attended to: [B,1,1,S]. Padding hides keys; what its own queries
 * give is never looked at. Targets are padded on the right, where the causal mask already hides
 * them. */
static wf_tensor *source_mask(const wf_transformer *m) {
    const char *outer = wf_scope_push(m->graph, "memory_mask");
    wf_tensor *mask = wf_key_mask(m->src_length, m->src, 1);
    int32_t pad = m->config.pad_id;
    if (pad >= 0 && pad != m->config.start_id && pad != m->config.end_id) {
        wf_tensor *ids = wf_cast(wf_unsqueeze(m->src, WF_AXIS(1) | WF_AXIS(2)), wf_real(m->graph));
        mask = wf_mul(mask, wf_not_equal(ids, wf_constant(m->graph, pad)));
    }
    wf_scope(m->graph, outer);
    return mask;
}

/* log p of each label, and how many are the likeliest token. No id is below 0, so labels that do
 * not count read the row's token 0 and give 0. */
static void scores(wf_transformer *m) {
    wf_graph *g = m->graph;
    const char *outer = wf_scope_push(g, "scores");
    wf_tensor *zero = wf_constant(g, 0), *labels = wf_cast(m->labels, wf_real(g));
    wf_tensor *ids = wf_cast(wf_maximum(labels, zero), WF_I32); /* [B,T] */
    m->log_probs = wf_log_softmax(m->logits);
    m->token_log_probs =
        wf_where(wf_greater_equal(labels, zero), wf_gather(m->log_probs, ids), zero);
    m->correct = wf_sum(wf_equal(wf_argmax(m->logits, -1), m->labels), WF_ALL_AXES, false);
    wf_scope(g, outer);
}

static void loss(wf_transformer *m) {
    const char *outer = wf_scope_push(m->graph, "loss");
    m->loss = wf_cross_entropy(m->logits, m->labels, m->training.label_smoothing, WF_IGNORE_LABEL);
    wf_scope(m->graph, outer);
}

/* ---- the model ------------------------------------------------------------------------------- */

static void forward(wf_transformer *m) {
    const wf_transformer_config *c = &m->config;
    bool all = c->tie == WF_TIE_ALL, tied = c->tie == WF_TIE_DECODER;
    inputs(m);
    m->memory_mask = source_mask(m);

    struct wf_embedding_layer src = embedding(m, "src_embedding", c->src_vocab, all);
    wf_tensor *x = embed(m, &src, "src_position", m->src); /* [B,S,D] */
    m->memory = encoder(m, x);                             /* [B,S,D] */

    struct wf_embedding_layer tgt = src;
    if (!all) tgt = embedding(m, "tgt_embedding", c->tgt_vocab, tied);
    wf_tensor *y = embed(m, &tgt, "tgt_position", m->tgt); /* [B,T,D] */
    m->logits = output(m, decoder(m, y), &tgt);            /* [B,T,V] */
}

static void updates(wf_transformer *m) {
    int n = wf_parameters(m->graph, NULL, 0);
    wf_tensor **params = calloc((size_t)n + 1, sizeof *params);
    if (params) {
        wf_parameters(m->graph, params, n);
        m->training.optimizer.name = NULL; /* files know one name */
        m->optimizer = wf_optimizer_new(m->graph, m->loss.loss, m->loss.count, params, n,
                                        &m->training.optimizer);
    } else
        wf_poison(m->graph, "out of memory");
    free(params);
}

static wf_transformer *allocate(const wf_transformer_config *c) {
    wf_transformer *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    size_t encoder = (size_t)c->encoder_layers + 1; /* 0 layers are legal, 0 bytes may be NULL */
    size_t decoder = (size_t)c->decoder_layers + 1;
    m->config = *c;
    m->encoder_weights = calloc(encoder, sizeof *m->encoder_weights);
    m->decoder_weights = calloc(decoder, sizeof *m->decoder_weights);
    m->cross_k = calloc(decoder, sizeof *m->cross_k);
    m->cross_v = calloc(decoder, sizeof *m->cross_v);
    if (m->encoder_weights && m->decoder_weights && m->cross_k && m->cross_v) return m;
    wf_transformer_free(m);
    return NULL;
}

wf_transformer *wf_transformer_new(const wf_transformer_config *c,
                                   const wf_training_config *training, wf_dtype real, uint64_t seed,
                                   char *message) {
    if (!wf_transformer_check(c, message)) return NULL;
    wf_transformer *m = allocate(c);
    if (!m) {
        if (message) snprintf(message, WF_MESSAGE, "out of memory");
        return NULL;
    }
    if (training) m->training = *training;
    m->graph = wf_graph_new(&(wf_graph_options){ .real = real, .seed = seed });
    forward(m);
    scores(m);
    loss(m);
    if (training) updates(m);
    m->own_nodes = wf_node_count(m->graph);
    return m;
}

void wf_transformer_free(wf_transformer *m) {
    if (!m) return;
    wf_optimizer_free(&m->optimizer);
    wf_graph_free(m->graph);
    free(m->encoder_weights), free(m->decoder_weights);
    free(m->cross_k), free(m->cross_v);
    free(m);
}

int64_t wf_transformer_parameter_count(const wf_transformer *m) {
    int64_t n = 0;
    for (int id = 0; m && id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        if (t->kind == WF_PARAM) n += wf_count(t);
    }
    return n;
}
