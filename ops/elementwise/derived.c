/* ops/elementwise/derived.c - elementwise functions composed of other ops. They have no kernels,
 * and their gradients follow from those ops. At kinks the gradients are PyTorch's, with one
 * exception: where x equals one bound of clamp_tensors, the gradient is 1 here and 0.5 in
 * PyTorch. */
#include <math.h>

#include "core/compose.h"
#include "ops/base/op_base.h"

static wf_tensor *constant_for(wf_tensor *x, double value) {
    return wf_constant(x ? x->graph : NULL, value);
}

/* ---- activations ----------------------------------------------------------------------------- */

/* Clevert et al. 2016. The minimum keeps the exponential finite where x > 0, where its value is not
 * used. Otherwise its gradient would be 0 times infinity there. */
wf_tensor *wf_elu(wf_tensor *x, double alpha) {
    WF_COMPOSE("elu", x);
    wf_tensor *left = wf_expm1(wf_minimum(x, wf_zero(x)));
    return wf_composed(wf_where(wf_relu(x), x, wf_scale(left, alpha)));
}

/* Klambauer et al. 2017: normal numbers of mean 0 and variance 1 keep both. */
wf_tensor *wf_selu(wf_tensor *x) {
    WF_COMPOSE("selu", x);
    return wf_composed(wf_scale(wf_elu(x, 1.6732632423543772), 1.0507009873554805));
}

/* ---- powers, bounds, averages ---------------------------------------------------------------- */

wf_tensor *wf_pow_scalar(wf_tensor *x, double exponent) {
    WF_COMPOSE("pow_scalar", x);
    if (exponent == 0) return wf_composed(wf_fill(x, 1));
    if (exponent == 1) return wf_composed(wf_alias(x));
    if (exponent == 2) return wf_composed(wf_square(x));
    if (exponent == 3) return wf_composed(wf_mul(x, wf_square(x)));
    if (exponent == 0.5) return wf_composed(wf_sqrt(x));
    if (exponent == -0.5) return wf_composed(wf_rsqrt(x));
    if (exponent == -1) return wf_composed(wf_reciprocal(x));
    return wf_composed(wf_pow(x, constant_for(x, exponent)));
}

/* On a tie, the first operand of minimum and maximum, which is x, gets the gradient. */
wf_tensor *wf_clamp_tensors(wf_tensor *x, wf_tensor *low, wf_tensor *high) {
    WF_COMPOSE("clamp_tensors", x, low ? low : x, high ? high : x);
    if (!low && !high) return wf_composed(wf_alias(x));
    wf_tensor *above = low ? wf_maximum(x, low) : x;
    return wf_composed(high ? wf_minimum(above, high) : above);
}

wf_tensor *wf_lerp(wf_tensor *a, wf_tensor *b, wf_tensor *weight) {
    WF_COMPOSE("lerp", a, b, weight);
    return wf_composed(wf_add(a, wf_mul(weight, wf_sub(b, a))));
}

/* ---- conditions ------------------------------------------------------------------------------ */

wf_tensor *wf_logical_not(wf_tensor *x) {
    WF_COMPOSE("logical_not", x);
    return wf_composed(wf_equal(x, wf_zero_like(x)));
}

wf_tensor *wf_isnan(wf_tensor *x) {
    WF_COMPOSE("isnan", x);
    return wf_composed(wf_not_equal(x, x));
}

wf_tensor *wf_isinf(wf_tensor *x) {
    WF_COMPOSE("isinf", x);
    return wf_composed(wf_equal(wf_abs(x), constant_for(x, INFINITY)));
}

/* An infinity minus itself is NaN, and so is NaN minus NaN. */
wf_tensor *wf_isfinite(wf_tensor *x) {
    WF_COMPOSE("isfinite", x);
    return wf_composed(wf_equal(wf_sub(x, x), wf_zero(x)));
}
