/* tests/core/plan/test_faults.c - every single allocation fails in turn: an error, no crash, no
 * leak, and the objects stay usable.
 *
 * Each scenario is the work of wall.h. After a plan has failed, the same call must succeed as soon
 * as there is memory again, with the values of a run without failures. */
#include <unistd.h>

#include "core/emit.h"
#include "core/picture.h"
#include "tests/suites.h"
#include "tests/support/wall.h"

TESTS(faults)

/* If `ok` is false, the call left a message, and `again` must succeed with memory: a failure leaves
 * objects usable. Only a graph whose recording failed stays failed, and is not tried again. */
static bool failed;

static bool survive(bool ok, bool (*again)(void *), void *arg, const char *message) {
    if (ok) return true;
    failed = true;
    must(message[0], "a failure without a message");
    bool was = faults_pause(true);
    must(again(arg), "not usable after '%s'", message);
    faults_pause(was);
    return true;
}

/* ---- a small model with everything that allocates -------------------------------------------- */

enum { D = 4, V = 5, TIME = 3, BATCH = 2 };

typedef struct model {
    wf_graph *g;
    wf_tensor *x, *labels, *mask, *logits, *loss, *rates, *scale, *params[3], *grads[3],
        *updates[3];
} model;

static void record(model *m, wf_dtype real) {
    wf_graph *g = m->g = wf_graph_new(&(wf_graph_options){ .real = real, .seed = 3 });
    int64_t B = wf_extent(g, "B", 64), T = wf_extent(g, "T", 16);
    wf_extent(g, "P", 40);
    wf_scope(g, "model");
    m->x = wf_input(g, "x", real, SHAPE(B, T, D));          /* [B, T, D] */
    m->labels = wf_input(g, "labels", WF_I32, SHAPE(B, T)); /* [B, T] */
    m->params[0] = wf_param(g, "w", SHAPE(D, D), wf_init_uniform(1));
    m->params[1] = wf_param(g, "gain", SHAPE(D), wf_init_constant(1));
    m->params[2] = wf_param(g, "out", SHAPE(D, V), wf_init_normal(1));
    wf_tensor *h = wf_matmul(wf_dropout(m->x, 0.1, NULL), m->params[0]); /* [B, T, D] */
    h = wf_layer_norm(wf_gelu(h), WF_LAST_AXIS, m->params[1], NULL, 1e-5);
    wf_tensor *k = wf_cache(h, 1), *v = wf_cache(wf_scale(h, 0.5), 1);
    h = wf_add(h, wf_attention(h, k, v, NULL, &(wf_attention_options){ .causal = true }));
    m->logits = wf_einsum("btd,dv->btv", (wf_tensor *[]){ h, m->params[2] }, 2); /* [B, T, V] */
    m->loss = wf_cross_entropy(m->logits, m->labels, 0.1, 0).loss;
    wf_grad(m->loss, m->params, 3, m->grads);
    m->rates = wf_input(g, "rates", real, SHAPE(3)), m->scale = wf_input(g, "scale", real, SCALAR);
    for (int i = 0; i < 3; i++) {
        char name[] = { 'm', (char)('0' + i), 0 }, other[] = { 'v', (char)('0' + i), 0 };
        wf_tensor *p = m->params[i];
        wf_tensor *moment = wf_buffer(g, name, real, p->ndim, p->shape, wf_init_zeros());
        wf_tensor *square = wf_buffer(g, other, real, p->ndim, p->shape, wf_init_zeros());
        m->updates[i] = wf_adam_step(p, moment, square, m->grads[i], m->scale, m->rates,
                                     &(wf_adam_options){ 0.9, 0.98, 1e-9, 0, false });
    }
}

static void record_safely(model *m) {
    bool was = faults_pause(true);
    record(m, WF_F32);
    must(wf_ok(m->g), "%s", wf_error(m->g));
    faults_pause(was);
}

