/* tools/learn/4_block/block_checks.c - checks exercise 4: its tasks and known mistakes. */
#include <stdlib.h>
#include <string.h>

#include "ops/ops.h"
#include "tools/learn/lesson_blocks.h"
#include "tools/learn/lesson_recipe.h"

enum { X, NORM, FF = NORM + NORM_ARRAYS };

/* ---- layer_norm ------------------------------------------------------------------------------ */

static void run_norm(const sample *s, float *const *out) {
    struct norm_weights w = norm_of(s, NORM, 0);
    layer_norm(&w, s->in[X], s->size['r'], s->size['D'], out[0]);
}

static void weft_norm(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    (void)s;
    (void)g;
    out[0] = wf_layer_norm(in[X], WF_LAST_AXIS, in[NORM], in[NORM + 1], EPS);
}

static void model_norm(const sample *s, uint64_t m, double *const *out) {
    struct norm_weights w = norm_of(s, NORM, 0);
    double *x = doubles_of(s->in[X], s->count[X]);
    block_norm(&w, x, s->size['r'], s->size['D'], m, out[0]);
    free(x);
}

static const lesson_task norm_task = {
    .name = "layer_norm",
    .formula = "y[t][j] = (x[t][j] - mean of row t) / sqrt(variance of row t + EPS) * gamma[j] + "
               "beta[j]",
    .in = { [X] = { "x", "rD", ARRAY_VALUES, 0 }, NORM_ROWS(NORM, "", "norm") },
    .out = { { "y", "rD", 0, 0 } },
    .cases = { "r3 D8", "r5 D4", "r3 D6 small" },
    .learner = run_norm,
    .weft = weft_norm,
    .model = model_norm,
    .mistakes = {
        [NORM_NO_EPS] = { "no eps", "EPS is not added to the variance. A row of equal numbers "
                          "would be divided by 0." },
        [NORM_EPS_OUTSIDE] = { "eps outside the root", "EPS belongs to the variance, under the "
                               "root: sqrt(variance + EPS), and not sqrt(variance) + EPS." },
        [NORM_UNBIASED] = { "unbiased variance", "The sum of squares is divided by D - 1. Layer "
                            "norm takes the mean of the squares: divide by D." },
        [NORM_NO_ROOT] = { "divided by the variance", "The root is missing: divide by the standard "
                           "deviation, sqrt(variance + EPS)." },
        [NORM_NO_MEAN] = { "no mean", "The mean is not subtracted, nor is it in the variance. "
                           "(That is nearly RMSNorm.)" },
        [NORM_MEAN_STAYS] = { "the mean is not subtracted", "The variance is right, but the "
                              "numbers are not centred: subtract the mean from each." },
        [NORM_AXIS] = { "norm over the wrong axis", "Columns are normalised here, which is nearly "
                        "batch norm. Each row has a mean and a variance of its own." },
        [NORM_NO_GAMMA] = { "no gamma", "The result is not multiplied by gamma[j]." },
        [NORM_NO_BETA] = { "no beta", "beta[j] is not added." },
        [NORM_BETA_FIRST] = { "beta before gamma",
                              "Multiply by gamma, then add beta: beta is not multiplied." },
        [NORM_ALL_ROWS] = { "one norm for all rows", "Mean and variance are those of the whole "
                            "matrix. Each row has its own." },
        [NORM_RUNNING_MEAN] = { "the mean is not set to 0 for every row", "It goes on from the row "
                                "before: set it inside the loop over rows." },
        [NORM_RUNNING_VARIANCE] = { "the variance is not set to 0 for every row", "It goes on from "
                                    "the row before: set it inside the loop over rows." },
        [NORM_GAMMA_OF_ROW] = { "gamma of the row",
                                "gamma has a number for each column: gamma[j], and not gamma[t]." },
        [NORM_RAW_VARIANCE] = { "the mean is not in the variance",
                                "The mean is subtracted from the numbers, and not in the squares: "
                                "(x[j] - mean) * (x[j] - mean)." },
        [NORM_NOT_DIVIDED] = { "a sum in the place of the variance", "The sum of squares is not "
                               "divided by D. The variance is their mean." },
        [NORM_ABSOLUTE] = { "distances are not squared", "The variance is the mean of the squares "
                            "of the distances from the mean." },
        [NORM_GAMMA_PLUS_1] = { "1 + gamma in the place of gamma",
                                "gamma is the whole factor. (Some models store it less 1.)" },
        [NORM_RUNNING] = { "mean and variance are not set to 0 for every row",
                           "They go on from the row before: set them inside the loop over rows." },
    },
};

