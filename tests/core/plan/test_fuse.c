/* tests/core/plan/test_fuse.c - groups of calls, row by row or side by side: which form, and that nobody can
 * tell them from single calls.
 *
 * While a profile is on, every call of a plan runs by itself: that is what groups are compared
 * with. */
#include <stdio.h>

#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(fuse)

enum { B = 24, T = 24, D = 40, LAYERS = 24, FETCHED = 16 };

/* How many groups of a kind a plan has, and the steps in them. */
static int count_groups(wf_plan *p, bool beside, int *members) {
    wf_step step;
    int groups = 0;
    *members = 0;
    for (int i = 0; wf_step_at(p, i, &step); i += step.fused)
        if (step.fused > 1 && step.beside == beside) groups++, *members += step.fused;
    return groups;
}

/* ---- random graphs --------------------------------------------------------------------------- */

typedef struct builder {
    wf_graph *g;
    uint64_t key, drawn;
    wf_tensor *x[LAYERS + 1], *weight, *half, *row, *gain;
    int n;
} builder;

static int draw(builder *b, int below) {
    return (int)(number(b->key, b->drawn++) * below);
}

static wf_tensor *any(builder *b) {
    return b->x[draw(b, b->n)];
}

static wf_tensor *heads(wf_tensor *x) {
    wf_tensor *split = wf_reshape(x, 4, (int64_t[]){ B, T, 4, D / 4 });
    return wf_permute(split, (int[]){ 0, 2, 1, 3 });
}

static wf_tensor *attend(builder *b, wf_tensor *x) {
    wf_attention_options o = { .causal = draw(b, 2), .dropout = 0.1 * draw(b, 2) };
    wf_tensor *y = wf_attention(heads(x), heads(any(b)), heads(any(b)), NULL, &o);
    return wf_reshape(wf_permute(y, (int[]){ 0, 2, 1, 3 }), 3, (int64_t[]){ B, T, D });
}

/* Half of these go row by row; the others read all of an x, or see it in another shape. */
static wf_tensor *layer(builder *b) {
    wf_tensor *x = any(b);
    char site[8];
    int from = draw(b, D / 2);
    snprintf(site, sizeof site, "%d", b->n);
    switch (draw(b, 13)) {
    case 0:
        return wf_add(x, any(b));
    case 1:
        return wf_mul(wf_relu(x), b->row);
    case 2:
        return wf_layer_norm(x, b->gain, b->row, 1e-5);
    case 3:
        return wf_gemm(x, b->weight, b->row, WF_TRANSPOSE_B);
    case 4:
        return wf_dropout(x, 0.3, site);
    case 5:
        return wf_matmul(wf_slice(x, 2, from, from + D / 2), b->half);
    case 6:
        return attend(b, x);
    case 7:
        return wf_where(wf_greater(wf_detach(x), wf_detach(any(b))), x, any(b));
    case 8:
        return wf_softmax(x, NULL, false);
    case 9:
        return wf_mul(x, wf_mean(any(b), WF_ALL_AXES, false));
    case 10:
        return wf_add(x, wf_slice(any(b), 0, 3, 4));
    case 11:
        return wf_add(x, wf_transpose(any(b), 0, 1));
    default:
        return wf_gemm(wf_relu(wf_gemm(x, b->weight, b->row, 0)), b->weight, x, 0);
    }
}

static wf_tensor *random_param(builder *b, const char *name, int ndim, const int64_t *shape) {
    double x[B * T * D];
    int64_t n = 1;
    for (int i = 0; i < ndim; i++) n *= shape[i];
    for (int64_t i = 0; i < n; i++) x[i] = number(key_of(name, b->key), (uint64_t)i) - 0.5;
    return param_of(b->g, name, ndim, shape, x);
}

/* A loss, some of what is on the way to it, and the gradients of all parameters. Returns their
 * number. */
