/* tests/ops/test_kernels.c - kernels of every table that this processor runs, against plain C.
 *
 * References are in long double. kernel_checks.inc, kernel_heads.inc and kernel_rows.inc hold the
 * tests; they are included twice, for float and for double. Errors are measured in units in the
 * last place (ulp) of the type: WEFT_SHOW_ULPS=1 prints them. */
#include "tests/support/marks.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "ops/kernels/cache_blocks.h"
#include "ops/kernels/kernels.h"
#include "ops/ops.h"
#include "tests/suites.h"

TESTS(kernels)

#define COUNT_OF(a) ((int)(sizeof(a) / sizeof *(a)))

static uint64_t draws;

/* Deterministic, uniform in [low, high). */
static double draw(double low, double high) {
    wf_philox r = wf_philox4x32(77, draws++, 0);
    return low + (high - low) * wf_unit_double(r.v[0], r.v[1]);
}

/* ---- the true functions --------------------------------------------------------------------- */

static long double true_neg(long double x) {
    return -x;
}
static long double true_square(long double x) {
    return x * x;
}
static long double true_reciprocal(long double x) {
    return 1 / x;
}
static long double true_relu(long double x) {
    return x > 0 ? x : 0;
}
static long double true_sigmoid(long double x) {
    return 1 / (1 + expl(-x));
}
static long double true_silu(long double x) {
    return x * true_sigmoid(x);
}
static long double true_gelu(long double x) {
    return x / 2 * erfcl(-x / sqrtl(2));
}

static long double true_silu_slope(long double x) {
    return true_sigmoid(x) + x * true_sigmoid(x) * true_sigmoid(-x);
}

static long double true_gelu_slope(long double x) {
    return erfcl(-x / sqrtl(2)) / 2 + x * expl(-x * x / 2) / sqrtl(2 * acosl(-1));
}

static long double gelu_tanh_inner(long double x) {
    return 2 * sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x);
}

static long double true_gelu_tanh(long double x) {
    return x * true_sigmoid(gelu_tanh_inner(x));
}

static long double true_gelu_tanh_slope(long double x) {
    long double u = gelu_tanh_inner(x),
                slope = 2 * sqrtl(2 / acosl(-1)) * (1 + 3 * 0.044715L * x * x);
    return true_sigmoid(u) + x * true_sigmoid(u) * true_sigmoid(-u) * slope;
}

static long double true_rsqrt(long double x) {
    return 1 / sqrtl(x);
}
static long double true_softplus(long double x) {
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}
static long double true_log_sigmoid(long double x) {
    return -true_softplus(-x);
}
static long double true_softsign(long double x) {
    return x / (1 + fabsl(x));
}
static long double true_relu6(long double x) {
    return fminl(fmaxl(x, 0), 6);
}
static long double true_hardsigmoid(long double x) {
    return true_relu6(x + 3) / 6;
}
static long double true_mish(long double x) {
    return x * tanhl(true_softplus(x));
}
static long double true_round(long double x) {
    return nearbyintl(x);
}
static long double true_sign(long double x) {
    return (x > 0) - (x < 0);
}

/* The largest allowed error of each function in [low, high], in ulp of the result, or of `floor` if
 * the result is smaller (where two terms cancel, or an error in the exponent grows with x). */
typedef struct maths_row {
    int op;
    long double (*value)(long double);
    double low, high, ulp_f32, ulp_f64, floor;
} maths_row;

