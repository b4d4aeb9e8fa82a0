/* tools/learn/lesson_blocks.c - the blocks of a Transformer in double, correct or with known
 * mistakes. See lesson_blocks.h. */
#include "lesson_blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Allocates n doubles, or ends the program: the sizes are small, so without this memory nothing
 * works. */
double *room(int64_t n) {
    double *x = calloc((size_t)n + 1, sizeof *x);
    if (!x) exit(1);
    return x;
}

double *doubles_of(const float *x, int64_t n) {
    double *d = room(n);
    for (int64_t i = 0; i < n; i++) d[i] = x[i];
    return d;
}

/* ---- linear ---------------------------------------------------------------------------------- */

void block_linear(const double *x, int rows, int in, const float *w, const float *b, int out,
                  uint64_t m, double *y) {
    for (int t = 0; t < rows; t++) {
        for (int o = 0; o < out; o++) {
            double bias = HAS(m, LINEAR_BIAS_OF_ROW) ? b[t % out] : b[o];
            if (HAS(m, LINEAR_FIRST_BIAS)) bias = b[0];
            if (HAS(m, LINEAR_NO_BIAS)) bias = 0;
            if (HAS(m, LINEAR_BIAS_TWICE)) bias *= 2;
            double sum = HAS(m, LINEAR_BIAS_EACH) ? in * bias : bias;
            for (int i = HAS(m, LINEAR_LAST) ? in - 1 : 0; i < in; i++)
                sum += x[t * in + i] * w[HAS(m, LINEAR_TURNED) ? i * out + o : o * in + i];
            y[t * out + o] = sum;
        }
    }
}

/* ---- multi-head attention -------------------------------------------------------------------- */

/* The index of element c of head h of token t in [n, D]. */
static int place_of(int t, int h, int c, int n, int D, int H, uint64_t m) {
    int d = D / H;
    if (HAS(m, HEADS_ROWS) || HAS(m, HEADS_CUT_BY_ROWS)) return (h * n + t) * d + c;
    if (HAS(m, HEADS_INTERLEAVED)) return t * D + c * H + h;
    return t * D + (HAS(m, HEADS_FIRST_ONLY) ? 0 : h * d) + c;
}

static bool may_look(const float *mask, int h, int at, uint64_t m) {
    if (!mask || HAS(m, HEADS_NO_MASK)) return true;
    if (HAS(m, HEADS_FIRST_MASKED) && h > 0) return true;
    return mask[at] != 0;
}

struct projected {
    double *q, *k, *v;
    int T, S, D, H;
};

/* The weights [S] of query t in head h. */
static void look(const struct projected *p, int h, int t, const float *mask, uint64_t m,
                 double *w) {
    double most = -INFINITY, sum = 0, scale = 1 / sqrt(p->D / p->H);
    if (HAS(m, HEADS_OF_MODEL)) scale = 1 / sqrt(p->D);
    if (HAS(m, HEADS_UNSCALED)) scale = 1;
    for (int j = 0; j < p->S; j++) {
        w[j] = 0;
        for (int c = 0; c < p->D / p->H; c++)
            w[j] += scale * p->q[place_of(t, h, c, p->T, p->D, p->H, m)] *
                    p->k[place_of(j, h, c, p->S, p->D, p->H, m)];
        if (!may_look(mask, h, t * p->S + j, m)) w[j] = -INFINITY;
        most = fmax(most, w[j]);
    }
    for (int j = 0; j < p->S; j++) {
        w[j] = most == -INFINITY ? 0 : exp(w[j] - most);
        sum += w[j];
    }
    for (int j = 0; j < p->S && sum > 0; j++) w[j] /= sum;
}

/* The results of all heads side by side: [T, D]. Elements that a mistake leaves unwritten are
 * NaN. */
static void all_heads(const struct projected *p, const float *mask, uint64_t m, double *weights,
                      double *y) {
    static const uint64_t only_taking = UINT64_C(1) << HEADS_FIRST_ONLY | UINT64_C(1)
                                                                              << HEADS_CUT_BY_ROWS;
    int T = p->T, S = p->S, D = p->D, H = p->H, d = D / H;
    for (int i = 0; i < H * T * S; i++) weights[i] = NAN;
    for (int h = 0; h < H; h++) {
        for (int t = 0; t < T; t++) {
            double *w = weights + (h * T + t) * S;
            if (HAS(m, HEADS_ONE_PLACE)) w = weights + t * S;
            look(p, h, t, mask, m, w);
            for (int c = 0; c < d; c++) {
                double sum = 0;
                for (int j = 0; j < S; j++) sum += w[j] * p->v[place_of(j, h, c, S, D, H, m)];
                int at = place_of(t, h, c, T, D, H, m & ~only_taking);
                y[HAS(m, HEADS_NOT_REJOINED) ? (h * T + t) * d + c : at] = sum;
            }
        }
    }
}

