/* tests/nn/test_cached.c - decoders, encoders and masks built from the layers of nn: a cached
 * decoder gives step by step the logits of the whole sequence, and a sentence has the same logits
 * alone and in a batch. Both hold to the bit, in every combination of the options in `build`.
 *
 * A plan with a state may also contain an encoder, as here: it is computed anew in every step, at
 * positions 0..S-1 whatever the position of the decoder is. */
#include "core/lend.h"
#include "nn/layers_internal.h"
#include "nn/nn.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(cached)

enum { B = 3, T = 6, S = 5, D = 8, V = 11, LAYERS = 2 };

typedef struct build {
    wf_positions positions;
    bool cross;  /* cross-attention to an encoder, with a key mask */
    bool padded; /* self-attention with a key mask of the target lengths */
    /* self-attention to the last three positions: by a mask, or, if rotary, by an option */
    bool windowed;
    bool pre_norm;
    bool relative; /* as T5: a bias for each distance, heads of an own width, unscaled scores */
    int order;     /* the order in which the parts are recorded */
} build;

typedef struct net {
    wf_graph *g;
    build how;
    wf_tensor *src, *src_length, *tgt, *tgt_length, *x, *memory, *cross_mask, *rotary, *logits;
    struct wf_embedding_layer table;
} net;

static const int32_t src_ids[B][S] = { { 1, 2, 3, 4, 5 }, { 6, 7, 8, 0, 0 }, { 9, 1, 5, 2, 0 } };
static const int32_t src_lengths[B] = { 5, 3, 4 }, tgt_lengths[B] = { 6, 4, 2 };
static const int32_t tgt_ids[B][T] = { { 1, 3, 5, 7, 9, 2 },
                                       { 10, 8, 6, 4, 2, 1 },
                                       { 4, 4, 7, 1, 0, 9 } };

/* ---- recording ------------------------------------------------------------------------------- */

/* Nets with rotary positions also have the other parts of Llama: RMS norm, grouped queries, a gated
 * feed-forward. */
static bool is_modern(const net *m) {
    return m->how.positions == WF_POSITIONS_ROTARY;
}

static wf_block_options options_of(const net *m) {
    if (m->how.relative)
        return (wf_block_options){ .d_model = D,
                                   .num_heads = 2,
                                   .head_dim = 3,
                                   .dim_feedforward = 12,
                                   .activation = WF_GELU_TANH,
                                   .gated = true,
                                   .norm = WF_RMS_NORM,
                                   .norm_first = m->how.pre_norm,
                                   .attention_scale = 1,
                                   .layer_norm_eps = 1e-6 };
    if (is_modern(m))
        return (wf_block_options){ .d_model = D,
                                   .num_heads = 4,
                                   .num_kv_heads = 2,
                                   .dim_feedforward = 12,
                                   .activation = WF_SILU,
                                   .gated = true,
                                   .norm = WF_RMS_NORM,
                                   .norm_first = m->how.pre_norm,
                                   .layer_norm_eps = 1e-5 };
    return (wf_block_options){ .d_model = D,
                               .num_heads = 2,
                               .dim_feedforward = 12,
                               .bias = true,
                               .norm_first = m->how.pre_norm,
                               .layer_norm_eps = 1e-5 };
}

static void record_source_mask(net *m) {
    m->cross_mask = wf_key_mask(m->src_length, m->src, 1);
}

static void record_encoder(net *m) {
    wf_block_options o = options_of(m);
    struct wf_position_layer at = wf_position_new(m->g, "src_position", m->how.positions, S, D);
    struct wf_encoder_block layer = wf_encoder_layer_new(m->g, "encoder", &o);
    wf_tensor *ids = wf_arange(m->src, 1), *x = wf_embed(&m->table, m->src);
    wf_tensor *mask = m->cross_mask ? m->cross_mask : wf_key_mask(m->src_length, m->src, 1);
    x = wf_add_positions(&at, x, ids);
    wf_tensor *rotary = wf_rotary_positions(&at, x, ids, 2);
    if (m->how.relative) {
        struct wf_relative_layer far = wf_relative_new(m->g, "src_relative", 2, 8, 4, true);
        mask = wf_relative_mask(wf_relative_bias(&far, ids, ids), mask);
    }
    m->memory = wf_encoder_layer(
        &layer, x,
        &(wf_mha_options){ .mask = mask, .additive = m->how.relative, .rotary = rotary });
}

