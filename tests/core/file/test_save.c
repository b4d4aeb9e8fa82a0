/* tests/core/file/test_save.c - any graph saved and loaded: a resumed training has the same bits,
 * entries that are missing or do not fit are reported, and a load that fails changes no leaf. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "core/file_internal.h"
#include "core/graph_internal.h"
#include "nn/optimizer_internal.h"
#include "tests/suites.h"
#include "tests/support/faults.h"
#include "tests/support/support.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "core/save.h"
#include "nn/nn.h"

TESTS(save)

static char folder[] = "/tmp/weft-save-XXXXXX", path[64], message[WF_MESSAGE];

static void make_folder(void) {
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/w", folder);
}

static void remove_folder(void) {
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0); /* fails if a save left another file */
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
}

SETUP(make_folder, remove_folder)

/* ---- a model of one's own -------------------------------------------------------------------- */

enum { BATCH = 32, IN = 6, HIDDEN = 24, CLASSES = 4 };

typedef struct mlp {
    wf_graph *g;
    wf_tensor *x, *y, *loss;
    wf_optimizer optimizer;
    wf_optimizer_options o;
    wf_pool *pool;
    wf_plan *plan;
} mlp;

/* Records a two-layer perceptron with an optimizer, without any call that has to do with files. */
static void open_mlp(mlp *m, wf_optimizer_kind kind, int threads) {
    *m = (mlp){ .o = wf_optimizer_defaults(kind) };
    wf_graph *g = m->g = wf_graph_new(&(wf_graph_options){ .seed = 5 });
    m->x = wf_input(g, "x", WF_F32, SHAPE(BATCH, IN));
    m->y = wf_input(g, "y", WF_F32, SHAPE(BATCH, CLASSES));
    struct wf_linear_layer first = wf_linear_new(g, "first", IN, HIDDEN, true),
                           second = wf_linear_new(g, "second", HIDDEN, CLASSES, true);
    wf_tensor *h = wf_drop(wf_relu(wf_linear(&first, m->x)), 0.2, "drop"); /* [BATCH,HIDDEN] */
    wf_tensor *error = wf_sub(wf_linear(&second, h), m->y);
    m->loss = wf_sum(wf_square(error), WF_ALL_AXES, false);
    wf_tensor *params[8];
    int n = wf_parameters(g, NULL, params, 8);
    m->o.momentum = kind == WF_SGD ? 0.9 : 0;
    m->optimizer = wf_optimizer_new(g, m->loss, wf_constant(g, BATCH), params, n, &m->o);
    wf_tensor *fetch[9] = { m->loss }, *feed[] = { m->x, m->y, m->optimizer.rates };
    for (int i = 0; i < n; i++) fetch[i + 1] = m->optimizer.updates[i];
    m->pool = wf_pool_new(threads);
    wf_plan_options what = { .fetch = fetch,
                             .n_fetch = n + 1,
                             .feed = feed,
                             .n_feed = 3,
                             .pool = m->pool,
                             .training = true };
    m->plan = wf_plan_new(g, &what);
    ck_assert_msg(wf_plan_ok(m->plan), "%s", wf_plan_error(m->plan));
}

static void close_mlp(mlp *m) {
    wf_plan_free(m->plan), wf_pool_free(m->pool);
    wf_optimizer_free(&m->optimizer);
    end_graph(m->g);
}

/* Trains for the steps [from, to). The data of a step depend on its number alone. */
static void train(mlp *m, int from, int to) {
    double x[BATCH * IN], y[BATCH * CLASSES], rates[3];
    wf_random_step(m->plan, (uint64_t)from, 0);
    for (int step = from; step < to; step++) {
        for (int i = 0; i < COUNT_OF(x); i++) x[i] = number(1 + (uint64_t)step, (uint64_t)i) - 0.5;
        for (int i = 0; i < COUNT_OF(y); i++) y[i] = x[i % COUNT_OF(x)] * x[(i * 7) % COUNT_OF(x)];
        wf_optimizer_rates(&m->o, 1e-2, step + 1, rates);
        ck_assert_msg(wf_feed_reals(m->plan, m->x, x, COUNT_OF(x)) &&
                          wf_feed_reals(m->plan, m->y, y, COUNT_OF(y)) &&
                          wf_feed_reals(m->plan, m->optimizer.rates, rates, 3) && wf_run(m->plan),
                      "%s", wf_plan_error(m->plan));
    }
}

