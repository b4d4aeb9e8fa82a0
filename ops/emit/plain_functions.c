/* ops/emit/plain_functions.c - more functions that emitted files call, after those of plain.c: the
 * functions of ops/kernels/functions.inc and trigonometry.inc, and functions of integers. */

/* ---- rounding ----------------------------------------------------------------------------- */

/* To the nearest integer, halves to even; from 2^23 on, all floats are integers. */
static inline float round_of(float x) {
    float size = abs_of(x), whole = (size + 8388608.0f) - 8388608.0f;
    return size < 8388608.0f ? with_sign(whole, x) : x;
}

static inline float floor_of(float x) {
    float near = round_of(x);
    return near - (near > x ? 1.0f : 0.0f);
}

/* The sign is kept, so that the result may be -0. */
static inline float ceil_of(float x) {
    float near = round_of(x);
    return with_sign(near + (near < x ? 1.0f : 0.0f), x);
}

static inline float trunc_of(float x) {
    return with_sign(floor_of(abs_of(x)), x);
}

/* 0 for NaN. */
static inline float sign_of(float x) {
    return (x > 0.0f ? 1.0f : 0.0f) - (x < 0.0f ? 1.0f : 0.0f);
}

/* ---- relatives of exp and log ------------------------------------------------------------- */

#define LN2 0.69314718055994530942f

/* exp(x) - 1 = 2^k p + (2^k - 1) */
static inline float expm1_of(float x) {
    float near = within(x, EXP_LOWEST, 89.0f);
    float_bits rounded = { multiply_add(near, 0x1.715476p0f, ROUND) }, start = { ROUND };
    float k = rounded.number - ROUND;
    float r = multiply_add(k, -0x1.0bfbe8p-15f, multiply_add(k, -0x1.62ep-1f, near)) + 0.0f;
    float p = multiply_add(r * r, polynomial(r, exp_q, 5), r);
    uint32_t n = rounded.word - start.word, half = ((n + 4096) >> 1) - 2048;
    float step = power_of_two(half), back = power_of_two(half - n);
    float y = multiply_add(step, p, step - back) * power_of_two(n - half);
    return x == 0.0f ? x : y;
}

static inline float exp2_of(float x) {
    float near = within(x, -152.0f, 128.0f);
    float_bits rounded = { near + ROUND }, start = { ROUND };
    float r = (near - (rounded.number - ROUND)) * LN2;
    float p = multiply_add(r * r, polynomial(r, exp_q, 5), r);
    uint32_t n = rounded.word - start.word, half = ((n + 4096) >> 1) - 2048;
    return (1.0f + p) * power_of_two(half) * power_of_two(n - half);
}

/* log(u) for u = 1 + x, corrected by what its rounding lost. */
static inline float log1p_of(float x) {
    float u = 1.0f + x, low = (x - (u - 1.0f)) / u;
    return x == 0.0f ? x : log_with(u, low);
}

/* Exact for powers of two. */
static inline float log2_of(float x) {
    float f, exponent = log_reduce(x, &f);
    float s = f / (2.0f + f), z = s * s, half_square = 0.5f * f * f;
    float inner = multiply_add(z, polynomial(z, log_r, 3), half_square);
    float y = f - multiply_add(-s, inner, half_square);
    return log_ends(x, multiply_add(0x1.715476p0f, y, exponent));
}

static inline float log10_of(float x) {
    return log_of(x) * 0.43429448190325182765f;
}

/* log(1 + exp(x)) without overflow. */
static inline float softplus_of(float x) {
    return max_of(x, 0.0f) + log1p_of(exp_of(-abs_of(x)));
}

/* log(exp(a) + exp(b)) without overflow. */
static inline float logaddexp_of(float a, float b) {
    float y = max_of(a, b) + log1p_of(exp_of(-abs_of(a - b)));
    return a == b ? a + LN2 : y;
}

