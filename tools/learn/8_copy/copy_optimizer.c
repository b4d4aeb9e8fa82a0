/* tools/learn/8_copy/copy_optimizer.c - two tasks of exercise 8: the learning rate, and Adam. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "copy_model.h"
#include "nn/optimizer.h"
#include "tools/learn/lesson_blocks.h"

/* ---- rate ------------------------------------------------------------------------------------ */

enum {
    FROM_0,
    NO_WARMUP,
    LARGER,
    NO_ROOT,
    STAYS,
    NO_PEAK,
    KEEPS_RISING,
    INTEGERS,
    ROOT_TURNED,
    NO_WARMUP_IN_ROOT
};

static void run_rate(const sample *s, float *const *out) {
    for (int i = 0; i < s->size['n']; i++) {
        float r = rate(1 + i * i, 0.02F, s->size['w']);
        if (!isnan(r)) out[0][i] = r;
    }
}

static void weft_rate(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    double rates[64];
    int64_t n = s->size['n'];
    wf_schedule schedule = { .kind = WF_NOAM, .peak = 0.02F, .warmup = s->size['w'] };
    (void)in;
    for (int i = 0; i < n; i++) rates[i] = wf_schedule_rate(&schedule, 1 + i * i);
    out[0] = wf_constant_array(g, WF_F64, 1, &n, rates);
}

static void model_rate(const sample *s, uint64_t m, double *const *out) {
    double w = s->size['w'];
    for (int i = 0; i < s->size['n']; i++) {
        double step = 1 + i * i - (HAS(m, FROM_0) ? 1 : 0);
        double rising = step / w, falling = HAS(m, NO_ROOT) ? w / step : sqrt(w / step);
        if (HAS(m, INTEGERS)) rising = floor(rising);
        if (HAS(m, ROOT_TURNED)) falling = sqrt(step / w);
        if (HAS(m, NO_WARMUP_IN_ROOT)) falling = 1 / sqrt(step);
        if (HAS(m, STAYS)) falling = 1;
        if (HAS(m, KEEPS_RISING)) falling = INFINITY;
        if (HAS(m, NO_WARMUP)) rising = INFINITY;
        out[0][i] = HAS(m, LARGER) ? fmax(rising, falling) : fmin(rising, falling);
        if (!HAS(m, NO_PEAK)) out[0][i] *= 0.02F;
    }
}

const lesson_task copy_rate_task = {
    .name = "rate",
    .formula = "rate = peak * the smaller of step / warmup and sqrt(warmup / step)",
    .out = { { "rate", "n", 0, 0 } },
    .cases = { "n9 w10", "n20 w100" },
    .learner = run_rate,
    .weft = weft_rate,
    .model = model_rate,
    .mistakes = {
        [FROM_0] = { "steps from 0", "Step 1 is the first: its rate is peak / warmup, and not 0." },
        [NO_WARMUP] = { "no warm-up", "The first steps must be small: step / warmup of the peak." },
        [LARGER] = { "the larger of both",
                     "Take the smaller: rising before `warmup`, falling behind it." },
        [NO_ROOT] = { "falls without a root", "It falls with the root: sqrt(warmup / step)." },
        [ROOT_TURNED] = { "the root of step / warmup",
                          "That rises. Behind `warmup` the rate falls with sqrt(warmup / step)." },
        [NO_WARMUP_IN_ROOT] = { "falls from 1 / sqrt(step)",
                                "At step `warmup` both are 1: it falls with sqrt(warmup / step)." },
        [STAYS] = { "it does not fall",
                    "Behind `warmup` the rate falls with sqrt(warmup / step)." },
        [NO_PEAK] = { "not times the peak", "The curve has its peak at 1. Multiply by peak." },
        [INTEGERS] = { "divided in integers", "step / warmup of integers is 0 in C until step is "
                       "warmup: make one of them a float." },
        [KEEPS_RISING] = { "it keeps rising", "Behind `warmup` the rate falls." },
    },
};

/* ---- adam ------------------------------------------------------------------------------------ */

enum { VALUE, MEAN, SQUARE, GRADIENT };
enum {
    UPHILL,
    NO_CORRECTION,
    NO_SQUARE_ROOT,
    NOT_SQUARED,
    BETAS_EXCHANGED,
    STEP_BEHIND,
    OTHER_BETA,
    OLD_MOMENTS,
    NO_MEAN,
    SIGNED,
    MEAN_KEPT,
    SQUARE_KEPT,
    DIVISORS_EXCHANGED,
    CORRECTION_TIMES,
    ONLY_MEAN_CORRECTED,
    ONLY_SQUARE_CORRECTED,
    FACTORS_EXCHANGED,
    BETAS_TIMES_STEP,
    BETA1_KEEPS_V,
    BETA1_TWICE,
    OUTSIDE_ROOT
};
static const double learning_rate = 0.01F;

