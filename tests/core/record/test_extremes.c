/* tests/core/record/test_extremes.c - every function of the public headers of ops and nn, and of
 * those of core for graphs, plans and ops, with extreme arguments: the ends of every integer type,
 * NaN and infinities, NULL. Each call returns an error or a value and does not crash; sanitizers,
 * if the tests are built with them, see nothing undefined.
 *
 * A row is one call with two integers or two reals, run on a graph of its own for every pair of
 * extremes. The length of a list is passed correctly or negative: the library cannot know it.
 * tests/house.sh finds a public function without a row. */
#include <float.h>

#include "core/base/caches.h"
#include "core/file_internal.h"
#include "core/graph_internal.h"
#include "core/lend.h"
#include "core/op_internal.h"
#include "core/picture.h"
#include "core/run_internal.h"
#include "nn/layers_internal.h"
#include "nn/nn.h"
#include "nn/optimizer_internal.h"
#include "nn/trainer_internal.h"
#include "ops/elementwise/unary.h"
#include "ops/ops_internal.h"
#include "ops/update/sums.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(extremes)

typedef struct env {
    wf_graph *g;
    int64_t B;
    wf_tensor *x, *v, *s, *ids, *big, *null; /* [2,3] [3] [] i32 [2]; [B,3] an input */
    wf_tensor *q;                            /* [2,2,3,4] */
    wf_plan *p;                              /* a plan of sum(big v), made when a row asks for it */
    wf_state *state;
} env;

static void open_env(env *e) {
    *e = (env){ .g = wf_graph_new(&(wf_graph_options){ .seed = 1 }) };
    e->B = wf_extent(e->g, "B", 8);
    wf_extent(e->g, "P", 5);
    e->x = wf_param(e->g, "x", SHAPE(2, 3), wf_init_uniform(1));
    e->v = wf_param(e->g, "v", SHAPE(3), wf_init_uniform(1));
    e->s = wf_constant(e->g, 0.5);
    e->ids = wf_buffer(e->g, "ids", WF_I32, SHAPE(2), wf_init_zeros());
    e->big = wf_input(e->g, "big", WF_F32, SHAPE(e->B, 3));
    e->q = wf_param(e->g, "q", SHAPE(2, 2, 3, 4), wf_init_uniform(1));
}

static wf_tensor *sum_of_all(env *e) {
    return wf_sum(wf_mul(wf_cache(wf_unsqueeze(e->big, WF_AXIS(0)), 1), e->v), WF_ALL_AXES, false);
}

static void open_plan(env *e, bool with_state) {
    wf_tensor *y = sum_of_all(e);
    e->p = wf_plan_new(e->g, &(wf_plan_options){ .fetch = &y,
                                                 .n_fetch = 1,
                                                 .feed = &e->big,
                                                 .n_feed = 1,
                                                 .training = true,
                                                 .with_state = with_state });
    float data[24] = { 0 };
    if (wf_bind(e->p, "B", 2) && wf_feed(e->p, e->big, data, sizeof data) && with_state)
        e->state = wf_state_new(e->p);
    e->null = y; /* what it fetches */
}

static void close_env(env *e) {
    wf_state_free(e->state), wf_plan_free(e->p);
    wf_graph_free(e->g);
}

static void run(env *e, wf_tensor *y) {
    wf_plan *p =
        wf_plan_new(e->g, &(wf_plan_options){ .fetch = &y, .n_fetch = 1, .training = true });
    double out[64];
    if (wf_run(p)) wf_fetch(p, y, out, sizeof out);
    wf_plan_free(p);
}

/* ---- integers -------------------------------------------------------------------------------- */

typedef struct integers {
    const char *name;
    void (*call)(env *e, int64_t a, int64_t b);
} integers;

#define INTEGERS(NAME, ...)                                                                        \
    static void i_##NAME(env *e, int64_t a, int64_t b) {                                           \
        int i = (int)a, j = (int)b;                                                                \
        (void)e, (void)a, (void)b, (void)i, (void)j;                                               \
        __VA_ARGS__;                                                                               \
    }
#include "extremes_integers.inc"
#undef INTEGERS

static const integers of_integers[] = {
#define INTEGERS(NAME, ...) { #NAME, i_##NAME },
#include "extremes_integers.inc"
#undef INTEGERS
};

static const int64_t ends[] = {
    INT64_MIN, INT64_MIN + 1, INT32_MIN,     -9,       -8, -1, 0, 1, 2, 3, 8,
    INT32_MAX, INT64_MAX / 3, INT64_MAX - 1, INT64_MAX
};

/* A failed graph must have a message, and any other graph must have none. */
static void look_at(const env *e, const char *name) {
    ck_assert_msg(wf_ok(e->g) == (wf_error(e->g)[0] == '\0'), "%s: \"%s\"", name, wf_error(e->g));
}

TEST_ROWS(integers_at_their_ends, COUNT_OF(of_integers)) {
    const integers *row = &of_integers[_i];
    for (int i = 0; i < COUNT_OF(ends); i++)
        for (int j = 0; j < COUNT_OF(ends); j++) {
            env e;
            open_env(&e);
            row->call(&e, ends[i], ends[j]);
            look_at(&e, row->name);
            close_env(&e);
        }
}

