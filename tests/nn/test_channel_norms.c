/* tests/nn/test_channel_norms.c - BatchNorm and GroupNorm as layers: steps of training and an
 * evaluation against PyTorch's BatchNorm2d, from the values that record_nn.py wrote; running
 * statistics with a trainer, with a plan that does not train, and with a batch of one element. The
 * values of the ops are tested by the table of ops. */
#include <stdio.h>

#include "nn/nn.h"
#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/support.h"

TESTS(channel_norms)

enum { C = 3, STEPS = 3, MOST = 512 };

/* ---- the recorded steps ---------------------------------------------------------------------- */

static const wf_entry *entry(const wf_file *f, const char *prefix, const char *part) {
    char key[128];
    snprintf(key, sizeof key, "batch_norm%s/%s", prefix, part);
    const wf_entry *e = wf_file_find(f, key);
    ck_assert_msg(e != NULL, "no '%s' among the recorded values", key);
    return e;
}

static void load(const wf_file *f, const char *part, wf_tensor *t) {
    ck_assert(wf_file_load(entry(f, "", part), t, NULL));
}

/* Recorded values, in the graph's type. */
static size_t values_of(const wf_file *f, const char *step, const char *part, wf_dtype real,
                        void *out) {
    const wf_entry *e = entry(f, step, part);
    size_t n = e->bytes / sizeof(double);
    ck_assert_uint_le(n, MOST);
    for (size_t i = 0; i < n; i++) {
        double value = ((const double *)e->data)[i];
        if (real == WF_F64)
            ((double *)out)[i] = value;
        else
            ((float *)out)[i] = (float)value;
    }
    return n * wf_dtype_size(real);
}

static void same(const wf_file *f, const char *step, const char *part, const double *got, int64_t n,
                 double bound) {
    const wf_entry *e = entry(f, step, part);
    ck_assert_uint_eq((size_t)n * sizeof(double), e->bytes);
    for (int64_t i = 0; i < n; i++) {
        double want = ((const double *)e->data)[i];
        ck_assert_msg(fabs(got[i] - want) <= bound * fmax(1, fabs(want)),
                      "%s%s[%d]: %.17g, PyTorch says %.17g", step, part, (int)i, got[i], want);
    }
}

static void same_fetched(const wf_file *f, const char *step, const char *part, wf_plan *p,
                         wf_tensor *t, double bound) {
    char raw[MOST * sizeof(double)];
    double got[MOST];
    size_t bytes = wf_bound_bytes(p, t), n = bytes / wf_dtype_size(t->dtype);
    ck_assert_msg(wf_fetch(p, t, raw, bytes), "%s", wf_plan_error(p));
    for (size_t i = 0; i < n; i++)
        got[i] = t->dtype == WF_F64 ? ((double *)raw)[i] : ((float *)raw)[i];
    same(f, step, part, got, (int64_t)n, bound);
}

static void same_leaf(const wf_file *f, const char *step, const char *part, wf_tensor *t,
                      double bound) {
    double *got = leaf_values(t);
    same(f, step, part, got, wf_count(t), bound);
    free(got);
}

typedef struct net {
    wf_graph *g;
    struct wf_batch_norm_layer l;
    wf_tensor *x, *w, *y, *updates[2], *wrt[3], *grad[3];
} net;

static void open_net(net *n, wf_dtype real) {
    n->g = new_graph(real);
    int64_t shape[] = { wf_extent(n->g, "N", 9), C, 2, 5 };
    n->l = wf_batch_norm_new(n->g, "net", C, 1e-5, 0.3);
    n->x = wf_input(n->g, "x", real, 4, shape), n->w = wf_input(n->g, "w", real, 4, shape);
    n->y = wf_norm_batch(&n->l, n->x, n->updates);
    wf_tensor *loss = wf_sum(wf_mul(n->w, n->y), WF_ALL_AXES, false);
    n->wrt[0] = n->x, n->wrt[1] = n->l.weight, n->wrt[2] = n->l.bias;
    ck_assert_msg(wf_grad(loss, n->wrt, 3, n->grad), "%s", wf_error(n->g));
}

static wf_plan *plan_of(const net *n, bool training) {
    wf_tensor *fetch[] = { n->y, n->grad[0], n->grad[1], n->grad[2], n->updates[0], n->updates[1] };
    wf_tensor *feed[] = { n->x, n->w };
    return wf_plan_new(n->g, &(wf_plan_options){ .fetch = fetch,
                                                 .n_fetch = training ? 6 : 4,
                                                 .feed = feed,
                                                 .n_feed = 2,
                                                 .training = training });
}

