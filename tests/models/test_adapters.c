/* tests/models/test_adapters.c - adapters that a program adds to a loaded model with a hook: the
 * model's parameters are frozen, and those of the adapters are trained, saved and loaded alone. */
#define _XOPEN_SOURCE 700 /* mkstemp */
#include <stdio.h>
#include <unistd.h>

#include "core/save.h"
#include "models/language_model.h"
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(adapters)

static char base_path[] = "/tmp/weft-adapters-base-XXXXXX", path[] = "/tmp/weft-adapters-XXXXXX";
static char message[WF_MESSAGE];

static void make_files(void) {
    int base = mkstemp(base_path), other = mkstemp(path);
    ck_assert(base >= 0 && other >= 0);
    close(base), close(other);
}

static void remove_files(void) {
    unlink(base_path), unlink(path);
    strcpy(strrchr(base_path, '-') + 1, "XXXXXX"), strcpy(strrchr(path, '-') + 1, "XXXXXX");
}

SETUP(make_files, remove_files)

/* ---- LoRA (Hu et al. 2021): W + B A, with B zeros at first ----------------------------------- */

enum { RANK = 2 };

static bool ends_with(const char *name, const char *tail) {
    size_t n = strlen(name), m = strlen(tail);
    return n >= m && strcmp(name + n - m, tail) == 0;
}

static wf_tensor *lora(void *user, wf_tensor *w) {
    (void)user;
    if (!ends_with(w->name, "in_proj_weight") && !ends_with(w->name, "out_proj.weight"))
        return NULL;
    wf_graph *g = w->graph;
    int64_t out = w->shape[0], in = w->shape[1];
    wf_tensor *a = wf_param(g, "lora_A", 2, (int64_t[]){ RANK, in }, wf_init_normal(0.3));
    wf_tensor *b = wf_param(g, "lora_B", 2, (int64_t[]){ out, RANK }, wf_init_zeros());
    return wf_add(w, wf_matmul(b, a)); /* [out,in] */
}

static bool is_lora(void *user, const wf_tensor *t) {
    (void)user;
    return strstr(t->name, ".lora_") != NULL;
}

static const wf_training_config with_lora = { .on_param = lora };

/* A Transformer, or a language model. */
static wf_model *record(bool in_one_row, const wf_training_config *training, wf_dtype real) {
    wf_transformer_config c = small_config();
    wf_language_model_config l = wf_language_model_defaults(WF_GPT2);
    l.vocab = 17, l.max_len = 64, l.d_model = 16, l.num_heads = 2, l.dim_feedforward = 32;
    l.layers = 2;
    wf_model *m = in_one_row ? wf_language_model_new(&l, training, real, 3, message)
                             : wf_transformer_new(&c, training, real, 3, message);
    ck_assert_msg(m, "%s", message);
    ck_assert_msg(wf_ok(m->graph), "%s", wf_error(m->graph));
    return m;
}

static wf_model *loaded(const char *from, const wf_training_config *training) {
    wf_file *f = wf_file_open(from);
    wf_model *m = wf_model_load(f, training, WF_F32, 9, message);
    ck_assert_msg(m, "%s", message);
    ck_assert_msg(wf_ok(m->graph), "%s", wf_error(m->graph));
    wf_file_free(f);
    return m;
}

/* Asserts that b has every parameter of a, except those of adapters, with the same bits. */
static void assert_same_base(const wf_model *a, const wf_model *b) {
    for (int id = 0; id < wf_node_count(a->graph); id++) {
        const wf_tensor *t = wf_node(a->graph, id);
        if (t->kind != WF_PARAM || is_lora(NULL, t)) continue;
        ck_assert_msg(wf_find(b->graph, t->name), "%s", t->name);
        double *x = leaf_values(t), *y = leaf_values(wf_find(b->graph, t->name));
        ck_assert_msg(!memcmp(x, y, (size_t)wf_count(t) * sizeof *x), "%s moved", t->name);
        free(x), free(y);
    }
}

