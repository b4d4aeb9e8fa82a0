/* ops/elementwise/binary.c - elementwise ops of two operands, with broadcasting. Each op is a row
 * of binary.inc: its value becomes a loop in kernels/, and expressions in the row record its
 * gradients. */
#include "integer.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "two.h"

/* Checks that both operands are real, or both i32. */
static bool want_one_type(wf_call *c) {
    const wf_view *a = &c->in[0], *b = &c->in[1];
    if (a->dtype == b->dtype) return true;
    return wf_fail(c, "%s is %s and %s is %s: nothing is converted, wf_cast does it", wf_show(c, a),
                   wf_dtype_name(a->dtype), wf_show(c, b), wf_dtype_name(b->dtype));
}

/* The shape rule: operands may be real, or i32 if the op has a row in integer.inc. */
static bool shape_binary(wf_call *c, enum wf_binary f) {
    if (!want_one_type(c) || !wf_broadcast_shapes(c, &c->in[0], &c->in[1], &c->out[0]))
        return false;
    c->out[0].dtype = c->in[0].dtype;
    return c->in[0].dtype != WF_I32 || wf_takes_integers(f) ||
           wf_fail(c, "%s is i32, which it does not take: wf_cast first%s", wf_show(c, &c->in[0]),
                   f == WF_BINARY_div ? ", or wf_floor_divide for whole quotients" : "");
}

static bool run_binary(const wf_call *c, enum wf_binary f, int64_t task) {
    wf_runs r;
    if (c->out[0].dtype == WF_I32) return wf_run_integers(c, f, task);
    for (wf_runs_start(&r, c, task, true); wf_runs_next(&r);)
        WF_KERNEL(c->out[0].dtype, binary[f](r.n, r.in[0], r.step[0], r.in[1], r.step[1], r.out));
    return true;
}

/* ---- derivatives that are too long for a row ------------------------------------------------- */

/* The gradient b a^(b - 1); 0 where b is 0, because a^(b - 1) may be infinite there. */
static wf_tensor *pow_by_base(wf_tensor *a, wf_tensor *b, wf_tensor *dy) {
    return wf_where(b, wf_mul(dy, wf_mul(b, wf_pow(a, wf_affine(b, 1, -1)))), wf_zero(b));
}

/* The gradient a^b log a; 0 where a is 0 and b is not negative: 0^b is 0 for every b above 0, and
 * for b of 0 this is PyTorch's convention. */
static wf_tensor *pow_by_exponent(wf_tensor *a, wf_tensor *b, wf_tensor *y, wf_tensor *dy) {
    wf_tensor *zero = wf_zero(a);
    wf_tensor *stays = wf_mul(wf_equal(a, zero), wf_greater_equal(b, zero));
    return wf_where(stays, zero, wf_mul(dy, wf_mul(y, wf_log(a))));
}

/* a^2 + b^2. For the angle t of the point (b, a), dt/da = b / (a^2 + b^2), dt/db = -a / (a^2 +
 * b^2). It is 1 at the origin, so that the gradient is 0 there, as in PyTorch. */
static wf_tensor *square_of(wf_tensor *a, wf_tensor *b) {
    wf_tensor *square_of_b = wf_square(b);
    wf_tensor *square = wf_add(wf_square(a), square_of_b);
    return wf_where(square, square, wf_constant(a->graph, 1));
}

