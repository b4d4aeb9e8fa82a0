/* tests/nn/test_nn.c - layers, initial values, and models that programs build from layers alone.
 *
 * Not here: optimizers (test_optim.c), values against PyTorch (test_nn_torch.c). */
#include <stdio.h>

#include "nn/nn.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(nn)

#define RUN(p) ck_assert_msg(wf_run(p), "%s", wf_plan_error(p))

static wf_tensor *noise(wf_graph *g, const char *name, int ndim, const int64_t *shape) {
    return wf_param(g, name, ndim, shape, wf_init_normal(1));
}

static void assert_tensor(const wf_tensor *t, int ndim, const int64_t *shape) {
    ck_assert_msg(wf_ok(t->graph), "%s", wf_error(t->graph));
    ck_assert_int_eq(t->ndim, ndim);
    for (int i = 0; i < ndim; i++) ck_assert_int_eq(t->shape[i], shape[i]);
}

static int64_t parameter_count(const wf_graph *g) {
    wf_tensor *params[512];
    int64_t sum = 0;
    int n = wf_parameters(g, NULL, params, 512);
    ck_assert_int_le(n, 512);
    for (int i = 0; i < n; i++) sum += wf_count(params[i]);
    return sum;
}

/* ---- initial values -------------------------------------------------------------------------- */

/* PE[p, 2i] = sin(p / 10000^(2i/D)), PE[p, 2i+1] = cos(same). */
TEST_ROWS(sinusoid_values, 2) {
    wf_graph *g = new_graph(_i ? WF_F64 : WF_F32);
    wf_tensor *t = wf_buffer(g, "t", wf_real(g), SHAPE(50, 4), wf_init_sinusoid(WF_SINUSOID_PAIRS));
    double *pe = leaf_values(t);
    const double want[2][4] = { { 0, 1, 0, 1 }, { 0.841471, 0.540302, 0.010000, 0.999950 } };
    for (int i = 0; i < 8; i++) ck_assert_double_eq_tol(pe[i], want[i / 4][i % 4], 5e-7);
    for (int i = 0; i < 200; i++) {
        double angle = i / 4 / pow(10000, 2 * (i % 4 / 2) / 4.0);
        ck_assert_double_eq_tol(pe[i], i % 2 ? cos(angle) : sin(angle), _i ? 1e-15 : 1e-7);
        ck_assert(fabs(pe[i]) <= 1);
    }
    free(pe);
    end_graph(g);
}

/* Sinusoids equal those of Hugging Face's transformers: of MarianMT, whose width may be odd, and of
 * fairseq and M2M100, whose first position is 2; and those of tensor2tensor. A table and the op
 * give the same bits. */
TEST_ROWS(sinusoid_forms, 8) {
    wf_graph *g = new_graph(_i % 2 ? WF_F64 : WF_F32);
    bool exact = _i >= 4;
    int first = _i == 4 || _i == 5 ? 2 : 0;
    int D = _i < 2 ? 8 : _i < 4 ? 7 : 6, h = (D + 1) / 2;
    static const wf_sinusoid_form forms[] = { WF_SINUSOID_HALVES, WF_SINUSOID_HALVES,
                                              WF_SINUSOID_FAIRSEQ, WF_SINUSOID_TENSOR2TENSOR };
    wf_sinusoid_form form = forms[_i / 2];
    wf_tensor *t = wf_buffer(g, "t", wf_real(g), SHAPE(50, D), wf_init_sinusoid(form));
    wf_tensor *like = wf_shape(g, SHAPE(50));
    wf_tensor *difference =
        wf_sum(wf_square(wf_sub(t, wf_sinusoid(wf_arange(like, 0), D, form))), WF_ALL_AXES, false);
    double *pe = leaf_values(t);
    for (int i = 0; i < 50 * D; i++) {
        int p = i / D, column = i % D, wave = column < h ? column : column - h;
        double angle = exact ? (p + first) * exp(-wave * log(10000) / (h - 1))
                             : p / pow(10000, 2.0 * wave / D);
        ck_assert_double_eq_tol(pe[i], column < h ? sin(angle) : cos(angle), _i % 2 ? 1e-14 : 1e-7);
    }
    free(pe);
    ck_assert_double_eq(evaluate_scalar(difference), 0);
    end_graph(g);
}

