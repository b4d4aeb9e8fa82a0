/* tools/draw/subject.c - makes the graphs that are drawn. See subject.h. Axes: B batch, T target
 * length (queries), S source length (keys), H heads, D model width. */
#include "subject.h"
#include "models/model_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/language_model.h"
#include "models/transformer.h"
#include "nn/layers_internal.h"
#include "tools/cli/refused.h"

/* ---- one attention, as textbooks draw it ----------------------------------------------------- */

static wf_tensor *split_heads(wf_tensor *x, int64_t heads) {
    static const int order[] = { 0, 2, 1, 3 };
    x = wf_reshape(x, 4, (int64_t[]){ WF_KEEP, WF_KEEP, heads, WF_REST }); /* [B, T, H, d] */
    return wf_permute(x, order);                                           /* [B, H, T, d] */
}

static wf_tensor *merge_heads(wf_tensor *x) {
    wf_tensor *y = wf_permute(x, (int[]){ 0, 2, 1, 3 });               /* [B, T, H, d] */
    return wf_reshape(y, 3, (int64_t[]){ WF_KEEP, WF_KEEP, WF_REST }); /* [B, T, D] */
}

/* The sizes of a layer, and properties that depend on the model that it is from. */
typedef struct layer_form {
    wf_block_options sizes;
    /* With one stack there is only self-attention: queries, keys and values come from one input. */
    enum { ENCODER_AND_DECODER, DECODER_ONLY, ENCODER_ONLY } stacks;
    bool rotary; /* queries and keys are rotated by their positions */
} layer_form;

/* The table of rotations for the positions of x [B, T, D]. */
static wf_tensor *rotations(wf_graph *g, const layer_form *f, wf_tensor *x) {
    const wf_block_options *c = &f->sizes;
    if (!f->rotary) return NULL;
    struct wf_position_layer l =
        wf_position_new(g, "positions", WF_POSITIONS_ROTARY, 4096, c->d_model);
    return wf_rotary_positions(&l, x, NULL, c->d_model / c->num_heads);
}

/* Grouped queries: each head of keys or values serves several heads of queries. */
static wf_tensor *share_heads(wf_graph *g, const char *scope, wf_tensor *x, int64_t times) {
    if (times == 1) return x;
    wf_scope(g, scope);
    return wf_repeat_interleave(x, times, 1); /* [B, H, S, d_head] */
}

/* wf_mha computes the same with one packed projection and one fused operation; here every step has
 * a scope of its own, whose name the picture shows. */
static wf_tensor *record_attention(wf_graph *g, const layer_form *f) {
    const wf_block_options *c = &f->sizes;
    int64_t d = c->d_model, heads = c->num_heads, d_head = d / heads;
    int64_t kv_heads = c->num_kv_heads ? c->num_kv_heads : heads, kv = kv_heads * d_head;
    int64_t B = wf_extent(g, "B", 4096), T = wf_extent(g, "T", 4096), S = wf_extent(g, "S", 4096);
    bool one = f->stacks != ENCODER_AND_DECODER;
    int64_t K = one ? T : S; /* keys */
    wf_tensor *query = wf_input(g, one ? "x" : "query", wf_real(g), 3, (int64_t[]){ B, T, d });
    wf_tensor *key = query;
    wf_tensor *value = query;
    if (!one) {
        key = wf_input(g, "key", wf_real(g), 3, (int64_t[]){ B, K, d });
        value = wf_input(g, "value", wf_real(g), 3, (int64_t[]){ B, K, d });
    }
    wf_tensor *may_attend = wf_input(g, "may attend", wf_real(g), 4, (int64_t[]){ B, 1, T, K });
    struct wf_linear_layer to_q = wf_linear_new(g, "Q projection", d, d, c->bias);
    struct wf_linear_layer to_k = wf_linear_new(g, "K projection", d, kv, c->bias);
    struct wf_linear_layer to_v = wf_linear_new(g, "V projection", d, kv, c->bias);
    struct wf_linear_layer to_output = wf_linear_new(g, "output projection", d, d, c->bias);
    wf_tensor *q = wf_linear(&to_q, query); /* [B, T, D] */
    wf_tensor *k = wf_linear(&to_k, key);   /* [B, K, kv_heads * d_head] */
    wf_tensor *v = wf_linear(&to_v, value); /* [B, K, kv_heads * d_head] */
    wf_tensor *table = rotations(g, f, query);
    wf_tensor *key_table = key == query ? table : rotations(g, f, key);

    wf_scope(g, "Q heads");
    q = split_heads(q, heads); /* [B, H, T, d_head] */
    wf_scope(g, "K heads");
    k = split_heads(k, kv_heads); /* [B, kv_heads, K, d_head] */
    wf_scope(g, "V heads");
    v = split_heads(v, kv_heads); /* [B, kv_heads, K, d_head] */
    if (f->rotary) {
        wf_scope(g, "Q rotated by position");
        q = wf_rotate(q, table, false);
        wf_scope(g, "K rotated by position");
        k = wf_rotate(k, key_table, false);
    }
    k = share_heads(g, "K heads, shared", k, heads / kv_heads);
    v = share_heads(g, "V heads, shared", v, heads / kv_heads);
    wf_scope(g, "scores: Q Kᵀ");
    wf_tensor *scores = wf_matmul(q, wf_transpose(k, -1, -2)); /* [B, H, T, K] */
    char scale[64];
    snprintf(scale, sizeof scale, "scale by 1 / √%" PRId64, d_head);
    wf_scope(g, scale);
    scores = wf_scale(scores, 1 / sqrt((double)d_head));
    wf_scope(g, "mask");
    scores = wf_where(may_attend, scores, wf_constant(g, -INFINITY));
    wf_scope(g, "softmax over the keys");
    wf_tensor *weights = wf_softmax(scores, -1);
    wf_scope(g, "weighted sum of V");
    wf_tensor *y = wf_matmul(weights, v); /* [B, H, T, d_head] */
    wf_scope(g, "heads side by side");
    y = merge_heads(y); /* [B, T, D] */
    wf_scope(g, "");
    return wf_linear(&to_output, y);
}

