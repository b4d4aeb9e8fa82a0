/* tests/ops/test_custom.c - ops that a program defines with custom.h: values, gradients, any
 * strides and broadcasts, any number of threads, mistakes. */
#include "core/op_internal.h"
#include "ops/base/shapes.h"
#include "tests/suites.h"
#include "tests/support/support.h"

#include "ops/custom.h"

TESTS(custom)

/* ---- softplus: log(1 + e^x), and its slope, the sigmoid -------------------------------------- */

WF_ELEMENTWISE(eval_own_softplus, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))

static void grad_own_softplus(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)need;
    dx[0] = wf_mul(dy[0], wf_sigmoid(y->in[0]));
}

static const wf_kernel run_own_softplus = { WF_ELEMENTWISE_RUN(eval_own_softplus) };
static const wf_op own_softplus = { .name = "own_softplus",
                                    .family = "elementwise",
                                    .arity = 1,
                                    .shape = wf_same_as_operands,
                                    .grad = grad_own_softplus,
                                    .run = &run_own_softplus };

static wf_tensor *softplus_of(wf_tensor *x) {
    return wf_record(&own_softplus, 1, &x, NULL);
}

/* ---- blend: x + w (y - x) of three operands, which broadcast; times a number ----------------- */

WF_ELEMENTWISE(eval_blend, *(const double *)attrs *(x + z * (y - x)))

/* The rule returns contributions of the result's shape: the engine sums them over the axes along
 * which an operand was broadcast. */
static void grad_blend(wf_tensor *t, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    wf_tensor *x = t->in[0], *y = t->in[1], *w = t->in[2];
    wf_tensor *d = wf_scale(dy[0], *(const double *)t->attrs);
    if (need & 1) dx[0] = wf_mul(d, wf_affine(w, -1, 1));
    if (need & 2) dx[1] = wf_mul(d, w);
    if (need & 4) dx[2] = wf_mul(d, wf_sub(y, x));
}

static const wf_kernel run_blend = { WF_ELEMENTWISE_RUN(eval_blend) };
static const wf_op blend = { .name = "blend",
                             .family = "elementwise",
                             .arity = 3,
                             .attr_bytes = sizeof(double),
                             .shape = wf_same_as_operands,
                             .grad = grad_blend,
                             .run = &run_blend };

static wf_tensor *blend_of(wf_tensor *x, wf_tensor *y, wf_tensor *w) {
    return wf_record(&blend, 3, (wf_tensor *[]){ x, y, w }, &(double){ 2 });
}

/* ---- running sums of rows, from the left or from the right ----------------------------------- */

typedef struct running {
    bool from_right;
} running;

static bool shape_running(wf_call *c) {
    return wf_want_axis(c, c->in[0].ndim - 1, c->in[0].ndim) && wf_same_as_operands(c);
}

static bool eval_running(const wf_call *c, int phase, int64_t task, void *scratch) {
    const running *a = c->attrs;
    int64_t rows, columns, from, to;
    (void)phase, (void)scratch;
    wf_view_rows(&c->in[0], &rows, &columns);
    wf_row_range(c, task, &from, &to);
    WF_REALS(
        c->in[0].dtype, for (int64_t row = from; row < to; row++) {
            const real *x = wf_at(&c->in[0], row * columns);
            real *y = wf_at(&c->out[0], row * columns), sum = 0;
            for (int64_t i = 0; i < columns; i++) {
                int64_t j = a->from_right ? columns - 1 - i : i;
                y[j] = sum += x[j];
            }
        });
    return true;
}

static const wf_op running_sum;

/* dx_i is the sum of dy_j over j >= i: the running sum from the other side. */
static void grad_running(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const running *a = y->attrs, other = { !a->from_right };
    (void)need;
    dx[0] = wf_record(&running_sum, 1, dy, &other);
}

static const wf_kernel run_running = { .tasks = wf_row_tasks, .eval = eval_running, .in_place = 1 };
static const wf_op running_sum = { .name = "running_sum",
                                   .family = "reduce",
                                   .arity = 1,
                                   .attr_bytes = sizeof(running),
                                   .shape = shape_running,
                                   .grad = grad_running,
                                   .run = &run_running };