/* a log(b), 0 for a = 0 unless b is NaN */
static inline float xlogy_of(float a, float b) {
    return a == 0.0f && b == b ? 0.0f : a * log_of(b);
}

/* ---- inverse trigonometric functions ------------------------------------------------------ */

#define HALF_PI 1.57079632679489661923f

#define HALF_PI_LOW -0x1.777a5cp-25f /* pi/2 - HALF_PI */

static const float atan_p[] = { -0x1.555554p-2f, 0x1.999876p-3f,  -0x1.246692p-3f,
                                0x1.c1db24p-4f,  -0x1.4d2f7ap-4f, 0x1.4db9aep-5f };

static const float asin_p[] = { 0x1.55557p-3f, 0x1.331af2p-4f, 0x1.723d1ep-5f, 0x1.a0dd4ap-6f,
                                0x1.48e8f8p-5f };

/* The angle of the point (b, a), a, b >= 0: atan(a / b) below 1/2, pi/2 - atan(b / a) above 2, and
 * pi/4 + atan((a - b) / (a + b)) between. */
static inline float angle(float a, float b) {
    int huge = max_of(a, b) > 0x1p125f;
    a = huge ? a * 0.25f : a;
    b = huge ? b * 0.25f : b;
    float over = a - b, under = a + b, parts = 0.5f;
    if (2.0f * a < b || a == 0.0f) {
        over = a;
        under = b;
        parts = 0.0f;
    } else if (a > 2.0f * b) {
        over = -b;
        under = a;
        parts = 1.0f;
    }
    float t = a == b ? 0.0f : over / under, z = t * t;
    float y = multiply_add(t, z * polynomial(z, atan_p, 6), t);
    return multiply_add(parts, HALF_PI, multiply_add(parts, HALF_PI_LOW, y));
}

static inline float atan_of(float x) {
    return with_sign(angle(abs_of(x), 1.0f), x);
}

static inline float atan2_of(float a, float b) {
    float y = angle(abs_of(a), abs_of(b));
    float_bits right = { b };
    if (right.word >> 31) y = 2.0f * HALF_PI - (y - 2.0f * HALF_PI_LOW);
    return with_sign(y, a);
}

/* asin(s) with s = |x| up to 1/2; above, asin(x) = pi/2 - 2 asin(s) and acos(x) = 2 asin(s) with
 * s = sqrt((1 - |x|) / 2). */
static inline float asin_part(float x) {
    float size = abs_of(x), rest = (1.0f - size) * 0.5f;
    int far = size > 0.5f;
    float z = far ? rest : size * size, s = far ? sqrt_of(rest) : size;
    return multiply_add(s, z * polynomial(z, asin_p, 5), s);
}

static inline float asin_of(float x) {
    float part = asin_part(x);
    if (abs_of(x) > 0.5f) part = HALF_PI - (2.0f * part - HALF_PI_LOW);
    return with_sign(part, x);
}

static inline float acos_of(float x) {
    float part = asin_part(x);
    float far = x < 0.0f ? 2.0f * HALF_PI - (2.0f * part - 2.0f * HALF_PI_LOW) : 2.0f * part;
    return abs_of(x) > 0.5f ? far : HALF_PI - (with_sign(part, x) - HALF_PI_LOW);
}

/* ---- hyperbolic functions ----------------------------------------------------------------- */

static const float sinh_p[] = { 0x1.555556p-3f, 0x1.11113p-7f, 0x1.a0003ep-13f, 0x1.79e218p-19f };

/* exp(|x|) / 2 */
static inline float half_exp(float size) {
    float high = size - 0x1.62ep-1f, low = ((size - high) - 0x1.62ep-1f) - 0x1.0bfbe8p-15f;
    return exp_with(high, size < 178.0f ? low : 0.0f);
}

static inline float sinh_of(float x) {
    float size = abs_of(x), z = x * x, e = half_exp(size);
    float small = multiply_add(x, z * polynomial(z, sinh_p, 4), x);
    return size < 1.0f ? small : with_sign(e - 0.25f / e, x);
}

