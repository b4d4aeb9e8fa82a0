/* tests/models/test_lora.c - low-rank adapters of a model (wf_adapters): they alone are trained, by
 * the right gradients, beside weights of any format; their file; merged weights; what is
 * refused. */
#define _XOPEN_SOURCE 700 /* mkstemp */
#include <stdio.h>
#include <unistd.h>

#include "core/graph_internal.h"
#include "models/language_model.h"
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(lora)

static char base_path[] = "/tmp/weft-lora-base-XXXXXX", path[] = "/tmp/weft-lora-XXXXXX";
static char message[WF_MESSAGE];

static void make_files(void) {
    int base = mkstemp(base_path), other = mkstemp(path);
    ck_assert(base >= 0 && other >= 0);
    close(base);
    close(other);
}

static void remove_files(void) {
    unlink(base_path);
    unlink(path);
    strcpy(strrchr(base_path, '-') + 1, "XXXXXX");
    strcpy(strrchr(path, '-') + 1, "XXXXXX");
}

SETUP(make_files, remove_files)

enum { RANK = 2, MOST = 256 };
#define LORA "*.lora_*"

/* Models and targets, and how many adapters they make. */
static const struct {
    bool in_one_row;
    const char *targets;
    int adapters;
    wf_decoder_kind decoder;
} rows[] = {
    { true, NULL, 4, WF_DECODER_ATTENTION },
    { true, "all-linear", 14, WF_DECODER_ATTENTION },
    { true, "in_proj,layers.1.linear2", 3, WF_DECODER_ATTENTION },
    { false, NULL, 12, WF_DECODER_ATTENTION },
    { false, "all-linear", 32, WF_DECODER_ATTENTION },
    { false, "multihead_attn.in_proj,out_proj,output", 9, WF_DECODER_ATTENTION },
    { false, "all-linear", 28, WF_DECODER_SSRU },
    { false, "all-linear", 32, WF_DECODER_AVERAGE },
    { false, "average.outer,forget_gate", 4, WF_DECODER_AVERAGE },
};

static wf_training_config adapted(int row) {
    return (wf_training_config){ .adapters = { RANK, 3, rows[row].targets } };
}

static wf_model *record(int row, const wf_training_config *training, wf_dtype real) {
    wf_transformer_config c = small_config();
    wf_language_model_config l = wf_language_model_defaults(WF_GPT2);
    l.vocab = 17;
    l.max_len = 64;
    l.d_model = 16;
    l.num_heads = 4;
    l.dim_feedforward = 32;
    l.num_kv_heads = 2;
    l.layers = 2;
    l.gated = true;
    c.tie = WF_TIE_NONE;
    c.decoder = rows[row].decoder;
    wf_model *m = rows[row].in_one_row ? wf_language_model_new(&l, training, real, 3, message)
                                       : wf_transformer_new(&c, training, real, 3, message);
    ck_assert_msg(m, "%s", message);
    ck_assert_msg(wf_ok(m->graph), "%s", wf_error(m->graph));
    return m;
}

static void feed(wf_plan *p, const wf_model *m, int key) {
    static sentences b;
    copy_sentences(&b, 16, 3, 6, 17, true, (uint64_t)key % 8);
    const wf_batch pairs = { b.B, b.S, b.T, b.src, b.src_length, b.tgt, b.labels };
    assert_plan(p, wf_plan_ok(p) && wf_model_feed(m, p, &pairs));
}

static double loss_of(wf_model *m) {
    wf_plan *p = wf_model_plan(m, WF_PLAN_EVALUATE, NULL);
    feed(p, m, 1);
    assert_plan(p, wf_run(p));
    double *loss = plan_values(p, m->loss.loss, NULL), *count = plan_values(p, m->loss.count, NULL);
    double mean = *loss / *count;
    free(loss);
    free(count);
    wf_plan_free(p);
    return mean;
}

