/* ops/elementwise/unary.c - elementwise ops of one operand. Each op is a row of unary.inc: its
 * value becomes a loop in kernels/, and the expression in the row records its gradient. affine,
 * clamp and leaky_relu, which have attributes, follow below. */
#include "unary.h"

#include <stdio.h>

#include "core/compose.h"
#include "integer.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"

/* ---- second derivatives of the activations --------------------------------------------------- */

/* gelu = x P(x), P the normal distribution and p its density: gelu' = P + x p, and p' = -x p, so
 * gelu'' = p + p - x^2 p = (2 - x^2) p. */
static wf_tensor *gelu_curvature(wf_tensor *x) {
    wf_tensor *square = wf_square(x);
    wf_tensor *density =
        wf_scale(wf_exp(wf_scale(square, -0.5)), 0.3989422804014327); /* 1 / sqrt(2 pi) */
    return wf_mul(wf_affine(square, -1, 2), density);
}

/* y = x/2 (1 + t), t = tanh u, u = s (x + a x^3), t' = (1 - t^2) u':  y' = (1 + t)/2 + x/2 t', and
 * y'' = t' + x/2 t'' = (1 - t^2) (u' + x/2 (u'' - 2 t u'^2)). */
static wf_tensor *gelu_tanh_curvature(wf_tensor *x) {
    const double s = 0.7978845608028654, a = 0.044715; /* s = sqrt(2 / pi) */
    wf_tensor *square = wf_square(x);
    wf_tensor *t = wf_tanh(wf_mul(x, wf_affine(square, s * a, s)));
    wf_tensor *u1 = wf_affine(square, 3 * s * a, s), *u2 = wf_scale(x, 6 * s * a);
    wf_tensor *bend = wf_sub(u2, wf_scale(wf_mul(t, wf_square(u1)), 2));
    wf_tensor *sum = wf_add(u1, wf_mul(wf_scale(x, 0.5), bend));
    return wf_mul(wf_affine(wf_square(t), -1, 1), sum);
}

/* silu = x s, s the sigmoid, s' = s (1 - s): silu' = s + x s', and s'' = s' (1 - 2 s), so
 * silu'' = 2 s' + x s'' = s' (2 + x (1 - 2 s)). */
static wf_tensor *silu_curvature(wf_tensor *x) {
    wf_tensor *s = wf_sigmoid(x);
    wf_tensor *slope = wf_mul(s, wf_affine(s, -1, 1));
    return wf_mul(slope, wf_affine(wf_mul(x, wf_affine(s, -2, 1)), 1, 2));
}

/* ---- derivatives that are too long for a row ------------------------------------------------- */

/* 1 where low < x < high, else 0. The gradients of hardsigmoid, relu6 and clamp are 0 at the ends,
 * as in PyTorch 2.15; older versions give 1 for clamp. */
static wf_tensor *between(wf_tensor *x, double low, double high) {
    return wf_mul(wf_greater(x, wf_constant(x->graph, low)),
                  wf_less(x, wf_constant(x->graph, high)));
}

/* mish = x t with t = tanh(softplus(x)). The derivative of softplus is the sigmoid s, so
 * mish' = t + x s (1 - t^2). */
static wf_tensor *mish_slope(wf_tensor *x) {
    wf_tensor *t = wf_tanh(wf_softplus(x));
    wf_tensor *bend = wf_mul(wf_sigmoid(x), wf_affine(wf_square(t), -1, 1));
    return wf_add(t, wf_mul(x, bend));
}

/* ---- the ops of unary.inc -------------------------------------------------------------------- */

/* The shape rule: the operand may be real, or i32 if the op has a row in integer.inc. */
static bool shape_unary(wf_call *c, enum wf_unary f) {
    if (c->in[0].dtype != WF_I32 || !wf_takes_integer(f)) return wf_same_as_operand(c);
    wf_set_shape(&c->out[0], WF_I32, c->in[0].ndim, c->in[0].shape);
    return true;
}

static bool run_unary(const wf_call *c, enum wf_unary f, int64_t task) {
    wf_runs r;
    if (c->in[0].dtype == WF_I32) return wf_run_integer(c, f, task);
    for (wf_runs_start(&r, c, task, false); wf_runs_next(&r);)
        WF_KERNEL(c->out[0].dtype, unary[f](r.n, r.in[0], r.out));
    return true;
}

#define ELEMENTWISE(name)                                                                          \
    &(const wf_kernel) {                                                                           \
        .tasks = wf_elementwise_tasks, .eval = eval_##name, .strided = 1, .in_place = 1,           \
        .emit = emit_##name                                                                        \
    }