/* ---- feed_forward ---------------------------------------------------------------------------- */

#define FF_IN                                                                                      \
    { [X] = { "x", "rD", ARRAY_VALUES, 0 }, NORM_ROWS(NORM, "", "norm"), FF_ROWS(FF, "", "ff") }

static void run_ff(const sample *s, float *const *out) {
    struct ff_weights w = ff_of(s, FF, 0);
    feed_forward(&w, s->in[X], s->size['r'], s->size['D'], s->size['F'], out[0]);
}

static wf_tensor *record_ff(wf_tensor *x, wf_tensor *const *in) {
    wf_tensor *inner = wf_relu(wf_gemm(x, in[FF], in[FF + 1], WF_TRANSPOSE_B)); /* [r, F] */
    return wf_gemm(inner, in[FF + 2], in[FF + 3], WF_TRANSPOSE_B);              /* [r, D] */
}

static void weft_ff(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    (void)s;
    (void)g;
    out[0] = record_ff(in[X], in);
}

static void model_ff(const sample *s, uint64_t m, double *const *out) {
    struct ff_weights w = ff_of(s, FF, 0);
    double *x = doubles_of(s->in[X], s->count[X]);
    block_ff(&w, x, s->size['r'], s->size['D'], s->size['F'], m, out[0]);
    free(x);
}

static const lesson_task ff_task = {
    .name = "feed_forward",
    .formula = "y = linear(relu(linear(x, w1, b1)), w2, b2)",
    .in = FF_IN,
    .out = { { "y", "rD", 0, 0 } },
    .cases = { "r3 D4 F8", "r2 D6 F6", "r4 D6 F9" },
    .learner = run_ff,
    .weft = weft_ff,
    .model = model_ff,
    .mistakes = {
        [FF_NO_RELU] = { "no relu", "Without relu between them, two linear layers are one." },
        [FF_RELU_LAST] = { "relu after the second layer", "relu belongs between the two layers. At "
                           "the end it makes every result positive." },
        [FF_RELU_FIRST] = { "relu before the first layer", "relu belongs between the two layers." },
        [FF_NO_B1] = { "no b1", "The bias of the first layer is not added." },
        [FF_NO_B2] = { "no b2", "The bias of the second layer is not added." },
        [FF_W1_TURNED] = { "w1 transposed", "w1 is [F, D]: from D to F." },
        [FF_W2_TURNED] = { "w2 transposed", "w2 is [D, F]: from F to D." },
        [FF_RESIDUAL] = { "a residual inside",
                          "x is added to the result. That is for the block around it." },
        [FF_B1_TWICE] = { "b1 in both layers", "The second layer has the bias b2." },
        [FF_RELU_TWICE] = { "a second relu at the end", "relu belongs between the two layers, and "
                            "is not used again: results may be negative." },
        [FF_RELU_TURNED] = { "relu keeps what is below 0", "relu sets to 0 what is below 0, and "
                             "keeps the rest. Here it is the other way round." },
        [FF_LEAKY] = { "relu lets a hundredth through",
                       "Below 0 relu is 0. (0.01 x there is leaky relu.)" },
        [FF_ABSOLUTE] = { "absolute value for relu",
                          "relu is 0 for what is below 0, and not its absolute value." },
    },
};

