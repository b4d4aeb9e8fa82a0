/* tools/learn/9_product/product_checks.c - checks exercise 9: its task and known mistakes, and
 * measures its speed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "ops/ops.h"
#include "product_task.h"
#include "tools/bench/bench_loops.h"
#include "tools/learn/lesson.h"

/* ---- the product ----------------------------------------------------------------------------- */

enum { A, B };
enum {
    NOT_CLEARED,
    LAST_TERM,
    A_TURNED,
    B_TURNED,
    C_TURNED,
    REST_OF_4,
    REST_OF_8,
    REST_OF_16,
    FIRST_TERM,
    LAST_MISSING,
    FIRST_MISSING,
    ROW_OF_4,
    ROW_OF_6,
    ROW_OF_8,
    ROW_OF_12,
    COLUMN_OF_4,
    COLUMN_OF_8,
    COLUMN_OF_16,
    COLUMN_OF_32
};

enum { TILES = 4 };
static const int tile_rows[TILES] = { 4, 6, 8, 12 }, tile_columns[TILES] = { 4, 8, 16, 32 };

static void run_product(const sample *s, float *const *out) {
    product(s->in[A], s->in[B], out[0], s->size['m'], s->size['k'], s->size['n']);
}

static void weft_product(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    (void)s;
    (void)g;
    out[0] = wf_matmul(in[A], in[B]);
}

/* The first row, or column, of the tile that contains number i, if one of the mistakes from `from`
 * on is set; otherwise i. */
static int first_of_tile(uint64_t mistakes, int from, const int *sizes, int i) {
    for (int k = 0; k < TILES; k++)
        if (HAS(mistakes, from + k)) i -= i % sizes[k];
    return i;
}

static void model_product(const sample *s, uint64_t mistakes, double *const *out) {
    int m = s->size['m'], k = s->size['k'], n = s->size['n'], from = 0, to = k;
    if (HAS(mistakes, LAST_TERM)) from = k - 1;
    if (HAS(mistakes, FIRST_TERM)) to = 1;
    if (HAS(mistakes, LAST_MISSING)) to = k - 1;
    if (HAS(mistakes, FIRST_MISSING)) from = 1;
    if (HAS(mistakes, REST_OF_4)) to = k / 4 * 4;
    if (HAS(mistakes, REST_OF_8)) to = k / 8 * 8;
    if (HAS(mistakes, REST_OF_16)) to = k / 16 * 16;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            double sum = HAS(mistakes, NOT_CLEARED) ? NAN : 0;
            int row = first_of_tile(mistakes, ROW_OF_4, tile_rows, i);
            int column = first_of_tile(mistakes, COLUMN_OF_4, tile_columns, j);
            for (int p = from; p < to; p++)
                sum += (double)s->in[A][HAS(mistakes, A_TURNED) ? p * m + i : row * k + p] *
                       s->in[B][HAS(mistakes, B_TURNED) ? j * k + p : p * n + column];
            out[0][HAS(mistakes, C_TURNED) ? j * m + i : i * n + j] = sum;
        }
    }
}

#define REST_SENTENCE                                                                              \
    "Sums end before the last p: behind a loop in steps there must be one for the rest."
#define ROW_SENTENCE "Is the row within the tile in the index of a, as in a[(i + r) * k + p]?"
#define COLUMN_SENTENCE "Is the column within the tile in the index of b, as in b[p * n + j + c]?"
static const lesson_task product_task = {
    .name = "product",
    .formula = "c[i][j] = the sum of a[i][p] * b[p][j] over all p",
    .in = { [A] = { "a", "mk", ARRAY_VALUES, 0 }, [B] = { "b", "kn", ARRAY_WEIGHTS, 0 } },
    .out = { { "c", "mn", 0, 0 } },
    .cases = { "m3 k5 n4", "m1 k1 n1", "m32 k32 n64", "m17 k45 n31", "m7 k300 n50" },
    .learner = run_product,
    .weft = weft_product,
    .model = model_product,
    .tolerance = 2e-6,
    .mistakes = {
        [NOT_CLEARED] = { "c is not set to 0 first", "The products are added to what stood in c "
                          "before, which may be anything. Set c to 0, or begin each sum at 0." },
        [LAST_TERM] = { "only the last term",
                        "Each term overwrites the one before it: add with +=." },
        [A_TURNED] = { "a is read transposed", "Element (i, p) of a [m, k] is a[i * k + p]." },
        [B_TURNED] = { "b is read transposed", "Element (p, j) of b [k, n] is b[p * n + j]." },
        [C_TURNED] = { "c is written transposed", "Element (i, j) of c [m, n] is c[i * n + j]." },
        [REST_OF_4] = { "the rest of k is left out, in steps of 4", REST_SENTENCE },
        [REST_OF_8] = { "the rest of k is left out, in steps of 8", REST_SENTENCE },
        [REST_OF_16] = { "the rest of k is left out, in steps of 16", REST_SENTENCE },
        [ROW_OF_4] = { "every row of a tile of 4 is its first", ROW_SENTENCE },
        [ROW_OF_6] = { "every row of a tile of 6 is its first", ROW_SENTENCE },
        [ROW_OF_8] = { "every row of a tile of 8 is its first", ROW_SENTENCE },
        [ROW_OF_12] = { "every row of a tile of 12 is its first", ROW_SENTENCE },
        [COLUMN_OF_4] = { "every column of a tile of 4 is its first", COLUMN_SENTENCE },
        [COLUMN_OF_8] = { "every column of a tile of 8 is its first", COLUMN_SENTENCE },
        [COLUMN_OF_16] = { "every column of a tile of 16 is its first", COLUMN_SENTENCE },
        [COLUMN_OF_32] = { "every column of a tile of 32 is its first", COLUMN_SENTENCE },
        [FIRST_TERM] = { "only the first term", "All p from 0 to k - 1 belong to the sum." },
        [LAST_MISSING] = { "the last term is missing", "All p from 0 to k - 1 belong to the sum." },
        [FIRST_MISSING] = { "the first term is missing",
                            "All p from 0 to k - 1 belong to the sum." },
    },
};