/* Returns the values of all parameters and buffers, which the caller frees. */
static values leaves_of(const wf_graph *g) {
    values all = { 0, malloc(1 << 20) };
    for (int id = 0; id < wf_node_count(g); id++) {
        const wf_tensor *t = wf_node(g, id);
        if (t->kind != WF_PARAM && t->kind != WF_BUFFER) continue;
        double *some = leaf_values(t);
        memcpy(all.data + all.count, some, (size_t)wf_count(t) * sizeof *some);
        all.count += wf_count(t), free(some);
    }
    return all;
}

static bool save(const wf_graph *g, const wf_leaves *what) {
    message[0] = '\0';
    return wf_save(g, path, what, &(wf_meta){ "step", "50" }, 1, message);
}

static bool load(wf_graph *g, const wf_load_options *o, wf_load_report *report) {
    wf_file *f = wf_file_open(path);
    bool ok = wf_load(g, f, o, report);
    wf_file_free(f);
    return ok;
}

static const struct {
    wf_optimizer_kind kind;
    int threads[3]; /* for all 100 steps, for the first 50, for the last 50 */
} halves[] = { { WF_ADAM, { 1, 1, 1 } },
               { WF_ADAM, { 1, 2, 3 } },
               { WF_ADAMW, { 3, 1, 2 } },
               { WF_SGD, { 2, 3, 1 } } };

TEST_ROWS(fifty_steps_and_fifty_are_a_hundred, COUNT_OF(halves)) {
    mlp whole, first, second;
    wf_load_report report;
    open_mlp(&whole, halves[_i].kind, halves[_i].threads[0]);
    train(&whole, 0, 100);

    open_mlp(&first, halves[_i].kind, halves[_i].threads[1]);
    train(&first, 0, 50);
    ck_assert_msg(save(first.g, NULL), "%s", message);
    close_mlp(&first);

    open_mlp(&second, halves[_i].kind, halves[_i].threads[2]);
    train(&second, 70, 75); /* other values in the leaves, which the load replaces */
    wf_file *f = wf_file_open(path);
    ck_assert_msg(wf_load(second.g, f, NULL, &report), "%s", report.message);
    ck_assert(wf_file_checked(f) && !report.message[0]);
    ck_assert_int_eq(report.loaded, halves[_i].kind == WF_SGD ? 8 : 12);
    train(&second, atoi(wf_file_meta(f, "step")), 100);
    wf_file_free(f);

    values a = leaves_of(whole.g), b = leaves_of(second.g);
    ck_assert(same_bits(a, b));
    free_values(&a, 1), free_values(&b, 1);
    close_mlp(&whole), close_mlp(&second);
}

/* ---- which leaves are saved ------------------------------------------------------------------ */

static bool is_first(void *user, const wf_tensor *t) {
    ++*(int *)user;
    return strncmp(t->name, "first.", 6) == 0;
}

static int saved(const wf_graph *g, const wf_leaves *what) {
    ck_assert_msg(save(g, what), "%s", message);
    wf_file *f = wf_file_open(path);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    int n = wf_file_count(f);
    wf_file_free(f);
    return n;
}

