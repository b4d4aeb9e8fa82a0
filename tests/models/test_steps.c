/* tests/models/test_steps.c - training steps of a whole Transformer: unguarded ones, those of
 * several micro-batches, and the average of the weights.
 *
 * Single updates with known gradients are in test_optim.c. */
#include <stdio.h>

#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(steps)

/* Wide enough that weights are cut into several blocks. */
static wf_transformer_config wide_config(void) {
    wf_transformer_config c = small_config();
    c.d_model = 40, c.num_heads = 4, c.dim_feedforward = 901; /* large weights, and small ones */
    return c;
}

static wf_training_config training_of(wf_optimizer_kind kind, double dropout, bool unguarded) {
    return (wf_training_config){ .dropout = dropout,
                                 .attention_dropout = dropout,
                                 .optimizer = { .kind = kind,
                                                ADAM_DEFAULTS,
                                                .momentum = kind == WF_SGD ? 0.9 : 0,
                                                .weight_decay = 0.01,
                                                .unguarded = unguarded } };
}

static int count_leaves(const wf_model *m) {
    return m->optimizer.n * (1 + m->optimizer.n_moments);
}

/* Parameters, then moments. */
static wf_tensor *leaf_at(const wf_model *m, int i) {
    wf_tensor *params[256];
    ck_assert_int_eq(wf_parameters(m->graph, params, 256), m->optimizer.n);
    int k = i / m->optimizer.n;
    return k == 0 ? params[i] : m->optimizer.moments[i % m->optimizer.n][k - 1];
}

/* The largest distance of a leaf, and whether all bits are the same. */
static double compare_leaves(const wf_model *a, const wf_model *b, bool *same) {
    double worst = 0;
    *same = true;
    ck_assert_int_eq(count_leaves(a), count_leaves(b));
    for (int i = 0; i < count_leaves(a); i++) {
        wf_tensor *x = leaf_at(a, i), *y = leaf_at(b, i);
        ck_assert_str_eq(x->name, y->name);
        values v[2] = { { wf_count(x), leaf_values(x) }, { wf_count(y), leaf_values(y) } };
        worst = fmax(worst, distance(v[0], v[1]));
        *same &= same_bits(v[0], v[1]);
        free_values(v, 2);
    }
    return worst;
}

/* ---- unguarded ------------------------------------------------------------------------------- */

static wf_model *trained(wf_training_config training, wf_dtype real, int threads) {
    static sentences b;
    wf_transformer_config c = wide_config();
    wf_model *m = open_model(&c, &training, real, 11);
    wf_pool *pool = wf_pool_new(threads);
    wf_plan *p = wf_model_train_plan(m, pool);
    for (int step = 1; step <= 3; step++) {
        random_sentences(&b, &c, 6, 9, 8, (uint64_t)step);
        train_step(p, m, &b, step, 1e-2);
    }
    wf_plan_free(p), wf_pool_free(pool);
    return m;
}

static const struct {
    wf_optimizer_kind kind;
    wf_dtype real;
} optimizers[] = {
    { WF_SGD, WF_F32 }, { WF_ADAM, WF_F32 }, { WF_ADAMW, WF_F32 }, { WF_ADAM, WF_F64 }
};

TEST_ROWS(unguarded_steps_equal_guarded_ones, COUNT_OF(optimizers)) {
    wf_optimizer_kind kind = optimizers[_i].kind;
    wf_model *guarded = trained(training_of(kind, 0.1, false), optimizers[_i].real, 1);
    for (int threads = 1; threads <= 5; threads += threads == 1 ? 1 : 3) {
        bool same;
        wf_model *m = trained(training_of(kind, 0.1, true), optimizers[_i].real, threads);
        ck_assert_ptr_null(m->optimizer.norm);
        compare_leaves(guarded, m, &same);
        ck_assert_msg(same, "%d threads", threads);
        close_model(m);
    }
    close_model(guarded);
}

