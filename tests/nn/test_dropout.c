/* tests/nn/test_dropout.c - the random bits of dropout: new ones in every run and at every site
 * (each use of dropout), but the same ones again if a program sets the same run and names the same
 * site. */
#include "nn/nn.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(dropout)

enum { N = 1000, RUNS = 3 };

static wf_plan *training_plan(wf_tensor *const *fetch, int n, wf_pool *pool) {
    wf_plan *p = wf_plan_new(
        fetch[0]->graph,
        &(wf_plan_options){ .fetch = fetch, .n_fetch = n, .pool = pool, .training = true });
    ck_assert_msg(wf_plan_ok(p), "%s", wf_plan_error(p));
    return p;
}

static void draw(wf_plan *p, const wf_tensor *y, float *out) {
    ck_assert_msg(wf_run(p) && wf_fetch(p, y, out, wf_bound_bytes(p, y)), "%s", wf_plan_error(p));
}

static int differing(const float *a, const float *b) {
    int n = 0;
    for (int i = 0; i < N; i++) n += a[i] != b[i];
    return n;
}

static wf_tensor *ones(wf_graph *g) {
    return wf_param(g, "x", SHAPE(N), wf_init_constant(1));
}

/* ---- runs ------------------------------------------------------------------------------------ */

TEST(every_run_draws_anew) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *y = wf_dropout(ones(g), 0.5, "here");
    float first[RUNS][N], again[RUNS][N];
    wf_plan *p = training_plan(&y, 1, NULL), *q = training_plan(&y, 1, NULL);
    for (int i = 0; i < RUNS; i++) draw(p, y, first[i]);
    for (int i = 0; i < RUNS; i++) draw(q, y, again[i]);
    for (int i = 0; i < RUNS; i++) ck_assert_int_eq(differing(first[i], again[i]), 0);
    for (int i = 0; i < RUNS; i++)
        for (int j = 0; j < i; j++) {
            int n = differing(first[i], first[j]);
            ck_assert_msg(n > N * 2 / 5 && n < N * 3 / 5, "runs %d and %d: %d differ", i, j, n);
        }
    wf_plan_free(p), wf_plan_free(q);
    end_graph(g);
}

TEST(counting_goes_on_from_where_it_is_set) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *y = wf_dropout(ones(g), 0.5, "here");
    float at[8][N], got[N];
    wf_plan *p = training_plan(&y, 1, NULL);
    for (int i = 0; i < 8; i++) draw(p, y, at[i]);
    wf_random_step(p, 5, 0);
    for (int i = 5; i < 8; i++) {
        draw(p, y, got);
        ck_assert_int_eq(differing(at[i], got), 0);
    }
    wf_random_step(p, 5, 1); /* micro-batch 1, also for the next runs, 6, 7, ... */
    draw(p, y, got);
    ck_assert_int_gt(differing(at[5], got), 0);
    draw(p, y, at[0]);
    ck_assert_int_gt(differing(at[6], at[0]), 0);
    wf_random_step(p, 6, 1);
    draw(p, y, got);
    ck_assert_int_eq(differing(at[0], got), 0);
    wf_plan_free(p);
    end_graph(g);
}

/* A failed run is not counted: the next run has its random bits. */
TEST(failed_runs_do_not_count) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(N)), *y = wf_dropout(x, 0.5, "here");
    wf_tensor *checked = wf_check_finite(wf_sum(x, WF_ALL_AXES, false), "x");
    float data[N], at[2][N], got[N];
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = (wf_tensor *[]){ y, checked },
                                                    .n_fetch = 2,
                                                    .feed = &x,
                                                    .n_feed = 1,
                                                    .training = true });
    for (int i = 0; i < N; i++) data[i] = 1;
    ck_assert(wf_feed(p, x, data, sizeof data));
    draw(p, y, at[0]), draw(p, y, at[1]);
    wf_random_step(p, 1, 0);
    data[7] = NAN;
    ck_assert(wf_feed(p, x, data, sizeof data) && !wf_run(p));
    data[7] = 1;
    ck_assert(wf_feed(p, x, data, sizeof data));
    draw(p, y, got);
    ck_assert_int_eq(differing(at[1], got), 0);
    wf_plan_free(p);
    end_graph(g);
}