TEST(what_is_saved_can_be_chosen) {
    mlp m;
    int asked = 0;
    open_mlp(&m, WF_ADAM, 1);
    ck_assert_int_eq(saved(m.g, NULL), 12);
    ck_assert_int_eq(saved(m.g, &(wf_leaves){ 0 }), 12);
    ck_assert_int_eq(saved(m.g, &(wf_leaves){ .parameters = true }), 4);
    ck_assert_int_eq(saved(m.g, &(wf_leaves){ .buffers = true }), 8);
    ck_assert_int_eq(saved(m.g, &(wf_leaves){ .parameters = true, .buffers = true }), 12);
    ck_assert_int_eq(saved(m.g, &(wf_leaves){ .prefix = "second." }), 2);
    ck_assert_int_eq(saved(m.g, &(wf_leaves){ .prefix = "optimizer.second." }), 4);
    ck_assert_int_eq(saved(m.g, &(wf_leaves){ .prefix = "none" }), 0);
    ck_assert_int_eq(saved(m.g, &(wf_leaves){ .keep = is_first, .user = &asked }), 2);
    ck_assert_int_eq(asked, 12);
    close_mlp(&m);
}

/* A load does not ask for a transient buffer either, and ignores the entry of a file of weft 0.1,
 * which stored it. */
TEST(a_transient_buffer_stays_out_of_files) {
    const float five[] = { 5, 5 };
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = wf_param(g, "w", SHAPE(2), wf_init_constant(1));
    wf_tensor *sum = wf_transient_buffer(g, "w.sum", WF_F32, SHAPE(2), wf_init_constant(2));
    ck_assert_int_eq(saved(g, NULL), 1);
    wf_file *f = wf_file_open(path);
    ck_assert(wf_file_find(f, "w") && wf_load(g, f, NULL, NULL));
    wf_file_free(f);
    wf_entry old[] = { { "w", "F32", 1, { 2 }, five, sizeof five },
                       { "w.sum", "F32", 2, { 7, 0 }, five, 0 } };
    ck_assert_msg(wf_file_save(path, old, 2, NULL, 0, message), "%s", message);
    f = wf_file_open(path);
    wf_load_report report;
    ck_assert_msg(wf_load(g, f, NULL, &report), "%s", report.message);
    double *have = leaf_values(w), *kept = leaf_values(sum);
    ck_assert(report.loaded == 1 && have[0] == 5 && kept[0] == 2);
    free(have), free(kept), wf_file_free(f);
    end_graph(g);
}

/* Packed weights are stored as they are read: row by row. */
TEST(a_file_does_not_know_the_layout) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = wf_param(g, "w", SHAPE(70, 3), wf_init_uniform(1));
    wf_buffer(g, "ids", WF_I32, SHAPE(3), wf_init_constant(7));
    double *before = leaf_values(w);
    ck_assert(wf_set_layout(w, WF_PANELS));
    ck_assert_int_eq(saved(g, NULL), 2);
    wf_file *f = wf_file_open(path);
    const wf_entry *e = wf_file_find(f, "w");
    for (int i = 0; i < 210; i++) ck_assert(((const float *)e->data)[i] == (float)before[i]);
    ck_assert_str_eq(wf_file_find(f, "ids")->dtype, "I32");
    float zeros[210] = { 0 };
    ck_assert(wf_write(w, zeros, sizeof zeros) && wf_load(g, f, NULL, NULL));
    double *after = leaf_values(w);
    ck_assert_mem_eq(before, after, 210 * sizeof *before);
    free(before), free(after), wf_file_free(f);
    end_graph(g);
}

/* ---- what is in the file and not in the graph, and the other way round ----------------------- */

static const float some[6] = { 1, 2, 3, 4, 5, 6 };

static wf_graph *two_leaves(wf_dtype real) {
    wf_graph *g = new_graph(real);
    wf_param(g, "model.encoder.weight", SHAPE(2, 3), wf_init_constant(9));
    wf_param(g, "model.bias", SHAPE(2), wf_init_constant(8));
    return g;
}

static void check_values(wf_graph *g, double weight, double bias) {
    double *w = leaf_values(wf_find(g, "model.encoder.weight")),
           *b = leaf_values(wf_find(g, "model.bias"));
    ck_assert_msg(w[1] == weight && b[1] == bias, "%g %g, not %g %g", w[1], b[1], weight, bias);
    free(w), free(b);
}