static wf_trainer *trainer_of(const wf_model *m, wf_optimizer_options optimizer, double rate) {
    wf_tensor *params[MOST];
    int n = wf_parameters(m->graph, LORA, params, MOST);
    wf_trainer *t = wf_trainer_new(m->graph, m->loss.loss, m->loss.count,
                                   &(wf_trainer_options){ .optimizer = optimizer,
                                                          .schedule = { .peak = rate },
                                                          .params = params,
                                                          .n_params = n });
    assert_trainer(t, wf_trainer_ok(t));
    return t;
}

static void train(wf_trainer *t, const wf_model *m, int steps) {
    for (int i = 1; i <= steps; i++) {
        feed(wf_trainer_plan(t), m, i);
        assert_trainer(t, wf_trainer_begin(t, 1, NULL, NULL) && wf_trainer_add(t, 0) &&
                              wf_trainer_update(t, NULL));
    }
}

/* Adapters that do something. */
static void stir(const wf_model *m) {
    wf_trainer *t = trainer_of(m, adam_options(), 2e-2);
    train(t, m, 20);
    wf_trainer_free(t);
}

static void save(const wf_model *m, const char *to) {
    ck_assert_msg(wf_model_save(m, to, NULL, NULL, 0, message), "%s", message);
}

static wf_file *opened(const char *from) {
    wf_file *f = wf_file_open(from);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    return f;
}

/* ---- training -------------------------------------------------------------------------------- */

/* True if a step computes the gradient of a matrix of this shape. */
static bool computes(wf_plan *p, const wf_tensor *weight) {
    wf_step s;
    for (int i = 0; i < wf_step_count(p); i++) {
        if (!wf_step_at(p, i, &s) || !s.node || !s.node->forward || s.node->ndim != 2) continue;
        if (!memcmp(s.node->shape, weight->shape, 2 * sizeof(int64_t))) return true;
    }
    return false;
}

TEST_ROWS(adapters_alone_are_trained, COUNT_OF(rows)) {
    const wf_training_config training = adapted(_i);
    wf_model *m = record(_i, &training, WF_F32), *was = record(_i, NULL, WF_F32);
    double untrained = loss_of(was);
    ck_assert_double_eq(loss_of(m), untrained); /* B is zero */
    wf_trainer *t = trainer_of(m, adam_options(), 2e-2);
    ck_assert_int_eq(wf_trainer_optimizer(t)->n, 2 * rows[_i].adapters);
    feed(wf_trainer_plan(t), m, 1);
    for (int id = 0; id < wf_node_count(was->graph); id++) {
        const wf_tensor *w = wf_node(was->graph, id);
        if (w->kind == WF_PARAM && w->ndim == 2 && w->shape[1] == 16 && w->shape[0] > 20)
            ck_assert_msg(!computes(wf_trainer_plan(t), w), "%s has a gradient", w->name);
    }
    train(t, m, 100);
    double trained = loss_of(m);
    ck_assert_msg(trained < 0.95 * untrained, "%g, then %g", untrained, trained);
    for (int id = 0; id < wf_node_count(was->graph); id++) {
        const wf_tensor *w = wf_node(was->graph, id);
        if (w->kind != WF_PARAM) continue;
        double *x = leaf_values(w), *y = leaf_values(wf_find(m->graph, w->name));
        ck_assert_msg(!memcmp(x, y, (size_t)wf_count(w) * sizeof *x), "%s moved", w->name);
        free(x);
        free(y);
    }
    wf_trainer_free(t);
    wf_model_free(m);
    wf_model_free(was);
}

/* A step of SGD at rate 1 subtracts the gradient of the mean loss, which is compared with
 * differences of the loss. */
