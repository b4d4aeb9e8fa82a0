/* gan.c - a generator learns to put points on a ring, by a critic that learns to distinguish them
 * from real ones (Goodfellow et al. 2014, with the least-squares losses of Mao et al. 2017).
 *
 * Shows two optimizers in one graph. Each trains the parameters of one network; the other network
 * takes part in the computation, and does not change. The graph also draws the noise and the real
 * points. */
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

/* [B, in] -> [B, out]. Each call records the network once more, with the same weights. */
static wf_tensor *net(const struct layers *n, wf_tensor *x) {
    x = wf_silu(wf_linear(&n->first, x));
    x = wf_silu(wf_linear(&n->second, x));
    return wf_linear(&n->last, x);
}

/* The sum of (x - target)^2. */
static wf_tensor *distance(wf_tensor *x, double target) {
    return wf_square_sum(wf_affine(x, 1, -target));
}

/* [BATCH, n] random numbers in [0, 1), new ones each time the plan runs. */
static wf_tensor *noise(wf_graph *g, const char *site, int n) {
    const int64_t shape[] = { BATCH, n };
    return wf_rand(wf_zeros(g, WF_F32, 2, shape), site);
}

static wf_trainer *trainer_new(wf_graph *g, const char *name, wf_tensor *loss, wf_tensor **params) {
    wf_trainer_options o = { .optimizer = wf_optimizer_defaults(WF_ADAM),
                             .schedule = { .kind = WF_CONSTANT_RATE, .peak = 0.003 } };
    o.optimizer.name = name;
    o.optimizer.beta1 = 0.5;
    o.params = params;
    o.n_params = PARAMS;
    return wf_trainer_new(g, loss, wf_constant(g, BATCH), &o);
}

/* The mean distance of the points from the ring; 2 if one of its sectors has less than a quarter of
 * the points that an even spread gives it. */
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

static bool update(wf_trainer *t) {
    return wf_trainer_begin(t, 1, NULL, NULL) && wf_trainer_add(t, 0) && wf_trainer_update(t, NULL);
}

int main(void) {
    wf_graph *g = wf_graph_new(NULL);
    struct layers generator = layers_new(g, "generator", NOISE, 2);
    struct layers critic = layers_new(g, "critic", 2, 1);
    wf_tensor *params[2 * PARAMS]; /* parameters in the order in which they were made */
    wf_parameters(g, NULL, params, 2 * PARAMS);

    wf_tensor *angle = wf_scale(noise(g, "angle", 1), 2 * pi);
    wf_tensor *point[] = { wf_cos(angle), wf_sin(angle) }, *real = wf_concat(point, 2, 1);
    wf_tensor *made = net(&generator, wf_affine(noise(g, "noise", NOISE), 2, -1));
    wf_tensor *told = net(&critic, made), *known = net(&critic, real);
    wf_trainer *g_trainer = trainer_new(g, "generator_adam", distance(told, 1), params);
    wf_trainer *c_trainer = trainer_new(
        g, "critic_adam", wf_add(distance(known, 1), distance(told, 0)), params + PARAMS);

    const wf_plan_options look = { .fetch = &made, .n_fetch = 1 };
    wf_plan *draw = wf_plan_new(g, &look);
    float points[BATCH][2];
    double off = 2;
    bool ok = true;
    for (int step = 1; ok && step <= STEPS; step++) {
        ok = update(c_trainer) && update(g_trainer);
        if (step % 1000 || !ok) continue;
        ok = wf_run(draw) && wf_fetch(draw, made, points, sizeof points);
        off = badness(points);
        printf("step %d: %.3f from the ring%s\n", step, off, off < 2 ? "" : " (gaps)");
    }
    if (!ok) fprintf(stderr, "%s %s\n", wf_trainer_error(g_trainer), wf_trainer_error(c_trainer));
    wf_plan_free(draw), wf_trainer_free(g_trainer), wf_trainer_free(c_trainer), wf_graph_free(g);
    return !(ok && off < 0.1);
}
