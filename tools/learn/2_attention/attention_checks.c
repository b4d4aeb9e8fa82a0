/* tools/learn/2_attention/attention_checks.c - checks exercise 2: its tasks and known mistakes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention_task.h"
#include "ops/ops.h"
#include "tools/learn/lesson.h"

/* ---- softmax --------------------------------------------------------------------------------- */

enum { X };
enum {
    COLUMNS,
    ALL_ROWS,
    RUNNING,
    NO_EXP,
    NO_MAX,
    BY_LARGEST,
    LOG,
    TWO,
    MOST_FROM_0,
    MOST_AFTER,
    BY_COUNT,
    NO_MAX_DOUBLE
};

static void run_softmax(const sample *s, float *const *out) {
    softmax(s->in[X], s->size['r'], s->size['c'], out[0]);
}

static void weft_softmax(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    (void)s;
    (void)g;
    out[0] = wf_softmax(in[X], -1);
}

/* A softmax over n numbers that are `step` apart. before: the largest number and the sum from the
 * row before, for the mistake of not starting anew. */
static void one_softmax(const float *x, int n, int step, uint64_t m, double before[2], double *y) {
    double most = HAS(m, MOST_FROM_0) ? 0 : -INFINITY, sum = 0, top = 0;
    if (HAS(m, RUNNING)) most = before[0];
    if (HAS(m, RUNNING)) sum = before[1];
    for (int j = 0; j < n; j++) most = fmax(most, x[j * step]);
    for (int j = 0; j < n; j++) {
        bool as_it_is = HAS(m, NO_MAX) || HAS(m, NO_MAX_DOUBLE);
        double t = as_it_is ? x[j * step] : x[j * step] - most;
        double e = HAS(m, TWO) ? exp2(t) : exp(t);
        /* A float has no exponential above exp(88.7), and below exp(-103.3) it is 0. */
        if (t > 88.7 && !HAS(m, NO_MAX_DOUBLE)) e = INFINITY;
        if (t < -103.3 && !HAS(m, NO_MAX_DOUBLE)) e = 0;
        if (HAS(m, NO_EXP)) e = x[j * step];
        if (HAS(m, MOST_AFTER)) e = x[j * step] > 88.7 ? INFINITY : exp(x[j * step]) - most;
        y[j * step] = e;
        sum = HAS(m, NO_MAX_DOUBLE) ? (float)(sum + e) : sum + e;
        top = fmax(top, e);
    }
    for (int j = 0; j < n; j++) {
        double divisor = HAS(m, BY_LARGEST) ? top : sum;
        y[j * step] /= HAS(m, BY_COUNT) ? n : divisor;
        if (HAS(m, LOG)) y[j * step] = log(y[j * step]);
    }
    before[0] = most;
    before[1] = sum;
}

static void model_softmax(const sample *s, uint64_t m, double *const *out) {
    int rows = s->size['r'], columns = s->size['c'];
    double before[] = { -INFINITY, 0 };
    if (HAS(m, ALL_ROWS)) {
        one_softmax(s->in[X], rows * columns, 1, m, before, out[0]);
        return;
    }
    for (int i = 0; i < rows && !HAS(m, COLUMNS); i++)
        one_softmax(s->in[X] + i * columns, columns, 1, m, before, out[0] + i * columns);
    for (int j = 0; j < columns && HAS(m, COLUMNS); j++)
        one_softmax(s->in[X] + j, rows, columns, m, before, out[0] + j);
}