static void run_step(const net *n, wf_plan *p, const wf_file *f, int step, double bound) {
    static const char *const parts[] = { "d/x", "d/weight", "d/bias" };
    char prefix[16], data[MOST * sizeof(double)];
    snprintf(prefix, sizeof prefix, "/%d", step);
    ck_assert(wf_bind(p, "N", 2 + step));
    ck_assert(wf_feed(p, n->x, data, values_of(f, prefix, "x", wf_real(n->g), data)));
    ck_assert(wf_feed(p, n->w, data, values_of(f, prefix, "w", wf_real(n->g), data)));
    ck_assert_msg(wf_run(p), "%s", wf_plan_error(p));
    same_fetched(f, prefix, "y", p, n->y, bound);
    for (int i = 0; i < 3; i++) same_fetched(f, prefix, parts[i], p, n->grad[i], bound);
    same_leaf(f, prefix, "mean", n->l.running_mean, bound);
    same_leaf(f, prefix, "var", n->l.running_var, bound);
}

TEST_ROWS(batch_norm_is_that_of_pytorch, 2) {
    double bound = _i ? 1e-12 : 2e-5;
    char path[512];
    net n;
    wf_file *f = wf_file_open(source_path("tests/data/nn.safetensors", path, sizeof path));
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    open_net(&n, _i ? WF_F64 : WF_F32);
    load(f, "p/weight", n.l.weight), load(f, "p/bias", n.l.bias);
    wf_plan *train = plan_of(&n, true), *evaluate = plan_of(&n, false);
    for (int step = 0; step < STEPS; step++) run_step(&n, train, f, step, bound);
    run_step(&n, evaluate, f, STEPS, bound);
    wf_plan_free(train), wf_plan_free(evaluate);
    wf_file_free(f);
    end_graph(n.g);
}

/* ---- beside training ------------------------------------------------------------------------- */

static wf_tensor *noise(wf_graph *g, const char *name, int ndim, const int64_t *shape) {
    return wf_param(g, name, ndim, shape, wf_init_normal(1));
}

/* A plan that does not train leaves the running statistics, even if it fetches their updates. */
TEST(a_plan_that_does_not_train_leaves_the_running_statistics) {
    wf_graph *g = new_graph(WF_F32);
    struct wf_batch_norm_layer l = wf_batch_norm_new(g, "bn", 4, 1e-5, 0.1);
    wf_tensor *updates[2];
    wf_norm_batch(&l, noise(g, "x", SHAPE(5, 4)), updates);
    float before[4] = { 0.1f, -0.2f, 3e7f, 1e-9f }, after[4];
    ck_assert(wf_write(l.running_mean, before, sizeof before));
    ck_assert(wf_write(l.running_var, before, sizeof before));
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = updates, .n_fetch = 2 });
    ck_assert_msg(wf_run(p), "%s", wf_plan_error(p));
    ck_assert(wf_read(l.running_mean, after, sizeof after));
    ck_assert_mem_eq(before, after, sizeof after);
    ck_assert(wf_read(l.running_var, after, sizeof after));
    ck_assert_mem_eq(before, after, sizeof after);
    wf_plan_free(p);
    end_graph(g);
}

/* A batch with one element per channel has no unbiased variance, and one with NaN has none at all:
 * the run fails, and leaves the running statistics as they were. */
TEST_ROWS(a_batch_without_a_variance_fails_the_run, 2) {
    wf_graph *g = new_graph(WF_F32);
    struct wf_batch_norm_layer l = wf_batch_norm_new(g, "bn", 2, 1e-5, 0.1);
    wf_tensor *x = noise(g, "x", SHAPE(_i ? 3 : 1, 2)), *updates[2];
    wf_tensor *y = wf_norm_batch(&l, x, updates);
    if (_i) ck_assert(wf_write(x, (float[]){ 1, 2, NAN, 3, 4, 5 }, 6 * sizeof(float)));
    wf_tensor *fetch[] = { y, updates[0], updates[1] };
    wf_plan *p =
        wf_plan_new(g, &(wf_plan_options){ .fetch = fetch, .n_fetch = 3, .training = true });
    ck_assert(!wf_run(p));
    assert_contains(wf_plan_error(p),
                    _i ? "a running mean is not finite" : "a running variance is not finite");
    float mean[2], var[2];
    ck_assert(wf_read(l.running_mean, mean, sizeof mean) &&
              wf_read(l.running_var, var, sizeof var));
    ck_assert(mean[0] == 0 && mean[1] == 0 && var[0] == 1 && var[1] == 1);
    wf_plan_free(p);
    end_graph(g);
}

