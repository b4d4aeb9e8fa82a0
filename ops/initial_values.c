/* ops/initial_values.c - initial values of parameters and buffers.
 *
 * Element e is a pure function of (key, e): the same in any order, with any number of threads and
 * any instruction set. Values are computed in double and rounded once, so that an f32 model starts
 * from the rounded values of the f64 model. A program defines its own initialiser as a wf_init with
 * its own fill. */
#include <math.h>
#include <string.h>

#include "ops/base/draw.h"
#include "ops/base/op_base.h"

typedef struct target { /* where n elements of a type are written */
    wf_view view;
    int64_t n;
} target;

static target target_of(wf_dtype dtype, int ndim, const int64_t *shape, void *data) {
    target t = { .view = { .data = data, .dtype = dtype }, .n = 1 };
    for (int i = 0; i < ndim; i++) t.n *= shape[i]; /* cannot overflow: checked by the engine */
    return t;
}

/* The value, limited to the range of i32 if that is the type. */
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

static void fill_uniform(const wf_init *init, uint64_t key, wf_dtype dtype, int ndim,
                         const int64_t *shape, void *data) {
    target t = target_of(dtype, ndim, shape, data);
    double value[WF_DRAWN];
    /* The interval excludes the bound, but rounding to f32 could reach it. */
    double last = dtype == WF_F32 ? nextafterf((float)init->a, 0) : nextafter(init->a, 0);
    for (int64_t e = 0; e < t.n; e += WF_DRAWN) {
        wf_draw_uniform(key, 0, (uint64_t)e, value);
        for (int i = 0; i < WF_DRAWN; i++) {
            double x = init->a * (2 * value[i] - 1);
            value[i] = x < last ? x : last;
        }
        store(&t, e, t.n - e < WF_DRAWN ? t.n - e : WF_DRAWN, value);
    }
}

static void fill_normal(const wf_init *init, uint64_t key, wf_dtype dtype, int ndim,
                        const int64_t *shape, void *data) {
    target t = target_of(dtype, ndim, shape, data);
    double value[WF_DRAWN];
    for (int64_t e = 0; e < t.n; e += WF_DRAWN) {
        wf_draw_normal(init->a, key, 0, (uint64_t)e, value);
        store(&t, e, t.n - e < WF_DRAWN ? t.n - e : WF_DRAWN, value);
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
