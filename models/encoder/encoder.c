/* models/encoder/encoder.c - an encoder-only Transformer (Devlin et al. 2018) as one graph.
 *
 * Read it upwards from wf_encoder_new. It records tokens, types and positions -> norm -> layers of
 * self-attention -> hidden; then the vector of a line (encoder_pool.c); and one objective: logits
 * of masked tokens or of classes, or similarities of pairs of lines. B batch, S length, D model
 * width, E width of vectors, V vocabulary, C classes. */
#include "models/encoder.h"
#include "models/model_internal.h"

#include <stdlib.h>

#include "core/plan/plan.h"
#include "encoder_pool.h"
#include "models/kind.h"
#include "models/message.h"
#include "nn/layers_internal.h"

static const char *const tied_names[] = { "embedding.weight", "output.weight" };

/* The layers of an encoder. The same layers encode sources and, in pairs, targets. */
typedef struct stack {
    const wf_encoder *e;
    struct wf_embedding_layer tokens, places, types;
    struct wf_norm_layer norm;
    struct wf_encoder_block *blocks;   /* [layers] */
    struct wf_relative_layer relative; /* the bias of distances, if there is one */
    struct wf_linear_layer dense;      /* after pooling, if there is one */
} stack;

/* ---- embedding ------------------------------------------------------------------------------- */

/* RoBERTa's positions [B,S]: they count the tokens other than padding, from pad_id + 1 on. */
static wf_tensor *counted(const wf_encoder *e, wf_tensor *ids) {
    wf_graph *g = e->model.graph;
    wf_tensor *pad = wf_constant(g, e->config.pad_id);
    wf_tensor *other = wf_not_equal(wf_cast(ids, wf_real(g)), pad);
    wf_tensor *number = wf_mul(wf_cumsum(other, 1, false), other); /* 1, 2, 3; padding 0 */
    return wf_cast(wf_add(number, pad), WF_I32);
}

/* [B,S] -> [B,S,D] */
static wf_tensor *embed(const stack *s, wf_tensor *ids) {
    const wf_encoder *e = s->e;
    wf_tensor *x = wf_embed(&s->tokens, ids);
    wf_tensor *at = e->config.counted_positions ? counted(e, ids) : wf_arange(ids, 1);
    if (e->config.types) x = wf_add(x, wf_slice(s->types.weight, 0, 0, 1)); /* [1,D] */
    x = wf_norm(&s->norm, wf_add(x, wf_embed(&s->places, at)));
    return wf_drop(x, e->model.training.dropout, "embedding");
}

/* ---- layers ---------------------------------------------------------------------------------- */

static bool stack_new(stack *s, const wf_encoder *e, char *message) {
    const wf_encoder_config *c = &e->config;
    wf_graph *g = e->model.graph;
    const wf_block_options o = wf_model_block(&e->model);
    int64_t places = c->positions ? c->positions : wf_encoder_positions(c);
    char name[32];
    *s = (stack){ .e = e, .blocks = calloc((size_t)c->layers + 1, sizeof *s->blocks) };
    if (!s->blocks) return fail(message, "out of memory");
    s->tokens = wf_token_table(g, "embedding", c->vocab, c->d_model, false, true);
    s->places = wf_token_table(g, "position", places, c->d_model, false, true);
    if (c->types) s->types = wf_token_table(g, "type", c->types, c->d_model, false, true);
    s->norm = wf_norm_new(g, "embedding_norm", WF_LAYER_NORM, c->d_model, c->layer_norm_eps, true);
    const char *outer = wf_scope_push(g, "encoder");
    for (int64_t i = 0; i < c->layers; i++)
        s->blocks[i] = wf_encoder_layer_new(g, wf_layer_name(i, name), &o);
    if (c->relative_buckets)
        s->relative = wf_relative_new(g, "relative", c->num_heads, c->relative_buckets,
                                      c->relative_distance, true);
    wf_scope(g, outer);
    return true;
}

/* Encodes lines ids [B,S]; valid [B,S] is 1 for tokens and 0 for padding. Returns [B,S,D]. The
 * attention map gets the weights of the first input (src) alone. */
