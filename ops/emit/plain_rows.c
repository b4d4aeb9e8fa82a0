/* ops/emit/plain_rows.c - functions of rows and matrices for emitted files.
 * See plain_numbers.c. */

/* ---- sums: 64 lanes, then a tree ---------------------------------------------------------- */

/* The sum of a block's 64 lanes: four lines of 16 are added in float, and the resulting line is
 * added by halves in double. */
static double sum_of_lanes(const float lane[64]) {
    double d[16];
    for (int i = 0; i < 16; i++)
        d[i] = (double)((lane[i] + lane[i + 16]) + (lane[i + 32] + lane[i + 48]));
    for (int apart = 8; apart >= 1; apart /= 2)
        for (int i = 0; i < apart; i++) d[i] += d[i + apart];
    return d[0];
}

/* total += the terms i < n, in blocks of 4096. In a block lane j adds the terms j, j + 64, ...:
 * `add` is `lane` with term i added. The first loop has no condition, so that compilers vectorise
 * it. */
#define ADD_TERMS(total, n, add)                                                                   \
    for (int start = 0; start < (n); start += 4096) {                                              \
        int size = (n)-start < 4096 ? (n)-start : 4096, whole = size / 64 * 64;                    \
        float lanes[64];                                                                           \
        for (int j = 0; j < 64; j++) lanes[j] = 0;                                                 \
        for (int line = start; line < start + whole; line += 64)                                   \
            for (int j = 0; j < 64; j++) {                                                         \
                const float lane = lanes[j];                                                       \
                const int i = line + j;                                                            \
                lanes[j] = add;                                                                    \
            }                                                                                      \
        for (int j = 0; j < 64 && whole + j < size; j++) {                                         \
            const float lane = lanes[j];                                                           \
            const int i = start + whole + j;                                                       \
            lanes[j] = add;                                                                        \
        }                                                                                          \
        total += sum_of_lanes(lanes);                                                              \
    }

/* The sum of n elements. */
static double sum(int n, const float *x) {
    double total = 0;
    ADD_TERMS(total, n, lane + x[i])
    return total;
}

/* The sum of x y. */
static double dot(int n, const float *x, const float *y) {
    double total = 0;
    ADD_TERMS(total, n, multiply_add(x[i], y[i], lane))
    return total;
}

/* The sum of (x - from)^2. */
static double squares(int n, const float *x, float from) {
    double total = 0;
    ADD_TERMS(total, n, multiply_add(x[i] - from, x[i] - from, lane))
    return total;
}

/* The sum of (w y) (x - from); w 0: ones. */
static double weighted_dot(int n, const float *w, const float *y, const float *x, float from) {
    double total = 0;
    ADD_TERMS(total, n, multiply_add((w ? w[i] : 1.0f) * y[i], x[i] - from, lane))
    return total;
}

/* The sum of exp(x - from). */
static double sum_of_exp(int n, const float *x, float from) {
    double total = 0;
    ADD_TERMS(total, n, lane + exp_of(x[i] - from))
    return total;
}

/* The sum of x - from. */
static double sum_of_differences(int n, const float *x, float from) {
    double total = 0;
    ADD_TERMS(total, n, lane + (x[i] - from))
    return total;
}

/* The largest of sign * x over n elements, with sign 1 or -1; NaN if an element is NaN, and -inf
 * for n = 0. */
static float largest(int n, const float *x, float sign) {
    float_bits infinity;
    float top[64];
    int whole = n / 64 * 64;
    infinity.word = UINT32_C(0x7f800000);
    for (int j = 0; j < 64; j++) top[j] = -infinity.number;
    for (int i = 0; i < whole; i += 64)
        for (int j = 0; j < 64; j++) top[j] = max_of(sign * x[i + j], top[j]);
    for (int j = 0; j < 64 && whole + j < n; j++) top[j] = max_of(sign * x[whole + j], top[j]);
    for (int j = 0; j < 16; j++)
        top[j] = max_of(max_of(top[j], top[j + 16]), max_of(top[j + 32], top[j + 48]));
    for (int apart = 8; apart >= 1; apart /= 2)
        for (int j = 0; j < apart; j++) top[j] = max_of(top[j], top[j + apart]);
    return top[0];
}

/* The largest of sign * x over n >= 1 elements, in blocks of 4096. */
static float extreme(int n, const float *x, float sign) {
    float top = largest(n < 4096 ? n : 4096, x, sign);
    for (int i = 4096; i < n; i += 4096) {
        float part = largest(n - i < 4096 ? n - i : 4096, x + i, sign);
        top = part != part || part > top ? part : top;
    }
    return top;
}