static void record_target(net *m) {
    struct wf_position_layer at = wf_position_new(m->g, "tgt_position", m->how.positions, T, D);
    m->x = wf_add_positions(&at, wf_embed(&m->table, m->tgt), NULL);
    m->rotary = wf_rotary_positions(&at, m->x, NULL, 2);
}

/* The mask of self-attention: [B,1,1,K] of padding, [T,K] of the window, or their product. `keys`
 * is a cache of which only the shape is read, so it holds no values. */
static wf_tensor *self_mask(const net *m) {
    wf_tensor *keys = wf_cache(m->x, 1), *mask = NULL;
    if (m->how.padded) mask = wf_key_mask(m->tgt_length, keys, 1);
    if (!m->how.windowed || is_modern(m)) return mask;
    wf_tensor *i = wf_cast(wf_unsqueeze(wf_position_ids(m->tgt, 1), WF_AXIS(1)), wf_real(m->g));
    wf_tensor *j = wf_cast(wf_arange(keys, 1), wf_real(m->g));
    wf_tensor *near = wf_less(wf_sub(i, j), wf_constant(m->g, 3)); /* [T, K] */
    return mask ? wf_mul(mask, near) : near;
}

/* An additive mask: the bias of each distance, and -inf for masked keys. */
static wf_tensor *relative_mask(const net *m) {
    struct wf_relative_layer far = wf_relative_new(m->g, "tgt_relative", 2, 4, 5, false);
    wf_tensor *keys = wf_arange(wf_cache(m->x, 1), 1);
    return wf_relative_mask(wf_relative_bias(&far, wf_position_ids(m->x, 1), keys), self_mask(m));
}

static void record_decoder(net *m) {
    wf_block_options o = options_of(m);
    wf_mha_options self = { .mask = m->how.relative ? relative_mask(m) : self_mask(m),
                            .additive = m->how.relative,
                            .causal = true,
                            .cache = true,
                            .rotary = m->rotary };
    if (m->how.windowed && is_modern(m)) self.window = 3;
    wf_tensor *x = m->x;
    for (int i = 0; i < LAYERS; i++) {
        char name[] = { 'd', (char)('0' + i), '\0' };
        if (!m->how.cross) {
            struct wf_encoder_block layer = wf_encoder_layer_new(m->g, name, &o);
            x = wf_encoder_layer(&layer, x, &self);
            continue;
        }
        struct wf_decoder_block layer = wf_decoder_layer_new(m->g, name, &o);
        wf_tensor *k, *v, *mask = m->cross_mask;
        if (!mask) mask = wf_key_mask(m->src_length, m->memory, 1);
        wf_mha_keys_values(&layer.multihead_attn, m->memory, &k, &v);
        x = wf_decoder_layer(&layer, x, k, v, &self, &(wf_mha_options){ .mask = mask });
    }
    m->logits = wf_matmul(x, wf_transpose(m->table.weight, 0, 1)); /* [B,T,V] */
}

static void open_net(net *m, const build *how) {
    *m = (net){ .g = new_graph(WF_F32), .how = *how };
    int64_t b = wf_extent(m->g, "B", B), t = wf_extent(m->g, "T", T), s = wf_extent(m->g, "S", S);
    wf_extent(m->g, "P", T);
    m->src = wf_input(m->g, "src", WF_I32, SHAPE(b, s));
    m->src_length = wf_input(m->g, "src_length", WF_I32, SHAPE(b));
    m->tgt = wf_input(m->g, "tgt", WF_I32, SHAPE(b, t));
    m->tgt_length = wf_input(m->g, "tgt_length", WF_I32, SHAPE(b));
    m->table = wf_embedding_new(m->g, "table", V, D, false);
    if (how->cross && how->order == 0) record_source_mask(m);
    if (how->order == 1) record_target(m);
    if (how->cross) record_encoder(m);
    if (how->cross && how->order == 1) record_source_mask(m);
    if (how->order != 1) record_target(m);
    record_decoder(m);
    ck_assert_msg(wf_ok(m->g), "%s", wf_error(m->g));
}

/* ---- running --------------------------------------------------------------------------------- */