/* The gradient passes the elements that the forward pass kept, in every run and with any
 * threads. */
TEST(a_gradient_has_the_mask_of_its_forward) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = ones(g), *y = wf_dropout(wf_dropout(x, 0.5, NULL), 0.3, NULL), *grad;
    ck_assert(wf_grad(wf_sum(y, WF_ALL_AXES, false), &x, 1, &grad));
    wf_tensor *fetch[] = { y, grad };
    float kept[RUNS][N], value[N], slope[N];
    for (int threads = 1; threads <= 5; threads += 2) {
        wf_pool *pool = wf_pool_new(threads);
        wf_plan *p = training_plan(fetch, 2, pool);
        wf_profile(p, threads == 3);
        for (int run = 0; run < RUNS; run++) {
            draw(p, y, value);
            ck_assert(wf_fetch(p, grad, slope, sizeof slope));
            ck_assert_int_eq(differing(value, slope), 0); /* y = m x with x = 1, dx = m */
            if (threads == 1) memcpy(kept[run], value, sizeof value);
            ck_assert_int_eq(differing(kept[run], value), 0);
        }
        wf_plan_free(p), wf_pool_free(pool);
    }
    end_graph(g);
}

/* ---- places ---------------------------------------------------------------------------------- */

TEST(places_without_a_name_are_numbered) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = ones(g), *y[9];
    y[0] = wf_dropout(x, 0.5, NULL), y[1] = wf_dropout(x, 0.5, NULL);
    y[2] = wf_dropout(x, 0.5, NULL);
    const char *outer = wf_scope_push(g, "elsewhere");
    y[3] = wf_dropout(x, 0.5, NULL);
    wf_scope(g, outer);
    y[4] = wf_dropout(x, 0.5, NULL); /* numbered after y[2], in the same scope */
    y[5] = wf_drop(x, 0.5, "name"), y[6] = wf_drop(x, 0.5, "name");
    y[7] = wf_dropout(x, 0.5, "site"), y[8] = wf_dropout(x, 0.5, "site");
    float drawn[9][N];
    wf_plan *p = training_plan(y, 9, NULL);
    ck_assert(wf_run(p));
    for (int i = 0; i < 9; i++) ck_assert(wf_fetch(p, y[i], drawn[i], wf_bound_bytes(p, y[i])));
    for (int i = 0; i < 9; i++)
        for (int j = 0; j < i; j++) {
            int n = differing(drawn[i], drawn[j]);
            if (i == 8 && j == 7)
                ck_assert_int_eq(n, 0); /* one site, asked for twice by its name */
            else
                ck_assert_msg(n > N * 2 / 5 && n < N * 3 / 5, "%d and %d: %d differ", i, j, n);
        }
    wf_plan_free(p);
    end_graph(g);
}

enum { HEADS = 2, LENGTH = 8, WIDTH = 16 };

static void attentions(bool with_weights, float *out) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_param(g, "x", SHAPE(1, LENGTH, WIDTH), wf_init_normal(1)), *seen;
    struct wf_mha_layer l = wf_mha_new(g, "mha", WIDTH, HEADS, 0, true, 0.5);
    wf_mha_options o = { .weights = with_weights ? &seen : NULL };
    wf_tensor *y[] = { wf_mha(&l, x, x, &o), wf_mha(&l, x, x, &o) };
    wf_plan *p = training_plan(y, 2, NULL);
    ck_assert(wf_run(p));
    for (int i = 0; i < 2; i++)
        ck_assert(wf_fetch(p, y[i], out + i * LENGTH * WIDTH, wf_bound_bytes(p, y[i])));
    wf_plan_free(p);
    end_graph(g);
}

/* A layer that is used twice drops other attention weights the second time. Fetching the weights
 * changes nothing. */
TEST(each_use_of_a_layer_draws_anew) {
    float plain[2 * LENGTH * WIDTH], looked_at[2 * LENGTH * WIDTH];
    attentions(false, plain), attentions(true, looked_at);
    ck_assert(memcmp(plain, looked_at, sizeof plain) == 0);
    ck_assert(memcmp(plain, plain + LENGTH * WIDTH, sizeof plain / 2) != 0);
}