static void spread(const wf_tensor *t, double *largest, double *std) {
    double *data = leaf_values(t), sum = 0;
    int64_t n = wf_count(t);
    *largest = 0;
    for (int64_t i = 0; i < n; i++)
        *largest = fmax(*largest, fabs(data[i])), sum += data[i] * data[i];
    *std = sqrt(sum / (double)n);
    free(data);
}

TEST(initial_values) {
    wf_graph *g = new_graph(WF_F32);
    struct wf_linear_layer linear = wf_linear_new(g, "linear", 100, 300, true);
    struct wf_mha_layer mha = wf_mha_new(g, "mha", 64, 4, 0, true, 0);
    struct wf_embedding_layer scaled = wf_embedding_new(g, "scaled", 500, 64, true);
    struct wf_embedding_layer plain = wf_embedding_new(g, "plain", 500, 64, false);
    struct wf_norm_layer norm = wf_norm_new(g, "norm", WF_LAYER_NORM, 10, 1e-5, true);
    wf_tensor *normal = wf_param(g, "normal", SHAPE(200, 200), wf_init_xavier_normal(200, 200));
    wf_tensor *kaiming = wf_param(g, "kaiming", SHAPE(200, 200), wf_init_kaiming_uniform(200));
    const struct {
        wf_tensor *t;
        double largest, std;
    } rows[] = {
        { linear.weight, sqrt(6.0 / 400), sqrt(2.0 / 400) }, /* uniform: std is bound / sqrt 3 */
        { mha.in_proj_weight, sqrt(6.0 / 128), sqrt(2.0 / 128) }, /* fans of one projection */
        { mha.out_proj.weight, sqrt(6.0 / 128), sqrt(2.0 / 128) },
        { kaiming, sqrt(6.0 / 200), sqrt(2.0 / 200) },
        { scaled.weight, INFINITY, 1.0 / 8 },
        { plain.weight, INFINITY, 1 },
        { normal, INFINITY, sqrt(2.0 / 400) },
        { linear.bias, 0, 0 },
        { mha.in_proj_bias, 0, 0 },
        { mha.out_proj.bias, 0, 0 },
        { norm.bias, 0, 0 },
        { norm.weight, 1, 1 },
    };
    for (int i = 0; i < COUNT_OF(rows); i++) {
        double largest, std;
        spread(rows[i].t, &largest, &std);
        ck_assert_double_le(largest, rows[i].largest);
        ck_assert_double_le(fabs(std - rows[i].std), 0.02 * rows[i].std);
        if (rows[i].largest < 1 && rows[i].largest > 0)
            ck_assert_double_ge(largest, 0.99 * rows[i].largest);
    }
    ck_assert(scaled.scale == 8 && plain.scale == 1);
    end_graph(g);
}

/* ---- layers ---------------------------------------------------------------------------------- */

TEST(names_follow_modules) {
    wf_graph *g = new_graph(WF_F32);
    wf_block_options o = {
        .d_model = 8, .num_heads = 2, .dim_feedforward = 4, .bias = true, .layer_norm_eps = 1e-5
    };
    const char *outer = wf_scope_push(g, "decoder.layers");
    struct wf_decoder_block layer = wf_decoder_layer_new(g, "0", &o);
    wf_scope(g, outer);
    static const char *const names[] = { "self_attn.in_proj_weight",
                                         "self_attn.in_proj_bias",
                                         "self_attn.out_proj.weight",
                                         "self_attn.out_proj.bias",
                                         "multihead_attn.in_proj_weight",
                                         "multihead_attn.in_proj_bias",
                                         "multihead_attn.out_proj.weight",
                                         "multihead_attn.out_proj.bias",
                                         "linear1.weight",
                                         "linear1.bias",
                                         "linear2.weight",
                                         "linear2.bias",
                                         "norm1.weight",
                                         "norm1.bias",
                                         "norm2.weight",
                                         "norm2.bias",
                                         "norm3.weight",
                                         "norm3.bias" };
    for (int i = 0; i < COUNT_OF(names); i++) {
        char full[96];
        snprintf(full, sizeof full, "decoder.layers.0.%s", names[i]);
        ck_assert_msg(wf_find(g, full) != NULL, "%s", full);
    }
    ck_assert_int_eq(wf_parameters(g, NULL, NULL, 0), COUNT_OF(names));
    wf_tensor *x = noise(g, "x", SHAPE(2, 3, 8)), *k, *v;
    wf_mha_keys_values(&layer.multihead_attn, x, &k, &v);
    wf_tensor *y = wf_decoder_layer(&layer, x, k, v, &(wf_mha_options){ .causal = true }, NULL);
    ck_assert_str_eq(y->name, "decoder.layers.0.norm3");
    ck_assert_str_eq(wf_neg(y)->name, ""); /* the scope is as it was */
    end_graph(g);
}