/* ---- products ----------------------------------------------------------------------------- */

/* The body of product_tile, product_eight and product_row: y[i, j] = d[i, j] + the sum over k of
 * a[i, k] b[k, j]. Each element is one chain of multiply-adds over k. d_row below 0: there is no d,
 * and zeros stand for it; d may be y. The numbers of rows and columns are constants: compilers then
 * keep all sums in registers. */
#define PRODUCT_TILE(rows, columns)                                                                \
    float sum[rows][columns];                                                                      \
    for (int i = 0; i < rows; i++)                                                                 \
        for (int j = 0; j < columns; j++) sum[i][j] = d_row < 0 ? 0.0f : d[i * d_row + j];         \
    for (int k = 0; k < n; k++)                                                                    \
        for (int i = 0; i < rows; i++)                                                             \
            for (int j = 0; j < columns; j++)                                                      \
                sum[i][j] =                                                                        \
                    multiply_add(a[i * a_row + k * a_column], b[k * b_row + j], sum[i][j]);        \
    for (int i = 0; i < rows; i++)                                                                 \
        for (int j = 0; j < columns; j++) y[i * y_row + j] = sum[i][j];

/* The columns of four rows that are computed at a time. The sums of 32 columns do not fit in 16
 * registers of eight floats, so clang would store them at every step. gcc computes 32 in two
 * halves, but would compute 16 one by one. */
#if defined __clang__ && defined __AVX__ && !defined __AVX512F__
#define TILE_COLUMNS 16
#else
#define TILE_COLUMNS 32
#endif

static void product_tile(int n, const float *a, int a_row, int a_column, const float *b, int b_row,
                         const float *d, int d_row, float *y, int y_row) {
    PRODUCT_TILE(4, TILE_COLUMNS)
}

/* Four rows of 32 columns. */
static void product_rows(int n, const float *a, int a_row, int a_column, const float *b, int b_row,
                         const float *d, int d_row, float *y, int y_row) {
    for (int j = 0; j < 32; j += TILE_COLUMNS)
        product_tile(n, a, a_row, a_column, b + j, b_row, d_row < 0 ? d : d + j, d_row, y + j,
                     y_row);
}

/* The most rows that are computed at a time: eight where 32 registers of 16 floats hold them. */
#if defined __AVX512F__
#define TILE_ROWS 8
#else
#define TILE_ROWS 4
#endif

/* Eight rows of 32 columns. */
static void product_eight(int n, const float *a, int a_row, int a_column, const float *b, int b_row,
                          const float *d, int d_row, float *y, int y_row) {
    PRODUCT_TILE(8, 32)
}

/* One row. */
static void product_row(int n, const float *a, int a_row, int a_column, const float *b, int b_row,
                        const float *d, int d_row, float *y, int y_row) {
    PRODUCT_TILE(1, 32)
}

/* One row of fewer columns. */
static void product_rest(int columns, int n, const float *a, int a_column, const float *b,
                         int b_row, const float *d, int d_row, float *y) {
    float sum[32];
    for (int j = 0; j < columns; j++) sum[j] = d_row < 0 ? 0.0f : d[j];
    for (int k = 0; k < n; k++)
        for (int j = 0; j < columns; j++)
            sum[j] = multiply_add(a[k * a_column], b[k * b_row + j], sum[j]);
    for (int j = 0; j < columns; j++) y[j] = sum[j];
}

/* All m rows of at most 32 columns. */
static void product_columns(int m, int columns, int n, const float *a, int a_row, int a_column,
                            const float *b, int b_row, const float *d, int d_row, float *y,
                            int y_row) {
    for (int i = 0, rows; i < m; i += rows) {
        const float *from = a + i * a_row, *start = d_row < 0 ? d : d + i * d_row;
        float *to = y + i * y_row;
        rows = m - i < TILE_ROWS ? 4 : TILE_ROWS;
        if (columns < 32 || m - i < 4) rows = 1;
        if (TILE_ROWS == 8 && rows == 8)
            product_eight(n, from, a_row, a_column, b, b_row, start, d_row, to, y_row);
        else if (rows == 4)
            product_rows(n, from, a_row, a_column, b, b_row, start, d_row, to, y_row);
        else if (columns == 32)
            product_row(n, from, a_row, a_column, b, b_row, start, d_row, to, y_row);
        else
            product_rest(columns, n, from, a_column, b, b_row, start, d_row, to);
    }
}

