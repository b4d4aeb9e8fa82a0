/* tests/core/plan/test_plan.c - plans: required feeds, feeds of any tensor, extents, updates, and
 * several plans at the same time.
 *
 * Not here: recording (test_graph.c), memory, dropout and profiles (test_run.c), the caches of a
 * generation (test_state.c). */
#include <pthread.h>
#include <stdio.h>

#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(plan)

static wf_plan *plan_of(wf_tensor *const *fetch, int n_fetch, wf_tensor *const *feed, int n_feed) {
    return wf_plan_new(
        fetch[0]->graph,
        &(wf_plan_options){ .fetch = fetch, .n_fetch = n_fetch, .feed = feed, .n_feed = n_feed });
}

static wf_tensor *total(wf_tensor *x) {
    return wf_sum(x, WF_ALL_AXES, false);
}

#define assert_run(p) ck_assert_msg(wf_run(p), "%s", wf_plan_error(p))
#define assert_fed(p, t, ...)                                                                      \
    ck_assert_msg(wf_feed(p, t, (__VA_ARGS__), wf_bound_bytes(p, t)), "%s", wf_plan_error(p))
#define assert_fetched(p, t, out)                                                                  \
    ck_assert_msg(wf_fetch(p, t, out, wf_bound_bytes(p, t)), "%s", wf_plan_error(p))

/* ---- what a plan needs ----------------------------------------------------------------------- */

TEST(a_missing_feed_is_named) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *a = wf_input(g, "source", WF_F32, SHAPE(2)),
              *b = wf_input(g, "target", WF_F32, SHAPE(2));
    wf_tensor *y = wf_add(a, b);
    wf_plan *p = plan_of(&y, 1, &a, 1);
    ck_assert(!wf_plan_ok(p) && !wf_run(p));
    assert_contains(wf_plan_error(p), "target");
    wf_plan_free(p);
    p = plan_of(&y, 1, (wf_tensor *[]){ a, b }, 2);
    ck_assert(wf_plan_ok(p));
    ck_assert(!wf_run(p));
    assert_contains(wf_plan_error(p), "source");
    assert_fed(p, a, (float[]){ 1, 2 });
    ck_assert(!wf_run(p));
    assert_contains(wf_plan_error(p), "target");
    float out[2];
    ck_assert(!wf_fetch(p, y, out, sizeof out));
    assert_fed(p, b, (float[]){ 3, 4 });
    assert_run(p);
    assert_fetched(p, y, out);
    ck_assert(out[0] == 4 && out[1] == 6);
    wf_plan_free(p);
    end_graph(g);
}

TEST(only_what_is_fetched_is_needed) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *a = wf_input(g, "a", WF_F32, SHAPE(2)), *b = wf_input(g, "b", WF_F32, SHAPE(2));
    wf_tensor *y = wf_neg(a), *z = wf_add(y, b);
    (void)z;
    wf_plan *p = plan_of(&y, 1, &a, 1);
    ck_assert_msg(wf_plan_ok(p), "%s", wf_plan_error(p));
    assert_fed(p, a, (float[]){ 1, 2 });
    assert_run(p);
    ck_assert_int_eq(wf_step_count(p), 1);
    float out[2];
    ck_assert(!wf_fetch(p, z, out, sizeof out));
    ck_assert(!wf_feed(p, b, out, sizeof out));
    assert_contains(wf_plan_error(p), "'b'");
    wf_plan_free(p);
    p = plan_of(&y, 1, (wf_tensor *[]){ a, b }, 2); /* a feed that nobody reads need not be given */
    assert_fed(p, a, (float[]){ 1, 2 });
    assert_run(p);
    wf_plan_free(p);
    end_graph(g);
}

static const char *const bad_options[] = { "fetch", "another graph", "NULL",         "NULL",
                                           "twice", "'w'",           "another graph" };

TEST_ROWS(bad_options_are_told, COUNT_OF(bad_options)) {
    wf_graph *g = new_graph(WF_F32), *h = new_graph(WF_F32);
    wf_tensor *w = wf_param(g, "w", SHAPE(2), wf_init_zeros()), *y = wf_neg(w),
              *in = wf_input(g, "in", WF_F32, SHAPE(2));
    wf_tensor *stranger = wf_param(h, "s", SHAPE(2), wf_init_zeros()), *none = NULL;
    wf_tensor *twice[] = { in, in };
    const wf_plan_options options[] = {
        { .fetch = NULL },
        { .fetch = &stranger, .n_fetch = 1 },
        { .fetch = &none, .n_fetch = 1 },
        { .fetch = &y, .n_fetch = 1, .feed = &none, .n_feed = 1 },
        { .fetch = &y, .n_fetch = 1, .feed = twice, .n_feed = 2 },
        { .fetch = &y, .n_fetch = 1, .feed = &w, .n_feed = 1 },
        { .fetch = &y, .n_fetch = 1, .feed = &stranger, .n_feed = 1 },
    };
    wf_plan *p = wf_plan_new(g, &options[_i]);
    ck_assert(!wf_plan_ok(p));
    assert_contains(wf_plan_error(p), bad_options[_i]);
    wf_plan_free(p);
    ck_assert_msg(wf_ok(g), "planning poisoned the graph");
    wf_graph_free(g), wf_graph_free(h);
}