void block_heads(const struct attention_weights *w, const double *x, int T, const double *kv, int S,
                 const float *mask, int D, int H, uint64_t m, double *weights, double *out) {
    uint64_t turned = HAS(m, HEADS_TURNED) << LINEAR_TURNED;
    uint64_t in = turned | HAS(m, HEADS_NO_BIAS) << LINEAR_NO_BIAS;
    uint64_t last = HAS(m, HEADS_OUT_TURNED) << LINEAR_TURNED | HAS(m, HEADS_NO_OUT_BIAS)
                                                                    << LINEAR_NO_BIAS;
    int most = T > S ? T : S;
    struct projected p = { room(most * D), room(most * D), room(most * D), T, S, D, H };
    double *own = weights ? NULL : room((int64_t)H * T * S), *y = room(T * D);
    double *from = room(most * D), *queries = room(most * D), *own_rows = room(most * D);
    for (int i = 0; i < most * D; i++) {
        own_rows[i] = x[i % (T * D)];
        queries[i] = HAS(m, HEADS_Q_OF_KEYS) ? kv[i % (S * D)] : x[i % (T * D)];
        from[i] = HAS(m, HEADS_KV_OF_QUERIES) ? x[i % (T * D)] : kv[i % (S * D)];
    }
    block_linear(queries, T, D, w->wq, w->bq, D, in, p.q);
    block_linear(HAS(m, HEADS_K_OF_QUERIES) ? own_rows : from, S, D, w->wk, w->bk, D, in, p.k);
    bool same = HAS(m, HEADS_K_FOR_V);
    block_linear(HAS(m, HEADS_V_OF_QUERIES) ? own_rows : from, S, D, same ? w->wk : w->wv,
                 same ? w->bk : w->bv, D, in, p.v);
    all_heads(&p, mask, m, weights ? weights : own, y);
    if (HAS(m, HEADS_NO_OUT))
        for (int i = 0; i < T * D; i++) out[i] = y[i];
    else
        block_linear(y, T, D, w->wo, w->bo, D, last, out);
    if (HAS(m, HEADS_OUT_TWICE)) {
        for (int i = 0; i < T * D; i++) y[i] = out[i];
        block_linear(y, T, D, w->wo, w->bo, D, last, out);
    }
    free(p.q), free(p.k), free(p.v);
    free(own), free(y), free(from);
    free(queries), free(own_rows);
}

/* ---- layer norm ------------------------------------------------------------------------------ */

/* The mean, and 1 / the standard deviation, of n numbers that are `step` apart. before: mean and
 * variance of the row before, for the mistake that sums do not begin at 0 again. */
static void statistics(const double *x, int n, int step, uint64_t m, double before[2], double *mean,
                       double *inverse) {
    double sum = HAS(m, NORM_RUNNING) || HAS(m, NORM_RUNNING_MEAN) ? before[0] : 0;
    double squares = HAS(m, NORM_RUNNING) || HAS(m, NORM_RUNNING_VARIANCE) ? before[1] : 0;
    for (int i = 0; i < n; i++) sum += x[i * step];
    *mean = HAS(m, NORM_NO_MEAN) ? 0 : sum / n;
    double from = HAS(m, NORM_RAW_VARIANCE) ? 0 : *mean;
    for (int i = 0; i < n; i++) squares += (x[i * step] - from) * (x[i * step] - from);
    double variance = squares / (HAS(m, NORM_UNBIASED) ? n - 1 : n), eps = EPS;
    if (HAS(m, NORM_ABSOLUTE)) {
        variance = 0;
        for (int i = 0; i < n; i++) variance += fabs(x[i * step] - from) / n;
    }
    if (HAS(m, NORM_NOT_DIVIDED)) variance = squares;
    double deviation = sqrt(variance + eps);
    if (HAS(m, NORM_NO_EPS)) deviation = sqrt(variance);
    if (HAS(m, NORM_EPS_OUTSIDE)) deviation = sqrt(variance) + eps;
    if (HAS(m, NORM_NO_ROOT)) deviation = variance + eps;
    *inverse = 1 / deviation;
    before[0] = *mean;
    before[1] = variance;
}