TEST(a_layer_records_under_its_own_name_and_says_so) {
    wf_graph *g = new_graph(WF_F32);
    struct wf_linear_layer l = wf_linear_new(g, "hidden", 64, 128, true);
    wf_linear(&l, noise(g, "x", SHAPE(8, 32)));
    ck_assert(!wf_ok(g));
    assert_contains(wf_error(g), "hidden: gemm: matmul");
    assert_contains(wf_error(g), "32");
    wf_tensor *y = wf_linear(&l, wf_linear(&l, NULL)); /* goes on as poison */
    ck_assert(y && !wf_ok(y->graph));
    wf_graph_free(g);
}

/* Calls a layer's function with a layer that has no parameters, or with NULL. */
static wf_tensor *use(int kind, bool null, wf_tensor *x, wf_tensor *ids) {
    static const struct wf_linear_layer linear;
    static const struct wf_norm_layer norm;
    static const struct wf_embedding_layer table;
    static const struct wf_position_layer places = { .kind = WF_POSITIONS_LEARNED };
    static const struct wf_mha_layer mha;
    static const struct wf_feed_forward_layer ff;
    static const struct wf_encoder_block encoder;
    static const struct wf_decoder_block decoder;
    wf_tensor *k, *v, *weights = NULL;
    wf_mha_options o = { .weights = &weights };
    switch (kind) {
    case 0:
        return wf_linear(null ? NULL : &linear, x);
    case 1:
        return wf_norm(null ? NULL : &norm, x);
    case 2:
        return wf_embed(null ? NULL : &table, ids);
    case 3:
        return wf_add_positions(null ? NULL : &places, x, NULL);
    case 4:
        return wf_mha(null ? NULL : &mha, x, x, &o), weights;
    case 5:
        return wf_mha_keys_values(null ? NULL : &mha, x, &k, &v), k == v ? k : NULL;
    case 6:
        return wf_mha_attend(null ? NULL : &mha, x, x, x, &o), weights;
    case 7:
        return wf_feed_forward(null ? NULL : &ff, x);
    case 8:
        return wf_encoder_layer(null ? NULL : &encoder, x, NULL);
    default:
        return wf_decoder_layer(null ? NULL : &decoder, x, x, x, NULL, NULL);
    }
}

TEST_ROWS(layers_that_are_null_or_empty_give_poison, 20) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = noise(g, "x", SHAPE(2, 3, 4)),
              *ids = ids_of(g, "ids", SHAPE(2, 3), (int32_t[6]){ 0 });
    wf_scope(g, "here");
    wf_tensor *y = use(_i / 2, _i % 2, x, ids);
    ck_assert(y && y->graph == g && !wf_ok(g));
    assert_contains(wf_error(g), "here: a");
    assert_contains(wf_error(g), "is NULL or has no parameters");
    ck_assert(use(_i / 2, _i % 2, NULL, NULL) != NULL);
    wf_graph_free(g);
}

TEST(layers_without_what_they_need_give_poison) {
    for (int i = 0; i < 3; i++) {
        wf_graph *g = new_graph(WF_F32);
        if (i == 0) wf_feed_forward_new(g, NULL);
        if (i == 1) wf_encoder_layer_new(g, "layer", NULL);
        if (i == 2) wf_decoder_layer_new(g, "layer", NULL);
        assert_contains(wf_error(g), "options");
        wf_graph_free(g);
    }
    wf_graph *g = new_graph(WF_F32);
    struct wf_mha_layer l = wf_mha_new(g, "mha", 4, 2, 0, true, 0);
    wf_mha_keys_values(&l, noise(g, "x", SHAPE(2, 3, 4)), NULL, NULL);
    struct wf_linear_layer of_none = wf_linear_new(NULL, "linear", 2, 2, true);
    ck_assert(wf_linear(&of_none, NULL) && wf_drop(NULL, 0.5, "drop") && wf_drop(NULL, 0, "drop"));
    end_graph(g);
}

