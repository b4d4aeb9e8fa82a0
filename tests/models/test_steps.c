/* tests/models/test_steps.c - training steps of a whole Transformer: updates without the guard
 * against gradients that are not finite, updates from several micro-batches, and averages of the
 * weights.
 *
 * Single updates with known gradients are in test_optim.c. */
#include <stdio.h>

#include "nn/optimizer_internal.h"
#include "nn/train/way.h"
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(steps)

/* A configuration so wide that weights are cut into several blocks. */
static wf_transformer_config wide_config(void) {
    wf_transformer_config c = small_config();
    c.d_model = 40, c.num_heads = 4, c.dim_feedforward = 901; /* large weights, and small ones */
    return c;
}

/* A model and its trainer. */
typedef struct pupil {
    wf_model *m;
    wf_trainer *t;
    wf_pool *pool;
} pupil;

static wf_optimizer_options options_of(wf_optimizer_kind kind, bool unguarded) {
    return (wf_optimizer_options){ .kind = kind,
                                   ADAM_DEFAULTS,
                                   .momentum = kind == WF_SGD ? 0.9 : 0,
                                   .weight_decay = 0.01,
                                   .unguarded = unguarded };
}

/* micro_batches 0: each step is an update. */
static pupil open_pupil(const wf_transformer_config *c, double dropout, wf_dtype real,
                        uint64_t seed, const wf_optimizer_options *o, int micro_batches,
                        int threads) {
    const wf_training_config training = { .dropout = dropout, .attention_dropout = dropout };
    pupil p = { .m = open_model(c, &training, real, seed), .pool = wf_pool_new(threads) };
    p.t = wf_trainer_new(p.m->graph, p.m->loss.loss, p.m->loss.count,
                         &(wf_trainer_options){ .optimizer = *o,
                                                .schedule = { .peak = 1e-2 },
                                                .micro_batches = micro_batches,
                                                .pool = p.pool });
    assert_trainer(p.t, wf_trainer_ok(p.t));
    return p;
}

static void close_pupil(pupil *p) {
    wf_trainer_free(p->t), wf_pool_free(p->pool), close_model(p->m);
}

static int count_leaves(const pupil *p) {
    const wf_optimizer *o = wf_trainer_optimizer(p->t);
    return o->n * (1 + o->n_moments);
}

/* Parameters, then moments. */
static wf_tensor *leaf_at(const pupil *p, int i) {
    const wf_optimizer *o = wf_trainer_optimizer(p->t);
    return i < o->n ? o->params[i] : o->moments[i % o->n][i / o->n - 1];
}

