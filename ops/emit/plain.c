/* ops/emit/plain.c - the functions that emitted files call (core/emit/): the arithmetic of
 * ops/kernels/README.md for f32 in plain C11, one element after another. embed.sh makes text of
 * this file; blank lines separate its blocks, each with one function, type or macro that needs only
 * those before it. Tests compile it, and compare it with the kernels to the bit. */
#include <stdint.h>

/* The bits of a float. */
typedef union float_bits {
    float number;
    uint32_t word;
} float_bits;

/* The bits of a double. */
typedef union double_bits {
    double number;
    uint64_t word;
} double_bits;

/* a b + c, rounded once: the processor's instruction, or computed in double, where the product is
 * exact, and rounded to odd before it is rounded to float. */
#if defined __FP_FAST_FMAF || defined __FMA__ || defined __aarch64__ || defined __ARM_FEATURE_FMA
static inline float multiply_add(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
#else
static float multiply_add(float a, float b, float c) {
    double product = (double)a * (double)b, sum = product + (double)c, of_c = sum - product;
    double lost = (product - (sum - of_c)) + ((double)c - of_c);
    double_bits odd = { sum };
    if ((lost > 0 || lost < 0) && !(odd.word & 1)) {
        if ((lost > 0) == (sum > 0))
            odd.word++;
        else
            odd.word--;
    }
    return (float)odd.number;
}
#endif

/* -0 + the sign of x: |size| with the sign of x. */
static inline float with_sign(float size, float x) {
    float_bits a = { size }, b = { x };
    a.word = (a.word & UINT32_C(0x7fffffff)) | (b.word & UINT32_C(0x80000000));
    return a.number;
}

/* |x| */
static inline float abs_of(float x) {
    float_bits a = { x };
    a.word &= UINT32_C(0x7fffffff);
    return a.number;
}

/* a > b ? a : b, so b if either is NaN. */
static inline float higher(float a, float b) {
    return a > b ? a : b;
}

/* a < b ? a : b, so b if either is NaN. */
static inline float lower(float a, float b) {
    return a < b ? a : b;
}

/* The larger of two numbers; NaN if either is. */
static inline float max_of(float a, float b) {
    return a > b || a != a ? a : b;
}

/* The smaller of two numbers; NaN if either is. */
static inline float min_of(float a, float b) {
    return a < b || a != a ? a : b;
}

/* x limited to [low, high]; NaN stays. */
static inline float within(float x, float low, float high) {
    return lower(high, higher(low, x));
}

/* The square root of a double, correctly rounded: the processor's instruction, or digit by digit.
 * Two binary digits of x give one of the root, 54 in all, of which the last one and the rest decide
 * how it is rounded. */
#if defined __NO_MATH_ERRNO__ && defined __SSE2__
static inline double root_in_double(double x) {
    return __builtin_sqrt(x);
}
#elif defined __SSE2__ && defined __GNUC__
static inline double root_in_double(double x) {
    double y;
    __asm__("sqrtsd %1, %0" : "=x"(y) : "x"(x));
    return y;
}
#elif defined __aarch64__ && defined __GNUC__
static inline double root_in_double(double x) {
    double y;
    __asm__("fsqrt %d0, %d1" : "=w"(y) : "w"(x));
    return y;
}
#else
static double root_in_double(double x) {
    double_bits b = { x };
    int exponent = (int)(b.word >> 52) - 1075;
    uint64_t digits = b.word & UINT64_C(0xfffffffffffff), root = 0, rest = 0;
    if (!(x > 0) || x - x != 0) return x == 0 || x > 0 ? x : (x - x) / (x - x);
    if (exponent > -1075)
        digits |= UINT64_C(0x10000000000000);
    else
        for (exponent = -1074; !(digits >> 52); exponent--) digits *= 2;
    if (exponent & 1) {
        digits *= 2;
        exponent--;
    }
    for (int i = 0; i < 54; i++) {
        rest = rest << 2 | (i < 27 ? digits >> (52 - 2 * i) & 3 : 0);
        uint64_t next = root << 2 | 1;
        root <<= 1;
        if (rest >= next) {
            rest -= next;
            root |= 1;
        }
    }
    uint64_t half = root & 1;
    root >>= 1;
    root += half & (uint64_t)(rest != 0 || (root & 1));
    b.word = ((uint64_t)(exponent / 2 + 26 + 1022) << 52) + root;
    return b.number;
}
#endif

/* The square root, correctly rounded: the processor's instruction, or a double that is close
 * enough. */
#if defined __NO_MATH_ERRNO__ && defined __SSE2__
static inline float sqrt_of(float x) {
    return __builtin_sqrtf(x);
}
#elif defined __SSE2__ && defined __GNUC__
static inline float sqrt_of(float x) {
    float y;
    __asm__("sqrtss %1, %0" : "=x"(y) : "x"(x));
    return y;
}
#elif defined __aarch64__ && defined __GNUC__
static inline float sqrt_of(float x) {
    float y;
    __asm__("fsqrt %s0, %s1" : "=w"(y) : "w"(x));
    return y;
}
#elif defined __ARM_FP && defined __GNUC__
static inline float sqrt_of(float x) {
    float y;
    __asm__("vsqrt.f32 %0, %1" : "=t"(y) : "t"(x));
    return y;
}
#else
static float sqrt_of(float x) {
    double_bits y = { (double)x };
    if (!(x > 0) || x - x != 0) return x == 0 || x > 0 ? x : (x - x) / (x - x);
    y.word = (y.word >> 1) + UINT64_C(0x1ff7a3bea91d9b1b);
    for (int i = 0; i < 4; i++) y.number = 0.5 * (y.number + (double)x / y.number);
    return (float)y.number;
}
#endif

/* ---- exponentials and logarithms ---------------------------------------------------------- */

#define ROUND 12582912.0f /* adding it leaves an integer in the low bits */
#define EXP_LOWEST -104.0f
#define TAIL_HIGHEST 15.0f

static const float exp_q[] = { 0x1p-1f, 0x1.555498p-3f, 0x1.55546cp-5f, 0x1.12368cp-7f,
                               0x1.6dab5cp-10f };

static const float log_r[] = { 0x1.55557p-1f, 0x1.99674ep-2f, 0x1.311d12p-2f };

static const float tanh_p[] = { -0x1.55554ap-2f, 0x1.110b84p-3f, -0x1.b8bd12p-5f, 0x1.551c5p-6f,
                                -0x1.81fee6p-8f };

static const float erf_p[] = { 0x1.06eba8p-3f, -0x1.81273ep-2f,  0x1.ce2d2p-4f, -0x1.b7fbb4p-6f,
                               0x1.5419f6p-8f, -0x1.a485ecp-11f, 0x1.4ae4dp-14f };

static const float tail_p[] = { 0x1.82b4bcp-1f,  -0x1.373e38p-1f, 0x1.8c6d9ep-2f,  -0x1.7e001ep-3f,
                                0x1.eed34cp-5f,  -0x1.ed17d8p-8f, -0x1.cc1722p-9f, 0x1.9b261ap-10f,
                                0x1.6e498cp-13f, -0x1.196e12p-13f };

/* A polynomial with n coefficients, the constant term first. */
static inline float polynomial(float x, const float *c, int n) {
    float y = c[n - 1];
    for (int i = n - 2; i >= 0; i--) y = multiply_add(y, x, c[i]);
    return y;
}

/* 2^k for a k that is stored as a word. */
static inline float power_of_two(uint32_t k) {
    float_bits b;
    b.word = (k + 127) << 23;
    return b.number;
}

/* exp(x + low) for |low| << 1: with x = k ln 2 + r, (1 + r + r^2 Q(r)) 2^k, in two steps so that
 * results below the normal numbers are rounded once. */
static inline float exp_with(float x, float low) {
    x = within(x, EXP_LOWEST, 89.0f);
    float_bits rounded = { multiply_add(x, 0x1.715476p0f, ROUND) }, start = { ROUND };
    float k = rounded.number - ROUND;
    float r = multiply_add(k, -0x1.0bfbe8p-15f, multiply_add(k, -0x1.62ep-1f, x)) + low;
    float p = multiply_add(r * r, polynomial(r, exp_q, 5), r);
    uint32_t n = rounded.word - start.word, half = ((n + 4096) >> 1) - 2048;
    return (1.0f + p) * power_of_two(half) * power_of_two(n - half);
}

static inline float exp_of(float x) {
    return exp_with(x, 0.0f);
}

/* exp(x) for x <= 0, to 1 ulp; 0 below the normal numbers. For the weights of attention. */
static inline float exp_below(float x) {
    float_bits rounded = { multiply_add(x, 0x1.715476p0f, ROUND) }, start = { ROUND };
    float k = rounded.number - ROUND;
    float r = multiply_add(k, -0x1.0bfbe8p-15f, multiply_add(k, -0x1.62ep-1f, x));
    float y = multiply_add(polynomial(r, exp_q, 5), r, 1.0f);
    y = multiply_add(y, r, 1.0f);
    return x < -87.0f ? 0.0f : y * power_of_two(rounded.word - start.word);
}

/* x = 2^k m with sqrt(1/2) <= m < sqrt(2): returns k, *f = m - 1. */
static inline float log_reduce(float x, float *f) {
    uint32_t subnormal = x < 0x1p-126f ? 23 : 0;
    float_bits one = { 1.0f }, half = { 0.70710678118654752440f }, round = { ROUND };
    float_bits scaled = { subnormal ? x * 8388608.0f : x }, m, k;
    uint32_t shifted = scaled.word + (one.word - half.word);
    m.word = (shifted & UINT32_C(0x7fffff)) + half.word;
    k.word = (shifted >> 23) - 127 - subnormal + round.word;
    *f = m.number - 1.0f;
    return k.number - ROUND;
}

/* y, the logarithm of x, corrected where x is 0, negative, infinite or NaN. */
static inline float log_ends(float x, float y) {
    float_bits infinity;
    infinity.word = UINT32_C(0x7f800000);
    if (x == 0.0f) return -infinity.number;
    if (x < 0.0f) return infinity.number - infinity.number;
    return x == infinity.number || x != x ? x : y;
}

/* log(x) + low */
static inline float log_with(float x, float low) {
    float f, exponent = log_reduce(x, &f);
    float s = f / (2.0f + f), z = s * s, half_square = 0.5f * f * f;
    float inner = multiply_add(z, polynomial(z, log_r, 3), half_square);
    float rest = multiply_add(s, inner, exponent * 0x1.0bfbe8p-15f) + low;
    return log_ends(x, multiply_add(exponent, 0x1.62ep-1f, f - (half_square - rest)));
}

static inline float log_of(float x) {
    float f, exponent = log_reduce(x, &f);
    float s = f / (2.0f + f), z = s * s, half_square = 0.5f * f * f;
    float inner = multiply_add(z, polynomial(z, log_r, 3), half_square);
    float rest = multiply_add(s, inner, exponent * 0x1.0bfbe8p-15f);
    return log_ends(x, multiply_add(exponent, 0x1.62ep-1f, f - (half_square - rest)));
}

/* 1 - 2 / (exp(2|x|) + 1), or a polynomial where that would cancel. */
static inline float tanh_of(float x) {
    float size = abs_of(x), z = x * x;
    float small = multiply_add(x, z * polynomial(z, tanh_p, 5), x);
    float large = 1.0f - 2.0f / (exp_of(2.0f * size) + 1.0f);
    return with_sign(size < 0.625f ? small : large, x);
}

static inline float sigmoid_of(float x) {
    float e = exp_of(-abs_of(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

/* s (1 - s) for s = sigmoid(x) */
static inline float sigmoid_slope(float x) {
    float e = exp_of(-abs_of(x));
    return e / ((1.0f + e) * (1.0f + e));
}

static inline float within_exp(float x) {
    return within(x, EXP_LOWEST, -EXP_LOWEST);
}

static inline float silu_slope_of(float x) {
    return multiply_add(within_exp(x), sigmoid_slope(x), sigmoid_of(x));
}

/* exp(-x^2 scale), scale 1 or 1/2: the upper half of x's digits has an exact square. */
static inline float exp_minus_square(float x, float scale) {
    float_bits h = { x };
    h.word &= ~UINT32_C(0xfff);
    return exp_with(-scale * h.number * h.number, -scale * (x - h.number) * (x + h.number));
}

/* The probability that a normal variable is above u >= 0, divided by exp(-u^2 / 2). */
static inline float scaled_tail(float u) {
    float w = 1.0f / (u + 4.0f);
    return w * polynomial((u - 4.0f) * w, tail_p, 10);
}

static inline float erf_of(float x) {
    float size = abs_of(x), z = x * x;
    size = lower(TAIL_HIGHEST / 2.0f, size);
    float small = multiply_add(x, polynomial(z, erf_p, 7), x);
    float tail = scaled_tail(size * 1.41421356237309504880f);
    float large = multiply_add(-2.0f * exp_minus_square(size, 1.0f), tail, 1.0f);
    return size < 1.0f ? small : with_sign(large, x);
}

/* The probability of a value below x of a normal variable; *density at x. */
static inline float normal_below(float x, float *density) {
    float at = within(x, -TAIL_HIGHEST, TAIL_HIGHEST), e = exp_minus_square(at, 0.5f);
    float tail = e * scaled_tail(abs_of(at));
    *density = e * 0.39894228040143267794f;
    return x < 0.0f ? tail : 1.0f - tail;
}

static inline float gelu_of(float x) {
    float density, below = normal_below(x, &density);
    return higher(-TAIL_HIGHEST, x) * below;
}

static inline float gelu_slope_of(float x) {
    float density, below = normal_below(x, &density);
    return multiply_add(within(x, -TAIL_HIGHEST, TAIL_HIGHEST), density, below);
}

/* gelu_tanh(x) = x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)) */
static inline float gelu_tanh_of(float x) {
    float t = higher(EXP_LOWEST, x), bend = 0.044715f * t;
    return t * sigmoid_of(1.5957691216057307117f * t * multiply_add(bend, t, 1.0f));
}

static inline float gelu_tanh_slope_of(float x) {
    float t = within_exp(x), bend = 0.044715f * t;
    float u = 1.5957691216057307117f * t * multiply_add(bend, t, 1.0f);
    float inner = 1.5957691216057307117f * multiply_add(3.0f * 0.044715f * t, t, 1.0f);
    return multiply_add(t * sigmoid_slope(u), inner, sigmoid_of(u));
}

/* ---- a logarithm in double ---------------------------------------------------------------- */

/* a b + c in double, rounded once: the processor's instruction, or in integers of 128 bits. */
#if defined __FP_FAST_FMA || defined __FMA__ || defined __aarch64__
static inline double multiply_add_double(double a, double b, double c) {
    return __builtin_fma(a, b, c);
}
#else
/* high 2^64 + low */
typedef struct wide {
    uint64_t high, low;
} wide;
static wide wide_left(wide x, int n) {
    if (n >= 64) return (wide){ x.low << (n - 64), 0 };
    if (n > 0) x.high = x.high << n | x.low >> (64 - n);
    x.low <<= n;
    return x;
}
/* x 2^-n; its last bit is 1 if a lost bit is 1. */
static wide wide_right(wide x, int n) {
    if (n == 0) return x;
    if (n >= 128) return (wide){ 0, x.high || x.low };
    wide y = { n >= 64 ? 0 : x.high >> n, n >= 64 ? x.high >> (n - 64) : x.low >> n };
    if (n < 64) y.low |= x.high << (64 - n);
    wide back = wide_left(y, n);
    y.low |= back.high != x.high || back.low != x.low;
    return y;
}
static int wide_less(wide a, wide b) {
    return a.high < b.high || (a.high == b.high && a.low < b.low);
}
static wide wide_sum(wide a, wide b) {
    wide sum = { a.high + b.high, a.low + b.low };
    sum.high += sum.low < a.low;
    return sum;
}
static wide wide_difference(wide a, wide b) {
    return (wide){ a.high - b.high - (a.low < b.low), a.low - b.low };
}
static wide wide_product(uint64_t a, uint64_t b) {
    const uint64_t half = UINT64_C(0xffffffff);
    uint64_t low = (a & half) * (b & half), high = (a >> 32) * (b >> 32);
    uint64_t one = (a >> 32) * (b & half), other = (a & half) * (b >> 32);
    uint64_t middle = (low >> 32) + (one & half) + (other & half);
    return (wide){ high + (one >> 32) + (other >> 32) + (middle >> 32),
                   middle << 32 | (low & half) };
}
/* |x| = the result 2^exponent, which has 53 bits; x is neither 0, infinite nor NaN. */
static uint64_t digits_of(double x, int *exponent) {
    double_bits b = { x };
    uint64_t digits = b.word & UINT64_C(0xfffffffffffff);
    *exponent = (int)(b.word >> 52 & 0x7ff) - 1075;
    if (*exponent > -1075) return digits | UINT64_C(0x10000000000000);
    for (*exponent = -1074; !(digits >> 52); digits *= 2) --*exponent;
    return digits;
}
/* x 2^exponent, x not 0, rounded to the nearest double, halves to even. */
static uint64_t round_wide(wide x, int exponent) {
    int top = x.high ? 64 : 0;
    for (uint64_t left = x.high ? x.high : x.low; left >>= 1;) top++;
    int e = exponent + top, digits = e < -1022 ? 53 + 1022 + e : 53, lost = top + 1 - digits;
    if (e > 1023) return UINT64_C(0x7ff0000000000000);
    if (digits < 0) return 0;
    wide whole = x;
    if (lost <= 0) {
        whole = wide_left(x, -lost);
    } else {
        wide half = wide_left((wide){ 0, 1 }, lost - 1);
        whole.high = 0;
        whole.low = lost >= 64 ? x.high : x.high << (64 - lost) | x.low >> lost;
        if (lost > 64) whole.low >>= lost - 64;
        wide rest = wide_difference(x, wide_left(whole, lost));
        int tie = rest.high == half.high && rest.low == half.low;
        whole.low += tie ? whole.low & 1 : (uint64_t)!wide_less(rest, half);
    }
    return e < -1022 ? whole.low : ((uint64_t)(e + 1022) << 52) + whole.low;
}
/* Both terms are placed below 2^126, so that the smaller one
 * loses no bit that a difference could bring up. */
static double multiply_add_double(double a, double b, double c) {
    int finite = a - a == 0 && b - b == 0, ea, eb, ec;
    if (finite && !(c - c == 0)) return c;
    if (!finite || a == 0 || b == 0) return a * b + c;
    if (c == 0) return a * b;
    uint64_t ma = digits_of(a, &ea), mb = digits_of(b, &eb), mc = digits_of(c, &ec);
    wide product = wide_left(wide_product(ma, mb), 20), term = wide_left((wide){ 0, mc }, 73);
    int e = ea + eb - 20, apart = e - (ec - 73);
    if (apart > 0) term = wide_right(term, apart);
    if (apart < 0) {
        product = wide_right(product, -apart);
        e -= apart;
    }
    double_bits of_a = { a }, of_b = { b }, of_c = { c }, y;
    uint64_t sign = (of_a.word ^ of_b.word) >> 63, sign_c = of_c.word >> 63;
    wide sum = wide_sum(product, term);
    if (sign != sign_c) {
        int less = wide_less(product, term);
        sum = less ? wide_difference(term, product) : wide_difference(product, term);
        sign = less ? sign_c : sign;
    }
    if (!sum.high && !sum.low) return 0;
    y.word = round_wide(sum, e) | sign << 63;
    return y.number;
}
#endif

static const double log_r_double[] = { 0x1.5555555555562p-1, 0x1.999999998e359p-2,
                                       0x1.24924936577c1p-2, 0x1.c71c5ac69fabcp-3,
                                       0x1.746490c79c6adp-3, 0x1.39cab039332cbp-3,
                                       0x1.2d7cf9205da62p-3 };

/* The logarithm of a double that is a normal number above 0, or infinite or NaN. */
static double log_in_double(double x) {
    double_bits one = { 1.0 }, half = { 0.70710678118654752440 }, round = { 0x1.8p52 }, m, k;
    double_bits scaled = { x };
    if (x - x != 0) return x;
    uint64_t shifted = scaled.word + (one.word - half.word);
    m.word = (shifted & UINT64_C(0xfffffffffffff)) + half.word;
    k.word = (shifted >> 52) - 1023 + round.word;
    double f = m.number - 1.0, exponent = k.number - 0x1.8p52;
    double s = f / (2.0 + f), z = s * s, half_square = 0.5 * f * f, p = log_r_double[6];
    for (int i = 5; i >= 0; i--) p = multiply_add_double(p, z, log_r_double[i]);
    double inner = multiply_add_double(z, p, half_square);
    double rest = multiply_add_double(s, inner, exponent * 0x1.cf79abc9e3b3ap-40);
    return multiply_add_double(exponent, 0x1.62e42fefap-1, f - (half_square - rest));
}

/* ---- sums: 64 lanes, then a tree ---------------------------------------------------------- */

/* The lanes of a block as one number: four lines of 16 become one, in double, and this one number
 * by halves. */
static double sum_of_lanes(const float lane[64]) {
    double d[16];
    for (int i = 0; i < 16; i++)
        d[i] = (double)((lane[i] + lane[i + 16]) + (lane[i + 32] + lane[i + 48]));
    for (int apart = 8; apart >= 1; apart /= 2)
        for (int i = 0; i < apart; i++) d[i] += d[i + apart];
    return d[0];
}

/* The sum of n elements. */
static double sum(int n, const float *x) {
    double total = 0;
    for (int start = 0; start < n; start += 4096) {
        int end = n - start < 4096 ? n : start + 4096, i = start;
        float lane[64] = { 0 };
        for (; end - i >= 64; i += 64)
            for (int j = 0; j < 64; j++) lane[j] += x[i + j];
        for (int j = 0; i + j < end; j++) lane[j] += x[i + j];
        total += sum_of_lanes(lane);
    }
    return total;
}

/* The sum of x y. */
static double dot(int n, const float *x, const float *y) {
    double total = 0;
    for (int start = 0; start < n; start += 4096) {
        int end = n - start < 4096 ? n : start + 4096, i = start;
        float lane[64] = { 0 };
        for (; end - i >= 64; i += 64)
            for (int j = 0; j < 64; j++) lane[j] = multiply_add(x[i + j], y[i + j], lane[j]);
        for (int j = 0; i + j < end; j++) lane[j] = multiply_add(x[i + j], y[i + j], lane[j]);
        total += sum_of_lanes(lane);
    }
    return total;
}

/* The sum of (x - from)^2. */
static double squares(int n, const float *x, float from) {
    double total = 0;
    for (int start = 0; start < n; start += 4096) {
        int end = n - start < 4096 ? n : start + 4096;
        float lane[64] = { 0 };
        for (int i = start; i < end; i += 64)
            for (int j = 0; j < 64 && i + j < end; j++)
                lane[j] = multiply_add(x[i + j] - from, x[i + j] - from, lane[j]);
        total += sum_of_lanes(lane);
    }
    return total;
}

/* The sum of (w y) (x - from); w 0: ones. */
static double weighted_dot(int n, const float *w, const float *y, const float *x, float from) {
    double total = 0;
    for (int start = 0; start < n; start += 4096) {
        int end = n - start < 4096 ? n : start + 4096;
        float lane[64] = { 0 };
        for (int i = start; i < end; i += 64)
            for (int j = 0; j < 64 && i + j < end; j++) {
                float g = (w ? w[i + j] : 1.0f) * y[i + j];
                lane[j] = multiply_add(g, x[i + j] - from, lane[j]);
            }
        total += sum_of_lanes(lane);
    }
    return total;
}

/* The sum of exp(x - from). */
static double sum_of_exp(int n, const float *x, float from) {
    double total = 0;
    for (int start = 0; start < n; start += 4096) {
        int end = n - start < 4096 ? n : start + 4096;
        float lane[64] = { 0 };
        for (int i = start; i < end; i += 64)
            for (int j = 0; j < 64 && i + j < end; j++) lane[j] += exp_of(x[i + j] - from);
        total += sum_of_lanes(lane);
    }
    return total;
}

/* The sum of x - from. */
static double sum_of_differences(int n, const float *x, float from) {
    double total = 0;
    for (int start = 0; start < n; start += 4096) {
        int end = n - start < 4096 ? n : start + 4096;
        float lane[64] = { 0 };
        for (int i = start; i < end; i += 64)
            for (int j = 0; j < 64 && i + j < end; j++) lane[j] += x[i + j] - from;
        total += sum_of_lanes(lane);
    }
    return total;
}

/* The largest of n elements of sign x, sign 1 or -1; NaN if one is. For n = 0 it is -inf. */
static float largest(int n, const float *x, float sign) {
    float_bits infinity;
    float top[64];
    infinity.word = UINT32_C(0x7f800000);
    for (int j = 0; j < 64; j++) top[j] = -infinity.number;
    for (int i = 0; i < n; i += 64)
        for (int j = 0; j < 64 && i + j < n; j++) top[j] = max_of(sign * x[i + j], top[j]);
    for (int j = 0; j < 16; j++)
        top[j] = max_of(max_of(top[j], top[j + 16]), max_of(top[j + 32], top[j + 48]));
    for (int apart = 8; apart >= 1; apart /= 2)
        for (int j = 0; j < apart; j++) top[j] = max_of(top[j], top[j + apart]);
    return top[0];
}

/* The largest of n elements, with sign -1 minus the smallest, in blocks of 4096. */
static float extreme(int n, const float *x, float sign) {
    float top = largest(n < 4096 ? n : 4096, x, sign);
    for (int i = 4096; i < n; i += 4096) {
        float part = largest(n - i < 4096 ? n - i : 4096, x + i, sign);
        top = part != part || part > top ? part : top;
    }
    return top;
}

/* ---- products ----------------------------------------------------------------------------- */

/* y[i, j] = d[i, j] + the sum over k of a[i, k] b[k, j], for rows <= 6 and columns <= 16: each
 * element is one chain of multiply-adds over k. d 0: zeros; d may be y. */
static void product_tile(int rows, int columns, int n, const float *a, int a_row, int a_column,
                         const float *b, int b_row, const float *d, int d_row, float *y,
                         int y_row) {
    float sum[6][16] = { { 0 } };
    for (int i = 0; d && i < rows; i++)
        for (int j = 0; j < columns; j++) sum[i][j] = d[i * d_row + j];
    if (rows == 6 && columns == 16)
        for (int k = 0; k < n; k++)
            for (int i = 0; i < 6; i++)
                for (int j = 0; j < 16; j++)
                    sum[i][j] =
                        multiply_add(a[i * a_row + k * a_column], b[k * b_row + j], sum[i][j]);
    else
        for (int k = 0; k < n; k++)
            for (int i = 0; i < rows; i++)
                for (int j = 0; j < columns; j++)
                    sum[i][j] =
                        multiply_add(a[i * a_row + k * a_column], b[k * b_row + j], sum[i][j]);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) y[i * y_row + j] = sum[i][j];
}

/* y [m, n] = a [m, p] b [p, n] + d, with any strides of a and b: 64 rows of 16 columns of b at a
 * time are copied to panel, 1024 floats. d_row 0: one row for all. */
static void product(int m, int n, int p, const float *a, int a_row, int a_column, const float *b,
                    int b_row, int b_column, const float *d, int d_row, float *y, int y_row,
                    float *panel) {
    for (int j = 0; j < n; j += 16) {
        int columns = n - j < 16 ? n - j : 16;
        for (int k = 0; k == 0 || k < p; k += 64) {
            int depth = p - k < 64 ? p - k : 64;
            for (int r = 0; r < depth; r++)
                for (int c = 0; c < columns; c++)
                    panel[r * 16 + c] = b[(k + r) * b_row + (j + c) * b_column];
            for (int i = 0; i < m; i += 6) {
                const float *start = k ? y + i * y_row + j : 0;
                if (!k && d) start = d + i * d_row + j;
                product_tile(m - i < 6 ? m - i : 6, columns, depth, a + i * a_row + k * a_column,
                             a_row, a_column, panel, 16, start, k ? y_row : d_row,
                             y + i * y_row + j, y_row);
            }
        }
    }
}

/* ---- rows: softmax, normalisation --------------------------------------------------------- */

/* y = softmax of the first `open` of n columns where mask (0: none) is not 0; the rest is 0. */
static void softmax_row(int n, int open, const float *x, const float *mask, int mask_step,
                        float *y) {
    float_bits infinity;
    infinity.word = UINT32_C(0x7f800000);
    float top = -infinity.number;
    if (open < 0) open = 0;
    if (open > n) open = n;
    for (int i = 0; i < open; i++)
        if (!mask || mask[i * mask_step] != 0) top = max_of(x[i], top);
    if (top == -infinity.number) open = 0;
    for (int i = 0; i < open; i++)
        y[i] = !mask || mask[i * mask_step] != 0 ? exp_of(x[i] - top) : 0.0f;
    float by = (float)(1 / sum(open, y));
    for (int i = 0; i < open; i++) y[i] = multiply_add(by, y[i], 0.0f);
    for (int i = open; i < n; i++) y[i] = 0;
}

/* The row of a layer or RMS norm whose sums overflow, in double and scaled. */
static void wide_row(int n, const float *x, int centred, const float *weight, const float *bias,
                     double eps, float *y, float *mean, float *rstd) {
    double centre = 0, total = 0, s = 0x1p-540;
    for (int i = 0; centred && i < n; i++) centre += (double)x[i] * s / (double)n;
    for (int i = 0; i < n; i++) {
        double d = (double)x[i] * s - centre;
        total += d * d;
    }
    double by = 1 / root_in_double(total / (double)n + eps * s * s);
    if (!(by > 0)) by = by - by;
    if (mean) *mean = (float)(centre / s);
    *rstd = (float)(by * s);
    for (int i = 0; i < n; i++) {
        double normed = ((double)x[i] * s - centre) * by;
        y[i] = (float)(normed * (weight ? (double)weight[i] : 1) + (bias ? (double)bias[i] : 0));
    }
}

/* y = (x - mean) rstd weight + bias; weight or bias may be 0. y may be x. */
static void layer_norm_row(int n, const float *x, const float *weight, const float *bias,
                           double eps, float *y, float *mean, float *rstd) {
    float centre = (float)(sum(n, x) / (double)n);
    double total = squares(n, x, centre);
    float by = (float)(1 / root_in_double(total / (double)n + eps));
    *mean = centre;
    *rstd = by;
    if (!(total <= 0x1p1020)) {
        wide_row(n, x, 1, weight, bias, eps, y, mean, rstd);
        return;
    }
    for (int i = 0; i < n; i++) {
        float normed = (x[i] - centre) * by, w = weight ? weight[i] : 1.0f;
        y[i] = bias ? multiply_add(normed, w, bias[i]) : normed * w;
    }
}

/* dx = rstd (g - mean(g) - h mean(g h)), with g = dy weight and h = (x - mean) rstd. */
static void layer_norm_backward_row(int n, const float *x, const float *weight, float mean,
                                    float rstd, const float *dy, float *dx) {
    double total = 0, scale = (double)rstd;
    if (weight)
        total = dot(n, weight, dy);
    else
        total = sum(n, dy);
    double product = weighted_dot(n, weight, dy, x, mean);
    float g_mean = (float)(total / (double)n);
    float along = (float)(product / (double)n * scale * scale);
    for (int i = 0; i < n; i++) {
        float g = multiply_add(weight ? weight[i] : 1.0f, dy[i], -g_mean);
        dx[i] = rstd * multiply_add(x[i] - mean, -along, g);
    }
}

/* y = x rstd weight, with rstd = 1 / sqrt(mean(x^2) + eps). */
static void rms_norm_row(int n, const float *x, const float *weight, double eps, float *y,
                         float *rstd) {
    double total = squares(n, x, 0.0f);
    float by = (float)(1 / root_in_double(total / (double)n + eps));
    *rstd = by;
    if (!(total <= 0x1p1020)) {
        wide_row(n, x, 0, weight, 0, eps, y, 0, rstd);
        return;
    }
    for (int i = 0; i < n; i++) y[i] = x[i] * by * (weight ? weight[i] : 1.0f);
}

/* log(sum exp(x)) = the result + *log_total. */
static float log_sum_exp(int n, const float *x, double *log_total) {
    float top = largest(n, x, 1.0f);
    *log_total = top - top == 0 ? log_in_double(sum_of_exp(n, x, top)) : 0;
    return top;
}

/* ---- random bits -------------------------------------------------------------------------- */

/* The last step of splitmix64. */
static uint64_t mix(uint64_t h) {
    h = (h ^ (h >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94D049BB133111EB);
    return h ^ (h >> 31);
}

/* Four words of random bits: Philox4x32-10 (Salmon et al. 2011). */
static void philox(uint64_t key, uint64_t counter, uint64_t stream, uint32_t word[4]) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32), x0 = (uint32_t)counter,
             x1 = (uint32_t)(counter >> 32), x2 = (uint32_t)stream, x3 = (uint32_t)(stream >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = UINT64_C(0xD2511F53) * x0, p1 = UINT64_C(0xCD9E8D57) * x2;
        uint32_t y0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0, y2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
        x1 = (uint32_t)p1;
        x3 = (uint32_t)p0;
        x0 = y0;
        x2 = y2;
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    word[0] = x0;
    word[1] = x1;
    word[2] = x2;
    word[3] = x3;
}

/* x where element `first` + i of the stream's half words is below the threshold, times scale; else
 * 0. y may be x. */
static void dropout(int n, const float *x, float scale, uint32_t threshold, uint64_t key,
                    uint64_t stream, uint64_t first, float *y) {
    uint32_t word[4];
    uint64_t last = UINT64_MAX;
    for (int i = 0; i < n; i++) {
        uint64_t e = first + (uint64_t)i;
        if (e / 8 != last) philox(key, e / 8, stream, word);
        last = e / 8;
        uint32_t half = word[e / 2 % 4] >> (e % 2 ? 16 : 0) & 0xffff;
        y[i] = half < threshold ? x[i] * scale : 0.0f;
    }
}

/* ---- attention ---------------------------------------------------------------------------- */

/* A matrix: element (i, j) lies at data[i row + j column]. */
typedef struct matrix {
    float *data;
    int row, column;
} matrix;

static inline float element(const matrix *x, int i, int j) {
    return x->data[i * x->row + j * x->column];
}

/* One head: q [queries, k_width], k [keys, k_width], v [keys, v_width], y as q but v_width wide.
 * stats [2, queries]: the largest score of a query and 1 / the sum of its exponentials. mask: data
 * 0 for none; compared with 0, or added if additive. window 0: all keys. A weight is kept where a
 * half word of random bits is below the threshold. adds: dk and dv are added to what is there. */
typedef struct head {
    int queries, keys, k_width, v_width, window, causal, additive, drops, adds;
    float scale, keep_scale;
    uint32_t threshold;
    uint64_t key, stream, element;
    matrix q, k, v, mask, y, stats, dy, dq, dk, dv;
} head;

/* The keys before the padding at the end that one mask shuts for all queries. */
static int keys_in_use(const head *h) {
    float_bits infinity;
    int n = h->keys;
    infinity.word = UINT32_C(0x7f800000);
    if (!h->mask.data || (h->mask.row != 0 && h->queries > 1)) return n;
    for (; n > 0; n--) {
        float m = element(&h->mask, 0, n - 1);
        if (h->additive ? m != -infinity.number : m != 0) break;
    }
    return n;
}

/* Query t sees keys [*from, *to) of the first n. */
static void keys_of_query(const head *h, int t, int n, int *from, int *to) {
    int last = t + h->keys - h->queries;
    *to = h->causal && last + 1 < n ? last + 1 : n;
    *from = h->window > 0 && last - h->window + 1 > 0 ? last - h->window + 1 : 0;
    if (*to < 0) *to = 0;
    if (*from > *to) *from = *to;
}

/* at [width, n] = scale times the transpose of rows [from, from + n) of x. */
static void turn(const matrix *x, int from, int n, int width, float scale, float *at) {
    for (int j = 0; j < width; j++)
        for (int s = 0; s < n; s++) at[j * n + s] = scale * element(x, from + s, j);
}

/* score[s] = row t of q times column s of kt [width, n]. */
static void scores_of(const matrix *q, int t, int width, int n, const float *kt, float *score) {
    for (int s = 0; s < n; s++) score[s] = 0;
    for (int j = 0; j < width; j++) {
        float x = element(q, t, j);
        for (int s = 0; s < n; s++) score[s] = multiply_add(x, kt[j * n + s], score[s]);
    }
}

/* -inf where query t does not see keys [first, first + n), or where the mask shuts them. */
static void mask_scores(const head *h, int t, int first, int n, int from, int to, float *score) {
    float_bits infinity;
    infinity.word = UINT32_C(0x7f800000);
    for (int s = 0; s < n; s++) {
        int key = first + s;
        float m = h->mask.data ? element(&h->mask, t, key) : 1.0f;
        if (h->mask.data && h->additive) score[s] += m;
        if (key < from || key >= to || (!h->additive && m == 0)) score[s] = -infinity.number;
    }
}

static int is_kept(const head *h, int t, int s) {
    uint32_t word[4];
    uint64_t e = h->element + (uint64_t)t * (uint64_t)h->keys + (uint64_t)s;
    if (!h->drops) return 1;
    philox(h->key, e / 8, h->stream, word);
    return (word[e / 2 % 4] >> (e % 2 ? 16 : 0) & 0xffff) < h->threshold;
}

/* The sum of a line of 16 lanes, by halves. */
static float sum_of_line(const float lane[16]) {
    float sum[16];
    for (int i = 0; i < 16; i++) sum[i] = lane[i];
    for (int apart = 8; apart >= 1; apart /= 2)
        for (int i = 0; i < apart; i++) sum[i] += sum[i + apart];
    return sum[0];
}

/* Query t and the keys [first, first + n): y becomes y less + p v, total likewise; score has n
 * scores on entry. */
static void attend(const head *h, int t, int first, int n, int from, int to, float *score,
                   float *top, float *total) {
    float *y = h->y.data + t * h->y.row, lane[16] = { 0 }, high = *top, shift;
    float_bits infinity;
    infinity.word = UINT32_C(0x7f800000);
    for (int s = 0; s < n; s++) high = score[s] > high ? score[s] : high;
    if (high > *top && first > 0) {
        float less = exp_below(*top - high);
        for (int j = 0; j < h->v_width; j++) y[j] *= less;
        *total *= less;
    }
    *top = high;
    shift = high == -infinity.number ? 0.0f : high;
    for (int s = 0; s < n; s++) {
        score[s] = exp_below(score[s] - shift);
        lane[s % 16] += score[s];
    }
    for (int s = from > first ? from - first : 0; s < n && first + s < to; s++) {
        float p = is_kept(h, t, first + s) ? score[s] : 0.0f;
        const float *v = h->v.data + (first + s) * h->v.row;
        for (int j = 0; j < h->v_width; j++) y[j] = multiply_add(p, v[j * h->v.column], y[j]);
    }
    *total += sum_of_line(lane);
}

/* y = dropout(softmax(scale q k^T, masked)) v, keys in blocks of 128. scratch: 128 (k_width + 1) +
 * 2 queries floats. */
static void attention_head(const head *h, float *scratch) {
    float *kt = scratch, *score = kt + 128 * h->k_width, *top = score + 128;
    float *total = top + h->queries;
    float_bits infinity;
    int end = keys_in_use(h), from, to;
    infinity.word = UINT32_C(0x7f800000);
    for (int t = 0; t < h->queries; t++) {
        top[t] = -infinity.number;
        total[t] = 0;
        for (int j = 0; j < h->v_width; j++) h->y.data[t * h->y.row + j] = 0;
    }
    for (int first = 0; first < end; first += 128) {
        int n = end - first < 128 ? end - first : 128;
        turn(&h->k, first, n, h->k_width, h->scale, kt);
        for (int t = 0; t < h->queries; t++) {
            keys_of_query(h, t, end, &from, &to);
            if (to <= first) continue;
            scores_of(&h->q, t, h->k_width, n, kt, score);
            mask_scores(h, t, first, n, from, to, score);
            attend(h, t, first, n, from, to, score, &top[t], &total[t]);
        }
    }
    for (int t = 0; t < h->queries; t++) {
        float *stats = h->stats.data + t, inverse = total[t] == 0 ? 0.0f : 1 / total[t];
        float by = h->drops ? inverse * h->keep_scale : inverse;
        stats[0] = top[t] == -infinity.number ? 0.0f : top[t] + 0.0f;
        if (total[t] != total[t]) stats[0] = total[t];
        stats[h->stats.row] = inverse;
        for (int j = 0; j < h->v_width; j++) h->y.data[t * h->y.row + j] *= by;
    }
}

/* The weights p of query t after dropout, and ds, for n keys of which it sees [from, to). p has
 * scores on entry, ds the products of dy and v. */
static void weights_of_query(const head *h, int t, int n, float *p, float *ds) {
    float_bits infinity;
    float lane[16] = { 0 }, top = h->stats.data[t], inverse = h->stats.data[h->stats.row + t];
    float scale = h->drops ? h->keep_scale : 1.0f;
    infinity.word = UINT32_C(0x7f800000);
    for (int j = 0; j < h->v_width; j++)
        lane[j % 16] = multiply_add(element(&h->dy, t, j), element(&h->y, t, j), lane[j % 16]);
    float delta = sum_of_line(lane);
    for (int s = 0; s < n; s++) {
        float weight = inverse * exp_below(p[s] - top);
        int kept = is_kept(h, t, s);
        float dp = kept ? ds[s] * scale : 0.0f;
        ds[s] = p[s] != -infinity.number ? weight * (dp - delta) : 0.0f;
        p[s] = kept ? weight * scale : 0.0f;
    }
}

/* dq, dk and dv of a head. scratch: keys (k_width + v_width + 2) floats. */
static void attention_head_backward(const head *h, float *scratch) {
    int n = keys_in_use(h), from, to;
    float *kt = scratch, *vt = kt + n * h->k_width, *p = vt + n * h->v_width, *ds = p + n;
    turn(&h->k, 0, n, h->k_width, h->scale, kt);
    turn(&h->v, 0, n, h->v_width, 1.0f, vt);
    for (int s = 0; !h->adds && s < h->keys; s++) {
        for (int j = 0; j < h->k_width; j++) h->dk.data[s * h->dk.row + j] = 0;
        for (int j = 0; j < h->v_width; j++) h->dv.data[s * h->dv.row + j] = 0;
    }
    for (int t = 0; t < h->queries; t++) {
        float *dq = h->dq.data + t * h->dq.row;
        for (int j = 0; j < h->k_width; j++) dq[j] = 0;
        keys_of_query(h, t, n, &from, &to);
        scores_of(&h->q, t, h->k_width, n, kt, p);
        scores_of(&h->dy, t, h->v_width, n, vt, ds);
        mask_scores(h, t, 0, n, from, to, p);
        weights_of_query(h, t, n, p, ds);
        for (int s = from; s < to; s++) {
            float *dk = h->dk.data + s * h->dk.row, *dv = h->dv.data + s * h->dv.row;
            for (int j = 0; j < h->k_width; j++) {
                dq[j] = multiply_add(ds[s], h->scale * element(&h->k, s, j), dq[j]);
                dk[j] = multiply_add(ds[s], h->scale * element(&h->q, t, j), dk[j]);
            }
            for (int j = 0; j < h->v_width; j++)
                dv[j] = multiply_add(p[s], element(&h->dy, t, j), dv[j]);
        }
    }
}

/* ---- updates ------------------------------------------------------------------------------ */

/* x, or 0 if it is below the normal numbers. */
static inline float faded(float x) {
    return abs_of(x) < 0x1p-126f ? 0.0f : x;
}