/* Copies, whichever model it is. */
static void feed(wf_plan *p, const wf_model *m, int key) {
    static sentences b;
    copy_sentences(&b, 16, 3, 6, 17, true, (uint64_t)key % 8);
    const wf_batch pairs = { b.B, b.S, b.T, b.src, b.src_length, b.tgt, b.labels };
    assert_plan(p, wf_plan_ok(p) && wf_model_feed(m, p, &pairs));
}

static double number_of(wf_plan *p, const wf_tensor *t) {
    double *v = plan_values(p, t, NULL), number = v[0];
    free(v);
    return number;
}

enum { MOST_PARAMETERS = 256 };

/* A trainer of the parameters with these names, at a constant rate. */
static wf_trainer *new_trainer(const wf_model *m, const char *names, const wf_optimizer_options *o,
                               double rate) {
    wf_tensor *params[MOST_PARAMETERS];
    int n = wf_parameters(m->graph, names, params, MOST_PARAMETERS);
    return wf_trainer_new(m->graph, m->loss.loss, m->loss.count,
                          &(wf_trainer_options){ .optimizer = o ? *o : adam_options(),
                                                 .schedule = { .peak = rate },
                                                 .params = params,
                                                 .n_params = n });
}

#define LORA "*.lora_*"

static wf_trainer *trainer_of(const wf_model *m, const char *names) {
    wf_trainer *t = new_trainer(m, names, NULL, 2e-2);
    assert_trainer(t, wf_trainer_ok(t));
    return t;
}

/* The mean loss before the last update. */
static double train(wf_trainer *t, const wf_model *m, int from, int to) {
    wf_progress now = { 0 };
    ck_assert_int_eq(wf_trainer_steps(t), from - 1);
    for (int step = from; step <= to; step++) {
        feed(wf_trainer_plan(t), m, step);
        assert_trainer(t, wf_trainer_begin(t, 1, NULL, NULL) && wf_trainer_add(t, 0) &&
                              wf_trainer_update(t, &now));
    }
    return now.loss;
}

static void resume(wf_trainer *t, const char *from, int64_t steps) {
    wf_file *f = wf_file_open(from);
    assert_trainer(t, wf_trainer_resume(t, f, steps));
    wf_file_free(f);
}

static double loss_of(wf_model *m) {
    wf_plan *p = wf_model_plan(m, WF_PLAN_EVALUATE, NULL);
    feed(p, m, 1);
    assert_plan(p, wf_run(p));
    double loss = number_of(p, m->loss.loss) / number_of(p, m->loss.count);
    wf_plan_free(p);
    return loss;
}

static void save(const wf_model *m, const char *to, wf_trainer *t) {
    ck_assert_msg(wf_model_save(m, to, t, NULL, 0, message), "%s", message);
}

TEST_ROWS(adapters_are_trained_and_nothing_else, 2) {
    wf_model *base = record(_i, NULL, WF_F32);
    double untrained = loss_of(base);
    save(base, base_path, NULL);

    wf_model *m = loaded(base_path, &with_lora); /* its file knows no adapters */
    assert_same_base(base, m);
    ck_assert_double_eq(loss_of(m), untrained); /* B is zero */
    wf_trainer *t = trainer_of(m, LORA);
    double first = train(t, m, 1, 1), last = train(t, m, 2, 150);
    ck_assert_msg(last < 0.8 * first, "%g, then %g", first, last);
    assert_same_base(base, m);

    /* The adapters are saved alone, and loaded into another model that was made with the hook. */
    double adapted = loss_of(m);
    ck_assert_msg(wf_save(m->graph, path, &(wf_leaves){ .parameters = true, .keep = is_lora }, NULL,
                          0, message),
                  "%s", message);
    wf_model *other = loaded(base_path, &with_lora);
    wf_file *f = wf_file_open(path);
    wf_load_report report;
    ck_assert_msg(wf_load(other->graph, f, &(wf_load_options){ .what.keep = is_lora }, &report),
                  "%s", report.message);
    ck_assert_int_eq(report.loaded, wf_trainer_optimizer(t)->n);
    ck_assert_int_gt(report.loaded, 0);
    ck_assert_double_eq(loss_of(other), adapted);
    wf_file_free(f), wf_trainer_free(t);
    wf_model_free(base), wf_model_free(m), wf_model_free(other);
}

