/* tests/scale/test_scale.c - graphs of many nodes, leaves and layers take nearly linear time and a
 * small stack, and memory grows with the values that are in use.
 *
 * A graph's CPU time is compared with that of a graph of an eighth of its size, if it is long
 * enough to be measured. Linear growth is a factor of 8, quadratic growth a factor of 64. The limit
 * lies between, because a larger graph uses caches worse, above all on a busy machine. scale.c
 * prints the times. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "core/run_internal.h"
#include "graphs.h"
#include "models/model_internal.h"
#include "models/transformer.h"
#include "tests/suites.h"
#include "tests/support/faults.h"
#include "tests/support/support.h"

TESTS(scale)

/* ---- time ------------------------------------------------------------------------------------ */

enum { SMALL = 6000, TIMES = 8, TOO_MANY_TIMES = 40, ATTEMPTS = 3 };
static const double short_time = 0.5;

static double cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { RECORD, GRADIENT, PLAN, SHAPES, PHASES };
static const char *const phases[] = { "recording", "differentiating", "planning", "shapes" };

static void bind_all(const scaled *s, wf_plan *p) {
    ck_assert_msg(wf_plan_ok(p), "%s", wf_plan_error(p));
    if (wf_find(s->g, "x")) ck_assert_msg(wf_bind(p, "B", 4), "%s", wf_plan_error(p));
}

static void measure(const recipe *r, bool trained, int n, double took[PHASES]) {
    scaled s;
    double start = cpu();
    ck_assert_msg(record_scaled(&s, r, n), "%s", wf_error(s.g));
    took[RECORD] = cpu() - start, start = cpu();
    if (trained) ck_assert_msg(differentiate(&s), "%s", wf_error(s.g));
    took[GRADIENT] = cpu() - start, start = cpu();
    wf_plan *p = plan_scaled(&s);
    took[PLAN] = cpu() - start, start = cpu();
    bind_all(&s, p);
    ck_assert_msg(wf_plan_memory(p) > 0, "%s", wf_plan_error(p));
    took[SHAPES] = cpu() - start;
    wf_plan_free(p), scaled_free(&s);
}

TEST_ROWS(time_is_nearly_linear, 2 * n_recipes) {
    const recipe *r = &recipes[_i / 2];
    double few[PHASES], many[PHASES];
    int bad = 0;
    for (int attempt = 0; attempt < ATTEMPTS && bad >= 0; attempt++) {
        measure(r, _i % 2, SMALL, few);
        measure(r, _i % 2, TIMES * SMALL, many);
        for (bad = PHASES - 1; bad >= 0; bad--)
            if (many[bad] > short_time && many[bad] > TOO_MANY_TIMES * few[bad]) break;
    }
    ck_assert_msg(bad < 0, "%s of %s: %g s, and %g s for %d times as much", phases[bad], r->name,
                  few[bad], many[bad], TIMES);
}

/* ---- stack ----------------------------------------------------------------------------------- */

static float feed_x[4 * 4], rates[3] = { 1e-3f, 1, 1 };

static bool run_scaled(const scaled *s, wf_plan *p) {
    wf_tensor *x = wf_find(s->g, "x"), *input = wf_find(s->g, "optimizer.rates");
    if (x && !(wf_bind(p, "B", 4) && wf_feed(p, x, feed_x, sizeof feed_x))) return false;
    return (!input || wf_feed(p, input, rates, sizeof rates)) && wf_run(p);
}

static void *all_of(void *name_of_failure) {
    const char **failure = name_of_failure;
    for (int r = 0; r < n_recipes && !*failure; r++) {
        scaled s;
        float loss;
        char text[64];
        bool ok = record_scaled(&s, &recipes[r], 30000) && differentiate(&s);
        wf_plan *p = plan_scaled(&s);
        ok = ok && run_scaled(&s, p) && wf_fetch(p, s.loss, &loss, sizeof loss) &&
             wf_print(p, s.loss, text, sizeof text) > 0 && isfinite(loss);
        if (!ok) *failure = recipes[r].name;
        wf_plan_free(p), scaled_free(&s);
    }
    return NULL;
}

/* Runs all recipes in a thread with a stack of half a megabyte. Half of it is for the kernels'
 * buffers, so recursion over the nodes would overflow it. */
TEST(depth_needs_no_stack) {
    const char *failure = NULL;
    pthread_attr_t small;
    pthread_t thread;
    ck_assert(!pthread_attr_init(&small) && !pthread_attr_setstacksize(&small, 512 << 10));
    ck_assert_int_eq(pthread_create(&thread, &small, all_of, &failure), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&small);
    ck_assert_msg(!failure, "%s failed", failure);
}