/* y [m, n] = a [m, p] b [p, n] + d, with any strides of a and b. If the columns of b are not
 * adjacent, 32 rows of 32 columns at a time are copied to panel, 1024 floats. d_row 0: one row for
 * all; -1: there is no d. */
static void product(int m, int n, int p, const float *a, int a_row, int a_column, const float *b,
                    int b_row, int b_column, const float *d, int d_row, float *y, int y_row,
                    float *panel) {
    int copies = b_column != 1, deep = copies ? 32 : 128;
    for (int j = 0; j < n; j += 32) {
        int columns = n - j < 32 ? n - j : 32;
        for (int k = 0; k == 0 || k < p; k += deep) {
            int depth = p - k < deep ? p - k : deep;
            const float *start = d_row < 0 ? d : d + j, *from = b + k * b_row + j;
            for (int r = 0; copies && r < depth; r++)
                for (int c = 0; c < columns; c++)
                    panel[r * 32 + c] = b[(k + r) * b_row + (j + c) * b_column];
            product_columns(m, columns, depth, a + k * a_column, a_row, a_column,
                            copies ? panel : from, copies ? 32 : b_row, k ? y + j : start,
                            k ? y_row : d_row, y + j, y_row);
        }
    }
}

/* y [m, n] = a [m, p] b^T + d for b [n, p] in panels: 32 rows of b, or those that remain, lie
 * transposed in p rows. */
static void product_in_panels(int m, int n, int p, const float *a, int a_row, int a_column,
                              const float *b, const float *d, int d_row, float *y, int y_row) {
    for (int j = 0; j < n; j += 32) {
        int columns = n - j < 32 ? n - j : 32;
        for (int k = 0; k == 0 || k < p; k += 128) {
            int depth = p - k < 128 ? p - k : 128;
            const float *start = d_row < 0 ? d : d + j;
            product_columns(m, columns, depth, a + k * a_column, a_row, a_column,
                            b + j * p + k * columns, columns, k ? y + j : start, k ? y_row : d_row,
                            y + j, y_row);
        }
    }
}

/* y = row i of b [n, p] in panels. */
static void row_in_panels(int n, int p, const float *b, int i, float *y) {
    int first = i / 32 * 32, rows = n - first < 32 ? n - first : 32;
    for (int k = 0; k < p; k++) y[k] = b[first * p + k * rows + i - first];
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

/* Computes a row of a layer or RMS norm again, in double and from scaled numbers, because its sums
 * overflow in float. */
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

/* One step of a hash over words. */
static uint64_t mix_word(uint64_t h, uint64_t word) {
    h = (h ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ (h >> 32);
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

/* y[i] = x[i] scale where half word `first` + i of the stream of random bits is below the
 * threshold, else 0. y may be x. */
static void dropout(int n, const float *x, float scale, uint32_t threshold, uint64_t key,
                    uint64_t stream, uint64_t first, float *y) {
    uint32_t word[4], half[8];
    for (int i = 0, from = (int)(first % 8), count; i < n; i += count, from = 0) {
        count = n - i < 8 - from ? n - i : 8 - from;
        philox(key, (first + (uint64_t)i) / 8, stream, word);
        for (int k = 0; k < 8; k++) half[k] = word[k / 2] >> (k % 2 ? 16 : 0) & 0xffff;
        if (count == 8)
            for (int k = 0; k < 8; k++) y[i + k] = half[k] < threshold ? x[i + k] * scale : 0.0f;
        else
            for (int k = 0; k < count; k++)
                y[i + k] = half[from + k] < threshold ? x[i + k] * scale : 0.0f;
    }
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

/* ---- order -------------------------------------------------------------------------------- */

/* Does a come before b? NaN is larger than all numbers. */
static inline int comes_before(float a, float b, int descending) {
    if (descending) return a > b || (a != a && b == b);
    return a < b || (b != b && a == a);
}

/* The indices of n elements of x, `step` apart, sorted by the elements; equal elements keep their
 * order. other: room for n more indices. Returns index or other, whichever has the result. */
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

/* ---- updates ------------------------------------------------------------------------------ */

/* x, or 0 if it is below the normal numbers. */
static inline float faded(float x) {
    return abs_of(x) < 0x1p-126f ? 0.0f : x;
}