static wf_tensor *encode(const stack *s, wf_tensor *ids, wf_tensor *valid, bool first) {
    const wf_encoder *e = s->e;
    wf_tensor *x = embed(s, ids), *mask = wf_unsqueeze(valid, WF_AXIS(1) | WF_AXIS(2));
    const char *outer = wf_scope_push(e->model.graph, "encoder");
    char name[32];
    bool relative = e->config.relative_buckets > 0;
    if (relative) {
        wf_tensor *places = wf_arange(ids, 1);
        mask = wf_relative_mask(wf_relative_bias(&s->relative, places, places), mask);
    }
    for (int64_t i = 0; i < e->config.layers; i++) {
        wf_mha_options self = { .mask = mask, .additive = relative };
        if (first) self.weights = &e->model.maps[0].weights[i];
        x = wf_encoder_layer(&s->blocks[i], x, &self);
        if (first) wf_named(x, wf_layer_name(i, name));
    }
    wf_scope(e->model.graph, outer);
    return x;
}

/* ---- objectives ------------------------------------------------------------------------------ */

/* The head of masked language models: m->hidden [B,S,D] -> logits [B,S,V]. */
static void predict(wf_encoder *e, const stack *s) {
    const wf_encoder_config *c = &e->config;
    wf_model *m = &e->model;
    struct wf_linear_layer turn = wf_linear_new(m->graph, "head", c->d_model, c->d_model, true);
    struct wf_norm_layer norm =
        wf_norm_new(m->graph, "head_norm", WF_LAYER_NORM, c->d_model, c->layer_norm_eps, true);
    wf_tensor *hidden = m->hidden;
    m->hidden = wf_norm(&norm, wf_activate(c->head_activation, wf_linear(&turn, hidden)));
    wf_model_output(m, c->tied ? &s->tokens : NULL, true);
    m->hidden = hidden;
    int64_t shape[] = { wf_model_rows(m->graph), wf_extent(m->graph, "S", m->max_len) };
    m->labels = wf_input(m->graph, "labels", WF_I32, 2, shape);
    wf_model_finish(m);
}

/* The head of classes: the pooler's output -> logits [B,1,C]. */
static void classify(wf_encoder *e) {
    wf_model *m = &e->model;
    int64_t D = e->config.d_model, shape[] = { wf_model_rows(m->graph), 1 };
    struct wf_linear_layer l = wf_linear_new(m->graph, "classifier", D, e->config.classes, true);
    wf_tensor *x = wf_drop(e->pooled, m->training.dropout, "classifier");
    m->logits = wf_linear(&l, wf_unsqueeze(x, WF_AXIS(1)));
    m->labels = wf_input(m->graph, "labels", WF_I32, 2, shape);
    wf_model_finish(m);
}

/* Adds the loss of one direction. In similar [B,B], the right column of row i is column i. Returns
 * the log-probabilities [B,B]. */
static wf_tensor *contrast(wf_model *m, wf_tensor *similar) {
    wf_tensor *own = wf_arange(similar, 0);
    wf_cross_entropy_result r =
        wf_cross_entropy(similar, own, m->training.label_smoothing, WF_IGNORE_LABEL);
    wf_tensor *correct = wf_sum(wf_equal(wf_argmax(similar, -1), own), WF_ALL_AXES, false);
    bool second = m->loss.loss != NULL;
    m->loss.loss = second ? wf_add(m->loss.loss, r.loss) : r.loss;
    m->loss.nll = second ? wf_add(m->loss.nll, r.nll) : r.nll;
    m->loss.count = second ? wf_add(m->loss.count, r.count) : r.count;
    m->correct = second ? wf_add(m->correct, correct) : correct;
    return wf_log_softmax(similar, -1);
}

/* The vectors [B,E] of the target lines. The encoder reads their ids without the start and end
 * tokens that batches of pairs put around them. */
static wf_tensor *partners(wf_encoder *e, const stack *s) {
    wf_model *m = &e->model;
    wf_graph *g = m->graph;
    int64_t shape[] = { wf_model_rows(g), wf_extent(g, "T", m->max_len + 1) };
    m->tgt = wf_input(g, "tgt", WF_I32, 2, shape);
    m->labels = wf_input(g, "labels", WF_I32, 2, shape);
    wf_tensor *ids = wf_slice(m->tgt, 1, 1, WF_END), *next = wf_slice(m->labels, 1, 1, WF_END);
    wf_tensor *valid = wf_greater_equal(wf_cast(next, wf_real(g)), wf_constant(g, 0)); /* [B,T-1] */
    return wf_encoder_pool(&e->config, &s->dense, encode(s, ids, valid, false), valid);
}

