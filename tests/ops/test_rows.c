/* tests/ops/test_rows.c - tables updated by the rows that were read: the bits of a step with a
 * gradient of the whole table, and which plans are spared that gradient.
 *
 * Values and shapes of the two ops are rows of op_cases_training.inc and op_cases_reduce.inc. */
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(rows)

static int count_steps(wf_plan *p, const char *op) {
    wf_step step;
    int n = 0;
    for (int i = 0; wf_step_at(p, i, &step); i++) n += strcmp(step.op->name, op) == 0;
    return n;
}

/* ---- one table ------------------------------------------------------------------------------- */

typedef struct table {
    wf_graph *g;
    wf_tensor *leaf[3]; /* the table, m, v: [rows, width] */
    wf_tensor *ids;     /* an input, [2, n] */
    wf_tensor *grad;    /* of the table, from given dy */
    wf_tensor *step, *norm;
} table;

static void open_table(table *t, wf_dtype real, int64_t rows, int64_t width, int64_t n) {
    wf_graph *g = t->g = new_graph(real);
    wf_init at_random = wf_init_uniform(1), positive = wf_init_constant(0.04);
    t->leaf[0] = wf_param(g, "table", SHAPE(rows, width), at_random);
    t->leaf[1] = wf_buffer(g, "m", real, SHAPE(rows, width), at_random);
    t->leaf[2] = wf_buffer(g, "v", real, SHAPE(rows, width), positive);
    t->ids = wf_input(g, "ids", WF_I32, SHAPE(2, n));
    wf_tensor *dy = wf_neg(wf_param(g, "dy", SHAPE(2, n, width), at_random)),
              *rates = param_of(g, "rates", SHAPE(3), (double[]){ 0.01, 1.5, 1.25 }),
              *scale = wf_constant(g, 0.3), *y = wf_embedding(t->leaf[0], t->ids);
    wf_vjp(&y, &dy, 1, t->leaf, 1, &t->grad);
    wf_tensor **leaf = t->leaf;
    t->step = wf_adam_step(leaf[0], leaf[1], leaf[2], t->grad, scale, rates, NULL);
    t->norm = wf_sum(wf_square_sums(t->grad), WF_ALL_AXES, false);
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
}

static wf_plan *plan_as(table *t, wf_tensor *const *fetch, int n, wf_pool *pool, bool as_recorded) {
    wf_plan *p = wf_plan_new(t->g, &(wf_plan_options){ .fetch = fetch,
                                                       .n_fetch = n,
                                                       .feed = &t->ids,
                                                       .n_feed = 1,
                                                       .pool = pool,
                                                       .as_recorded = as_recorded });
    ck_assert_msg(wf_plan_ok(p), "%s", wf_plan_error(p));
    return p;
}

static wf_plan *plan_of(table *t, wf_tensor *const *fetch, int n) {
    return plan_as(t, fetch, n, NULL, false);
}

enum { MAX_IDS = 1024 };

/* The first rows often, the last one never. */
static void draw_ids(int32_t *ids, int64_t n, int64_t rows, uint64_t key) {
    ck_assert(n <= MAX_IDS);
    for (int64_t i = 0; i < n; i++) {
        double u = number(key, (uint64_t)i);
        ids[i] = (int32_t)(u * u * (double)(rows - 1));
    }
}

static const struct {
    int64_t rows, width, n;
} sizes[] = { { 7, 5, 3 },      { 3, 70, 45 },  { 20, 64, 160 }, { 601, 67, 200 },
              { 5000, 3, 350 }, { 5, 4999, 4 }, { 300, 512, 40 } };

/* The leaves after two steps, each with ids of its own, and the sum of squares of the second. */
static void stepped(int size, wf_dtype real, bool by_rows, int threads, values *out) {
    static int32_t ids[MAX_IDS];
    table t;
    wf_pool *pool = threads > 1 ? wf_pool_new(threads) : NULL;
    open_table(&t, real, sizes[size].rows, sizes[size].width, sizes[size].n);
    wf_plan *p = plan_as(&t, (wf_tensor *[]){ t.step, t.norm }, 2, pool, !by_rows);
    ck_assert_int_eq(count_steps(p, "embedding_backward"), !by_rows);
    ck_assert_int_eq(count_steps(p, "rows_square_sums"), by_rows);
    ck_assert_int_eq(count_steps(p, "adam_rows_step"), by_rows);
    for (uint64_t step = 1; step <= 2; step++) {
        draw_ids(ids, 2 * sizes[size].n, sizes[size].rows, step);
        assert_plan(p, wf_feed(p, t.ids, ids, wf_bound_bytes(p, t.ids)) && wf_run(p));
    }
    for (int i = 0; i < 3; i++) out[i] = (values){ wf_count(t.leaf[i]), leaf_values(t.leaf[i]) };
    out[3] = fetched(p, t.norm);
    wf_plan_free(p), wf_pool_free(pool);
    end_graph(t.g);
}