TEST_ROWS(gradients_are_those_of_the_loss, COUNT_OF(rows)) {
    const wf_training_config training = adapted(_i);
    const double h = 1e-6;
    wf_model *m = record(_i, &training, WF_F64);
    stir(m);
    wf_trainer *t = trainer_of(m, (wf_optimizer_options){ .kind = WF_SGD, .name = "sgd" }, 1);
    const wf_optimizer *o = wf_trainer_optimizer(t);
    double gradient[MOST], *before[MOST], scale = 0;
    for (int i = 0; i < o->n; i++) {
        double loss[2];
        before[i] = leaf_values(o->params[i]);
        for (int side = 0; side < 2; side++) {
            before[i][1] += side ? -2 * h : h;
            ck_assert(write_doubles(o->params[i], before[i]));
            loss[side] = loss_of(m);
        }
        before[i][1] += h;
        ck_assert(write_doubles(o->params[i], before[i]));
        gradient[i] = (loss[0] - loss[1]) / (2 * h);
        scale = fmax(scale, fabs(gradient[i]));
    }
    ck_assert(scale > 0);
    train(t, m, 1);
    for (int i = 0; i < o->n; i++) {
        double *after = leaf_values(o->params[i]);
        ck_assert_double_eq_tol(before[i][1] - after[1], gradient[i], 1e-6 * scale);
        free(after);
        free(before[i]);
    }
    wf_trainer_free(t);
    wf_model_free(m);
}

/* Base weights in bf16 or int8 are rounded once and not trained. The adapters beside them are not
 * rounded. */
TEST_ROWS(adapters_train_beside_rounded_weights, 2 * COUNT_OF(rows)) {
    const wf_layout layout = _i % 2 ? WF_PANELS_INT8 : WF_PANELS_BF16;
    const wf_training_config training = adapted(_i / 2);
    wf_model *m = record(_i / 2, &training, WF_F32);
    int packed = 0;
    double whole = loss_of(m);
    wf_model_free(m);
    m = record(_i / 2, &training, WF_F32);
    ck_assert_msg(wf_pack_weights(m->graph, layout, message), "%s", message);
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        packed += wf_layout_of(t) == layout;
        if (wf_from_hook(t)) ck_assert_int_eq(wf_layout_of(t), WF_ROW_MAJOR);
    }
    ck_assert_int_gt(packed, 5);
    double untrained = loss_of(m);
    ck_assert_double_eq_tol(untrained, whole, 0.05);
    stir(m);
    ck_assert_double_lt(loss_of(m), untrained);
    wf_model_free(m);
}

/* ---- files ----------------------------------------------------------------------------------- */