/* A plan may fetch any tensor, not only computed ones: inputs that are fed, leaves, constants and
 * views. Each fetch returns the tensor's own value, a view's in the shape of the view. */
TEST(anything_can_be_fetched) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = wf_param(g, "w", SHAPE(2, 3), wf_init_constant(2)),
              *in = wf_input(g, "in", WF_F32, SHAPE(2, 3));
    wf_tensor *turned = wf_transpose(in, 0, 1), *c = wf_constant(g, 7),
              *y = wf_mul(wf_transpose(w, 0, 1), turned);
    wf_tensor *fetch[] = { w, in, turned, c, y, y };
    wf_plan *p = plan_of(fetch, 6, &in, 1);
    float data[] = { 1, 2, 3, 4, 5, 6 }, out[6], seven;
    assert_fed(p, in, data);
    assert_run(p);
    assert_fetched(p, w, out);
    ck_assert(out[0] == 2 && out[5] == 2);
    assert_fetched(p, in, out);
    ck_assert_mem_eq(out, data, sizeof data);
    assert_fetched(p, turned, out);
    ck_assert(out[0] == 1 && out[1] == 4 && out[2] == 2 && out[5] == 6);
    assert_fetched(p, c, &seven);
    ck_assert(seven == 7);
    assert_fetched(p, y, out);
    ck_assert(out[1] == 8);
    int64_t shape[WF_MAX_DIMS];
    ck_assert_int_eq(wf_bound_shape(p, y, shape), 2);
    ck_assert(shape[0] == 3 && shape[1] == 2);
    ck_assert_uint_eq(wf_bound_bytes(p, y), 24);
    wf_plan_free(p);
    end_graph(g);
}

/* If a computed tensor is fed, the nodes that would compute it are not run. */
TEST(anything_computed_can_be_fed) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *in = wf_input(g, "in", WF_F32, SHAPE(2, 2)), *h = wf_exp(in),
              *turned = wf_transpose(h, 0, 1);
    wf_tensor *y = wf_add(wf_neg(turned), h);
    wf_tensor *feed[] = { turned, h };
    wf_plan *p = plan_of(&y, 1, feed, 2);
    ck_assert_msg(wf_plan_ok(p), "%s", wf_plan_error(p));
    assert_fed(p, turned, (float[]){ 1, 2, 3, 4 });
    assert_fed(p, h, (float[]){ 10, 20, 30, 40 });
    assert_run(p);
    float out[4];
    assert_fetched(p, y, out);
    ck_assert(out[0] == 9 && out[1] == 18 && out[2] == 27 && out[3] == 36);
    wf_plan_free(p);
    p = plan_of(&turned, 1, &turned, 1); /* fed and fetched at once */
    assert_fed(p, turned, (float[]){ 1, 2, 3, 4 });
    assert_run(p);
    assert_fetched(p, turned, out);
    ck_assert(out[1] == 2);
    wf_plan_free(p);
    end_graph(g);
}

TEST(a_failed_run_is_followed_by_a_good_one) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *table = wf_param(g, "table", SHAPE(3, 2), wf_init_constant(1)),
              *ids = wf_input(g, "ids", WF_I32, SHAPE(2));
    const char *top = wf_scope(g, "src_embedding");
    wf_tensor *y = wf_embedding(table, ids);
    wf_scope(g, top);
    wf_plan *p = plan_of(&y, 1, &ids, 1);
    float out[4];
    assert_fed(p, ids, (int32_t[]){ 0, 3 });
    ck_assert(!wf_run(p));
    assert_contains(wf_plan_error(p), "src_embedding");
    assert_contains(wf_plan_error(p), "3");
    ck_assert(!wf_fetch(p, y, out, sizeof out));
    assert_fed(p, ids, (int32_t[]){ -1, 2 });
    ck_assert(!wf_run(p));
    assert_contains(wf_plan_error(p), "-1");
    assert_fed(p, ids, (int32_t[]){ 0, 2 });
    assert_run(p);
    assert_fetched(p, y, out);
    ck_assert(wf_ok(g) && out[3] == 1);
    wf_plan_free(p);
    end_graph(g);
}