static inline float cosh_of(float x) {
    float e = half_exp(abs_of(x));
    return e + 0.25f / e;
}

/* log(1 + x), or log(2 x) where adding 1 makes no difference. */
static inline float log_of_sum(float x, float size) {
    int large = size > 8388608.0f;
    float u = large ? size : 1.0f + x, low = large ? LN2 : (x - (u - 1.0f)) / u;
    return log_with(u, low);
}

/* log(a + sqrt(a^2 + 1)), a = |x| */
static inline float asinh_of(float x) {
    float a = abs_of(x), square = a * a;
    float y = log_of_sum(a + square / (1.0f + sqrt_of(1.0f + square)), a);
    return x == 0.0f ? x : with_sign(y, x);
}

/* log(x + sqrt(x^2 - 1)) */
static inline float acosh_of(float x) {
    float t = x - 1.0f, y = log_of_sum(t + sqrt_of(multiply_add(t, t, 2.0f * t)), x);
    float_bits infinity;
    infinity.word = UINT32_C(0x7f800000);
    if (x < 1.0f) return infinity.number - infinity.number;
    return t == 0.0f ? t : y;
}

/* log((1 + x) / (1 - x)) / 2 */
static inline float atanh_of(float x) {
    float a = abs_of(x);
    return with_sign(0.5f * log1p_of(2.0f * a / (1.0f - a)), x);
}

/* ---- activations, erfc -------------------------------------------------------------------- */

/* 1 - erf(x), which is not computed as a difference where x > 0 */
static inline float erfc_of(float x) {
    float size = min_of(abs_of(x), TAIL_HIGHEST);
    float tail = 2.0f * exp_minus_square(size, 1.0f) * scaled_tail(size * 1.41421356237309504880f);
    return x < 0.0f ? 2.0f - tail : tail;
}

/* x tanh(softplus(x)): tanh(softplus(x)) is n / (n + 2), n = e (e + 2), e = exp(x). */
static inline float mish_of(float x) {
    float e = exp_of(-abs_of(x));
    float over = x < 0.0f ? e * (e + 2.0f) : 1.0f + 2.0f * e;
    float more = x < 0.0f ? 2.0f : 2.0f * e * e;
    return higher(EXP_LOWEST, x) * (over / (over + more));
}

/* ---- remainders --------------------------------------------------------------------------- */

/* The remainder of a / b with a's sign, which is exact: one digit of the quotient after another. */
static float fmod_of(float a, float b) {
    float_bits x = { abs_of(a) }, y = { abs_of(b) }, infinity;
    infinity.word = UINT32_C(0x7f800000);
    if (x.word >= infinity.word || y.word > infinity.word || y.word == 0)
        return infinity.number - infinity.number;
    if (x.word < y.word) return a;
    int ex = (int)(x.word >> 23), ey = (int)(y.word >> 23), e = ex > 1 ? ex : 1;
    uint32_t mx = (x.word & UINT32_C(0x7fffff)) | (ex ? UINT32_C(0x800000) : 0);
    uint32_t my = (y.word & UINT32_C(0x7fffff)) | (ey ? UINT32_C(0x800000) : 0);
    mx %= my;
    for (int end = ey > 1 ? ey : 1; e > end; e--) {
        mx <<= 1;
        if (mx >= my) mx -= my;
    }
    if (mx == 0) return with_sign(0.0f, a);
    for (; e > 1 && !(mx >> 23); e--) mx <<= 1;
    x.word = mx >> 23 ? (uint32_t)e << 23 | (mx & UINT32_C(0x7fffff)) : mx;
    return with_sign(x.number, a);
}

/* True where m, a remainder of fmod, is not 0 and has another sign than b. */
static inline int other_sign(float m, float b) {
    return m != 0.0f && (m < 0.0f) != (b < 0.0f);
}