/* A table of what was reported. */
typedef struct list {
    int n;
    char text[8][WF_MESSAGE];
} list;

static void add(void *user, const wf_load_item *item) {
    list *l = user;
    const char *name = item->leaf ? item->leaf->name : item->entry->name;
    ck_assert((item->outcome == WF_MISSING) == !item->entry);
    ck_assert((item->outcome == WF_UNEXPECTED) == !item->leaf);
    snprintf(l->text[l->n++], WF_MESSAGE, "%d %s: %.150s", (int)item->outcome, name, item->reason);
}

typedef struct tried {
    wf_entry entries[3];
    int n;
    wf_rename renames[2];
    int n_renames;
    unsigned allow;
    double weight, bias; /* afterwards */
    wf_load_report report;
    const char *listed[3]; /* NULL: no more */
} tried;

#define WEIGHT "model.encoder.weight", "F32", 2, { 2, 3 }, some, 24
#define BIAS "model.bias", "F32", 1, { 2 }, some, 8

static const tried trials[] = {
    { .entries = { { WEIGHT }, { BIAS } },
      .n = 2,
      .weight = 2,
      .bias = 2,
      .report = { 2, 0, 0, 0, "" },
      .listed = { "0 model.encoder.weight: ", "0 model.bias: " } },
    { .entries = { { WEIGHT } },
      .n = 1,
      .weight = 9,
      .bias = 8,
      .report = { 0, 1, 0, 0, "'model.bias' [2] is in the graph but not in the file" },
      .listed = { "1 model.bias: 'model.bias' [2] is in the graph but not in the file" } },
    { .entries = { { WEIGHT } },
      .n = 1,
      .allow = WF_ALLOW_MISSING,
      .weight = 2,
      .bias = 8,
      .report = { 1, 1, 0, 0, "" },
      .listed = { "1 model.bias: 'model.bias' [2] is in the graph but not in the file",
                  "0 model.encoder.weight: " } },
    { .entries = { { WEIGHT }, { BIAS }, { "more", "F32", 1, { 6 }, some, 24 } },
      .n = 3,
      .weight = 9,
      .bias = 8,
      .report = { 0, 0, 1, 0, "'more' [6] is in the file but not in the graph" },
      .listed = { "2 more: 'more' [6] is in the file but not in the graph" } },
    { .entries = { { WEIGHT }, { BIAS }, { "more", "F32", 1, { 6 }, some, 24 } },
      .n = 3,
      .allow = WF_ALLOW_UNEXPECTED,
      .weight = 2,
      .bias = 2,
      .report = { 2, 0, 1, 0, "" },
      .listed = { "2 more: 'more' [6] is in the file but not in the graph",
                  "0 model.encoder.weight: ", "0 model.bias: " } },
    { .entries = { { "model.encoder.weight", "F32", 2, { 3, 2 }, some, 24 }, { BIAS } },
      .n = 2,
      .weight = 9,
      .bias = 8,
      .report = { 0, 0, 0, 1,
                  "'model.encoder.weight' is [3,2] in the file, not [2,3] as in the model" },
      .listed = { "3 model.encoder.weight: 'model.encoder.weight' is [3,2] in the file, not [2,3] "
                  "as "
                  "in the model" } },
    { .entries = { { "model.encoder.weight", "F32", 2, { 3, 2 }, some, 24 }, { BIAS } },
      .n = 2,
      .allow = WF_ALLOW_MISFITS,
      .weight = 9,
      .bias = 2,
      .report = { 1, 0, 0, 1, "" },
      .listed = { "3 model.encoder.weight: 'model.encoder.weight' is [3,2] in the file, not [2,3] "
                  "as "
                  "in the model",
                  "0 model.bias: " } },
    /* A value that is too large is found before anything changes. */
    { .entries = { { WEIGHT }, { "model.bias", "F64", 1, { 2 }, (double[]){ 1, 1e300 }, 16 } },
      .n = 2,
      .weight = 9,
      .bias = 8,
      .report = { 0, 0, 0, 1,
                  "tensor 'model.bias': element 1 is 1.0000000000000001e+300, too "
                  "large for f32" },
      .listed = { "3 model.bias: tensor 'model.bias': element 1 is 1.0000000000000001e+300, too "
                  "large for f32" } },
    /* If loading has several problems, the message names one, a tensor that does not fit before one
     * that is missing or unexpected, and says how many more there are. */
    { .entries = { { "model.bias", "I32", 1, { 2 }, some, 8 }, { "a", "F32", 1, { 6 }, some, 24 } },
      .n = 2,
      .weight = 9,
      .bias = 8,
      .report = { 0, 1, 1, 1,
                  "tensor 'model.bias': I32 in the file cannot become f32; and 2 more "
                  "such" },
      .listed = { "2 a: 'a' [6] is in the file but not in the graph",
                  "1 model.encoder.weight: 'model.encoder.weight' [2,3] is in the graph but not in "
                  "the file",
                  "3 model.bias: tensor 'model.bias': I32 in the file cannot become f32" } },
    /* Other names in the file. */
    { .entries = { { "encoder.weight", "F32", 2, { 2, 3 }, some, 24 }, { BIAS } },
      .n = 2,
      .renames = { { "encoder.", "model.encoder." } },
      .n_renames = 1,
      .weight = 2,
      .bias = 2,
      .report = { 2, 0, 0, 0, "" },
      .listed = { "0 model.encoder.weight: ", "0 model.bias: " } },
    { .entries = { { "encoder.weight", "F32", 2, { 2, 3 }, some, 24 },
                   { "bias", "F32", 1, { 2 }, some, 8 } },
      .n = 2,
      .renames = { { "", "model." } },
      .n_renames = 1,
      .weight = 2,
      .bias = 2,
      .report = { 2, 0, 0, 0, "" },
      .listed = { "0 model.encoder.weight: ", "0 model.bias: " } },
    { .entries = { { WEIGHT }, { BIAS }, { "head.weight", "F32", 1, { 6 }, some, 24 } },
      .n = 3,
      .renames = { { "head.", NULL } },
      .n_renames = 1,
      .weight = 2,
      .bias = 2,
      .report = { 2, 0, 0, 0, "" },
      .listed = { "0 model.encoder.weight: ", "0 model.bias: " } },
    { .entries = { { BIAS }, { "bias", "F32", 1, { 2 }, some, 8 } },
      .n = 2,
      .renames = { { "bias", "model.bias" } },
      .n_renames = 1,
      .allow = 7,
      .weight = 9,
      .bias = 8,
      .report = { 0, 0, 0, 0, "'bias' and 'model.bias' are both for one leaf" } },
    { .entries = { { BIAS } },
      .n = 1,
      .renames = { { NULL, "x" } },
      .n_renames = 1,
      .weight = 9,
      .bias = 8,
      .report = { 0, 0, 0, 0, "rename 0 has no prefix in the file" } },
};