/* ---- post_norm and pre_norm ------------------------------------------------------------------ */

enum { NO_RESIDUAL, OTHER_ORDER, NORM_OF_F, NO_NORM, NO_F, TWICE, BOTH, NORMED_RESIDUAL };

static void run_post(const sample *s, float *const *out) {
    struct norm_weights norm = norm_of(s, NORM, 0);
    struct ff_weights ff = ff_of(s, FF, 0);
    post_norm(&norm, &ff, s->in[X], s->size['r'], s->size['D'], s->size['F'], out[0]);
}

static void run_pre(const sample *s, float *const *out) {
    struct norm_weights norm = norm_of(s, NORM, 0);
    struct ff_weights ff = ff_of(s, FF, 0);
    pre_norm(&norm, &ff, s->in[X], s->size['r'], s->size['D'], s->size['F'], out[0]);
}

static void weft_post(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    (void)s;
    (void)g;
    out[0] = wf_layer_norm(wf_add(in[X], record_ff(in[X], in)), WF_LAST_AXIS, in[NORM],
                           in[NORM + 1], EPS);
}

static void weft_pre(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    (void)s;
    (void)g;
    out[0] = wf_add(in[X],
                    record_ff(wf_layer_norm(in[X], WF_LAST_AXIS, in[NORM], in[NORM + 1], EPS), in));
}

typedef struct block {
    struct norm_weights norm;
    struct ff_weights ff;
    double *x, *a, *b; /* [rows, D] */
    int rows, D, F;
} block;

static void norm(const block *k, const double *x, double *y) {
    block_norm(&k->norm, x, k->rows, k->D, 0, y);
}

static void ff(const block *k, const double *x, double *y) {
    block_ff(&k->ff, x, k->rows, k->D, k->F, 0, y);
}

/* norm(x + f(x)), correct or with mistakes. */
static void post(const block *k, uint64_t m, double *y) {
    int n = k->rows * k->D;
    ff(k, k->x, k->a);
    for (int i = 0; i < n && HAS(m, NO_F); i++) k->a[i] = 0;
    if (HAS(m, NORM_OF_F)) norm(k, k->a, k->b);
    for (int i = 0; i < n; i++) {
        if (HAS(m, NORM_OF_F)) k->a[i] = k->b[i];
        if (!HAS(m, NO_RESIDUAL)) k->a[i] += HAS(m, TWICE) ? 2 * k->x[i] : k->x[i];
    }
    if (!HAS(m, NO_NORM) && !HAS(m, NORM_OF_F)) norm(k, k->a, y);
    for (int i = 0; i < n && (HAS(m, NO_NORM) || HAS(m, NORM_OF_F)); i++) y[i] = k->a[i];
}

/* x + f(norm(x)), correct or with mistakes. */
static void pre(const block *k, uint64_t m, double *y) {
    int n = k->rows * k->D;
    norm(k, k->x, k->a);
    for (int i = 0; i < n && HAS(m, NO_NORM); i++) k->a[i] = k->x[i];
    ff(k, HAS(m, NORM_OF_F) ? k->x : k->a, y);
    if (HAS(m, NORM_OF_F)) norm(k, y, k->b);
    for (int i = 0; i < n; i++) {
        if (HAS(m, NORM_OF_F)) y[i] = k->b[i];
        if (HAS(m, NO_F)) y[i] = k->a[i];
        double residual = HAS(m, NORMED_RESIDUAL) ? k->a[i] : k->x[i];
        if (!HAS(m, NO_RESIDUAL)) y[i] += HAS(m, TWICE) ? 2 * residual : residual;
    }
}