/* ---- its speed ------------------------------------------------------------------------------- */

enum { SIZE = 288, FEWEST = 5, ENOUGH = 60 };
static const double patience = 2, burst = 0.0005; /* seconds */

/* The rate of multiply-adds in a short burst at this core's peak, in operations a second. */
static double peak_now(void) {
    static double rounds = 1 << 14;
    double from = wf_seconds_now(), flops = limit_loops_here()->multiply_add((int64_t)rounds);
    double seconds = wf_seconds_now() - from;
    rounds *= fmin(fmax(burst / seconds, 0.5), 2);
    return flops / seconds;
}

static double rate_of(void (*run)(void *user), void *user) {
    double from = wf_seconds_now();
    run(user);
    return 2.0 * SIZE * SIZE * SIZE / (wf_seconds_now() - from);
}

typedef struct speed {
    double flops, peak; /* a second */
} speed;

/* Runs and bursts at the peak take turns, and the best of each counts, because other programs can
 * only slow them down. Both are so short that some are not interrupted. */
static speed measure(void (*run)(void *user), void *user) {
    double until = wf_seconds_now() + patience;
    speed best = { rate_of(run, user), peak_now() };
    for (int i = 0; i < FEWEST || wf_seconds_now() < until; i++) {
        best.flops = fmax(best.flops, rate_of(run, user));
        best.peak = fmax(best.peak, peak_now());
    }
    return best;
}

static double share_of(speed s) {
    return 100 * s.flops / s.peak;
}

typedef struct matrices {
    float *a, *b, *c, *right;
    wf_plan *plan;
} matrices;

static void run_learner(void *user) {
    matrices *k = user;
    product(k->a, k->b, k->c, SIZE, SIZE, SIZE);
}

static void run_weft(void *user) {
    matrices *k = user;
    wf_run(k->plan);
}

/* The next thing to do, depending on the share of the peak. */
static const char *advice(double share) {
    if (share < 12)
        return "The inner loop runs down a column of b, through another line of memory with each "
               "step. Let it run "
               "along rows of b and c: exchange the loops over j and p.";
    if (share < 30)
        return "Each multiply-add loads c and stores it again. Keep a tile of c in registers, "
               "several rows and two "
               "vectors of columns, while p runs over all of k.";
    return "A tile is there. Are 8 to 24 vectors of sums in it, as many as the registers hold? "
           "Does the compiler "
           "unroll the loop over its rows?";
}

static bool is_right(const matrices *k) {
    double most = 0, worst = 0;
    for (int i = 0; i < SIZE * SIZE; i++) {
        most = fmax(most, fabs((double)k->right[i]));
        worst = fmax(worst, fabs((double)k->c[i] - k->right[i]));
    }
    return worst <= 1e-5 * most;
}

static bool tell_speed(matrices *k, FILE *report) {
    speed own = measure(run_learner, k), weft = measure(run_weft, k);
    if (!is_right(k)) {
        fprintf(report, "  speed          the product of %d x %d matrices is wrong\n", SIZE, SIZE);
        return false;
    }
    fprintf(
        report,
        "  speed          %.1f GFLOP/s, %.0f %% of this core's peak of %.1f; %d %% are enough\n",
        own.flops / 1e9, share_of(own), own.peak / 1e9, ENOUGH);
    fprintf(report, "                 (weft's own product: %.0f %%)\n", share_of(weft));
    if (share_of(own) < ENOUGH) put_words(report, advice(share_of(own)));
    return share_of(own) >= ENOUGH;
}

static bool trial(FILE *report) {
    int64_t shape[] = { SIZE, SIZE };
    size_t bytes = SIZE * SIZE * sizeof(float);
    matrices k = { malloc(bytes), malloc(bytes), malloc(bytes), malloc(bytes), NULL };
    wf_graph *g = wf_graph_new(NULL);
    bool ok = k.a && k.b && k.c && k.right;
    for (int i = 0; ok && i < SIZE * SIZE; i++) {
        k.a[i] = (float)(lesson_number("a", i) - 0.5);
        k.b[i] = (float)(lesson_number("b", i) - 0.5);
    }
    wf_tensor *in[] = { wf_input(g, "a", WF_F32, 2, shape), wf_input(g, "b", WF_F32, 2, shape) };
    wf_tensor *c = wf_matmul(in[A], in[B]);
    k.plan =
        wf_plan_new(g, &(wf_plan_options){ .fetch = &c, .n_fetch = 1, .feed = in, .n_feed = 2 });
    ok = ok && wf_feed(k.plan, in[A], k.a, bytes) && wf_feed(k.plan, in[B], k.b, bytes) &&
         wf_run(k.plan) && wf_fetch(k.plan, c, k.right, bytes);
    if (!ok) fprintf(report, "  speed          can't be measured: %s\n", wf_plan_error(k.plan));
    ok = ok && tell_speed(&k, report);
    wf_plan_free(k.plan);
    wf_graph_free(g);
    free(k.a), free(k.b);
    free(k.c), free(k.right);
    return ok;
}

static const lesson_task *const tasks[] = { &product_task };
const lesson the_lesson = { tasks, sizeof tasks / sizeof *tasks, trial, NULL };
