/* tests/ops/test_bits.c - one arithmetic: the kernels of every table give the bits of their
 * definition in plain C or, if they have no sums, of the base table, for numbers of every kind. The
 * definitions are in plain_sums.inc and plain_attention.inc, the runs of kernels in
 * kernel_bits.inc. These files are included twice, for float and for double. */
#include "tests/support/marks.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "ops/kernels/kernels.h"
#include "ops/ops.h"
#include "tests/suites.h"

TESTS(bits)

#define HIGH_BYTE_FIRST (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#define COUNT_OF(a) ((int)(sizeof(a) / sizeof *(a)))

static uint64_t draws;

static double draw(double low, double high) {
    wf_philox r = wf_philox4x32(78, draws++, 0);
    return low + (high - low) * wf_unit_double(r.v[0], r.v[1]);
}

typedef enum term_kind {
    TERM,
    TERM_SQUARE,
    TERM_PRODUCT,
    TERM_DISTANCE,
    TERM_DIFFERENCE,
    TERM_EXP
} term_kind;

/* a b + c, rounded once. musl's fma wrongly gives +0 if a b is negative and underflows and c is
 * 0. */
static double fused(double a, double b, double c) {
    return c == 0 && a != 0 && b != 0 ? a * b : fma(a, b, c);
}

static double log_in_double(double x) {
    wf_f64_at(0)->unary[WF_UNARY_log](1, &x, &x);
    return x;
}

#define real float
#define WIDE 0
#define kernels wf_kernels_f32
#define T(name) name##_f32
#define table_at wf_f32_at
#define real_fma fmaf
static const uint64_t T(recorded)[] = {
    0x6b672556dcdf6bba, 0x3f7ff030f26d5a05, 0x21657d95c1c65f2e, 0x425110f538e441ef,
    0x5e4a6cd5cdbff443, 0xa408cd145696f4bb, 0x8bb297d690bed8a2, 0x965098636ed0a525,
    0x9165c94ade3ec828, 0x64032be9c3c820ad, 0xc19f23bf922f9598, 0x64428497da5aa5f9,
    0xdcc10b166a8792e3, 0xafce87bfb4950680, 0x3b9d49ea83b29739
};
static const real T(exp_q)[] = { 0x1p-1f, 0x1.555498p-3f, 0x1.55546cp-5f, 0x1.12368cp-7f,
                                 0x1.6dab5cp-10f };
/* Each may use those above it. */
/* clang-format off */
#include "plain_sums.inc"
#include "plain_attention.inc"
#include "kernel_bits.inc"
#include "kernel_bits_more.inc"
#include "kernel_bits_heads.inc"
/* clang-format on */
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
#define real_fma fused
static const uint64_t T(recorded)[] = {
    0x6799969c77724c29, 0x1204c5901778387e, 0x030de9eb78c989bb, 0xd53895614a054905,
    0x4e49c5f1bfbd2db2, 0x111b9698951ef1db, 0x85f0633f525a2698, 0x20cce4e38ac25401,
    0x2551681c208f86d2, 0x319f2be43863e0c6, 0xae483eb223ca2b9a, 0x2551681c208f86d2,
    0xe0ebbc7d60049e8b, 0xb83f00b3f3a4e61e, 0x5f388e3e9229c0a2
};
static const real T(exp_q)[] = {
    0x1.0000000000005p-1,  0x1.555555555555dp-3,  0x1.5555555551dddp-5,  0x1.111111110e27cp-7,
    0x1.6c16c18047c29p-10, 0x1.a01a01b757a72p-13, 0x1.a019a31cb8e57p-16, 0x1.71dde6b4b598dp-19,
    0x1.28a6123e809c0p-22, 0x1.af7bcf5ed6512p-26,
};
/* Each may use those above it. */
/* clang-format off */
#include "plain_sums.inc"
#include "plain_attention.inc"
#include "kernel_bits.inc"
#include "kernel_bits_more.inc"
#include "kernel_bits_heads.inc"
/* clang-format on */

/* ---- of one type alone ----------------------------------------------------------------------- */

TEST(every_table_draws_the_same_numbers) {
    static uint64_t u[WF_DRAWN], v[WF_DRAWN];
    static double first[WF_DRAWN], y[WF_DRAWN];
    for (uint64_t key = 0; key < 40; key++) {
        for (int i = 0; i < WF_DRAWN; i++) {
            wf_philox r = wf_philox4x32(key, 9 + (uint64_t)i, 3);
            u[i] = (uint64_t)r.v[0] << 32 | r.v[1], v[i] = (uint64_t)r.v[2] << 32 | r.v[3];
            double a = 1 - (double)(u[i] >> 11) * 0x1p-53, b = (double)(v[i] >> 11) * 0x1p-53;
            double angle = 6.283185307179586 * b, turned;
            wf_f64_at(0)->unary[WF_UNARY_cos](1, &angle, &turned);
            first[i] = 0.3 * sqrt(-2 * log_in_double(a)) * turned;
        }
        for (int i = 0; wf_f64_at(i); i++) {
            uint64_t got_u[WF_DRAWN], got_v[WF_DRAWN];
            wf_f64_at(i)->draw(key, 3, 9, got_u, got_v);
            ck_assert_mem_eq(u, got_u, sizeof(u));
            ck_assert_mem_eq(v, got_v, sizeof(v));
            wf_f64_at(i)->draw_normal(WF_DRAWN, u, v, 0.3, y);
            ck_assert_mem_eq(first, y, sizeof(y));
        }
    }
}