/* ---- scenarios ------------------------------------------------------------------------------- */

static bool said(const void *bytes, size_t n) {
    wall_say(bytes, n);
    return true;
}

static bool recording(void) {
    model m;
    record(&m, WF_F64);
    bool ok = wf_ok(m.g);
    must(ok || *wf_error(m.g), "no message");
    for (int i = 0; i < 3; i++)
        must(m.params[i] && m.grads[i] && m.updates[i], "NULL was recorded");
    wf_graph_free(m.g);
    return ok;
}

typedef struct training {
    model m;
    wf_pool *pool;
    wf_plan *p;
    int64_t batch;
} training;

static bool train_plan(void *arg) {
    training *t = arg;
    wf_tensor *fetch[] = { t->m.loss, t->m.updates[0], t->m.updates[1], t->m.updates[2] };
    wf_tensor *feed[] = { t->m.x, t->m.labels, t->m.rates, t->m.scale };
    wf_plan_free(t->p);
    t->p = wf_plan_new(t->m.g, &(wf_plan_options){ .fetch = fetch,
                                                   .n_fetch = 4,
                                                   .feed = feed,
                                                   .n_feed = 4,
                                                   .pool = t->pool,
                                                   .training = true });
    return wf_plan_ok(t->p);
}

static bool train_step(void *arg) {
    training *t = arg;
    float x[4 * BATCH * TIME * D], rates[3] = { 0.1f, 1, 1 }, scale = 1, loss;
    int32_t labels[4 * BATCH * TIME];
    for (int i = 0; i < 4 * BATCH * TIME * D; i++) x[i] = (float)(i % 7) - 3;
    for (int i = 0; i < 4 * BATCH * TIME; i++) labels[i] = i % V;
    return wf_bind(t->p, "B", t->batch) && wf_bind(t->p, "T", TIME) &&
           wf_feed(t->p, t->m.x, x, wf_bound_bytes(t->p, t->m.x)) &&
           wf_feed(t->p, t->m.labels, labels, wf_bound_bytes(t->p, t->m.labels)) &&
           wf_feed(t->p, t->m.rates, rates, wf_bound_bytes(t->p, t->m.rates)) &&
           wf_feed(t->p, t->m.scale, &scale, sizeof scale) && wf_run(t->p) &&
           wf_fetch(t->p, t->m.loss, &loss, sizeof loss) && said(&loss, sizeof loss);
}

static bool profile_plan(void *arg) {
    training *t = arg;
    wf_step step;
    wf_profile(t->p, true);
    return wf_run(t->p) && wf_step_count(t->p) > 0 && wf_step_at(t->p, 0, &step) &&
           wf_plan_memory(t->p) > 0;
}

static bool training_runs(void) {
    training t = { 0 };
    failed = false;
    record_safely(&t.m);
    t.pool = wf_pool_new(2);
    if (!t.pool) failed = true;
    survive(train_plan(&t), train_plan, &t, wf_plan_error(t.p));
    for (t.batch = BATCH; t.batch <= 4 * BATCH; t.batch += BATCH)
        survive(train_step(&t), train_step, &t, wf_plan_error(t.p));
    survive(profile_plan(&t), profile_plan, &t, wf_plan_error(t.p));
    for (int i = 0; i < 3; i++) must(wall_say_leaf(t.m.params[i]), "a parameter has no values");
    wf_plan_free(t.p), wf_pool_free(t.pool), wf_graph_free(t.m.g);
    return !failed;
}

typedef struct generation {
    model m;
    wf_plan *p;
    wf_state *s;
    int position;
} generation;

static bool state_plan(void *arg) {
    generation *d = arg;
    wf_plan_free(d->p);
    d->p = wf_plan_new(d->m.g, &(wf_plan_options){ .fetch = &d->m.logits,
                                                   .n_fetch = 1,
                                                   .feed = &d->m.x,
                                                   .n_feed = 1,
                                                   .with_state = true });
    return wf_plan_ok(d->p) && wf_bind(d->p, "B", BATCH) && wf_bind(d->p, "T", 1);
}

