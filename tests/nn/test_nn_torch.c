/* tests/nn/test_nn_torch.c - layers of nn against PyTorch's, from the values that record_nn.py
 * wrote: GRU and LSTM on packed sequences, and a block of Llama. Outputs and every gradient are
 * compared, in f32 and f64. Other promises of recurrent layers are tested here, too. */
#include <stdio.h>

#include "nn/nn.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(nn_torch)

enum { B = 3, T = 5, I = 4, H = 3, MOST = 1 << 12, PARAMETERS = 40 };

static const wf_entry *entry(const wf_file *f, const char *name, const char *part) {
    char key[128];
    snprintf(key, sizeof key, "%s/%s", name, part);
    const wf_entry *e = wf_file_find(f, key);
    ck_assert_msg(e != NULL, "no '%s' among the recorded values", key);
    return e;
}

static wf_file *open_recorded(void) {
    char path[512];
    wf_file *f = wf_file_open(source_path("tests/data/nn.safetensors", path, sizeof path));
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    return f;
}

/* A leaf with the recorded values. */
static wf_tensor *leaf(wf_graph *g, const wf_file *f, const char *name, const char *part,
                       bool parameter) {
    const wf_entry *e = entry(f, name, part);
    wf_tensor *t = parameter ? wf_param(g, part, e->ndim, e->shape, wf_init_zeros())
                             : wf_buffer(g, part, wf_real(g), e->ndim, e->shape, wf_init_zeros());
    ck_assert(wf_file_load(e, t, NULL));
    return t;
}

static void same(const wf_file *f, const char *name, const char *part, wf_plan *p, wf_tensor *t,
                 bool is_double) {
    const wf_entry *e = entry(f, name, part);
    static double got[MOST];
    static float rough[MOST];
    size_t count = e->bytes / sizeof(double), bytes = wf_bound_bytes(p, t);
    ck_assert_uint_eq(bytes, count * (is_double ? sizeof(double) : sizeof(float)));
    ck_assert_msg(wf_fetch(p, t, is_double ? (void *)got : (void *)rough, bytes), "%s",
                  wf_plan_error(p));
    for (size_t i = 0; i < count; i++) {
        double want = ((const double *)e->data)[i], is = is_double ? got[i] : (double)rough[i];
        ck_assert_msg(fabs(is - want) <= (is_double ? 1e-12 : 2e-5) * fmax(1, fabs(want)),
                      "%s/%s[%d]: %.17g, PyTorch says %.17g", name, part, (int)i, is, want);
    }
}

/* Compares y and the gradients of sum(w y), by x and by all parameters of "net", with the recorded
 * ones. */
static void compare(wf_graph *g, const wf_file *f, const char *name, wf_tensor *y) {
    wf_tensor *all[PARAMETERS], *grads[PARAMETERS], *fetch[PARAMETERS + 1];
    int n = wf_parameters(g, NULL, all, PARAMETERS);
    ck_assert_int_le(n, PARAMETERS);
    for (int i = 0; i < n; i++) {
        char part[64];
        if (strncmp(all[i]->name, "net.", 4) != 0) continue;
        snprintf(part, sizeof part, "p/%s", all[i]->name + 4);
        ck_assert(wf_file_load(entry(f, name, part), all[i], NULL));
    }
    wf_tensor *w = leaf(g, f, name, "w", false);
    wf_tensor *loss = wf_sum(wf_mul(w, y), WF_ALL_AXES, false);
    ck_assert_msg(wf_grad(loss, all, n, grads), "%s", wf_error(g));
    fetch[0] = y;
    memcpy(fetch + 1, grads, (size_t)n * sizeof *grads);
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = fetch, .n_fetch = n + 1 });
    ck_assert_msg(wf_run(p), "%s", wf_plan_error(p));
    same(f, name, "y", p, y, wf_real(g) == WF_F64);
    for (int i = 0; i < n; i++) {
        char part[64];
        bool own = strncmp(all[i]->name, "net.", 4) == 0;
        snprintf(part, sizeof part, "d/%s", all[i]->name + (own ? 4 : 0));
        same(f, name, part, p, grads[i], wf_real(g) == WF_F64);
    }
    wf_plan_free(p);
    end_graph(g);
}

/* ---- recurrent layers ------------------------------------------------------------------------ */

static const struct {
    const char *name;
    wf_recurrent_options o;
} recurrent[] = {
    { "gru", { WF_GRU, I, H, 0, .bias = true } },
    { "gru_deep", { WF_GRU, I, H, 2, .bias = true, .bidirectional = true } },
    { "gru_plain", { WF_GRU, I, H, 1, .bias = false } },
    { "lstm", { WF_LSTM, I, H, 1, .bias = true } },
    { "lstm_deep", { WF_LSTM, I, H, 3, .bias = true, .bidirectional = true } },
    { "lstm_plain", { WF_LSTM, I, H, 2, .bias = false } },
};
static const int32_t lengths_of[B] = { 5, 2, 4 };