/* Numbers whose product with `inverse` is halfway between two integers, or next to that. */
static void fill_halfway(int k, float largest, float *x) {
    float inverse = 127 / largest;
    for (int i = 0; i < k; i++) {
        x[i] = (float)((floor(draw(-127, 126)) + 0.5) / (double)inverse);
        x[i] = nextafterf(x[i], i % 3 ? largest : -largest);
    }
    x[k / 2] = largest;
}

/* Kernels must round the product with `inverse` before they round it to an integer. */
TEST(every_table_rounds_rows_to_the_bytes_of_plain_c) {
    enum { K = 133 };
    float x[K], scale;
    static char out[64 + 2 * 192];
    for (int round = 0; round < 200; round++) {
        float largest = (float)draw(0.5, 3), inverse = 127 / largest;
        fill_halfway(K, largest, x);
        for (int i = 0; wf_f32_at(i); i++) {
            wf_f32_at(i)->int8_row(K, x, true, out);
            memcpy(&scale, out, sizeof scale);
            ck_assert(scale == largest / 127);
            for (int k = 0; k < K; k++) {
                volatile float product = x[k] * inverse;
                ck_assert_msg((signed char)out[WF_INT8_HEAD + k] == (int)nearbyintf(product),
                              "%s: byte %d of %a", wf_f32_at(i)->isa, k, (double)product);
            }
        }
    }
}

/* A row of A, of ordinary or hostile numbers, is rounded to the same bytes by every table. */
TEST(every_table_rounds_rows_to_the_same_bytes) {
    enum { K = 133 };
    float x[K];
    static char first[64 + 2 * 192], out[64 + 2 * 192];
    for (int round = 0; round < 300; round++) {
        for (int i = 0; i < K; i++) x[i] = round % 2 ? hostile_f32() : (float)draw(-3, 3);
        for (int i = 0; wf_f32_at(i); i++) {
            memset(out, 0, sizeof(out));
            wf_f32_at(i)->int8_row(K, x, false, out);
            if (i == 0) memcpy(first, out, sizeof(out));
            ck_assert_msg(memcmp(first, out, sizeof(out)) == 0, "%s: round %d", wf_f32_at(i)->isa,
                          round);
        }
    }
}

enum { DEEP = 133, MATRIX_ROWS = 70 };

/* Packs rows of int8 weights q as panels of a table: scales, then words of 4 columns as q + 128. */
static void pack_integers(int64_t whole, const int8_t *q, const float *scale, unsigned char *to) {
    for (int64_t row = 0; row < MATRIX_ROWS; row++) {
        int64_t first = row / whole * whole, r = row - first;
        int64_t width = MATRIX_ROWS - first < whole ? MATRIX_ROWS - first : whole;
        unsigned char *panel = to + first * (int64_t)wf_int8_weight_bytes(DEEP);
        memcpy(panel + 4 * r, &scale[row], sizeof *scale);
        for (int64_t k = 0; k < (DEEP + 3) / 4 * 4; k++)
            panel[4 * (width + k / 4 * width + r) + k % 4] =
                (unsigned char)((k < DEEP ? q[row * DEEP + k] : 0) + 128);
    }
}

static void draw_integers(int8_t *q, float *scale, int32_t *shift, float *d) {
    for (int i = 0; i < MATRIX_ROWS * DEEP; i++) q[i] = (int8_t)draw(-127, 128);
    for (int i = 0; i < MATRIX_ROWS; i++) {
        scale[i] = (float)draw(1e-4, 1e-3);
        shift[i] = (int32_t)draw(-4e6, 4e6);
        d[i] = (float)draw(-1, 1);
    }
}

/* A row that is rounded with a given scale is clamped to -127..127. A shift is added to its integer
 * sums before they are rounded to f32. */