static bool state_new(void *arg) {
    generation *d = arg;
    return (d->s = wf_state_new(d->p)) != NULL;
}

static bool state_step(void *arg) {
    generation *d = arg;
    float x[BATCH * D] = { 1, 2, 3 }, out[BATCH * V];
    return wf_bind(d->p, "P", d->position) &&
           wf_feed(d->p, d->m.x, x, wf_bound_bytes(d->p, d->m.x)) && wf_run_state(d->p, d->s) &&
           wf_fetch(d->p, d->m.logits, out, wf_bound_bytes(d->p, d->m.logits)) &&
           said(out, sizeof out);
}

static bool generating(void) {
    generation d = { 0 };
    failed = false;
    record_safely(&d.m);
    survive(state_plan(&d), state_plan, &d, wf_plan_error(d.p));
    survive(state_new(&d), state_new, &d, wf_plan_error(d.p));
    for (d.position = 0; d.position < 18; d.position++) /* its memory grows at 16 */
        survive(state_step(&d), state_step, &d, wf_plan_error(d.p));
    must(wf_state_reorder(d.s, (int32_t[]){ 1, 0 }, 2), "rows cannot change places");
    wf_state_free(d.s), wf_plan_free(d.p), wf_graph_free(d.m.g);
    return !failed;
}

static bool checking(void) {
    char message[WF_MESSAGE] = "";
    bool was = faults_pause(true);
    wf_graph *g = wf_graph_new(&(wf_graph_options){ .real = WF_F64 });
    wf_tensor *x = wf_param(g, "x", SHAPE(2), wf_init_constant(0.5));
    wf_tensor *loss = wf_sum(wf_tanh(x), WF_ALL_AXES, false);
    faults_pause(was);
    double error = wf_check_gradients(g, loss, &x, 1, message);
    must(error <= 1e-8 || (isnan(error) && message[0]), "error %g, no message", error);
    if (error <= 1e-8) wall_say(&error, sizeof error);
    wf_graph_free(g);
    return error <= 1e-8;
}

static bool drawing(void) {
    model m;
    char message[WF_MESSAGE] = "", text[256];
    record_safely(&m);
    bool all = true, was = faults_pause(true);
    wf_tensor *twice = wf_mul(m.grads[0], wf_constant(m.g, 2)); /* the picture shows the value 2 */
    wf_tensor *fetch[] = { twice, m.grads[1], m.grads[2] };
    faults_pause(was);
    for (int modules = 0; modules < 2; modules++) {
        char *dot =
            wf_dot(fetch, 3, &(wf_dot_options){ .backward = true, .modules = modules }, message);
        must(dot || message[0], "no message");
        all &= dot != NULL;
        if (all) said(dot, strlen(dot));
        free(dot);
    }
    int length = wf_print(NULL, m.params[0], text, sizeof text);
    wf_graph_free(m.g);
    return all && length > 0;
}

/* wf_dot draws a graph with the numbers of a leaf, of a result and of its gradient. Each has its
 * box. */
static bool drawing_numbers(void) {
    char message[WF_MESSAGE] = "";
    bool was = faults_pause(true);
    wf_graph *g = wf_graph_new(&(wf_graph_options){ .real = WF_F64, .seed = 3 });
    wf_tensor *x = wf_param(g, "x", SHAPE(2, 3), wf_init_normal(1));
    wf_tensor *y = wf_sum(wf_mul(x, wf_constant(g, 0.5)), WF_ALL_AXES, false), *dx = NULL;
    wf_grad(y, &x, 1, &dx);
    wf_tensor *fetch[] = { y, x, dx };
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = fetch, .n_fetch = 3 });
    must(wf_run(p), "%s", wf_plan_error(p));
    faults_pause(was);
    wf_dot_value rows[] = { { x, x, NULL }, { x, dx, "gradient" }, { y, y, "value" } };
    wf_dot_options o = { .values = rows, .n_values = COUNT_OF(rows), .valued = p };
    char *dot = wf_dot(&y, 1, &o, message);
    must(dot || message[0], "no message");
    if (dot) said(dot, strlen(dot));
    bool drawn = dot != NULL;
    free(dot);
    wf_plan_free(p), wf_graph_free(g);
    return drawn;
}