static int record(builder *b, uint64_t key, wf_dtype real, wf_tensor **fetch) {
    *b = (builder){ .g = new_graph(real), .key = key, .n = 1 };
    wf_tensor *params[] = { b->x[0] = random_param(b, "x", SHAPE(B, T, D)),
                            b->weight = random_param(b, "weight", SHAPE(D, D)),
                            b->half = random_param(b, "half", SHAPE(D / 2, D)),
                            b->row = random_param(b, "row", SHAPE(D)),
                            b->gain = random_param(b, "gain", SHAPE(D)) };
    int n = 0;
    for (; b->n <= LAYERS; b->n++) {
        b->x[b->n] = wf_layer_norm(layer(b), NULL, NULL, 1e-5); /* so that nothing explodes */
        if (draw(b, 12) == 0 && n < 6) fetch[n++] = b->x[b->n];
    }
    fetch[n] = wf_sum(wf_square(wf_add(b->x[LAYERS], any(b))), WF_ALL_AXES, false);
    ck_assert_msg(wf_grad(fetch[n], params, COUNT_OF(params), fetch + n + 1), "%s", wf_error(b->g));
    return n + 1 + COUNT_OF(params);
}

TEST_ROWS(groups_have_the_bits_of_single_calls, 40) {
    wf_tensor *fetch[FETCHED];
    builder b;
    int n = record(&b, (uint64_t)_i, _i % 4 ? WF_F32 : WF_F64, fetch), members;
    for (int threads = 1; threads <= 3; threads += 2) {
        wf_pool *pool = wf_pool_new(threads);
        wf_plan *p = wf_plan_new(
            b.g,
            &(wf_plan_options){ .fetch = fetch, .n_fetch = n, .pool = pool, .training = true });
        values alone[FETCHED], grouped[FETCHED];
        for (int together = 0; together < 2; together++) {
            wf_profile(p, !together);
            wf_random_step(p, 0, 0);
            assert_plan(p, wf_run(p));
            for (int i = 0; i < n; i++) (together ? grouped : alone)[i] = fetched(p, fetch[i]);
        }
        ck_assert_int_gt(count_groups(p, false, &members), 0);
        for (int i = 0; i < n; i++)
            ck_assert_msg(same_bits(alone[i], grouped[i]), "%s %d of %d, %d threads",
                          fetch[i]->op->name, i, n, threads);
        free_values(alone, n), free_values(grouped, n);
        wf_plan_free(p), wf_pool_free(pool);
    }
    end_graph(b.g);
}

/* ---- which form ------------------------------------------------------------------------------ */

static int groups_of(wf_tensor *y, bool beside, int *members) {
    wf_plan *p = wf_plan_new(y->graph, &(wf_plan_options){ .fetch = &y, .n_fetch = 1 });
    int groups = count_groups(p, beside, members);
    ck_assert_msg(wf_plan_ok(p), "%s", wf_plan_error(p));
    wf_plan_free(p);
    return groups;
}

TEST(what_needs_other_rows_is_not_in_the_group) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_param(g, "x", SHAPE(B, T, D), wf_init_normal(1));
    wf_tensor *row = wf_param(g, "row", SHAPE(D), wf_init_normal(1));
    int members;
    wf_tensor *chain = wf_relu(wf_add(wf_layer_norm(x, row, row, 1e-5), row));
    ck_assert_int_eq(groups_of(chain, false, &members), 1);
    ck_assert_int_eq(members, 3);
    wf_tensor *first = wf_slice(chain, 0, 0, 1); /* [1,T,D]: one row for all */
    ck_assert_int_eq(groups_of(wf_add(chain, first), false, &members), 1);
    ck_assert_int_eq(members, 3);
    wf_tensor *turned = wf_reshape(chain, 2, (int64_t[]){ B * T, D }); /* rows of another kind */
    ck_assert_int_eq(groups_of(wf_relu(wf_neg(turned)), false, &members), 2);
    ck_assert_int_eq(members, 5);
    wf_tensor *square = wf_relu(wf_neg(x)), *other_rows = wf_transpose(square, 0, 1); /* B = T */
    ck_assert_int_eq(groups_of(wf_add(square, other_rows), false, &members), 1);
    ck_assert_int_eq(members, 2);
    /* a sum over the rows comes after both sides of it */
    wf_tensor *mean = wf_mean(chain, WF_AXIS(0), false);
    wf_tensor *other_side = wf_neg(wf_mul(chain, row));
    wf_tensor *both =
        wf_mul(wf_sum(other_side, WF_ALL_AXES, false), wf_sum(mean, WF_ALL_AXES, false));
    ck_assert_int_eq(groups_of(both, false, &members), 1);
    ck_assert_int_eq(members, 5);
    end_graph(g);
}

