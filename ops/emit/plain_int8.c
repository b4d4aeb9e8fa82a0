/* ops/emit/plain_int8.c - products with weights in int8 for emitted files. See plain_numbers.c. */

/* Round n elements of x to integers from -127 to 127 with one scale, which is returned: 0 if all
 * are below 2^-100, NaN if one is infinite or NaN. */
static float round_row(int n, const float *x, int step, int16_t *to) {
    float_bits most, scale;
    most.word = 0;
    for (int i = 0; i < n; i++) {
        float_bits b = { x[i * step] };
        b.word &= UINT32_C(0x7fffffff);
        most.word = b.word > most.word ? b.word : most.word;
    }
    int is_finite = most.word < UINT32_C(0x7f800000), is_zero = most.number < 0x1p-100f;
    scale.word = is_finite ? 0 : UINT32_C(0x7fc00000);
    for (int i = 0; i < n && (is_zero || !is_finite); i++) to[i] = 0;
    if (is_zero || !is_finite) return scale.number;
    float by = 127.0f / most.number;
    for (int i = 0; i < n; i++) to[i] = (int16_t)(x[i * step] * by + ROUND - ROUND);
    return most.number / 127.0f;
}

#define BLOCK 128 /* integers */

/* The number of products that are added one by one before blocks begin. Only in sums of a fixed
 * length does clang find the instructions of x86-64 that multiply and add pairs of integers; other
 * compilers find them in all sums, and are slowed down by blocks. */
static int before_blocks(int n) {
#if defined __clang__ && defined __x86_64__
    return n % BLOCK;
#else
    return n;
#endif
}

/* WIDE makes clang compute a loop in vectors of 32 elements, each as several vectors of the
 * processor. By itself clang uses vectors of 128 bits for most processors. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed"
#define WIDE _Pragma("clang loop vectorize_width(32)")
#else
#define WIDE
#endif

/* The sum of the products of a block of integers with weights. */
static int32_t sum_of_block(const int16_t *a, const signed char *w) {
    int32_t sum = 0;
    WIDE for (int k = 0; k < BLOCK; k++) sum += a[k] * w[k];
    return sum;
}

/* sum[32 r] = the sum of the products of row r, of four rows with n integers each, with a row of
 * weights. */
static void four_sums(int n, const int16_t *a, const signed char *w, int32_t *sum) {
    const int16_t *a1 = a + n, *a2 = a + 2 * n, *a3 = a + 3 * n;
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    int rest = before_blocks(n);
    for (int k = 0; k < rest; k++) {
        s0 += a[k] * w[k];
        s1 += a1[k] * w[k];
        s2 += a2[k] * w[k];
        s3 += a3[k] * w[k];
    }
    for (int k = rest; k < n; k += BLOCK) {
        s0 += sum_of_block(a + k, w + k);
        s1 += sum_of_block(a1 + k, w + k);
        s2 += sum_of_block(a2 + k, w + k);
        s3 += sum_of_block(a3 + k, w + k);
    }
    sum[0] = s0;
    sum[32] = s1;
    sum[64] = s2;
    sum[96] = s3;
}

/* The sum of the products of n integers with a row of weights. */
static int32_t one_sum(int n, const int16_t *a, const signed char *w) {
    int32_t sum = 0;
    int rest = before_blocks(n);
    for (int k = 0; k < rest; k++) sum += a[k] * w[k];
    for (int k = rest; k < n; k += BLOCK) sum += sum_of_block(a + k, w + k);
    return sum;
}

/* sum[32 r + c] = the sum of the products of row r of a and row c of the weights, for at most 4
 * rows of a and 32 of the weights. */
static void sums_of_rows(int rows, int columns, int n, const int16_t *a, const signed char *w,
                         int32_t *sum) {
    if (rows == 4) {
        for (int c = 0; c < columns; c++) four_sums(n, a, w + c * n, sum + c);
        return;
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) sum[32 * r + c] = one_sum(n, a + r * n, w + c * n);
}

