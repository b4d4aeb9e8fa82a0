/* nn/init.c - initial values that depend on what a matrix is for. The distributions are in
 * ops/initial_values.c, and tables of sines in ops/shape/sinusoid.c.
 *
 * fan_in and fan_out are those of one projection: a packed [3D, D] matrix of three projections
 * has fans D and D. With a fan of 3D its values would be too small by a factor of sqrt(2). */
#include "nn.h"

#include <math.h>

/* Glorot and Bengio (2010), eq. 16: variance 2 / (fan_in + fan_out) keeps the variance of
 * activations and gradients constant across layers. */
wf_init wf_init_xavier_uniform(int64_t fan_in, int64_t fan_out) {
    return wf_init_uniform(sqrt(6 / ((double)fan_in + (double)fan_out)));
}

wf_init wf_init_xavier_normal(int64_t fan_in, int64_t fan_out) {
    return wf_init_normal(sqrt(2 / ((double)fan_in + (double)fan_out)));
}

/* He et al. (2015), eq. 10: relu halves the variance, so the variance of weights is 2 / fan_in. */
wf_init wf_init_kaiming_uniform(int64_t fan_in) {
    return wf_init_uniform(sqrt(6 / (double)fan_in));
}
