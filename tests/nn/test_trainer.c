/* tests/nn/test_trainer.c - wf_trainer as programs use it: a regression with dropout learns;
 * stopped, saved and resumed, with micro-batches or averages, it has the same bits; failures say
 * why. */
#include <stdio.h>
#include <unistd.h>

#include "core/save.h"
#include "nn/nn.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(trainer)

enum { ROWS = 32, IN = 3, HIDDEN = 16 };

/* A net with a hidden layer that learns y = sin(x0) + x1 x2. */
typedef struct learner {
    wf_graph *g;
    wf_tensor *x, *y, *loss, *count;
    wf_pool *pool;
    wf_trainer *t;
} learner;

static void open_learner(learner *l, wf_trainer_options o, int threads) {
    wf_graph *g = l->g = wf_graph_new(&(wf_graph_options){ .seed = 7 });
    int64_t B = wf_extent(g, "B", 64);
    l->x = wf_input(g, "x", WF_F32, SHAPE(B, IN)), l->y = wf_input(g, "y", WF_F32, SHAPE(B, 1));
    struct wf_linear_layer hidden = wf_linear_new(g, "hidden", IN, HIDDEN, true),
                           out = wf_linear_new(g, "out", HIDDEN, 1, true);
    wf_tensor *h = wf_drop(wf_tanh(wf_linear(&hidden, l->x)), 0.05, "drop");
    l->loss = wf_mse_loss(wf_linear(&out, h), l->y, WF_REDUCE_SUM);
    l->count = wf_sum(wf_fill(l->y, 1), WF_ALL_AXES, false);
    l->pool = threads > 1 ? wf_pool_new(threads) : NULL;
    o.pool = l->pool;
    l->t = wf_trainer_new(g, l->loss, l->count, &o);
    ck_assert_msg(wf_trainer_ok(l->t), "%s", wf_trainer_error(l->t));
}

static void close_learner(learner *l) {
    wf_trainer_free(l->t), wf_pool_free(l->pool);
    end_graph(l->g);
}

/* Feeds the data of a run, which depend on its number alone. */
static bool feed_rows(learner *l, int64_t run, int rows) {
    float x[ROWS * IN], y[ROWS];
    wf_plan *p = wf_trainer_plan(l->t);
    for (int i = 0; i < rows; i++) {
        float *row = x + IN * i;
        for (int k = 0; k < IN; k++)
            row[k] = (float)(4 * number((uint64_t)run, (uint64_t)(IN * i + k)) - 2);
        y[i] = sinf(row[0]) + row[1] * row[2];
    }
    return wf_bind(p, "B", rows) && wf_feed(p, l->x, x, (size_t)rows * IN * sizeof *x) &&
           wf_feed(p, l->y, y, (size_t)rows * sizeof *y);
}

/* Makes an update from one micro-batch, which has been fed. */
static bool update_once(wf_trainer *t, wf_progress *now) {
    return wf_trainer_begin(t, 1, NULL, NULL) && wf_trainer_add(t, 0) && wf_trainer_update(t, now);
}

static bool add_part(learner *l, int part, int parts) {
    return feed_rows(l, parts * wf_trainer_steps(l->t) + part, ROWS / parts) &&
           wf_trainer_add(l->t, part);
}

/* Makes updates until the trainer has made `steps`. Returns the last progress. */
static wf_progress train_until(learner *l, int64_t steps, int parts) {
    wf_progress now = { 0 };
    while (wf_trainer_steps(l->t) < steps) {
        bool ok = wf_trainer_begin(l->t, parts, NULL, NULL);
        for (int part = 0; ok && part < parts; part++) ok = add_part(l, part, parts);
        ck_assert_msg(ok && wf_trainer_update(l->t, &now), "%s %s", wf_trainer_error(l->t),
                      wf_plan_error(wf_trainer_plan(l->t)));
    }
    return now;
}

static wf_trainer_options usual(void) {
    wf_trainer_options o = { .optimizer = wf_optimizer_defaults(WF_ADAM),
                             .schedule = { WF_COSINE, 0.02, 20, 400, 1e-4 } };
    o.optimizer.clip_norm = 1;
    return o;
}

/* Returns the values of all parameters. */
static values all_values(const learner *l) {
    wf_tensor *params[8];
    int n = wf_parameters(l->g, NULL, params, 8);
    values v = { 0, calloc(1024, sizeof(double)) };
    for (int i = 0; i < n; i++) {
        double *own = leaf_values(params[i]);
        memcpy(v.data + v.count, own, (size_t)wf_count(params[i]) * sizeof *own);
        v.count += wf_count(params[i]);
        free(own);
    }
    return v;
}