static inline float remainder_of(float a, float b) {
    float m = fmod_of(a, b);
    return other_sign(m, b) ? m + b : m;
}

/* floor(a / b) of the exact quotient. */
static inline float floor_divide_of(float a, float b) {
    float m = fmod_of(a, b), y = round_of((a - m) / b) - (other_sign(m, b) ? 1.0f : 0.0f);
    if (y == 0.0f) y = with_sign(y, a / b);
    return b == 0.0f ? a / b : y;
}

/* ---- powers ------------------------------------------------------------------------------- */

/* A number with more digits than a float holds, as a sum: high has half of its digits. */
typedef struct split {
    float high, low;
} split;

static const float pow_p[] = { 0x1.9999c4p-2f, 0x1.246912p-2f, 0x1.dba878p-3f };

/* x without the lower half of its digits. */
static inline float high_half(float x) {
    float_bits b = { x };
    b.word &= ~UINT32_C(0xfff);
    return b.number;
}

/* a + b for |a| >= |b|, or exact sums */
static inline split split_of(float a, float b) {
    split s = { high_half(a + b), 0.0f };
    s.low = (a - s.high) + b;
    return s;
}

static inline split split_times(split a, split b) {
    float low = multiply_add(a.high, b.low, multiply_add(a.low, b.high, a.low * b.low));
    return split_of(a.high * b.high, low);
}

/* a + b for |a| >= |b| or a = 0 */
static inline split split_plus(split a, split b) {
    float sum = a.high + b.high, lost = b.high - (sum - a.high);
    return split_of(sum, lost + (a.low + b.low));
}

/* log(x): k ln 2 + 2 s + 2/3 s z + s z^2 P(z), s = f / (2 + f), z = s^2. */
static split log_split(float x) {
    float f, k = log_reduce(x, &f), sum = 2.0f + f;
    split two_thirds = split_of(0.66666666666666666667f, -0x1.555556p-26f);
    split d = split_of(sum, f - (sum - 2.0f)), s = { high_half(f / sum), 0.0f };
    s.low = multiply_add(-s.high, d.low, multiply_add(-s.high, d.high, f)) / sum;
    split z = split_times(s, s), cube = split_times(split_times(z, two_thirds), s);
    float square = z.high + z.low, rest = (s.high + s.low) * square * square;
    cube.low = multiply_add(rest, polynomial(square, pow_p, 3), cube.low);
    split log_m = split_plus((split){ 2.0f * s.high, 2.0f * s.low }, cube);
    return split_plus(split_of(k * 0x1.62ep-1f, k * 0x1.0bfbe8p-15f), log_m);
}

/* exp(b log |a|), a neither 0 nor infinite. */
static float power_of_size(float size, float b) {
    split log_a = log_split(size);
    split y = split_times(split_of(max_of(min_of(b, 0x1p40f), -0x1p40f), 0.0f), log_a);
    float x = y.high + y.low, low = y.low - (x - y.high);
    return exp_with(x, abs_of(x) < 1000.0f ? low : 0.0f);
}