TEST(few_rows_and_small_calls_stay_alone) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *few = wf_param(g, "few", SHAPE(3, 400, D), wf_init_normal(1));
    wf_tensor *small = wf_param(g, "small", SHAPE(B, 2, D), wf_init_normal(1));
    wf_tensor *large = wf_param(g, "large", SHAPE(64, 200, D), wf_init_normal(1));
    wf_tensor *x[] = { few, small, large };
    int members;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(groups_of(wf_relu(wf_neg(x[i])), false, &members), 0);
    end_graph(g);
}

TEST(what_needs_nothing_of_each_other_runs_side_by_side) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *sum = NULL, *x[8];
    char name[8];
    int members;
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "x%d", i);
        x[i] = wf_param(g, name, SHAPE(3, 5), wf_init_normal(1));
        wf_tensor *one = wf_exp(wf_sum(x[i], WF_ALL_AXES, false)); /* after its own sum */
        sum = sum ? wf_add(sum, one) : one;
    }
    ck_assert_int_eq(groups_of(sum, true, &members), 2);
    ck_assert_int_eq(members, 16);
    wf_tensor *fetch[8];
    for (int i = 0; i < 8; i++) fetch[i] = wf_assign(x[i], wf_exp(x[(i + 3) % 8]));
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = fetch, .n_fetch = 8 });
    /* values first, and no update before another one's value is read */
    ck_assert_int_eq(count_groups(p, true, &members), 2);
    ck_assert_int_eq(members, 16);
    wf_plan_free(p);
    end_graph(g);
}

/* Of updates each leaf belongs to one: the second to touch it comes later. */
TEST(updates_that_share_a_leaf_are_apart) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_param(g, "x", SHAPE(7), wf_init_normal(1));
    wf_tensor *y = wf_param(g, "y", SHAPE(7), wf_init_normal(1));
    wf_tensor *z = wf_param(g, "z", SHAPE(7), wf_init_normal(1));
    wf_tensor *fetch[] = { wf_assign(y, x), wf_assign(x, z) };
    float was[7], now[7], third[7];
    int members;
    ck_assert(wf_read(x, was, sizeof was) && wf_read(z, third, sizeof third));
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = fetch, .n_fetch = 2 });
    ck_assert_int_eq(count_groups(p, true, &members), 0);
    assert_plan(p, wf_run(p));
    ck_assert(wf_read(y, now, sizeof now));
    ck_assert_mem_eq(now, was, sizeof now);
    ck_assert(wf_read(x, now, sizeof now));
    ck_assert_mem_eq(now, third, sizeof now);
    wf_plan_free(p);
    end_graph(g);
}

/* ---- what ops may rely on -------------------------------------------------------------------- */

/* x twice over; one phase of one task, and it must not be asked again after its end. */
static int asked_too_often, evaluated;

static bool shape_twice(wf_call *c) {
    wf_set_shape(&c->out[0], c->in[0].dtype, c->in[0].ndim, c->in[0].shape);
    return true;
}

static int64_t tasks_twice(const wf_call *c, int phase) {
    (void)c;
    asked_too_often += phase > 1;
    return phase == 0;
}

