/* ops/emit/plain_power.c - powers in double for emitted files, which an optimizer needs for its
 * step. See plain_numbers.c. */

/* ---- a power in double -------------------------------------------------------------------- */

static const double pow_p_double[] = { 0x1.9999999999999p-2, 0x1.249249249261bp-2,
                                       0x1.c71c71c6b6cb2p-3, 0x1.745d179dcb99bp-3,
                                       0x1.3b1389e9a7e79p-3, 0x1.111ae7d852f59p-3,
                                       0x1.df1abf7c590d4p-4, 0x1.e3b2829f4da2ep-4 };

static const double exp_q_double[] = { 0x1.0000000000005p-1,  0x1.555555555555dp-3,
                                       0x1.5555555551dddp-5,  0x1.111111110e27cp-7,
                                       0x1.6c16c18047c29p-10, 0x1.a01a01b757a72p-13,
                                       0x1.a019a31cb8e57p-16, 0x1.71dde6b4b598dp-19,
                                       0x1.28a6123e809c0p-22, 0x1.af7bcf5ed6512p-26 };

/* A number with more digits than a double holds, as a sum. `high` has half of a double's digits. */
typedef struct wide_sum_of {
    double high, low;
} wide_sum_of;

/* x without the lower half of its digits. */
static inline double high_half_double(double x) {
    double_bits b = { x };
    b.word &= ~UINT64_C(0x7ffffff);
    return b.number;
}

/* a + b for |a| >= |b|, or exact sums */
static inline wide_sum_of sum_in_two(double a, double b) {
    wide_sum_of s = { high_half_double(a + b), 0.0 };
    s.low = (a - s.high) + b;
    return s;
}

static inline wide_sum_of product_in_two(wide_sum_of a, wide_sum_of b) {
    double low = multiply_add_double(a.low, b.high, a.low * b.low);
    return sum_in_two(a.high * b.high, multiply_add_double(a.high, b.low, low));
}

/* a + b for |a| >= |b| or a = 0 */
static inline wide_sum_of total_in_two(wide_sum_of a, wide_sum_of b) {
    double sum = a.high + b.high, lost = b.high - (sum - a.high);
    return sum_in_two(sum, lost + (a.low + b.low));
}

/* log(x) of a normal number: k ln 2 + 2 s + 2/3 s z + s z^2 P(z), s = f / (2 + f), z = s^2. */
static wide_sum_of log_in_two(double x) {
    double_bits one = { 1.0 }, half = { 0.70710678118654752440 }, round = { 0x1.8p52 }, m, e;
    double_bits scaled = { x };
    uint64_t shifted = scaled.word + (one.word - half.word);
    m.word = (shifted & UINT64_C(0xfffffffffffff)) + half.word;
    e.word = (shifted >> 52) - 1023 + round.word;
    double f = m.number - 1.0, k = e.number - 0x1.8p52, sum = 2.0 + f;
    wide_sum_of two_thirds = sum_in_two(0.66666666666666666667, 0x1.5555555555555p-55);
    wide_sum_of d = sum_in_two(sum, f - (sum - 2.0)), s = { high_half_double(f / sum), 0.0 };
    double rest = multiply_add_double(-s.high, d.high, f);
    s.low = multiply_add_double(-s.high, d.low, rest) / sum;
    wide_sum_of z = product_in_two(s, s), cube = product_in_two(product_in_two(z, two_thirds), s);
    double square = z.high + z.low, p = pow_p_double[7];
    for (int i = 6; i >= 0; i--) p = multiply_add_double(p, square, pow_p_double[i]);
    cube.low = multiply_add_double((s.high + s.low) * square * square, p, cube.low);
    wide_sum_of log_m = total_in_two((wide_sum_of){ 2.0 * s.high, 2.0 * s.low }, cube);
    return total_in_two(sum_in_two(k * 0x1.62e42fefap-1, k * 0x1.cf79abc9e3b3ap-40), log_m);
}

/* 2^k for a k that is stored as a word. */
static inline double power_of_two_double(uint64_t k) {
    double_bits b;
    b.word = (k + 1023) << 52;
    return b.number;
}

/* exp(x + low) for x <= 0 and |low| << 1. */
static double exp_in_double(double x, double low) {
    if (x < -746.0) x = -746.0;
    double_bits rounded = { multiply_add_double(x, 0x1.71547652b82fep0, 0x1.8p52) };
    double_bits start = { 0x1.8p52 };
    double k = rounded.number - 0x1.8p52, q = exp_q_double[9];
    double near = multiply_add_double(k, -0x1.62e42fefap-1, x);
    double r = multiply_add_double(k, -0x1.cf79abc9e3b3ap-40, near) + low;
    for (int i = 8; i >= 0; i--) q = multiply_add_double(q, r, exp_q_double[i]);
    double p = multiply_add_double(r * r, q, r);
    uint64_t n = rounded.word - start.word, half = ((n + 4096) >> 1) - 2048;
    return (1.0 + p) * power_of_two_double(half) * power_of_two_double(n - half);
}

/* a^b for a that is 0 or a normal number below 1, and b >= 1. */
static double pow_in_double(double a, double b) {
    if (a == 0) return 0;
    wide_sum_of y = product_in_two(sum_in_two(b, 0.0), log_in_two(a));
    double x = y.high + y.low, low = y.low - (x - y.high);
    return exp_in_double(x, x > -1000.0 ? low : 0.0);
}
