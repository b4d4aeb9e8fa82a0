/* tests/core/plan/test_state.c - states: the KV caches of a sequence that is generated token by
 * token.
 *
 * The graph is a small causal attention whose keys and values pass through wf_cache: run step by
 * step with a state, it must give the results of one run over the whole sequence without a
 * state. */
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(state)

enum { MAX_BATCH = 4, MAX_TIME = 6, D = 4 };

typedef struct little {
    wf_graph *g;
    wf_tensor *x, *y, *positions, *loss, *grad;
} little;

static void open_little(little *l) {
    double data[D * D], rows[(MAX_TIME + 2) * D];
    wf_graph *g = l->g = new_graph(WF_F32);
    int64_t B = wf_extent(g, "B", MAX_BATCH), T = wf_extent(g, "T", MAX_TIME + 1);
    wf_extent(g, "P", MAX_TIME);
    for (int i = 0; i < D * D; i++) data[i] = number(3, (uint64_t)i) - 0.5;
    for (int i = 0; i < (MAX_TIME + 2) * D; i++) rows[i] = number(4, (uint64_t)i);
    wf_tensor *table = param_of(g, "position", SHAPE(MAX_TIME + 2, D), rows),
              *w = param_of(g, "w", SHAPE(D, D), data);
    l->x = wf_input(g, "x", WF_F32, SHAPE(B, T, D)); /* [B, T, D] */
    l->positions = wf_position_ids(l->x, 1);         /* [T] */
    wf_tensor *h = wf_add(l->x, wf_embedding(table, l->positions));
    wf_tensor *k = wf_cache(wf_matmul(h, w), 1), *v = wf_cache(h, 1);              /* [B, P+T, D] */
    l->y = wf_attention(h, k, v, NULL, &(wf_attention_options){ .causal = true }); /* [B, T, D] */
    l->loss = wf_sum(l->y, WF_ALL_AXES, false);
    ck_assert_msg(wf_grad(l->loss, &w, 1, &l->grad), "%s", wf_error(g));
}

static wf_plan *plan_with(little *l, bool with_state) {
    wf_tensor *fetch[] = { l->y, l->positions };
    wf_plan *p = wf_plan_new(
        l->g,
        &(wf_plan_options){
            .fetch = fetch, .n_fetch = 2, .feed = &l->x, .n_feed = 1, .with_state = with_state });
    ck_assert_msg(wf_plan_ok(p), "%s", wf_plan_error(p));
    return p;
}

/* x of row b at time t */
static float element(int b, int t, int i) {
    return (float)number(50 + (uint64_t)b, (uint64_t)(t * D + i)) - 0.5f;
}

static void feed_rows(little *l, wf_plan *p, int batch, const int *row, int from, int n) {
    float data[MAX_BATCH * (MAX_TIME + 1) * D];
    for (int b = 0; b < batch; b++)
        for (int t = 0; t < n; t++)
            for (int i = 0; i < D; i++)
                data[(b * n + t) * D + i] = element(row ? row[b] : b, from + t, i);
    ck_assert_msg(wf_bind(p, "B", batch) && wf_bind(p, "T", n), "%s", wf_plan_error(p));
    ck_assert_msg(wf_feed(p, l->x, data, wf_bound_bytes(p, l->x)), "%s", wf_plan_error(p));
}

static void whole(little *l, int batch, const int *row, float *out) {
    wf_plan *p = plan_with(l, false);
    feed_rows(l, p, batch, row, 0, MAX_TIME);
    ck_assert_msg(wf_run(p) && wf_fetch(p, l->y, out, wf_bound_bytes(p, l->y)), "%s",
                  wf_plan_error(p));
    wf_plan_free(p);
}

static wf_state *state_of(little *l, wf_plan *p, int batch) {
    feed_rows(l, p, batch, NULL, 0, 1);
    wf_state *s = wf_state_new(p);
    ck_assert_msg(s != NULL, "%s", wf_plan_error(p));
    return s;
}