static bool eval_twice(const wf_call *c, int phase, int64_t task, void *scratch) {
    (void)phase, (void)task, (void)scratch;
    evaluated++;
    for (int64_t i = 0; i < wf_view_count(&c->in[0]); i++)
        ((float *)c->out[0].data)[i] = 2 * ((const float *)c->in[0].data)[i];
    return true;
}

TEST(a_call_that_has_ended_is_not_asked_again) {
    static const wf_kernel run = { .tasks = tasks_twice, .eval = eval_twice };
    static const wf_op twice = {
        .name = "twice", .arity = 1, .shape = shape_twice, .no_grad = "a test", .run = &run
    };
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_param(g, "x", SHAPE(3, 5), wf_init_normal(1));
    wf_tensor *ids = ids_of(g, "ids", SHAPE(4), (int32_t[]){ 2, 0, 1, 2 });
    wf_tensor *dy = wf_param(g, "dy", SHAPE(4, 5), wf_init_normal(1)), *grad;
    wf_tensor *rows = wf_embedding(x, ids);
    ck_assert(wf_vjp(&rows, &dy, 1, &x, 1, &grad)); /* two phases */
    wf_tensor *fetch[] = { wf_record(&twice, 1, &x, NULL), grad };
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = fetch, .n_fetch = 2 });
    int members;
    ck_assert_int_eq(count_groups(p, true, &members), 1);
    ck_assert_int_eq(members, 2);
    asked_too_often = evaluated = 0; /* a profile's question is another */
    assert_plan(p, wf_run(p));
    ck_assert_int_eq(asked_too_often, 0);
    ck_assert_int_eq(evaluated, 1);
    wf_plan_free(p);
    end_graph(g);
}

/* However they are shared out, it is the first of the calls that fail which is named. */
TEST(the_first_that_fails_is_named) {
    wf_graph *g = new_graph(WF_F32);
    const char *const names[] = { "early", "late" };
    wf_tensor *fetch[2];
    for (int i = 0; i < 2; i++) {
        const char *outer = wf_scope_push(g, names[i]);
        wf_tensor *table = wf_param(g, "table", SHAPE(60 + i, 40), wf_init_normal(1));
        int32_t ids[2000] = { 0 };
        ids[i ? 0 : 1999] = 600 + i;
        fetch[i] = wf_embedding(table, ids_of(g, "ids", SHAPE(2000), ids));
        wf_scope(g, outer);
    }
    wf_pool *pool = wf_pool_new(2);
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = fetch, .n_fetch = 2, .pool = pool });
    int members;
    ck_assert_int_eq(count_groups(p, true, &members), 1);
    for (int i = 0; i < 200; i++) {
        ck_assert(!wf_run(p));
        ck_assert_str_eq(wf_plan_error(p), "early: embedding: id 600 at [1999] is outside 0..59");
    }
    wf_plan_free(p), wf_pool_free(pool);
    end_graph(g);
}

/* ---- a Transformer --------------------------------------------------------------------------- */

static wf_transformer *trained(int threads, bool alone, wf_optimizer_kind kind) {
    static sentences b;
    wf_transformer_config c = small_config();
    c.d_model = 32, c.num_heads = 4, c.dim_feedforward = 64;
    wf_training_config training = { .dropout = 0.1,
                                    .attention_dropout = 0.1,
                                    .activation_dropout = 0.1,
                                    .optimizer = wf_optimizer_defaults(kind) };
    training.optimizer.unguarded = kind == WF_ADAM;
    wf_transformer *m = open_model(&c, &training, WF_F32, 3);
    wf_pool *pool = wf_pool_new(threads);
    wf_plan *p = wf_transformer_train_plan(m, pool);
    int members;
    wf_profile(p, alone);
    for (int step = 1; step <= 3; step++) {
        random_sentences(&b, &c, 48, 13, 17, (uint64_t)step);
        train_step(p, m, &b, step, 1e-2);
        ck_assert_int_gt(count_groups(p, false, &members), 3);
        ck_assert_int_gt(members, 40);
        ck_assert_int_gt(count_groups(p, true, &members), 5);
        ck_assert_int_gt(members, 30); /* gradients of weights, their norms, updates */
    }
    wf_plan_free(p), wf_pool_free(pool);
    return m;
}

