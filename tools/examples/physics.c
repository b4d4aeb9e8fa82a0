/* physics.c - a physics-informed network: u'' = -sin x with u(0) = u(pi) = 0 is solved without
 * using any value of its solution, sin x.
 *
 * Shows gradients with respect to an input, and gradients of gradients: the loss contains the
 * second derivative of the network, and the optimizer differentiates it once more. */
#include <math.h>
#include <stdio.h>
#include <weft/weft.h>

enum { POINTS = 64, CHECKED = 1000, WIDTH = 24, STEPS = 4000 };

static const double pi = 3.14159265358979323846;

/* dy/dx, [N, 1]. Each row of y must depend only on the same row of x. */
static wf_tensor *derivative(wf_tensor *y, wf_tensor *x) {
    wf_tensor *dx = NULL;
    wf_grad(wf_sum(y, WF_ALL_AXES, false), &x, 1, &dx);
    return dx;
}

/* Feeds n equally spaced points in [0, pi]. */
static bool feed_points(wf_plan *p, const wf_tensor *x, int n, double *points) {
    for (int i = 0; i < n; i++) points[i] = pi * i / (n - 1);
    return wf_bind(p, "N", n) && wf_feed_reals(p, x, points, n);
}

int main(void) {
    const wf_graph_options real = { .real = WF_F64, .seed = 1 };
    wf_graph *g = wf_graph_new(&real);
    const int64_t N = wf_extent(g, "N", CHECKED), shape[] = { N, 1 };
    wf_tensor *x = wf_input(g, "x", WF_F64, 2, shape);

    /* u = x (pi - x) net(x) is 0 at both ends for any network. */
    struct wf_linear_layer first = wf_linear_new(g, "first", 1, WIDTH, true);
    struct wf_linear_layer second = wf_linear_new(g, "second", WIDTH, WIDTH, true);
    struct wf_linear_layer last = wf_linear_new(g, "last", WIDTH, 1, true);
    wf_tensor *net = wf_tanh(wf_linear(&second, wf_tanh(wf_linear(&first, x))));
    wf_tensor *ends = wf_mul(x, wf_affine(x, -1, pi)); /* x (pi - x) */
    wf_tensor *u = wf_mul(ends, wf_linear(&last, net));
    wf_tensor *d2u = derivative(derivative(u, x), x);
    wf_tensor *loss = wf_square_sum(wf_add(d2u, wf_sin(x)));

    const wf_trainer_options options = { .optimizer = wf_optimizer_defaults(WF_ADAM),
                                         .schedule = { WF_COSINE, 0.01, 0, STEPS, 0 } };
    wf_trainer *trainer = wf_trainer_new(g, loss, wf_constant(g, POINTS), &options);
    static double points[CHECKED], solution[CHECKED];
    bool ok = feed_points(wf_trainer_plan(trainer), x, POINTS, points);
    for (int step = 1; ok && step <= STEPS; step++) {
        wf_progress now;
        ok = wf_trainer_begin(trainer, 1, NULL, NULL) && wf_trainer_add(trainer, 0) &&
             wf_trainer_update(trainer, &now);
        if (ok && step % 800 == 0) printf("step %d: residual %.2e\n", step, sqrt(now.loss));
    }

    const wf_plan_options look = { .fetch = &u, .n_fetch = 1, .feed = &x, .n_feed = 1 };
    wf_plan *solve = wf_plan_new(g, &look);
    double error = 0;
    ok = ok && feed_points(solve, x, CHECKED, points) && wf_run(solve) &&
         wf_fetch(solve, u, solution, sizeof solution);
    for (int i = 0; ok && i < CHECKED; i++) error = fmax(error, fabs(solution[i] - sin(points[i])));
    if (ok)
        printf("largest error against sin x at %d points: %.1e\n", CHECKED, error);
    else
        fprintf(stderr, "%s %s\n", wf_trainer_error(trainer), wf_plan_error(solve));
    wf_plan_free(solve), wf_trainer_free(trainer), wf_graph_free(g);
    return !(ok && error < 1e-3);
}