static void step(little *l, wf_plan *p, wf_state *s, int batch, const int *row, int from, int n,
                 float *out) {
    ck_assert_msg(wf_bind(p, "P", from), "%s", wf_plan_error(p));
    feed_rows(l, p, batch, row, from, n);
    ck_assert_msg(wf_run_state(p, s) && wf_fetch(p, l->y, out, wf_bound_bytes(p, l->y)), "%s",
                  wf_plan_error(p));
}

/* Compares the results of a step, `got`, with those of the whole sequences, `full`, at the times
 * [from, from + n). */
static void compare(const float *full, const float *got, int batch, int from, int n) {
    for (int b = 0; b < batch; b++)
        for (int i = 0; i < n * D; i++)
            ck_assert_float_eq_tol(got[b * n * D + i], full[(b * MAX_TIME + from) * D + i], 1e-5f);
}

/* Numbers of tokens in the steps of a sequence: one each, two each, a prompt and then one each, and
 * so on. */
static const int strides[][MAX_TIME] = {
    { 1, 1, 1, 1, 1, 1 }, { 2, 2, 2 }, { 4, 1, 1 }, { 6 }, { 1, 3, 2 }
};

TEST_ROWS(steps_equal_the_whole, COUNT_OF(strides)) {
    little l;
    open_little(&l);
    float full[MAX_BATCH * MAX_TIME * D], got[MAX_BATCH * MAX_TIME * D];
    for (int batch = 1; batch <= MAX_BATCH; batch++) {
        whole(&l, batch, NULL, full);
        wf_plan *p = plan_with(&l, true);
        wf_state *s = state_of(&l, p, batch);
        for (int pass = 0; pass < 2; pass++) /* a state may be begun again at P = 0 */
            for (int i = 0, from = 0; from < MAX_TIME; from += strides[_i][i++]) {
                step(&l, p, s, batch, NULL, from, strides[_i][i], got);
                compare(full, got, batch, from, strides[_i][i]);
            }
        wf_state_free(s), wf_plan_free(p);
    }
    end_graph(l.g);
}

TEST(positions_follow_the_state) {
    little l;
    open_little(&l);
    wf_plan *p = plan_with(&l, true);
    wf_state *s = state_of(&l, p, 1);
    float out[MAX_TIME * D];
    int32_t at[MAX_TIME];
    step(&l, p, s, 1, NULL, 0, 3, out);
    ck_assert(wf_fetch(p, l.positions, at, wf_bound_bytes(p, l.positions)) && at[0] == 0 &&
              at[2] == 2);
    step(&l, p, s, 1, NULL, 3, 2, out);
    ck_assert(wf_fetch(p, l.positions, at, wf_bound_bytes(p, l.positions)) && at[0] == 3 &&
              at[1] == 4);
    wf_state_free(s), wf_plan_free(p);
    end_graph(l.g);
}

/* A search reorders the rows of a state: a row is replaced by that of another beam, and rows of
 * finished sentences are dropped. */
TEST(rows_are_reordered) {
    little l;
    open_little(&l);
    float full[MAX_BATCH * MAX_TIME * D], got[MAX_BATCH * MAX_TIME * D];
    wf_plan *p = plan_with(&l, true);
    wf_state *s = state_of(&l, p, 4);
    step(&l, p, s, 4, NULL, 0, 2, got);
    ck_assert(wf_state_reorder(s, (int32_t[]){ 3, 0, 0, 2 }, 4));
    step(&l, p, s, 4, (int[]){ 3, 0, 0, 2 }, 2, 1, got);
    whole(&l, 4, (int[]){ 3, 0, 0, 2 }, full);
    compare(full, got, 4, 2, 1);
    ck_assert(wf_state_reorder(s, (int32_t[]){ 3, 0 }, 2)); /* originally rows 2 and 3 */
    step(&l, p, s, 2, (int[]){ 2, 3 }, 3, 1, got);
    whole(&l, 2, (int[]){ 2, 3 }, full);
    compare(full, got, 2, 3, 1);
    ck_assert(!wf_state_reorder(s, (int32_t[]){ 4 }, 1) &&
              !wf_state_reorder(s, (int32_t[]){ -1 }, 1));
    ck_assert(!wf_state_reorder(s, (int32_t[]){ 0, 0, 0, 0, 0 }, 5) &&
              !wf_state_reorder(s, NULL, 1));
    wf_state_free(s), wf_plan_free(p);
    end_graph(l.g);
}

