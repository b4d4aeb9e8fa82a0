/* models/common/record_model.c - the parts that every model is recorded from: its inputs, the table
 * of its tokens, its output, its loss and scores. B batch, T target length, D model width, V
 * vocabulary. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/graph_internal.h"
#include "core/product_hook.h"
#include "models/adapters/adapters.h"
#include "models/kind.h"
#include "models/message.h"

enum { MAX_BATCH = 1 << 20 };

wf_model *wf_model_alloc(const wf_model_kind *kind, size_t bytes, int n_memory, char *message) {
    assert(kind && bytes >= sizeof(wf_model) && n_memory >= 0);
    wf_model *m = calloc(1, bytes);
    if (m) {
        m->kind = kind;
        m->n_memory = n_memory;
        m->memory = calloc((size_t)n_memory + 1, sizeof(wf_tensor *)); /* 0 bytes may be NULL */
        if (m->memory) return m;
        wf_model_free(m);
    }
    fail(message, "out of memory");
    return NULL;
}

bool wf_model_add_map(wf_model *m, const char *name, bool source_queries, bool source_keys,
                      int64_t layers) {
    assert(m->n_maps < WF_MOST_MAPS);
    wf_attention_map *map = &m->maps[m->n_maps++];
    *map = (wf_attention_map){ name, source_queries, source_keys, layers, NULL };
    map->weights = calloc((size_t)layers + 1, sizeof(wf_tensor *));
    return map->weights;
}

void wf_model_begin_graph(wf_model *m, const wf_training_config *training, wf_dtype real,
                          uint64_t seed) {
    if (training) m->training = *training;
    assert(!m->graph);
    m->graph = wf_graph_new(&(wf_graph_options){ .real = real, .seed = seed });
    wf_on_param(m->graph, m->training.on_param, m->training.user);
    if (m->training.adapters.rank)
        wf_adapters_begin(m);
    else
        m->training.adapters.targets = NULL; /* these belong to the caller */
    if (m->training.quantize_aware) wf_quantize_begin(m);
}

wf_block_options wf_model_block(const wf_model *m) {
    wf_block_options o = m->kind->block(m->config);
    o.dropout = m->training.dropout;
    o.attention_dropout = m->training.attention_dropout;
    o.activation_dropout = m->training.activation_dropout;
    o.recompute = m->training.recompute;
    return o;
}

int64_t wf_model_rows(wf_graph *g) {
    return wf_extent(g, "B", MAX_BATCH);
}

int64_t wf_model_inputs(wf_model *m) {
    wf_graph *g = m->graph;
    int64_t B = wf_model_rows(g), T = wf_extent(g, "T", m->max_len);
    wf_extent(g, "P", m->max_len - 1);
    m->tgt = wf_input(g, "tgt", WF_I32, 2, (int64_t[]){ B, T });
    m->labels = wf_input(g, "labels", WF_I32, 2, (int64_t[]){ B, T });
    return B;
}

/* The table of embeddings. Its initial values have the variance 1 / D if embeddings are scaled by
 * sqrt(D) or if the output layer shares the table (tied embeddings), else 1. With the variance 1,
 * the logits of a tied output would be sqrt(D) times too large. */
struct wf_embedding_layer wf_token_table(wf_graph *g, const char *name, int64_t rows, int64_t dim,
                                         bool scaled, bool shared) {
    struct wf_embedding_layer l = wf_embedding_new(g, name, rows, dim, scaled || shared);
    if (!scaled) l.scale = 1;
    return l;
}

void wf_model_output(wf_model *m, const struct wf_embedding_layer *table, bool bias) {
    struct wf_linear_layer l = { 0 };
    if (table) {
        const char *outer = wf_scope_push(m->graph, "output");
        l.weight = table->weight;
        if (bias) l.bias = wf_param(m->graph, "bias", 1, &m->tgt_vocab, wf_init_zeros());
        l.path = wf_scope(m->graph, outer);
    } else {
        int64_t dim = m->hidden->ndim ? m->hidden->shape[m->hidden->ndim - 1] : 1; /* poison: [] */
        l = wf_linear_new(m->graph, "output", dim, m->tgt_vocab, bias);
    }
    m->logits = wf_linear(&l, m->hidden);
    if (wf_product_hook_of(m->graph)->call) return;
    m->output_weight = l.weight;
    m->output_bias = l.bias;
}

/* Records the log-probability of each label, and the number of labels that are the likeliest token.
 * A gather needs ids of 0 or more, so labels that do not count (-1) gather token 0; their result is
 * then replaced by 0. */