static const lesson_task softmax_task = {
    .name = "softmax",
    .formula = "y[i][j] = exp(x[i][j]) / (the sum of exp(x[i][k]) over all k)",
    .in = { [X] = { "x", "rc", ARRAY_VALUES, 0 } },
    .out = { { "y", "rc", 0, 0 } },
    .cases = { "r3 c5", "r4 c2", "r2 c6 large", "r2 c3 low" },
    .learner = run_softmax,
    .weft = weft_softmax,
    .model = model_softmax,
    .mistakes = {
        [COLUMNS] = { "softmax over the wrong axis", "Columns sum to 1 here. Each row is a softmax "
                      "of its own: sum over the columns of one row." },
        [ALL_ROWS] = { "softmax over all rows together",
                       "The whole matrix sums to 1. Each row needs a sum of its own." },
        [RUNNING] = { "the sum is not set to 0 for every row", "Sum and largest number go on from "
                      "the rows before: set them inside the loop over rows." },
        [NO_EXP] = { "no exp", "The numbers are divided by their sum without exp: negative numbers "
                     "make negative weights." },
        [NO_MAX] = { "no largest number subtracted",
                     "exp of a large number is infinite, and infinity by infinity is no number. "
                     "Subtract the row's largest number first." },
        [NO_MAX_DOUBLE] = { "no largest number subtracted, and a sum in float", "exp gives a "
                            "double, but its sum in a float is infinite for large numbers, and 0 "
                            "for small ones. Subtract the row's largest number first." },
        [BY_LARGEST] = { "not divided by the sum", "The largest result of a row is 1 here. Divide "
                         "by the sum of the exponentials, so that a row sums to 1." },
        [BY_COUNT] = { "divided by the number of columns", "Divide by the sum of the exponentials, "
                       "so that a row sums to 1, and not by how many there are." },
        [LOG] = { "a logarithm too many",
                  "These are log-probabilities. A softmax is the exponentials themselves." },
        [MOST_AFTER] = { "the largest number is subtracted after exp",
                         "exp(x[j] - most), and not exp(x[j]) - most." },
        [MOST_FROM_0] = { "the search for the largest begins at 0", "A row may have negative "
                          "numbers alone: begin with its first number, or with -INFINITY. Else "
                          "every exponential of a row far below 0 is 0, and 0 / 0 is no number." },
        [TWO] = { "2 to the x", "exp2 is the power of two. A softmax takes exp, the power of e." },
    },
};

/* ---- the causal mask ------------------------------------------------------------------------- */

enum { UPPER, STRICT, INVERTED, ALL_ONES, ADDITIVE, ONE_LATER };

static void run_mask(const sample *s, float *const *out) {
    causal_mask(s->size['n'], out[0]);
}

static void weft_mask(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    int64_t shape[] = { s->size['n'], s->size['n'] };
    (void)in;
    out[0] = wf_tril(wf_ones(g, WF_F64, 2, shape), 0);
}

static void model_mask(const sample *s, uint64_t m, double *const *out) {
    int n = s->size['n'];
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            int from = HAS(m, UPPER) ? i : j, to = HAS(m, UPPER) ? j : i;
            bool may = HAS(m, STRICT) ? from < to : from <= to;
            if (HAS(m, ONE_LATER)) may = j <= i + 1;
            out[0][i * n + j] = HAS(m, ALL_ONES) || may != HAS(m, INVERTED);
            if (HAS(m, ADDITIVE)) out[0][i * n + j] = may ? 0 : -INFINITY;
        }
    }
}

static const lesson_task mask_task = {
    .name = "causal_mask",
    .formula = "mask[i][j] = 1 if j <= i, else 0",
    .out = { { "mask", "nn", 0, 0 } },
    .cases = { "n4", "n7" },
    .learner = run_mask,
    .weft = weft_mask,
    .model = model_mask,
    .mistakes = {
        [UPPER] = { "mask of the wrong triangle", "Each position looks at those after it: the 1s "
                    "stand above the diagonal. The key j may not be later than the query i." },
        [STRICT] = { "the diagonal is missing", "A position may look at itself, too: j <= i and "
                     "not j < i. Without it the first row may look nowhere." },
        [INVERTED] = { "mask inverted", "1 stands where a position may look, and 0 where it may "
                       "not. These are exchanged." },
        [ONE_LATER] = { "one later position is seen", "j <= i is the last one that i may look at. "
                        "With i + 1 the answer itself is read." },
        [ADDITIVE] = { "0 and -INFINITY in the mask", "Such a mask is added to scores elsewhere. "
                       "Here 1 means may look, and 0 may not." },
        [ALL_ONES] = { "nothing is masked", "Every position may look at every other one. The "
                       "future, j > i, must be 0." },
    },
};