static void model_block(const sample *s, uint64_t m, bool is_post, double *y) {
    block k = { norm_of(s, NORM, 0), ff_of(s, FF, 0), NULL,        NULL, NULL,
                s->size['r'],        s->size['D'],    s->size['F'] };
    k.x = doubles_of(s->in[X], s->count[X]);
    if (HAS(m, BOTH)) is_post = false;
    k.a = room(s->count[X]);
    k.b = room(s->count[X]);
    if (is_post)
        post(&k, m, y);
    else
        pre(&k, m, y);
    if (HAS(m, BOTH)) {
        memcpy(k.a, y, (size_t)s->count[X] * sizeof *y);
        norm(&k, k.a, y);
    }
    free(k.x), free(k.a), free(k.b);
}

static void model_post(const sample *s, uint64_t m, double *const *out) {
    model_block(s, m, HAS(m, OTHER_ORDER) == 0, out[0]);
}

static void model_pre(const sample *s, uint64_t m, double *const *out) {
    model_block(s, m, HAS(m, OTHER_ORDER) == 1, out[0]);
}

#define BLOCK_ROWS                                                                                 \
    [NO_RESIDUAL] = { "residual missing",                                                          \
                      "x itself is not added. Without it a deep stack does not learn." },          \
    [NORM_OF_F] = { "norm of the feed-forward's result", "This is x + norm(feed_forward(x))." },   \
    [NO_NORM] = { "no norm", "layer_norm is not used." },                                          \
    [NO_F] = { "no feed-forward", "feed_forward is not used, or its result is lost." },            \
    [BOTH] = { "norm both before and after",                                                       \
               "This is norm(x + feed_forward(norm(x))). One norm is enough." },                   \
    [TWICE] = { "x is added twice", "The residual is one x." }

enum { V_X, V_1, V_2 };
static const recipe post_steps = {
    .in = { { "x", X, 'r' } },
    .inputs = 1,
    .steps = 3,
    .step = { { "the feed-forward", STEP_FF, V_X, 0, FF, 0, false },
              { "x + feed-forward", STEP_ADD, V_X, V_1, 0, 0, false },
              { "y (the norm)", STEP_NORM, V_2, 0, NORM, 0, false } },
};
static const recipe pre_steps = {
    .in = { { "x", X, 'r' } },
    .inputs = 1,
    .steps = 3,
    .step = { { "the norm", STEP_NORM, V_X, 0, NORM, 0, false },
              { "the feed-forward", STEP_FF, V_1, 0, FF, 0, false },
              { "y", STEP_ADD, V_X, V_2, 0, 0, false } },
};

static const lesson_task post_task = {
    .steps = &post_steps,
    .name = "post_norm",
    .formula = "y = norm(x + feed_forward(x))",
    .in = FF_IN,
    .out = { { "y", "rD", 0, 0 } },
    .cases = { "r3 D4 F8", "r4 D6 F9" },
    .learner = run_post,
    .weft = weft_post,
    .model = model_post,
    .mistakes = { [OTHER_ORDER] = { "norm before instead of after",
                                    "This is x + feed_forward(norm(x)), which is pre_norm." },
                  BLOCK_ROWS },
};

static const lesson_task pre_task = {
    .steps = &pre_steps,
    .name = "pre_norm",
    .formula = "y = x + feed_forward(norm(x))",
    .in = FF_IN,
    .out = { { "y", "rD", 0, 0 } },
    .cases = { "r3 D4 F8", "r4 D6 F9" },
    .learner = run_pre,
    .weft = weft_pre,
    .model = model_pre,
    .mistakes = { [OTHER_ORDER] = { "norm after instead of before",
                                    "This is norm(x + feed_forward(x)), which is post_norm." },
                  [NORMED_RESIDUAL] = { "the residual is normed, too",
                                        "This is norm(x) + "
                                        "feed_forward(norm(x)). The residual is x as it came." },
                  BLOCK_ROWS },
};

static const lesson_task *const tasks[] = { &norm_task, &ff_task, &post_task, &pre_task };
const lesson the_lesson = { tasks, sizeof tasks / sizeof *tasks, NULL, NULL };