/* y [rows, n] = a w^T + d, where a [rows, p] are at most 4 rows of integers, with their scales. */
static void rounded_rows(int rows, int n, int p, const int16_t *a, const float *scale,
                         const signed char *w, const float *scales, const float *d, int d_row,
                         float *y, int y_row) {
    int32_t sum[128];
    for (int j = 0; j < n; j += 32) {
        int columns = n - j < 32 ? n - j : 32;
        sums_of_rows(rows, columns, p, a, w + j * p, sum);
        for (int r = 0; r < rows; r++) {
            for (int c = 0; c < columns; c++) {
                float product = (float)sum[32 * r + c] * scale[r] * scales[j + c];
                y[r * y_row + j + c] = d_row < 0 ? product : product + d[r * d_row + j + c];
            }
        }
    }
}

/* y [m, n] = a [m, p] w^T + d for w [n, p] in int8, with a scale for each of its rows. Four rows of
 * a at a time are rounded to work. d may be y. d_row 0: one row for all; -1: there is no d. */
static void product_in_int8(int m, int n, int p, const float *a, int a_row, int a_column,
                            const signed char *w, const float *scales, const float *d, int d_row,
                            float *y, int y_row, int16_t *work) {
    float scale[4];
    for (int i = 0; i < m; i += 4) {
        int rows = m - i < 4 ? m - i : 4;
        for (int r = 0; r < rows; r++)
            scale[r] = round_row(p, a + (i + r) * a_row, a_column, work + r * p);
        rounded_rows(rows, n, p, work, scale, w, scales, d_row < 0 ? d : d + i * d_row, d_row,
                     y + i * y_row, y_row);
    }
}

/* Round x to n integers and a scale, and store them as row `at` of `room` rows. The scales of all
 * rows lie behind all integers. */
static void keep_input(int n, const float *x, float *kept, int room, int at, int16_t *work) {
    signed char *to = (signed char *)kept + at * n;
    kept[room * (n / 4) + at] = round_row(n, x, 1, work);
    for (int i = 0; i < n; i++) to[i] = (signed char)work[i];
}

/* y [m, n] = x w^T + d for w [n, p] in int8. x [m, p] are rows of integers that keep_input has
 * stored in `kept`, which has space for `room` rows. d_row is the distance from a row of d to the
 * next. 0: one row of d serves all; -1: there is no d. */
static void product_of_kept(int m, int n, int p, const float *kept, int room, const signed char *w,
                            const float *scales, const float *d, int d_row, float *y,
                            int16_t *work) {
    const signed char *from = (const signed char *)kept;
    for (int i = 0; i < m; i += 4) {
        int rows = m - i < 4 ? m - i : 4;
        for (int k = 0; k < rows * p; k++) work[k] = from[i * p + k];
        rounded_rows(rows, n, p, work, kept + room * (p / 4) + i, w, scales,
                     d_row < 0 ? d : d + i * d_row, d_row, y + i * n, n);
    }
}

/* The largest |x| of n numbers; infinity and NaN are above all others. */
static float largest_size(int n, const float *x) {
    float_bits most;
    most.word = 0;
    for (int i = 0; i < n; i++) {
        float_bits b = { x[i] };
        b.word &= UINT32_C(0x7fffffff);
        most.word = b.word > most.word ? b.word : most.word;
    }
    return most.number;
}

/* The scale of a row of weights in int8 whose largest |x| is `largest`, by the rule of
 * core/base/int8_row.c. */
static float scale_of_weights(float largest) {
    float_bits scale = { largest / 127.0f }, up = scale;
    up.word = (up.word + 127) & ~UINT32_C(127);
    scale.word &= ~UINT32_C(127);
    if (largest < 0x1p-118f) return 0;
    return up.number <= 0x1.fffffep127f / 127.0f ? up.number : scale.number;
}

/* Round a row of n weights to int8 and back. If one is not finite, the row stays as it is. */
static void round_weights(int n, const float *x, float *y) {
    float largest = largest_size(n, x), scale = scale_of_weights(largest);
    int is_finite = largest - largest == 0;
    for (int i = 0; i < n; i++) {
        float rounded = scale > 0 ? (x[i] / scale + ROUND - ROUND) * scale : 0;
        y[i] = is_finite ? rounded : x[i];
    }
}

/* Round all n weights of a matrix by Marian's rule, with one scale. */
static void round_weights_as_marian(int n, const float *x, float *y) {
    float largest = largest_size(n, x);
    float by = largest > 127.0f / 0x1.fffffep127f ? 127.0f / largest : 1.0f;
    int is_finite = largest - largest == 0;
    for (int i = 0; i < n; i++) y[i] = is_finite ? (x[i] * by + ROUND - ROUND) / by : x[i];
}
