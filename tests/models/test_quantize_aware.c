/* tests/models/test_quantize_aware.c - quantisation-aware training: a model has the loss of its
 * int8 file, and gradients pass the rounding unchanged (straight-through). After such training,
 * rounding to int8 costs less. Also refused configurations. */
#define _XOPEN_SOURCE 700 /* mkstemp */
#include <unistd.h>

#include "marian_files.h"
#include "models/language_model.h"
#include "tests/suites.h"

TESTS(quantize_aware)

enum { MOST = 256 };
static const wf_training_config by_row = { .quantize_aware = WF_QUANTIZE_INT8 };
static const wf_training_config by_matrix = { .quantize_aware = WF_QUANTIZE_MARIAN };

/* ---- the models ------------------------------------------------------------------------------ */

/* Transformers by their ties and decoders, then language models. */
static const struct {
    wf_tie tie;
    wf_decoder_kind decoder;
    bool in_one_row, llama;
} rows[] = {
    { WF_TIE_NONE, WF_DECODER_ATTENTION, false, false },
    { WF_TIE_ALL, WF_DECODER_SSRU, false, false },
    { WF_TIE_DECODER, WF_DECODER_AVERAGE, false, false },
    { WF_TIE_INPUTS, WF_DECODER_ATTENTION, false, false },
    { WF_TIE_NONE, WF_DECODER_ATTENTION, true, false },
    { WF_TIE_NONE, WF_DECODER_ATTENTION, true, true },
};

static wf_model *record(int row, const wf_training_config *training) {
    wf_transformer_config c = small_config();
    c.tie = rows[row].tie;
    c.decoder = rows[row].decoder;
    return rows[row].in_one_row ? open_language_model(rows[row].llama, training, 17, 64)
                                : open_model(&c, training, WF_F32, 3);
}

/* Copies the parameters of `to` from `from`, which may have more. int8 values are converted to the
 * numbers that they represent. */
static void copy_parameters(const wf_model *from, const wf_model *to) {
    wf_tensor *params[MOST];
    int n = wf_parameters(to->graph, NULL, params, MOST);
    for (int i = 0; i < n; i++) {
        wf_tensor *same = wf_find(from->graph, params[i]->name);
        ck_assert_msg(same, "%s", params[i]->name);
        double *numbers = leaf_values(same);
        ck_assert(write_doubles(params[i], numbers));
        free(numbers);
    }
}

/* A model in f32 with the values that the weights of m have after rounding to int8. */
static wf_model *rounded(int row, const wf_model *m) {
    char message[WF_MESSAGE] = "";
    wf_model *packed = record(row, NULL), *plain = record(row, NULL);
    ck_assert_msg(wf_pack_weights(packed->graph, WF_PANELS_INT8, message), "%s", message);
    copy_parameters(m, packed);
    copy_parameters(packed, plain);
    wf_model_free(packed);
    return plain;
}

/* ---- loss and gradients ---------------------------------------------------------------------- */

/* The loss, and its gradients with respect to all parameters. */
typedef struct measured {
    int n;
    values of[MOST + 1];
} measured;

static measured measure(wf_model *m, const sentences *b, int threads) {
    wf_tensor *params[MOST], *fetch[MOST + 1],
        *feed[] = { m->tgt, m->labels, m->src, m->src_length };
    const wf_batch pairs = { b->B, b->S, b->T, b->src, b->src_length, b->tgt, b->labels };
    measured out = { .n = 1 + wf_parameters(m->graph, NULL, params, MOST) };
    fetch[0] = m->loss.loss;
    ck_assert_msg(wf_grad(m->loss.loss, params, out.n - 1, fetch + 1), "%s", wf_error(m->graph));
    wf_pool *pool = wf_pool_new(threads);
    wf_plan_options o = { .fetch = fetch, .n_fetch = out.n, .feed = feed, .pool = pool };
    o.n_feed = m->src ? 4 : 2;
    wf_plan *p = wf_plan_new(m->graph, &o);
    assert_plan(p, wf_plan_ok(p) && wf_model_feed(m, p, &pairs) && wf_run(p));
    for (int i = 0; i < out.n; i++) out.of[i].data = plan_values(p, fetch[i], &out.of[i].count);
    wf_plan_free(p);
    wf_pool_free(pool);
    return out;
}

static double loss_of(wf_model *m, const sentences *b) {
    wf_plan *p = wf_model_plan(m, WF_PLAN_EVALUATE, NULL);
    const wf_batch pairs = { b->B, b->S, b->T, b->src, b->src_length, b->tgt, b->labels };
    assert_plan(p, wf_plan_ok(p) && wf_model_feed(m, p, &pairs) && wf_run(p));
    double *loss = plan_values(p, m->loss.loss, NULL), *count = plan_values(p, m->loss.count, NULL);
    double mean = *loss / *count;
    free(loss), free(count);
    wf_plan_free(p);
    return mean;
}

/* Asserts that the quantisation-aware model has the loss and gradients of the int8 model, to the
 * bit, and another loss than the plain model. */