static wf_tensor *flat(wf_tensor *x) {
    return wf_reshape(x, 1, (int64_t[]){ WF_REST });
}

TEST_ROWS(recurrent_layers_are_those_of_pytorch, 2 * COUNT_OF(recurrent)) {
    wf_graph *g = new_graph(_i % 2 ? WF_F64 : WF_F32);
    wf_file *f = open_recorded();
    const char *name = recurrent[_i / 2].name;
    wf_tensor *lengths = wf_buffer(g, "lengths", WF_I32, SHAPE(B), wf_init_zeros());
    ck_assert(wf_write(lengths, lengths_of, sizeof lengths_of));
    wf_tensor *x = leaf(g, f, name, "x", true), *h = leaf(g, f, name, "h", false);
    bool lstm = recurrent[_i / 2].o.kind == WF_LSTM;
    wf_tensor *c = lstm ? leaf(g, f, name, "c", false) : NULL;
    struct wf_recurrent_layer l = wf_recurrent_new(g, "net", &recurrent[_i / 2].o);
    wf_recurrent_result r = wf_recurrent(&l, x, lengths, h, c);
    ck_assert(lstm == (r.c != NULL));
    wf_tensor *parts[] = { flat(r.output), flat(r.h), lstm ? flat(r.c) : NULL };
    compare(g, f, name, wf_concat(parts, lstm ? 3 : 2, 0));
    wf_file_free(f);
}

/* Cells, called step by step, give the results of the layer on the whole sequence. */
TEST_ROWS(a_cell_is_a_step_of_the_layer, 2) {
    wf_graph *g = new_graph(WF_F32);
    wf_recurrent_options o = { _i ? WF_LSTM : WF_GRU, I, H, .bias = true };
    struct wf_recurrent_layer l = wf_recurrent_new(g, "net", &o);
    wf_tensor *x = wf_param(g, "x", SHAPE(B, T, I), wf_init_normal(1));
    wf_recurrent_result r = wf_recurrent(&l, x, NULL, NULL, NULL);
    wf_tensor *h = wf_fill(wf_param(g, "h", SHAPE(B, H), wf_init_zeros()), 0), *c = h;
    for (int t = 0; t < T; t++) {
        wf_tensor *now = wf_squeeze(wf_slice(x, 1, t, t + 1), WF_AXIS(1)); /* [B,I] */
        h = wf_recurrent_step(&l.cell[0][0], now, h, &c);
    }
    wf_tensor *last = wf_squeeze(wf_slice(r.output, 1, T - 1, T), WF_AXIS(1));
    wf_tensor *fetch[] = { h, last, wf_squeeze(r.h, WF_AXIS(0)) };
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = fetch, .n_fetch = 3 });
    float got[3][B * H];
    ck_assert_msg(wf_run(p), "%s%s", wf_error(g), wf_plan_error(p));
    for (int i = 0; i < 3; i++) ck_assert(wf_fetch(p, fetch[i], got[i], sizeof got[i]));
    for (int i = 0; i < B * H; i++)
        ck_assert(fabsf(got[0][i] - got[1][i]) < 1e-6f && got[1][i] == got[2][i]);
    wf_plan_free(p);
    end_graph(g);
}

static int nodes_of(int64_t steps) {
    wf_graph *g = new_graph(WF_F32);
    struct wf_recurrent_layer l =
        wf_recurrent_new(g, "net", &(wf_recurrent_options){ WF_GRU, I, H, .bias = true });
    wf_tensor *x = wf_param(g, "x", SHAPE(2, steps, I), wf_init_normal(1)), *dx;
    wf_tensor *lengths = wf_buffer(g, "lengths", WF_I32, SHAPE(2), wf_init_zeros());
    wf_recurrent_result r = wf_recurrent(&l, x, lengths, NULL, NULL);
    ck_assert_msg(wf_grad(wf_square_sum(r.output), &x, 1, &dx), "%s", wf_error(g));
    int n = (int)wf_node_count(g);
    end_graph(g);
    return n;
}

TEST(nodes_grow_with_the_steps_and_no_faster) {
    int few = nodes_of(64), more = nodes_of(128), most = nodes_of(512);
    ck_assert_int_lt(more, 2 * few + 50);
    ck_assert_int_lt(most, 4 * more + 50);
    ck_assert_int_lt(most, 512 * 60);
}

