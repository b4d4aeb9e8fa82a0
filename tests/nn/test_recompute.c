/* tests/nn/test_recompute.c - gradient checkpointing: layers whose values gradients compute again
 * give the same bits as layers whose values are kept, in less memory. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/graph_internal.h"
#include "nn/nn.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(recompute)

enum { B = 3, T = 10, D = 16, F = 40, HEADS = 4, LAYERS = 6, MOST = 300 };

/* A stack of layers, its loss, and the gradients with respect to all parameters and the input. */
typedef struct stack {
    wf_graph *g;
    wf_tensor *loss, *wrt[MOST], *grads[MOST];
    int n;
} stack;

static const struct {
    const char *name;
    bool decoder;
    wf_block_options o;
} rows[] = {
    { "post-norm", false, { .bias = true, .activation = WF_RELU } },
    { "Llama's form",
      false,
      { .norm_first = true,
        .norm = WF_RMS_NORM,
        .activation = WF_SILU,
        .gated = true,
        .num_kv_heads = 2 } },
    { "dropout",
      false,
      { .bias = true,
        .norm_first = true,
        .activation = WF_GELU,
        .dropout = 0.2,
        .attention_dropout = 0.1,
        .activation_dropout = 0.3 } },
    { "decoder",
      true,
      { .bias = true, .norm_first = true, .activation = WF_RELU, .dropout = 0.1 } },
    { "SSRU", true, { .bias = true, .decoder = WF_DECODER_SSRU, .dropout = 0.1 } },
    { "average attention", true, { .bias = true, .decoder = WF_DECODER_AVERAGE } },
};

static wf_tensor *layer(wf_graph *g, int i, const wf_block_options *o, bool decoder, wf_tensor *x,
                        wf_tensor *memory) {
    char name[32];
    snprintf(name, sizeof name, "layers.%d", i);
    const wf_mha_options causal = { .causal = true };
    if (!decoder) {
        struct wf_encoder_block l = wf_encoder_layer_new(g, name, o);
        return wf_encoder_layer(&l, x, &causal);
    }
    struct wf_decoder_block l = wf_decoder_layer_new(g, name, o);
    wf_tensor *k, *v;
    wf_mha_keys_values(&l.multihead_attn, memory, &k, &v);
    return wf_decoder_layer(&l, x, k, v, &causal, NULL);
}

static void make(stack *s, int row, wf_dtype real, bool recompute) {
    wf_graph *g = s->g = new_graph(real);
    wf_block_options o = rows[row].o;
    o.d_model = D;
    o.num_heads = HEADS;
    o.dim_feedforward = F;
    o.layer_norm_eps = 1e-5;
    o.recompute = recompute;
    wf_tensor *first = wf_param(g, "x", SHAPE(B, T, D), wf_init_normal(1)), *x = first;
    for (int i = 0; i < LAYERS; i++) x = layer(g, i, &o, rows[row].decoder, x, first);
    s->loss = wf_sum(wf_square(x), WF_ALL_AXES, false);
    s->n = 0;
    for (int id = 0; id < wf_node_count(g); id++)
        if (wf_node(g, id)->kind == WF_PARAM) s->wrt[s->n++] = wf_node(g, id);
    ck_assert_int_lt(s->n, MOST);
    ck_assert_msg(wf_grad(s->loss, s->wrt, s->n, s->grads), "%s", wf_error(g));
}

static wf_plan *run_of(const stack *s) {
    wf_plan_options o = { .fetch = s->grads, .n_fetch = s->n, .training = true };
    wf_plan *p = wf_plan_new(s->g, &o);
    ck_assert_msg(wf_run(p), "%s", wf_plan_error(p));
    return p;
}

TEST_ROWS(gradients_have_the_same_bits, COUNT_OF(rows)) {
    static float kept[B * T * D + F * D * 4], again[B * T * D + F * D * 4];
    stack a, b;
    make(&a, _i, WF_F32, false);
    make(&b, _i, WF_F32, true);
    wf_plan *p = run_of(&a), *q = run_of(&b);
    ck_assert_int_eq(a.n, b.n);
    for (int i = 0; i < a.n; i++) {
        size_t bytes = wf_bytes(a.wrt[i]);
        ck_assert_uint_le(bytes, sizeof kept);
        ck_assert(wf_fetch(p, a.grads[i], kept, bytes) && wf_fetch(q, b.grads[i], again, bytes));
        ck_assert_msg(memcmp(kept, again, bytes) == 0, "%s: %s", rows[_i].name, a.wrt[i]->name);
    }
    wf_plan_free(p);
    wf_plan_free(q);
    end_graph(a.g);
    end_graph(b.g);
}