/* ---- attention ------------------------------------------------------------------------------- */

enum { Q, K, V, MASK };
enum {
    NO_ROOT,
    BY_D,
    TIMES_ROOT,
    ROOT_OF_KEYS,
    SCALED_AFTER,
    AFTER_SOFTMAX,
    ZERO_SCORE,
    OTHER_WAY,
    NO_MASK,
    AXIS,
    K_COLUMNS,
    NOT_A_NUMBER,
    UNIFORM,
    ADDED,
    SCORES_OUT,
    V_COLUMNS,
    WEIGHTS_TURNED,
    ROOT_OF_VALUES,
    NOT_SQUARE_ROOT,
    SCORES_MIXED,
    V_OF_QUERY
};

static const float *mask_of(const sample *s) {
    return sample_has(s, "unmasked") ? NULL : s->in[MASK];
}

static void run_attention(const sample *s, float *const *out) {
    attention(s->in[Q], s->in[K], s->in[V], mask_of(s), s->size['T'], s->size['S'], s->size['d'],
              s->size['e'], out[0], out[1]);
}

static void weft_attention(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    (void)g;
    wf_tensor *mask = mask_of(s) ? in[MASK] : NULL, *one[3];
    for (int i = Q; i <= V; i++) one[i] = wf_unsqueeze(in[i], WF_AXIS(0)); /* [1, ...] */
    out[0] = wf_attention_weights(one[Q], one[K], mask, NULL);
    out[1] = wf_attention(one[Q], one[K], one[V], mask, NULL);
}

static double scale_of(const sample *s, uint64_t m) {
    double d = s->size['d'];
    if (HAS(m, NO_ROOT)) return 1;
    if (HAS(m, BY_D)) return 1 / d;
    if (HAS(m, TIMES_ROOT)) return sqrt(d);
    if (HAS(m, ROOT_OF_VALUES)) return 1 / sqrt(s->size['e']);
    if (HAS(m, NOT_SQUARE_ROOT)) return 1 / (d * d);
    if (HAS(m, ROOT_OF_KEYS)) return 1 / sqrt(s->size['S']);
    return HAS(m, SCALED_AFTER) ? 1 : 1 / sqrt(d);
}

static double masked_score(double score, float may, uint64_t m) {
    if (HAS(m, NO_MASK) || HAS(m, AFTER_SOFTMAX)) return score;
    if (HAS(m, ADDED)) return score + may;
    if ((may != 0) != HAS(m, OTHER_WAY)) return score;
    if (HAS(m, ZERO_SCORE)) return 0;
    return HAS(m, UNIFORM) ? -1e9 : -INFINITY;
}

static void scores_of(const sample *s, uint64_t m, double *score) {
    int T = s->size['T'], S = s->size['S'], d = s->size['d'];
    const float *q = s->in[Q], *k = s->in[K], *mask = mask_of(s);
    for (int i = 0; i < T; i++) {
        for (int j = 0; j < S; j++) {
            double sum = 0;
            for (int c = 0; c < d; c++)
                sum += (double)q[i * d + c] * k[HAS(m, K_COLUMNS) ? c * S + j : j * d + c];
            score[i * S + j] = sum * scale_of(s, m);
            if (mask) score[i * S + j] = masked_score(score[i * S + j], mask[i * S + j], m);
        }
    }
}

/* The softmax of n scores, in w. `step` is the stride of both arrays: 1 for a row, or the length of
 * a row for a column. */
static void normalise(const double *score, int n, int step, uint64_t m, double *w) {
    double most = -INFINITY, sum = 0;
    for (int j = 0; j < n; j++) most = fmax(most, score[j * step]);
    for (int j = 0; j < n; j++) sum += w[j * step] = exp(score[j * step] - most);
    for (int j = 0; j < n; j++) {
        w[j * step] /= sum;
        if (most == -INFINITY) w[j * step] = HAS(m, NOT_A_NUMBER) ? NAN : 0;
    }
}