/* ---- extents --------------------------------------------------------------------------------- */

static wf_tensor *model_of_rows(wf_graph *g, wf_tensor **x) {
    int64_t B = wf_extent(g, "B", 600), T = wf_extent(g, "T", 40);
    *x = wf_input(g, "x", wf_real(g), SHAPE(B, T, 4)); /* [B, T, 4] */
    double data[16];
    for (int i = 0; i < 16; i++) data[i] = number(5, (uint64_t)i) - 0.5;
    wf_tensor *w = param_of(g, "w", SHAPE(4, 4), data);
    wf_tensor *h = wf_tanh(wf_matmul(*x, w)); /* [B, T, 4] */
    wf_tensor *heads =
        wf_reshape(h, 4, (int64_t[]){ WF_KEEP, WF_KEEP, 2, WF_REST }); /* [B, T, 2, 2] */
    heads = wf_permute(heads, (int[]){ 0, 2, 1, 3 });                  /* [B, 2, T, 2] */
    wf_tensor *a =
        wf_attention(heads, heads, heads, NULL, &(wf_attention_options){ .causal = true });
    a = wf_reshape(wf_permute(a, (int[]){ 0, 2, 1, 3 }), 3,
                   (int64_t[]){ WF_KEEP, WF_KEEP, WF_REST });
    return wf_add(a, h); /* [B, T, 4] */
}

static float *rows_of(int64_t b, int64_t t) {
    float *data = malloc((size_t)(b * t * 4) * sizeof *data);
    ck_assert_ptr_nonnull(data);
    for (int64_t i = 0; i < b; i++)
        for (int64_t k = 0; k < t * 4; k++)
            data[i * t * 4 + k] = (float)number(6 + (uint64_t)i, (uint64_t)k);
    return data;
}

/* The test binds sizes in any order, and more of them than a plan remembers. A row must have the
 * same bits in every batch. */
TEST(extents_are_bound_again_and_again) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x, *y = model_of_rows(g, &x), *mean = wf_mean(y, WF_ALL_AXES, false);
    wf_plan *p = plan_of((wf_tensor *[]){ y, mean }, 2, &x, 1);
    static const int64_t size[][2] = { { 1, 7 }, { 3, 7 }, { 1, 1 }, { 600, 7 }, { 2, 9 },
                                       { 5, 7 }, { 4, 7 }, { 9, 7 }, { 8, 7 },   { 7, 7 },
                                       { 6, 7 }, { 3, 7 }, { 1, 7 } };
    float *first = NULL;
    for (int i = 0; i < COUNT_OF(size); i++) {
        int64_t b = size[i][0], t = size[i][1];
        ck_assert_msg(wf_bind(p, "B", b) && wf_bind(p, "T", t), "%s", wf_plan_error(p));
        float *data = rows_of(b, t), *out = malloc((size_t)(b * t * 4) * sizeof *out), average;
        ck_assert_ptr_nonnull(out);
        assert_fed(p, x, data);
        assert_run(p);
        assert_fetched(p, y, out);
        assert_fetched(p, mean, &average);
        double sum = 0;
        for (int64_t k = 0; k < b * t * 4; k++) sum += out[k];
        ck_assert_double_eq_tol(average, sum / (double)(b * t * 4), 1e-6);
        if (!first)
            first = malloc(7 * 4 * sizeof *first), memcpy(first, out, 7 * 4 * sizeof *first);
        if (t == 7) ck_assert_mem_eq(first, out, 7 * 4 * sizeof *first);
        free(data), free(out);
    }
    free(first), wf_plan_free(p);
    end_graph(g);
}

TEST(bad_bindings_are_told) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x, *y = model_of_rows(g, &x);
    wf_plan *p = plan_of(&y, 1, &x, 1);
    float data[4 * 4 * 4] = { 0 };
    ck_assert(!wf_feed(p, x, data, sizeof data));
    assert_contains(wf_plan_error(p), "'B'");
    ck_assert(!wf_bind(p, "B", 0) && !wf_bind(p, "B", -1) && !wf_bind(p, "B", 601));
    assert_contains(wf_plan_error(p), "601");
    assert_contains(wf_plan_error(p), "600");
    ck_assert(!wf_bind(p, "Z", 1));
    assert_contains(wf_plan_error(p), "'Z'");
    ck_assert(!wf_bind(p, NULL, 1));
    ck_assert(wf_bind(p, "B", 2) && !wf_run(p));
    assert_contains(wf_plan_error(p), "'T'");
    ck_assert(wf_bind(p, "T", 2));
    assert_fed(p, x, data);
    ck_assert(wf_bind(p, "T", 3));
    ck_assert(!wf_run(p)); /* fed for T = 2 */
    assert_contains(wf_plan_error(p), "'x'");
    assert_fed(p, x, data);
    assert_run(p);
    ck_assert(wf_bind(p, "B", 3) && !wf_fetch(p, y, data, sizeof data));
    wf_plan_free(p);
    end_graph(g);
}