TEST_ROWS(a_file_of_adapters_is_applied_or_merged, COUNT_OF(rows)) {
    wf_training_config training = adapted(_i);
    wf_model *m = record(_i, &training, WF_F32), *base = record(_i, NULL, WF_F32);
    stir(m);
    save(base, base_path);
    save(m, path);
    double adapted_loss = loss_of(m), plain = loss_of(base);
    wf_file *f = opened(path), *b = opened(base_path);
    ck_assert_int_eq(wf_file_count(f), 2 * rows[_i].adapters);
    ck_assert_str_eq(wf_file_meta(f, "weft.kind"), "adapters");

    wf_training_config stored = { 0 };
    ck_assert_msg(wf_model_read_adapters(f, &stored.adapters, message), "%s", message);
    wf_model *other = wf_model_load(b, &stored, WF_F32, 8, message);
    ck_assert_msg(other && wf_model_load_adapters(other, f, message), "%s", message);
    ck_assert_double_eq(loss_of(other), adapted_loss);
    save(other, base_path);
    wf_file *again = opened(base_path);
    ck_assert_int_eq(wf_file_count(again), wf_file_count(f));
    for (int i = 0; i < wf_file_count(f); i++) {
        const wf_entry *e = wf_file_at(f, i), *same = wf_file_find(again, e->name);
        ck_assert(same && same->bytes == e->bytes && !memcmp(same->data, e->data, e->bytes));
    }
    ck_assert_str_eq(wf_file_meta(f, "weft.checksum"), wf_file_meta(again, "weft.checksum"));

    ck_assert_msg(wf_model_merge_adapters(base, f, message), "%s", message);
    ck_assert_double_eq_tol(loss_of(base), adapted_loss, 1e-5);
    ck_assert(fabs(plain - adapted_loss) > 1e-2);
    wf_file_free(f);
    wf_file_free(b);
    wf_file_free(again);
    wf_model_free(m);
    wf_model_free(base);
    wf_model_free(other);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static wf_tensor *nothing(void *user, wf_tensor *param) {
    (void)user;
    (void)param;
    return NULL;
}

static const struct {
    wf_training_config training;
    const char *says;
} impossible[] = {
    { { .adapters = { 2, 0, "q_proj,nothing" } }, "no matrix of the model is called 'nothing'" },
    { { .adapters = { 2, 0, "embedding" } }, "no matrix of the model is called 'embedding'" },
    { { .adapters = { 2, 0, "proj" } }, "no matrix of the model is called 'proj'" },
    { { .adapters = { 2, 0, "" } }, "there is no target of the adapters" },
    { { .adapters = { 2, 0, "in_proj,,out_proj" } }, "no matrix of the model is called ''" },
    { { .adapters = { 2, 0, "in_proj,q_proj" } }, "no matrix of the model is called 'q_proj'" },
    { { .adapters = { 2, -1, NULL } }, "the alpha of adapters is -1" },
    { { .adapters = { -2, 1, NULL } }, "adapters of rank -2" },
    { { .adapters = { 2, 1, NULL }, .on_param = nothing }, "not both" },
};

TEST_ROWS(impossible_adapters_are_refused, COUNT_OF(impossible)) {
    wf_language_model_config l = wf_language_model_defaults(WF_GPT2);
    l.vocab = 17;
    l.max_len = 64;
    l.d_model = 16;
    l.num_heads = 2;
    l.dim_feedforward = 32;
    wf_model *m = wf_language_model_new(&l, &impossible[_i].training, WF_F32, 3, message);
    ck_assert(m && !wf_ok(m->graph));
    assert_contains(wf_error(m->graph), impossible[_i].says);
    wf_model_free(m);
}

/* If one adapter of a file does not fit, the file is refused, and none of its adapters is
 * loaded. */
TEST(a_file_that_does_not_fit_is_refused) {
    const wf_training_config two = adapted(1), others = adapted(2);
    const wf_training_config three = { .adapters = { 3, 3, "all-linear" } };
    wf_model *m = record(1, &two, WF_F32), *base = record(1, NULL, WF_F32),
             *wider = record(1, &three, WF_F32), *fewer = record(1, &others, WF_F32),
             *rounded = record(1, NULL, WF_F32);
    stir(m);
    save(m, path);
    save(base, base_path);
    wf_file *f = opened(path), *b = opened(base_path);
    double plain = loss_of(base);
    ck_assert(!wf_model_load_weights(base, f, message));
    assert_contains(message, "it has adapters without their model");
    ck_assert(!wf_model_load_adapters(base, b, message));
    assert_contains(message, "it has no adapters");
    ck_assert(!wf_model_merge_adapters(base, b, message));
    assert_contains(message, "it has no adapters");
    ck_assert(!wf_model_load_adapters(wider, f, message));
    assert_contains(message, "have rank 2 and alpha 3, and those of the model 3 and 3");
    ck_assert(!wf_model_load_adapters(fewer, f, message));
    assert_contains(message, "in_proj.lora_A.weight' is not in the file");
    ck_assert(!wf_model_merge_adapters(m, f, message));
    assert_contains(message, "the model has adapters of its own");
    ck_assert(wf_pack_weights(rounded->graph, WF_PANELS_INT8, message));
    ck_assert(!wf_model_merge_adapters(rounded, f, message));
    assert_contains(message, "is rounded: adapters are merged into f32");
    wf_model *translator = record(4, NULL, WF_F32);
    ck_assert(!wf_model_merge_adapters(translator, f, message));
    assert_contains(message, "fits no adapter of the model");
    ck_assert_double_eq(loss_of(base), plain);
    wf_file_free(f);
    wf_file_free(b);
    wf_model_free(translator);
    wf_model_free(rounded);
    wf_model_free(m);
    wf_model_free(base);
    wf_model_free(wider);
    wf_model_free(fewer);
}