/* The first update does not wait for the last gradient, and its own takes no memory. */
TEST(unguarded_updates_run_among_the_gradients) {
    static sentences b;
    size_t memory[2];
    for (int unguarded = 0; unguarded < 2; unguarded++) {
        wf_transformer_config c = wide_config();
        wf_training_config training = training_of(WF_ADAM, 0, unguarded);
        wf_model *m = open_model(&c, &training, WF_F32, 1);
        wf_plan *p = wf_model_train_plan(m, NULL);
        random_sentences(&b, &c, 2, 4, 4, 1);
        feed_sentences(p, m, &b);
        int first_update = -1, last_gradient = -1;
        wf_step step;
        for (int i = 0; wf_step_at(p, i, &step); i++) {
            if (step.op->writes && first_update < 0) first_update = i;
            if (step.node && step.node->forward) last_gradient = i;
        }
        ck_assert(first_update >= 0 && last_gradient >= 0);
        ck_assert(unguarded ? first_update < last_gradient / 2 + wf_step_count(p) / 4
                            : first_update > last_gradient);
        memory[unguarded] = wf_plan_memory(p);
        wf_plan_free(p), close_model(m);
    }
    ck_assert_uint_lt(2 * memory[1], memory[0]);
}

TEST(an_unguarded_run_that_fails_updates_nothing) {
    static sentences b;
    bool same;
    wf_transformer_config c = wide_config();
    wf_training_config training = training_of(WF_ADAM, 0, true);
    wf_model *m = open_model(&c, &training, WF_F32, 1),
             *untouched = open_model(&c, &training, WF_F32, 1);
    wf_plan *p = wf_model_train_plan(m, NULL);
    double rates[3] = { 1e-3, 1, 1 }, bad[3] = { NAN, 1, 1 };
    random_sentences(&b, &c, 2, 4, 4, 1);
    b.labels[0] = 99;
    feed_sentences(p, m, &b);
    ck_assert(wf_feed_reals(p, m->optimizer.rates, rates, 3) && !wf_run(p));
    assert_contains(wf_plan_error(p), "99");
    b.labels[0] = 1;
    feed_sentences(p, m, &b);
    ck_assert(wf_feed_reals(p, m->optimizer.rates, bad, 3) && !wf_run(p));
    assert_contains(wf_plan_error(p), "the rate is not finite");
    compare_leaves(m, untouched, &same);
    ck_assert(same);
    wf_plan_free(p), close_model(m), close_model(untouched);
}

/* ---- micro-batches --------------------------------------------------------------------------- */

/* Rows [from, to) of a batch. */
static void take(sentences *part, const sentences *b, int from, int to) {
    *part = (sentences){ .B = to - from, .S = b->S, .T = b->T };
    for (int i = from, k = 0; i < to; i++, k++) {
        part->src_length[k] = b->src_length[i];
        memcpy(part->src + k * b->S, b->src + i * b->S, (size_t)b->S * sizeof *b->src);
        memcpy(part->tgt + k * b->T, b->tgt + i * b->T, (size_t)b->T * sizeof *b->tgt);
        memcpy(part->labels + k * b->T, b->labels + i * b->T, (size_t)b->T * sizeof *b->labels);
    }
}

static void accumulate(wf_plan *p, const wf_model *m, const sentences *b, int i, int of) {
    feed_sentences(p, m, b);
    assert_plan(p, wf_feed_micro_batch(p, &m->optimizer, i, of) && wf_run(p));
}

static void apply(wf_plan *p, const wf_model *m, int64_t step, double rate) {
    double rates[3];
    wf_optimizer_rates(&m->training.optimizer, rate, step, rates);
    assert_plan(p, wf_feed_reals(p, m->optimizer.rates, rates, 3) && wf_run(p));
}

/* One update from 2 + 5 + 1 sentences, and one from all 8; what is left of an update that was given
 * up does not count. */