/* ---- updates --------------------------------------------------------------------------------- */

/* The square sum of each tensor, a part of a norm, runs directly after the step that computes the
 * tensor, while its values are in the cache: not after all tensors are computed. */
TEST(numbers_run_behind_what_they_are_taken_of) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = wf_param(g, "w", SHAPE(3, 4), wf_init_constant(2)), *x[4], *sum = NULL;
    for (int i = 0; i < 4; i++) x[i] = wf_sigmoid(i ? x[i - 1] : w);
    for (int i = 3; i >= 0; i--) {
        wf_tensor *part = wf_square_sum(x[i]);
        sum = sum ? wf_add(sum, part) : part;
    }
    wf_plan *p = plan_of(&sum, 1, NULL, 0);
    assert_run(p);
    wf_step step, before;
    for (int i = 0, numbers = 0; wf_step_at(p, i, &step); i++) {
        bool part = strcmp(step.op->name, "square_sum") == 0;
        ck_assert(!part || (wf_step_at(p, i - 1, &before) && before.node == x[numbers++]));
        ck_assert(i + 1 < wf_step_count(p) || numbers == 4);
    }
    float out, y = 2, truth = 0;
    assert_fetched(p, sum, &out);
    for (int i = 0; i < 4; i++) y = 1 / (1 + expf(-y)), truth += 12 * y * y;
    ck_assert_float_eq_tol(out, truth, 1e-4);
    wf_plan_free(p);
    end_graph(g);
}

/* assign runs after every other reader of its leaf, views and updates included, and once. */
TEST(updates_run_last) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = wf_param(g, "w", SHAPE(2, 2), wf_init_constant(1)),
              *v = wf_buffer(g, "v", WF_F32, SHAPE(2, 2), wf_init_zeros());
    wf_tensor *first = wf_assign(w, wf_add(w, w)); /* recorded before other readers of w */
    wf_tensor *second = wf_assign(v, wf_transpose(w, 0, 1));
    wf_tensor *view = wf_slice(w, 0, 1, 2), *y = wf_scale(view, 10);
    wf_tensor *fetch[] = { first, second, y, view };
    wf_plan *p = plan_of(fetch, 4, NULL, 0);
    ck_assert_msg(wf_plan_ok(p), "%s", wf_plan_error(p));
    float out[4], seen[4] = { 1, 2, 4 };
    for (int run = 0; run < 3; run++) {
        assert_run(p);
        assert_fetched(p, y, out);
        ck_assert_float_eq(out[0], 10 * seen[run]);
        assert_fetched(p, view, out);
        ck_assert_float_eq(out[0], seen[run]);
        ck_assert(wf_read(v, out, 16) && out[3] == seen[run]);
        ck_assert(wf_read(w, out, 16) && out[0] == 2 * seen[run]);
    }
    wf_plan_free(p);
    end_graph(g);
}

/* y = x runs before x = z, in whichever order the two updates are recorded. */
TEST_ROWS(an_update_reads_what_another_has_not_written_yet, 2) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_param(g, "x", SHAPE(7), wf_init_normal(1)),
              *y = wf_param(g, "y", SHAPE(7), wf_init_normal(1)),
              *z = wf_param(g, "z", SHAPE(7), wf_init_normal(1)), *fetch[2];
    for (int i = 0; i < 2; i++) fetch[i] = i == _i ? wf_assign(y, x) : wf_assign(x, z);
    float was[7], now[7], third[7];
    ck_assert(wf_read(x, was, sizeof was) && wf_read(z, third, sizeof third));
    wf_plan *p = plan_of(fetch, 2, NULL, 0);
    assert_run(p);
    ck_assert(wf_read(y, now, sizeof now));
    ck_assert_mem_eq(now, was, sizeof now);
    ck_assert(wf_read(x, now, sizeof now));
    ck_assert_mem_eq(now, third, sizeof now);
    wf_plan_free(p);
    end_graph(g);
}