void block_norm(const struct norm_weights *w, const double *x, int rows, int D, uint64_t m,
                double *y) {
    double before[2] = { 0 }, mean = 0, inverse = 1;
    for (int i = 0; i < rows * D; i++) {
        int t = i / D, j = i % D;
        double gamma = HAS(m, NORM_GAMMA_OF_ROW) ? w->gamma[t % D] : w->gamma[j];
        if (HAS(m, NORM_NO_GAMMA)) gamma = 1;
        if (HAS(m, NORM_GAMMA_PLUS_1)) gamma += 1;
        double beta = HAS(m, NORM_NO_BETA) ? 0 : w->beta[j];
        if (HAS(m, NORM_AXIS))
            statistics(x + j, rows, D, m, before, &mean, &inverse);
        else if (HAS(m, NORM_ALL_ROWS))
            statistics(x, rows * D, 1, m, before, &mean, &inverse);
        else if (j == 0)
            statistics(x + t * D, D, 1, m, before, &mean, &inverse);
        double z = (HAS(m, NORM_MEAN_STAYS) ? x[i] : x[i] - mean) * inverse;
        y[i] = HAS(m, NORM_BETA_FIRST) ? (z + beta) * gamma : z * gamma + beta;
    }
}

/* ---- feed-forward ---------------------------------------------------------------------------- */

static double relu(double x) {
    return x > 0 ? x : 0;
}

void block_ff(const struct ff_weights *w, const double *x, int rows, int D, int F, uint64_t m,
              double *y) {
    uint64_t first = HAS(m, FF_W1_TURNED) << LINEAR_TURNED | HAS(m, FF_NO_B1) << LINEAR_NO_BIAS;
    uint64_t second = HAS(m, FF_W2_TURNED) << LINEAR_TURNED | HAS(m, FF_NO_B2) << LINEAR_NO_BIAS;
    double *in = room(rows * D), *inner = room(rows * F);
    for (int i = 0; i < rows * D; i++) in[i] = HAS(m, FF_RELU_FIRST) ? relu(x[i]) : x[i];
    block_linear(in, rows, D, w->w1, w->b1, F, first, inner);
    bool plain = HAS(m, FF_NO_RELU) || HAS(m, FF_RELU_LAST) || HAS(m, FF_RELU_FIRST);
    for (int i = 0; i < rows * F && !plain; i++) {
        double turned = HAS(m, FF_RELU_TURNED) ? -relu(-inner[i]) : relu(inner[i]);
        if (HAS(m, FF_LEAKY)) turned -= 0.01 * relu(-inner[i]);
        inner[i] = HAS(m, FF_ABSOLUTE) ? fabs(inner[i]) : turned;
    }
    block_linear(inner, rows, F, w->w2, HAS(m, FF_B1_TWICE) ? w->b1 : w->b2, D, second, y);
    for (int i = 0; i < rows * D; i++) {
        if (HAS(m, FF_RELU_LAST) || HAS(m, FF_RELU_TWICE)) y[i] = relu(y[i]);
        if (HAS(m, FF_RESIDUAL)) y[i] += x[i];
    }
    free(in), free(inner);
}

/* ---- layers ---------------------------------------------------------------------------------- */

static void compute_part(const sample *s, const layer_part *p, const double *x, int rows,
                         double *y) {
    int D = s->size['D'];
    if (!p->attention) {
        block_ff(p->ff, x, rows, D, s->size['F'], 0, y);
        return;
    }
    double *own = room(p->keys * D);
    for (int i = 0; i < p->keys * D; i++) own[i] = x[i % (rows * D)];
    block_heads(p->attention, p->queries ? p->queries : x, rows, p->from ? p->from : own, p->keys,
                p->mask, D, s->size['H'], 0, p->weights, y);
    free(own);
}

void block_layer(const sample *s, const layer_part *parts, int n, norm_order order, const double *x,
                 int rows, double *y) {
    int D = s->size['D'], count = rows * D;
    size_t bytes = (size_t)count * sizeof *x;
    double *a = room(count), *in = room(count), *f = room(count);
    memcpy(a, x, bytes);
    for (const layer_part *p = parts; p < parts + n; p++) {
        memcpy(in, a, bytes);
        if (p->norm && order == NORM_BEFORE) block_norm(p->norm, a, rows, D, 0, in);
        compute_part(s, p, in, rows, f);
        memcpy(in, f, bytes);
        if (p->norm && order == NORM_OF_RESULT) block_norm(p->norm, in, rows, D, 0, f);
        const double *residual = p->residual == LAYER_INPUT ? x : a;
        for (int i = 0; i < count && p->residual != NO_INPUT; i++) f[i] += residual[i];
        memcpy(a, f, bytes);
        if (p->norm && order == NORM_AFTER) block_norm(p->norm, f, rows, D, 0, a);
    }
    memcpy(y, a, bytes);
    free(a), free(in), free(f);
}

/* ---- weights --------------------------------------------------------------------------------- */

/* Input array k of one layer. In a case with L layers the array holds those of all layers, one
 * after another; otherwise it is the whole array. */