TEST_ROWS(training_in_groups_is_the_same_training, 2) {
    static const wf_optimizer_kind kinds[] = { WF_ADAMW, WF_ADAM };
    wf_transformer *m = trained(1, true, kinds[_i]);
    for (int threads = 1; threads <= 5; threads += threads == 1 ? 1 : 3) {
        wf_transformer *other = trained(threads, false, kinds[_i]);
        wf_tensor *x[256], *y[256];
        int n = wf_parameters(m->graph, x, 256);
        ck_assert_int_eq(wf_parameters(other->graph, y, 256), n);
        for (int i = 0; i < n; i++) {
            values v[] = { { wf_count(x[i]), leaf_values(x[i]) },
                           { wf_count(y[i]), leaf_values(y[i]) } };
            ck_assert_msg(same_bits(v[0], v[1]), "%s, %d threads", x[i]->name, threads);
            free_values(v, 2);
        }
        close_model(other);
    }
    close_model(m);
}

/* ---- a call of a group fails ----------------------------------------------------------------- */

static bool shape_checked(wf_call *c) {
    wf_set_shape(&c->out[0], WF_F32, c->in[0].ndim, c->in[0].shape);
    return true;
}

static int64_t tasks_checked(const wf_call *c, int phase) {
    return phase == 0 ? c->out[0].shape[0] : 0;
}

/* One row of two. */
static bool eval_checked(const wf_call *c, int phase, int64_t task, void *scratch) {
    const float *x = (const float *)c->in[0].data + 2 * task;
    (void)phase, (void)scratch;
    for (int i = 0; i < 2; i++)
        if (x[i] < 0) return wf_fail(c, "%g is negative", (double)x[i]);
    memcpy((float *)c->out[0].data + 2 * task, x, 2 * sizeof *x);
    return true;
}

static uint32_t all_by_rows(const wf_call *c) {
    (void)c;
    return 1;
}

static const wf_kernel run_checked = { .tasks = tasks_checked,
                                       .eval = eval_checked,
                                       .by_rows = all_by_rows };
static const wf_op op_checked = {
    .name = "checked", .arity = 1, .shape = shape_checked, .run = &run_checked
};

static wf_tensor *checked(const char *scope, wf_tensor *x) {
    wf_scope(x->graph, scope);
    return wf_record(&op_checked, 1, &x, NULL);
}

TEST_ROWS(who_failed_in_a_group_is_named, 2) {
    static const struct {
        float x;
        const char *says; /* NULL: nothing fails */
    } rows[] = { { 1, "second: checked: -1 is negative" },
                 { -2, "first: checked: -2 is negative" },
                 { 0, NULL } };
    wf_pool *pool = wf_pool_new(1 + 2 * _i);
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *in = wf_input(g, "x", WF_F32, SHAPE(8, 2));
    wf_tensor *y = wf_exp(checked("second", wf_neg(checked("first", in))));
    wf_plan *p = wf_plan_new(
        g, &(wf_plan_options){ .fetch = &y, .n_fetch = 1, .feed = &in, .n_feed = 1, .pool = pool });
    int members;
    ck_assert_int_eq(count_groups(p, false, &members), 1);
    ck_assert_int_eq(members, 4);
    for (int i = 0; i < COUNT_OF(rows); i++) {
        float x[16] = { 0 }, out[16] = { 0 };
        x[11] = rows[i].x;
        ck_assert(wf_feed(p, in, x));
        ck_assert_msg(wf_run(p) == !rows[i].says, "%s", wf_plan_error(p));
        if (rows[i].says) ck_assert_str_eq(wf_plan_error(p), rows[i].says);
        if (!rows[i].says) ck_assert(wf_fetch(p, y, out) && out[11] == 1);
    }
    wf_plan_free(p), wf_pool_free(pool);
    end_graph(g);
}
