/* weft/ops/elementwise_ops.h - ops on single elements, with broadcasting. See ops.h. */
#ifndef WEFT_OPS_ELEMENTWISE_OPS_H
#define WEFT_OPS_ELEMENTWISE_OPS_H

#include "../core/graph.h"
#include "../core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- elementwise, binary: binary.c, derived.c ------------------------------------------------ */
/* Integers: add, sub, mul, maximum, minimum, floor_divide, remainder and fmod accept two i32 and
 * give an exact i32. Sums and products wrap around; a division by 0 fails the run. neg, abs,
 * square, sign and where accept i32, too. Reals and i32 cannot be mixed: use wf_cast. */
WF_API wf_tensor *wf_sub(wf_tensor *a, wf_tensor *b); /* a - b */
WF_API wf_tensor *wf_mul(wf_tensor *a, wf_tensor *b); /* a * b */
WF_API wf_tensor *wf_div(wf_tensor *a, wf_tensor *b); /* a / b */
/* on a tie a gets the gradient */
WF_API wf_tensor *wf_maximum(wf_tensor *a, wf_tensor *b);
/* on a tie a gets the gradient */
WF_API wf_tensor *wf_minimum(wf_tensor *a, wf_tensor *b);
/* a^b as C's pow: 1 for b = 0; NaN for a < 0, unless b is an integer (then only b's gradient is
 * NaN). a's gradient is 0 where b = 0; b's is 0 where a = 0 and b >= 0 */
WF_API wf_tensor *wf_pow(wf_tensor *a, wf_tensor *b);
/* x^exponent; the exponents 0, 1, 2, 3, -1, 0.5 and -0.5 take no logarithm */
WF_API wf_tensor *wf_pow_scalar(wf_tensor *x, double exponent);
WF_API wf_tensor *wf_atan2(wf_tensor *a, wf_tensor *b); /* angle of (b, a); gradient 0 at 0, 0 */
WF_API wf_tensor *wf_logaddexp(wf_tensor *a, wf_tensor *b); /* log(exp(a) + exp(b)) */
WF_API wf_tensor *wf_xlogy(wf_tensor *a, wf_tensor *b);     /* a log(b); 0 for a = 0, b not NaN */
WF_API wf_tensor *wf_fmod(wf_tensor *a, wf_tensor *b);      /* a - trunc(a / b) b: a's sign */
WF_API wf_tensor *wf_remainder(wf_tensor *a, wf_tensor *b); /* a - floor(a / b) b: b's sign */
WF_API wf_tensor *wf_floor_divide(wf_tensor *a, wf_tensor *b); /* floor(a / b); gradient zeros */
/* min(max(x, low), high); a bound may be NULL. Where x equals a bound, x gets the gradient; in
 * wf_clamp it does not. */
