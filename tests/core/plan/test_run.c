/* tests/core/plan/test_run.c - runs of a plan: reuse of memory, values in the order of computation,
 * dropout, profiles. */
#include "core/lend.h"
#include "core/run_internal.h"
#include "ops/update/sums.h"
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(run)

static wf_plan *plan_of(wf_tensor *t) {
    return wf_plan_new(t->graph, &(wf_plan_options){ .fetch = &t, .n_fetch = 1 });
}

static wf_tensor *total(wf_tensor *x) {
    return wf_sum(x, WF_ALL_AXES, false);
}

/* ---- memory ---------------------------------------------------------------------------------- */

TEST(a_chain_needs_two_buffers) {
    wf_graph *g = new_graph(WF_F32);
    enum { N = 1000, DEEP = 100 };
    wf_tensor *x = wf_param(g, "x", SHAPE(N), wf_init_uniform(1)), *y = x;
    for (int i = 0; i < DEEP; i++) y = i % 2 ? wf_neg(y) : wf_sin(y);
    wf_plan *p = plan_of(y);
    ck_assert_uint_gt(wf_plan_memory(p), 0);
    ck_assert_uint_le(wf_plan_memory(p), 2 * (N * 4 + 256));
    wf_plan_free(p);
    end_graph(g);
}

/* ---- watched --------------------------------------------------------------------------------- */

typedef struct watched {
    const wf_tensor *node[4];
    int at[4], n; /* n: the count of nodes computed so far; at[i]: that count after node[i] */
} watched;

static void note_node(void *user, const wf_tensor *node) {
    watched *w = user;
    w->n++;
    for (int i = 0; i < 4; i++)
        if (node == w->node[i]) w->at[i] = w->n;
}

/* The callback of wf_plan_watch is called for every computed node. A gradient is added to its sum
 * as soon as it is computed, in the middle of the backward pass, which begins with the last
 * parameter. */
TEST(a_run_tells_what_is_computed) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w[2], *sum[2], *dw[2], *fetch[2];
    for (int i = 0; i < 2; i++) {
        w[i] = wf_param(g, i ? "last" : "first", SHAPE(3, 3), wf_init_uniform(1));
        sum[i] = wf_buffer(g, i ? "a" : "b", WF_F32, SHAPE(1, 3, 3), wf_init_zeros());
    }
    wf_tensor *at = wf_input(g, "at", WF_F32, SHAPE(2));
    wf_grad(wf_square_sum(wf_matmul(wf_tanh(w[0]), w[1])), w, 2, dw);
    watched seen = { 0 };
    for (int i = 0; i < 2; i++) {
        seen.node[i] = dw[i];
        seen.node[2 + i] = fetch[i] = wf_accumulate(sum[i], dw[i], at);
    }
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    wf_plan *p = wf_plan_new(
        g, &(wf_plan_options){ .fetch = fetch, .n_fetch = 2, .feed = &at, .n_feed = 1 });
    const double first[] = { 0, 0 };
    wf_plan_watch(p, note_node, &seen);
    assert_plan(p, wf_feed_reals(p, at, first, 2) && wf_run(p));
    for (int i = 0; i < 4; i++) ck_assert_int_gt(seen.at[i], 0);
    ck_assert(seen.at[1] < seen.at[3] && seen.at[3] < seen.at[0] && seen.at[0] < seen.at[2]);
    int n = seen.n;
    wf_plan_watch(p, NULL, NULL);
    assert_plan(p, wf_run(p));
    ck_assert_int_eq(seen.n, n);
    wf_plan_free(p);
    end_graph(g);
}

/* ---- memory, once more ----------------------------------------------------------------------- */

/* Data fed with wf_feed_lent are not copied: each run reads them in place. wf_fetched gives a
 * pointer to a computed value in the plan's memory. */
TEST(values_are_read_where_they_lie) {
    static _Alignas(64) float lent[6] = { 1, 2, 3, 4, 5, 6 };
    float twice[6];
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2, 3)), *y = wf_scale(x, 2);
    wf_plan *p =
        wf_plan_new(g, &(wf_plan_options){ .feed = &x, .n_feed = 1, .fetch = &y, .n_fetch = 1 });
    ck_assert(wf_plan_ok(p) && !wf_feed_lent(p, x, lent, sizeof lent - 4, NULL));
    ck_assert_msg(wf_feed_lent(p, x, lent, sizeof lent, NULL), "%s", wf_plan_error(p));
    ck_assert_ptr_null(wf_fetched(p, y));
    assert_contains(wf_plan_error(p), "before a run");
    for (int run = 0; run < 2; run++) {
        ck_assert_msg(wf_run(p), "%s", wf_plan_error(p));
        const float *there = wf_fetched(p, y);
        ck_assert_ptr_nonnull(there);
        ck_assert(wf_fetch(p, y, twice, sizeof twice) && !memcmp(there, twice, sizeof twice));
        for (int i = 0; i < 6; i++) ck_assert_float_eq(there[i], 2 * lent[i]);
        for (int i = 0; i < 6; i++) lent[i] += 10;
    }
    ck_assert_ptr_null(wf_fetched(p, x));
    assert_contains(wf_plan_error(p), "not among the fetches");
    wf_plan_release(p);
    ck_assert_ptr_null(wf_fetched(p, y)); /* until it runs again */
    ck_assert_msg(wf_run(p), "%s", wf_plan_error(p));
    ck_assert_float_eq(*(const float *)wf_fetched(p, y), 2 * lent[0]);
    wf_plan_free(p);
    end_graph(g);
}