/* Records the loss of pairs: InfoNCE (van den Oord et al. 2018) with the other lines of the batch
 * as negatives. */
static void compare(wf_encoder *e, const stack *s) {
    wf_model *m = &e->model;
    const char *outer = wf_scope_push(m->graph, "pairs");
    wf_tensor *a = wf_unit_rows(e->vectors), *b = wf_unit_rows(partners(e, s)); /* [B,E] */
    wf_tensor *cosines = wf_gemm(a, b, NULL, WF_TRANSPOSE_B);
    m->logits = wf_scale(cosines, e->config.similarity_scale); /* [B,B] */
    m->log_probs = contrast(m, m->logits);
    m->token_log_probs = wf_diagonal(m->log_probs, 0, 0, 1); /* [B] */
    contrast(m, wf_transpose(m->logits, 0, 1));
    wf_scope(m->graph, outer);
    wf_named(m->logits, "logits");
    wf_model_end_graph(m);
}

/* ---- the model ------------------------------------------------------------------------------- */

static void inputs(wf_model *m) {
    wf_graph *g = m->graph;
    int64_t B = wf_model_rows(g), S = wf_extent(g, "S", m->max_len);
    m->src = wf_input(g, "src", WF_I32, 2, (int64_t[]){ B, S });
    m->src_length = wf_input(g, "src_length", WF_I32, 1, &B);
}

static void record(wf_encoder *e, stack *s) {
    const wf_encoder_config *c = &e->config;
    wf_model *m = &e->model;
    wf_graph *g = m->graph;
    inputs(m);
    wf_tensor *ends = wf_unsqueeze(m->src_length, WF_AXIS(1)); /* [B,1] */
    wf_tensor *valid = wf_less(wf_arange(m->src, 1), ends);    /* [B,S] */
    m->hidden = encode(s, m->src, valid, true);                /* [B,S,D] */
    if (c->dense)
        s->dense = wf_linear_new(g, "dense", wf_encoder_pooled_width(c), c->dense, c->dense_bias);
    e->vectors = wf_named(wf_encoder_pool(c, &s->dense, m->hidden, valid), "vectors"); /* [B,E] */
    if (c->pooler) {
        struct wf_linear_layer pooler = wf_linear_new(g, "pooler", c->d_model, c->d_model, true);
        wf_tensor *first = wf_squeeze(wf_slice(m->hidden, 1, 0, 1), WF_AXIS(1)); /* [B,D] */
        if (c->classes && c->counted_positions)
            first = wf_drop(first, m->training.dropout, "pooler");
        wf_tensor *turned = wf_linear(&pooler, first);
        e->pooled = wf_named(wf_dense_activate(c->pooler_activation, turned), "pooled");
    }
    if (c->masked_lm)
        predict(e, s);
    else if (c->classes)
        classify(e);
    else
        compare(e, s);
}

static wf_encoder *allocate(const wf_encoder_config *c, char *message) {
    wf_encoder *e = (wf_encoder *)wf_model_alloc(&wf_encoder_kind, sizeof *e, 0, message);
    if (!e) return NULL;
    wf_model *m = &e->model;
    e->config = *c;
    m->config = &e->config;
    m->src_vocab = m->tgt_vocab = c->vocab;
    m->max_len = c->max_len;
    m->start_id = c->start_id;
    m->end_id = c->end_id;
    if (c->masked_lm && c->tied) {
        m->tied = tied_names;
        m->n_tied = 2;
    }
    if (wf_model_add_map(m, "encoder_self", true, true, c->layers)) return e;
    fail(message, "out of memory");
    return wf_model_free(m), NULL;
}

wf_model *wf_encoder_new(const wf_encoder_config *c, const wf_training_config *training,
                         wf_dtype real, uint64_t seed, char *message) {
    if (!wf_encoder_check(c, message)) return NULL;
    wf_encoder *e = allocate(c, message);
    if (!e) return NULL;
    stack s;
    wf_model_begin_graph(&e->model, training, real, seed);
    bool ok = stack_new(&s, e, message);
    if (ok) record(e, &s);
    free(s.blocks);
    if (ok) return &e->model;
    wf_model_free(&e->model);
    return NULL;
}

const wf_encoder *wf_encoder_of(const wf_model *m) {
    return m && m->kind == &wf_encoder_kind ? (const wf_encoder *)m : NULL;
}