TEST_ROWS(a_report_says_what_became_of_each, COUNT_OF(trials)) {
    const tried *t = &trials[_i];
    list listed = { 0 };
    wf_load_report report;
    wf_graph *g = two_leaves(WF_F32);
    wf_load_options o = { .allow = t->allow,
                          .renames = t->renames,
                          .n_renames = t->n_renames,
                          .each = add,
                          .user = &listed };
    ck_assert_msg(wf_file_save(path, t->entries, t->n, NULL, 0, message), "%s", message);
    ck_assert(load(g, &o, &report) == !t->report.message[0]);
    ck_assert_str_eq(report.message, t->report.message);
    ck_assert_int_eq(report.loaded, t->report.loaded);
    ck_assert_int_eq(report.missing, t->report.missing);
    ck_assert_int_eq(report.unexpected, t->report.unexpected);
    ck_assert_int_eq(report.misfits, t->report.misfits);
    for (int i = 0; i < 3 && t->listed[i]; i++) ck_assert_str_eq(listed.text[i], t->listed[i]);
    ck_assert_int_eq(listed.n, report.loaded + report.missing + report.unexpected + report.misfits);
    check_values(g, t->weight, t->bias);
    end_graph(g);
}

/* BF16 and F16 entries, as in files of other programs, are converted to f32 and to f64. */
TEST(stored_types_convert) {
    const wf_entry entries[] = {
        { "model.encoder.weight", "BF16", 2, { 2, 3 }, (uint16_t[]){ 0, 0x3FC0, 0, 0, 0, 0 }, 12 },
        { "model.bias", "F16", 1, { 2 }, (uint16_t[]){ 0, 0x3E00 }, 4 },
    };
    ck_assert_msg(wf_file_save(path, entries, 2, NULL, 0, message), "%s", message);
    for (wf_dtype real = WF_F32; real <= WF_F64; real++) {
        wf_graph *g = two_leaves(real);
        ck_assert(load(g, NULL, NULL));
        check_values(g, 1.5, 1.5);
        end_graph(g);
    }
}