static void scores(wf_model *m) {
    wf_graph *g = m->graph;
    const char *outer = wf_scope_push(g, "scores");
    wf_tensor *zero = wf_constant(g, 0), *labels = wf_cast(m->labels, wf_real(g));
    wf_tensor *ids = wf_cast(wf_maximum(labels, zero), WF_I32); /* [B,T] */
    m->log_probs = wf_log_softmax(m->logits, -1);
    wf_tensor *picked = wf_gather(m->log_probs, -1, wf_unsqueeze(ids, WF_LAST_AXIS)); /* [B,T,1] */
    picked = wf_squeeze(picked, WF_LAST_AXIS);
    m->token_log_probs = wf_where(wf_greater_equal(labels, zero), picked, zero);
    m->correct = wf_sum(wf_equal(wf_argmax(m->logits, -1), m->labels), WF_ALL_AXES, false);
    wf_scope(g, outer);
}

static void loss(wf_model *m) {
    const char *outer = wf_scope_push(m->graph, "loss");
    m->loss = wf_cross_entropy(m->logits, m->labels, m->training.label_smoothing, WF_IGNORE_LABEL);
    wf_scope(m->graph, outer);
}

void wf_model_finish(wf_model *m) {
    assert(m->labels && m->hidden && m->logits);
    wf_named(m->logits, "logits");
    scores(m);
    loss(m);
    wf_model_end_graph(m);
}

/* The weights [B,T,S] of head 0 in the last layer of cross-attention. NULL: there is none. */
static wf_tensor *guided_head(const wf_model *m) {
    const wf_attention_map *map = m->n_maps ? &m->maps[m->n_maps - 1] : NULL;
    if (!m->src || !m->tgt || !map || !map->source_keys || !map->layers) return NULL;
    return wf_squeeze(wf_slice(map->weights[map->layers - 1], 1, 0, 1), WF_AXIS(1));
}

/* Records the loss of guided alignment (Chen et al. 2016), as Marian does: the cross-entropy
 * between the given links and the attention weights of one head. The links of a target token have
 * equal shares, which sum to 1. Tokens without links add nothing. */
static void guide(wf_model *m) {
    enum { FEWEST = 1 };
    const double little = 1e-6; /* keeps the logarithm finite */
    wf_graph *g = m->graph;
    const char *outer = wf_scope_push(g, "alignment");
    wf_tensor *head = guided_head(m);
    if (head) {
        int64_t shape[] = { wf_model_rows(g), wf_extent(g, "T", m->max_len),
                            wf_extent(g, "S", m->max_len) };
        m->alignment = wf_input(g, "alignment", WF_I32, 3, shape);
        wf_tensor *links = wf_cast(m->alignment, wf_real(g));
        wf_tensor *count = wf_sum(links, WF_AXIS(2), true); /* [B,T,1] */
        wf_tensor *share = wf_div(links, wf_maximum(count, wf_constant(g, FEWEST)));
        wf_tensor *logs = wf_log(wf_add(head, wf_constant(g, little)));
        m->alignment_loss = wf_neg(wf_sum(wf_mul(share, logs), WF_ALL_AXES, false));
        wf_tensor *weighted = wf_scale(m->alignment_loss, m->training.alignment_weight);
        m->objective = wf_add(m->loss.loss, weighted);
    } else {
        wf_poison(g, "an alignment weight is for a model with cross-attention, and this has none");
    }
    wf_scope(g, outer);
}

void wf_model_end_graph(wf_model *m) {
    m->objective = m->loss.loss;
    double weight = m->training.alignment_weight;
    if (!(weight >= 0 && weight <= 1e6))
        wf_poison(m->graph, "an alignment weight of %g: 0 to 1e6 are possible", weight);
    else if (weight > 0)
        guide(m);
    wf_on_param(m->graph, NULL, NULL);
    if (m->training.adapters.rank) wf_adapters_end(m);
    m->own_nodes = wf_node_count(m->graph);
}

bool wf_is_added(const wf_model *m, const wf_tensor *t) {
    return t->kind == WF_PARAM && (t->id >= m->own_nodes || wf_from_hook(t));
}

bool wf_is_saved(const wf_model *m, const wf_tensor *param) {
    return !m->training.adapters.rank || wf_from_hook(param);
}

const char *wf_layer_name(int64_t i, char name[32]) {
    snprintf(name, 32, "layers.%lld", (long long)i);
    return name;
}