/* ---- the order of very many updates ---------------------------------------------------------- */

enum { UPDATES = 20000 };

/* Records p[i] -= p[i + 1] for all i. Each update must run before that of p[i + 1], in whatever
 * order they are recorded. In a ring the last parameter depends on the first, so no order is
 * possible. */
static wf_plan *plan_updates(wf_graph *g, wf_tensor **p, int n, int step, bool ring) {
    wf_tensor **u = calloc((size_t)n, sizeof *u);
    wf_tensor *one = wf_constant(g, 1), *rate = wf_input(g, "rates", WF_F32, SHAPE(3));
    ck_assert_ptr_nonnull(u);
    for (int i = 0, k = 0; i < n - !ring; i++, k = (k + step) % n) {
        if (k == n - 1 && !ring) k = (k + step) % n;
        u[i] = wf_sgd_step(p[k], NULL, p[(k + 1) % n], one, rate, NULL);
    }
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    wf_plan *plan = wf_plan_new(
        g, &(wf_plan_options){ .fetch = u, .n_fetch = n - !ring, .feed = &rate, .n_feed = 1 });
    free(u);
    return plan;
}

TEST_ROWS(updates_wait_for_readers, 4) {
    static const int steps[] = { 1, UPDATES - 1, 7919 }; /* forwards, backwards, mixed */
    wf_graph *g = new_graph(WF_F32);
    wf_tensor **p = calloc(UPDATES, sizeof *p);
    ck_assert_ptr_nonnull(p);
    for (int i = 0; i < UPDATES; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        p[i] = wf_param(g, name, SCALAR, wf_init_constant(i % 97));
    }
    bool ring = _i == COUNT_OF(steps);
    wf_plan *plan = plan_updates(g, p, UPDATES, ring ? 1 : steps[_i], ring);
    if (ring) {
        ck_assert(!wf_plan_ok(plan));
        ck_assert_ptr_nonnull(strstr(wf_plan_error(plan), "cycle"));
    } else {
        ck_assert_msg(wf_feed(plan, wf_find(g, "rates"), (float[]){ 1, 1, 1 }, 3 * sizeof(float)) &&
                          wf_run(plan),
                      "%s", wf_plan_error(plan));
        for (int i = 0; i < UPDATES; i++) {
            float value;
            ck_assert(wf_read(p[i], &value, sizeof value));
            ck_assert_float_eq(value, (float)(i % 97 - (i < UPDATES - 1 ? (i + 1) % 97 : 0)));
        }
    }
    wf_plan_free(plan), free(p);
    end_graph(g);
}

/* ---- memory of a plan ------------------------------------------------------------------------ */

static void *values_of(const scaled *s, wf_plan *p, size_t *bytes) {
    ck_assert_msg(run_scaled(s, p), "%s", wf_plan_error(p));
    char *all = NULL;
    *bytes = 0;
    for (int i = 0; i <= s->n_params; i++) { /* the loss, then what the updates left */
        size_t more = i ? wf_bytes(s->params[i - 1]) : 4;
        all = realloc(all, *bytes + more);
        ck_assert_ptr_nonnull(all);
        ck_assert(i ? wf_read(s->params[i - 1], all + *bytes, more)
                    : wf_fetch(p, s->loss, all + *bytes, wf_bound_bytes(p, s->loss)));
        *bytes += more;
    }
    return all;
}

/* If every node is fetched, no array is reused. A plan that reuses memory must have the same
 * results. */
TEST_ROWS(nothing_lies_upon_another, n_recipes) {
    void *result[2];
    size_t bytes[2], arena[2];
    for (int kept = 0; kept < 2; kept++) {
        scaled s;
        ck_assert_msg(record_scaled(&s, &recipes[_i], 9000) && differentiate(&s), "%s",
                      wf_error(s.g));
        if (kept) {
            int n = wf_node_count(s.g);
            s.wanted = realloc(s.wanted, (size_t)(s.n_wanted + n) * sizeof *s.wanted);
            ck_assert_ptr_nonnull(s.wanted);
            for (int id = 0; id < n; id++)
                if (wf_node(s.g, id)->op && !wf_node(s.g, id)->op->writes)
                    s.wanted[s.n_wanted++] = wf_node(s.g, id);
        }
        wf_plan *p = plan_scaled(&s);
        ck_assert_msg(wf_plan_ok(p), "%s", wf_plan_error(p));
        result[kept] = values_of(&s, p, &bytes[kept]);
        arena[kept] = wf_plan_memory(p);
        wf_plan_free(p), scaled_free(&s);
    }
    ck_assert_uint_eq(bytes[0], bytes[1]);
    ck_assert_mem_eq(result[0], result[1], bytes[0]);
    ck_assert_uint_lt(arena[0], arena[1]);
    free(result[0]), free(result[1]);
}

