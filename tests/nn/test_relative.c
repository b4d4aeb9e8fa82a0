/* tests/nn/test_relative.c - relative position biases, as in T5 and MPNet, and attention with them:
 * unscaled scores, and heads of any width.
 *
 * With a cache: test_cached.c. */
#include "nn/layers_internal.h"
#include "nn/nn.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(relative)

/* ---- buckets --------------------------------------------------------------------------------- */

/* The first distance of each bucket that holds several distances, as transformers 5.24 computes it
 * in f32. */
enum { MOST_BORDERS = 20 };
static const struct {
    bool both;
    int64_t buckets, distance, border[MOST_BORDERS];
} known[] = {
    { true, 32, 128, { 12, 16, 23, 32, 46, 64, 91 } },
    { false, 32, 128, { 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113 } },
    { true, 12, 50, { 8, 20 } },
    { false, 7, 40, { 6, 11, 21 } },
};

TEST_ROWS(buckets_are_those_of_transformers, COUNT_OF(known)) {
    bool both = known[_i].both;
    int64_t buckets = known[_i].buckets, most = known[_i].distance;
    int64_t side = both ? buckets / 2 : buckets, near = side / 2, bucket = 0;
    const int64_t *border = known[_i].border;
    for (int64_t n = 0; n < 3 * most; n++) {
        if (n > 0 && n <= near) bucket++;
        if (n == *border) {
            bucket++;
            border++;
        }
        ck_assert_int_eq(wf_relative_bucket(-n, buckets, most, both), bucket);
        if (n > 0)
            ck_assert_int_eq(wf_relative_bucket(n, buckets, most, both), both ? side + bucket : 0);
    }
    ck_assert_int_eq(bucket, side - 1);
    ck_assert_int_eq(wf_relative_bucket(INT64_MIN, buckets, most, both), bucket);
}

TEST(buckets_that_do_not_divide_distances_are_refused) {
    static const struct {
        int64_t buckets, distance;
        bool both;
    } bad[] = { { 0, 128, true }, { 3, 128, true },      { 1, 128, false },
                { 32, 8, true },  { 32, 16, false },     { -4, 8, false },
                { 32, 0, true },  { 32, 1 << 20, true }, { INT64_MAX, 1 << 16, false } };
    for (int i = 0; i < COUNT_OF(bad); i++) {
        wf_graph *g = new_graph(WF_F32);
        ck_assert_int_eq(
            wf_relative_bucket(INT64_MIN, bad[i].buckets, bad[i].distance, bad[i].both), 0);
        wf_relative_new(g, "far", 2, bad[i].buckets, bad[i].distance, bad[i].both);
        assert_contains(wf_error(g), "do not divide distances");
        wf_graph_free(g);
    }
}

TEST(what_is_missing_gives_poison) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *ids = ids_of(g, "ids", SHAPE(2), (int32_t[]){ 0, 1 });
    struct wf_relative_layer none = { .weight = NULL };
    ck_assert(wf_relative_bias(&none, ids, ids)->graph == g && !wf_ok(g));
    assert_contains(wf_error(g), "a table of relative positions is NULL");
    wf_graph_free(g);
    g = new_graph(WF_F32);
    struct wf_relative_layer l = wf_relative_new(g, "far", 2, 8, 8, true);
    ck_assert(wf_relative_bias(&l, NULL, NULL) && !wf_ok(g));
    wf_graph_free(g);
    g = new_graph(WF_F32);
    l = wf_relative_new(g, "far", 2, 8, 8, true);
    ids = ids_of(g, "ids", SHAPE(1, 2), (int32_t[]){ 0, 1 });
    ck_assert(wf_relative_bias(&l, ids, ids) && !wf_ok(g));
    assert_contains(wf_error(g), "queries [T] and of keys [S]");
    wf_graph_free(g);
    ck_assert(wf_relative_mask(NULL, NULL) != NULL);
}

/* ---- in attention ---------------------------------------------------------------------------- */

/* Initial query weights are smaller, so that unscaled scores are as large as scaled ones usually
 * are. */
