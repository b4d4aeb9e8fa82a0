/* ops/init.c - initial values of parameters and buffers.
 *
 * Element e is a pure function of (key, e): the same in any order, with any number of threads and
 * any instruction set. Values are computed in double and rounded once, so that an f32 model starts
 * from the rounded values of the f64 model. A program defines its own initialiser as a wf_init with
 * its own fill. */
#include <math.h>
#include <string.h>

#include "core/base/random.h"
#include "ops/base/op.h"

typedef struct target { /* where n elements of a type go */
    wf_view view;
    int64_t n;
} target;

static target target_of(wf_dtype dtype, int ndim, const int64_t *shape, void *data) {
    target t = { .view = { .data = data, .dtype = dtype }, .n = 1 };
    for (int i = 0; i < ndim; i++)
        t.n *= shape[i]; /* the engine has checked that this does not overflow */
    return t;
}

/* Clamped to the range of i32, if that is the type. */
static double storable(wf_dtype dtype, double value) {
    return dtype == WF_I32 ? fmax(INT32_MIN, fmin(INT32_MAX, value)) : value;
}

static void store(const target *t, int64_t e, int64_t n, const double *value) {
    float *narrow = t->view.data;
    if (t->view.dtype == WF_F32)
        for (int64_t i = 0; i < n; i++) narrow[e + i] = (float)value[i];
    else
        for (int64_t i = 0; i < n; i++) wf_put(&t->view, e + i, storable(t->view.dtype, value[i]));
}

static void fill_constant(const wf_init *init, uint64_t key, wf_dtype dtype, int ndim,
                          const int64_t *shape, void *data) {
    target t = target_of(dtype, ndim, shape, data);
    (void)key;
    wf_put_all(&t.view, 0, t.n, storable(dtype, init->a));
}

/* wf_unit_double of the two halves of a word: uniform in [0, 1). */
static double unit(uint64_t words) {
    return (double)(int64_t)(words >> 11) * 0x1.0p-53;
}

static void fill_uniform(const wf_init *init, uint64_t key, wf_dtype dtype, int ndim,
                         const int64_t *shape, void *data) {
    target t = target_of(dtype, ndim, shape, data);
    uint64_t u[WF_DRAWN], unused[WF_DRAWN];
    double value[WF_DRAWN];
    /* The interval excludes the bound, but rounding to f32 could reach it. */
    double last = dtype == WF_F32 ? nextafterf((float)init->a, 0) : nextafter(init->a, 0);
    for (int64_t e = 0; e < t.n; e += WF_DRAWN) {
        wf_f64()->draw(key, (uint64_t)e, u, unused);
        for (int i = 0; i < WF_DRAWN; i++) {
            double x = init->a * (2 * unit(u[i]) - 1);
            value[i] = x < last ? x : last;
        }
        store(&t, e, t.n - e < WF_DRAWN ? t.n - e : WF_DRAWN, value);
    }
}

/* Box and Muller (1958): sqrt(-2 ln u) cos(2 pi v) is normal for independent u and v; u > 0. */
static const double two_pi = 6.283185307179586;

static double normal(double std, uint64_t u, uint64_t v) {
    return std * sqrt(-2 * log(1 - unit(u))) * cos(two_pi * unit(v));
}

/* For f32 the kernels' log and cos are used. They differ from libm's, and between instruction sets,
 * by a relative error below UNSURE. Where that could change the rounded value, libm is used
 * instead. */
#define UNSURE 1e-13

static void normal_block(double std, const uint64_t *u, const uint64_t *v, double *value) {
    double radius[WF_DRAWN], angle[WF_DRAWN];
    for (int i = 0; i < WF_DRAWN; i++) radius[i] = 1 - unit(u[i]), angle[i] = two_pi * unit(v[i]);
    wf_f64()->unary[WF_UNARY_log](WF_DRAWN, radius, radius);
    wf_f64()->unary[WF_UNARY_cos](WF_DRAWN, angle, angle);
    for (int i = 0; i < WF_DRAWN; i++) {
        value[i] = std * sqrt(-2 * radius[i]) * angle[i];
        if ((float)(value[i] * (1 - UNSURE)) != (float)(value[i] * (1 + UNSURE)))
            value[i] = normal(std, u[i], v[i]);
    }
}

static void fill_normal(const wf_init *init, uint64_t key, wf_dtype dtype, int ndim,
                        const int64_t *shape, void *data) {
    target t = target_of(dtype, ndim, shape, data);
    uint64_t u[WF_DRAWN], v[WF_DRAWN];
    double value[WF_DRAWN];
    for (int64_t e = 0; e < t.n; e += WF_DRAWN) {
        int64_t n = t.n - e < WF_DRAWN ? t.n - e : WF_DRAWN;
        wf_f64()->draw(key, (uint64_t)e, u, v);
        if (dtype == WF_F32)
            normal_block(init->a, u, v, value);
        else
            for (int64_t i = 0; i < n; i++) value[i] = normal(init->a, u[i], v[i]);
        store(&t, e, n, value);
    }
}

wf_init wf_init_zeros(void) {
    return (wf_init){ .fill = fill_constant };
}
wf_init wf_init_constant(double value) {
    return (wf_init){ .fill = fill_constant, .a = value };
}
wf_init wf_init_uniform(double bound) {
    return (wf_init){ .fill = fill_uniform, .a = bound };
}
wf_init wf_init_normal(double std) {
    return (wf_init){ .fill = fill_normal, .a = std };
}