TEST(memory_that_cannot_be_lent_is_refused) {
    static _Alignas(64) float lent[8];
    static const int32_t row[] = { 1, 0 };
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2, 3)), *y = wf_scale(x, 2);
    wf_plan *p =
        wf_plan_new(g, &(wf_plan_options){ .feed = &x, .n_feed = 1, .fetch = &y, .n_fetch = 1 });
    ck_assert(!wf_feed_lent(p, x, lent + 1, 24, NULL));
    assert_contains(wf_plan_error(p), "not aligned to 64 bytes");
    ck_assert(!wf_feed_lent(p, x, lent, 24, row));
    assert_contains(wf_plan_error(p), "'x' is read by an op that takes no index of rows");
    ck_assert(!wf_run(p));
    assert_contains(wf_plan_error(p), "'x' was not fed");
    ck_assert(!wf_feed_place(p, x, 24, NULL));
    assert_contains(wf_plan_error(p), "no place");
    void *place;
    ck_assert(!wf_feed_place(p, x, 20, &place) && !place);
    assert_plan(p, wf_feed_place(p, x, 24, &place));
    for (int i = 0; i < 6; i++) ((float *)place)[i] = (float)i;
    assert_plan(p, wf_run(p));
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(((const float *)wf_fetched(p, y))[i], 2 * (float)i);
    wf_plan_free(p);
    end_graph(g);
}

TEST(views_need_no_memory) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_param(g, "x", SHAPE(64, 64), wf_init_uniform(1));
    wf_tensor *y = wf_slice(wf_transpose(wf_unsqueeze(x, WF_AXIS(0)), 1, 2), 1, 3, 60),
              *s = total(y);
    wf_plan *p = plan_of(s);
    ck_assert_uint_le(wf_plan_memory(p),
                      64 * 64 * 4); /* at most one copy, because the sum may need whole rows */
    wf_plan_free(p);
    end_graph(g);
}

typedef wf_tensor *(*maker)(wf_tensor *, wf_tensor *);
static wf_tensor *make_turn(wf_tensor *a, wf_tensor *b) {
    return wf_add(wf_transpose(a, 0, 1), b);
}
static wf_tensor *make_part(wf_tensor *a, wf_tensor *b) {
    return wf_mul(wf_slice(a, 0, 1, 2), b);
}
static wf_tensor *make_row(wf_tensor *a, wf_tensor *b) {
    return wf_sub(a, wf_sum(b, WF_AXIS(0), true));
}
static wf_tensor *make_joined(wf_tensor *a, wf_tensor *b) {
    return wf_slice(wf_concat((wf_tensor *[]){ a, b }, 2, 1), 1, 3, 8);
}
static wf_tensor *make_flat(wf_tensor *a, wf_tensor *b) {
    wf_tensor *flat = wf_reshape(wf_transpose(a, 0, 1), 1, (int64_t[]){ WF_REST });
    return wf_maximum(b, wf_reshape(flat, 2, (int64_t[]){ 5, 5 }));
}
static wf_tensor *make_squashed(wf_tensor *a, wf_tensor *b) {
    return wf_tanh(wf_matmul(a, b));
}
static wf_tensor *make_soft(wf_tensor *a, wf_tensor *b) {
    return wf_add(wf_softmax(a, -1), wf_sin(b));
}
static wf_tensor *make_negative(wf_tensor *a, wf_tensor *b) {
    return (void)b, wf_neg(a);
}
static const maker makers[] = { wf_add,    wf_mul,      make_turn,     make_part, make_row,
                                make_flat, make_joined, make_squashed, make_soft, make_negative };

enum { NODES = 40 };
static int random_graph(wf_graph *g, uint64_t key, wf_tensor **t) {
    int n = 0;
    for (; n < 3; n++) {
        char name[2] = { (char)('a' + n), 0 };
        t[n] = wf_param(g, name, SHAPE(5, 5), wf_init_uniform(1));
    }
    for (; n < NODES; n++) { /* operands are among the last 8 nodes, so that lifetimes end */
        int a = n - 1 - (int)(number(key, (uint64_t)(3 * n)) * (n < 8 ? n : 8));
        int b = n - 1 - (int)(number(key, (uint64_t)(3 * n + 1)) * (n < 8 ? n : 8));
        t[n] = makers[(int)(number(key, (uint64_t)(3 * n + 2)) * COUNT_OF(makers))](t[a], t[b]);
    }
    return n;
}

/* Reuse of memory, ops in place and views do not change a value: a node that is fetched alone, so
 * that the others may be overwritten, has the bits that it has when all nodes are fetched. The
 * nodes include gradients. */
