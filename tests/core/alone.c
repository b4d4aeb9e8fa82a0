/* tests/core/alone.c - a program of core without ops/: core links with five ops that this file
 * defines, and computes a gradient with them.
 *
 * core names no ops but those of basis.h; the rest of it is the same for any set of ops. */
#include <stdio.h>

#include "core/basis.h"

/* The five ops compute in f64 on row-major data, each as one task. */
static double *data_of(const wf_view *v) {
    return v->data;
}

static bool shape_first(wf_call *c) {
    wf_set_shape(&c->out[0], c->in[0].dtype, c->in[0].ndim, c->in[0].shape);
    return true;
}

static bool shape_second(wf_call *c) {
    wf_set_shape(&c->out[0], c->in[0].dtype, c->in[1].ndim, c->in[1].shape);
    return true;
}

static int64_t one_task(const wf_call *c, int phase) {
    return (void)c, phase == 0;
}

#define EVAL(name, statement)                                                                      \
    static bool eval_##name(const wf_call *c, int phase, int64_t task, void *scratch) {            \
        (void)phase, (void)task, (void)scratch;                                                    \
        double *y = data_of(&c->out[0]);                                                           \
        for (int64_t i = 0, n = wf_view_count(&c->in[0]); i < n; i++) statement;                   \
        return true;                                                                               \
    }
EVAL(copy, y[i] = data_of(&c->in[0])[i])
EVAL(fill, y[i] = *(const double *)c->attrs)
EVAL(add, y[i] = data_of(&c->in[0])[i] + data_of(&c->in[1])[i])
EVAL(mul, y[i] = data_of(&c->in[0])[i] * data_of(&c->in[1])[i])
EVAL(sum, y[0] = (i ? y[0] : 0) + data_of(&c->in[0])[i]) /* to one number */

static const wf_op mul, sum_to;

static wf_tensor *two(const wf_op *op, wf_tensor *a, wf_tensor *b) {
    return wf_record(op, 2, (wf_tensor *[]){ a, b }, NULL);
}

static void grad_mul(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)need;
    dx[0] = two(&mul, dy[0], y->in[1]);
    dx[1] = two(&mul, dy[0], y->in[0]);
}

/* dy is always 1 in this program, so dx is a fill of ones. With another dy it would be broadcast to
 * the operand's shape. */
static void grad_sum(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)dy, (void)need;
    dx[0] = wf_record(wf_basis.fill, 1, &y->in[0], &(double){ 1 });
}

#define OP(id, of, n, rule, ...)                                                                   \
    static const wf_op id = { .name = #id,                                                         \
                              .arity = n,                                                          \
                              .shape = rule,                                                       \
                              .run = &(const wf_kernel){ .tasks = one_task, .eval = eval_##of },   \
                              __VA_ARGS__ };
OP(copy, copy, 1, shape_first, .no_grad = "nobody asks here")
OP(fill, fill, 1, shape_first, .no_grad = "it reads only a shape", .shape_only = 1,
   .attr_bytes = sizeof(double))
OP(add, add, 2, shape_first, .no_grad = "nobody asks here")
OP(mul, mul, 2, shape_first, .grad = grad_mul)
OP(sum_to, sum, 2, shape_second, .grad = grad_sum, .shape_only = 2)

static const wf_rule none = { .op = NULL };
const struct wf_basis wf_basis = {
    .copy = &copy, .add = &add, .fill = &fill, .sum_to = &sum_to, .rules = &none
};

int main(void) {
    wf_graph *g = wf_graph_new(&(wf_graph_options){ .real = WF_F64 });
    wf_tensor *x = wf_input(g, "x", WF_F64, 1, (int64_t[]){ 5 }), *dx;
    wf_tensor *loss = two(&sum_to, two(&mul, x, two(&mul, x, x)), wf_constant(g, 0)); /* sum x^3 */
    const double values[5] = { -2, -1, 0, 1, 3 };
    double slopes[5] = { 0 };
    bool ok = wf_grad(loss, &x, 1, &dx);
    wf_plan *p =
        wf_plan_new(g, &(wf_plan_options){ .fetch = &dx, .n_fetch = 1, .feed = &x, .n_feed = 1 });
    ok = ok && wf_feed(p, x, values, sizeof values) && wf_run(p) &&
         wf_fetch(p, dx, slopes, sizeof slopes);
    if (!ok) printf("alone: %s%s\n", wf_error(g), wf_plan_error(p));
    for (int i = 0; i < 5; i++) ok = ok && slopes[i] == 3 * values[i] * values[i];
    wf_plan_free(p), wf_graph_free(g);
    printf("alone: core and five ops %s the gradient of x^3\n", ok ? "give" : "do not give");
    return ok ? 0 : 1;
}
