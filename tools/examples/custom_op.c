/* custom_op.c - a program's own op: snake, y = x + sin(a x)^2 / a, an activation that can learn
 * periodic functions (Ziyin et al. 2020). weft has no such op.
 *
 * Shows all that an op needs: an expression for its elements, a rule for its gradient, a
 * constructor. Types, strides, broadcasting, threads, pictures, gradients of gradients and messages
 * then work without further code. */
#include <math.h>
#include <stdio.h>
#include <weft/weft.h>

enum { POINTS = 128, WIDTH = 24, STEPS = 2000 };

/* ---- the op ---------------------------------------------------------------------------------- */

struct numbers {
    double a;
};
#define A ((real)((const struct numbers *)attrs)->a)
WF_ELEMENTWISE(eval_snake, x + sin(A * x) * sin(A * x) / A)

/* dy/dx = 1 + 2 sin(a x) cos(a x) = 1 + sin(2 a x), recorded with ops, so it has a gradient,
 * too. */
static void grad_snake(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const struct numbers *attrs = (const struct numbers *)y->attrs;
    (void)need; /* there is only one operand, so it is always needed */
    dx[0] = wf_mul(dy[0], wf_affine(wf_sin(wf_scale(y->in[0], 2 * attrs->a)), 1, 1));
}

static const wf_kernel run_snake = { WF_ELEMENTWISE_RUN(eval_snake) };
static const wf_op op_snake = {
    .name = "snake",
    .family = "elementwise",
    .arity = 1,
    .attr_bytes = sizeof(struct numbers),
    .shape = wf_same_as_operands,
    .grad = grad_snake,
    .run = &run_snake,
};

static wf_tensor *snake(wf_tensor *x, double a) {
    const struct numbers attrs = { a };
    return wf_record(&op_snake, 1, &x, &attrs);
}

/* ---- is it right ----------------------------------------------------------------------------- */

/* The largest error of its gradient, or of the gradient's gradient, against finite differences. */
static double gradient_error(bool second) {
    const wf_graph_options real = { .real = WF_F64, .seed = 1 };
    wf_graph *g = wf_graph_new(&real);
    const int64_t shape[] = { 5, 7 };
    wf_tensor *x = wf_param(g, "x", 2, shape, wf_init_normal(1)), *dx = NULL;
    wf_tensor *loss = wf_square_sum(snake(wf_transpose(x, 0, 1), 1.5));
    if (second) {
        wf_grad(loss, &x, 1, &dx);
        loss = wf_square_sum(dx);
    }
    double error = wf_check_gradients(g, loss, &x, 1, NULL);
    wf_graph_free(g);
    return error;
}

/* ---- what it is good for --------------------------------------------------------------------- */

/* Trains a network on x + sin(3 x) between -3 and 3, and returns its error between 3 and 4. */
static double error_outside(wf_tensor *(*activation)(wf_tensor *x, double a)) {
    wf_graph *g = wf_graph_new(NULL);
    const int64_t shape[] = { POINTS, 1 };
    wf_tensor *x = wf_input(g, "x", WF_F32, 2, shape);
    struct wf_linear_layer hidden = wf_linear_new(g, "hidden", 1, WIDTH, true);
    struct wf_linear_layer output = wf_linear_new(g, "output", WIDTH, 1, true);
    wf_tensor *y = wf_linear(&output, activation(wf_linear(&hidden, x), 3));
    wf_tensor *loss = wf_square_sum(wf_sub(y, wf_add(x, wf_sin(wf_scale(x, 3)))));
    const wf_trainer_options options = { .optimizer = wf_optimizer_defaults(WF_ADAM),
                                         .schedule = { WF_CONSTANT_RATE, 0.01, 0, 0, 0 } };
    const wf_plan_options look = { .fetch = &loss, .n_fetch = 1, .feed = &x, .n_feed = 1 };
    wf_trainer *trainer = wf_trainer_new(g, loss, wf_constant(g, POINTS), &options);
    wf_plan *test = wf_plan_new(g, &look);
    double inside[POINTS], outside[POINTS];
    float sum = INFINITY;
    for (int i = 0; i < POINTS; i++) {
        inside[i] = -3 + 6.0 * i / (double)POINTS;
        outside[i] = 3 + 1.0 * i / (double)POINTS;
    }
    bool ok = wf_feed_reals(wf_trainer_plan(trainer), x, inside, POINTS);
    for (int step = 1; ok && step <= STEPS; step++)
        ok = wf_trainer_begin(trainer, 1, NULL, NULL) && wf_trainer_add(trainer, 0) &&
             wf_trainer_update(trainer, NULL);
    ok = ok && wf_feed_reals(test, x, outside, POINTS) && wf_run(test) &&
         wf_fetch(test, loss, &sum, sizeof sum);
    if (!ok) fprintf(stderr, "%s %s\n", wf_trainer_error(trainer), wf_plan_error(test));
    wf_plan_free(test), wf_trainer_free(trainer), wf_graph_free(g);
    return sqrt((double)sum / (double)POINTS);
}

static wf_tensor *plain_tanh(wf_tensor *x, double a) {
    (void)a;
    return wf_tanh(x);
}

int main(void) {
    double first = gradient_error(false), second = gradient_error(true);
    double with_snake = error_outside(snake), with_tanh = error_outside(plain_tanh);
    printf("errors of its gradients: first order %.1e, second %.1e\n", first, second);
    printf("beyond what was learned: %.2f off with snake, %.2f with tanh\n", with_snake, with_tanh);
    return !(first < 1e-8 && second < 1e-7 && with_snake < with_tanh / 4);
}
