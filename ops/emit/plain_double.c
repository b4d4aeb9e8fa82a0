/* ops/emit/plain_double.c - logarithms, sines and cosines in double for emitted files.
 * See plain_numbers.c. */

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
static wide wide_of(uint64_t high, uint64_t low) {
    wide x;
    x.high = high;
    x.low = low;
    return x;
}
static wide wide_left(wide x, int n) {
    if (n >= 64) return wide_of(x.low << (n - 64), 0);
    if (n > 0) x.high = x.high << n | x.low >> (64 - n);
    x.low <<= n;
    return x;
}
/* x 2^-n; its last bit is 1 if a lost bit is 1. */
static wide wide_right(wide x, int n) {
    if (n == 0) return x;
    if (n >= 128) return wide_of(0, x.high || x.low);
    wide y = wide_of(n >= 64 ? 0 : x.high >> n, n >= 64 ? x.high >> (n - 64) : x.low >> n);
    if (n < 64) y.low |= x.high << (64 - n);
    wide back = wide_left(y, n);
    y.low |= back.high != x.high || back.low != x.low;
    return y;
}
static int wide_less(wide a, wide b) {
    return a.high < b.high || (a.high == b.high && a.low < b.low);
}
static wide wide_sum(wide a, wide b) {
    wide sum = wide_of(a.high + b.high, a.low + b.low);
    sum.high += sum.low < a.low;
    return sum;
}
static wide wide_difference(wide a, wide b) {
    return wide_of(a.high - b.high - (a.low < b.low), a.low - b.low);
}
static wide wide_product(uint64_t a, uint64_t b) {
    const uint64_t half = UINT64_C(0xffffffff);
    uint64_t low = (a & half) * (b & half), high = (a >> 32) * (b >> 32);
    uint64_t one = (a >> 32) * (b & half), other = (a & half) * (b >> 32);
    uint64_t middle = (low >> 32) + (one & half) + (other & half);
    return wide_of(high + (one >> 32) + (other >> 32) + (middle >> 32),
                   middle << 32 | (low & half));
}
/* The integer of 53 bits whose product with 2^exponent is |x|; x is neither 0, infinite nor NaN. */
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
        wide half = wide_left(wide_of(0, 1), lost - 1);
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
    wide product = wide_left(wide_product(ma, mb), 20), term = wide_left(wide_of(0, mc), 73);
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

/* ---- sine and cosine, in double ----------------------------------------------------------- */

/* x = n pi/2 + r + low. The last two bits of turns are those of n. */
typedef struct quarter {
    double r, low;
    uint64_t turns;
} quarter;

/* 2/pi: the bits after the point */
static const uint32_t two_over_pi[] = {
    0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561,
    0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484,
    0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f,
    0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b,
    0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab, 0xf0cfbc20, 0x9af4361d,
};

/* Bits [from, from + 32) of 2/pi after the point, where bits below 0 are 0. */
static uint64_t bits_of_two_over_pi(int from) {
    uint64_t pair = 0;
    int first = (from + 64) / 32 - 2, shift = (from + 64) % 32;
    for (int i = first; i < first + 2; i++) pair = pair << 32 | (i < 0 ? 0 : two_over_pi[i]);
    return pair << shift >> 32 & UINT64_C(0xffffffff);
}

/* |x| 2/pi modulo 4 for |x| = m 2^e, in words of 32 bits, the lowest first: 2 bits before the
 * point, 190 after (Payne & Hanek 1983). */