/* Copies the parameters that both models have, by name. */
static bool copy_parameters(wf_model *to, const wf_model *from, char *message) {
    for (int id = 0; id < to->own_nodes; id++) {
        wf_tensor *t = wf_node(to->graph, id);
        wf_tensor *own = t->kind == WF_PARAM ? wf_find(from->graph, t->name) : NULL;
        if (!own) continue;
        size_t bytes = wf_bytes(t);
        void *data = malloc(bytes + 1);
        bool ok = data && wf_read(own, data, bytes) && wf_write(t, data, bytes);
        free(data);
        if (!ok) return fail(message, "%s", data ? wf_error(to->graph) : "out of memory");
    }
    return true;
}

/* The configuration with another head: of `classes` classes, or none if this is 0. A new pooler
 * gets the activation of the model's family. With classes 0, a pooler whose activation is not tanh,
 * as DistilBERT's, is removed with its head. */
static wf_encoder_config other_head(wf_encoder_config c, int64_t classes) {
    bool distil = !c.types && !c.counted_positions;
    if (classes && !c.pooler) c.pooler_activation = distil ? WF_DENSE_RELU : WF_DENSE_TANH;
    if (!classes && c.pooler_activation != WF_DENSE_TANH) c.pooler = false;
    c.pooler |= classes > 0;
    c.classes = classes;
    c.masked_lm = false;
    return c;
}

wf_model *wf_encoder_with_head(const wf_file *f, int64_t classes,
                               const wf_training_config *training, wf_dtype real, uint64_t seed,
                               char *message) {
    wf_model *whole = wf_model_load(f, NULL, real, seed, message), *m = NULL;
    const wf_encoder *e = wf_encoder_of(whole);
    if (whole && !e) fail(message, "its model is no encoder");
    if (e) {
        const wf_encoder_config c = other_head(e->config, classes);
        m = wf_encoder_new(&c, training, real, seed, message);
    }
    bool ok = m && (wf_ok(m->graph) || fail(message, "%s", wf_error(m->graph))) &&
              copy_parameters(m, whole, message);
    wf_model_free(whole);
    if (ok) return m;
    wf_model_free(m);
    return NULL;
}

/* ---- vectors of lines ------------------------------------------------------------------------ */

/* The node with the vectors of lines or, if `classes`, with the log-probabilities of their classes.
 * NULL: m is no encoder, or has no classes. */
static wf_tensor *values_of(const wf_model *m, bool classes) {
    const wf_encoder *e = wf_encoder_of(m);
    if (!e || (classes && !e->config.classes)) return NULL;
    return classes ? m->log_probs : e->vectors;
}

wf_plan *wf_encoder_plan_for(wf_model *m, bool classes, wf_pool *pool) {
    wf_tensor *values = values_of(m, classes);
    if (!values) return wf_plan_new(NULL, NULL);
    wf_tensor *const lines[] = { m->src, m->src_length };
    const wf_plan_options o = {
        .fetch = &values, .n_fetch = 1, .feed = lines, .n_feed = 2, .pool = pool
    };
    return wf_plan_new(m->graph, &o);
}

bool wf_encoder_run_for(const wf_model *m, bool classes, wf_plan *p, int64_t B, int64_t S,
                        const int32_t *src, const int32_t *src_length, void *out) {
    const wf_tensor *values = values_of(m, classes);
    if (!wf_plan_ok(p)) return false;
    if (!values || !src || !src_length || !out)
        return wf_plan_fail(p, "there is no encoder, no line, or no room for vectors");
    for (int64_t i = 0; i < B; i++)
        if (src_length[i] < 0 || src_length[i] > S)
            return wf_plan_fail(p, "line %lld has %d tokens, not 0 to %lld", (long long)i,
                                (int)src_length[i], (long long)S);
    size_t row = (size_t)B * sizeof *src;
    return wf_bind(p, "B", B) && wf_bind(p, "S", S) && wf_feed(p, m->src, src, row * (size_t)S) &&
           wf_feed(p, m->src_length, src_length, row) && wf_run(p) &&
           wf_fetch(p, values, out, wf_bound_bytes(p, values));
}

wf_plan *wf_encoder_plan(wf_model *m, wf_pool *pool) {
    return wf_encoder_plan_for(m, false, pool);
}

bool wf_encoder_run(const wf_model *m, wf_plan *p, int64_t B, int64_t S, const int32_t *src,
                    const int32_t *src_length, void *vectors) {
    return wf_encoder_run_for(m, false, p, B, S, src, src_length, vectors);
}