static void weights_of(const sample *s, uint64_t m, double *w) {
    int T = s->size['T'], S = s->size['S'];
    double *score = malloc((size_t)(T * S) * sizeof *score);
    const float *mask = mask_of(s);
    if (!score) return;
    scores_of(s, m, score);
    for (int i = 0; i < T && !HAS(m, AXIS); i++) normalise(score + i * S, S, 1, m, w + i * S);
    for (int j = 0; j < S && HAS(m, AXIS); j++) normalise(score + j, T, S, m, w + j);
    for (int i = 0; i < T * S; i++) {
        if (HAS(m, AFTER_SOFTMAX) && mask && mask[i] == 0) w[i] = 0;
        if (HAS(m, SCALED_AFTER)) w[i] /= sqrt(s->size['d']);
        if (HAS(m, SCORES_OUT)) w[i] = score[i];
    }
    free(score);
}

/* Computes the mistake of mixing rows of v by the scores, and not by their softmax. */
static void mix_scores(const sample *s, double *out) {
    int T = s->size['T'], S = s->size['S'], e = s->size['e'];
    double *score = malloc((size_t)(T * S) * sizeof *score);
    if (!score) return;
    scores_of(s, 0, score);
    for (int i = 0; i < T * e; i++) {
        out[i] = 0;
        for (int j = 0; j < S; j++) out[i] += score[i / e * S + j] * s->in[V][j * e + i % e];
    }
    free(score);
}

/* One result with the mistake that v is read by the query's row i. Behind the last row of v there
 * may be any number. */
static double v_of_query(const sample *s, const double *w, int i, int c) {
    double sum = 0;
    if (i >= s->size['S']) return model_anything;
    for (int j = 0; j < s->size['S']; j++) sum += w[j];
    return sum * s->in[V][i * s->size['e'] + c];
}

static void model_attention(const sample *s, uint64_t m, double *const *out) {
    int T = s->size['T'], S = s->size['S'], e = s->size['e'];
    const float *v = s->in[V];
    double *w = out[0];
    weights_of(s, m, w);
    for (int i = 0; i < T; i++) {
        for (int c = 0; c < e; c++) {
            double sum = 0;
            for (int j = 0; j < S; j++) {
                double weight = HAS(m, WEIGHTS_TURNED) ? w[(j * T + i) % (T * S)] : w[i * S + j];
                sum += weight * v[HAS(m, V_COLUMNS) ? c * S + j : j * e + c];
            }
            if (HAS(m, V_OF_QUERY)) sum = v_of_query(s, w + i * S, i, c);
            out[1][i * e + c] = sum;
        }
    }
    if (HAS(m, SCORES_MIXED)) mix_scores(s, out[1]);
}