/* An op of WF_MAX_RESULTS results, for a plan with more than 4096 arrays: the planner places the
 * largest 4096 in the order of their size, and the others in the order of the schedule. */
static bool shape_crowd(wf_call *c) {
    for (int k = 0; k < c->n_out; k++)
        wf_set_shape(&c->out[k], WF_F32, c->in[0].ndim, c->in[0].shape);
    return true;
}

/* Result k is x + k. */
static bool eval_crowd(const wf_call *c, int phase, int64_t task, void *scratch) {
    const float *x = c->in[0].data;
    (void)phase, (void)task, (void)scratch;
    for (int k = 0; k < c->n_out; k++)
        for (int i = 0; i < 2; i++) ((float *)c->out[k].data)[i] = x[i] + (float)k;
    return true;
}

static const wf_kernel run_crowd = { .eval = eval_crowd };
static const wf_op op_crowd = {
    .name = "crowd", .arity = 1, .results = WF_MAX_RESULTS, .shape = shape_crowd, .run = &run_crowd
};
enum { CROWDS = 4200 / WF_MAX_RESULTS };

typedef struct crowd {
    wf_graph *g;
    wf_tensor *x, *y; /* [2], [2] */
    wf_plan *p;
} crowd;

static bool crowd_runs(void *arg) {
    crowd *c = arg;
    float out[2] = { 0 };
    wf_plan_free(c->p);
    c->p = wf_plan_new(
        c->g, &(wf_plan_options){ .fetch = &c->y, .n_fetch = 1, .feed = &c->x, .n_feed = 1 });
    bool ok = wf_feed(c->p, c->x, (float[]){ -1, 2 }, 2 * sizeof(float)) && wf_run(c->p) &&
              wf_fetch(c->p, c->y, out, wf_bound_bytes(c->p, c->y));
    must(!ok || (out[0] == -CROWDS && out[1] == 2 * CROWDS), "%g, %g", (double)out[0],
         (double)out[1]);
    return ok;
}

static bool crowding(void) {
    crowd c = { 0 };
    failed = false;
    bool was = faults_pause(true);
    c.g = wf_graph_new(NULL), c.x = wf_input(c.g, "x", WF_F32, SHAPE(2));
    c.y = wf_sub(c.x, c.x);
    for (int i = 0; i < CROWDS; i++) c.y = wf_add(c.y, wf_record(&op_crowd, 1, &c.x, NULL));
    must(wf_ok(c.g), "%s", wf_error(c.g));
    faults_pause(was);
    bool ok = crowd_runs(&c);
    survive(ok, crowd_runs, &c, wf_plan_error(c.p));
    wf_plan_free(c.p), wf_graph_free(c.g);
    return !failed;
}

/* Without memory for names of sizes ("B"), an error message is still made, with numbers. */
static bool telling(void) {
    bool was = faults_pause(true);
    wf_graph *g = wf_graph_new(NULL);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(wf_extent(g, "B", 64), 3));
    wf_tensor *y = wf_input(g, "y", WF_F32, SHAPE(2, 3));
    faults_pause(was);
    wf_add(x, y);
    bool named = strstr(wf_error(g), "[B,3] and [2,3]") != NULL;
    must(named || strstr(wf_error(g), "3] and [2,3]"), "%s", wf_error(g));
    wf_graph_free(g);
    return named;
}

typedef struct saved {
    model m;
    char path[64];
    wf_file *file;
} saved;