/* The test reorders every list of one to four of four rows: permutations, copies, and rows that
 * keep their place. */
TEST(every_reordering_is_right) {
    little l;
    open_little(&l);
    float full[MAX_BATCH * MAX_TIME * D], got[MAX_BATCH * MAX_TIME * D];
    wf_plan *p = plan_with(&l, true);
    wf_state *s = state_of(&l, p, 4);
    for (int code = 0; code < 4 * 256; code++) {
        int n = 1 + code / 256, row[4];
        int32_t index[4];
        for (int i = 0; i < 4; i++) row[i] = index[i] = code >> 2 * i & 3;
        step(&l, p, s, 4, NULL, 0, 2, got);
        ck_assert(wf_state_reorder(s, index, n));
        step(&l, p, s, n, row, 2, 1, got);
        whole(&l, n, row, full);
        compare(full, got, n, 2, 1);
    }
    wf_state_free(s), wf_plan_free(p);
    end_graph(l.g);
}

TEST(several_generations_at_once) {
    little l;
    open_little(&l);
    float full[MAX_BATCH * MAX_TIME * D], got[MAX_BATCH * MAX_TIME * D];
    wf_plan *p = plan_with(&l, true);
    wf_state *s[2] = { state_of(&l, p, 2), state_of(&l, p, 2) };
    const int rows[2][2] = { { 0, 1 }, { 2, 3 } };
    for (int t = 0; t < MAX_TIME; t++)
        for (int k = 0; k < 2; k++) {
            step(&l, p, s[k], 2, rows[k], t, 1, got);
            whole(&l, 2, rows[k], full);
            compare(full, got, 2, t, 1);
        }
    wf_state_free(s[0]), wf_state_free(s[1]), wf_plan_free(p);
    end_graph(l.g);
}

TEST(misuse_is_told) {
    little l;
    open_little(&l);
    float out[MAX_BATCH * MAX_TIME * D];
    wf_plan *plain = plan_with(&l, false), *p = plan_with(&l, true);
    ck_assert(!wf_bind(plain, "P", 1));
    assert_contains(wf_plan_error(plain), "state");
    ck_assert_ptr_null(wf_state_new(plain));
    ck_assert(!wf_bind(p, "P", MAX_TIME + 1) && !wf_bind(p, "P", -1));
    wf_state *s = state_of(&l, p, 2);
    ck_assert(!wf_run(p));
    assert_contains(wf_plan_error(p), "state");
    ck_assert(!wf_run_state(p, NULL) && !wf_run_state(plain, s));
    feed_rows(&l, p, 3, NULL, 0, 1);
    ck_assert(!wf_run_state(p, s)); /* more sentences than the state has rows for */
    step(&l, p, s, 2, NULL, 0, MAX_TIME, out);
    ck_assert(wf_bind(p, "P", MAX_TIME));
    feed_rows(&l, p, 2, NULL, 0, 2);
    ck_assert(!wf_run_state(p, s)); /* beyond the last position */
    assert_contains(wf_plan_error(p), "6");
    wf_plan *gradient = wf_plan_new(
        l.g, &(wf_plan_options){
                 .fetch = &l.grad, .n_fetch = 1, .feed = &l.x, .n_feed = 1, .with_state = true });
    ck_assert(!wf_plan_ok(gradient));
    assert_contains(wf_plan_error(gradient), "gradient");
    wf_plan_free(gradient), wf_state_free(s), wf_plan_free(p), wf_plan_free(plain);
    end_graph(l.g);
}

TEST(generating_records_nothing) {
    little l;
    open_little(&l);
    float out[MAX_TIME * D];
    int before = wf_node_count(l.g);
    wf_plan *p = plan_with(&l, true);
    wf_state *s = state_of(&l, p, 1);
    for (int t = 0; t < MAX_TIME; t++) step(&l, p, s, 1, NULL, t, 1, out);
    ck_assert_int_eq(wf_node_count(l.g), before);
    wf_state_free(s), wf_plan_free(p);
    end_graph(l.g);
}