/* A plan that fetches one gradient, that of the first layer's input, has room for little more than
 * the inputs of the layers and the values of one layer. */
TEST_ROWS(gradients_take_less_memory, COUNT_OF(rows)) {
    size_t bytes[2];
    for (int k = 0; k < 2; k++) {
        stack s;
        make(&s, _i, WF_F32, k);
        wf_plan *p = wf_plan_new(
            s.g, &(wf_plan_options){ .fetch = s.grads, .n_fetch = 1, .training = true });
        bytes[k] = wf_plan_memory(p);
        wf_plan_free(p);
        end_graph(s.g);
    }
    ck_assert_msg(bytes[1] * 10 < bytes[0] * 6, "%s: %zu bytes, and %zu", rows[_i].name, bytes[1],
                  bytes[0]);
}

/* Gradients of gradients, in f64. */
TEST_ROWS(second_derivatives_are_the_same, COUNT_OF(rows)) {
    static double kept[B * T * D], again[B * T * D];
    double *out[] = { kept, again };
    for (int k = 0; k < 2; k++) {
        stack s;
        wf_tensor *second;
        make(&s, _i, WF_F64, k);
        wf_tensor *size = wf_sum(wf_square(s.grads[0]), WF_ALL_AXES, false);
        ck_assert_msg(wf_grad(size, s.wrt, 1, &second), "%s", wf_error(s.g));
        wf_plan *p = wf_plan_new(
            s.g, &(wf_plan_options){ .fetch = &second, .n_fetch = 1, .training = true });
        ck_assert_msg(wf_run(p) && wf_fetch(p, second, out[k], sizeof kept), "%s",
                      wf_plan_error(p));
        wf_plan_free(p);
        end_graph(s.g);
    }
    for (int i = 0; i < COUNT_OF(kept); i++)
        ck_assert_double_le(fabs(kept[i] - again[i]), 1e-9 * (1 + fabs(kept[i])));
}

/* Finite differences agree with gradients through layers that are computed again. */
TEST(gradients_are_right) {
    wf_graph *g = new_graph(WF_F64);
    wf_block_options o = { .d_model = 4,
                           .num_heads = 2,
                           .dim_feedforward = 6,
                           .activation = WF_GELU,
                           .bias = true,
                           .layer_norm_eps = 1e-5,
                           .recompute = true };
    wf_tensor *x = wf_param(g, "x", SHAPE(2, 3, 4), wf_init_normal(1)), *y = x;
    for (int i = 0; i < 2; i++) y = layer(g, i, &o, true, y, x);
    wf_tensor *loss = wf_sum(wf_square(y), WF_ALL_AXES, false);
    double error = wf_check_gradients(g, loss, &x, 1, NULL);
    ck_assert_msg(error >= 0 && error < 1e-8, "%g", error);
    end_graph(g);
}

/* A value that gradients compute again cannot be fed: the copy would not follow it. The region's
 * input and its result can. */
TEST(values_that_are_computed_again_are_not_fed) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x = wf_param(g, "x", SHAPE(1), wf_init_constant(3)), *in = wf_scale(x, 1), *dx;
    wf_recompute_begin(g);
    wf_tensor *inner = wf_scale(in, 2), *y = wf_mul(inner, in);
    wf_recompute_end(g);
    ck_assert(wf_grad(wf_sum(y, WF_ALL_AXES, false), &x, 1, &dx));
    wf_tensor *const fed[] = { inner, in, y };
    for (int i = 0; i < COUNT_OF(fed); i++) {
        const double value = 10;
        double got = 0;
        wf_plan *p = wf_plan_new(
            g, &(wf_plan_options){ .fetch = &dx, .n_fetch = 1, .feed = &fed[i], .n_feed = 1 });
        bool ok = wf_feed(p, fed[i], &value, sizeof value) && wf_run(p) &&
                  wf_fetch(p, dx, &got, sizeof got);
        ck_assert_int_eq(ok, i > 0);
        if (ok) ck_assert_double_eq(got, i == 1 ? 4 * value : 4 * 3);
        if (!ok)
            ck_assert_str_eq(wf_plan_error(p),
                             "affine is fed, but a gradient computes it again (recompute)");
        wf_plan_free(p);
    }
    end_graph(g);
}

TEST(a_region_that_ends_has_begun) {
    wf_graph *g = new_graph(WF_F32);
    wf_recompute_begin(g);
    wf_recompute_begin(g);
    wf_recompute_end(g);
    wf_recompute_end(g);
    ck_assert(wf_ok(g));
    wf_recompute_end(g);
    ck_assert_str_eq(wf_error(g), "a region to compute again ends, and none has begun");
    wf_recompute_begin(NULL);
    wf_recompute_end(NULL);
    wf_graph_free(g);
}