static wf_plan *plan_of(net *m, bool with_state) {
    wf_tensor *feed[] = { m->tgt, m->tgt_length, m->src, m->src_length };
    wf_plan *p = wf_plan_new(m->g, &(wf_plan_options){ .fetch = &m->logits,
                                                       .n_fetch = 1,
                                                       .feed = feed,
                                                       .n_feed = 4,
                                                       .with_state = with_state });
    ck_assert_msg(wf_plan_ok(p), "%s", wf_plan_error(p));
    return p;
}

/* Feeds tokens [from, from + n) of `rows` sentences from `row` on. The source of a single sentence
 * is not padded. */
static void feed_tokens(net *m, wf_plan *p, int row, int rows, int from, int n) {
    int32_t tgt[B * T], src[B * S];
    int width = rows == 1 ? src_lengths[row] : S;
    for (int b = 0; b < rows; b++) {
        for (int t = 0; t < n; t++) tgt[b * n + t] = tgt_ids[row + b][from + t];
        for (int s = 0; s < width; s++) src[b * width + s] = src_ids[row + b][s];
    }
    ck_assert(wf_bind(p, "B", rows) && wf_bind(p, "T", n));
    if (m->how.cross) ck_assert(wf_bind(p, "S", width));
    ck_assert_msg(
        wf_feed(p, m->tgt, tgt, wf_bound_bytes(p, m->tgt)) &&
            wf_feed(p, m->tgt_length, tgt_lengths + row, wf_bound_bytes(p, m->tgt_length)) &&
            wf_feed(p, m->src, src, wf_bound_bytes(p, m->src)) &&
            wf_feed(p, m->src_length, src_lengths + row, wf_bound_bytes(p, m->src_length)),
        "%s", wf_plan_error(p));
}

static void whole(net *m, int row, int rows, float *out) {
    wf_plan *p = plan_of(m, false);
    feed_tokens(m, p, row, rows, 0, T);
    ck_assert_msg(wf_run(p) && wf_fetch(p, m->logits, out, wf_bound_bytes(p, m->logits)), "%s",
                  wf_plan_error(p));
    wf_plan_free(p);
}

static void cached(net *m, int row, int rows, const int *steps, float *out) {
    float part[B * T * V];
    wf_plan *p = plan_of(m, true);
    feed_tokens(m, p, row, rows, 0, steps[0]);
    wf_state *s = wf_state_new(p);
    ck_assert_msg(s != NULL, "%s", wf_plan_error(p));
    for (int i = 0, from = 0; from < T; from += steps[i++]) {
        int n = steps[i];
        ck_assert(wf_bind(p, "P", from));
        feed_tokens(m, p, row, rows, from, n);
        ck_assert_msg(wf_run_state(p, s) &&
                          wf_fetch(p, m->logits, part, wf_bound_bytes(p, m->logits)),
                      "%s", wf_plan_error(p));
        for (int b = 0; b < rows; b++)
            memcpy(out + (b * T + from) * V, part + b * n * V, (size_t)(n * V) * sizeof *out);
    }
    wf_state_free(s), wf_plan_free(p);
}