TEST(shapes_in_and_out_agree) {
    wf_graph *g = new_graph(WF_F32);
    int64_t B = wf_extent(g, "B", 8), T = wf_extent(g, "T", 8), S = wf_extent(g, "S", 8);
    wf_block_options o = { .d_model = 12,
                           .num_heads = 3,
                           .dim_feedforward = 12,
                           .bias = true,
                           .layer_norm_eps = 1e-5,
                           .dropout = 0.1,
                           .attention_dropout = 0.1,
                           .activation_dropout = 0.1 };
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(B, T, 12)),
              *memory = wf_input(g, "memory", WF_F32, SHAPE(B, S, 12));
    B = x->shape[0], T = x->shape[1], S = memory->shape[1]; /* as recorded */
    for (int i = 0; i < 8; i++) {
        char name[8];
        o.norm_first = i & 1, o.activation = (wf_activation)(i >> 1);
        const char *outer = wf_scope_push(g, (snprintf(name, sizeof name, "%d", i), name));
        struct wf_encoder_block encoder = wf_encoder_layer_new(g, "encoder", &o);
        struct wf_decoder_block decoder = wf_decoder_layer_new(g, "decoder", &o);
        wf_tensor *k, *v;
        wf_mha_keys_values(&decoder.multihead_attn, memory, &k, &v);
        assert_tensor(k, SHAPE(B, 3, S, 4));
        assert_tensor(v, SHAPE(B, 3, S, 4));
        assert_tensor(wf_mha(&encoder.self_attn, x, x, NULL), SHAPE(B, T, 12));
        assert_tensor(wf_mha(&encoder.self_attn, x, memory, NULL), SHAPE(B, T, 12));
        assert_tensor(wf_feed_forward(&encoder.ff, x), SHAPE(B, T, 12));
        assert_tensor(wf_encoder_layer(&encoder, x, NULL), SHAPE(B, T, 12));
        assert_tensor(
            wf_decoder_layer(&decoder, x, k, v, &(wf_mha_options){ .causal = true }, NULL),
            SHAPE(B, T, 12));
        wf_scope(g, outer);
    }
    end_graph(g);
}

TEST(widths_that_do_not_divide_are_refused) {
    wf_graph *g = new_graph(WF_F32);
    wf_mha_new(g, "attention", 10, 3, 0, true, 0);
    assert_contains(wf_error(g), "attention: a width of 10 does not divide into 3 heads");
    wf_graph_free(g);
    g = new_graph(WF_F32);
    wf_position_new(g, "position", WF_POSITIONS_SINUSOIDAL, 8, 5);
    assert_contains(wf_error(g), "even width, not 5");
    wf_graph_free(g);
    g = new_graph(WF_F32);
    wf_activate((wf_activation)7, noise(g, "x", SHAPE(2)));
    assert_contains(wf_error(g), "activation number 7");
    wf_graph_free(g);
}

/* wf_key_mask of lengths [B] and S keys is 1 for keys within the sentence. With length 0 all keys
 * of a sentence are masked. */
TEST(key_masks) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *lengths = ids_of(g, "lengths", SHAPE(3), (int32_t[]){ 3, 1, 0 }),
              *x = noise(g, "x", SHAPE(3, 4, 8));
    wf_tensor *mask = wf_key_mask(lengths, x, 1), *weights;
    struct wf_mha_layer l = wf_mha_new(g, "mha", 8, 2, 0, true, 0);
    wf_tensor *y = wf_mha(&l, x, x, &(wf_mha_options){ .mask = mask, .weights = &weights });
    assert_tensor(mask, SHAPE(3, 1, 1, 4));
    wf_tensor *fetch[] = { mask, weights, y };
    values v[3];
    evaluate(fetch, 3, 1, false, v);
    const double open[] = { 1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0 };
    for (int i = 0; i < 12; i++) ck_assert(v[0].data[i] == open[i]);
    for (int row = 0; row < 3 * 2 * 4; row++) {
        double sum = 0;
        for (int j = 0; j < 4; j++) sum += v[1].data[row * 4 + j];
        ck_assert_double_eq_tol(sum, row < 16 ? 1 : 0, 1e-6);
    }
    for (int i = 0; i < 32; i++)
        ck_assert(v[2].data[64 + i] ==
                  0); /* all keys masked: the output's bias alone, which is 0 */
    free_values(v, 3);
    end_graph(g);
}