#define INF ((double)INFINITY)
#define TINY (-1.0) /* 64 times the smallest normal number: below it, a factor may be subnormal */
static const maths_row MATHS[] = {
    { WF_UNARY_neg, true_neg, -INF, INF, 0, 0, 0 },
    { WF_UNARY_abs, fabsl, -INF, INF, 0, 0, 0 },
    { WF_UNARY_square, true_square, -1e19, 1e19, 0.5, 0.5, 0 },
    { WF_UNARY_sqrt, sqrtl, 0, INF, 0.5, 0.5, 0 },
    { WF_UNARY_reciprocal, true_reciprocal, -INF, INF, 0.5, 0.5, 0 },
    { WF_UNARY_exp, expl, -800, 800, 1, 1, 0 },
    { WF_UNARY_log, logl, 0, INF, 1, 1, 0 },
    { WF_UNARY_rsqrt, true_rsqrt, 0, INF, 1.5, 1.5, 0 },
    { WF_UNARY_exp2, exp2l, -1100, 1100, 1.5, 1.5, 0 },
    { WF_UNARY_expm1, expm1l, -800, 800, 2, 2, 0 },
    { WF_UNARY_log2, log2l, 0, INF, 2, 2, 0 },
    { WF_UNARY_log10, log10l, 0, INF, 2, 2, 0 },
    { WF_UNARY_log1p, log1pl, -1, INF, 1.5, 1.5, 0 },
    { WF_UNARY_tan, tanl, -1e8, 1e8, 2, 2, 0 },
    { WF_UNARY_asin, asinl, -1, 1, 2.5, 2.5, 0 },
    { WF_UNARY_acos, acosl, -1, 1, 2, 2, 0 },
    { WF_UNARY_atan, atanl, -INF, INF, 2, 2, 0 },
    { WF_UNARY_sinh, sinhl, -800, 800, 2, 2, 0 },
    { WF_UNARY_cosh, coshl, -800, 800, 2, 2, 0 },
    { WF_UNARY_asinh, asinhl, -INF, INF, 2, 2, 0 },
    { WF_UNARY_acosh, acoshl, 1, INF, 2, 2, 0 },
    { WF_UNARY_atanh, atanhl, -1, 1, 2, 2, 0 },
    { WF_UNARY_erfc, erfcl, -30, 30, 5, 5, 0 },
    { WF_UNARY_log_sigmoid, true_log_sigmoid, -800, 800, 2, 2, 0 },
    { WF_UNARY_softplus, true_softplus, -800, 800, 2, 2, 0 },
    { WF_UNARY_softsign, true_softsign, -1e30, 1e30, 1.5, 1.5, 0 },
    { WF_UNARY_relu6, true_relu6, -INF, INF, 0, 0, 0 },
    { WF_UNARY_hardsigmoid, true_hardsigmoid, -INF, INF, 1.5, 1.5, 0.5 },
    { WF_UNARY_mish, true_mish, -80, 1e30, 4, 4, TINY },
    { WF_UNARY_floor, floorl, -INF, INF, 0, 0, 0 },
    { WF_UNARY_ceil, ceill, -INF, INF, 0, 0, 0 },
    { WF_UNARY_round, true_round, -INF, INF, 0, 0, 0 },
    { WF_UNARY_trunc, truncl, -INF, INF, 0, 0, 0 },
    { WF_UNARY_sign, true_sign, -INF, INF, 0, 0, 0 },
    { WF_UNARY_sin, sinl, -1e8, 1e8, 1, 1, 0 },
    { WF_UNARY_cos, cosl, -1e8, 1e8, 1, 1, 0 },
    { WF_UNARY_tanh, tanhl, -INF, INF, 1.5, 1.5, 0 },
    { WF_UNARY_erf, erfl, -INF, INF, 1.5, 1.5, 0 },
    { WF_UNARY_sigmoid, true_sigmoid, -800, 800, 2.5, 2.5, 0 },
    { WF_UNARY_relu, true_relu, -INF, INF, 0, 0, 0 },
    { WF_UNARY_gelu, true_gelu, -38, 1e30, 5, 5, TINY },
    { WF_UNARY_gelu_tanh, true_gelu_tanh, -38, 1e30, 16, 16, 1e-3 },
    { WF_UNARY_silu, true_silu, -80, 1e30, 3, 3, TINY },
    { WF_UNARY_gelu_slope, true_gelu_slope, -38, 1e30, 4, 4, 0.5 },
    { WF_UNARY_gelu_tanh_slope, true_gelu_tanh_slope, -38, 1e30, 4, 4, 0.5 },
    { WF_UNARY_silu_slope, true_silu_slope, -80, 1e30, 4, 4, 0.5 },
};

/* References for functions of two operands, a in [low, high], b in [b_low, b_high]. */
static long double true_logaddexp(long double a, long double b) {
    return fmaxl(a, b) + log1pl(expl(-fabsl(a - b)));
}
static long double true_xlogy(long double a, long double b) {
    return a == 0 ? 0 : a * logl(b);
}

typedef struct maths2_row {
    int op;
    long double (*value)(long double, long double);
    double low, high, b_low, b_high, ulp, floor;
} maths2_row;

