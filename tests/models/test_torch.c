/* tests/models/test_torch.c - the Transformer against PyTorch's nn.Transformer, from files that
 * record_models.py wrote.
 *
 * The models load from state_dicts as PyTorch users save them: packed and separate q, k, v; tied
 * tables under all their names and under one; with and without biases and final norms. Logits,
 * losses and every gradient are compared in f32 and f64; then the losses of ten steps of Adam,
 * AdamW and SGD. */
#include <stdio.h>

#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(torch)

static wf_file *open_file(const char *kind, const char *name) {
    char relative[64], path[512];
    snprintf(relative, sizeof relative, "tests/data/%s_%s.safetensors", kind, name);
    wf_file *f = wf_file_open(source_path(relative, path, sizeof path));
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    return f;
}

static double element(const wf_entry *e, int64_t i) {
    double d;
    int32_t n;
    if (strcmp(e->dtype, "F64") == 0) return memcpy(&d, (const char *)e->data + 8 * i, 8), d;
    ck_assert_str_eq(e->dtype, "I32");
    return memcpy(&n, (const char *)e->data + 4 * i, 4), n;
}

static const wf_entry *entry(const wf_file *f, const char *name) {
    const wf_entry *e = wf_file_find(f, name);
    ck_assert_msg(e != NULL, "no '%s' among the recorded values", name);
    return e;
}

static values recorded(const wf_file *f, const char *name) {
    const wf_entry *e = entry(f, name);
    values v = { 1, NULL };
    for (int i = 0; i < e->ndim; i++) v.count *= e->shape[i];
    v.data = malloc((size_t)v.count * sizeof *v.data + 1);
    for (int64_t i = 0; i < v.count; i++) v.data[i] = element(e, i);
    return v;
}

static double recorded_scalar(const wf_file *f, const char *name) {
    return element(entry(f, name), 0);
}

static void read_ids(const wf_file *f, const char *name, const char *suffix, int32_t *out) {
    char full[64];
    snprintf(full, sizeof full, "%s%s", name, suffix);
    const wf_entry *e = entry(f, full);
    memcpy(out, e->data, e->bytes);
}

static void read_sentences(const wf_file *f, const char *suffix, sentences *b) {
    char name[64];
    snprintf(name, sizeof name, "src%s", suffix);
    b->B = (int)entry(f, name)->shape[0], b->S = (int)entry(f, name)->shape[1];
    snprintf(name, sizeof name, "tgt%s", suffix);
    b->T = (int)entry(f, name)->shape[1];
    read_ids(f, "src", suffix, b->src), read_ids(f, "src_length", suffix, b->src_length);
    read_ids(f, "tgt", suffix, b->tgt), read_ids(f, "labels", suffix, b->labels);
}

static wf_model *load(const char *name, const wf_training_config *training, wf_dtype real) {
    char message[WF_MESSAGE];
    wf_file *f = open_file("model", name);
    wf_model *m = wf_model_load(f, training, real, 1, message);
    ck_assert_msg(m != NULL, "%s: %s", name, message);
    wf_file_free(f);
    return m;
}

/* ---- logits, losses, gradients --------------------------------------------------------------- */

static const char *const cases[] = { "post", "pre", "tied", "plain", "uneven" };

static void compare(wf_plan *p, const wf_tensor *t, const wf_file *f, const char *name,
                    wf_dtype real) {
    values ours = fetched(p, t), theirs = recorded(f, name);
    double error = distance(ours, theirs), bound = real == WF_F64 ? 1e-10 : 1e-5;
    tally_note(real == WF_F64 ? TALLY_TORCH_F64 : TALLY_TORCH_F32, error);
    ck_assert_msg(error <= bound, "%s: error %.3g", name, error);
    free_values(&ours, 1), free_values(&theirs, 1);
}

enum { MOST_PARAMETERS = 250 };

