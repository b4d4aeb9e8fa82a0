/* tests/models/test_guided.c - the loss of guided alignment: its value is that of a formula in
 * plain C, its gradients are right, and without links it changes nothing. */
#include <math.h>

#include "core/compose.h"
#include "core/graph_internal.h"
#include "models/model_internal.h"
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(guided)

enum { ROWS = 3, SOURCES = 5, TARGETS = 4, CELLS = ROWS * TARGETS * SOURCES };
static const double weight = 0.3;

static sentences b;
static int32_t links[CELLS];

static wf_model *guided_model(double factor) {
    const wf_training_config training = { .alignment_weight = factor };
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, &training, WF_F64, 3);
    random_sentences(&b, &c, ROWS, SOURCES, TARGETS, 8);
    return m;
}

/* Draws links from targets to sources, so that some targets have none, some one, and some
 * several. */
static void draw_links(void) {
    uint32_t random = 7;
    for (int i = 0; i < CELLS; i++) {
        random = random * 1664525 + 1013904223;
        links[i] = (random >> 28) < 4 && i % SOURCES < b.src_length[i / (TARGETS * SOURCES)];
    }
}

static wf_plan *plan_for(wf_model *m, wf_tensor *const *fetch, int n) {
    wf_tensor *const feed[] = { m->src, m->src_length, m->tgt, m->labels, m->alignment };
    wf_plan *p = wf_plan_new(
        m->graph, &(wf_plan_options){
                      .fetch = fetch, .n_fetch = n, .feed = feed, .n_feed = m->alignment ? 5 : 4 });
    ck_assert_msg(wf_plan_ok(p), "%s", wf_plan_error(p));
    return p;
}

static void run_plan(wf_plan *p, const wf_model *m) {
    feed_sentences(p, m, &b);
    if (m->alignment) assert_plan(p, wf_feed(p, m->alignment, links, sizeof links));
    assert_plan(p, wf_run(p));
}

static double number_of(wf_plan *p, const wf_tensor *t) {
    double value = NAN;
    assert_plan(p, wf_fetch(p, t, &value, sizeof value));
    return value;
}

/* The loss in plain C, from the attention weights of head 0. */
static double loss_of(const double *weights, int64_t heads) {
    double sum = 0;
    for (int r = 0; r < ROWS * TARGETS; r++) {
        const double *w = weights + ((r / TARGETS) * heads * TARGETS + r % TARGETS) * SOURCES;
        int count = 0;
        for (int s = 0; s < SOURCES; s++) count += links[r * SOURCES + s];
        for (int s = 0; s < SOURCES; s++)
            if (links[r * SOURCES + s]) sum -= log(w[s] + 1e-6) / count;
    }
    return sum;
}

TEST(the_loss_is_that_of_head_0_in_the_last_layer) {
    wf_model *m = guided_model(weight);
    draw_links();
    wf_tensor *weights = m->maps[2].weights[m->maps[2].layers - 1];
    wf_tensor *const fetch[] = { m->objective, m->alignment_loss, m->loss.loss, weights };
    wf_plan *p = plan_for(m, fetch, 4);
    run_plan(p, m);
    values w = fetched(p, weights);
    double own = number_of(p, m->alignment_loss), by_hand = loss_of(w.data, weights->shape[1]);
    ck_assert_msg(own > 1, "a loss of %g", own);
    ck_assert_double_eq_tol(own, by_hand, 1e-10 * by_hand);
    ck_assert_double_eq_tol(number_of(p, m->objective), number_of(p, m->loss.loss) + weight * own,
                            1e-10 * by_hand);
    free_values(&w, 1);
    wf_plan_free(p);
    close_model(m);
}