/* A trainer updates the running statistics, and a file contains them. */
TEST(a_trainer_moves_running_statistics_and_saves_them) {
    enter_folder();
    wf_graph *g = new_graph(WF_F32);
    struct wf_batch_norm_layer l = wf_batch_norm_new(g, "bn", 2, 1e-5, 0.5);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(3, 2)), *updates[2];
    wf_tensor *loss = wf_square_sum(wf_affine(wf_norm_batch(&l, x, updates), 1, -1));
    wf_trainer *t =
        wf_trainer_new(g, loss, wf_constant(g, 6),
                       &(wf_trainer_options){ .optimizer = wf_optimizer_defaults(WF_SGD),
                                              .schedule = { .kind = WF_CONSTANT_RATE, .peak = 0.1 },
                                              .fetch = updates,
                                              .n_fetch = 2 });
    ck_assert_msg(wf_trainer_ok(t), "%s", wf_trainer_error(t));
    const float data[] = { 1, 5, 2, 7, 3, 9 }; /* means 2 and 7, unbiased variances 1 and 4 */
    float mean[2], var[2];
    for (int i = 0; i < 2; i++) {
        ck_assert(wf_feed(wf_trainer_plan(t), x, data, sizeof data));
        ck_assert_msg(wf_trainer_begin(t, 1, NULL, NULL) && wf_trainer_add(t, 0) &&
                          wf_trainer_update(t, NULL),
                      "%s", wf_trainer_error(t));
    }
    ck_assert_msg(wf_trainer_save(t, "bn.safetensors", NULL, 0), "%s", wf_trainer_error(t));
    ck_assert(wf_write(l.running_var, (float[]){ 0, 0 }, sizeof var));
    ck_assert_msg(wf_trainer_load(t, "bn.safetensors", NULL), "%s", wf_trainer_error(t));
    ck_assert(wf_read(l.running_mean, mean, sizeof mean) &&
              wf_read(l.running_var, var, sizeof var));
    ck_assert(mean[0] == 1.5f && mean[1] == 5.25f && var[0] == 1 && var[1] == 3.25f);
    wf_trainer_free(t);
    end_graph(g);
}

TEST(groups_have_their_weights) {
    wf_graph *g = new_graph(WF_F64);
    struct wf_group_norm_layer l = wf_group_norm_new(g, "gn", 2, 4, 1e-5);
    ck_assert_ptr_eq(wf_find(g, "gn.weight"), l.weight);
    ck_assert_ptr_eq(wf_find(g, "gn.bias"), l.bias);
    int64_t n = wf_extent(g, "N", 8);
    wf_tensor *x = wf_input(g, "x", WF_F64, SHAPE(n, 4, 2));
    wf_tensor *y = wf_norm_groups(&l, x), *plain = wf_group_norm(x, 2, NULL, NULL, 1e-5);
    wf_tensor *fetch[] = { y, plain };
    wf_plan *p =
        wf_plan_new(g, &(wf_plan_options){ .fetch = fetch, .n_fetch = 2, .feed = &x, .n_feed = 1 });
    double data[16], out[2][16];
    for (int i = 0; i < 16; i++) data[i] = i * i;
    for (int images = 1; images <= 2; images++) {
        size_t bytes = (size_t)images * 8 * sizeof(double);
        ck_assert(wf_bind(p, "N", images) && wf_feed(p, x, data, bytes) && wf_run(p));
        for (int k = 0; k < 2; k++) ck_assert(wf_fetch(p, fetch[k], out[k], bytes));
        ck_assert_mem_eq(out[0], out[1], bytes);
    }
    wf_plan_free(p);
    end_graph(g);
}

static const struct {
    int64_t groups, channels;
    double momentum;
    const char *says;
} refused[] = { { 2, 3, 0.1, "gn: 3 channels do not divide into 2 groups" },
                { 0, 3, 0.1, "gn: 3 channels do not divide into 0 groups" },
                { 0, 0, 0.1, "gn: 0 channels" },
                { -1, 0, 0.1, "bn: a batch norm of 0 channels" },
                { -1, 2, 1.5, "bn: a batch norm of 2 channels with a momentum of 1.5" },
                { -1, 2, NAN, "momentum of nan" } };

TEST_ROWS(layers_that_cannot_be, COUNT_OF(refused)) {
    wf_graph *g = wf_graph_new(NULL);
    if (refused[_i].groups >= 0)
        wf_group_norm_new(g, "gn", refused[_i].groups, refused[_i].channels, 1e-5);
    else
        wf_batch_norm_new(g, "bn", refused[_i].channels, 1e-5, refused[_i].momentum);
    assert_contains(wf_error(g), refused[_i].says);
    wf_graph_free(g);
}