static void assert_same(const learner *a, const learner *b) {
    values x = all_values(a), y = all_values(b);
    ck_assert(same_bits(x, y));
    free_values(&x, 1), free_values(&y, 1);
}

TEST(a_regression_learns) {
    learner l;
    open_learner(&l, usual(), 1);
    wf_progress first = train_until(&l, 1, 1), last = train_until(&l, 400, 1);
    ck_assert(first.step == 1 && last.step == 400);
    ck_assert_msg(first.loss > 1 && last.loss < 0.25, "from %g to %g", first.loss, last.loss);
    ck_assert(first.count == ROWS && first.norm > 0 && isfinite(first.norm));
    ck_assert_double_eq_tol(first.rate, 0.001, 1e-15);
    ck_assert_double_eq_tol(last.rate, 1e-4, 1e-15);
    close_learner(&l);
}

/* Parameters change only after all micro-batches are added. The reported loss, count and sums are
 * those of all of them. */
TEST(micro_batches_make_one_update) {
    wf_trainer_options o = usual();
    o.micro_batches = 2;
    learner l;
    wf_progress now;
    double loss = 0;
    int64_t from, to;
    open_learner(&l, o, 1);
    values before = all_values(&l);
    ck_assert(wf_trainer_begin(l.t, 2, &from, &to) && from == 0 && to == 2);
    for (int i = 0; i < 2; i++) {
        ck_assert(!wf_trainer_update(l.t, &now));
        assert_contains(wf_trainer_error(l.t), "lacks micro-batches");
        ck_assert(feed_rows(&l, 5 + i, ROWS / 2) && wf_trainer_add(l.t, i));
        float own;
        ck_assert(wf_fetch(wf_trainer_plan(l.t), l.loss, &own, sizeof own));
        loss += (double)own;
        values after = all_values(&l);
        ck_assert(same_bits(before, after) && wf_trainer_steps(l.t) == 0);
        free_values(&after, 1);
    }
    ck_assert(wf_trainer_update(l.t, &now));
    ck_assert(now.step == 1 && now.count == ROWS && now.loss == loss / now.count);
    ck_assert(now.norm > 0 && now.rate == wf_schedule_rate(&o.schedule, 1));
    values after = all_values(&l);
    ck_assert(!same_bits(before, after));
    free_values(&before, 1), free_values(&after, 1), close_learner(&l);
}

/* An update has from 1 to options.micro_batches micro-batches, each added once and in order.
 * Beginning again drops those that were added. */
TEST_ROWS(micro_batches_come_in_order, 2) {
    wf_trainer_options o = usual();
    o.micro_batches = _i ? 3 : 0;
    learner l, other;
    open_learner(&l, o, 1), open_learner(&other, o, 1);
    ck_assert(!wf_trainer_add(l.t, 0));
    assert_contains(wf_trainer_error(l.t), "wf_trainer_begin");
    ck_assert(!wf_trainer_update(l.t, NULL));
    assert_contains(wf_trainer_error(l.t), "wf_trainer_begin");
    ck_assert(!wf_trainer_begin(l.t, 0, NULL, NULL));
    ck_assert(!wf_trainer_begin(l.t, _i ? 4 : 2, NULL, NULL));
    assert_contains(wf_trainer_error(l.t), "at most");
    if (_i) {
        ck_assert(wf_trainer_begin(l.t, 2, NULL, NULL) && feed_rows(&l, 1, 16));
        ck_assert(!wf_trainer_add(l.t, 1) && wf_trainer_add(l.t, 0) && !wf_trainer_add(l.t, 0));
        assert_contains(wf_trainer_error(l.t), "in order");
        ck_assert(wf_trainer_add(l.t, 1) && !wf_trainer_add(l.t, 2));
    }
    train_until(&l, 2, _i ? 2 : 1), train_until(&other, 2, _i ? 2 : 1);
    assert_same(&l, &other);
    close_learner(&l), close_learner(&other);
}