static wf_plan *gradient_plan(const wf_model *m, wf_tensor *const *grads, int n) {
    wf_tensor *fetch[3 + MOST_PARAMETERS] = { m->logits, m->loss.loss, m->loss.nll };
    for (int i = 0; i < n; i++) fetch[3 + i] = grads[i];
    wf_plan *p = wf_plan_new(
        m->graph,
        &(wf_plan_options){ .fetch = fetch,
                            .n_fetch = 3 + n,
                            .feed = (wf_tensor *[]){ m->src, m->src_length, m->tgt, m->labels },
                            .n_feed = 4,
                            .training = true });
    ck_assert_msg(wf_plan_ok(p), "%s", wf_plan_error(p));
    return p;
}

static void compare_case(const char *name, wf_dtype real) {
    static sentences b;
    wf_file *f = open_file("values", name);
    wf_training_config training = { .label_smoothing = recorded_scalar(f, "smoothing") };
    wf_model *m = load(name, &training, real);
    wf_tensor *params[MOST_PARAMETERS], *grads[MOST_PARAMETERS];
    int n = wf_parameters(m->graph, NULL, params, MOST_PARAMETERS);
    ck_assert_int_le(n, MOST_PARAMETERS);
    ck_assert(wf_grad(m->loss.loss, params, n, grads));
    wf_plan *p = gradient_plan(m, grads, n);
    read_sentences(f, "", &b);
    feed_sentences(p, m, &b);
    assert_plan(p, wf_run(p));
    compare(p, m->logits, f, "logits", real);
    compare(p, m->loss.loss, f, "loss", real);
    compare(p, m->loss.nll, f, "nll", real);
    for (int i = 0; i < n; i++) {
        char grad[WF_MESSAGE];
        snprintf(grad, sizeof grad, "grad.%.200s", params[i]->name);
        compare(p, grads[i], f, grad, real);
    }
    wf_plan_free(p), wf_file_free(f), close_model(m);
}

TEST_ROWS(logits_losses_and_gradients, 2 * COUNT_OF(cases)) {
    const char *name = cases[_i / 2];
    compare_case(name, _i % 2 ? WF_F64 : WF_F32);
}

/* ---- ten steps ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    double rate;
    wf_optimizer_options o;
} optimizers[] = {
    { "adam", 0.01, { .kind = WF_ADAM, .beta1 = 0.9, .beta2 = 0.98, .eps = 1e-9 } },
    { "adamw", 0.01, { .kind = WF_ADAMW, ADAM_DEFAULTS, .weight_decay = 0.1, .clip_norm = 0.5 } },
    { "sgd", 0.05, { .kind = WF_SGD, .momentum = 0.9 } },
};

TEST_ROWS(ten_steps_of_every_optimizer, 2 * COUNT_OF(optimizers)) {
    static sentences b;
    wf_dtype real = _i % 2 ? WF_F64 : WF_F32;
    const char *name = optimizers[_i / 2].name;
    wf_file *f = open_file("steps", name);
    wf_model *m = load("post", NULL, real);
    wf_trainer *t = open_trainer(m, &optimizers[_i / 2].o, optimizers[_i / 2].rate, NULL);
    values losses = recorded(f, "losses"), norms = recorded(f, "norms");
    double bound = real == WF_F64 ? 1e-9 : 1e-4;
    for (int step = 0; step < 10; step++) {
        char suffix[8];
        snprintf(suffix, sizeof suffix, ".%d", step);
        read_sentences(f, suffix, &b);
        double loss = train_step(t, m, &b);
        values norm = fetched(wf_trainer_plan(t), wf_trainer_optimizer(t)->norm);
        ck_assert_double_eq_tol(loss, losses.data[step], bound);
        ck_assert_double_eq_tol(norm.data[0], norms.data[step], 10 * bound);
        free_values(&norm, 1);
    }
    free_values(&losses, 1), free_values(&norms, 1);
    wf_trainer_free(t), wf_file_free(f), close_model(m);
}
