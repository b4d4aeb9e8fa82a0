/* models/encoder/encoder_pool.c - the vector of a line from those of its tokens, as
 * sentence-transformers makes it. See encoder.h.
 *
 * A sum over tokens is the product of a row of weights [1,S] and the tokens' vectors [S,D]. Padding
 * has the weight 0. */
#include "encoder_pool.h"

#include "models/kind.h"
#include "models/model_internal.h"

/* Vectors of tokens x [B,S,D]; valid [B,S] is 1 for tokens and 0 for padding. */
typedef struct tokens {
    wf_tensor *x, *valid;
} tokens;

/* In the maximum, padding has this value, which is below that of any token. */
#define LEAST (-1e9)

/* The sum of the tokens' vectors with these weights [B,S]: [B,D]. */
static wf_tensor *weighted(const tokens *t, wf_tensor *weights) {
    wf_tensor *row = wf_unsqueeze(weights, WF_AXIS(1));  /* [B,1,S] */
    return wf_squeeze(wf_matmul(row, t->x), WF_AXIS(1)); /* [B,D] */
}

/* The divisor of means: the sum of the weights, [B,1], but at least 1e-9, for empty lines. */
static wf_tensor *total(wf_tensor *weights) {
    return wf_maximum(wf_sum(weights, WF_AXIS(1), true), wf_constant(weights->graph, 1e-9));
}

/* 1, 2, 3, ... for tokens, 0 for padding: [B,S] */
static wf_tensor *numbers(const tokens *t) {
    return wf_mul(wf_cumsum(t->valid, 1, false), t->valid);
}

static wf_tensor *first(const tokens *t) {
    return wf_squeeze(wf_slice(t->x, 1, 0, 1), WF_AXIS(1));
}

static wf_tensor *greatest(const tokens *t) {
    wf_tensor *valid = wf_unsqueeze(t->valid, WF_AXIS(2)); /* [B,S,1] */
    return wf_max(wf_masked_fill(t->x, wf_logical_not(valid), LEAST), WF_AXIS(1), false);
}

static wf_tensor *mean(const tokens *t) {
    return wf_div(weighted(t, t->valid), total(t->valid));
}

static wf_tensor *over_root(const tokens *t) {
    return wf_div(weighted(t, t->valid), wf_sqrt(total(t->valid)));
}

static wf_tensor *weighted_mean(const tokens *t) {
    wf_tensor *weights = numbers(t);
    return wf_div(weighted(t, weights), total(weights));
}

static wf_tensor *last(const tokens *t) {
    wf_tensor *place = numbers(t), *length = wf_sum(t->valid, WF_AXIS(1), true);
    return weighted(t, wf_mul(wf_equal(place, length), t->valid));
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* The functions that compute poolings, in the order of their bits. */
static wf_tensor *(*const poolings[])(const tokens *t) = { first,     greatest,      mean,
                                                           over_root, weighted_mean, last };
enum { POOLINGS = sizeof poolings / sizeof *poolings };

static bool is_wanted(const wf_encoder_config *c, int i) {
    return c->pooling >> i & 1;
}

int64_t wf_encoder_pooled_width(const wf_encoder_config *c) {
    int64_t n = 0;
    if (!c || c->d_model < 0 || c->d_model > INT64_MAX / POOLINGS) return 0;
    for (int i = 0; i < POOLINGS; i++) n += is_wanted(c, i);
    return n * c->d_model;
}

wf_tensor *wf_dense_activate(wf_dense_activation a, wf_tensor *x) {
    static wf_tensor *(*const functions[])(wf_tensor *) = { [WF_DENSE_IDENTITY] = NULL,
                                                            [WF_DENSE_TANH] = wf_tanh,
                                                            [WF_DENSE_RELU] = wf_relu,
                                                            [WF_DENSE_GELU] = wf_gelu,
                                                            [WF_DENSE_SILU] = wf_silu };
    return functions[a] ? functions[a](x) : x;
}

wf_tensor *wf_unit_rows(wf_tensor *x) {
    wf_tensor *length = wf_vector_norm(x, 2, WF_AXIS(1), true); /* [B,1] */
    return wf_div(x, wf_maximum(length, wf_constant(x->graph, 1e-12)));
}

wf_tensor *wf_encoder_pool(const wf_encoder_config *c, const struct wf_linear_layer *dense,
                           wf_tensor *x, wf_tensor *valid) {
    const tokens t = { x, valid };
    wf_tensor *parts[POOLINGS];
    int n = 0;
    const char *outer = wf_scope_push(x->graph, "pooling");
    for (int i = 0; i < POOLINGS; i++)
        if (is_wanted(c, i)) parts[n++] = poolings[i](&t);
    wf_tensor *y = n == 1 ? parts[0] : wf_concat(parts, n, 1); /* [B,P] */
    wf_scope(x->graph, outer);
    if (c->dense) y = wf_dense_activate(c->dense_activation, wf_linear(dense, y));
    return c->normalize ? wf_unit_rows(y) : y;
}