TEST_ROWS(micro_batches_equal_one_batch, 3) {
    static sentences b, part;
    const int cuts[] = { 0, 2, 7, 8 };
    bool same;
    wf_transformer_config c = wide_config();
    wf_training_config training = training_of(_i == 1 ? WF_SGD : WF_ADAMW, 0, _i == 2);
    training.optimizer.partial_sums = 2;
    training.optimizer.clip_norm = _i == 2 ? 0 : 0.1;
    wf_model *whole = open_model(&c, &training, WF_F64, 3),
             *parts = open_model(&c, &training, WF_F64, 3);
    wf_plan *train = wf_model_train_plan(whole, NULL), *add = wf_model_accumulate_plan(parts, NULL),
            *update = wf_model_apply_plan(parts, NULL);
    for (int step = 1; step <= 3; step++) {
        random_sentences(&b, &c, 8, 7, 6, (uint64_t)step);
        train_step(train, whole, &b, step, 1e-2);
        take(&part, &b, 3, 6);
        accumulate(add, parts, &part, 0, 3);
        for (int i = 0; i < 3; i++) {
            take(&part, &b, cuts[i], cuts[i + 1]);
            accumulate(add, parts, &part, i, 3);
        }
        apply(update, parts, step, 1e-2);
        double error = compare_leaves(whole, parts, &same);
        ck_assert_msg(error < 1e-9, "step %d: %g", step, error);
    }
    if (_i != 2) {
        values want = fetched(train, whole->optimizer.norm),
               have = fetched(update, parts->optimizer.accumulation.norm);
        ck_assert_double_eq_tol(have.data[0], want.data[0], 1e-9);
        free_values(&want, 1), free_values(&have, 1);
    }
    wf_plan_free(train), wf_plan_free(add), wf_plan_free(update);
    close_model(whole), close_model(parts);
}

/* One micro-batch, divided by its own count: the same bits as without a sum. */
TEST_ROWS(one_micro_batch_is_a_batch, 2) {
    static sentences b;
    bool same;
    wf_transformer_config c = wide_config();
    wf_training_config training = training_of(WF_ADAM, 0.1, _i);
    training.optimizer.partial_sums = 2;
    wf_model *whole = open_model(&c, &training, WF_F32, 3),
             *parts = open_model(&c, &training, WF_F32, 3);
    wf_plan *train = wf_model_train_plan(whole, NULL), *add = wf_model_accumulate_plan(parts, NULL),
            *update = wf_model_apply_plan(parts, NULL);
    for (int step = 1; step <= 2; step++) {
        random_sentences(&b, &c, 4, 7, 6, (uint64_t)step);
        train_step(train, whole, &b, step, 1e-2);
        wf_random_step(add, (uint64_t)step, 0);
        accumulate(add, parts, &b, 0, 1);
        apply(update, parts, step, 1e-2);
        compare_leaves(whole, parts, &same);
        ck_assert(same);
    }
    wf_plan_free(train), wf_plan_free(add), wf_plan_free(update);
    close_model(whole), close_model(parts);
}

TEST(micro_batches_drop_other_elements) {
    static sentences b;
    double loss[3];
    const uint32_t micro_batch[] = { 0, 1, 0 };
    wf_transformer_config c = small_config();
    wf_training_config training = training_of(WF_ADAM, 0.3, false);
    training.optimizer.partial_sums = 2;
    wf_model *m = open_model(&c, &training, WF_F32, 3);
    wf_plan *add = wf_model_accumulate_plan(m, NULL);
    random_sentences(&b, &c, 4, 7, 6, 1);
    for (int i = 0; i < 3; i++) {
        wf_random_step(add, 1, micro_batch[i]);
        accumulate(add, m, &b, i, 3);
        values v = fetched(add, m->loss.loss);
        loss[i] = v.data[0];
        free_values(&v, 1);
    }
    ck_assert(loss[0] == loss[2] && loss[0] != loss[1]);
    wf_plan_free(add), close_model(m);
}

TEST(without_accumulation_its_plans_fail) {
    wf_transformer_config c = small_config();
    wf_training_config training = adam_training(0);
    wf_model *m = open_model(&c, &training, WF_F32, 3);
    wf_plan *plans[] = { wf_model_accumulate_plan(m, NULL), wf_model_apply_plan(m, NULL),
                         wf_model_accumulate_plan(NULL, NULL), wf_model_apply_plan(NULL, NULL) };
    for (int i = 0; i < COUNT_OF(plans); i++) {
        ck_assert(!wf_plan_ok(plans[i]) && wf_plan_error(plans[i])[0]);
        wf_plan_free(plans[i]);
    }
    close_model(m);
}

/* ---- averages -------------------------------------------------------------------------------- */

enum { AVERAGED = 6 };