static const lesson_task attention_task = {
    .name = "attention",
    .formula = "weights = softmax(q k^T / sqrt(d)) where the mask allows it; out = weights v",
    .in = { [Q] = { "q", "Td", ARRAY_VALUES, 0 }, [K] = { "k", "Sd", ARRAY_VALUES, 0 },
            [V] = { "v", "Se", ARRAY_VALUES, 0 }, [MASK] = { "mask", "TS", ARRAY_CHOICES, 0 } },
    .out = { { "weights", "TS", 0, 0 }, { "out", "Te", 0, 0 } },
    .cases = { "T3 S5 d8 e4 unmasked", "T4 S4 d6 e6", "T5 S7 d4 e3", "T3 S6 d8 e8 empty" },
    .learner = run_attention,
    .weft = weft_attention,
    .model = model_attention,
    .mistakes = {
        [NO_ROOT] = { "no 1/sqrt(d)", "The scores are not divided by sqrt(d). A product of d terms "
                      "grows with sqrt(d), and the softmax would look at one key alone." },
        [BY_D] = { "1/d instead of 1/sqrt(d)", "The scores are divided by d, which makes them too "
                   "small: every key gets nearly the same weight. Divide by its root." },
        [TIMES_ROOT] = { "multiplied by sqrt(d)", "The scores are multiplied by sqrt(d). Divide." },
        [ROOT_OF_KEYS] = { "divided by the root of the number of keys", "sqrt(S) is in the place "
                           "of sqrt(d): d is the number of terms in each product." },
        [SCALED_AFTER] = { "scaled after the softmax", "The weights are divided by sqrt(d), and no "
                           "longer sum to 1. Divide the scores, before the softmax." },
        [AFTER_SOFTMAX] = { "mask after the softmax", "Masked keys still count in the sum, so a "
                            "row sums to less than 1. Mask the scores, before the softmax." },
        [ZERO_SCORE] = { "masked scores are 0", "A score of 0, or -1e-20, is a score like others: "
                         "exp of it is 1. A masked score is -INFINITY, whose exponential is 0." },
        [OTHER_WAY] = { "mask inverted",
                        "Scores are masked where the mask is 1. 1 means: may look." },
        [NO_MASK] = { "the mask is not used", "The results are those without a mask. Set the score "
                      "to -INFINITY where the mask is 0." },
        [AXIS] = { "softmax over the wrong axis", "Each key's weights sum to 1 over the queries. "
                   "Each query's must sum to 1 over the keys: along a row of the scores." },
        [K_COLUMNS] = { "k is read by columns", "Element c of key j is k[j * d + c]. Here it is "
                        "read as k[c * S + j], as if k were transposed in memory." },
        [NOT_A_NUMBER] = { "a row that may look nowhere is NaN",
                           "All its scores are -INFINITY, and -INFINITY minus -INFINITY is no "
                           "number. Such a row has weights of 0." },
        [UNIFORM] = { "a row that may look nowhere looks everywhere", "With a fill such as -1e9 a "
                      "row of nothing but masked keys gets equal weights. They must be 0." },
        [ADDED] = { "the mask is added",
                    "The mask is 1 and 0 here, and not 0 and -INFINITY: adding it masks nothing." },
        [SCORES_OUT] = { "no softmax",
                         "weights holds the scores. They must pass through softmax." },
        [SCORES_MIXED] = { "out is made of the scores", "The weights are right. out takes them: "
                           "weights[i * S + j] * v[j * e + c], and not the scores." },
        [ROOT_OF_VALUES] = { "divided by the root of the width of v", "sqrt(e) is in the place of "
                             "sqrt(d): d is the number of terms in each product." },
        [NOT_SQUARE_ROOT] = { "divided by the square of d",
                              "The scores are divided by d * d. Divide by the root of d." },
        [V_OF_QUERY] = { "v is read by the query's row", "The weight of key j belongs to the value "
                         "of key j: v[j * e + c], and not v[i * e + c]." },
        [V_COLUMNS] = { "v is read by columns", "Element c of value j is v[j * e + c]. Here it is "
                        "read as v[c * S + j], as if v were transposed in memory." },
        [WEIGHTS_TURNED] = { "weights are read transposed", "The weight of key j for query i is "
                             "weights[i * S + j]. Here it is read as weights[j * T + i]." },
    },
};

/* ---- the picture ----------------------------------------------------------------------------- */

/* Draws how twelve positions attend to each other by waves like those of exercise 1: near ones are
 * similar. */
static bool draw(picture *p) {
    enum { N = 12, WIDTH = 16 };
    float x[N * WIDTH], mask[N * N], out[N * WIDTH];
    *p = (picture){ .heads = 1, .rows = N, .columns = N };
    snprintf(p->title, sizeof p->title, "Your attention, causal, of positions with their waves");
    p->weights = calloc(N * N, sizeof *p->weights);
    if (!p->weights) return false;
    for (int i = 0; i < N; i++)
        for (int c = 0; c < WIDTH; c++) {
            double angle = i / pow(20, c / 2 * 2.0 / WIDTH);
            x[i * WIDTH + c] = (float)(1.2 * (c % 2 ? cos(angle) : sin(angle)));
        }
    causal_mask(N, mask);
    attention(x, x, x, mask, N, N, WIDTH, WIDTH, p->weights, out);
    return true;
}

static const lesson_task *const tasks[] = { &softmax_task, &mask_task, &attention_task };
const lesson the_lesson = { tasks, sizeof tasks / sizeof *tasks, NULL, draw };