/* A chain of nodes needs memory for two arrays, however long it is. */
TEST(a_chain_needs_two_arrays) {
    for (int n = 10; n <= 100000; n *= 100) {
        scaled s;
        ck_assert_msg(record_scaled(&s, &recipes[0], n), "%s", wf_error(s.g));
        wf_plan *p = plan_scaled(&s);
        ck_assert_uint_le(wf_plan_memory(p), 2 * 64);
        wf_plan_free(p), scaled_free(&s);
    }
}

/* ---- memory of a generation ------------------------------------------------------------------ */

enum { FAR = 1 << 20, D = 4, B = 3, LENGTH = 70 };

typedef struct generation {
    wf_graph *g;
    wf_tensor *x, *y;
    wf_plan *p;
} generation;

static void open_generation(generation *d, bool with_state) {
    wf_graph *g = d->g = new_graph(WF_F32);
    int64_t batch = wf_extent(g, "B", 8), T = wf_extent(g, "T", 128);
    wf_extent(g, "P", FAR);
    d->x = wf_input(g, "x", WF_F32, SHAPE(batch, T, D)); /* [B, T, D] */
    wf_tensor *k = wf_cache(d->x, 1), *v = wf_cache(wf_scale(d->x, 0.5), 1);
    d->y = wf_attention(d->x, k, v, NULL, &(wf_attention_options){ .causal = true });
    d->p = wf_plan_new(
        g,
        &(wf_plan_options){
            .fetch = &d->y, .n_fetch = 1, .feed = &d->x, .n_feed = 1, .with_state = with_state });
    ck_assert_msg(wf_plan_ok(d->p) && wf_bind(d->p, "B", B), "%s", wf_plan_error(d->p));
}

static void close_generation(generation *d) {
    wf_plan_free(d->p);
    end_graph(d->g);
}

/* Runs the positions [from, from + n) of a batch whose row b has the inputs of sequence rows[b]. */
static bool advance(generation *d, wf_state *s, int from, int n, const int *rows, float *y) {
    static float x[B * LENGTH * D];
    for (int b = 0; b < B; b++)
        for (int i = 0; i < n * D; i++)
            x[b * n * D + i] =
                (float)number(50 + (uint64_t)rows[b], (uint64_t)(from * D + i)) - .5f;
    return wf_bind(d->p, "T", n) && (!s || wf_bind(d->p, "P", from)) &&
           wf_feed(d->p, d->x, x, wf_bound_bytes(d->p, d->x)) &&
           (s ? wf_run_state(d->p, s) : wf_run(d->p)) &&
           wf_fetch(d->p, d->y, y, wf_bound_bytes(d->p, d->y));
}

/* The results of a run over the whole sequences, without a state. */
static void whole(const int *rows, float *y) {
    generation d;
    open_generation(&d, false);
    ck_assert_msg(advance(&d, NULL, 0, LENGTH, rows, y), "%s", wf_plan_error(d.p));
    close_generation(&d);
}

static void compare(const float *all, const float *y, int from, int n) {
    for (int b = 0; b < B; b++)
        ck_assert_mem_eq(y + b * n * D, all + (b * LENGTH + from) * D,
                         sizeof(float[D]) * (size_t)n);
}

static wf_state *open_state(generation *d) {
    ck_assert(wf_bind(d->p, "T", 1) && wf_bind(d->p, "P", 0));
    wf_state *s = wf_state_new(d->p);
    ck_assert_msg(s != NULL, "%s", wf_plan_error(d->p));
    return s;
}

static const int in_order[B] = { 0, 1, 2 };

/* A state grows while positions are added, one or seven at a time, and is used again from position
 * 0 and 40. Results have the bits of a run over the whole sequence. The state, of up to three
 * arrays, is about a quarter larger than its rows so far at most. */