static const maths2_row MATHS2[] = {
    { WF_BINARY_pow, powl, 0, 4, -40, 40, 2, 0 },
    { WF_BINARY_pow, powl, 0.9, 1.1, -8000, 8000, 2, 0 },
    { WF_BINARY_pow, powl, 0, 1e30, -12, 12, 2, 0 },
    { WF_BINARY_pow, powl, -10, 10, -1e6, 1e6, 2, 0 },
    { WF_BINARY_atan2, atan2l, -10, 10, -10, 10, 2, 0 },
    { WF_BINARY_atan2, atan2l, -1e-30, 1e-30, -1, 1, 2, 0 },
    { WF_BINARY_atan2, atan2l, -1e38, 1e38, -3e38, 3e38, 2, 0 },
    { WF_BINARY_logaddexp, true_logaddexp, -100, 100, -100, 100, 2, 1 },
    { WF_BINARY_xlogy, true_xlogy, -100, 100, 0, 1e6, 2, 0 },
    { WF_BINARY_fmod, fmodl, -1000, 1000, -10, 10, 0, 0 },
};

/* Error of y in ulp of a type with `digits` bits and smallest exponent `lowest`. */
static double ulps(long double y, long double truth, double floor, int digits, int lowest,
                   long double highest) {
    if (isnan(truth)) return isnan(y) ? 0 : INF;
    if (fabsl(truth) > highest && (isinf(y) || fabsl(y) == highest))
        return (y > 0) == (truth > 0) ? 0 : INF;
    int exponent;
    frexpl(fmaxl(fabsl(truth), (long double)floor), &exponent);
    exponent = exponent > lowest ? exponent : lowest;
    double error = (double)fabsl(ldexpl(y - truth, digits - exponent));
    return error == error ? error : INF;
}

/* ---- the tests, twice ----------------------------------------------------------------------- */

#define real float
#define WIDE 0
#define kernels wf_kernels_f32
#define T(name) name##_f32
#define table_at wf_f32_at
#define real_fma fmaf
#include "kernel_checks.inc"
#include "kernel_heads.inc"
#include "kernel_rows.inc"
#undef real
#undef WIDE
#undef kernels
#undef T
#undef table_at
#undef real_fma

#define real double
#define WIDE 1
#define kernels wf_kernels_f64
#define T(name) name##_f64
#define table_at wf_f64_at
#define real_fma fma
#include "kernel_checks.inc"
#include "kernel_heads.inc"
#include "kernel_rows.inc"

TEST(philox_known_answers) /* Random123's kat_vectors */
{
    static const struct {
        uint64_t key, low, high;
        uint32_t answer[4];
    } known[] = {
        { 0, 0, 0, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { ~0ull, ~0ull, ~0ull, { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { 0x299f31d0a4093822,
          0x85a308d3243f6a88,
          0x0370734413198a2e,
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (int i = 0; i < COUNT_OF(known); i++) {
        wf_philox r = wf_philox4x32(known[i].key, known[i].low, known[i].high);
        ck_assert_mem_eq(r.v, known[i].answer, sizeof(r.v));
    }
}

TEST_ROWS(table_is_chosen_by_name, 4) {
    static const char *const wanted[] = { "base", "avx2", "nonsense", "" };
    if (getenv("WEFT_ISA")) return; /* chosen at the start */
    setenv("WEFT_ISA", wanted[_i], 1);
    const char *last = NULL, *expected = NULL;
    for (int i = 0; wf_f32_at(i); i++) {
        last = wf_f32_at(i)->isa;
        ck_assert_str_eq(last, wf_f64_at(i)->isa);
        if (strcmp(last, wanted[_i]) == 0) expected = last;
    }
    const char *chosen = expected ? expected : last;
    ck_assert_str_eq(wf_isa(), chosen);
    ck_assert_str_eq(wf_f32()->isa, wf_isa());
    ck_assert_str_eq(wf_f64()->isa, wf_isa());
    setenv("WEFT_ISA", "base", 1);
    ck_assert_str_eq(wf_isa(), chosen); /* chosen once */
    ck_assert_ptr_null(wf_f32_at(-1));
    ck_assert_ptr_null(wf_f64_at(99));
}