static double apart(const float *a, const float *b, int n) {
    double most = 0;
    for (int i = 0; i < n; i++) most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return memcmp(a, b, (size_t)n * sizeof *a) ? fmax(most, 1e-45) : 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static const int steps[][T] = { { 1, 1, 1, 1, 1, 1 }, { 4, 1, 1 }, { 1, 3, 2 }, { 6 } };

static build build_at(int i) {
    static const wf_positions kinds[] = { WF_POSITIONS_NONE, WF_POSITIONS_SINUSOIDAL,
                                          WF_POSITIONS_LEARNED, WF_POSITIONS_ROTARY,
                                          WF_POSITIONS_NONE };
    return (build){ .positions = kinds[i % 5],
                    .relative = i % 5 == 4,
                    .cross = i / 5 & 1,
                    .padded = i / 10 & 1,
                    .windowed = i / 20 & 1,
                    .pre_norm = i / 40 & 1,
                    .order = i / 80 };
}
enum { BUILDS = 5 * 16 * 3 };

TEST_ROWS(steps_are_the_whole_and_sentences_are_their_own, BUILDS) {
    build how = build_at(_i);
    net m;
    float full[B * T * V], got[B * T * V];
    open_net(&m, &how);
    whole(&m, 0, B, full);
    for (int i = 0; i < COUNT_OF(steps); i++) {
        cached(&m, 0, B, steps[i], got);
        ck_assert_msg(apart(full, got, B * T * V) == 0, "steps %d: %g apart", i,
                      apart(full, got, B * T * V));
    }
    for (int b = 0; b < B; b++) {
        whole(&m, b, 1, got);
        ck_assert_msg(apart(full + b * T * V, got, T * V) == 0, "sentence %d alone: %g apart", b,
                      apart(full + b * T * V, got, T * V));
        cached(&m, b, 1, steps[b], got);
        ck_assert_msg(apart(full + b * T * V, got, T * V) == 0, "%d alone and cached: %g apart", b,
                      apart(full + b * T * V, got, T * V));
    }
    end_graph(m.g);
}

/* Attention with a window, and with more keys than a block of the kernel: queries [p, p + n) with
 * the keys so far have the bits that they have in the whole sequence. */
TEST(windows_are_the_same_at_any_position) {
    enum { L = 400, W = 8, H = 4, G = 2 };
    static const int at[][2] = { { 0, 1 },   { 63, 70 },   { 128, 1 },
                                 { 227, 2 }, { 250, 150 }, { 399, 1 } };
    static const int64_t windows[] = { 1, 7, 100, 128, 200 };
    for (int w = 0; w < COUNT_OF(windows); w++) {
        wf_graph *g = new_graph(WF_F32);
        wf_tensor *q = wf_param(g, "q", SHAPE(1, H, L, W), wf_init_normal(1));
        wf_tensor *k = wf_param(g, "k", SHAPE(1, G, L, W), wf_init_normal(1));
        wf_tensor *v = wf_param(g, "v", SHAPE(1, G, L, W), wf_init_normal(1));
        wf_attention_options o = { .causal = true, .window = windows[w] };
        wf_tensor *y = wf_attention(q, k, v, NULL, &o), *fetch[2 * COUNT_OF(at)];
        for (int i = 0; i < COUNT_OF(at); i++) {
            int64_t from = at[i][0], to = from + at[i][1];
            fetch[2 * i] = wf_scale(wf_slice(y, 2, from, to), 1);
            fetch[2 * i + 1] = wf_attention(wf_slice(q, 2, from, to), wf_slice(k, 2, 0, to),
                                            wf_slice(v, 2, 0, to), NULL, &o);
        }
        wf_plan *p =
            wf_plan_new(g, &(wf_plan_options){ .fetch = fetch, .n_fetch = COUNT_OF(fetch) });
        ck_assert_msg(wf_run(p), "%s", wf_plan_error(p));
        for (int i = 0; i < COUNT_OF(at); i++) {
            static float whole_rows[H * L * W], step_rows[H * L * W];
            size_t bytes = wf_bound_bytes(p, fetch[2 * i]);
            ck_assert(wf_fetch(p, fetch[2 * i], whole_rows, bytes) &&
                      wf_fetch(p, fetch[2 * i + 1], step_rows, bytes));
            ck_assert_msg(memcmp(whole_rows, step_rows, bytes) == 0, "window %d at %d",
                          (int)windows[w], at[i][0]);
        }
        wf_plan_free(p);
        end_graph(g);
    }
}

/* Rows of a batch that share keys, values and mask (hypotheses of a sentence) get the bits of
 * attention to copies of them. The numbers of keys reach each variant of the kernel; a row has one
 * or two queries. */
TEST_ROWS(hypotheses_share_keys, 3 * 2 * 2 * 2 * 2) {
    enum { ROWS = 9, MOST_KEYS = 150, H = 4, G = 2, WIDEST = 32 };
    enum { MEMORY = 3, MOST = MEMORY * H * MOST_KEYS * WIDEST };
    static _Alignas(64) float memory[3][MOST], copies[3][ROWS * H * MOST_KEYS * WIDEST];
    static float query[ROWS * H * 2 * WIDEST], y[2][ROWS * H * 2 * WIDEST];
    static const int32_t row_index[ROWS] = { 0, 0, 0, 0, 0, 2, 1, 1, 0 };
    int64_t keys = (int64_t[]){ 20, 50, 150 }[_i % 3], width = _i / 3 % 2 ? WIDEST : 5;
    int64_t queries = 1 + _i / 6 % 2, groups = _i / 12 % 2 ? G : H;
    bool additive = _i / 24 % 2;
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *q = wf_input(g, "q", WF_F32, SHAPE(ROWS, H, queries, width));
    wf_tensor *feed[] = { wf_input(g, "k", WF_F32, SHAPE(ROWS, groups, keys, width)),
                          wf_input(g, "v", WF_F32, SHAPE(ROWS, groups, keys, width)),
                          wf_input(g, "mask", WF_F32, SHAPE(ROWS, 1, 1, keys)), q };
    wf_attention_options o = { .additive = additive };
    wf_tensor *out = wf_attention(q, feed[0], feed[1], feed[2], &o);
    wf_plan *p = wf_plan_new(
        g, &(wf_plan_options){ .feed = feed, .n_feed = 4, .fetch = &out, .n_fetch = 1 });
    ck_assert_msg(wf_plan_ok(p), "%s", wf_plan_error(p));
    for (int i = 0; i < COUNT_OF(query); i++) query[i] = sinf((float)i);
    for (int i = 0; i < MOST; i++)
        for (int x = 0; x < 3; x++)
            memory[x][i] = x < 2 ? cosf((float)(i + x)) : (float)(i % keys < keys - i / keys);
    ck_assert(wf_feed(p, q, query, wf_bound_bytes(p, q)));
    for (int shared = 0; shared < 2; shared++) {
        for (int x = 0; x < 3; x++) {
            size_t bytes = wf_bound_bytes(p, feed[x]) / ROWS;
            for (size_t row = 0; row < ROWS; row++)
                memcpy((char *)copies[x] + row * bytes,
                       (char *)memory[x] + (size_t)row_index[row] * bytes, bytes);
            bool ok = shared ? wf_feed_lent(p, feed[x], memory[x], ROWS * bytes, row_index)
                             : wf_feed(p, feed[x], copies[x], ROWS * bytes);
            ck_assert_msg(ok, "%s", wf_plan_error(p));
        }
        ck_assert_msg(wf_run(p), "%s", wf_plan_error(p));
        ck_assert(wf_fetch(p, out, y[shared], wf_bound_bytes(p, out)));
    }
    ck_assert(memcmp(y[0], y[1], wf_bound_bytes(p, out)) == 0);
    wf_plan_free(p);
    end_graph(g);
}

/* wf_arange counts from 0, and wf_position_ids from the position P, with sizes bound later. */
TEST(indices_count_from_zero_and_positions_from_p) {
    wf_graph *g = new_graph(WF_F32);
    int64_t t = wf_extent(g, "T", 4);
    wf_extent(g, "P", 9);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(1, t)), *keys = wf_cache(x, 1);
    wf_tensor *fetch[] = { wf_arange(x, 1), wf_position_ids(x, 1), wf_arange(keys, 1), keys };
    wf_plan *p = wf_plan_new(
        g, &(wf_plan_options){
               .fetch = fetch, .n_fetch = 4, .feed = &x, .n_feed = 1, .with_state = true });
    int32_t index[2], position[2], key[5];
    ck_assert_msg(wf_bind(p, "T", 3) && wf_feed(p, x, (float[]){ 1, 2, 3 }, 3 * sizeof(float)),
                  "%s", wf_plan_error(p));
    wf_state *s = wf_state_new(p);
    ck_assert(wf_run_state(p, s));
    ck_assert(wf_bind(p, "P", 3) && wf_bind(p, "T", 2) &&
              wf_feed(p, x, (float[]){ 4, 5 }, 2 * sizeof(float)));
    ck_assert(wf_run_state(p, s) && wf_fetch(p, fetch[0], index, sizeof index) &&
              wf_fetch(p, fetch[1], position, sizeof position) &&
              wf_fetch(p, fetch[2], key, sizeof key));
    for (int i = 0; i < 2; i++) ck_assert(index[i] == i && position[i] == 3 + i);
    for (int i = 0; i < 5; i++) ck_assert_int_eq(key[i], i);
    wf_state_free(s), wf_plan_free(p);
    end_graph(g);
}