TEST(a_state_grows_with_its_rows) {
    static float all[B * LENGTH * D], y[B * LENGTH * D];
    generation d;
    open_generation(&d, true);
    whole(in_order, all);
    wf_state *s = open_state(&d);
    for (int pass = 0; pass < 3; pass++) {
        int from = pass == 2 ? 40 : 0, n = pass == 1 ? 7 : 1; /* 40: an earlier position again */
        for (; from + n <= LENGTH; from += n) {
            ck_assert_msg(advance(&d, s, from, n, in_order, y), "%s", wf_plan_error(d.p));
            compare(all, y, from, n);
            size_t rows = (size_t)(pass ? LENGTH : from + n), row = B * D * sizeof(float);
            ck_assert_uint_le(wf_state_bytes(s), 3 * row * (rows + rows / 4 + 18));
            ck_assert_uint_ge(wf_state_bytes(s), 2 * row * (size_t)(from + n));
            ck_assert_uint_le(wf_plan_memory(d.p), 1 << 16);
        }
    }
    wf_state_free(s);
    close_generation(&d);
}

/* One plan alternates between two states of different lengths, one of them with reordered rows. */
TEST(states_of_several_sizes_take_turns) {
    static const int other[B] = { 2, 0, 2 };
    static float all[2][B * LENGTH * D], y[B * LENGTH * D];
    generation d;
    open_generation(&d, true);
    whole(in_order, all[0]), whole(other, all[1]);
    wf_state *s[2] = { open_state(&d), open_state(&d) };
    ck_assert(advance(&d, s[1], 0, 30, in_order, y));
    ck_assert(wf_state_reorder(s[1], (int32_t[]){ 2, 0, 2 }, B));
    for (int t = 0; t < 40; t++) {
        ck_assert_msg(advance(&d, s[0], t, 1, in_order, y), "%s", wf_plan_error(d.p));
        compare(all[0], y, t, 1);
        ck_assert_msg(advance(&d, s[1], 30 + t, 1, other, y), "%s", wf_plan_error(d.p));
        compare(all[1], y, 30 + t, 1);
    }
    wf_state_free(s[0]), wf_state_free(s[1]);
    close_generation(&d);
}

/* Each allocation of a step in which the state grows fails in turn: the step fails with a message.
 * The same step then succeeds with the right results. */
TEST(a_state_that_cannot_grow_stays_whole) {
    static float all[B * LENGTH * D], y[B * LENGTH * D];
    long asked = 0;
    bool ok = false;
    whole(in_order, all);
    for (long at = 1; !ok; at++) {
        generation d;
        open_generation(&d, true);
        wf_state *s = open_state(&d);
        for (int t = 0; t < 16; t++) ck_assert(advance(&d, s, t, 1, in_order, y));
        long left;
        faults_begin(at, true);
        ok = advance(&d, s, 16, 1, in_order, y);
        asked = faults_end(&left);
        ck_assert_msg(ok == (asked < at), "request %ld: nobody noticed", at);
        ck_assert(ok || strstr(wf_plan_error(d.p), "memory"));
        for (int t = 15; t < 40; t++) { /* the last row once more, too */
            ck_assert_msg(advance(&d, s, t, 1, in_order, y), "%s", wf_plan_error(d.p));
            compare(all, y, t, 1);
        }
        wf_state_free(s);
        close_generation(&d);
    }
    ck_assert_int_gt(asked, 3); /* the arena, and each slot */
}

/* A file may declare a max_len of a million tokens; its decoder takes only the memory that the
 * sentences need. */
TEST(what_is_allowed_costs_nothing) {
    wf_transformer_config c = wf_transformer_defaults();
    char message[WF_MESSAGE] = "";
    c.src_vocab = c.tgt_vocab = 17, c.max_len = FAR;
    c.d_model = 16, c.num_heads = 2, c.dim_feedforward = 16;
    c.encoder_layers = c.decoder_layers = 1;
    wf_model *m = wf_transformer_new(&c, NULL, WF_F32, 1, message);
    ck_assert_msg(m && wf_ok(m->graph), "%s", message);
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        if (!t->op && t->kind != WF_INPUT) ck_assert_uint_lt(wf_bytes(t), 1 << 16);
    }
    wf_plan *p = wf_model_step_plan(m, NULL);
    ck_assert(wf_bind(p, "B", 2) && wf_bind(p, "S", 3) && wf_bind(p, "T", 1));
    wf_state *s = wf_state_new(p);
    ck_assert_msg(s != NULL, "%s", wf_plan_error(p));
    ck_assert_uint_lt(wf_state_bytes(s), 1 << 16);
    ck_assert_uint_lt(wf_plan_memory(p), 1 << 16);
    wf_state_free(s), wf_plan_free(p), wf_model_free(m);
}