/* Returns the largest distance between leaves of a and b. *same: all their bits are the same. */
static double compare_leaves(const pupil *a, const pupil *b, bool *same) {
    double worst = 0;
    *same = true;
    ck_assert_int_eq(count_leaves(a), count_leaves(b));
    ck_assert_int_eq(wf_trainer_optimizer(a->t)->n, wf_parameters(a->m->graph, NULL, NULL, 0));
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

static pupil trained(const wf_optimizer_options *o, wf_dtype real, int threads) {
    static sentences b;
    wf_transformer_config c = wide_config();
    pupil p = open_pupil(&c, 0.1, real, 11, o, 0, threads);
    for (int step = 1; step <= 3; step++) {
        random_sentences(&b, &c, 6, 9, 8, (uint64_t)step);
        train_step(p.t, p.m, &b);
    }
    return p;
}

static const struct {
    wf_optimizer_kind kind;
    wf_dtype real;
} optimizers[] = {
    { WF_SGD, WF_F32 }, { WF_ADAM, WF_F32 }, { WF_ADAMW, WF_F32 }, { WF_ADAM, WF_F64 }
};

TEST_ROWS(unguarded_steps_equal_guarded_ones, COUNT_OF(optimizers)) {
    wf_optimizer_options of[] = { options_of(optimizers[_i].kind, false),
                                  options_of(optimizers[_i].kind, true) };
    pupil guarded = trained(&of[0], optimizers[_i].real, 1);
    for (int threads = 1; threads <= 5; threads += threads == 1 ? 1 : 3) {
        bool same;
        pupil p = trained(&of[1], optimizers[_i].real, threads);
        ck_assert_ptr_null(wf_trainer_optimizer(p.t)->norm);
        compare_leaves(&guarded, &p, &same);
        ck_assert_msg(same, "%d threads", threads);
        close_pupil(&p);
    }
    close_pupil(&guarded);
}

/* An unguarded update of a parameter runs before the last gradient is computed, so the memory of
 * its gradient is used again. */
TEST(unguarded_updates_run_among_the_gradients) {
    static sentences b;
    size_t memory[2];
    for (int unguarded = 0; unguarded < 2; unguarded++) {
        wf_transformer_config c = wide_config();
        wf_optimizer_options o = options_of(WF_ADAM, unguarded);
        pupil learner = open_pupil(&c, 0, WF_F32, 1, &o, 0, 1);
        wf_plan *p = wf_trainer_plan(learner.t);
        random_sentences(&b, &c, 2, 4, 4, 1);
        feed_sentences(p, learner.m, &b);
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
        close_pupil(&learner);
    }
    ck_assert_uint_lt(2 * memory[1], memory[0]);
}

static bool update_once(wf_trainer *t) {
    return wf_trainer_begin(t, 1, NULL, NULL) && wf_trainer_add(t, 0) && wf_trainer_update(t, NULL);
}

TEST(an_unguarded_run_that_fails_updates_nothing) {
    static sentences b;
    bool same;
    wf_transformer_config c = wide_config();
    wf_optimizer_options o = options_of(WF_ADAM, true);
    pupil p = open_pupil(&c, 0, WF_F32, 1, &o, 0, 1),
          untouched = open_pupil(&c, 0, WF_F32, 1, &o, 0, 1);
    random_sentences(&b, &c, 2, 4, 4, 1);
    b.labels[0] = 99;
    feed_sentences(wf_trainer_plan(p.t), p.m, &b);
    ck_assert(!update_once(p.t));
    assert_contains(wf_trainer_error(p.t), "99");
    b.labels[0] = 1;
    feed_sentences(wf_trainer_plan(p.t), p.m, &b);
    ck_assert(wf_trainer_begin(p.t, 1, NULL, NULL));
    p.t->rates[0] = NAN;
    ck_assert(!wf_trainer_add(p.t, 0));
    assert_contains(wf_trainer_error(p.t), "the rate is not finite");
    compare_leaves(&p, &untouched, &same);
    ck_assert(same);
    close_pupil(&p), close_pupil(&untouched);
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

static void accumulate(const pupil *p, const sentences *b, int i) {
    feed_sentences(wf_trainer_plan(p->t), p->m, b);
    assert_trainer(p->t, wf_trainer_add(p->t, i));
}

/* An update from micro-batches of 2, 5 and 1 sentences equals one from all 8. Micro-batches of an
 * update that was begun and given up before do not count. */
TEST_ROWS(micro_batches_equal_one_batch, 3) {
    static sentences b, part;
    const int cuts[] = { 0, 2, 7, 8 };
    bool same;
    wf_transformer_config c = wide_config();
    wf_optimizer_options o = options_of(_i == 1 ? WF_SGD : WF_ADAMW, _i == 2);
    o.clip_norm = _i == 2 ? 0 : 0.1;
    pupil whole = open_pupil(&c, 0, WF_F64, 3, &o, 0, 1),
          parts = open_pupil(&c, 0, WF_F64, 3, &o, 3, 1);
    for (int step = 1; step <= 3; step++) {
        wf_progress all, sums;
        random_sentences(&b, &c, 8, 7, 6, (uint64_t)step);
        feed_sentences(wf_trainer_plan(whole.t), whole.m, &b);
        assert_trainer(whole.t, wf_trainer_begin(whole.t, 1, NULL, NULL) &&
                                    wf_trainer_add(whole.t, 0) && wf_trainer_update(whole.t, &all));
        assert_trainer(parts.t, wf_trainer_begin(parts.t, 3, NULL, NULL));
        take(&part, &b, 3, 6);
        accumulate(&parts, &part, 0);
        assert_trainer(parts.t, wf_trainer_begin(parts.t, 3, NULL, NULL));
        for (int i = 0; i < 3; i++) {
            take(&part, &b, cuts[i], cuts[i + 1]);
            accumulate(&parts, &part, i);
        }
        assert_trainer(parts.t, wf_trainer_update(parts.t, &sums));
        double error = compare_leaves(&whole, &parts, &same);
        ck_assert_msg(error < 1e-9, "step %d: %g", step, error);
        ck_assert_double_eq_tol(sums.loss, all.loss, 1e-9);
        ck_assert(_i == 2 ? isnan(sums.norm) && isnan(all.norm)
                          : fabs(sums.norm - all.norm) < 1e-9);
    }
    close_pupil(&whole), close_pupil(&parts);
}

/* An update from one micro-batch has the bits of an update without micro-batches. */
TEST_ROWS(one_micro_batch_is_a_batch, 2) {
    static sentences b;
    bool same;
    wf_transformer_config c = wide_config();
    wf_optimizer_options o = options_of(WF_ADAM, _i);
    pupil whole = open_pupil(&c, 0.1, WF_F32, 3, &o, 0, 1),
          parts = open_pupil(&c, 0.1, WF_F32, 3, &o, 2, 1);
    for (int step = 1; step <= 2; step++) {
        random_sentences(&b, &c, 4, 7, 6, (uint64_t)step);
        ck_assert(train_step(whole.t, whole.m, &b) == train_step(parts.t, parts.m, &b));
        compare_leaves(&whole, &parts, &same);
        ck_assert(same);
    }
    close_pupil(&whole), close_pupil(&parts);
}

TEST(micro_batches_drop_other_elements) {
    static sentences b;
    double loss[3];
    wf_transformer_config c = small_config();
    wf_optimizer_options o = options_of(WF_ADAM, false);
    pupil p = open_pupil(&c, 0.3, WF_F32, 3, &o, 2, 1);
    random_sentences(&b, &c, 4, 7, 6, 1);
    for (int i = 0; i < 3; i++) { /* micro-batches 0 and 1, and 0 again of the same update */
        if (i % 2 == 0) assert_trainer(p.t, wf_trainer_begin(p.t, 2, NULL, NULL));
        accumulate(&p, &b, i % 2);
        values v = fetched(wf_trainer_plan(p.t), p.m->loss.loss);
        loss[i] = v.data[0];
        free_values(&v, 1);
    }
    ck_assert(loss[0] == loss[2] && loss[0] != loss[1]);
    close_pupil(&p);
}

/* ---- averages -------------------------------------------------------------------------------- */

enum { AVERAGED = 6 };

/* The average of the first two weights after `steps` steps, by its definition. */
static void expect_average(double history[AVERAGED][2], int steps, double d, double *out) {
    double weights = 0;
    out[0] = out[1] = 0;
    for (int i = 0; i < steps; i++) {
        double w = pow(d, steps - 1 - i);
        weights += w, out[0] += w * history[i][0], out[1] += w * history[i][1];
    }
    out[0] /= weights, out[1] /= weights;
}

static pupil open_averaged(void) {
    wf_transformer_config c = small_config();
    wf_optimizer_options o = options_of(WF_ADAM, false);
    o.average_decay = 0.75;
    return open_pupil(&c, 0, WF_F64, 3, &o, 0, 1);
}

static void train(const pupil *p, int step) {
    static sentences b;
    random_sentences(&b, &wf_transformer_of(p->m)->config, 4, 7, 6, (uint64_t)step);
    train_step(p->t, p->m, &b);
}

TEST(averages_follow_their_definition) {
    double history[AVERAGED][2], want[2];
    pupil p = open_averaged();
    const wf_optimizer *o = wf_trainer_optimizer(p.t);
    for (int step = 1; step <= AVERAGED; step++) {
        train(&p, step);
        double *w = leaf_values(o->params[0]), *have = leaf_values(o->averages[0]);
        history[step - 1][0] = w[0], history[step - 1][1] = w[1];
        expect_average(history, step, 0.75, want);
        ck_assert_double_eq_tol(have[0], want[0], 1e-12);
        ck_assert_double_eq_tol(have[1], want[1], 1e-12);
        ck_assert(step == 1 ? have[0] == w[0] : have[0] != w[0]);
        free(w), free(have);
    }
    close_pupil(&p);
}

TEST(averages_are_swapped_and_saved) {
    static const char path[] = "steps_averages.safetensors";
    char message[WF_MESSAGE];
    pupil p = open_averaged(), loaded = open_averaged();
    const wf_optimizer *a = wf_trainer_optimizer(p.t), *l = wf_trainer_optimizer(loaded.t);
    for (int step = 1; step <= 3; step++) train(&p, step);
    ck_assert_msg(wf_model_save(p.m, path, p.t, NULL, 0, message), "%s", message);
    wf_file *f = wf_file_open(path);
    ck_assert_msg(wf_model_load_weights(loaded.m, f, message), "%s", message);
    assert_trainer(loaded.t, wf_trainer_resume(loaded.t, f, 3));
    ck_assert_int_eq(wf_trainer_steps(loaded.t), 3);
    assert_trainer(p.t, wf_trainer_swap_averages(p.t));
    for (int i = 0; i < a->n; i++) {
        double *average = leaf_values(l->averages[i]), *param = leaf_values(l->params[i]);
        double *swapped = leaf_values(a->params[i]), *kept = leaf_values(a->averages[i]);
        size_t bytes = (size_t)wf_count(a->params[i]) * sizeof *average;
        ck_assert_mem_eq(swapped, average, bytes);
        ck_assert_mem_eq(kept, param, bytes);
        free(average), free(param), free(swapped), free(kept);
    }
    wf_file_free(f), remove(path);
    close_pupil(&p), close_pupil(&loaded);
}

TEST(without_averages_nothing_is_swapped) {
    wf_transformer_config c = small_config();
    wf_optimizer_options o = options_of(WF_ADAM, false);
    pupil p = open_pupil(&c, 0, WF_F32, 3, &o, 0, 1);
    ck_assert(!wf_trainer_swap_averages(p.t) && !wf_trainer_swap_averages(NULL));
    assert_contains(wf_trainer_error(p.t), "without averages");
    ck_assert(!wf_optimizer_swap_averages(wf_trainer_optimizer(p.t)));
    ck_assert(!wf_optimizer_swap_averages(NULL));
    ck_assert(wf_optimizer_average_rate(NULL, 3) == 1);
    close_pupil(&p);
}