/* A model's file that contains adapters can be loaded without the hook: that gives the base
 * model. */
TEST_ROWS(a_model_file_with_adapters_is_for_everyone, 2) {
    wf_model *m = record(_i, &with_lora, WF_F32);
    wf_trainer *t = trainer_of(m, LORA);
    train(t, m, 1, 5);
    save(m, path, t);
    wf_model *without = loaded(path, NULL), *with = loaded(path, &with_lora);
    assert_same_base(m, without), assert_same_base(m, with);
    ck_assert_double_eq(loss_of(with), loss_of(m));
    ck_assert_double_ne(loss_of(without), loss_of(m));
    wf_trainer *u = trainer_of(with, LORA);
    resume(u, path, 5); /* moments were in the file, too */
    ck_assert_double_eq(train(t, m, 6, 12), train(u, with, 6, 12));
    wf_trainer_free(t), wf_trainer_free(u);
    save(without, base_path, NULL);
    wf_model_free(with), with = loaded(base_path, &with_lora);
    ck_assert_double_eq(loss_of(with), loss_of(without));
    wf_model_free(m), wf_model_free(without), wf_model_free(with);
}

/* A checkpoint of a training without adapters is resumed with adapters. */
TEST(a_checkpoint_goes_on_with_adapters) {
    wf_model *m = record(false, NULL, WF_F32);
    wf_trainer *t = trainer_of(m, "*");
    train(t, m, 1, 3);
    save(m, base_path, t);
    wf_model *with = loaded(base_path, &with_lora);
    wf_trainer *u = trainer_of(with, "*");
    resume(u, base_path, 3);
    ck_assert_int_gt(wf_trainer_optimizer(u)->n, wf_trainer_optimizer(t)->n);
    static const char moment[] = "optimizer.transformer.encoder.layers.0.linear1.weight.m";
    double *a = leaf_values(wf_find(m->graph, moment)),
           *b = leaf_values(wf_find(with->graph, moment));
    ck_assert_mem_eq(a, b, 16 * sizeof *a);
    ck_assert(train(u, with, 4, 6) > 0);
    free(a), free(b), wf_trainer_free(t), wf_trainer_free(u);
    wf_model_free(m), wf_model_free(with);
}

/* The state_dict is the base model's. */
TEST(a_state_dict_has_no_adapters) {
    wf_model *m = record(false, &with_lora, WF_F32);
    ck_assert_msg(wf_transformer_save_state_dict(m, path, false, message), "%s", message);
    wf_file *f = wf_file_open(path);
    for (int i = 0; i < wf_file_count(f); i++)
        ck_assert_ptr_null(strstr(wf_file_at(f, i)->name, "lora"));
    ck_assert_int_gt(wf_file_count(f), 30);
    wf_file_free(f), wf_model_free(m);
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* Adapters that do something. */
static void stir(const wf_model *m) {
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        wf_tensor *t = wf_node(m->graph, id);
        if (t->kind != WF_PARAM || !ends_with(t->name, "lora_B")) continue;
        double some[3 * 16 * RANK];
        for (int i = 0; i < COUNT_OF(some); i++) some[i] = number((uint64_t)id, (uint64_t)i) - 0.5;
        ck_assert(write_doubles(t, some));
    }
}

