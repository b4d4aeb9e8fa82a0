/* tests/ops/test_plain.c - the plain C functions that emitted files contain (ops/emit/plain_*.c)
 * have the bits of the kernels: every row of unary.inc and binary.inc, for many random bit
 * patterns. */
#include "core/base/random.h"
#include "ops/kernels/kernels.h"
#include "tests/suites.h"
#include "tests/support/support.h"

#if defined __GNUC__
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
/* clang-format off */
#include "ops/emit/plain_numbers.c"
#include "ops/emit/plain_double.c"
#include "ops/emit/plain_power.c"
#include "ops/emit/plain_functions.c"
#include "ops/emit/plain_rows.c"
#include "ops/emit/plain_attention.c"
#include "ops/emit/plain_convolution.c"
/* clang-format on */

TESTS(plain)

/* ---- the rows as functions of a number or two ------------------------------------------------ */

/* The rows call functions of vectors by these names; here they are functions of a number. */
#define v_abs abs_of
#define v_max max_of
#define v_min min_of
#define v_sqrt sqrt_of
#define v_exp exp_of
#define v_exp2 exp2_of
#define v_expm1 expm1_of
#define v_log log_of
#define v_log2 log2_of
#define v_log10 log10_of
#define v_log1p log1p_of
#define v_sin sin_of
#define v_cos cos_of
#define v_tan tan_of
#define v_asin asin_of
#define v_acos acos_of
#define v_atan atan_of
#define v_sinh sinh_of
#define v_cosh cosh_of
#define v_tanh tanh_of
#define v_asinh asinh_of
#define v_acosh acosh_of
#define v_atanh atanh_of
#define v_erf erf_of
#define v_erfc erfc_of
#define v_sigmoid sigmoid_of
#define v_softplus softplus_of
#define v_mish mish_of
#define v_gelu gelu_of
#define v_gelu_tanh gelu_tanh_of
#define v_gelu_slope gelu_slope_of
#define v_gelu_tanh_slope gelu_tanh_slope_of
#define v_silu_slope silu_slope_of
#define v_floor floor_of
#define v_ceil ceil_of
#define v_round round_of
#define v_trunc trunc_of
#define v_sign sign_of
#define v_pow pow_of
#define v_atan2 atan2_of
#define v_logaddexp logaddexp_of
#define v_xlogy xlogy_of
#define v_fmod fmod_of
#define v_remainder remainder_of
#define v_floor_divide floor_divide_of
#define ALL(x) (x)

#define UNARY(name, text, value, derivative)                                                       \
    static float one_##name(float x) {                                                             \
        return value;                                                                              \
    }
#include "ops/elementwise/unary.inc"

#define BINARY(name, text, value, da, db)                                                          \
    static float two_##name(float a, float b) {                                                    \
        return value;                                                                              \
    }
#define COMPARE(name, value)
#include "ops/elementwise/binary.inc"

static const struct {
    const char *name;
    enum wf_unary row;
    float (*function)(float);
} of_one[] = {
#define UNARY(name, text, value, derivative) { #name, WF_UNARY_##name, one_##name },
#include "ops/elementwise/unary.inc"
};

static const struct {
    const char *name;
    enum wf_binary row;
    float (*function)(float, float);
} of_two[] = {
#define BINARY(name, text, value, da, db) { #name, WF_BINARY_##name, two_##name },
#define COMPARE(name, value)
#include "ops/elementwise/binary.inc"
};

/* ---- numbers --------------------------------------------------------------------------------- */

enum { NUMBERS = 200000 };
static float first_numbers[NUMBERS], second_numbers[NUMBERS], by_kernel[NUMBERS];

static float of_word(uint32_t word) {
    float_bits b;
    b.word = word;
    return b.number;
}

/* A random bit pattern, a number from -2 to 2 or from -100 to 100, an integer, a denormal, or a
 * number of `ends`. */
static float number_at(uint64_t key, int i) {
    static const uint32_t ends[] = { 0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                     1,          0x007fffff, 0x00800000, 0x7f7fffff, 0x3f800000,
                                     0xbf800000, 0x3f000000, 0x4b000000, 0x49742400, 0x42b17218 };
    uint64_t r = wf_mix64(key ^ (uint64_t)i);
    uint32_t word = (uint32_t)(r >> 32);
    switch (r % 8) {
    case 0:
        return ends[word % COUNT_OF(ends)] ? of_word(ends[word % COUNT_OF(ends)]) : 0.0f;
    case 1:
        return of_word(word & 0x807fffff);
    case 2:
        return (float)(int32_t)(word % 41) - 20.0f;
    case 3:
    case 4:
        return ((float)(word >> 8) * 0x1p-24f - 0.5f) * (r >> 8 & 1 ? 4.0f : 200.0f);
    default:
        return of_word(word);
    }
}

static void make_numbers(uint64_t key, float *numbers) {
    for (int i = 0; i < NUMBERS; i++) numbers[i] = number_at(key, i);
}

static bool same(float a, float b) {
    return (a != a && b != b) || memcmp(&a, &b, sizeof a) == 0;
}

TEST_ROWS(a_function_of_one_number_has_the_bits_of_the_kernel, COUNT_OF(of_one)) {
    make_numbers(key_of(of_one[_i].name, 1), first_numbers);
    wf_f32()->unary[of_one[_i].row](NUMBERS, first_numbers, by_kernel);
    for (int i = 0; i < NUMBERS; i++) {
        float y = of_one[_i].function(first_numbers[i]);
        ck_assert_msg(same(y, by_kernel[i]), "%s(%a) is %a, not %a", of_one[_i].name,
                      (double)first_numbers[i], (double)y, (double)by_kernel[i]);
    }
}