/* Scalars in options.sums are added over micro-batches, in double. */
TEST(sums_are_of_all_micro_batches) {
    wf_trainer_options o = usual();
    learner l = { .g = NULL };
    wf_graph *g = l.g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2)),
              *w = wf_param(g, "w", SHAPE(2), wf_init_constant(1)),
              *loss = wf_square_sum(wf_mul(w, x)), *sum = wf_sum(x, WF_ALL_AXES, false);
    o.micro_batches = 4, o.sums = &sum, o.n_sums = 1;
    l.t = wf_trainer_new(g, loss, wf_constant(g, 1), &o);
    ck_assert_msg(wf_trainer_ok(l.t), "%s", wf_trainer_error(l.t));
    for (int parts = 1; parts <= 4; parts++) {
        wf_progress now;
        ck_assert(wf_trainer_begin(l.t, parts, NULL, NULL));
        for (int i = 0; i < parts; i++)
            ck_assert(wf_feed(wf_trainer_plan(l.t), x, (float[]){ (float)i, 2 }, 8) &&
                      wf_trainer_add(l.t, i));
        ck_assert(wf_trainer_update(l.t, &now));
        ck_assert(now.sums[0] == 2 * parts + parts * (parts - 1) / 2 && now.count == parts);
    }
    wf_trainer_free(l.t);
    o.sums = &x; /* not a scalar */
    o.optimizer.name = "other";
    l.t = wf_trainer_new(g, loss, wf_constant(g, 1), &o);
    ck_assert(!wf_trainer_ok(l.t));
    assert_contains(wf_trainer_error(l.t), "not a scalar");
    wf_trainer_free(l.t), end_graph(g);
}

static const char path[] = "trainer-test.safetensors";

/* A training by one thread has the same bits as one that is stopped, saved, and resumed in another
 * graph by three threads: with dropout, and with micro-batches or averages. */
TEST_ROWS(a_resumed_training_has_the_same_bits, 3) {
    wf_trainer_options o = usual();
    int parts = _i == 1 ? 2 : 1;
    o.micro_batches = parts;
    if (_i == 2) o.optimizer.average_decay = 0.9;
    learner whole, before, after;
    char file[64];
    snprintf(file, sizeof file, "/tmp/%d-%d-%s", (int)getpid(), _i, path);
    open_learner(&whole, o, 1), open_learner(&before, o, 2);
    train_until(&whole, 40, parts), train_until(&before, 17, parts);
    const wf_meta own = { "mine", "words" };
    ck_assert_msg(wf_trainer_save(before.t, file, &own, 1), "%s", wf_trainer_error(before.t));
    close_learner(&before);
    open_learner(&after, o, 3);
    ck_assert_msg(wf_trainer_load(after.t, file, NULL), "%s", wf_trainer_error(after.t));
    ck_assert_int_eq(wf_trainer_steps(after.t), 17);
    train_until(&after, 40, parts);
    assert_same(&whole, &after);
    if (_i == 2) {
        ck_assert(wf_trainer_swap_averages(whole.t) && wf_trainer_swap_averages(after.t));
        assert_same(&whole, &after);
    } else {
        ck_assert(!wf_trainer_swap_averages(whole.t));
        assert_contains(wf_trainer_error(whole.t), "without averages");
    }
    wf_file *f = wf_file_open(file);
    ck_assert_str_eq(wf_file_meta(f, "mine"), "words");
    ck_assert_str_eq(wf_file_meta(f, "trainer.step"), "17");
    ck_assert_ptr_null(wf_file_find(f, "optimizer.hidden.weight.sum"));
    wf_file_free(f), unlink(file);
    close_learner(&whole), close_learner(&after);
}

static values average_of(const learner *l, int i) {
    const wf_optimizer *o = wf_trainer_optimizer(l->t);
    return (values){ wf_count(o->averages[i]), leaf_values(o->averages[i]) };
}

static values parameter_of(const learner *l, int i) {
    const wf_optimizer *o = wf_trainer_optimizer(l->t);
    return (values){ wf_count(o->params[i]), leaf_values(o->params[i]) };
}

/* Averages that are switched on in a resumed training begin with its parameters. After another stop
 * they are those of a training without that stop. */