/* A layer without heads is refused. Using it gives poison, without a division by 0. */
TEST(attention_without_heads_is_poison) {
    const int64_t heads[][3] = { { 64, 0, 0 }, { 64, 0, 2 }, { 0, 4, 4 }, { INT64_MAX - 1, 2, 1 } };
    for (int i = 0; i < COUNT_OF(heads); i++) {
        wf_graph *g = wf_graph_new(NULL);
        wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2, 3, 64)), *weights = NULL, *k, *v;
        struct wf_mha_layer l = wf_mha_new(g, "a", heads[i][0], heads[i][1], heads[i][2], true, 0);
        wf_mha_options o = { .weights = &weights };
        ck_assert_ptr_nonnull(wf_mha(&l, x, x, &o));
        ck_assert_ptr_nonnull(weights);
        wf_mha_keys_values(&l, x, &k, &v);
        ck_assert_ptr_nonnull(wf_mha_attend(&l, x, k, v, NULL));
        ck_assert(!wf_ok(g));
        wf_graph_free(g);
    }
}

/* The attention weights that a layer returns fit its output: output = W_O concat(weights V). */
TEST(attention_returns_its_weights) {
    wf_graph *g = new_graph(WF_F64);
    struct wf_mha_layer l = wf_mha_new(g, "mha", 6, 2, 0, true, 0.3);
    wf_tensor *x = noise(g, "x", SHAPE(2, 3, 6)), *memory = noise(g, "memory", SHAPE(2, 5, 6)),
              *weights, *k, *v;
    wf_tensor *y = wf_mha(&l, x, memory, &(wf_mha_options){ .weights = &weights });
    wf_mha_keys_values(&l, memory, &k, &v);
    wf_tensor *heads = wf_einsum("bhts,bhsd->bthd", (wf_tensor *[]){ weights, v }, 2);
    wf_tensor *again = wf_linear(&l.out_proj, wf_reshape(heads, SHAPE(WF_KEEP, WF_KEEP, 6)));
    assert_tensor(weights, SHAPE(2, 2, 3, 5));
    values a[2];
    evaluate((wf_tensor *[]){ y, again }, 2, 1, false, a);
    ck_assert_double_le(distance(a[0], a[1]), 1e-14);
    free_values(a, 2);
    end_graph(g);
}

/* Rotary positions: wf_mha rotates the queries and keys of self-attention. It refuses a memory
 * other than x, whose positions are not those of the queries: its keys are rotated by the
 * caller. */
TEST(keys_of_a_memory_are_turned_beside) {
    wf_graph *g = new_graph(WF_F64);
    struct wf_mha_layer l = wf_mha_new(g, "mha", 8, 2, 0, true, 0);
    struct wf_position_layer at = wf_position_new(g, "at", WF_POSITIONS_ROTARY, 9, 8);
    wf_tensor *x = noise(g, "x", SHAPE(2, 5, 8)), *memory = noise(g, "memory", SHAPE(2, 3, 8));
    wf_mha_options o = { .rotary = wf_rotary_positions(&at, x, NULL, 4) };
    wf_tensor *k, *v;
    wf_mha_keys_values(&l, x, &k, &v);
    wf_tensor *turned = wf_rotate(k, o.rotary, false);
    wf_tensor *y[] = { wf_mha(&l, x, x, &o), wf_mha_attend(&l, x, turned, v, &o),
                       wf_mha_attend(&l, x, k, v, &o), wf_mha_attend(&l, x, turned, v, NULL) };
    values a[4];
    evaluate(y, 4, 1, false, a);
    ck_assert_double_le(distance(a[0], a[1]), 1e-14);
    ck_assert_double_gt(distance(a[0], a[2]), 1e-3);
    ck_assert_double_gt(distance(a[0], a[3]), 1e-3);
    free_values(a, 4);
    wf_mha(&l, x, memory, &o);
    assert_contains(wf_error(g), "rotary positions is that of the queries");
    wf_graph_free(g);
}