TEST_ROWS(other_states_than_those_of_the_layers_are_refused, 6) {
    static const int64_t shapes[][3] = { { 1, 2, 3 }, { 4, 2, 3 }, { 2, 3, 0 },
                                         { 2, 1, 3 }, { 2, 5, 3 }, { 2, 2, 1 } };
    wf_graph *g = wf_graph_new(NULL);
    const wf_recurrent_options o = { .input_size = 3, .hidden_size = 3, .bidirectional = true };
    struct wf_recurrent_layer l = wf_recurrent_new(g, "gru", &o);
    wf_tensor *x = wf_input(g, "x", wf_real(g), 3, (int64_t[]){ 2, 4, 3 });
    wf_tensor *h = wf_input(g, "h", wf_real(g), shapes[_i][2] ? 3 : 2, shapes[_i]);
    wf_recurrent(&l, x, NULL, h, NULL);
    ck_assert(!wf_ok(g));
    assert_contains(wf_error(g), "gru: the first states are [");
    assert_contains(wf_error(g), ", not [2,2,3]: for each layer and direction a state");
    wf_graph_free(g);
}

/* An initial state of another graph is refused, and does not make that graph fail. */
TEST(first_states_of_another_graph_are_refused) {
    const wf_recurrent_options o = { .input_size = 3, .hidden_size = 3 };
    wf_graph *g = wf_graph_new(NULL), *other = wf_graph_new(NULL);
    struct wf_recurrent_layer l = wf_recurrent_new(g, "gru", &o);
    wf_tensor *x = wf_input(g, "x", wf_real(g), 3, (int64_t[]){ 2, 4, 3 });
    wf_recurrent(&l, x, NULL, wf_input(other, "h", wf_real(g), 3, (int64_t[]){ 9, 9, 9 }), NULL);
    ck_assert(!wf_ok(g) && wf_ok(other));
    wf_graph_free(g), wf_graph_free(other);
}

/* States with another number of rows than x, or of units than the cell, are refused. Without the
 * check, a state of one row or of one unit would be broadcast. */
TEST_ROWS(a_cell_refuses_states_of_another_batch, 8) {
    static const int64_t shapes[][2] = { { 1, 3 }, { 5, 3 }, { 2, 1 }, { 2, 4 } };
    wf_graph *g = wf_graph_new(NULL);
    const wf_recurrent_options o = { .kind = WF_LSTM, .input_size = 3, .hidden_size = 3 };
    struct wf_recurrent_layer l = wf_recurrent_new(g, "lstm", &o);
    wf_tensor *x = wf_input(g, "x", wf_real(g), 2, (int64_t[]){ 2, 3 });
    wf_tensor *bad = wf_input(g, "bad", wf_real(g), 2, shapes[_i / 2]), *c = _i % 2 ? bad : x;
    wf_recurrent_step(&l.cell[0][0], x, _i % 2 ? x : bad, &c);
    ck_assert(!wf_ok(g));
    assert_contains(wf_error(g), "lstm: a state [");
    assert_contains(wf_error(g), "] has not the rows of [2,3] and 3 units");
    wf_graph_free(g);
}

/* Each time step is recorded as nodes of its own, so a number of steps that is bound later is
 * refused. */
TEST(steps_that_are_bound_later_are_refused) {
    wf_graph *g = new_graph(WF_F32);
    int64_t shape[] = { wf_extent(g, "B", 8), wf_extent(g, "T", 9), I };
    struct wf_recurrent_layer l =
        wf_recurrent_new(g, "net", &(wf_recurrent_options){ WF_GRU, I, H, .bias = true });
    wf_tensor *x = wf_input(g, "x", WF_F32, 3, shape);
    int nodes = wf_node_count(g);
    wf_recurrent(&l, x, NULL, NULL, NULL);
    assert_contains(wf_error(g), "net: the steps of [B,T,");
    ck_assert_int_eq(wf_node_count(g), nodes);
    wf_graph_free(g);
}

/* ---- a block as in Llama --------------------------------------------------------------------- */

TEST_ROWS(a_block_of_llama_is_that_of_pytorch, 2) {
    wf_graph *g = new_graph(_i % 2 ? WF_F64 : WF_F32);
    wf_file *f = open_recorded();
    wf_block_options o = { .d_model = 12,
                           .num_heads = 6,
                           .num_kv_heads = 2,
                           .dim_feedforward = 10,
                           .activation = WF_SILU,
                           .gated = true,
                           .norm_first = true,
                           .norm = WF_RMS_NORM,
                           .layer_norm_eps = 1e-5 };
    struct wf_encoder_block l = wf_encoder_layer_new(g, "net", &o);
    struct wf_position_layer at = wf_position_new(g, "at", WF_POSITIONS_ROTARY, T, 12);
    wf_tensor *x = leaf(g, f, "llama", "x", true);
    wf_mha_options mha = { .causal = true,
                           .window = 3,
                           .rotary = wf_rotary_positions(&at, x, NULL, 2) };
    compare(g, f, "llama", wf_encoder_layer(&l, wf_add_positions(&at, x, NULL), &mha));
    wf_file_free(f);
}
