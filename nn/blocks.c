/* nn/blocks.c - feed-forward, encoder and decoder layers, named as in torch.nn.Transformer.
 *
 * Each sublayer f has a residual connection, with a LayerNorm (or RMSNorm) after or before it:
 *
 *     post-norm    Norm(x + Dropout(f(x)))        Vaswani et al. 2017, 3.1 and 5.4
 *     pre-norm     x + Dropout(f(Norm(x)))        Xiong et al. 2020: trains without warm-up
 */
#include "core/graph_internal.h"
#include "layers_internal.h"
#include "module.h"
#include "ops/ops_internal.h"

wf_tensor *wf_activate(wf_activation a, wf_tensor *x) {
#define FUNCTION(value, name, function) function,
    static wf_tensor *(*const functions[])(wf_tensor *) = { WF_ACTIVATIONS(FUNCTION) };
    if ((unsigned)a < WF_ACTIVATION_COUNT) return functions[a](x);
    return wf_poison(x ? x->graph : NULL, "there is no activation number %d", (int)a);
}

/* ---- feed-forward ---------------------------------------------------------------------------- */

struct wf_feed_forward_layer wf_feed_forward_new(wf_graph *g, const wf_block_options *o) {
    if (!o) {
        no_options(g, "a feed-forward");
        return (struct wf_feed_forward_layer){ 0 };
    }
    struct wf_feed_forward_layer l = { .activation = o->activation,
                                       .gated = o->gated,
                                       .dropout = o->activation_dropout };
    l.linear1 = wf_linear_new(g, "linear1", o->d_model, o->dim_feedforward, o->bias);
    l.linear2 = wf_linear_new(g, "linear2", o->dim_feedforward, o->d_model, o->bias);
    if (o->gated) l.linear3 = wf_linear_new(g, "linear3", o->d_model, o->dim_feedforward, o->bias);
    return l;
}

wf_tensor *wf_feed_forward(const struct wf_feed_forward_layer *l, wf_tensor *x) {
    if (!l) return no_layer(x, "a feed-forward");
    wf_tensor *h = wf_activate(l->activation, wf_linear(&l->linear1, x)); /* [B,T,F] */
    if (l->gated) h = wf_mul(h, wf_linear(&l->linear3, x));
    return wf_linear(&l->linear2, wf_drop(h, l->dropout, "dropout"));
}

/* ---- residual connections -------------------------------------------------------------------- */

struct wf_norm_layer wf_block_norm_new(wf_graph *g, const char *name, const wf_block_options *o) {
    if (!o) {
        no_options(g, "a norm");
        return (struct wf_norm_layer){ 0 };
    }
    return wf_norm_new(g, name, o->norm, o->d_model, o->layer_norm_eps, o->bias);
}

/* The input of a sublayer: with pre-norm x after the norm, else x. */
static wf_tensor *before(const wf_block_options *o, const struct wf_norm_layer *norm,
                         wf_tensor *x) {
    return o->norm_first ? wf_norm(norm, x) : x;
}

/* The output of a residual connection: x plus the sublayer's output f after dropout. With post-norm
 * this sum is normalised. */
static wf_tensor *after(const wf_block_options *o, const struct wf_norm_layer *norm, wf_tensor *x,
                        wf_tensor *f, const char *dropout) {
    wf_tensor *y = wf_add(x, wf_drop(f, o->dropout, dropout));
    return o->norm_first ? y : wf_norm(norm, y);
}

/* ---- in the place of self-attention ---------------------------------------------------------- */

/* Self-attention of x. h is x after the norm if pre-norm, else x itself. With the option raw_keys,
 * queries are computed from h, but keys and values from x. */
static wf_tensor *attend_self(const wf_block_options *block, const struct wf_mha_layer *l,
                              wf_tensor *x, wf_tensor *h, const wf_mha_options *o) {
    wf_tensor *k, *v;
    if (!block->raw_keys || h == x) return wf_mha(l, h, h, o);
    if (o && o->rotary) return wf_poison(x->graph, "keys without a norm are not rotated");
    wf_mha_keys_values(l, x, &k, &v);
    if (o && o->cache) {
        k = wf_cache(k, 2);
        v = wf_cache(v, 2);
    }
    return wf_mha_attend(l, h, k, v, o);
}