TEST(averages_can_be_switched_on_in_a_resumed_training) {
    const wf_load_options lenient = { .allow = WF_ALLOW_MISSING };
    wf_trainer_options with = usual();
    with.optimizer.average_decay = 0.9;
    learner before, whole, after;
    char file[64], later[64];
    snprintf(file, sizeof file, "/tmp/%d-%s", (int)getpid(), path);
    snprintf(later, sizeof later, "/tmp/%d-later-%s", (int)getpid(), path);
    open_learner(&before, usual(), 1), train_until(&before, 17, 1);
    ck_assert(wf_trainer_save(before.t, file, NULL, 0));
    close_learner(&before);
    open_learner(&whole, with, 1), open_learner(&after, with, 1);
    ck_assert(!wf_trainer_load(whole.t, file, NULL));
    assert_contains(wf_trainer_error(whole.t), "average");
    ck_assert_msg(wf_trainer_load(whole.t, file, &lenient), "%s", wf_trainer_error(whole.t));
    train_until(&whole, 18, 1);
    values average = average_of(&whole, 0), parameter = parameter_of(&whole, 0);
    ck_assert(same_bits(average, parameter));
    ck_assert(wf_trainer_save(whole.t, later, NULL, 0));
    ck_assert_msg(wf_trainer_load(after.t, later, NULL), "%s", wf_trainer_error(after.t));
    train_until(&whole, 25, 1), train_until(&after, 25, 1);
    values one = average_of(&whole, 0), other = average_of(&after, 0);
    ck_assert(same_bits(one, other) && !same_bits(one, average));
    free_values(&average, 1), free_values(&parameter, 1), free_values(&one, 1);
    free_values(&other, 1);
    close_learner(&whole), close_learner(&after), unlink(file), unlink(later);
}

/* An update that fails changes nothing, and can be repeated. */
TEST(a_step_that_fails_can_be_tried_again) {
    learner l, other;
    open_learner(&l, usual(), 1), open_learner(&other, usual(), 1);
    float nan[ROWS * IN];
    for (int i = 0; i < ROWS * IN; i++) nan[i] = NAN;
    train_until(&l, 3, 1), train_until(&other, 3, 1);
    ck_assert(feed_rows(&l, 9, ROWS) && wf_feed(wf_trainer_plan(l.t), l.x, nan, sizeof nan));
    ck_assert(!update_once(l.t, NULL));
    assert_contains(wf_trainer_error(l.t), "gradient norm");
    ck_assert_int_eq(wf_trainer_steps(l.t), 3);
    assert_same(&l, &other);
    train_until(&l, 5, 1), train_until(&other, 5, 1);
    ck_assert_str_eq(wf_trainer_error(l.t), "");
    assert_same(&l, &other);
    close_learner(&l), close_learner(&other);
}

TEST(a_failure_of_the_plan_is_the_trainers) {
    learner l;
    float x[ROWS * IN] = { 0 };
    open_learner(&l, usual(), 1);
    ck_assert(!wf_feed(wf_trainer_plan(l.t), l.x, x, sizeof x - 1));
    ck_assert_str_eq(wf_trainer_error(l.t), wf_plan_error(wf_trainer_plan(l.t)));
    ck_assert_str_ne(wf_trainer_error(l.t), "");
    close_learner(&l);
}

TEST(saving_and_loading_are_refused_with_a_reason) {
    wf_trainer_options o = usual();
    o.micro_batches = 2;
    learner l;
    open_learner(&l, o, 1);
    ck_assert(wf_trainer_begin(l.t, 2, NULL, NULL));
    ck_assert(feed_rows(&l, 1, 8) && wf_trainer_add(l.t, 0));
    ck_assert(!wf_trainer_save(l.t, "/tmp/never.safetensors", NULL, 0));
    assert_contains(wf_trainer_error(l.t), "an update is not complete");
    ck_assert(feed_rows(&l, 2, 8) && wf_trainer_add(l.t, 1) && wf_trainer_update(l.t, NULL));
    ck_assert(!wf_trainer_save(l.t, "/no/such/folder/m.safetensors", NULL, 0));
    ck_assert(*wf_trainer_error(l.t));
    ck_assert(!wf_trainer_save(l.t, "/tmp/never.safetensors", NULL, 1));
    ck_assert(!wf_trainer_load(l.t, "/no/such/file", NULL) && *wf_trainer_error(l.t));
    char file[64], message[256];
    snprintf(file, sizeof file, "/tmp/%d-%s", (int)getpid(), path);
    ck_assert(wf_save(l.g, file, NULL, NULL, 0, message));
    ck_assert(!wf_trainer_load(l.t, file, NULL));
    assert_contains(wf_trainer_error(l.t), "it is not a trainer's");
    ck_assert(wf_save(l.g, file, &(wf_leaves){ .parameters = true },
                      &(wf_meta){ "trainer.step", "5" }, 1, message));
    ck_assert(!wf_trainer_load(l.t, file, NULL));
    assert_contains(wf_trainer_error(l.t), "optimizer.");
    ck_assert_int_eq(wf_trainer_steps(l.t), 1);
    unlink(file), close_learner(&l);
}