/* W := W + B A in every weight, and B := 0. */
static void merge(const wf_model *m) {
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        wf_tensor *b = wf_node(m->graph, id);
        if (b->kind != WF_PARAM || !ends_with(b->name, "lora_B")) continue;
        for (int next = id + 1;; next++) { /* looks for the sum of the weight and the product */
            wf_tensor *sum = wf_node(m->graph, next);
            if (sum->kind != WF_COMPUTED || sum->in[0]->kind != WF_PARAM || sum->ndim != 2 ||
                sum->in[0] == b)
                continue;
            values w;
            evaluate(&sum, 1, 1, false, &w);
            ck_assert(write_doubles(sum->in[0], w.data));
            free_values(&w, 1);
            break;
        }
        double zeros[3 * 16 * RANK] = { 0 };
        ck_assert(write_doubles(b, zeros));
    }
}

typedef struct output {
    int32_t ids[4 * 12], n[4];
} output;

static output decode(wf_model *m) {
    output out = { 0 };
    const int32_t src[] = { 1, 2, 3, 4, 5, 6, 7, 0, 8, 9, 0, 0, 3, 0, 0, 0 }, n[] = { 4, 3, 2, 1 };
    wf_decoder *d = open_decoder(m, NULL);
    assert_decoder(d, wf_decode_greedy(d, 4, 4, src, n, 12, out.ids, out.n));
    wf_decoder_free(d);
    return out;
}

/* Decoding with adapters gives the outputs of merged weights: keys and values are cached with the
 * adapters' part. Packing weights does not change that. */
TEST_ROWS(adapters_decode_as_merged_weights_do, 2) {
    wf_model *m = record(_i, &with_lora, WF_F64), *packed = record(_i, &with_lora, WF_F64),
             *plain = record(_i, &with_lora, WF_F64), *merged = record(_i, &with_lora, WF_F64);
    stir(m), stir(packed), stir(merged);
    ck_assert_msg(wf_pack_weights(packed->graph, WF_PANELS, message), "%s", message);
    merge(merged);
    output a = decode(m), b = decode(packed), c = decode(merged), d = decode(plain);
    ck_assert_mem_eq(&a, &b, sizeof a);
    ck_assert_mem_eq(&a, &c, sizeof a);
    ck_assert(memcmp(&a, &d, sizeof a) != 0);
    ck_assert_double_eq(loss_of(m), loss_of(packed));
    ck_assert_double_eq_tol(loss_of(m), loss_of(merged), 1e-9);
    wf_model_free(m), wf_model_free(packed), wf_model_free(plain), wf_model_free(merged);
}

/* ---- gradients, sharing ---------------------------------------------------------------------- */

TEST_ROWS(gradients_reach_the_adapters, 2) {
    const wf_optimizer_options sgd = { .kind = WF_SGD };
    wf_model *m = record(_i, &with_lora, WF_F64);
    stir(m);
    const double h = 1e-6;
    /* A step of SGD at rate 1 subtracts the gradient of the mean loss, which is compared with
     * differences of the loss. */
    wf_trainer *t = new_trainer(m, LORA, &sgd, 1);
    assert_trainer(t, wf_trainer_ok(t));
    wf_tensor *a = wf_trainer_optimizer(t)->params[0];
    ck_assert(is_lora(NULL, a));
    double *before = leaf_values(a), *moved = malloc((size_t)wf_count(a) * sizeof *moved);
    double gradient[3], scale = 0;
    for (int i = 0; i < 3; i++) {
        double loss[2];
        for (int side = 0; side < 2; side++) {
            memcpy(moved, before, (size_t)wf_count(a) * sizeof *moved);
            moved[i] += side ? -h : h;
            ck_assert(write_doubles(a, moved));
            loss[side] = loss_of(m);
        }
        gradient[i] = (loss[0] - loss[1]) / (2 * h), scale = fmax(scale, fabs(gradient[i]));
    }
    ck_assert(write_doubles(a, before) && scale > 0);
    train(t, m, 1, 1);
    double *after = leaf_values(a);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol(before[i] - after[i], gradient[i], 1e-6 * scale);
    free(before), free(after), free(moved), wf_trainer_free(t), wf_model_free(m);
}