static struct wf_ssru_layer ssru_new(wf_graph *g, const char *name, const wf_block_options *o) {
    struct wf_ssru_layer l;
    const char *outer = wf_scope_push(g, name);
    l.input = wf_linear_new(g, "input", o->d_model, o->d_model, false);
    l.forget = wf_linear_new(g, "forget", o->d_model, o->d_model, o->bias);
    l.path = wf_scope(g, outer);
    return l;
}

/* [B,T,D] -> [B,T,D] (Kim et al. 2019, "From research to production and back", eq. 1 to 4) */
static wf_tensor *ssru(const struct wf_ssru_layer *l, wf_tensor *x) {
    const char *outer = enter(l->input.weight, l->path);
    wf_tensor *f = wf_sigmoid(wf_linear(&l->forget, x));
    wf_tensor *add = wf_mul(wf_affine(f, -1, 1), wf_linear(&l->input, x));
    return leave(outer, wf_relu(wf_carried_scan(f, add, 1)));
}

static struct wf_average_layer average_new(wf_graph *g, const char *name,
                                           const wf_block_options *o) {
    int64_t D = o->d_model, W = o->average_width ? o->average_width : o->dim_feedforward;
    struct wf_average_layer l = { .activation = o->average_activation,
                                  .dropout = o->activation_dropout };
    const char *outer = wf_scope_push(g, name);
    l.inner = wf_linear_new(g, "inner", D, W, o->bias);
    if (W != D) l.outer = wf_linear_new(g, "outer", W, D, o->bias);
    l.input_gate = wf_linear_new(g, "input_gate", D, D, o->bias);
    l.forget_gate = wf_linear_new(g, "forget_gate", D, D, o->bias);
    l.path = wf_scope(g, outer);
    return l;
}

/* For each position t the mean of x[0] to x[t]: m[t] = t / (t + 1) m[t-1] + x[t] / (t + 1). */
static wf_tensor *running_mean(wf_tensor *x) {
    wf_tensor *before = wf_cast(wf_position_ids(x, 1), wf_real(x->graph)); /* [T] */
    wf_tensor *t = wf_unsqueeze(before, WF_LAST_AXIS), *n = wf_affine(t, 1, 1);
    return wf_carried_scan(wf_broadcast_to(wf_div(t, n), x), wf_div(x, n), 1);
}

/* x and its running mean m, both [B,T,D] -> [B,T,D] (Zhang et al. 2018, "Accelerating neural
 * Transformer via an average attention network", eq. 1 to 3) */
static wf_tensor *average(const struct wf_average_layer *l, wf_tensor *x, wf_tensor *m) {
    const char *outer = enter(l->inner.weight, l->path);
    wf_tensor *y = wf_activate(l->activation, wf_linear(&l->inner, m)); /* [B,T,W] */
    y = wf_drop(y, l->dropout, "dropout");
    if (l->outer.weight) y = wf_linear(&l->outer, y);
    wf_tensor *kept = wf_mul(wf_sigmoid(wf_linear(&l->input_gate, x)), x);
    wf_tensor *added = wf_mul(wf_sigmoid(wf_linear(&l->forget_gate, y)), y);
    return leave(outer, wf_add(kept, added));
}

/* ---- gradient checkpointing: layers whose values gradients compute again --------------------- */

static const char *enter_block(const wf_block_options *o, const wf_tensor *parameter,
                               const char *path) {
    if (o->recompute) wf_recompute_begin(parameter->graph);
    return enter(parameter, path);
}

static wf_tensor *leave_block(const wf_block_options *o, const char *outer, wf_tensor *y) {
    if (o->recompute) wf_recompute_end(y->graph);
    return leave(outer, y);
}