static void assert_rounded(wf_model *aware, wf_model *in_int8, wf_model *plain,
                           const sentences *b) {
    measured want = measure(in_int8, b, 1);
    for (int threads = 1; threads <= 3; threads += 2) {
        measured have = measure(aware, b, threads);
        ck_assert_int_eq(have.n, want.n);
        for (int i = 0; i < have.n; i++)
            ck_assert_msg(same_bits(have.of[i], want.of[i]), "value %d", i);
        free_values(have.of, have.n);
    }
    ck_assert_double_eq(loss_of(aware, b), loss_of(in_int8, b));
    ck_assert_double_ne(loss_of(aware, b), loss_of(plain, b));
    free_values(want.of, want.n);
}

TEST_ROWS(a_model_has_the_loss_of_its_file_in_int8, COUNT_OF(rows)) {
    static sentences b;
    wf_model *aware = record(_i, &by_row), *plain = record(_i, NULL);
    copy_sentences(&b, 12, 3, 6, 17, true, 2);
    copy_parameters(aware, plain);
    wf_model *in_int8 = rounded(_i, aware);
    assert_rounded(aware, in_int8, plain, &b);
    close_model(aware), close_model(in_int8), close_model(plain);
}

/* ---- as Marian rounds ------------------------------------------------------------------------ */

/* Recorded f32 files of Marian: one table for all; two tables; one table and an output matrix;
 * average attention. */
static const int in_f32[] = { 0, 2, 4, 7 };

/* Exports an int8 file of Marian, with scales of activations from these pairs. */
static void *int8_file(wf_model *m, const sentences *b, size_t *bytes) {
    char message[WF_MESSAGE] = "";
    int32_t length[MAX_SENTENCES];
    const wf_batch pairs = { b->B, b->S, b->T, b->src, b->src_length, b->tgt, NULL };
    for (int i = 0; i < b->B; i++) length[i] = b->T;
    wf_marian_scales *s = wf_marian_scales_new(m, NULL, message);
    ck_assert_msg(s && wf_marian_scales_add(s, &pairs, length, message), "%s", message);
    void *file = wf_marian_export_int8(m, s, bytes, message);
    ck_assert_msg(file, "%s", message);
    wf_marian_scales_free(s);
    return file;
}

TEST_ROWS(a_model_has_the_loss_of_its_file_for_marian, COUNT_OF(in_f32)) {
    static sentences b;
    size_t bytes;
    char message[WF_MESSAGE] = "", path[] = "/tmp/weft-quantize-XXXXXX";
    char *model = recorded_file(in_f32[_i], "", &bytes);
    wf_hf hf, again;
    close(mkstemp(path));
    import(model, bytes, &hf);
    ck_assert_msg(wf_model_save(hf.model, path, NULL, NULL, 0, message), "%s", message);
    wf_file *f = wf_file_open(path);
    wf_model *aware = wf_model_load(f, &by_matrix, WF_F32, 0, message);
    wf_model *in_int8 = wf_model_load(f, NULL, WF_F32, 0, message);
    ck_assert_msg(aware && in_int8, "%s", message);
    random_sentences(&b, &wf_transformer_of(aware)->config, 8, 6, 7, 5);
    void *file = int8_file(hf.model, &b, &bytes);
    import(file, bytes, &again);
    copy_parameters(again.model, in_int8);
    assert_rounded(aware, in_int8, hf.model, &b);
    unlink(path);
    wf_file_free(f);
    wf_model_free(aware), wf_model_free(in_int8);
    wf_hf_free(&hf), wf_hf_free(&again);
    free(model), free(file);
}

/* ---- training -------------------------------------------------------------------------------- */

static void train_copies(const wf_model *m, int steps, double rate) {
    static sentences b;
    wf_optimizer_options optimizer = adam_options();
    wf_trainer *t = open_trainer(m, &optimizer, rate, NULL);
    for (int i = 0; i < steps; i++) {
        copy_sentences(&b, 24, 3, 6, 17, true, (uint64_t)i);
        train_step(t, m, &b);
    }
    wf_trainer_free(t);
}

static void multiply(const wf_model *m, const char *name, int64_t first, int64_t n, int64_t step,
                     double by) {
    wf_tensor *t = wf_find(m->graph, name);
    double *numbers = leaf_values(t);
    for (int64_t i = 0; i < n; i++) numbers[first + i * step] *= by;
    ck_assert(write_doubles(t, numbers));
    free(numbers);
}

/* Makes the first inner value of the feed-forward layers much smaller, and its weights in the
 * second matrix larger: the function of the model stays, but the steps of integers get coarse. */
static void make_coarse(const wf_model *m) {
    static const char *const stacks[] = { "encoder", "decoder" };
    const double by = 300;
    int64_t width = 16, inner = 24;
    char name[96];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "transformer.%s.layers.%d.linear1.weight", stacks[i / 2],
                 i % 2);
        multiply(m, name, 0, width, 1, 1 / by);
        strcpy(strstr(name, "weight"), "bias");
        multiply(m, name, 0, 1, 1, 1 / by);
        strcpy(strstr(name, "linear1"), "linear2.weight");
        multiply(m, name, 0, width, inner, by);
    }
}