/* ---- one layer ------------------------------------------------------------------------------- */

static wf_tensor *record_encoder_layer(wf_graph *g, const layer_form *f) {
    const wf_block_options *c = &f->sizes;
    int64_t B = wf_extent(g, "B", 4096), S = wf_extent(g, "S", 4096);
    struct wf_encoder_block layer = wf_encoder_layer_new(g, "encoder layer", c);
    wf_tensor *x = wf_input(g, "x", wf_real(g), 3, (int64_t[]){ B, S, c->d_model });
    wf_tensor *mask = wf_input(g, "source mask", wf_real(g), 4, (int64_t[]){ B, 1, 1, S });
    return wf_encoder_layer(&layer, x,
                            &(wf_mha_options){ .mask = mask, .rotary = rotations(g, f, x) });
}

/* A layer of a decoder-only stack: causal self-attention and a feed-forward layer. */
static wf_tensor *record_stack_layer(wf_graph *g, const layer_form *f) {
    const wf_block_options *c = &f->sizes;
    int64_t B = wf_extent(g, "B", 4096), T = wf_extent(g, "T", 4096);
    wf_extent(g, "S", 4096); /* unused: subject_bind binds it */
    struct wf_encoder_block layer = wf_encoder_layer_new(g, "layer", c);
    wf_tensor *x = wf_input(g, "x", wf_real(g), 3, (int64_t[]){ B, T, c->d_model });
    return wf_encoder_layer(&layer, x,
                            &(wf_mha_options){ .causal = true, .rotary = rotations(g, f, x) });
}

static wf_tensor *record_decoder_layer(wf_graph *g, const layer_form *f) {
    const wf_block_options *c = &f->sizes;
    if (f->stacks == DECODER_ONLY) return record_stack_layer(g, f);
    int64_t B = wf_extent(g, "B", 4096), T = wf_extent(g, "T", 4096), S = wf_extent(g, "S", 4096);
    struct wf_decoder_block layer = wf_decoder_layer_new(g, "decoder layer", c);
    wf_tensor *x = wf_input(g, "y", wf_real(g), 3, (int64_t[]){ B, T, c->d_model });
    wf_tensor *memory = wf_input(g, "memory", wf_real(g), 3, (int64_t[]){ B, S, c->d_model });
    wf_tensor *mask = wf_input(g, "source mask", wf_real(g), 4, (int64_t[]){ B, 1, 1, S }), *k, *v;
    wf_mha_keys_values(&layer.multihead_attn, memory, &k, &v);
    const wf_mha_options self = { .causal = true, .rotary = rotations(g, f, x) };
    return wf_decoder_layer(&layer, x, k, v, &self, &(wf_mha_options){ .mask = mask });
}

