/* tests/nn/test_learning.c - the Transformer learns: its first loss is the expected one, it fits
 * one batch, and it learns to copy; the number of threads changes no bit. */
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(learning)

TEST_ROWS(the_first_loss_is_about_log_v, 16) {
    static sentences b;
    wf_transformer_config c = course_config();
    c.norm_first = _i & 1, c.tie = (wf_tie)(_i >> 1 & 3) % 3, c.scale_embedding = _i >> 3;
    c.src_vocab = c.tgt_vocab = 200;
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    wf_plan *p = wf_model_plan(m, WF_PLAN_EVALUATE, NULL);
    random_sentences(&b, &c, 40, 12, 30, 5);
    values nll = run_for(p, m, &b, m->loss.nll);
    double mean = nll.data[0] / (40 * 30), least = log(200);
    ck_assert_msg(mean >= least - 0.05 && mean <= least + 1, "%g, not from %g to %g", mean, least,
                  least + 1);
    free_values(&nll, 1);
    wf_plan_free(p), close_model(m);
}

static wf_trainer *open_scheduled(const wf_model *m, const wf_schedule *schedule, wf_pool *pool) {
    wf_trainer *t = wf_trainer_new(
        m->graph, m->loss.loss, m->loss.count,
        &(wf_trainer_options){ .optimizer = adam_options(), .schedule = *schedule, .pool = pool });
    assert_trainer(t, wf_trainer_ok(t));
    return t;
}

TEST_ROWS(one_batch_can_be_overfit, 2) {
    static sentences b;
    wf_transformer_config c = small_config();
    c.norm_first = c.encoder_norm = c.decoder_norm = _i;
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    const wf_schedule schedule = { WF_CONSTANT_RATE, 5e-3, 50, 0, 0 };
    wf_trainer *t = open_scheduled(m, &schedule, NULL);
    random_sentences(&b, &c, 4, 6, 5, 5);
    double loss = 1;
    int step = 0;
    while (loss >= 0.01 && step < 1000) step++, loss = train_step(t, m, &b);
    ck_assert_msg(loss < 0.01, "%g after %d steps", loss, step);
    wf_trainer_free(t), close_model(m);
}

/* Trains on the copy task, with or without the start token before the decoder's input. Returns the
 * last loss; *right is the number of unseen copies, of 100, that are generated exactly. */
static double copies_after(bool start, int steps, int *right) {
    static sentences b;
    wf_transformer_config c = course_config();
    c.src_vocab = c.tgt_vocab = 12, c.d_model = 32, c.dim_feedforward = 64;
    wf_schedule schedule = { WF_LINEAR_DECAY, 5e-3, 50, steps, 0 };
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    wf_pool *pool = wf_pool_new(2);
    wf_trainer *t = open_scheduled(m, &schedule, pool);
    double loss = 0;
    for (int step = 1; step <= steps; step++) {
        copy_sentences(&b, 32, 5, 5, 12, start, 1000 + (uint64_t)(10 * step));
        loss = train_step(t, m, &b);
    }
    *right = exact_copies(m, 100, 5, 5, 77);
    wf_trainer_free(t), wf_pool_free(pool), close_model(m);
    return loss;
}

TEST(generation_needs_the_start_token_in_training) {
    int with, without;
    double loss_with = copies_after(true, 700, &with),
           loss_without = copies_after(false, 700, &without);
    ck_assert_msg(loss_with < 0.1 && with >= 90, "with the start token: loss %g, %d of 100",
                  loss_with, with);
    ck_assert_msg(loss_without < 0.1 && without <= 50, "without it: loss %g, %d of 100",
                  loss_without, without);
}

/* Returns all parameters after 200 steps with dropout. */
static values trained(int threads, wf_model **out) {
    static sentences b;
    wf_transformer_config c = small_config();
    wf_training_config training = with_dropout(0.1);
    wf_model *m = *out = open_model(&c, &training, WF_F32, 3);
    wf_pool *pool = wf_pool_new(threads);
    wf_trainer *t = open_trainer(m, NULL, 1e-3, pool);
    for (int step = 1; step <= 200; step++) {
        copy_sentences(&b, 32, 3, 12, 17, true, (uint64_t)(10 * step));
        train_step(t, m, &b);
    }
    wf_trainer_free(t), wf_pool_free(pool);
    values all = { 0, malloc((size_t)wf_model_parameter_count(m) * sizeof(double)) };
    wf_tensor *params[256];
    for (int i = 0, n = wf_parameters(m->graph, NULL, params, 256); i < n; i++) {
        double *data = leaf_values(params[i]);
        memcpy(all.data + all.count, data, (size_t)wf_count(params[i]) * sizeof *data);
        all.count += wf_count(params[i]);
        free(data);
    }
    return all;
}

TEST(the_number_of_threads_changes_no_bit) {
    wf_model *m;
    values one = trained(1, &m);
    close_model(m);
    for (int threads = 2; threads <= 5; threads += 3) {
        values more = trained(threads, &m);
        ck_assert_msg(same_bits(one, more), "%d threads give other weights than one", threads);
        free_values(&more, 1), close_model(m);
    }
    free_values(&one, 1);
}