static wf_tensor *running_of(wf_tensor *x) {
    return wf_record(&running_sum, 1, &x, &(running){ false });
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* A value of operands [7,columns] with strides and broadcasts. 9000 columns are enough for several
 * tasks. */
static wf_tensor *all_of(wf_graph *g, wf_tensor **x, wf_tensor **row, int64_t columns) {
    *x = wf_param(g, "x", SHAPE(columns, 7), wf_init_normal(2));
    *row = wf_param(g, "row", SHAPE(columns), wf_init_normal(1));
    wf_tensor *t = wf_transpose(*x, 0, 1); /* [7,columns], not row-major */
    wf_tensor *middle = wf_slice(t, 0, 2, 3);
    wf_tensor *y = blend_of(softplus_of(t), *row, softplus_of(middle));
    return wf_mul(running_of(y), wf_affine(running_of(t), 0.01, 0));
}

TEST(values_are_as_they_say) {
    for (wf_dtype real = WF_F32; real <= WF_F64; real++) {
        wf_graph *g = new_graph(real);
        wf_tensor *x = param_of(g, "x", SHAPE(2, 3), (double[]){ -1, 0, 1, 2, 400, -400 });
        wf_tensor *y[] = { softplus_of(x), running_of(x),
                           blend_of(x, wf_constant(g, 1), wf_slice(x, 1, 1, 2)) };
        values v[3];
        evaluate(y, 3, 1, false, v);
        const double expected[3][6] = {
            { log1p(exp(-1.)), log(2), 1 + log1p(exp(-1.)), 2 + log1p(exp(-2.)), 400, exp(-400.) },
            { -1, -1, 0, 2, 402, 2 },
            { -2, 0, 2, -796, -318800, 319998 + 1602 - 800 },
        };
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < 6; i++)
                ck_assert_double_eq_tol(v[k].data[i], expected[k][i], real ? 1e-13 : 1e-5);
        for (int i = 0; i < 6; i++) {
            double a[] = { -1, 0, 1, 2, 400, -400 }, w = i < 3 ? 0 : 400;
            ck_assert_double_eq_tol(v[2].data[i], 2 * (a[i] + w * (1 - a[i])), 1e-2);
        }
        free_values(v, 3), end_graph(g);
    }
}

TEST(gradients_of_both_orders_are_right) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x, *row, *y = all_of(g, &x, &row, 4), *wrt[] = { x, row }, *dx[2];
    wf_tensor *loss = wf_sum(wf_square(y), WF_ALL_AXES, false);
    ck_assert_double_lt(wf_check_gradients(g, loss, wrt, 2, NULL), 1e-8);
    ck_assert(wf_grad(loss, wrt, 2, dx));
    wf_tensor *second = wf_sum(wf_square(dx[0]), WF_ALL_AXES, false);
    second = wf_add(wf_scale(second, 1e-3), wf_sum(wf_sin(dx[1]), WF_ALL_AXES, false));
    ck_assert_double_lt(wf_check_gradients(g, second, wrt, 2, NULL), 1e-6);
    end_graph(g);
}

TEST(threads_change_no_bit) {
    for (wf_dtype real = WF_F32; real <= WF_F64; real++) {
        wf_graph *g = new_graph(real);
        wf_tensor *x, *row, *y = all_of(g, &x, &row, 9000), *wrt[] = { x, row }, *fetch[3] = { y };
        ck_assert(wf_grad(wf_sum(y, WF_ALL_AXES, false), wrt, 2, fetch + 1));
        values one[3], some[3];
        evaluate(fetch, 3, 1, false, one), evaluate(fetch, 3, 3, false, some);
        for (int i = 0; i < 3; i++) ck_assert(same_bits(one[i], some[i]));
        free_values(one, 3), free_values(some, 3), end_graph(g);
    }
}

/* ---- mistakes -------------------------------------------------------------------------------- */

static const wf_op four = {
    .name = "four", .arity = -1, .optional = 2, .shape = wf_same_as_operands, .run = &run_blend
};

TEST_ROWS(mistakes_have_a_sentence, 5) {
    wf_graph *g = wf_graph_new(NULL);
    wf_tensor *x = wf_param(g, "x", SHAPE(2, 3), wf_init_zeros());
    wf_tensor *ids = wf_input(g, "ids", WF_I32, SHAPE(2, 3)), *same[] = { x, x, x, x, NULL };
    static const char *const says[] = {
        "own_softplus: operand 0, [2,3], is i32 where f32 is needed",
        "blend: [2,3] and [3,2] do not broadcast: axis 1 from the right is 3 and 2",
        "running_sum: [] has no axis -1",
        "four: 4 operands, at most 3 element by element",
        "four: operand 1 is absent",
    };
    switch (_i) {
    case 0:
        softplus_of(ids);
        break;
    case 1:
        blend_of(x, wf_transpose(x, 0, 1), x);
        break;
    case 2:
        running_of(wf_constant(g, 1));
        break;
    case 3:
        wf_record(&four, 4, same, NULL);
        break;
    default:
        wf_record(&four, 2, same + 3, NULL);
    }
    ck_assert_str_eq(wf_error(g), says[_i]);
    wf_graph_free(g);
}