static void run_adam(const sample *s, float *const *out) {
    size_t n = (size_t)s->size['n'], bytes = n * sizeof(float);
    float *own[3];
    bool ok = true, same = true;
    for (int k = 0; k < 3; k++) {
        own[k] = malloc(bytes);
        ok = ok && own[k];
        if (ok) memcpy(own[k], s->in[VALUE + k], bytes);
    }
    if (ok)
        adam(own[0], own[1], own[2], s->in[GRADIENT], (int)n, (float)learning_rate, s->size['t']);
    for (int k = 0; ok && k < 3; k++) same = same && memcmp(own[k], s->in[VALUE + k], bytes) == 0;
    for (int k = 0; k < 3; k++) {
        if (ok && !same) memcpy(out[k], own[k], bytes);
        free(own[k]);
    }
}

/* A constant with the present value of a leaf. */
static wf_tensor *value_of_leaf(wf_graph *g, wf_tensor *leaf) {
    double *values = room(wf_count(leaf));
    if (!wf_read(leaf, values, wf_bytes(leaf))) wf_poison(g, "a leaf can't be read");
    wf_tensor *c = wf_constant_array(g, WF_F64, leaf->ndim, leaf->shape, values);
    free(values);
    return c;
}

static void weft_adam(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    wf_adam_options o = { .beta1 = beta1, .beta2 = beta2, .eps = eps };
    static const char *const names[] = { "x", "m", "v" };
    int64_t n = s->size['n'], three = 3;
    int t = s->size['t'];
    double rates[] = { learning_rate, 1 / (1 - pow(beta1, t)), 1 / (1 - pow(beta2, t)) };
    wf_tensor *leaf[3];
    for (int k = 0; k < 3; k++) {
        leaf[k] = wf_param(g, names[k], 1, &n, wf_init_zeros());
        leaf_write(leaf[k], s->in[VALUE + k]);
    }
    wf_tensor *update = wf_adam_step(leaf[0], leaf[1], leaf[2], in[GRADIENT], wf_constant(g, 1),
                                     wf_constant_array(g, WF_F64, 1, &three, rates), &o);
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = &update, .n_fetch = 1 });
    if (!wf_run(p)) wf_poison(g, "%s", wf_plan_error(p));
    wf_plan_free(p);
    for (int k = 0; k < 3; k++) out[k] = value_of_leaf(g, leaf[k]);
}

static void model_adam(const sample *s, uint64_t m, double *const *out) {
    double b1 = HAS(m, BETAS_EXCHANGED) ? beta2 : beta1,
           b2 = HAS(m, BETAS_EXCHANGED) ? beta1 : beta2;
    double t = s->size['t'] - (HAS(m, STEP_BEHIND) ? 1 : 0);
    bool plain = HAS(m, NO_CORRECTION);
    if (HAS(m, OTHER_BETA)) b2 = 0.999;
    for (int i = 0; i < s->size['n']; i++) {
        double gradient = s->in[GRADIENT][i];
        double second = HAS(m, NOT_SQUARED) ? fabs(gradient) : gradient * gradient;
        if (HAS(m, SIGNED)) second = gradient;
        double kept1 = HAS(m, FACTORS_EXCHANGED) ? 1 - b1 : b1;
        double kept2 = HAS(m, FACTORS_EXCHANGED) ? 1 - b2 : b2;
        if (HAS(m, BETA1_KEEPS_V) || HAS(m, BETA1_TWICE)) kept2 = b1;
        double mean = kept1 * s->in[MEAN][i] + (1 - kept1) * gradient;
        double square = kept2 * s->in[SQUARE][i] + (1 - kept2) * second;
        out[1][i] = mean;
        out[2][i] = square;
        if (HAS(m, OLD_MOMENTS)) mean = s->in[MEAN][i];
        if (HAS(m, OLD_MOMENTS)) square = s->in[SQUARE][i];
        if (HAS(m, NO_MEAN)) mean = gradient;
        double less1 = 1 - pow(b1, t), less2 = 1 - pow(b2, t);
        if (HAS(m, BETA1_TWICE)) less2 = less1;
        if (HAS(m, DIVISORS_EXCHANGED)) less1 = 1 - pow(b2, t);
        if (HAS(m, DIVISORS_EXCHANGED)) less2 = 1 - pow(b1, t);
        if (HAS(m, BETAS_TIMES_STEP)) less1 = 1 - b1 * t;
        if (HAS(m, BETAS_TIMES_STEP)) less2 = 1 - b2 * t;
        if (HAS(m, CORRECTION_TIMES)) less1 = 1 / less1;
        if (HAS(m, CORRECTION_TIMES)) less2 = 1 / less2;
        if (HAS(m, NO_MEAN) || plain || HAS(m, ONLY_SQUARE_CORRECTED)) less1 = 1;
        if (plain || HAS(m, ONLY_MEAN_CORRECTED)) less2 = 1;
        mean /= less1;
        square /= less2;
        if (HAS(m, MEAN_KEPT)) out[1][i] = mean;
        if (HAS(m, SQUARE_KEPT)) out[2][i] = square;
        double divisor = HAS(m, NO_SQUARE_ROOT) ? square + eps : sqrt(square) + eps;
        if (HAS(m, OUTSIDE_ROOT)) divisor = sqrt(out[2][i]) / less2 + eps;
        double move = learning_rate * mean / divisor;
        out[0][i] = s->in[VALUE][i] + (HAS(m, UPHILL) ? move : -move);
    }
}