TEST_ROWS(memory_reuse_never_shows, 60) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *t[NODES + 3];
    int n = random_graph(g, 1000 + (uint64_t)_i, t);
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    wf_tensor *loss = total(wf_tanh(t[n - 1]));
    ck_assert(wf_grad(loss, t, 3, t + n));
    n += 3;
    values all[NODES + 3], one;
    evaluate_as((wf_plan_options){ .fetch = t, .n_fetch = n, .as_recorded = true }, 1, all);
    for (int i = 3; i < n; i += i < NODES - 1 ? 3 : 1) {
        wf_plan_options o = { .fetch = &t[i], .n_fetch = 1, .as_recorded = true };
        evaluate_as(o, 1 + i % 3, &one);
        ck_assert_msg(same_bits(one, all[i]), "node %d (%s) alone differs by %g", i, t[i]->op->name,
                      distance(one, all[i]));
        free_values(&one, 1);
        /* With rewrite rules the contributions to a gradient may be added in another order. */
        evaluate(&t[i], 1, 1 + i % 3, false, &one);
        ck_assert_msg(distance(one, all[i]) < 1e-12, "node %d (%s)", i, t[i]->op->name);
        free_values(&one, 1);
    }
    evaluate(&t[n - 1], 1, 1, false, &one);
    free_values(&one, 1), free_values(all, n);
    end_graph(g);
}

/* ---- dropout --------------------------------------------------------------------------------- */

static double *dropped(wf_tensor *y, uint64_t step, uint32_t micro_batch, bool training) {
    wf_plan *p = wf_plan_new(y->graph,
                             &(wf_plan_options){ .fetch = &y, .n_fetch = 1, .training = training });
    wf_random_step(p, step, micro_batch);
    ck_assert_msg(wf_run(p), "%s", wf_plan_error(p));
    double *data = plan_values(p, y, NULL);
    wf_plan_free(p);
    return data;
}

TEST(dropout_is_a_function_of_its_place) {
    enum { N = 20000 };
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_param(g, "x", SHAPE(N), wf_init_constant(1));
    wf_tensor *y = wf_dropout(x, 0.25, "a"), *again = wf_dropout(x, 0.25, "a"),
              *other = wf_dropout(x, 0.25, "b");
    double *d[] = { dropped(y, 3, 0, true),     dropped(again, 3, 0, true), dropped(y, 3, 0, true),
                    dropped(other, 3, 0, true), dropped(y, 4, 0, true),     dropped(y, 3, 1, true),
                    dropped(y, 3, 0, false) };
    int kept = 0;
    for (int i = 0; i < N; i++) {
        ck_assert(d[0][i] == 0 || fabs(d[0][i] - 1 / 0.75) < 1e-6);
        ck_assert(d[6][i] == 1);
        kept += d[0][i] != 0;
    }
    ck_assert_double_eq_tol(kept / (double)N, 0.75, 0.015);
    for (int i = 1; i < 6; i++)
        ck_assert_int_eq(memcmp(d[0], d[i], N * sizeof(double)) == 0, i < 3);
    for (int i = 0; i < COUNT_OF(d); i++) free(d[i]);
    end_graph(g);
}

/* ---- profiles -------------------------------------------------------------------------------- */

TEST(a_profile_counts) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *a = wf_param(g, "a", SHAPE(6, 8), wf_init_uniform(1)),
              *b = wf_param(g, "b", SHAPE(8, 10), wf_init_uniform(1));
    wf_tensor *c = wf_matmul(a, b), *y = wf_relu(c);
    wf_plan *p = plan_of(y);
    wf_step step;
    ck_assert_msg(wf_run(p), "%s", wf_plan_error(p));
    wf_profile(p, true);
    for (int i = 0; i < 3; i++) ck_assert_msg(wf_run(p), "%s", wf_plan_error(p));
    wf_profile(p, true); /* it goes on */
    ck_assert(wf_step_at(p, 0, &step) && step.runs == 3);
    wf_profile(p, false);
    ck_assert_msg(wf_run(p), "%s", wf_plan_error(p));
    ck_assert_int_eq(wf_step_count(p), 2);
    ck_assert(wf_step_at(p, 0, &step) && step.node == c && step.op == c->op);
    ck_assert_int_eq(step.runs, 3);
    ck_assert_double_eq(step.flops, 2 * 6 * 8 * 10);
    ck_assert_double_eq(step.bytes, 4 * (6 * 8 + 8 * 10 + 6 * 10));
    ck_assert(step.seconds > 0 && step.seconds < 1 && step.tasks >= 1 && step.size == 240);
    ck_assert(wf_step_at(p, 1, &step) && step.node == y);
    ck_assert(!wf_step_at(p, 2, &step) && !wf_step_at(p, -1, &step));
    wf_profile(p, true);
    ck_assert(wf_step_at(p, 0, &step) && step.runs == 0 && step.seconds == 0);
    wf_plan_free(p);
    end_graph(g);
}