WF_API wf_tensor *wf_clamp_tensors(wf_tensor *x, wf_tensor *low, wf_tensor *high);
WF_API wf_tensor *wf_lerp(wf_tensor *a, wf_tensor *b, wf_tensor *weight); /* a + weight (b - a) */
/* comparisons of reals or i32: 1 or 0, real */
WF_API wf_tensor *wf_equal(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_not_equal(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_less(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_less_equal(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_greater(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_greater_equal(wf_tensor *a, wf_tensor *b);
/* logical ops of masks, or of any reals or i32: nonzero is true, and so is NaN; the result is 1 or
 * 0, real */
WF_API wf_tensor *wf_logical_and(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_logical_or(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_logical_xor(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_logical_not(wf_tensor *x);
/* ops on the bits of i32: bits.c. A shift count outside of 0..31 moves every bit out, which leaves
 * 0, or -1 if a negative number is shifted with copies of the sign */
WF_API wf_tensor *wf_bitwise_and(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_bitwise_or(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_bitwise_xor(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_bitwise_not(wf_tensor *x);
WF_API wf_tensor *wf_bitwise_left_shift(wf_tensor *x, wf_tensor *count);
WF_API wf_tensor *wf_bitwise_right_shift(wf_tensor *x, wf_tensor *count); /* copies the sign */
WF_API wf_tensor *wf_bitwise_right_shift_logical(wf_tensor *x, wf_tensor *count); /* fills in 0s */
/* real: 1 where x is NaN (isnan), infinite (isinf) or finite (isfinite), else 0 */
WF_API wf_tensor *wf_isnan(wf_tensor *x);
WF_API wf_tensor *wf_isinf(wf_tensor *x);
WF_API wf_tensor *wf_isfinite(wf_tensor *x);

/* ---- elementwise, unary: unary.c, derived.c -------------------------------------------------- */
WF_API wf_tensor *wf_neg(wf_tensor *x);
WF_API wf_tensor *wf_abs(wf_tensor *x); /* gradient 0 at 0 */
WF_API wf_tensor *wf_square(wf_tensor *x);
WF_API wf_tensor *wf_sqrt(wf_tensor *x);
WF_API wf_tensor *wf_rsqrt(wf_tensor *x);      /* 1 / sqrt(x) */
WF_API wf_tensor *wf_reciprocal(wf_tensor *x); /* 1 / x */
WF_API wf_tensor *wf_exp(wf_tensor *x);
WF_API wf_tensor *wf_exp2(wf_tensor *x);  /* 2^x */
WF_API wf_tensor *wf_expm1(wf_tensor *x); /* exp(x) - 1, accurate near 0 */
WF_API wf_tensor *wf_log(wf_tensor *x);   /* natural */
WF_API wf_tensor *wf_log2(wf_tensor *x);
WF_API wf_tensor *wf_log10(wf_tensor *x);
WF_API wf_tensor *wf_log1p(wf_tensor *x); /* log(1 + x), accurate near 0 */
WF_API wf_tensor *wf_sin(wf_tensor *x);
WF_API wf_tensor *wf_cos(wf_tensor *x);
WF_API wf_tensor *wf_tan(wf_tensor *x);
WF_API wf_tensor *wf_asin(wf_tensor *x);
WF_API wf_tensor *wf_acos(wf_tensor *x);
WF_API wf_tensor *wf_atan(wf_tensor *x);
WF_API wf_tensor *wf_sinh(wf_tensor *x);
WF_API wf_tensor *wf_cosh(wf_tensor *x);
WF_API wf_tensor *wf_tanh(wf_tensor *x);
WF_API wf_tensor *wf_asinh(wf_tensor *x);
WF_API wf_tensor *wf_acosh(wf_tensor *x);
WF_API wf_tensor *wf_atanh(wf_tensor *x);
WF_API wf_tensor *wf_erf(wf_tensor *x);
WF_API wf_tensor *wf_erfc(wf_tensor *x); /* 1 - erf(x), accurate for large x */
/* the gradient of these is zeros */
WF_API wf_tensor *wf_floor(wf_tensor *x);
WF_API wf_tensor *wf_ceil(wf_tensor *x);
WF_API wf_tensor *wf_round(wf_tensor *x); /* halves to even */
WF_API wf_tensor *wf_trunc(wf_tensor *x);
WF_API wf_tensor *wf_sign(wf_tensor *x); /* -1, 0, 1; 0 for NaN */
/* activations */
WF_API wf_tensor *wf_sigmoid(wf_tensor *x);     /* 1 / (1 + exp(-x)) */
WF_API wf_tensor *wf_log_sigmoid(wf_tensor *x); /* log(sigmoid(x)), finite for any x */
WF_API wf_tensor *wf_softplus(wf_tensor *x);    /* log(1 + exp(x)) */
WF_API wf_tensor *wf_softsign(wf_tensor *x);    /* x / (1 + |x|) */
WF_API wf_tensor *wf_relu(wf_tensor *x);        /* max(x, 0); gradient 0 at 0 */
WF_API wf_tensor *wf_relu6(wf_tensor *x);       /* min(max(x, 0), 6); gradient 0 at 0 and 6 */
WF_API wf_tensor *wf_leaky_relu(wf_tensor *x, double slope); /* x > 0 ? x : slope x */
WF_API wf_tensor *wf_elu(wf_tensor *x, double alpha);        /* x > 0 ? x : alpha (exp(x) - 1) */
WF_API wf_tensor *wf_selu(wf_tensor *x);                     /* 1.0507 elu(x, 1.6733) */
WF_API wf_tensor *wf_gelu(wf_tensor *x);                     /* x/2 (1 + erf(x / sqrt 2)) */
WF_API wf_tensor *wf_gelu_tanh(wf_tensor *x);   /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
WF_API wf_tensor *wf_silu(wf_tensor *x);        /* x sigmoid(x) */
WF_API wf_tensor *wf_mish(wf_tensor *x);        /* x tanh(softplus(x)) */
WF_API wf_tensor *wf_hardsigmoid(wf_tensor *x); /* min(max(x + 3, 0), 6) / 6; gradient 0 at -3, 3 */
WF_API wf_tensor *wf_affine(wf_tensor *x, double scale, double shift); /* scale * x + shift */
WF_API wf_tensor *wf_scale(wf_tensor *x, double scale);                /* scale * x */
/* min(max(x, low), high); gradient 0 at a bound */
WF_API wf_tensor *wf_clamp(wf_tensor *x, double low, double high);

/* ---- selection: where.c ---------------------------------------------------------------------- */
/* condition != 0 ? a : b, where a and b are both real or both i32. Conditions and masks, here and
 * below, may be real or i32 */
WF_API wf_tensor *wf_where(wf_tensor *condition, wf_tensor *a, wf_tensor *b);
/* mask != 0 ? value : x */
WF_API wf_tensor *wf_masked_fill(wf_tensor *x, wf_tensor *mask, double value);

#ifdef __cplusplus
}
#endif
#endif