TEST_ROWS(rows_get_the_bits_of_the_dense_step, COUNT_OF(sizes)) {
    static const int threads[] = { 1, 2, 5 };
    for (int type = WF_F32; type <= WF_F64; type++) {
        values want[4], have[4];
        stepped(_i, (wf_dtype)type, false, 1, want);
        for (int k = 0; k < COUNT_OF(threads); k++) {
            stepped(_i, (wf_dtype)type, true, threads[k], have);
            for (int i = 0; i < 4; i++)
                ck_assert_msg(same_bits(want[i], have[i]), "leaf %d, type %d, %d threads", i, type,
                              threads[k]);
            free_values(have, 4);
        }
        free_values(want, 4);
    }
}

/* Whoever wants the gradient gets it; the step is the same. */
TEST(a_gradient_that_is_fetched_is_there) {
    int32_t ids[] = { 1, 4, 1, 1, 0, 5 };
    table t;
    open_table(&t, WF_F64, 7, 5, 3);
    wf_plan *alone = plan_of(&t, &t.grad, 1),
            *both = plan_of(&t, (wf_tensor *[]){ t.step, t.norm, t.grad }, 3);
    assert_plan(alone, wf_feed(alone, t.ids, ids, sizeof ids) && wf_run(alone));
    assert_plan(both, wf_feed(both, t.ids, ids, sizeof ids) && wf_run(both));
    ck_assert_int_eq(count_steps(both, "embedding_backward"), 1);
    ck_assert_int_eq(count_steps(both, "adam_rows_step") + count_steps(both, "rows_square_sums"),
                     0);
    values want = fetched(alone, t.grad), have = fetched(both, t.grad),
           norm = fetched(both, t.norm);
    double squares = 0;
    for (int64_t i = 0; i < want.count; i++) squares += want.data[i] * want.data[i];
    ck_assert(same_bits(want, have));
    ck_assert_double_eq_tol(norm.data[0], squares, 1e-12);
    free_values(&want, 1), free_values(&have, 1), free_values(&norm, 1);
    wf_plan_free(alone), wf_plan_free(both);
    end_graph(t.g);
}

TEST_ROWS(an_id_out_of_range_changes_nothing, 2) {
    int32_t ids[] = { 1, 4, 1, 6, 7, 0 };
    table t;
    values before[3], after[3];
    open_table(&t, WF_F32, 7, 5, 3);
    for (int i = 0; i < 3; i++) before[i] = (values){ wf_count(t.leaf[i]), leaf_values(t.leaf[i]) };
    wf_plan *p = plan_of(&t, _i ? &t.norm : &t.step, 1);
    ck_assert(wf_feed(p, t.ids, ids, sizeof ids) && !wf_run(p));
    assert_contains(wf_plan_error(p), "id 7 at [1,1] is outside 0..6");
    ids[4] = -1;
    ck_assert(wf_feed(p, t.ids, ids, sizeof ids) && !wf_run(p));
    assert_contains(wf_plan_error(p), "id -1 at [1,1] is outside 0..6");
    for (int i = 0; i < 3; i++) {
        after[i] = (values){ wf_count(t.leaf[i]), leaf_values(t.leaf[i]) };
        ck_assert(same_bits(before[i], after[i]));
    }
    ids[4] = 6;
    assert_plan(p, wf_feed(p, t.ids, ids, sizeof ids) && wf_run(p));
    free_values(before, 3), free_values(after, 3);
    wf_plan_free(p);
    end_graph(t.g);
}