/* Further values can be fetched beside the loss, and only chosen parameters are trained. */
TEST(more_is_fetched_and_some_is_frozen) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x = wf_input(g, "x", WF_F64, SHAPE(2)),
              *unused = wf_input(g, "unused", WF_F64, SHAPE(2)),
              *w = param_of(g, "w", SHAPE(2), (double[]){ 1, 2 }),
              *fixed = param_of(g, "fixed", SHAPE(2), (double[]){ 3, 4 }),
              *y = wf_mul(wf_add(w, fixed), x);
    (void)unused; /* no plan asks for it */
    wf_trainer *t = wf_trainer_new(g, wf_sum(y, WF_ALL_AXES, false), wf_constant(g, 1),
                                   &(wf_trainer_options){ .optimizer = { .kind = WF_SGD },
                                                          .schedule = { .peak = 0.5 },
                                                          .params = &w,
                                                          .n_params = 1,
                                                          .fetch = &y,
                                                          .n_fetch = 1 });
    wf_plan *p = wf_trainer_plan(t);
    double v[2];
    ck_assert_msg(wf_feed(p, x, (double[]){ 1, -1 }, 16) && update_once(t, NULL) &&
                      wf_fetch(p, y, v, sizeof v),
                  "%s", wf_trainer_error(t));
    ck_assert(v[0] == 4 && v[1] == -6);
    double *have = leaf_values(w), *kept = leaf_values(fixed);
    ck_assert(have[0] == 0.5 && have[1] == 2.5 && kept[0] == 3 && kept[1] == 4);
    free(have), free(kept), wf_trainer_free(t);
    end_graph(g);
}

TEST(trainers_that_cannot_be_say_why) {
    wf_graph *g = new_graph(WF_F32), *other = new_graph(WF_F32);
    wf_tensor *w = wf_param(g, "w", SHAPE(2), wf_init_zeros()), *loss = wf_square_sum(w),
              *strange = wf_constant(other, 1);
    wf_trainer_options o = usual(), fetches = usual(), idle = usual(), endless = usual();
    fetches.fetch = &strange, fetches.n_fetch = 1;
    idle.schedule = (wf_schedule){ 0 }, endless.schedule.peak = INFINITY;
    wf_trainer_options many = usual(), strange_sums = usual(), hollow = usual(), nobody = usual();
    wf_transport no_functions = { .size = 2 }, no_rank = { .rank = 2, .size = 2 };
    many.micro_batches = WF_MOST_MICRO_BATCHES + 1;
    strange_sums.sums = &strange, strange_sums.n_sums = 1;
    hollow.transport = &no_functions, nobody.transport = &no_rank;
    const struct {
        wf_tensor *loss, *count;
        const wf_trainer_options *o;
        const char *reason;
    } rows[] = {
        { NULL, loss, &o, "the loss or the count" },
        { loss, NULL, &o, "the loss or the count" },
        { loss, loss, NULL, "the options" },
        { loss, strange, &o, "of another graph" },
        { loss, loss, &fetches, "of another graph" },
        { loss, loss, &idle, "set .schedule.peak" },
        { loss, loss, &endless, "set .schedule.peak" },
        { loss, loss, &many, "more than 65,536" },
        { loss, loss, &strange_sums, "of another graph" },
        { loss, loss, &hollow, "lacks alltoallv" },
        { loss, loss, &nobody, "is none of its ranks" },
    };
    for (int i = 0; i < COUNT_OF(rows); i++) {
        wf_trainer *t = wf_trainer_new(g, rows[i].loss, rows[i].count, rows[i].o);
        ck_assert(!wf_trainer_ok(t) && !update_once(t, NULL));
        assert_contains(wf_trainer_error(t), rows[i].reason);
        wf_trainer_free(t);
    }
    o.optimizer.eps = 0; /* the graph fails, and the trainer says so */
    wf_trainer *t = wf_trainer_new(g, loss, loss, &o);
    ck_assert(!wf_trainer_ok(t));
    assert_contains(wf_trainer_error(t), "eps is 0");
    wf_trainer_free(t), wf_graph_free(g);
    end_graph(other);
}
