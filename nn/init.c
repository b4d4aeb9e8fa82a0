/* nn/init.c - initial values that depend on what a matrix is for. The distributions are in
 * ops/init.c.
 *
 * fan_in and fan_out are those of one projection: a packed [3D, D] matrix of three projections
 * has fans D and D. Counting 3D would start it sqrt(2) too small. */
#include "nn.h"

#include <math.h>

/* Glorot and Bengio (2010), eq. 16: variance 2 / (fan_in + fan_out) keeps signals and gradients
 * even. */
wf_init wf_init_xavier_uniform(int64_t fan_in, int64_t fan_out) {
    return wf_init_uniform(sqrt(6 / ((double)fan_in + (double)fan_out)));
}

wf_init wf_init_xavier_normal(int64_t fan_in, int64_t fan_out) {
    return wf_init_normal(sqrt(2 / ((double)fan_in + (double)fan_out)));
}

/* He et al. (2015), eq. 10: relu halves the variance, so weights start with twice 1 / fan_in. */
wf_init wf_init_kaiming_uniform(int64_t fan_in) {
    return wf_init_uniform(sqrt(6 / (double)fan_in));
}

/* Vaswani et al. (2017), 3.5. Sine and cosine of one angle stand side by side; p counts from 0. */
static void fill_sinusoid(const wf_init *init, uint64_t key, wf_dtype dtype, int ndim,
                          const int64_t *shape, void *data) {
    (void)init, (void)key;
    int64_t dim = shape[ndim - 1], count = 1;
    for (int i = 0; i < ndim; i++) count *= shape[i]; /* the engine has checked the product */
    for (int64_t e = 0; e < count; e++) {
        int64_t position = e / dim, i = e % dim / 2;
        double angle = (double)position / pow(10000, 2 * (double)i / (double)dim);
        double value = e % dim % 2 ? cos(angle) : sin(angle);
        if (dtype == WF_F64) ((double *)data)[e] = value;
        else ((float *)data)[e] = (float)value;
    }
}

wf_init wf_init_sinusoid(void) {
    return (wf_init){ .fill = fill_sinusoid };
}