/* The gradient log b; 0 where a is 0 and b is not positive, because log b does not exist there. */
static wf_tensor *xlogy_by_factor(wf_tensor *a, wf_tensor *b, wf_tensor *dy) {
    wf_tensor *zero = wf_zero(a);
    wf_tensor *none = wf_mul(wf_equal(a, zero), wf_less_equal(b, zero));
    return wf_where(none, zero, wf_mul(dy, wf_log(b)));
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* ...: the members of wf_op that hold the formula and the gradient. */
#define ROW(NAME, VALUE, ...)                                                                      \
    static bool shape_##NAME(wf_call *c) {                                                         \
        return shape_binary(c, WF_BINARY_##NAME);                                                  \
    }                                                                                              \
    static bool eval_##NAME(const wf_call *c, int phase, int64_t task, void *scratch) {            \
        (void)phase, (void)scratch;                                                                \
        return run_binary(c, WF_BINARY_##NAME, task);                                              \
    }                                                                                              \
    static bool emit_##NAME(wf_emitter *e, const wf_call *c) {                                     \
        return wf_emit_binary(e, c, WF_BINARY_##NAME, VALUE);                                      \
    }                                                                                              \
    ELEMENTWISE_OF_TWO(NAME, shape_##NAME, __VA_ARGS__)
/* Shapes: a and b of one type; they broadcast -> y of their common shape. All but div, pow,
 * atan2, logaddexp and xlogy take i32, too.
 * Gradient: y_i depends on a_i and b_i alone: da_i = dy_i df/da and db_i = dy_i df/db, each
 * summed to the shape of its operand. The derivative of a step is 0 wherever it exists.
 * Limits: Reals and i32 do not mix: wf_cast. A NaN gives NaN.
 * Limits of add sub mul: Of i32 the result wraps around.
 * Limits of div: A division by 0 gives an infinity, 0 / 0 NaN.
 * Limits of maximum minimum: On a tie a has the gradient.
 * Limits of pow: 1 for b = 0 or a = 1, even if the other is a NaN. NaN where a is below 0 and b is
 * no integer. The gradient is 0 to a where b = 0, and to b where a = 0 and b >= 0.
 * Limits of atan2: The gradient at (0, 0) is 0.
 * Limits of fmod remainder floor_divide: A division of i32 by 0 fails the run; of reals it gives
 * NaN or an infinity. */
#define BINARY(NAME, text, value, da, db)                                                          \
    static void grad_##NAME(wf_tensor *y, wf_tensor *const *cotangent, wf_tensor **dx,             \
                            uint32_t need) {                                                       \
        wf_tensor *a = y->in[0], *b = y->in[1], *dy = cotangent[0];                                \
        (void)a, (void)b;                                                                          \
        if (need & 1) dx[0] = da;                                                                  \
        if (need & 2) dx[1] = db;                                                                  \
    }                                                                                              \
    ROW(NAME, #value, .formula = #NAME "(a, b): " text, .grad = grad_##NAME)
#define STEP(NAME, text, value)                                                                    \
    ROW(NAME, #value, .formula = #NAME "(a, b): " text, .no_grad = "it is piecewise constant",     \
        .detaches = true)
#define COMPARE(name, value)
#include "binary.inc"
#undef ROW

/* ---- comparisons: 1 or 0, of reals or i32 ---------------------------------------------------- */

static bool shape_compare(wf_call *c) {
    if (!want_one_type(c) || !wf_broadcast_shapes(c, &c->in[0], &c->in[1], &c->out[0]))
        return false;
    c->out[0].dtype = wf_real(c->graph);
    return true;
}

/* Convert n i32 numbers to doubles, which represent them exactly. */
static void widen(int64_t n, const int32_t *x, int64_t step, double *y) {
    for (int64_t i = 0; i < n; i++) y[i] = x[i * step];
}

static bool compare_ids(const wf_call *c, enum wf_binary f, int64_t task) {
    wf_view out = { .dtype = c->out[0].dtype };
    double a[WF_GATHERED], b[WF_GATHERED];
    wf_runs r;
    for (wf_runs_start(&r, c, task, true); wf_runs_next(&r);) {
        out.data = r.out;
        for (int64_t from = 0, n; from < r.n; from += n) {
            n = r.n - from < WF_GATHERED ? r.n - from : WF_GATHERED;
            widen(n, (const int32_t *)r.in[0] + from * r.step[0], r.step[0], a);
            widen(n, (const int32_t *)r.in[1] + from * r.step[1], r.step[1], b);
            wf_f64()->binary[f](n, a, 1, b, 1, a);
            for (int64_t i = 0; i < n; i++) wf_put(&out, from + i, a[i]);
        }
    }
    return true;
}

static bool run_compare(const wf_call *c, enum wf_binary f, int64_t task) {
    return c->in[0].dtype == WF_I32 ? compare_ids(c, f, task) : run_binary(c, f, task);
}

#define BINARY(name, text, value, da, db)
/* Shapes: a and b of one type, real or i32; they broadcast -> 1 or 0, real, of their common
 * shape.
 * Limits: A comparison with a NaN is 0, but not_equal, which is 1. As a truth value a NaN is
 * true. */
#define COMPARE(NAME, value)                                                                       \
    static bool eval_##NAME(const wf_call *c, int phase, int64_t task, void *scratch) {            \
        (void)phase, (void)scratch;                                                                \
        return run_compare(c, WF_BINARY_##NAME, task);                                             \
    }                                                                                              \
    static bool emit_##NAME(wf_emitter *e, const wf_call *c) {                                     \
        return wf_emit_choice(e, c, "(" #value ") ? 1.0f : 0.0f");                                 \
    }                                                                                              \
    ELEMENTWISE_OF_TWO(NAME, shape_compare, .formula = #NAME "(a, b): 1 if " #value ", else 0",    \
                       .no_grad = "a comparison is piecewise constant")
#include "binary.inc"