static void turns_of(uint64_t m, int e, uint32_t product[6]) {
    uint64_t part[2] = { m & UINT64_C(0xffffffff), m >> 32 };
    for (int i = 0; i < 6; i++) product[i] = 0;
    for (int i = 0; i < 6; i++) {
        uint64_t digits = bits_of_two_over_pi(e - 2 + 32 * (5 - i)), carry = 0;
        for (int j = 0; j < 2 && i + j < 6; j++) {
            carry += digits * part[j] + product[i + j];
            product[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        for (int k = i + 2; k < 6; k++) {
            carry += product[k];
            product[k] = (uint32_t)carry;
            carry >>= 32;
        }
    }
}

/* Divides x > 0 by pi / 2, a quarter of a turn, and rounds to the nearest whole number n. Returns
 * n modulo 4, where 4 may stand for 0. high + low is x / (pi / 2) - n, from -1/2 to 1/2. */
static uint64_t far_quarters(double x, double *high, double *low) {
    double_bits b = { x };
    uint32_t product[6];
    uint64_t m = (b.word & UINT64_C(0xfffffffffffff)) | UINT64_C(0x10000000000000);
    turns_of(m, (int)(b.word >> 52 & 0x7ff) - 1075, product);
    uint64_t top = (uint64_t)product[5] << 32 | product[4], above = top >> 61 & 1;
    double sum = 0, unit = 0x1p-30, rest = 0;
    for (int i = 5; i >= 0; i--) {
        int64_t digits = i == 5 ? (int64_t)(product[i] & UINT32_C(0x3fffffff)) : product[i];
        if (above && i == 5) digits -= 0x40000000;
        double term = (double)digits * unit, before = sum;
        sum = before + term;
        rest += term - (sum - before);
        unit *= 0x1p-32;
    }
    *high = sum + rest;
    *low = rest - (*high - sum);
    return (top >> 62) + above;
}

static quarter far_quarter_of(double x) {
    double high, low;
    quarter q;
    q.turns = far_quarters(x < 0 ? -x : x, &high, &low);
    double r = high * 0x1.921fb54442d18p0;
    double lost = multiply_add_double(high, 0x1.921fb54442d18p0, -r);
    lost += multiply_add_double(high, 0x1.1a62633145c07p-54, low * 0x1.921fb54442d18p0);
    q.r = r + lost;
    q.low = lost - (q.r - r);
    if (x < 0) {
        q.r = -q.r;
        q.low = -q.low;
        q.turns = 0 - q.turns;
    }
    return q;
}

static quarter quarter_of(double x) {
    double_bits rounded = { multiply_add_double(x, 0.63661977236758134308, 0x1.8p52) };
    double n = rounded.number - 0x1.8p52;
    double high = multiply_add_double(n, -0x1.921fb544p0, x);
    double part = n * 0x1.0b4611a6p-34, middle = high - part;
    double lost = multiply_add_double(n, 0x1.3198a2e037073p-69, part - (high - middle));
    quarter q = { middle - lost, 0, rounded.word };
    q.low = (middle - q.r) - lost;
    return q;
}

static const double sin_p_double[] = { -0x1.5555555555555p-3,  0x1.1111111110badp-7,
                                       -0x1.a01a019e82435p-13, 0x1.71de3794aecd2p-19,
                                       -0x1.ae60090c44d47p-26, 0x1.5e0a62ed2b329p-33 };

static const double cos_p_double[] = { 0x1.5555555555555p-5,  -0x1.6c16c16c16964p-10,
                                       0x1.a01a019f4df8fp-16, -0x1.27e4fa16e89fbp-22,
                                       0x1.1eeb67ea7a39dp-29, -0x1.907cea0cf7388p-37 };

/* A polynomial with n coefficients, the constant term first. */
static double polynomial_double(double x, const double *c, int n) {
    double y = c[n - 1];
    for (int i = n - 2; i >= 0; i--) y = multiply_add_double(y, x, c[i]);
    return y;
}

/* sin(r + turn pi/2) from the sine and the cosine of r. */
static inline double sine_of_turn(double sine, double cosine, uint64_t turn) {
    double_bits y = { turn & 1 ? cosine : sine };
    y.word ^= turn << 62 & UINT64_C(0x8000000000000000);
    return y.number;
}

/* sin(x + turn pi/2) */
static double sine_from(double x, uint64_t turn) {
    double size = x < 0 ? -x : x;
    if (x - x != 0) return x - x;
    quarter q = size > 1e6 ? far_quarter_of(x) : quarter_of(x);
    double z = q.r * q.r, half = 0.5 * z, near_one = 1 - half;
    double near_sine = polynomial_double(z, sin_p_double, 6);
    double near_cosine = polynomial_double(z, cos_p_double, 6);
    double sine = q.r + multiply_add_double(q.low, near_one, q.r * z * near_sine);
    double tail = multiply_add_double(z * z, near_cosine, -(q.r * q.low));
    double cosine = near_one + (((1 - near_one) - half) + tail);
    return sine_of_turn(sine, cosine, q.turns + turn);
}

static inline double sin_in_double(double x) {
    return x == 0 ? x : sine_from(x, 0);
}

static inline double cos_in_double(double x) {
    return sine_from(x, 1);
}

static const double sin_p[] = { -0x1.555555545d8b7p-3, 0x1.11110dedac4c5p-7, -0x1.a013a54cfcd3fp-13,
                                0x1.6dbd3e089ad17p-19 };

static const double cos_p[] = { 0x1.55555555029ecp-5, -0x1.6c16bf53cfa4ep-10, 0x1.a015c2e0d6eabp-16,
                                -0x1.2523c0c19e793p-22 };

/* sin(x + turn pi/2) for a float x, with as many terms as it needs. */
static float sine_of_float(float number, uint64_t turn) {
    double x = (double)number;
    if (abs_of(number) > 1e6f) return (float)sine_from(x, turn);
    double_bits rounded = { multiply_add_double(x, 0.63661977236758134308, 0x1.8p52) };
    double n = rounded.number - 0x1.8p52;
    double r =
        multiply_add_double(n, -0x1.0b4611a626331p-34, multiply_add_double(n, -0x1.921fb544p0, x));
    double z = r * r;
    double sine = multiply_add_double(r * z, polynomial_double(z, sin_p, 4), r);
    double cosine =
        multiply_add_double(z * z, polynomial_double(z, cos_p, 4), multiply_add_double(-0.5, z, 1));
    return (float)sine_of_turn(sine, cosine, rounded.word + turn);
}

static inline float sin_of(float x) {
    return x == 0.0f ? x : sine_of_float(x, 0);
}

static inline float cos_of(float x) {
    return sine_of_float(x, 1);
}

static inline float tan_of(float x) {
    return sin_of(x) / cos_of(x);
}
