/* gan.c - a generator learns to put points on a ring, from a critic that learns to tell them from
 * real ones (Goodfellow et al. 2014; losses of squares as by Mao et al. 2017).
 *
 * Shows two optimizers in one graph. Each plan fetches the updates of one of them: the other
 * network is computed with, and stays as it is. */
#include <math.h>
#include <stdio.h>
#include <weft/weft.h>

enum { BATCH = 128, NOISE = 4, WIDTH = 48, STEPS = 4000, SECTORS = 8, PARAMS = 6 };

static const double pi = 3.14159265358979323846;

struct layers {
    struct wf_linear_layer first, second, last;
};

static struct layers layers_new(wf_graph *g, const char *name, int in, int out) {
    const char *outer = wf_scope_push(g, name);
    struct layers n;
    n.first = wf_linear_new(g, "first", in, WIDTH, true);
    n.second = wf_linear_new(g, "second", WIDTH, WIDTH, true);
    n.last = wf_linear_new(g, "last", WIDTH, out, true);
    wf_scope(g, outer);
    return n;
}

/* [B, in] -> [B, out]. Every use of a net is recorded, with the same weights. */
static wf_tensor *net(const struct layers *n, wf_tensor *x) {
    x = wf_silu(wf_linear(&n->first, x));
    x = wf_silu(wf_linear(&n->second, x));
    return wf_linear(&n->last, x);
}

/* The sum of (x - target)^2. */
static wf_tensor *distance(wf_tensor *x, double target) {
    return wf_square_sum(wf_affine(x, 1, -target));
}

/* A plan of one optimizer's step. */
static wf_plan *step_plan(wf_graph *g, const wf_optimizer *o, wf_tensor *noise, wf_tensor *real) {
    wf_tensor *feed[] = { o->rates, noise, real };
    wf_plan_options p = {
        .fetch = o->updates, .n_fetch = o->n, .feed = feed, .n_feed = real ? 3 : 2
    };
    return wf_plan_new(g, &p);
}

/* In [-1, 1): a linear congruential generator, with Knuth's constants (MMIX). */
static double uniform(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 4503599627370496.0 - 1;
}

/* How far the points are from the ring, on average; 2 unless each eighth of it has its points. */
static double badness(float made[BATCH][2]) {
    double off = 0;
    int seen[SECTORS + 1] = { 0 };
    for (int i = 0; i < BATCH; i++) {
        off += fabs(hypot(made[i][0], made[i][1]) - 1) / (double)BATCH;
        seen[(int)((atan2(made[i][1], made[i][0]) / pi + 1) / 2 * (double)SECTORS)]++;
    }
    for (int i = 0; i < SECTORS; i++)
        if (seen[i] < BATCH / SECTORS / 4) return 2;
    return off;
}

int main(void) {
    wf_graph *g = wf_graph_new(NULL);
    const int64_t ring[] = { BATCH, 2 }, source[] = { BATCH, NOISE };
    wf_tensor *real = wf_input(g, "real", WF_F32, 2, ring);
    wf_tensor *noise = wf_input(g, "noise", WF_F32, 2, source);
    struct layers generator = layers_new(g, "generator", NOISE, 2);
    struct layers critic = layers_new(g, "critic", 2, 1);
    wf_tensor *params[2 * PARAMS]; /* in the order in which they were made */
    wf_parameters(g, params, 2 * PARAMS);

    wf_tensor *made = net(&generator, noise), *judged = net(&critic, made);
    wf_tensor *g_loss = distance(judged, 1);
    wf_tensor *c_loss = wf_add(distance(net(&critic, real), 1), distance(judged, 0));
    wf_optimizer_options g_adam = wf_optimizer_defaults(WF_ADAM), c_adam;
    g_adam.beta1 = 0.5, c_adam = g_adam;
    g_adam.name = "generator_adam", c_adam.name = "critic_adam";
    wf_tensor *batch = wf_constant(g, BATCH);
    wf_optimizer go = wf_optimizer_new(g, g_loss, batch, params, PARAMS, &g_adam);
    wf_optimizer co = wf_optimizer_new(g, c_loss, batch, params + PARAMS, PARAMS, &c_adam);

    wf_plan *g_step = step_plan(g, &go, noise, NULL), *c_step = step_plan(g, &co, noise, real);
    wf_plan_options look = { .fetch = &made, .n_fetch = 1, .feed = &noise, .n_feed = 1 };
    wf_plan *draw = wf_plan_new(g, &look);

    static double points[2 * BATCH], z[BATCH * NOISE];
    static float out[BATCH][2];
    double off = 2, rates[3];
    uint64_t random = 1;
    bool ok = true;
    for (int step = 1; ok && step <= STEPS; step++) {
        for (int i = 0; i < BATCH; i++) {
            double angle = pi * uniform(&random);
            points[2 * i] = cos(angle), points[2 * i + 1] = sin(angle);
        }
        for (int i = 0; i < BATCH * NOISE; i++) z[i] = uniform(&random);
        wf_optimizer_rates(&g_adam, 0.003, step, rates);
        ok = wf_feed_reals(c_step, co.rates, rates, 3) &&
             wf_feed_reals(c_step, noise, z, BATCH * NOISE) &&
             wf_feed_reals(c_step, real, points, 2 * BATCH) && wf_run(c_step) &&
             wf_feed_reals(g_step, go.rates, rates, 3) &&
             wf_feed_reals(g_step, noise, z, BATCH * NOISE) && wf_run(g_step);
        if (step % 1000 || !ok) continue;
        ok = wf_feed_reals(draw, noise, z, BATCH * NOISE) && wf_run(draw) &&
             wf_fetch(draw, made, out, sizeof out);
        off = badness(out);
        printf("step %d: %.3f from the ring%s\n", step, off, off < 2 ? "" : " (gaps)");
    }
    if (!ok) fprintf(stderr, "%s%s%s\n", wf_error(g), wf_plan_error(g_step), wf_plan_error(c_step));
    wf_plan_free(g_step), wf_plan_free(c_step), wf_plan_free(draw);
    wf_optimizer_free(&go), wf_optimizer_free(&co), wf_graph_free(g);
    return !(ok && off < 0.1);
}