TEST(every_table_cuts_rows_and_shifts_sums_as_plain_c) {
    static int8_t q[MATRIX_ROWS * DEEP];
    static unsigned char panels[MATRIX_ROWS * (DEEP + 8)];
    static char row[64 + 2 * 192];
    float x[DEEP], scale[MATRIX_ROWS], d[MATRIX_ROWS], c[MATRIX_ROWS];
    int32_t shift[MATRIX_ROWS];
    for (int round = 0; round < 50; round++) {
        const float by = (float)draw(10, 40);
        draw_integers(q, scale, shift, d);
        for (int k = 0; k < DEEP; k++) x[k] = (float)draw(-6, 6);
        for (int i = 0; wf_f32_at(i); i++) {
            const bool dot = wf_f32_at(i)->has_dot() && round % 2;
            pack_integers(wf_f32_at(i)->panel_rows, q, scale, panels);
            wf_f32_at(i)->int8_row_by(DEEP, x, by, dot, row);
            wf_f32_at(i)->int8_panels(&(wf_int8_product){ .m = 1,
                                                          .n = MATRIX_ROWS,
                                                          .k = DEEP,
                                                          .a = row,
                                                          .panels = panels,
                                                          .d = d,
                                                          .shift = shift,
                                                          .c = c,
                                                          .c_row = MATRIX_ROWS,
                                                          .with_dot = dot });
            for (int n = 0; n < MATRIX_ROWS; n++) {
                int32_t sum = shift[n];
                for (int k = 0; k < DEEP; k++) {
                    volatile float product = x[k] * by;
                    float a = fminf(fmaxf(nearbyintf(product), -127), 127);
                    sum += (int32_t)a * q[n * DEEP + k];
                }
                volatile float scaled = (float)sum * scale[n];
                ck_assert_msg(c[n] == scaled + d[n], "%s: column %d", wf_f32_at(i)->isa, n);
            }
        }
    }
}

TEST(every_table_cuts_hostile_rows_to_the_same_bytes) {
    float x[DEEP];
    static char first[64 + 2 * 192], out[64 + 2 * 192];
    for (int round = 0; round < 300; round++) {
        for (int i = 0; i < DEEP; i++) x[i] = hostile_f32();
        if (round % 2)
            for (int i = 0; i < DEEP; i++) x[i] = isfinite(x[i]) ? x[i] : 1;
        for (int i = 0; wf_f32_at(i); i++) {
            memset(out, 0, sizeof(out));
            wf_f32_at(i)->int8_row_by(DEEP, x, 1e30f, false, out);
            if (i == 0) memcpy(first, out, sizeof(out));
            ck_assert_msg(memcmp(first, out, sizeof(out)) == 0, "%s: round %d", wf_f32_at(i)->isa,
                          round);
        }
    }
}

/* x shifted by n bits. If n is not from 0 to 31, the result is 0, or -1 for the right shift of a
 * negative x. */
static int32_t shifted(int op, int32_t x, int32_t n) {
    bool outside = n < 0 || n > 31;
    uint32_t bits = (uint32_t)x, ones = x < 0 && op == WF_BITS_bitwise_right_shift ? UINT32_MAX : 0;
    if (outside) return (int32_t)ones;
    if (op == WF_BITS_bitwise_left_shift) return (int32_t)(bits << n);
    return (int32_t)(bits >> n | (n ? ones << (32 - n) : 0));
}

static int32_t bits_in_c(int op, int32_t a, int32_t b) {
    if (op == WF_BITS_bitwise_and) return a & b;
    if (op == WF_BITS_bitwise_or) return a | b;
    if (op == WF_BITS_bitwise_xor) return a ^ b;
    return shifted(op, a, b);
}

/* Half of the integers are small, so that shifts are inside and outside of 0..31; a tenth are
 * INT32_MIN or INT32_MAX. */
static int32_t drawn_integer(void) {
    double kind = draw(0, 1);
    if (kind < 0.1) return kind < 0.05 ? INT32_MIN : INT32_MAX;
    return kind < 0.6 ? (int32_t)draw(-40, 40) : (int32_t)draw(INT32_MIN, INT32_MAX);
}

/* Bitwise ops have the bits of C, for every pair of strides 0 and 1. In a third of the runs each,
 * the result is written in place of the first or the second operand, if that has stride 1. */
TEST(integers_have_the_bits_of_c) {
    enum { N = 67 };
    int32_t a[N + 1], b[N + 1], y[N + 1], first[N + 1], second[N + 1];
    for (int i = 0; wf_f32_at(i); i++)
        for (int n = 0; n <= N; n++)
            for (int op = 0; op < WF_BITS_COUNT; op++) {
                int64_t sa = n & 1, sb = n >> 1 & 1;
                int32_t *out = y;
                if (sa && n % 3 == 1) out = first;
                if (sb && n % 3 == 2) out = second;
                for (int k = 0; k <= N; k++) {
                    first[k] = a[k] = drawn_integer();
                    second[k] = b[k] = drawn_integer();
                }
                out[n] = 77;
                wf_f32_at(i)->bits[op](n, first, sa, second, sb, out);
                for (int k = 0; k < n; k++)
                    ck_assert_msg(out[k] == bits_in_c(op, a[k * sa], b[k * sb]),
                                  "%s: op %d of %d and %d: %d", wf_f32_at(i)->isa, op, a[k * sa],
                                  b[k * sb], out[k]);
                ck_assert_int_eq(out[n], 77);
            }
}