/* Attention takes a scale of 1, as in T5, and an integer mask, which acts as a real one. */
TEST(attention_takes_a_scale_and_a_mask_of_integers) {
    wf_graph *g = new_graph(WF_F64);
    struct wf_mha_layer l = wf_mha_new(g, "mha", 6, 2, 0, false, 0);
    wf_tensor *x = noise(g, "x", SHAPE(2, 3, 6)), *weights[4], *y[4];
    wf_tensor *ids = ids_of(g, "mask", SHAPE(2, 1, 1, 3), (int32_t[]){ 1, 0, 1, 1, 2, 0 });
    wf_tensor *mask = wf_not_equal(ids, wf_constant_array(g, WF_I32, 0, NULL, &(int32_t){ 0 }));
    wf_mha_options o[4] = { { .mask = mask, .scale = 1 },
                            { .mask = ids, .scale = 1 },
                            { .mask = mask, .scale = 1 / sqrt(3) },
                            { .mask = mask } };
    for (int i = 0; i < 4; i++) {
        o[i].weights = &weights[i];
        y[i] = wf_mha(&l, x, x, &o[i]);
    }
    values v[4];
    for (int outputs = 0; outputs < 2; outputs++) {
        evaluate(outputs ? y : weights, 4, 1, false, v);
        ck_assert(same_bits(v[0], v[1]));
        ck_assert_double_le(distance(v[2], v[3]), 1e-15);
        ck_assert_double_gt(distance(v[0], v[2]), 1e-3);
        free_values(v, 4);
    }
    end_graph(g);
}

/* First-order gradients of encoder and decoder layers with dropout, for every element of every
 * parameter: pre-norm or post-norm; SSRU, averages or self-attention; keys with or without a norm.
 * The width is 8, because LayerNorm of fewer numbers is too curved for finite differences. */
TEST_ROWS(gradients_of_layers, 8) {
    const wf_decoder_kind others = _i < 5 ? WF_DECODER_ATTENTION : WF_DECODER_AVERAGE;
    wf_graph *g = new_graph(WF_F64);
    char message[WF_MESSAGE];
    wf_block_options o = { .d_model = 8,
                           .num_heads = 2,
                           .dim_feedforward = 6,
                           .bias = true,
                           .layer_norm_eps = 1e-5,
                           .activation = WF_GELU,
                           .norm_first = _i % 2 || _i == 4,
                           .decoder = _i / 2 == 1 ? WF_DECODER_SSRU : others,
                           .average_width = _i == 7 ? 8 : 5,
                           .average_activation = WF_GELU,
                           .raw_keys = _i == 4,
                           .dropout = 0.2,
                           .attention_dropout = 0.2,
                           .activation_dropout = 0.2 };
    struct wf_encoder_block encoder = wf_encoder_layer_new(g, "encoder", &o);
    struct wf_decoder_block decoder = wf_decoder_layer_new(g, "decoder", &o);
    struct wf_embedding_layer table = wf_embedding_new(g, "table", 5, 8, true);
    struct wf_position_layer places = wf_position_new(g, "places", WF_POSITIONS_LEARNED, 4, 8);
    wf_tensor *lengths = ids_of(g, "lengths", SHAPE(2), (int32_t[]){ 3, 2 }), *k, *v;
    wf_tensor *src = ids_of(g, "src", SHAPE(2, 3), (int32_t[]){ 1, 2, 3, 4, 0, 1 });
    wf_tensor *x = wf_add_positions(&places, wf_embed(&table, src), NULL),
              *mask = wf_key_mask(lengths, x, 1);
    wf_tensor *memory = wf_encoder_layer(&encoder, x, &(wf_mha_options){ .mask = mask });
    wf_mha_keys_values(&decoder.multihead_attn, memory, &k, &v);
    wf_tensor *y =
        wf_decoder_layer(&decoder, wf_embed(&table, src), k, v, &(wf_mha_options){ .causal = true },
                         &(wf_mha_options){ .mask = mask });
    wf_tensor *params[64], *cotangent = wf_detach(noise(g, "cotangent", SHAPE(2, 3, 8)));
    int n = wf_parameters(g, NULL, params, 64) - 1; /* the last is the cotangent */
    double error =
        wf_check_gradients(g, wf_sum(wf_mul(y, cotangent), WF_ALL_AXES, false), params, n, message);
    tally_note(TALLY_FIRST_ORDER, error);
    ck_assert_msg(error <= 1e-8, "%.3g: %s", error, message);
    end_graph(g);
}

/* Each module's dropout drops other elements. Every plan that trains drops them, and no other
 * plan. */