TEST(initial_queries_make_up_for_the_scale) {
    enum { D = 8, H = 2, HEAD = 9 };
    for (int real = WF_F32; real <= WF_F64; real++) {
        wf_graph *g = new_graph((wf_dtype)real);
        wf_block_options o = { .d_model = D, .num_heads = H, .head_dim = HEAD };
        double bound = sqrt(6.0 / (D + H * HEAD)), most[3] = { 0 };
        o.attention_scale = 1;
        struct wf_mha_layer l = wf_self_attention_new(g, "self", &o);
        struct wf_mha_layer cross = wf_cross_attention_new(g, "cross", &o);
        ck_assert_int_eq(cross.head_dim, HEAD);
        double *initial = leaf_values(l.in_proj_weight);
        for (int i = 0; i < 3 * H * HEAD * D; i++) {
            int part = i / (H * HEAD * D);
            most[part] = fmax(most[part], fabs(initial[i]));
        }
        for (int part = 0; part < 3; part++) {
            double limit = part ? bound : bound / 3;
            ck_assert(most[part] <= limit * 1.000001 && most[part] > 0.9 * limit);
        }
        free(initial);
        end_graph(g);
    }
}

/* Gradients of T5's encoder and decoder with dropout and a padded sentence, for every element of
 * every parameter, among them the tables of biases. */
TEST(gradients_reach_the_tables) {
    wf_graph *g = new_graph(WF_F64);
    char message[WF_MESSAGE];
    wf_block_options o = { .d_model = 8,
                           .num_heads = 2,
                           .head_dim = 3,
                           .dim_feedforward = 6,
                           .layer_norm_eps = 1e-6,
                           .activation = WF_GELU_TANH,
                           .gated = true,
                           .norm = WF_RMS_NORM,
                           .norm_first = true,
                           .attention_scale = 1,
                           .dropout = 0.2,
                           .attention_dropout = 0.2 };
    struct wf_encoder_block encoder = wf_encoder_layer_new(g, "encoder", &o);
    struct wf_decoder_block decoder = wf_decoder_layer_new(g, "decoder", &o);
    struct wf_embedding_layer table = wf_embedding_new(g, "table", 5, 8, true);
    struct wf_relative_layer far = wf_relative_new(g, "src_far", 2, 8, 4, true);
    struct wf_relative_layer past = wf_relative_new(g, "tgt_far", 2, 2, 3, false);
    wf_tensor *lengths = ids_of(g, "lengths", SHAPE(2), (int32_t[]){ 3, 2 }), *k, *v;
    wf_tensor *src = ids_of(g, "src", SHAPE(2, 3), (int32_t[]){ 1, 2, 3, 4, 0, 1 });
    wf_tensor *x = wf_embed(&table, src), *mask = wf_key_mask(lengths, x, 1);
    wf_tensor *places = wf_arange(x, 1), *bias = wf_relative_bias(&far, places, places);
    wf_tensor *memory = wf_encoder_layer(
        &encoder, x, &(wf_mha_options){ .mask = wf_relative_mask(bias, mask), .additive = true });
    wf_mha_keys_values(&decoder.multihead_attn, memory, &k, &v);
    wf_mha_options self = { .mask = wf_relative_bias(&past, places, places),
                            .additive = true,
                            .causal = true };
    wf_tensor *y = wf_decoder_layer(&decoder, x, k, v, &self, &(wf_mha_options){ .mask = mask });
    wf_tensor *cotangent = wf_detach(wf_param(g, "cotangent", SHAPE(2, 3, 8), wf_init_normal(1)));
    wf_tensor *params[64];
    int n = wf_parameters(g, NULL, params, 64) - 1; /* the last is the cotangent */
    double error =
        wf_check_gradients(g, wf_sum(wf_mul(y, cotangent), WF_ALL_AXES, false), params, n, message);
    tally_note(TALLY_FIRST_ORDER, error);
    ck_assert_msg(error <= 1e-8, "%.3g: %s", error, message);
    end_graph(g);
}