/* ---- all of them ----------------------------------------------------------------------------- */

bool says_no_memory(const char *message) {
    return strstr(message, "out of memory") != NULL;
}

wf_tensor *subject_loss(const subject *s) {
    wf_tensor *y = s->result;
    if (s->model) return s->model->loss.loss;
    const char *outer = wf_scope(s->graph, "loss");
    wf_tensor *loss = y;
    if (y->ndim) loss = s->is_formula ? wf_sum(y, WF_ALL_AXES, false) : wf_square_sum(y);
    wf_scope(s->graph, outer);
    return loss;
}

bool subject_fetch(subject *s, wf_tensor *result, bool backward, char *message) {
    int n = backward ? wf_parameters(s->graph, NULL, NULL, 0) : 0;
    wf_tensor **params = calloc((size_t)n + 1, sizeof *params);
    s->fetch = calloc((size_t)n + 1, sizeof *s->fetch);
    s->n = n + 1;
    s->result = result;
    bool room = params && s->fetch;
    if (room) {
        wf_parameters(s->graph, NULL, params, n);
        s->fetch[0] = backward ? subject_loss(s) : result;
        if (backward) wf_grad(s->fetch[0], params, n, s->fetch + 1);
    }
    free(params);
    return room || refused(message, "out of memory");
}

static void entitle(subject *s, const char *what, const wf_block_options *c) {
    snprintf(s->title, sizeof s->title, "%s, width %" PRId64 ", %" PRId64 " heads", what,
             c->d_model, c->num_heads);
}

/* A new Transformer: `layers` layers of these sizes in the encoder, and as many in the decoder. */
static wf_model *new_model(const wf_block_options *c, int64_t layers, char *message) {
    wf_transformer_config t = wf_transformer_defaults();
    t.src_vocab = t.tgt_vocab = 10000;
    t.max_len = 4096;
    t.d_model = c->d_model;
    t.num_heads = c->num_heads;
    t.dim_feedforward = c->dim_feedforward;
    t.encoder_layers = t.decoder_layers = layers;
    t.norm_first = t.encoder_norm = t.decoder_norm = c->norm_first;
    return wf_transformer_new(&t, NULL, WF_F32, 1, message);
}

static bool open_model(subject *s, const wf_block_options *c, int64_t layers, const wf_file *f,
                       bool backward, char *message) {
    s->model = f ? wf_model_load(f, NULL, WF_F32, 1, message) : new_model(c, layers, message);
    if (!s->model) return false;
    entitle(s, wf_model_kind_title(s->model->kind), c);
    s->graph = s->model->graph;
    return !wf_ok(s->graph) || subject_fetch(s, s->model->logits, backward, message);
}

/* Reads the form of the layers of the model in f. Without a file, the form stays that of an
 * encoder-decoder Transformer. */
static bool read_form(layer_form *form, const wf_file *f, char *message) {
    if (!f) return true;
    wf_model *m = wf_model_record(f, NULL, WF_F32, 1, message);
    if (!m) return false;
    const wf_language_model *l = wf_language_model_of(m);
    const wf_transformer *t = wf_transformer_of(m);
    wf_positions positions = WF_POSITIONS_LEARNED; /* as encoders have */
    form->stacks = ENCODER_ONLY;
    if (l) {
        form->stacks = DECODER_ONLY;
        positions = l->config.positions;
    }
    if (t) {
        form->stacks = ENCODER_AND_DECODER;
        positions = t->config.positions;
    }
    form->rotary = wf_rotates(positions);
    wf_model_free(m);
    return true;
}