/* A hook that makes the second layer share the weights of the first one. */
static wf_tensor *share(void *user, wf_tensor *param) {
    (void)user;
    char first[WF_MESSAGE];
    const char *at = strstr(param->name, "layers.1.");
    if (!at) return NULL;
    snprintf(first, sizeof first, "%.*slayers.0.%s", (int)(at - param->name), param->name, at + 9);
    return wf_find(param->graph, first);
}

TEST(layers_share_their_weights) {
    const wf_training_config training = { .on_param = share };
    wf_model *m = record(true, &training, WF_F32);
    wf_trainer *t = trainer_of(m, "*");
    wf_tensor *unused = wf_find(m->graph, "transformer.layers.1.linear1.weight");
    double *before = leaf_values(unused), first = train(t, m, 1, 1), last = train(t, m, 2, 60);
    double *after = leaf_values(unused);
    ck_assert_mem_eq(before, after, (size_t)wf_count(unused) * sizeof *before);
    ck_assert_msg(last < first, "%g, then %g", first, last);
    free(before), free(after), wf_trainer_free(t), wf_model_free(m);
}

/* ---- freezing -------------------------------------------------------------------------------- */

#define DECODER "*.decoder.*"

TEST(frozen_parameters_stay) {
    const wf_training_config training = with_dropout(0.1);
    wf_model *m = record(false, &training, WF_F32), *was = record(false, NULL, WF_F32);
    wf_trainer *t = trainer_of(m, DECODER);
    train(t, m, 1, 20);
    int moved = 0, frozen = 0;
    for (int id = 0; id < wf_node_count(was->graph); id++) {
        const wf_tensor *p = wf_node(was->graph, id);
        if (p->kind != WF_PARAM) continue;
        double *a = leaf_values(p), *b = leaf_values(wf_find(m->graph, p->name));
        bool same = !memcmp(a, b, (size_t)wf_count(p) * sizeof *a);
        ck_assert_msg(same != wf_name_fits(DECODER, p->name), "%s", p->name);
        moved += !same, frozen += same;
        free(a), free(b);
    }
    ck_assert(moved > 10 && frozen > 10);
    ck_assert_int_eq(wf_trainer_optimizer(t)->n, moved);
    wf_trainer_free(t), wf_model_free(m), wf_model_free(was);
    m = record(false, &training, WF_F32);
    t = new_trainer(m, "nothing", NULL, 1e-2);
    ck_assert(!wf_trainer_ok(t));
    assert_contains(wf_trainer_error(t), "an optimizer needs parameters");
    wf_trainer_free(t), wf_model_free(m);
}

/* ---- what is handed out ---------------------------------------------------------------------- */

TEST(layers_and_logits_are_found) {
    static const char *const names[] = { "transformer.encoder.layers.1",
                                         "transformer.decoder.layers.0", "logits" };
    wf_model *m = record(false, NULL, WF_F32);
    wf_tensor *fetch[3], *inputs[] = { m->src, m->src_length, m->tgt, m->labels };
    for (int i = 0; i < 3; i++) ck_assert_ptr_nonnull(fetch[i] = wf_find(m->graph, names[i]));
    ck_assert_ptr_eq(fetch[2], m->logits);
    wf_plan *p = wf_plan_new(
        m->graph, &(wf_plan_options){ .fetch = fetch, .n_fetch = 3, .feed = inputs, .n_feed = 4 });
    int64_t shape[WF_MAX_DIMS];
    feed(p, m, 1);
    assert_plan(p, wf_run(p) && wf_bound_shape(p, fetch[1], shape) == 3);
    ck_assert(shape[0] == 16 && shape[2] == 16);
    wf_plan_free(p), wf_model_free(m);
}