/* The average of the first parameter after each step, by its definition. */
static void expect_average(double history[AVERAGED][2], int steps, double d, double *out) {
    double weights = 0;
    out[0] = out[1] = 0;
    for (int i = 0; i < steps; i++) {
        double w = pow(d, steps - 1 - i);
        weights += w, out[0] += w * history[i][0], out[1] += w * history[i][1];
    }
    out[0] /= weights, out[1] /= weights;
}

static void average(wf_plan *p, const wf_model *m, int64_t k) {
    double rate = wf_optimizer_average_rate(&m->training.optimizer, k);
    assert_plan(p, wf_feed_reals(p, m->optimizer.average_rate, &rate, 1) && wf_run(p));
}

static wf_model *open_averaged(uint64_t seed) {
    wf_transformer_config c = small_config();
    wf_training_config training = training_of(WF_ADAM, 0, false);
    training.optimizer.average_decay = 0.75;
    return open_model(&c, &training, WF_F64, seed);
}

TEST(averages_follow_their_definition) {
    static sentences b;
    double history[AVERAGED][2], want[2];
    wf_model *m = open_averaged(3);
    const wf_optimizer *a = &m->optimizer;
    wf_plan *train = wf_model_train_plan(m, NULL), *p = wf_model_average_plan(m, NULL);
    for (int step = 1; step <= AVERAGED; step++) {
        random_sentences(&b, &wf_transformer_of(m)->config, 4, 7, 6, (uint64_t)step);
        train_step(train, m, &b, step, 1e-2);
        average(p, m, step);
        double *w = leaf_values(a->params[0]), *have = leaf_values(a->averages[0]);
        history[step - 1][0] = w[0], history[step - 1][1] = w[1];
        expect_average(history, step, 0.75, want);
        ck_assert_double_eq_tol(have[0], want[0], 1e-12);
        ck_assert_double_eq_tol(have[1], want[1], 1e-12);
        ck_assert(step == 1 ? have[0] == w[0] : have[0] != w[0]);
        free(w), free(have);
    }
    wf_plan_free(train), wf_plan_free(p), close_model(m);
}

TEST(averages_are_swapped_and_saved) {
    static const char path[] = "steps_averages.safetensors";
    static sentences b;
    char message[WF_MESSAGE];
    wf_model *m = open_averaged(3);
    const wf_optimizer *a = &m->optimizer;
    wf_plan *train = wf_model_train_plan(m, NULL), *p = wf_model_average_plan(m, NULL);
    for (int step = 1; step <= 3; step++) {
        random_sentences(&b, &wf_transformer_of(m)->config, 4, 7, 6, (uint64_t)step);
        train_step(train, m, &b, step, 1e-2);
        average(p, m, step);
    }
    ck_assert_msg(wf_model_save(m, path, true, NULL, 0, message), "%s", message);
    wf_file *f = wf_file_open(path);
    wf_model *loaded = wf_model_load(f, &m->training, WF_F64, 5, message);
    ck_assert_msg(loaded != NULL, "%s", message);
    ck_assert(wf_optimizer_swap_averages(&m->optimizer));
    for (int i = 0; i < a->n; i++) {
        const wf_optimizer *l = &loaded->optimizer;
        double *average = leaf_values(l->averages[i]), *param = leaf_values(l->params[i]);
        double *swapped = leaf_values(a->params[i]), *kept = leaf_values(a->averages[i]);
        size_t bytes = (size_t)wf_count(a->params[i]) * sizeof *average;
        ck_assert_mem_eq(swapped, average, bytes);
        ck_assert_mem_eq(kept, param, bytes);
        free(average), free(param), free(swapped), free(kept);
    }
    wf_file_free(f), remove(path);
    wf_plan_free(train), wf_plan_free(p), close_model(m), close_model(loaded);
}

TEST(without_averages_nothing_is_swapped) {
    wf_transformer_config c = small_config();
    wf_training_config training = adam_training(0);
    wf_model *m = open_model(&c, &training, WF_F32, 3);
    wf_plan *p = wf_model_average_plan(m, NULL);
    ck_assert(!wf_plan_ok(p) && wf_plan_error(p)[0]);
    ck_assert(!wf_optimizer_swap_averages(&m->optimizer) && !wf_optimizer_swap_averages(NULL));
    ck_assert(wf_optimizer_average_rate(NULL, 3) == 1);
    wf_plan_free(p), close_model(m);
}