typedef struct losses {
    double f32, int8;
} losses;

/* Continues the training of a model. Returns its losses in f32 and in int8. */
static losses trained_on(const wf_model *from, const wf_training_config *training, int steps) {
    static sentences b;
    wf_model *m = record(0, training), *plain = record(0, NULL);
    copy_parameters(from, m);
    if (steps) train_copies(m, steps, 2e-3);
    copy_sentences(&b, 64, 3, 6, 17, true, 1000);
    copy_parameters(m, plain);
    wf_model *in_int8 = rounded(0, m);
    losses l = { loss_of(plain, &b), loss_of(in_int8, &b) };
    close_model(m), close_model(plain), close_model(in_int8);
    return l;
}

TEST(a_model_that_was_trained_so_loses_less) {
    wf_model *m = record(0, NULL);
    train_copies(m, 500, 1e-2);
    losses fine = trained_on(m, NULL, 0);
    ck_assert_msg(fine.int8 < 1.1 * fine.f32, "%g and %g", fine.f32, fine.int8);
    make_coarse(m);
    losses coarse = trained_on(m, NULL, 0), plain = trained_on(m, NULL, 100);
    losses aware = trained_on(m, &by_row, 100);
    ck_assert_double_eq_tol(coarse.f32, fine.f32, 1e-5);
    ck_assert_double_gt(coarse.int8, 10 * coarse.f32);
    ck_assert_msg(aware.int8 - plain.f32 < (plain.int8 - plain.f32) / 10, "%g; %g and %g",
                  aware.int8, plain.f32, plain.int8);
    close_model(m);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static wf_tensor *nothing(void *user, wf_tensor *param) {
    (void)user;
    (void)param;
    return NULL;
}

static const struct {
    wf_training_config training;
    wf_dtype real;
    bool in_one_row;
    const char *says;
} impossible[] = {
    { { .quantize_aware = WF_QUANTIZE_INT8, .adapters = { 2, 1, NULL } },
      WF_F32,
      true,
      "a model is quantisation-aware, or has adapters" },
    { { .quantize_aware = WF_QUANTIZE_INT8, .on_param = nothing }, WF_F32, true, "not both" },
    { { .quantize_aware = WF_QUANTIZE_INT8 }, WF_F64, false, "is not f32" },
    { { .quantize_aware = WF_QUANTIZE_MARIAN }, WF_F32, true, "Marian has no such model" },
    { { .quantize_aware = WF_QUANTIZE_MARIAN },
      WF_F32,
      false,
      "Marian has no such model: it has sinusoidal-tensor2tensor positions" },
    { { .quantize_aware = (wf_quantize)3 }, WF_F32, false, "there is no rounding 3 of matrices" },
};

TEST_ROWS(impossible_rounding_is_refused, COUNT_OF(impossible)) {
    char message[WF_MESSAGE] = "";
    wf_language_model_config l = wf_language_model_defaults(WF_GPT2);
    l.vocab = 17;
    l.max_len = 64;
    l.d_model = 16;
    l.num_heads = 2;
    l.dim_feedforward = 32;
    wf_transformer_config c = small_config();
    const wf_training_config *training = &impossible[_i].training;
    wf_model *m = impossible[_i].in_one_row
                      ? wf_language_model_new(&l, training, impossible[_i].real, 3, message)
                      : wf_transformer_new(&c, training, impossible[_i].real, 3, message);
    ck_assert(m && !wf_ok(m->graph));
    assert_contains(wf_error(m->graph), impossible[_i].says);
    wf_model_free(m);
}

/* A weight that is NaN or infinite gives a loss that is not finite: rounding does not hide it. */
TEST_ROWS(what_is_not_finite_stays, 4) {
    static sentences b;
    size_t bytes;
    char message[WF_MESSAGE] = "", *model = recorded_file(0, "", &bytes);
    wf_hf hf;
    import(model, bytes, &hf);
    wf_model *m = wf_transformer_new(&wf_transformer_of(hf.model)->config,
                                     _i % 2 ? &by_matrix : &by_row, WF_F32, 0, message);
    ck_assert(m && wf_ok(m->graph));
    copy_parameters(hf.model, m);
    random_sentences(&b, &wf_transformer_of(m)->config, 8, 6, 7, 5);
    ck_assert(isfinite(loss_of(m, &b)));
    wf_tensor *t = wf_find(m->graph, "transformer.encoder.layers.0.linear1.weight");
    double *numbers = leaf_values(t);
    numbers[1] = _i / 2 ? INFINITY : NAN;
    ck_assert(write_doubles(t, numbers));
    ck_assert(!isfinite(loss_of(m, &b)));
    free(numbers), free(model);
    wf_model_free(m);
    wf_hf_free(&hf);
}