TEST(two_updates_of_one_leaf_are_refused) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = wf_param(g, "w", SHAPE(2), wf_init_constant(1));
    wf_tensor *fetch[] = { wf_assign(w, wf_neg(w)), wf_assign(w, wf_exp(w)) };
    wf_plan *p = plan_of(fetch, 2, NULL, 0);
    ck_assert(!wf_plan_ok(p));
    assert_contains(wf_plan_error(p), "'w'");
    wf_plan_free(p);
    end_graph(g);
}

TEST(a_failed_run_updates_nothing) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = wf_param(g, "w", SHAPE(2), wf_init_constant(1)),
              *x = wf_input(g, "x", WF_F32, SHAPE(2));
    wf_tensor *loss = wf_check_finite(total(wf_log(x)), "the loss");
    wf_tensor *fetch[] = { wf_assign(w, wf_neg(w)), loss };
    wf_plan *p = plan_of(fetch, 2, &x, 1);
    float out[2];
    assert_fed(p, x, (float[]){ -1, 2 });
    ck_assert(!wf_run(p));
    assert_contains(wf_plan_error(p), "the loss");
    ck_assert(wf_read(w, out, 8) && out[0] == 1);
    assert_fed(p, x, (float[]){ 1, 2 });
    assert_run(p);
    ck_assert(wf_read(w, out, 8) && out[0] == -1);
    wf_plan_free(p);
    end_graph(g);
}

TEST(leaves_are_shared_by_plans) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = wf_param(g, "w", SHAPE(2), wf_init_constant(3)), *y = wf_neg(w),
              *step = wf_assign(w, wf_scale(w, 2));
    wf_plan *look = plan_of(&y, 1, NULL, 0), *train = plan_of(&step, 1, NULL, 0);
    float out[2];
    ck_assert(wf_run(look) && wf_run(train) && wf_run(look) && wf_fetch(look, y, out, sizeof out) &&
              out[0] == -6);
    ck_assert(wf_write(w, (float[]){ 5, 5 }, 8) && wf_run(look) &&
              wf_fetch(look, y, out, sizeof out) && out[0] == -5);
    wf_plan_free(look), wf_plan_free(train);
    end_graph(g);
}

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct user {
    pthread_t thread;
    wf_plan *plan;
    wf_tensor *x, *y;
    float *data, *want;
    size_t bytes;
    bool ok;
} user;

static void *use(void *arg) {
    user *u = arg;
    float *out = malloc(u->bytes);
    u->ok = out != NULL;
    for (int i = 0; u->ok && i < 50; i++)
        u->ok = wf_feed(u->plan, u->x, u->data, wf_bound_bytes(u->plan, u->x)) && wf_run(u->plan) &&
                wf_fetch(u->plan, u->y, out, wf_bound_bytes(u->plan, u->y)) &&
                memcmp(out, u->want, u->bytes) == 0;
    free(out);
    return NULL;
}

/* Several plans of one graph run at once, with one shared pool and without a pool. Each must give
 * the same bits as alone. */
TEST(plans_run_side_by_side) {
    enum { USERS = 4, B = 16, T = 9, BYTES = B * T * 4 * sizeof(float) };
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x, *y = model_of_rows(g, &x);
    wf_pool *pool = wf_pool_new(3);
    user u[USERS];
    float *want = malloc(BYTES), *data = rows_of(B, T);
    ck_assert(want && pool);
    for (int i = 0; i < USERS; i++) {
        u[i] = (user){ .x = x, .y = y, .data = data, .want = want, .bytes = BYTES };
        u[i].plan = wf_plan_new(
            g,
            &(wf_plan_options){
                .fetch = &y, .n_fetch = 1, .feed = &x, .n_feed = 1, .pool = i % 2 ? pool : NULL });
        ck_assert(wf_bind(u[i].plan, "B", B) && wf_bind(u[i].plan, "T", T));
    }
    ck_assert(wf_feed(u[0].plan, x, data, wf_bound_bytes(u[0].plan, x)) && wf_run(u[0].plan) &&
              wf_fetch(u[0].plan, y, want, wf_bound_bytes(u[0].plan, y)));
    for (int i = 0; i < USERS; i++)
        ck_assert_int_eq(pthread_create(&u[i].thread, NULL, use, &u[i]), 0);
    for (int i = 0; i < USERS; i++) pthread_join(u[i].thread, NULL);
    for (int i = 0; i < USERS; i++) {
        ck_assert_msg(u[i].ok, "user %d: %s", i, wf_plan_error(u[i].plan));
        wf_plan_free(u[i].plan);
    }
    free(want), free(data), wf_pool_free(pool);
    end_graph(g);
}