/* ---- encoder layer --------------------------------------------------------------------------- */

struct wf_encoder_block wf_encoder_layer_new(wf_graph *g, const char *name,
                                             const wf_block_options *o) {
    if (!o) {
        no_options(g, "an encoder layer");
        return (struct wf_encoder_block){ 0 };
    }
    struct wf_encoder_block l = { .o = *o };
    const char *outer = wf_scope_push(g, name);
    l.self_attn = wf_self_attention_new(g, "self_attn", o);
    l.ff = wf_feed_forward_new(g, o);
    l.norm1 = wf_block_norm_new(g, "norm1", o);
    l.norm2 = wf_block_norm_new(g, "norm2", o);
    l.path = wf_scope(g, outer);
    return l;
}

wf_tensor *wf_encoder_layer(const struct wf_encoder_block *l, wf_tensor *x,
                            const wf_mha_options *o) {
    if (!l || !l->norm1.weight) return no_layer(x, "an encoder layer");
    const char *outer = enter_block(&l->o, l->norm1.weight, l->path);
    wf_tensor *h = before(&l->o, &l->norm1, x);
    x = after(&l->o, &l->norm1, x, attend_self(&l->o, &l->self_attn, x, h, o), "dropout1");
    h = before(&l->o, &l->norm2, x);
    x = after(&l->o, &l->norm2, x, wf_feed_forward(&l->ff, h), "dropout2");
    return leave_block(&l->o, outer, x); /* [B,S,D] */
}

/* ---- decoder layer --------------------------------------------------------------------------- */

struct wf_decoder_block wf_decoder_layer_new(wf_graph *g, const char *name,
                                             const wf_block_options *o) {
    if (!o) {
        no_options(g, "a decoder layer");
        return (struct wf_decoder_block){ 0 };
    }
    struct wf_decoder_block l = { .o = *o };
    const char *outer = wf_scope_push(g, name);
    if (o->decoder == WF_DECODER_SSRU)
        l.ssru = ssru_new(g, "ssru", o);
    else if (o->decoder == WF_DECODER_AVERAGE)
        l.average = average_new(g, "average", o);
    else if (o->decoder == WF_DECODER_ATTENTION)
        l.self_attn = wf_self_attention_new(g, "self_attn", o);
    else
        wf_poison(g, "there is no decoder number %d", (int)o->decoder);
    l.multihead_attn = wf_cross_attention_new(g, "multihead_attn", o);
    l.ff = wf_feed_forward_new(g, o);
    l.norm1 = wf_block_norm_new(g, "norm1", o);
    l.norm2 = wf_block_norm_new(g, "norm2", o);
    l.norm3 = wf_block_norm_new(g, "norm3", o);
    l.path = wf_scope(g, outer);
    return l;
}

wf_tensor *wf_decoder_layer(const struct wf_decoder_block *l, wf_tensor *x, wf_tensor *cross_k,
                            wf_tensor *cross_v, const wf_mha_options *self,
                            const wf_mha_options *cross) {
    if (!l || !l->norm1.weight) return no_layer(x, "a decoder layer");
    const char *outer = enter_block(&l->o, l->norm1.weight, l->path);
    wf_tensor *h = before(&l->o, &l->norm1, l->average.path ? running_mean(x) : x), *f;
    if (l->average.path)
        f = average(&l->average, x, h);
    else
        f = l->ssru.path ? ssru(&l->ssru, h) : attend_self(&l->o, &l->self_attn, x, h, self);
    x = after(&l->o, &l->norm1, x, f, "dropout1");
    h = before(&l->o, &l->norm2, x);
    x = after(&l->o, &l->norm2, x, wf_mha_attend(&l->multihead_attn, h, cross_k, cross_v, cross),
              "dropout2");
    h = before(&l->o, &l->norm3, x);
    x = after(&l->o, &l->norm3, x, wf_feed_forward(&l->ff, h), "dropout3");
    return leave_block(&l->o, outer, x); /* [B,T,D] */
}