/* The rules of C's pow: 1 for b = 0 and for a = 1, even if the other is NaN. */
static float pow_of(float a, float b) {
    float_bits infinity, sign = { a };
    infinity.word = UINT32_C(0x7f800000);
    float size = abs_of(a), half = b * 0.5f, y = power_of_size(size, b);
    int end = size == 0.0f || size == infinity.number, whole = floor_of(b) == b;
    if (end) y = (b > 0.0f) != (size == 0.0f) ? infinity.number : 0.0f;
    if (whole && floor_of(half) != half && sign.word >> 31) y = -y;
    if (a < 0.0f && size < infinity.number && !whole) y = infinity.number - infinity.number;
    if (a != a || b != b) y = a + b;
    return b == 0.0f || a == 1.0f ? 1.0f : y;
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

/* Splits x > 0 into the nearest number of quarters and a rest, high + low, in quarters. */
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

/* One of sine and cosine, with its sign, for these turns. */
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

/* ---- integers ----------------------------------------------------------------------------- */

/* x modulo 2^32 as an int32_t. */
static inline int32_t wf_wrap(uint32_t x) {
    return x <= UINT32_C(0x7fffffff) ? (int32_t)x : (int32_t)(x - UINT32_C(0x80000000)) + INT32_MIN;
}

/* floor(a / b) for b != 0; -2^31 / -1 wraps. */
static inline int32_t floor_divided(int32_t a, int32_t b) {
    int64_t quotient = (int64_t)a / b;
    return wf_wrap((uint32_t)(quotient - ((int64_t)a % b != 0 && (a < 0) != (b < 0))));
}

static inline int32_t shifted_left(int32_t x, int32_t n) {
    return n >= 0 && n < 32 ? wf_wrap((uint32_t)x << n) : 0;
}

static inline int32_t shifted_right_logical(int32_t x, int32_t n) {
    return n >= 0 && n < 32 ? wf_wrap((uint32_t)x >> n) : 0;
}

/* With copies of the sign: ~x, which is not negative, is shifted. */
static inline int32_t shifted_right(int32_t x, int32_t n) {
    int32_t count = n >= 0 && n < 32 ? n : 31, sign = -(x < 0);
    return ((x ^ sign) >> count) ^ sign;
}

/* A float as an integer: cut off, limited to the range, 0 for NaN. */
static inline int32_t id_of(float x) {
    if (x >= 0x1p31f) return INT32_MAX;
    if (x < -0x1p31f) return INT32_MIN;
    return x != x ? 0 : (int32_t)x;
}

/* ---- convolution -------------------------------------------------------------------------- */

/* Arrays [2]: for rows and for columns. Channels are those of a group. */
typedef struct convolution {
    int images, groups, sources, targets, transposed;
    int source[2], target[2], kernel[2], stride[2], padding[2], dilation[2];
} convolution;

/* The place in the source that tap k of target element i reads, which may lie outside of it.
 * Returns 0 if this element has no such tap. */
static inline int place_of_tap(const convolution *c, int axis, int i, int k, int *place) {
    int at = k * c->dilation[axis] - c->padding[axis];
    *place = i * c->stride[axis] + at;
    if (!c->transposed) return 1;
    *place = (i - at) / c->stride[axis];
    return (i - at) % c->stride[axis] == 0;
}

/* y[0], y[step], ... += weight times x[place], x[place + apart], ...; x is 0 outside of its
 * width, and everywhere if it is no row. */
static void add_tap(int n, float weight, const float *x, int width, int place, int apart, float *y,
                    int step) {
    int a = 0, end = place < width ? (width - place - 1) / apart + 1 : 0;
    int begin = place < 0 ? (apart - 1 - place) / apart : 0;
    if (end > n) end = n;
    if (!x) end = 0;
    for (; a < begin && a < n; a++) y[a * step] = multiply_add(weight, 0.0f, y[a * step]);
    if (step == 1 && apart == 1)
        for (; a < end; a++) y[a] = multiply_add(weight, x[place + a], y[a]);
    for (; a < end; a++) y[a * step] = multiply_add(weight, x[place + a * apart], y[a * step]);
    for (; a < n; a++) y[a * step] = multiply_add(weight, 0.0f, y[a * step]);
}

/* Adds tap (k, l) of the kernel, whose row of x is given, to a row of the target. */
static void add_tap_of_row(const convolution *c, int l, float weight, const float *x, float *y) {
    int step = c->transposed ? c->stride[1] : 1, first = 0, place = 0, n = c->target[1];
    while (first < step && !place_of_tap(c, 1, first, l, &place)) first++;
    if (first < step && first < n)
        add_tap((n - first - 1) / step + 1, weight, x, c->source[1], place,
                c->transposed ? 1 : c->stride[1], y + first, step);
}

/* y [images, groups targets, ...] = x [images, groups sources, ...] convolved with w, plus bias (0:
 * none). An element is one chain of multiply-adds over sources, rows and columns of the kernel. */
static void convolve(const convolution *c, const float *x, const float *w, const float *bias,
                     float *y) {
    int kernel = c->kernel[0] * c->kernel[1], plane = c->source[0] * c->source[1], place;
    int all = c->images * c->groups * c->targets, size = c->target[0] * c->target[1];
    for (int r = 0; r < all * c->target[0]; r++) {
        int t = r / c->target[0], i = r % c->target[0], channel = t % (c->groups * c->targets);
        int group = channel / c->targets, o = channel % c->targets;
        const float *image = x + (t / c->targets) * c->sources * plane;
        const float *weight = w + group * c->targets * c->sources * kernel;
        float *row = y + t * size + i * c->target[1];
        for (int j = 0; j < c->target[1]; j++) row[j] = bias ? bias[channel] : 0.0f;
        for (int s = 0; s < c->sources; s++)
            for (int k = 0; k < c->kernel[0]; k++) {
                int at = c->transposed ? s * c->targets + o : o * c->sources + s;
                if (!place_of_tap(c, 0, i, k, &place)) continue;
                int inside = place >= 0 && place < c->source[0];
                const float *line = inside ? image + s * plane + place * c->source[1] : 0;
                for (int l = 0; l < c->kernel[1]; l++)
                    add_tap_of_row(c, l, weight[at * kernel + k * c->kernel[1] + l], line, row);
            }
    }
}

/* The sum over rows [from, to) of the target plane dy of dy times what tap (k, l) reads in x. */
static float weight_of_rows(const convolution *c, const float *x, const float *dy, int k, int l,
                            int from, int to) {
    float sum = 0;
    int row = 0, column = 0;
    for (int i = from; i < to; i++) {
        place_of_tap(c, 0, i, k, &row);
        for (int j = 0; j < c->target[1]; j++) {
            place_of_tap(c, 1, j, l, &column);
            int inside = row >= 0 && row < c->source[0] && column >= 0 && column < c->source[1];
            float value = inside ? x[row * c->source[1] + column] : 0.0f;
            sum = multiply_add(value, dy[i * c->target[1] + j], sum);
        }
    }
    return sum;
}

/* dw = the gradient of the weights. Chunks of rows of all images are divided into parts; in a part
 * the sums of bands of rows are added, and then the parts. */
static void convolve_weight(const convolution *c, int parts, int chunk, int band, const float *x,
                            const float *dy, float *dw) {
    int rows = c->target[0], chunks = (rows + chunk - 1) / chunk, units = c->images * chunks;
    int taps = c->kernel[0] * c->kernel[1], width = c->sources * taps;
    int plane = c->source[0] * c->source[1], size = rows * c->target[1];
    for (int e = 0; e < c->groups * c->targets * width; e++) {
        int o = e / width, s = e % width / taps, tap = e % taps, group = o / c->targets;
        float total = 0;
        for (int part = 0; part < parts; part++) {
            float sum = 0;
            for (int u = units * part / parts; u < units * (part + 1) / parts; u++) {
                int image = u / chunks, begin = u % chunks * chunk;
                int end = rows - begin < chunk ? rows : begin + chunk;
                const float *from = x + ((image * c->groups + group) * c->sources + s) * plane;
                const float *with = dy + (image * c->groups * c->targets + o) * size;
                for (int i = begin; i < end; i += band)
                    sum += weight_of_rows(c, from, with, tap / c->kernel[1], tap % c->kernel[1], i,
                                          end - i < band ? end : i + band);
            }
            total = part ? total + sum : sum;
        }
        dw[e] = total;
    }
}

/* The largest element of each window, the first of equal ones, and its tap; -1 if no element is
 * above -inf. A NaN is larger than all. */
static void largest_of_windows(const convolution *c, const float *x, float *y, float *tap) {
    float_bits infinity;
    int row, column, size = c->target[0] * c->target[1];
    infinity.word = UINT32_C(0x7f800000);
    for (int e = 0; e < c->images * size; e++) {
        const float *image = x + e / size * c->source[0] * c->source[1];
        float best = -infinity.number, at = -1;
        for (int k = 0; k < c->kernel[0] * c->kernel[1]; k++) {
            place_of_tap(c, 0, e % size / c->target[1], k / c->kernel[1], &row);
            place_of_tap(c, 1, e % c->target[1], k % c->kernel[1], &column);
            if (row < 0 || row >= c->source[0] || column < 0 || column >= c->source[1]) continue;
            float here = image[row * c->source[1] + column];
            if (here > best || here != here) {
                best = here;
                at = (float)k;
            }
        }
        y[e] = best;
        tap[e] = at;
    }
}

/* The place in x of the largest element of window e, or -1 if that is not in the image. Without a
 * tap it is the first element in the image. */
static int place_of_largest(const convolution *c, int e, float tap) {
    int size = c->source[0] * c->source[1], kernel = c->kernel[0] * c->kernel[1];
    int row = e / c->target[1] % c->target[0] * c->stride[0] - c->padding[0];
    int column = e % c->target[1] * c->stride[1] - c->padding[1];
    if (tap >= 0.0f && tap < (float)kernel) {
        row += (int)tap / c->kernel[1] * c->dilation[0];
        column += (int)tap % c->kernel[1] * c->dilation[1];
    } else {
        while (row < 0) row += c->dilation[0];
        while (column < 0) column += c->dilation[1];
        if (column >= c->source[1]) return -1;
    }
    int at = row * c->source[1] + column;
    return at < size ? at : -1;
}

/* ---- order -------------------------------------------------------------------------------- */

/* Does a come before b? NaN is larger than all numbers. */
static inline int comes_before(float a, float b, int descending) {
    if (descending) return a > b || (a != a && b == b);
    return a < b || (b != b && a == a);
}

/* The indices of n elements of x, `step` apart, in order; equal ones keep theirs. other: as many
 * numbers, which are overwritten. Returns the array that has the result. */
static int32_t *sort_indices(int n, const float *x, int step, int descending, int32_t *index,
                             int32_t *other) {
    for (int i = 0; i < n; i++) index[i] = i;
    for (int half = 1; half < n; half *= 2) {
        for (int from = 0; from < n; from += 2 * half) {
            int middle = n - from < half ? n : from + half;
            int end = n - from < 2 * half ? n : from + 2 * half, a = from, b = middle;
            for (int k = from; k < end; k++) {
                int takes_b =
                    a == middle ||
                    (b < end && comes_before(x[index[b] * step], x[index[a] * step], descending));
                other[k] = takes_b ? index[b++] : index[a++];
            }
        }
        int32_t *sorted = other;
        other = index;
        index = sorted;
    }
    return index;
}

/* ---- random numbers ----------------------------------------------------------------------- */

/* Number i of a stream, uniform in [0, 1). */
static float random_uniform(uint64_t key, uint64_t stream, uint64_t i) {
    uint32_t word[4];
    philox(key, i, stream, word);
    return (float)(int32_t)(word[0] >> 8) * 0x1p-24f;
}

/* The highest 53 of 64 bits as a number in [0, 1). */
static inline double unit_of(uint32_t high, uint32_t low) {
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

/* Number i of a stream, normal (Box & Muller 1958). */
static float random_normal(uint64_t key, uint64_t stream, uint64_t i) {
    uint32_t word[4];
    philox(key, i, stream, word);
    double angle_of = 6.283185307179586 * unit_of(word[2], word[3]);
    double size = root_in_double(-2 * log_in_double(1 - unit_of(word[0], word[1])));
    return (float)(size * cos_in_double(angle_of));
}