/* The message has the place of the id in all ids, whichever task has found it. */
TEST_ROWS(an_id_out_of_range_is_named_by_its_place, 2) {
    enum { ROWS = 40000, COLUMNS = 2 };
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *ids = wf_input(g, "ids", WF_I32, SHAPE(ROWS, COLUMNS)),
              *x = wf_zeros(g, WF_F32, SHAPE(ROWS, 4)), *src = wf_ones(g, WF_F32, SHAPE(ROWS, 2)),
              *y = _i ? wf_gather(x, 1, ids) : wf_scatter_add(x, 1, ids, src);
    wf_plan *p =
        wf_plan_new(g, &(wf_plan_options){ .fetch = &y, .n_fetch = 1, .feed = &ids, .n_feed = 1 });
    int32_t *id = calloc(ROWS * COLUMNS, sizeof *id);
    ck_assert_ptr_nonnull(id);
    id[35000 * COLUMNS + 1] = 9;
    ck_assert(wf_feed(p, ids, id, ROWS * COLUMNS * sizeof *id) && !wf_run(p));
    assert_contains(wf_plan_error(p), "id 9 at [35000,1] is outside 0..3");
    free(id);
    wf_plan_free(p);
    end_graph(g);
}

/* ---- optimizers ------------------------------------------------------------------------------ */

/* Rows that are added up twice, or also multiply: not a plain gradient of a table. */
TEST_ROWS(a_table_used_twice_is_updated_as_before, 2) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *w = wf_param(g, "w", SHAPE(5, 3), wf_init_uniform(1)),
              *ids = ids_of(g, "ids", SHAPE(4), (int32_t[]){ 4, 0, 4, 1 }),
              *others = ids_of(g, "others", SHAPE(2), (int32_t[]){ 2, 0 }),
              *read = wf_embedding(w, ids), *count = wf_constant(g, 1);
    wf_tensor *used = _i ? wf_gemm(read, w, NULL, WF_TRANSPOSE_B) : wf_embedding(w, others);
    wf_tensor *loss = wf_add(wf_square_sum(read), wf_square_sum(used));
    wf_optimizer_options options = wf_optimizer_defaults(WF_ADAM);
    wf_optimizer o = wf_optimizer_new(g, loss, count, &w, 1, &options);
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    wf_tensor *fetch[] = { o.updates[0], o.norm, o.grads[0] };
    wf_plan *p = wf_plan_new(
        g, &(wf_plan_options){ .fetch = fetch, .n_fetch = 3, .feed = &o.rates, .n_feed = 1 });
    assert_plan(p,
                wf_feed(p, o.rates, (double[]){ 0.1, 10, 1000 }, 3 * sizeof(double)) && wf_run(p));
    ck_assert_int_eq(count_steps(p, "adam_rows_step") + count_steps(p, "rows_square_sums"), 0);
    values grad = fetched(p, o.grads[0]), norm = fetched(p, o.norm);
    double squares = 0;
    for (int64_t i = 0; i < grad.count; i++) squares += grad.data[i] * grad.data[i];
    ck_assert_double_eq_tol(norm.data[0], sqrt(squares), 1e-12);
    free_values(&grad, 1), free_values(&norm, 1);
    wf_plan_free(p), wf_optimizer_free(&o);
    end_graph(g);
}

static const struct {
    wf_optimizer_kind kind;
    bool unguarded;
    wf_tie tie;
    int dense, steps, sums; /* gradients of a whole table; of two tables by rows */
} plans[] = {
    { WF_ADAM, false, WF_TIE_NONE, 0, 2, 2 },    { WF_ADAMW, true, WF_TIE_NONE, 0, 2, 0 },
    { WF_ADAM, false, WF_TIE_DECODER, 1, 1, 1 }, { WF_ADAM, true, WF_TIE_DECODER, 1, 1, 0 },
    { WF_ADAM, false, WF_TIE_ALL, 2, 0, 0 },     { WF_SGD, false, WF_TIE_NONE, 2, 0, 0 },
};

TEST_ROWS(a_train_step_holds_no_gradient_of_a_table, COUNT_OF(plans)) {
    static sentences b;
    wf_transformer_config c = small_config();
    wf_training_config training = with_dropout(0.1);
    wf_optimizer_options o = adam_options();
    c.tie = plans[_i].tie;
    o.kind = plans[_i].kind;
    o.unguarded = plans[_i].unguarded;
    if (plans[_i].unguarded) o.clip_norm = 0;
    wf_model *m = open_model(&c, &training, WF_F32, 1);
    wf_trainer *t = open_trainer(m, &o, 1e-2, NULL);
    wf_plan *p = wf_trainer_plan(t);
    random_sentences(&b, &c, 2, 4, 4, 1);
    train_step(t, m, &b);
    ck_assert_int_eq(count_steps(p, "embedding_backward"), plans[_i].dense);
    ck_assert_int_eq(count_steps(p, "adam_rows_step"), plans[_i].steps);
    ck_assert_int_eq(count_steps(p, "rows_square_sums"), plans[_i].sums);
    wf_trainer_free(t), close_model(m);
}