TEST(without_links_it_is_the_loss_of_outputs) {
    wf_model *m = guided_model(weight), *plain = guided_model(0);
    memset(links, 0, sizeof links);
    ck_assert(!plain->alignment && !plain->alignment_loss && plain->objective == plain->loss.loss);
    wf_plan *p = plan_for(m, &m->objective, 1), *q = plan_for(plain, &plain->objective, 1);
    run_plan(p, m);
    run_plan(q, plain);
    ck_assert(number_of(p, m->objective) == number_of(q, plain->objective));
    wf_plan_free(p);
    wf_plan_free(q);
    close_model(m);
    close_model(plain);
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* The derivative by one element of a parameter, as a difference quotient of four other points. */
static double slope(wf_plan *p, const wf_model *m, wf_tensor *param, double *x, int64_t i) {
    static const double at[] = { -2, -1, 1, 2 }, by[] = { 1, -8, 8, -1 };
    double own = x[i], h = 1e-3 * (fabs(own) > 1 ? fabs(own) : 1), sum = 0;
    for (int k = 0; k < 4; k++) {
        x[i] = own + at[k] * h;
        ck_assert(wf_write(param, x, wf_bytes(param)));
        run_plan(p, m);
        sum += by[k] * number_of(p, m->alignment_loss);
    }
    x[i] = own;
    ck_assert(wf_write(param, x, wf_bytes(param)));
    return sum / (12 * h);
}

static const char *const guided_params[] = {
    "transformer.decoder.layers.1.multihead_attn.in_proj_weight",
    "transformer.decoder.layers.1.multihead_attn.in_proj_bias",
    "transformer.decoder.layers.1.norm1.weight",
    "transformer.decoder.layers.0.self_attn.in_proj_weight",
    "transformer.encoder.layers.1.linear1.weight",
    "transformer.encoder.layers.0.norm2.bias",
};

TEST_ROWS(gradients_are_right, COUNT_OF(guided_params)) {
    enum { ELEMENTS = 24 };
    wf_model *m = guided_model(weight);
    draw_links();
    wf_tensor *param = wf_find(m->graph, guided_params[_i]), *grad = NULL;
    ck_assert_msg(param, "there is no %s", guided_params[_i]);
    ck_assert(wf_grad(m->alignment_loss, &param, 1, &grad));
    wf_plan *p = plan_for(m, (wf_tensor *const[]){ m->alignment_loss, grad }, 2);
    run_plan(p, m);
    values exact = fetched(p, grad);
    double *x = malloc(wf_bytes(param)), most = 0;
    int64_t n = wf_count(param), step = n / ELEMENTS + 1;
    ck_assert(x && wf_read(param, x, wf_bytes(param)));
    for (int64_t i = 0; i < n; i += step) {
        double near = slope(p, m, param, x, i), a = exact.data[i];
        double scale = fmax(fmax(fabs(a), fabs(near)), 1e-3);
        ck_assert_msg(fabs(a - near) / scale <= 1e-8, "%s[%d]: %.12g and %.12g", param->name,
                      (int)i, a, near);
        most = fmax(most, fabs(a));
    }
    ck_assert_msg(most > 1e-4, "nothing of %s matters", param->name);
    free(x);
    free_values(&exact, 1);
    wf_plan_free(p);
    close_model(m);
}

TEST_ROWS(a_weight_outside_of_its_range_is_refused, 4) {
    static const double weights[] = { -0.1, NAN, INFINITY, 2e6 };
    const wf_training_config training = { .alignment_weight = weights[_i] };
    wf_transformer_config c = wf_transformer_defaults();
    c.src_vocab = c.tgt_vocab = 17;
    wf_model *m = wf_transformer_new(&c, &training, WF_F32, 1, NULL);
    ck_assert(m && !wf_ok(m->graph));
    ck_assert_ptr_nonnull(strstr(wf_error(m->graph), "alignment weight of"));
    wf_model_free(m);
}

TEST(a_model_without_cross_attention_is_refused) {
    const wf_training_config training = { .alignment_weight = weight };
    wf_language_model_config c = wf_language_model_defaults(WF_GPT2);
    c.vocab = 17;
    wf_model *m = wf_language_model_new(&c, &training, WF_F32, 1, NULL);
    ck_assert(m && !wf_ok(m->graph));
    ck_assert_ptr_nonnull(strstr(wf_error(m->graph), "with cross-attention, and this has none"));
    wf_model_free(m);
}