TEST(dropout_has_a_site_per_module) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_param(g, "x", SHAPE(1000), wf_init_constant(1));
    wf_tensor *fetch[] = { wf_drop(x, 0.5, "dropout1"), wf_drop(x, 0.5, "dropout2"),
                           wf_drop(x, 0.5, "dropout1") };
    values v[3], still[3];
    ck_assert(wf_drop(x, 0, "none") == x);
    evaluate(fetch, 3, 1, true, v);
    evaluate(fetch, 3, 1, false, still);
    int apart = 0;
    for (int i = 0; i < 1000; i++)
        apart += v[0].data[i] != v[1].data[i], ck_assert(still[0].data[i] == 1);
    ck_assert_int_gt(apart, 400);
    ck_assert_int_lt(apart, 600);
    ck_assert(!same_bits(v[0], v[2])); /* each use its own */
    free_values(v, 3), free_values(still, 3);
    end_graph(g);
}

/* ---- models built from layers ---------------------------------------------------------------- */

/* The layers of a tutorial: Dropout(LayerNorm(x + f(x))) after self-attention, LayerNorm(x + f(x))
 * after cross-attention and the feed-forward. */
static wf_tensor *dropped_norm(const struct wf_norm_layer *norm, wf_tensor *x, wf_tensor *f,
                               const char *dropout) {
    return wf_drop(wf_norm(norm, wf_add(x, f)), 0.2, dropout);
}

static wf_tensor *tutorial_side(wf_graph *g, const char *side, wf_tensor *ids) {
    char name[32];
    snprintf(name, sizeof name, "%s_embedding", side);
    struct wf_embedding_layer tokens = wf_embedding_new(g, name, 8, 512, false);
    snprintf(name, sizeof name, "%s_position", side);
    struct wf_position_layer places = wf_position_new(g, name, WF_POSITIONS_LEARNED, 10, 512);
    return wf_add_positions(&places, wf_embed(&tokens, ids), NULL);
}

static wf_tensor *not_padding(wf_tensor *ids) { /* [B,S] -> [B,1,1,S] */
    return wf_unsqueeze(wf_not_equal(wf_cast(ids, WF_F32), wf_constant(ids->graph, 0)),
                        WF_AXIS(1) | WF_AXIS(2));
}

static wf_tensor *tutorial(wf_graph *g, wf_tensor *src, wf_tensor *tgt) {
    wf_block_options o = {
        .d_model = 512, .num_heads = 8, .dim_feedforward = 512, .bias = true, .layer_norm_eps = 1e-5
    };
    wf_tensor *x = tutorial_side(g, "src", src), *y = tutorial_side(g, "tgt", tgt);
    wf_mha_options cross = { .mask = not_padding(src) }, causal = { .causal = true };
    for (int i = 0; i < 6; i++) {
        char name[16];
        struct wf_encoder_block l =
            wf_encoder_layer_new(g, (snprintf(name, sizeof name, "encoder%d", i), name), &o);
        x = dropped_norm(&l.norm1, x, wf_mha(&l.self_attn, x, x, &cross), name);
        x = wf_norm(&l.norm2, wf_add(x, wf_feed_forward(&l.ff, x)));
    }
    for (int i = 0; i < 6; i++) {
        char name[16];
        struct wf_decoder_block l =
            wf_decoder_layer_new(g, (snprintf(name, sizeof name, "decoder%d", i), name), &o);
        y = dropped_norm(&l.norm1, y, wf_mha(&l.self_attn, y, y, &causal), name);
        y = wf_norm(&l.norm2, wf_add(y, wf_mha(&l.multihead_attn, y, x, &cross)));
        y = wf_norm(&l.norm3, wf_add(y, wf_feed_forward(&l.ff, y)));
    }
    struct wf_linear_layer output = wf_linear_new(g, "output", 512, 8, true);
    return wf_linear(&output, y);
}

TEST(the_tutorial_model) {
    wf_graph *g = new_graph(WF_F32);
    int32_t src[20], tgt[18];
    for (int i = 0; i < 20; i++) src[i] = i % 10 < 8 - i / 10 ? 1 + i % 7 : 0; /* padding 0 */
    for (int i = 0; i < 18; i++) tgt[i] = i % 9 < 7 ? 1 + i % 7 : 0;
    wf_tensor *y =
        tutorial(g, ids_of(g, "src", SHAPE(2, 10), src), ids_of(g, "tgt", SHAPE(2, 9), tgt));
    assert_tensor(y, SHAPE(2, 9, 8));
    ck_assert_int_eq(parameter_count(g), 25268232);
    for (int training = 0; training < 2; training++) {
        values v;
        evaluate(&y, 1, 2, training, &v);
        ck_assert_int_eq(v.count, 2 * 9 * 8);
        for (int i = 0; i < v.count; i++) ck_assert(isfinite(v.data[i]));
        free_values(&v, 1);
    }
    end_graph(g);
}