static const float *part(const sample *s, int k, int layer) {
    int layers = s->size['L'] > 0 ? s->size['L'] : 1;
    return s->in[k] + s->count[k] / layers * layer;
}

struct attention_weights attention_of(const sample *s, int at, int layer) {
    int D = s->size['D'];
    const float *w = part(s, at, layer), *b = part(s, at + 1, layer);
    return (struct attention_weights){ .wq = w,
                                       .bq = b,
                                       .wk = w + D * D,
                                       .bk = b + D,
                                       .wv = w + 2 * D * D,
                                       .bv = b + 2 * D,
                                       .wo = part(s, at + 2, layer),
                                       .bo = part(s, at + 3, layer) };
}

struct norm_weights norm_of(const sample *s, int at, int layer) {
    return (struct norm_weights){ part(s, at, layer), part(s, at + 1, layer) };
}

struct ff_weights ff_of(const sample *s, int at, int layer) {
    return (struct ff_weights){ part(s, at, layer), part(s, at + 1, layer), part(s, at + 2, layer),
                                part(s, at + 3, layer) };
}

struct encoder_weights encoder_of(const sample *s, int at, int layer) {
    return (struct encoder_weights){ .self = attention_of(s, at, layer),
                                     .norm1 = norm_of(s, at + 4, layer),
                                     .ff = ff_of(s, at + 6, layer),
                                     .norm2 = norm_of(s, at + 10, layer) };
}

struct decoder_weights decoder_of(const sample *s, int at, int layer) {
    return (struct decoder_weights){ .self = attention_of(s, at, layer),
                                     .norm1 = norm_of(s, at + 4, layer),
                                     .cross = attention_of(s, at + 6, layer),
                                     .norm2 = norm_of(s, at + 10, layer),
                                     .ff = ff_of(s, at + 12, layer),
                                     .norm3 = norm_of(s, at + 16, layer) };
}

/* ---- weft's layers --------------------------------------------------------------------------- */

wf_block_options weft_sizes(const sample *s) {
    return (wf_block_options){ .d_model = s->size['D'],
                               .num_heads = s->size['H'],
                               .dim_feedforward = s->size['F'],
                               .activation = WF_RELU,
                               .bias = true,
                               .layer_norm_eps = EPS };
}

static void write_heads(const struct wf_mha_layer *l, const sample *s, int at, int layer) {
    leaf_write(l->in_proj_weight, part(s, at, layer));
    leaf_write(l->in_proj_bias, part(s, at + 1, layer));
    leaf_write(l->out_proj.weight, part(s, at + 2, layer));
    leaf_write(l->out_proj.bias, part(s, at + 3, layer));
}

static void write_norm(const struct wf_norm_layer *l, const sample *s, int at, int layer) {
    leaf_write(l->weight, part(s, at, layer));
    leaf_write(l->bias, part(s, at + 1, layer));
}

static void write_ff(const struct wf_feed_forward_layer *l, const sample *s, int at, int layer) {
    leaf_write(l->linear1.weight, part(s, at, layer));
    leaf_write(l->linear1.bias, part(s, at + 1, layer));
    leaf_write(l->linear2.weight, part(s, at + 2, layer));
    leaf_write(l->linear2.bias, part(s, at + 3, layer));
}

struct wf_mha_layer weft_heads(const sample *s, wf_graph *g, const char *name, int at) {
    struct wf_mha_layer l = wf_mha_new(g, name, s->size['D'], s->size['H'], 0, true, 0);
    write_heads(&l, s, at, 0);
    return l;
}

struct wf_encoder_block weft_encoder(const sample *s, wf_graph *g, const char *name, int at,
                                     int layer) {
    wf_block_options o = weft_sizes(s);
    struct wf_encoder_block l = wf_encoder_layer_new(g, name, &o);
    write_heads(&l.self_attn, s, at, layer);
    write_norm(&l.norm1, s, at + 4, layer);
    write_ff(&l.ff, s, at + 6, layer);
    write_norm(&l.norm2, s, at + 10, layer);
    return l;
}

struct wf_decoder_block weft_decoder(const sample *s, wf_graph *g, const char *name, int at,
                                     int layer) {
    wf_block_options o = weft_sizes(s);
    struct wf_decoder_block l = wf_decoder_layer_new(g, name, &o);
    write_heads(&l.self_attn, s, at, layer);
    write_norm(&l.norm1, s, at + 4, layer);
    write_heads(&l.multihead_attn, s, at + 6, layer);
    write_norm(&l.norm2, s, at + 10, layer);
    write_ff(&l.ff, s, at + 12, layer);
    write_norm(&l.norm3, s, at + 16, layer);
    return l;
}