/* One leaf of a file of two is loaded, from a graph in f64 into one in f32. */
TEST(a_part_of_a_graph_is_loaded) {
    wf_graph *from = two_leaves(WF_F64), *to = two_leaves(WF_F32);
    wf_load_report report;
    write_doubles(wf_find(from, "model.bias"), (double[]){ 0.25, 0.75 });
    ck_assert_int_eq(saved(from, NULL), 2);
    wf_load_options o = { .what.prefix = "model.bias" };
    ck_assert(!load(to, &o, &report));
    ck_assert_str_eq(report.message,
                     "'model.encoder.weight' [2,3] is in the file but not in the graph");
    check_values(to, 9, 8);
    o.allow = WF_ALLOW_UNEXPECTED;
    ck_assert_msg(load(to, &o, &report), "%s", report.message);
    check_values(to, 9, 0.75);
    end_graph(from), end_graph(to);
}

/* ---- faults ---------------------------------------------------------------------------------- */

TEST(nothing_is_accepted) {
    wf_graph *g = two_leaves(WF_F32), *failed = wf_graph_new(NULL);
    wf_load_report report;
    wf_poison(failed, "a mistake");
    ck_assert(!wf_save(NULL, path, NULL, NULL, 0, message) && message[0]);
    ck_assert(!wf_save(g, NULL, NULL, NULL, 0, message) && message[0]);
    ck_assert(!wf_save(g, path, NULL, NULL, 1, message) && message[0]);
    ck_assert(!wf_save(failed, path, NULL, NULL, 0, message));
    assert_contains(message, "a mistake");
    ck_assert(!wf_save(g, path, NULL, NULL, -1, NULL));
    ck_assert(!wf_load(g, NULL, NULL, &report) && report.message[0]);
    ck_assert(!wf_load(NULL, NULL, NULL, NULL));
    ck_assert(!wf_load(g, NULL, &(wf_load_options){ .n_renames = 1 }, &report));
    ck_assert(!load(g, NULL, &report)); /* no such file */
    assert_contains(report.message, path);
    ck_assert_int_eq(saved(g, NULL), 2);
    ck_assert(!load(failed, NULL, &report));
    assert_contains(report.message, "a mistake");
    ck_assert(!load(g, &(wf_load_options){ .n_renames = -1 }, &report));
    assert_contains(report.message, "renames");
    ck_assert(!wf_file_save_leaves(path, &(wf_tensor *){ NULL }, 1, NULL, 0, message));
    ck_assert(!wf_file_save_leaves(path, NULL, 1, NULL, 0, message));
    ck_assert(!wf_file_load_leaves(NULL, NULL, 1, message) &&
              wf_file_load_leaves(NULL, NULL, 0, message));
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2));
    ck_assert(!wf_file_save_leaves(path, &x, 1, NULL, 0, message));
    assert_contains(message, "x is no parameter or buffer");
    ck_assert(!wf_file_load(&(wf_entry){ "x", "F32", 1, { 2 }, some, 8 }, x, message));
    assert_contains(message, "the model does not take it");
    end_graph(g), wf_graph_free(failed);
}