/* ---- reals ----------------------------------------------------------------------------------- */

typedef struct reals {
    const char *name;
    void (*call)(env *e, double a, double b);
} reals;

#define REALS(NAME, ...)                                                                           \
    static void r_##NAME(env *e, double a, double b) {                                             \
        (void)e, (void)a, (void)b;                                                                 \
        __VA_ARGS__;                                                                               \
    }
#include "extremes_reals.inc"
#undef REALS

static const reals of_reals[] = {
#define REALS(NAME, ...) { #NAME, r_##NAME },
#include "extremes_reals.inc"
#undef REALS
};

static const double no_numbers[] = { NAN, INFINITY, -INFINITY, -0.0,  0,      -1,  1,
                                     0.5, DBL_MAX,  -DBL_MAX,  1e300, 5e-324, 1e10 };

TEST_ROWS(reals_that_are_none, COUNT_OF(of_reals)) {
    const reals *row = &of_reals[_i];
    for (int i = 0; i < COUNT_OF(no_numbers); i++)
        for (int j = 0; j < COUNT_OF(no_numbers); j++) {
            env e;
            open_env(&e);
            row->call(&e, no_numbers[i], no_numbers[j]);
            look_at(&e, row->name);
            close_env(&e);
        }
}

/* ---- NULL ------------------------------------------------------------------------------------ */

typedef struct nothing {
    const char *name;
    void (*call)(env *e, wf_tensor *x, wf_graph *g, wf_plan *p); /* NULL, or what has failed */
} nothing;

#define NOTHING(NAME, ...)                                                                         \
    static void n_##NAME(env *e, wf_tensor *x, wf_graph *g, wf_plan *p) {                          \
        (void)e, (void)x, (void)g, (void)p;                                                        \
        __VA_ARGS__;                                                                               \
    }
#include "extremes_null.inc"
#undef NOTHING

static const nothing of_null[] = {
#define NOTHING(NAME, ...) { #NAME, n_##NAME },
#include "extremes_null.inc"
#undef NOTHING
};

TEST_ROWS(nothing_at_all, COUNT_OF(of_null)) {
    env e;
    open_env(&e);
    of_null[_i].call(&e, NULL, NULL, NULL);
    look_at(&e, of_null[_i].name);
    close_env(&e);
    open_env(&e); /* poison, a failed graph, a failed plan */
    wf_graph *failed = wf_graph_new(&(wf_graph_options){ .real = (wf_dtype)9 });
    wf_plan *p = wf_plan_new(failed, NULL);
    of_null[_i].call(&e, wf_constant(failed, 1), failed, p);
    look_at(&e, of_null[_i].name);
    wf_plan_free(p), wf_graph_free(failed);
    close_env(&e);
    open_env(&e); /* poison of its own graph */
    wf_tensor *x = wf_poison(e.g, "spoilt");
    of_null[_i].call(&e, x, e.g, NULL);
    ck_assert_str_eq(wf_error(e.g), "spoilt");
    close_env(&e);
}

/* ---- initial values that look at others ------------------------------------------------------ */

static wf_tensor *source;
static bool read_other, read_own;

static void fill_from_source(const wf_init *init, uint64_t key, wf_dtype dtype, int ndim,
                             const int64_t *shape, void *data) {
    float own[3];
    (void)init, (void)key, (void)dtype, (void)ndim, (void)shape;
    wf_tensor *self = wf_find(source->graph, "copy");
    read_own = wf_read(self, own, sizeof own) || wf_write(self, own, sizeof own);
    read_other = wf_read(source, data, 3 * sizeof(float));
}

/* An init function that reads another leaf. A bug of the past: it waited for a lock that wf_read of
 * the first leaf held. */
TEST(an_initial_value_may_read_other_leaves) {
    wf_graph *g = new_graph(WF_F32);
    float a[3], b[3];
    wf_tensor *copy = wf_param(g, "copy", SHAPE(3), (wf_init){ .fill = fill_from_source });
    source = wf_param(g, "source", SHAPE(3), wf_init_uniform(1));
    ck_assert(wf_read(copy, a, sizeof a) && wf_read(source, b, sizeof b));
    ck_assert(read_other && !read_own);
    ck_assert_mem_eq(a, b, sizeof a);
    end_graph(g);
}

TEST(schedules_stay_finite) {
    static const int64_t steps[] = { INT64_MIN, -1, 0, 1, 1000, INT64_MAX };
    for (int kind = WF_CONSTANT_RATE; kind <= WF_NOAM; kind++)
        for (int i = 0; i < 6 * 6 * 6; i++) {
            wf_schedule s = { (wf_schedule_kind)kind, 0.5, steps[i % 6], steps[i / 6 % 6], 0.1 };
            double rate = wf_schedule_rate(&s, steps[i / 36]);
            ck_assert_msg(rate >= 0 && rate <= 0.5, "kind %d, %d: %g", kind, i, rate);
        }
}
