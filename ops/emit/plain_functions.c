/* ops/emit/plain_functions.c - functions of one or two numbers for emitted files.
 * See plain_numbers.c. */

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

/* log(1 + x), or log(2 size) where adding 1 makes no difference. */
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

/* x >> n, with copies of the sign. Of a negative x, ~x is shifted, which is not negative. */
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