/* ...: the members of wf_op that hold the formula and the gradient. */
#define ROW(NAME, VALUE, ...)                                                                      \
    static bool shape_##NAME(wf_call *c) {                                                         \
        return shape_unary(c, WF_UNARY_##NAME);                                                    \
    }                                                                                              \
    static bool eval_##NAME(const wf_call *c, int phase, int64_t task, void *scratch) {            \
        (void)phase, (void)scratch;                                                                \
        return run_unary(c, WF_UNARY_##NAME, task);                                                \
    }                                                                                              \
    static bool emit_##NAME(wf_emitter *e, const wf_call *c) {                                     \
        return wf_emit_unary(e, c, WF_UNARY_##NAME, VALUE);                                        \
    }                                                                                              \
    const wf_op wf_op_##NAME = {                                                                   \
        .name = #NAME,                                                                             \
        .family = "elementwise",                                                                   \
        .arity = 1,                                                                                \
        .shape = shape_##NAME,                                                                     \
        __VA_ARGS__,                                                                               \
        .run = ELEMENTWISE(NAME),                                                                  \
    };                                                                                             \
    wf_tensor *wf_##NAME(wf_tensor *x) {                                                           \
        return wf_record(&wf_op_##NAME, 1, &x, NULL);                                              \
    }
/* Shapes: x real, of any shape -> y as x; neg, abs, square and sign take i32, too.
 * Gradient: y_i depends on x_i alone, so dx_i = dy_i f'(x_i), with the derivative f' written in x
 * or, where that is shorter, in y. The derivative of a step is 0 wherever it exists.
 * Limits: A NaN gives NaN. The bits are the same on every instruction set.
 * Limits of sqrt: NaN below 0; the gradient at 0 is an infinity.
 * Limits of rsqrt reciprocal: An infinity at 0; rsqrt is NaN below 0.
 * Limits of log log2 log10: NaN below 0, -infinity at 0.
 * Limits of log1p: NaN below -1, -infinity at -1.
 * Limits of asin acos atanh: NaN outside of [-1, 1]; the gradient at the ends is an infinity.
 * Limits of acosh: NaN below 1; the gradient at 1 is an infinity.
 * Limits of exp exp2 expm1 sinh cosh: In f32 an infinity where the result is above 3.4e38: exp
 * from 88.73 on.
 * Limits of tan: Large at odd multiples of pi/2, which no float is.
 * Limits of relu relu6 hardsigmoid abs: The gradient is 0 at a kink.
 * Limits of sign: 0 for a NaN.
 * Limits of neg abs square: Of i32 the result wraps around. */
#define UNARY(NAME, text, value, derivative)                                                       \
    static void grad_##NAME(wf_tensor *y, wf_tensor *const *cotangent, wf_tensor **dx,             \
                            uint32_t need) {                                                       \
        wf_tensor *x = y->in[0], *dy = cotangent[0];                                               \
        (void)x, (void)need;                                                                       \
        dx[0] = derivative;                                                                        \
    }                                                                                              \
    ROW(NAME, #value, .formula = #NAME "(x): " text, .grad = grad_##NAME)
#define STEP(NAME, text, value)                                                                    \
    ROW(NAME, #value, .formula = #NAME "(x): " text, .no_grad = "it is piecewise constant",        \
        .detaches = true)
#include "unary.inc"
#undef ROW

/* ---- ops with attributes --------------------------------------------------------------------- */

/* ...: the function of the kernel table that computes a run r, from the attributes *a. */
#define EVAL(name, attributes, ...)                                                                \
    static bool eval_##name(const wf_call *c, int phase, int64_t task, void *scratch) {            \
        const attributes *a = c->attrs;                                                            \
        wf_runs r;                                                                                 \
        (void)phase, (void)scratch;                                                                \
        for (wf_runs_start(&r, c, task, false); wf_runs_next(&r);)                                 \
            WF_KERNEL(c->out[0].dtype, __VA_ARGS__);                                               \
        return true;                                                                               \
    }

/* ---- affine: y = scale x + shift ------------------------------------------------------------- */

typedef struct affine {
    double scale, shift;
} affine;

EVAL(affine, affine, affine(r.n, r.in[0], a->scale, a->shift, r.out))

static bool emit_affine(wf_emitter *e, const wf_call *c) {
    const affine *a = c->attrs;
    char value[128], scale[WF_CONSTANT_TEXT], shift[WF_CONSTANT_TEXT];
    snprintf(value, sizeof value, "multiply_add(%s, x, %s)", wf_c_constant(a->scale, true, scale),
             wf_c_constant(a->shift, true, shift));
    return wf_emit_elements(e, c, value);
}