static bool save(void *arg) {
    saved *s = arg;
    float data[D * D] = { 1, 2, 3 };
    char message[WF_MESSAGE];
    wf_entry entries[] = { { "w", "F32", 2, { D, D }, data, sizeof data },
                           { "b", "F32", 1, { D }, data, D * 4 } };
    bool ok = wf_file_save(s->path, entries, 2, &(wf_meta){ "epoch", "3" }, 1, message);
    must(ok || message[0], "no message");
    if (ok) wall_say_file(s->path);
    return ok;
}

static bool load(void *arg) {
    saved *s = arg;
    char message[WF_MESSAGE];
    wf_file_free(s->file);
    s->file = wf_file_open(s->path);
    if (!wf_file_ok(s->file)) {
        must(*wf_file_error(s->file), "no message");
        return false;
    }
    const wf_entry *w = wf_file_find(s->file, "w");
    return w && wf_file_load(w, s->m.params[0], message) &&
           strcmp(wf_file_meta(s->file, "epoch"), "3") == 0 && wall_say_leaf(s->m.params[0]);
}

static bool files(void) {
    saved s = { .path = "/tmp/weft-faults-XXXXXX" };
    failed = false;
    record_safely(&s.m);
    int fd = mkstemp(s.path);
    must(fd >= 0, "no temporary file");
    close(fd);
    survive(save(&s), save, &s, "save");
    survive(load(&s), load, &s, "load");
    wf_file_free(s.file), wf_graph_free(s.m.g);
    unlink(s.path);
    return !failed;
}

/* wf_emit writes two plans into one C file. They contain dropout, a value that one plan passes to
 * the other, and weights that are updated. */
typedef struct emitting_work {
    wf_plan *plans[2];
    char message[256];
} emitting_work;

static bool emit(void *arg) {
    emitting_work *w = arg;
    static const char *const runs[] = { "first", "second" };
    char *text = wf_emit(w->plans, 2, &(wf_emit_options){ .runs = runs }, w->message);
    if (text) said(text, strlen(text));
    free(text);
    return text != NULL;
}

static bool emitting(void) {
    emitting_work w = { .message = "" };
    failed = false;
    bool was = faults_pause(true);
    wf_graph *g = wf_graph_new(&(wf_graph_options){ .real = WF_F32, .seed = 3 });
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(D)), *h = wf_dropout(x, 0.5, NULL);
    wf_tensor *leaf = wf_param(g, "w", SHAPE(D), wf_init_constant(1));
    wf_tensor *update = wf_assign(leaf, wf_add(h, leaf));
    w.plans[0] = wf_plan_new(
        g,
        &(wf_plan_options){ .fetch = &h, .n_fetch = 1, .feed = &x, .n_feed = 1, .training = true });
    w.plans[1] = wf_plan_new(
        g, &(wf_plan_options){ .fetch = &update, .n_fetch = 1, .feed = &h, .n_feed = 1 });
    must(wf_plan_ok(w.plans[0]) && wf_plan_ok(w.plans[1]), "no plans");
    faults_pause(was);
    survive(emit(&w), emit, &w, w.message);
    wf_plan_free(w.plans[0]), wf_plan_free(w.plans[1]);
    wf_graph_free(g);
    return !failed;
}

/* ---- every place ----------------------------------------------------------------------------- */

static const wall_work scenarios[] = {
    { "recording", recording, false },   { "training", training_runs, true },
    { "generating", generating, false }, { "checking gradients", checking, false },
    { "drawing", drawing, false },       { "drawing numbers", drawing_numbers, false },
    { "files", files, false },           { "crowding", crowding, true },
    { "telling", telling, true },        { "emitting", emitting, false },
};

TEST_ROWS(every_failure_is_survived, 2 * COUNT_OF(scenarios)) {
    wall_fail_each(&scenarios[_i / 2], _i % 2);
}