const lesson_task copy_adam_task = {
    .name = "adam",
    .formula = "m = 0.9 m + 0.1 grad; v = 0.98 v + 0.02 grad^2; x -= rate * (m / (1 - 0.9^step)) / "
               "(sqrt(v / (1 - 0.98^step)) + eps)",
    .in = { [VALUE] = { "x", "n", ARRAY_VALUES, 0 }, [MEAN] = { "m", "n", ARRAY_VALUES, 0 },
            [SQUARE] = { "v", "n", ARRAY_NEAR_1, 0 },
            [GRADIENT] = { "grad", "n", ARRAY_VALUES, 0 } },
    .out = { { "x", "n", 0, 0 }, { "m", "n", 0, 0 }, { "v", "n", 0, 0 } },
    .cases = { "n6 t3", "n4 t2", "n5 t50" },
    .learner = run_adam,
    .weft = weft_adam,
    .model = model_adam,
    .mistakes = {
        [UPHILL] = { "the wrong sign", "x moves against its gradient: -=." },
        [NO_CORRECTION] = { "no bias correction", "m and v begin at 0 and are too small at first: "
                            "divide by 1 - beta^step." },
        [NO_SQUARE_ROOT] = { "no root of v", "The divisor is sqrt(v) + eps." },
        [NOT_SQUARED] = { "the gradient is not squared", "v follows the square of the gradient." },
        [BETAS_EXCHANGED] = { "beta1 and beta2 exchanged", "0.9 is of m, 0.98 of v." },
        [STEP_BEHIND] = { "steps from 0", "Step 1 is the first: beta^step." },
        [OTHER_BETA] = { "0.999 in the place of 0.98", "beta2 is 0.98 here, as in the paper." },
        [OLD_MOMENTS] = { "m and v of the step before",
                          "x moves by m and v after they have moved." },
        [SIGNED] = { "the gradient is not squared, with its sign",
                     "v follows the square of the gradient: grad[i] * grad[i]." },
        [MEAN_KEPT] = { "the corrected m is kept", "m / (1 - 0.9^step) is for this step's move "
                        "alone: m itself is kept as it is." },
        [SQUARE_KEPT] = { "the corrected v is kept", "v / (1 - 0.98^step) is for this step's move "
                          "alone: v itself is kept as it is." },
        [DIVISORS_EXCHANGED] = { "the two corrections exchanged",
                                 "m is divided by 1 - 0.9^step, v by 1 - 0.98^step." },
        [CORRECTION_TIMES] = { "multiplied by the correction", "m and v are too small at first: "
                               "divide by 1 - beta^step, which makes them larger." },
        [ONLY_MEAN_CORRECTED] = { "no correction of v",
                                  "v begins at 0, too: divide it by 1 - 0.98^step." },
        [ONLY_SQUARE_CORRECTED] = { "no correction of m",
                                    "m begins at 0, too: divide it by 1 - 0.9^step." },
        [FACTORS_EXCHANGED] = { "beta and 1 - beta exchanged", "The larger factor is that of what "
                                "is there: 0.9 * m + 0.1 * grad." },
        [BETA1_KEEPS_V] = { "0.9 in the mean of squares",
                            "v = 0.98 * v + 0.02 * grad * grad: it moves slower than m." },
        [BETA1_TWICE] = { "0.9 in the place of 0.98", "beta2, of v and its correction, is 0.98." },
        [OUTSIDE_ROOT] = { "the correction of v outside the root",
                           "The root is taken of the corrected v: sqrt(v / (1 - 0.98^step)), and "
                           "not sqrt(v) / (1 - 0.98^step)." },
        [BETAS_TIMES_STEP] = { "beta times the step", "It is a power: pow(0.9, step)." },
        [NO_MEAN] = { "the gradient in the place of m",
                      "x moves by the mean m, which smooths the gradient." },
    },
};