TEST(the_encoder_instance) {
    wf_graph *g = new_graph(WF_F32);
    wf_block_options o = {
        .d_model = 64, .num_heads = 4, .dim_feedforward = 128, .bias = true, .layer_norm_eps = 1e-5
    };
    wf_tensor *x = noise(g, "x", SHAPE(3, 7, 64)), *fetch[3];
    for (int i = 0; i < 2; i++) {
        char name[16];
        struct wf_encoder_block l =
            wf_encoder_layer_new(g, (snprintf(name, sizeof name, "layers.%d", i), name), &o);
        x = wf_encoder_layer(&l, x, &(wf_mha_options){ .weights = &fetch[1 + i] });
    }
    fetch[0] = x;
    assert_tensor(x, SHAPE(3, 7, 64));
    values v[3];
    evaluate(fetch, 3, 2, false, v);
    for (int layer = 1; layer <= 2; layer++) {
        assert_tensor(fetch[layer], SHAPE(3, 4, 7, 7));
        for (int row = 0; row < 3 * 4 * 7; row++) {
            double sum = 0;
            for (int j = 0; j < 7; j++) sum += v[layer].data[row * 7 + j];
            ck_assert_double_eq_tol(sum, 1, 1e-6);
        }
    }
    free_values(v, 3);
    end_graph(g);
}

/* A decoder-only model built from causal encoder layers with caches gives the same logits token by
 * token as for the whole sequence. */
TEST(a_decoder_only_stack) {
    enum { D = 16, T = 9, V = 11 };
    wf_graph *g = new_graph(WF_F32);
    int64_t B = wf_extent(g, "B", 4), length = wf_extent(g, "T", T);
    wf_extent(g, "P", T - 1);
    wf_block_options o = { .d_model = D,
                           .num_heads = 2,
                           .dim_feedforward = 24,
                           .bias = true,
                           .norm_first = true,
                           .layer_norm_eps = 1e-5 };
    wf_tensor *ids = wf_input(g, "ids", WF_I32, SHAPE(B, length));
    struct wf_embedding_layer tokens = wf_embedding_new(g, "tokens", V, D, true);
    struct wf_position_layer places = wf_position_new(g, "places", WF_POSITIONS_SINUSOIDAL, T, D);
    wf_tensor *x = wf_add_positions(&places, wf_embed(&tokens, ids), NULL);
    for (int i = 0; i < 2; i++) {
        char name[16];
        struct wf_encoder_block l =
            wf_encoder_layer_new(g, (snprintf(name, sizeof name, "layers.%d", i), name), &o);
        x = wf_encoder_layer(&l, x, &(wf_mha_options){ .causal = true, .cache = true });
    }
    struct wf_linear_layer output = { .weight = tokens.weight, .path = "output" }; /* tied */
    wf_tensor *logits = wf_linear(&output, x);
    wf_plan_options options = { .fetch = &logits, .n_fetch = 1, .feed = &ids, .n_feed = 1 };
    wf_plan *whole = wf_plan_new(g, &options);
    options.with_state = true;
    wf_plan *step = wf_plan_new(g, &options);
    int32_t text[2 * T], token[2];
    float all[2 * T * V], one[2 * V];
    for (int i = 0; i < 2 * T; i++) text[i] = i * 7 % V;
    ck_assert_msg(wf_bind(whole, "B", 2) && wf_bind(whole, "T", T) &&
                      wf_feed(whole, ids, text, sizeof text),
                  "%s", wf_plan_error(whole));
    RUN(whole);
    ck_assert(wf_fetch(whole, logits, all, sizeof all) && wf_bind(step, "B", 2) &&
              wf_bind(step, "T", 1));
    wf_state *s = wf_state_new(step);
    for (int t = 0; t < T; t++) {
        token[0] = text[t], token[1] = text[T + t];
        ck_assert_msg(wf_bind(step, "P", t) && wf_feed(step, ids, token, sizeof token) &&
                          wf_run_state(step, s),
                      "%s", wf_plan_error(step));
        ck_assert(wf_fetch(step, logits, one, sizeof one));
        for (int i = 0; i < 2 * V; i++)
            ck_assert_double_eq_tol(one[i], all[(i / V * T + t) * V + i % V], 1e-5);
    }
    wf_state_free(s), wf_plan_free(step), wf_plan_free(whole);
    end_graph(g);
}