static bool open_part(subject *s, subject_kind kind, const wf_block_options *c, const wf_file *f,
                      bool backward, char *message) {
    static const char self[] = "Self-attention(x) = softmax(Q Kᵀ / √d) V";
    static const struct {
        const char *titles[3]; /* by layer_form.stacks; NULL: such a model has no such part */
        wf_tensor *(*record)(wf_graph *g, const layer_form *f);
        const char *missing; /* error message for such a model */
    } parts[] = {
        { { "Attention(Q, K, V) = softmax(Q Kᵀ / √d) V", self, self }, record_attention, NULL },
        { { "Encoder layer", NULL, "Encoder layer" },
          record_encoder_layer,
          "a language model has no encoder: --of decoder-layer draws one of its layers" },
        { { "Decoder layer", "Layer of a decoder-only model", NULL },
          record_decoder_layer,
          "an encoder has no decoder: --of encoder-layer draws one of its layers" }
    };
    layer_form form = { .sizes = *c };
    if (!read_form(&form, f, message)) return false;
    const char *title = parts[kind].titles[form.stacks];
    if (!title) return refused(message, "%s", parts[kind].missing);
    entitle(s, title, c);
    s->graph = wf_graph_new(&(wf_graph_options){ .seed = 1 });
    wf_tensor *y = parts[kind].record(s->graph, &form);
    return !wf_ok(s->graph) || subject_fetch(s, y, backward, message);
}

bool subject_new(subject *s, subject_kind kind, const wf_block_options *c, int64_t layers,
                 const wf_file *f, bool backward, char *message) {
    *s = (subject){ 0 };
    bool whole = kind == SUBJECT_TRANSFORMER;
    bool opened = whole ? open_model(s, c, layers, f, backward, message)
                        : open_part(s, kind, c, f, backward, message);
    if (!opened) return false;
    if (!wf_ok(s->graph)) snprintf(message, WF_MESSAGE, "%s", wf_error(s->graph));
    return wf_ok(s->graph);
}

void subject_free(subject *s) {
    free(s->fetch);
    if (s->model)
        wf_model_free(s->model);
    else
        wf_graph_free(s->graph);
}

/* ---- measured -------------------------------------------------------------------------------- */

static bool feed_ones(wf_plan *p, wf_tensor *const *inputs, int n) {
    for (int i = 0; i < n; i++) {
        size_t bytes = wf_bound_bytes(p, inputs[i]);
        union {
            float real;
            int32_t id;
        } *ones = malloc(bytes + 1); /* graphs of this program are f32 */
        for (size_t k = 0; ones && k < bytes / sizeof *ones; k++) {
            if (inputs[i]->dtype == WF_I32)
                ones[k].id = 1;
            else
                ones[k].real = 1;
        }
        bool fed = ones && wf_feed(p, inputs[i], ones, bytes);
        free(ones);
        if (!fed) return false;
    }
    return true;
}

static bool measure(wf_plan *p, int runs) {
    if (!wf_run(p)) return false;
    wf_profile(p, true);
    while (runs-- > 0)
        if (!wf_run(p)) return false;
    return true;
}

bool subject_is_mask(const wf_tensor *input) {
    return strcmp(input->name, "may attend") == 0 || strcmp(input->name, "source mask") == 0;
}

/* A layer of an encoder has no extent T, and a formula has no extents. */
bool subject_bind(const subject *s, wf_plan *p, int64_t batch, int64_t length) {
    if (s->is_formula) return true;
    if (s->model) return wf_model_bind(s->model, p, batch, s->model->src ? length : 0, length);
    bool bound = wf_bind(p, "B", batch) && wf_bind(p, "S", length);
    if (bound && wf_bound_bytes(p, s->fetch[0]) == 0) wf_bind(p, "T", length);
    return bound;
}

wf_plan *subject_plan(const subject *s, int64_t batch, int64_t length, int runs, wf_pool *pool,
                      char *message) {
    enum { MOST_INPUTS = 16 };
    wf_tensor *inputs[MOST_INPUTS];
    int n = 0;
    for (int id = 0; id < wf_node_count(s->graph) && n < MOST_INPUTS; id++) {
        const wf_tensor *t = wf_node(s->graph, id);
        if (t->kind == WF_INPUT) inputs[n++] = wf_find(s->graph, t->name);
    }
    wf_plan_options options = { .fetch = s->fetch,
                                .n_fetch = s->n,
                                .feed = inputs,
                                .n_feed = n,
                                .pool = pool,
                                .training = s->n > 1 };
    wf_plan *p = wf_plan_new(s->graph, &options);
    bool bound = wf_plan_ok(p) && subject_bind(s, p, batch, length);
    if (bound && feed_ones(p, inputs, n) && measure(p, runs)) return p;
    const char *reason = wf_plan_error(p);
    snprintf(message, WF_MESSAGE, "%s", *reason ? reason : "out of memory"); /* in feed_ones */
    wf_plan_free(p);
    return NULL;
}
