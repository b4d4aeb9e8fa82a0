/* ops/emit/plain_numbers.c - the functions that emitted files call (core/emit/): the arithmetic of
 * ops/kernels/README.md for f32 in plain C11, one element after another. embed.sh makes text of
 * these files, in the order below; blank lines separate the blocks, each with one function, type or
 * macro that needs only those before it. Tests compile them, and compare them with the kernels to
 * the bit. No local array is initialised: a compiler would call memset.
 *
 * plain_numbers.c      single numbers: sums and products, roots, exponentials, logarithms
 * plain_double.c       a logarithm, sines and cosines in double
 * plain_power.c        powers in double, for the rates of optimizers
 * plain_functions.c    the other functions of one or two numbers, and of integers
 * plain_rows.c         sums, products of matrices, normalisation, random bits, order
 * plain_int8.c         products with weights in int8
 * plain_attention.c    attention and its gradient
 * plain_convolution.c  convolution and pooling */
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

/* RARE is for a function that is called rarely: compilers then do not put its code into loops. */
#ifdef __GNUC__
#define RARE __attribute__((noinline, cold))
#else
#define RARE
#endif

/* a b + c, rounded once: the processor's instruction, or computed in double, where the product is
 * exact. The sum is then rounded twice, to double and to float. That is wrong only where the double
 * is half way between two floats, or below the normal ones: there it is first rounded to odd. */
#if defined __FP_FAST_FMAF || defined __FMA__ || defined __aarch64__ || defined __ARM_FEATURE_FMA
static inline float multiply_add(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
#else
RARE static float round_to_odd(double product, double c, double sum) {
    double of_c = sum - product, lost = (product - (sum - of_c)) + (c - of_c);
    double_bits odd = { sum };
    if ((lost > 0 || lost < 0) && !(odd.word & 1)) {
        if ((lost > 0) == (sum > 0))
            odd.word++;
        else
            odd.word--;
    }
    return (float)odd.number;
}
static inline float multiply_add(float a, float b, float c) {
    double product = (double)a * (double)b;
    double_bits sum = { product + (double)c };
    uint32_t exponent = (uint32_t)(sum.word >> 52) & 0x7ff, rest = (uint32_t)sum.word & 0x1fffffff;
    /* A sum with exponent 0 is 0, exactly. */
    if (rest == 0x10000000 || exponent - 1 < 896)
        return round_to_odd(product, (double)c, sum.number);
    return (float)sum.number;
}
#endif

/* |size| with the sign of x. */
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
    float most = a > b ? a : b;
    return a != a ? a : most;
}

/* The smaller of two numbers; NaN if either is. */
static inline float min_of(float a, float b) {
    float least = a < b ? a : b;
    return a != a ? a : least;
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

#define ROUND 12582912.0f /* x + ROUND has x, rounded to an integer, in its low bits */
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

/* The probability that a standard normal variable is below x. *density becomes the density at x. */
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