TEST(a_full_disk_leaves_the_old_file) {
    wf_graph *g = two_leaves(WF_F32);
    ck_assert_int_eq(saved(g, NULL), 2);
    write_doubles(wf_find(g, "model.bias"), (double[]){ 1, 1 });
    faults_disk((disk_fault){ "write", ENOSPC, 0, 1 });
    ck_assert(!save(g, NULL));
    assert_contains(message, "No space");
    faults_disk((disk_fault){ 0 });
    ck_assert(load(g, NULL, NULL));
    check_values(g, 9, 8);
    end_graph(g);
}

/* A load from a file that was cut anywhere, or has a wrong bit, changes no leaf. */
TEST(a_damaged_file_changes_no_leaf) {
    static unsigned char bytes[4096];
    wf_load_report report;
    wf_graph *g = two_leaves(WF_F32);
    ck_assert_int_eq(saved(g, NULL), 2);
    write_doubles(wf_find(g, "model.bias"), (double[]){ 3, 3 });
    FILE *file = fopen(path, "rb");
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t i = 0; i < 2 * n; i++) {
        if (i >= n) bytes[i - n] ^= 16;
        wf_file *f = wf_file_parse(bytes, i < n ? i : n);
        ck_assert_msg(!wf_load(g, f, NULL, &report) && report.message[0], "at %zu of %zu", i, n);
        wf_file_free(f);
        if (i >= n) bytes[i - n] ^= 16;
    }
    check_values(g, 9, 3);
    end_graph(g);
}

/* An assertion of Check allocates memory even when it holds, so Check is called only on failure. */
#define must(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition)) faults_pause(true), ck_abort_msg(__VA_ARGS__);                           \
    } while (0)

/* A load whose allocation number `at` fails says "out of memory" and changes no leaf, whether the
 * leaves have been read before (`used`) or have no values yet. */
static bool load_with_faults(long at, bool used, long *asked, long *left) {
    wf_load_report report;
    wf_graph *g = two_leaves(WF_F32);
    if (used) check_values(g, 9, 8);
    wf_file *f = wf_file_open(path);
    faults_begin(at, false);
    bool ok = wf_load(g, f, NULL, &report);
    *asked = faults_end(left);
    ck_assert(ok || strstr(report.message, "out of memory"));
    ck_assert_int_eq(report.loaded, ok ? 2 : 0);
    check_values(g, ok ? 2 : 9, ok ? 2 : 8);
    ck_assert(wf_load(g, f, NULL, NULL));
    wf_file_free(f), end_graph(g);
    return ok;
}

TEST_ROWS(no_memory_changes_no_leaf, 2) {
    const wf_entry entries[] = { { WEIGHT }, { BIAS } };
    ck_assert_msg(wf_file_save(path, entries, 2, NULL, 0, message), "%s", message);
    for (long at = 1, asked, left; !load_with_faults(at, _i, &asked, &left); at++) {
        ck_assert_int_le(at, asked);
        tally_note(TALLY_FAULTS, 0);
    }
}

TEST(a_save_without_memory_leaves_the_old_file) {
    wf_graph *g = two_leaves(WF_F32);
    ck_assert_int_eq(saved(g, NULL), 2);
    ck_assert(wf_set_layout(wf_find(g, "model.encoder.weight"), WF_PANELS));
    bool ok = false;
    for (long at = 1, left; !ok; at++) {
        faults_begin(at, false);
        ok = save(g, NULL);
        faults_end(&left);
        must(left == 0 && (ok || message[0]), "request %ld: %ld blocks leak", at, left);
        ck_assert(load(g, NULL, NULL));
        tally_note(TALLY_FAULTS, 0);
    }
    end_graph(g);
}