/* dy/dx = scale. */
static void grad_affine(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const affine *a = y->attrs;
    (void)need;
    dx[0] = wf_scale(dy[0], a->scale);
}

/* Shapes: x real, of any shape -> y as x.
 * Limits: scale and shift are constants of the graph: for tensors use mul and add. */
const wf_op wf_op_affine = {
    .name = "affine",
    .family = "elementwise",
    .formula = "affine(x): scale x + shift",
    .arity = 1,
    .attr_bytes = sizeof(affine),
    .attributes = "double scale, double shift",
    .shape = wf_same_as_operand,
    .grad = grad_affine,
    .run = ELEMENTWISE(affine),
};

wf_tensor *wf_affine(wf_tensor *x, double scale, double shift) {
    return wf_record(&wf_op_affine, 1, &x, &(affine){ scale, shift });
}

/* The shift is -0, because adding 0 would turn -0 into 0. */
wf_tensor *wf_scale(wf_tensor *x, double scale) {
    WF_COMPOSE("scale", x);
    return wf_composed(wf_affine(x, scale, -0.0));
}

/* ---- clamp: y = min(max(x, low), high) ------------------------------------------------------- */

typedef struct clamp {
    double low, high;
} clamp;

static bool shape_clamp(wf_call *c) {
    const clamp *a = c->attrs;
    if (!(a->low <= a->high)) return wf_fail(c, "low %g is not below high %g", a->low, a->high);
    return wf_same_as_operand(c);
}

EVAL(clamp, clamp, clamp(r.n, r.in[0], a->low, a->high, r.out))

static bool emit_clamp(wf_emitter *e, const wf_call *c) {
    const clamp *a = c->attrs;
    char value[128], low[WF_CONSTANT_TEXT], high[WF_CONSTANT_TEXT];
    snprintf(value, sizeof value, "min_of(max_of(x, %s), %s)", wf_c_constant(a->low, true, low),
             wf_c_constant(a->high, true, high));
    return wf_emit_elements(e, c, value);
}

/* The derivative is 1 between the bounds. It is 0 at the bounds and outside, where y is
 * constant. */
static void grad_clamp(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const clamp *a = y->attrs;
    (void)need;
    dx[0] = wf_mul(dy[0], between(y->in[0], a->low, a->high));
}

/* Shapes: x real, of any shape -> y as x.
 * Limits: low <= high, or the graph fails. A NaN stays NaN. An infinite bound is none. */
const wf_op wf_op_clamp = {
    .name = "clamp",
    .family = "elementwise",
    .formula = "clamp(x): min(max(x, low), high)",
    .arity = 1,
    .attr_bytes = sizeof(clamp),
    .attributes = "double low, double high",
    .shape = shape_clamp,
    .grad = grad_clamp,
    .run = ELEMENTWISE(clamp),
};

wf_tensor *wf_clamp(wf_tensor *x, double low, double high) {
    return wf_record(&wf_op_clamp, 1, &x, &(clamp){ low, high });
}

/* ---- leaky_relu: y = x > 0 ? x : slope x ----------------------------------------------------- */

typedef struct leak {
    double slope;
} leak;

EVAL(leaky_relu, leak, leaky_relu(r.n, r.in[0], a->slope, r.out))

static bool emit_leaky_relu(wf_emitter *e, const wf_call *c) {
    const leak *a = c->attrs;
    char value[96], slope[WF_CONSTANT_TEXT];
    snprintf(value, sizeof value, "x > 0.0f ? x : %s * x", wf_c_constant(a->slope, true, slope));
    return wf_emit_elements(e, c, value);
}

/* The condition is relu(x), which is nonzero where x > 0. It has no gradient, so the second
 * derivative is zero. At 0 the gradient is that of the left side. */
static void grad_leaky_relu(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const leak *a = y->attrs;
    (void)need;
    dx[0] = wf_where(wf_relu(y->in[0]), dy[0], wf_scale(dy[0], a->slope));
}

/* Shapes: x real, of any shape -> y as x.
 * Limits: Any slope is allowed. Above 1, y is the smaller of x and slope x, not the larger. */
const wf_op wf_op_leaky_relu = {
    .name = "leaky_relu",
    .family = "elementwise",
    .formula = "leaky_relu(x): x if x > 0, else slope x",
    .arity = 1,
    .attr_bytes = sizeof(leak),
    .attributes = "double slope",
    .shape = wf_same_as_operand,
    .grad = grad_leaky_relu,
    .run = ELEMENTWISE(leaky_relu),
};

wf_tensor *wf_leaky_relu(wf_tensor *x, double slope) {
    return wf_record(&wf_op_leaky_relu, 1, &x, &(leak){ slope });
}
