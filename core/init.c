/* core/init.c - initial values of parameters and buffers.
 *
 * Element e is a pure function of (key, e): the same in any order, at any number of threads. All is
 * computed in double and rounded once, so that an f32 model starts from the rounded values of the f64
 * one. A program's own initialiser is a wf_init with its own fill. */
#include "graph.h"
#include "random.h"

#include <math.h>

static int64_t count(int ndim, const int64_t *shape) { /* the engine has checked the product */
    int64_t n = 1;
    for (int i = 0; i < ndim; i++) n *= shape[i];
    return n;
}

static void store(void *data, wf_dtype dtype, int64_t e, double value) {
    switch (dtype) {
    case WF_F32: ((float *)data)[e] = (float)value; break;
    case WF_F64: ((double *)data)[e] = value; break;
    case WF_I32: ((int32_t *)data)[e] = (int32_t)fmax(INT32_MIN, fmin(INT32_MAX, value)); break;
    }
}

static void fill_constant(const wf_init *init, uint64_t key, wf_dtype dtype, int ndim,
                          const int64_t *shape, void *data) {
    (void)key;
    for (int64_t e = 0, n = count(ndim, shape); e < n; e++) store(data, dtype, e, init->a);
}

static void fill_uniform(const wf_init *init, uint64_t key, wf_dtype dtype, int ndim,
                         const int64_t *shape, void *data) {
    /* Rounding to f32 can reach the bound, which the interval leaves out. */
    double last = dtype == WF_F32 ? nextafterf((float)init->a, 0) : nextafter(init->a, 0);
    for (int64_t e = 0, n = count(ndim, shape); e < n; e++) {
        wf_philox r = wf_philox4x32(key, (uint64_t)e, 0);
        double value = init->a * (2 * wf_unit_double(r.v[0], r.v[1]) - 1);
        store(data, dtype, e, fmin(value, last));
    }
}

/* Box and Muller (1958): sqrt(-2 ln u) cos(2 pi v) is normal for independent u and v; u > 0. */
static void fill_normal(const wf_init *init, uint64_t key, wf_dtype dtype, int ndim,
                        const int64_t *shape, void *data) {
    const double two_pi = 6.283185307179586;
    for (int64_t e = 0, n = count(ndim, shape); e < n; e++) {
        wf_philox r = wf_philox4x32(key, (uint64_t)e, 0);
        double u = 1 - wf_unit_double(r.v[0], r.v[1]), v = wf_unit_double(r.v[2], r.v[3]);
        store(data, dtype, e, init->a * sqrt(-2 * log(u)) * cos(two_pi * v));
    }
}

wf_init wf_init_zeros(void) { return (wf_init){ .fill = fill_constant }; }
wf_init wf_init_constant(double value) { return (wf_init){ .fill = fill_constant, .a = value }; }
wf_init wf_init_uniform(double bound) { return (wf_init){ .fill = fill_uniform, .a = bound }; }
wf_init wf_init_normal(double std) { return (wf_init){ .fill = fill_normal, .a = std }; }