TEST_ROWS(a_function_of_two_numbers_has_the_bits_of_the_kernel, COUNT_OF(of_two)) {
    const float *a = first_numbers, *b = second_numbers;
    make_numbers(key_of(of_two[_i].name, 2), first_numbers);
    make_numbers(key_of(of_two[_i].name, 3), second_numbers);
    for (int i = 0; i < NUMBERS; i += 50) second_numbers[i] = first_numbers[i];
    wf_f32()->binary[of_two[_i].row](NUMBERS, a, 1, b, 1, by_kernel);
    for (int i = 0; i < NUMBERS; i++) {
        float y = of_two[_i].function(a[i], b[i]);
        ck_assert_msg(same(y, by_kernel[i]), "%s(%a, %a) is %a, not %a", of_two[_i].name,
                      (double)a[i], (double)b[i], (double)y, (double)by_kernel[i]);
    }
}

/* Terms of a b + c: any numbers; products half way between two floats, or nearly, with a small c;
 * and sums that are denormal. */
static void make_terms(uint64_t key, float *a, float *b, float *c) {
    uint64_t r = wf_mix64(key), s = wf_mix64(r);
    bool negative = s >> 40 & 1;
    *a = number_at(r, 1);
    *b = number_at(r, 2);
    *c = number_at(r, 3);
    if (r % 4 == 0) return;
    *a = 1.0f + (float)(2 * (r >> 8 & 0x7ff) + 1) * 0x1p-12f;
    *b = 1.0f + (float)(2 * (r >> 20 & 0x7ff) + 1) * 0x1p-12f;
    *c = ldexpf(negative ? -1.0f : 1.0f, -(int)(s % 140));
    if (r % 4 == 1) *c = (float)(int32_t)(s % 4096 - 2048) * 0x1p-24f;
    if (r % 4 == 2) return;
    float apart = (float)(1 + (r >> 8 & 0xff)) * 0x1p-23f;
    *a = (1.0f + apart) * 0x1p-75f;
    *b = (negative ? apart - 1.0f : 1.0f - apart) * 0x1p-75f;
    *c = of_word((uint32_t)s & 0x80ffffff);
}

TEST(multiply_add_rounds_once) {
    enum { SUMS = 2000000 };
    float a, b, c;
    for (int i = 0; i < SUMS; i++) {
        make_terms((uint64_t)i, &a, &b, &c);
        float y = multiply_add(a, b, c), once = fmaf(a, b, c);
        ck_assert_msg(same(y, once), "%a %a + %a is %a, not %a", (double)a, (double)b, (double)c,
                      (double)y, (double)once);
    }
}

/* Sines and cosines in double of random numbers, and of the angles of positions, which are at most
 * 2^31. */
TEST(sines_and_cosines_in_double_have_the_bits_of_the_kernel) {
    enum { ANGLES = 50000 };
    static double angles[ANGLES], sines[ANGLES], cosines[ANGLES];
    for (int i = 0; i < ANGLES; i++) {
        uint64_t r = wf_mix64(77 + (uint64_t)i);
        double_bits any;
        any.word = r;
        angles[i] = i % 4 == 0 ? any.number : (double)(int32_t)(r >> 32) / (double)(1 + r % 10000);
    }
    wf_f64()->unary[WF_UNARY_sin](ANGLES, angles, sines);
    wf_f64()->unary[WF_UNARY_cos](ANGLES, angles, cosines);
    for (int i = 0; i < ANGLES; i++) {
        double s = sin_in_double(angles[i]), c = cos_in_double(angles[i]);
        bool equal = (s != s && sines[i] != sines[i]) ||
                     (memcmp(&s, &sines[i], sizeof s) == 0 && memcmp(&c, &cosines[i], 8) == 0);
        ck_assert_msg(equal, "of %a: %a, not %a, or %a, not %a", angles[i], s, sines[i], c,
                      cosines[i]);
    }
}

/* Powers of an optimizer's decay rates. In every step, Adam needs that of beta1 and that of
 * beta2. */
TEST(powers_in_double_have_the_bits_of_the_kernel) {
    enum { POWERS = 60000 };
    static double bases[POWERS], exponents[POWERS], powers[POWERS];
    static const double usual[] = { 0.9, 0.98, 0.99, 0.999, 0.9999, 0.5, 0, 0x1p-1022 };
    for (int i = 0; i < POWERS; i++) {
        uint64_t r = wf_mix64(78 + (uint64_t)i);
        bases[i] = i % 2 ? usual[i / 2 % COUNT_OF(usual)] : (double)(r >> 11) * 0x1p-53;
        exponents[i] = i % 4 < 2 ? 1 + i / 16 : (double)(1 + r % 10000000);
    }
    wf_f64()->binary[WF_BINARY_pow](POWERS, bases, 1, exponents, 1, powers);
    for (int i = 0; i < POWERS; i++) {
        double y = pow_in_double(bases[i], exponents[i]);
        ck_assert_msg(memcmp(&y, &powers[i], sizeof y) == 0, "%a^%g is %a, not %a", bases[i],
                      exponents[i], y, powers[i]);
    }
}
