/* tests/ops/test_int8.c - weights in int8: the values that are kept, and products with exact sums,
 * in every table of kernels. The result of a row does not depend on the rows beside it. */
#include "core/base/int8_row.h"
#include "core/base/random.h"
#include "ops/kernels/kernels.h"
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(int8)

static float draw(uint64_t stream, int64_t i) {
    return (float)(number(stream, (uint64_t)i) - 0.5);
}

/* ---- rows of weights ------------------------------------------------------------------------- */

static float requantise(int64_t n, float *x, int8_t *q) {
    float scale = wf_int8_scale(n, x);
    wf_int8_round(n, x, scale, q);
    for (int64_t i = 0; i < n; i++) x[i] = (float)q[i] * scale;
    return scale;
}

TEST(rows_are_rounded_once) {
    enum { N = 37 };
    static const float sizes[] = { 1,       0x1p-117f,     0x1p-60f,
                                   3.4e37f, 3.4e38f / 127, 0x1.fffffep127f,
                                   0.3f };
    for (int s = 0; s < COUNT_OF(sizes); s++)
        for (uint64_t stream = 0; stream < 300; stream++) {
            float x[N], first[N];
            int8_t q[N], again[N];
            for (int i = 0; i < N; i++) x[i] = 2 * draw(stream, i) * sizes[s];
            memcpy(first, x, sizeof x);
            float scale = requantise(N, x, q), largest = 0;
            for (int i = 0; i < N; i++) {
                ck_assert_msg(fabsf(x[i] - first[i]) <= 0.5001f * scale, "%a: %a", first[i], x[i]);
                ck_assert(isfinite(x[i]) && q[i] >= -127);
                largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
            }
            ck_assert(largest == 127 * scale);
            memcpy(first, x, sizeof x);
            ck_assert(requantise(N, x, again) == scale);
            ck_assert_mem_eq(q, again, sizeof q);
            ck_assert_mem_eq(first, x, sizeof x);
        }
}

TEST(rounding_is_to_nearest_or_even) {
    float x[] = { 127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 0.49999997f, 126.5f, -127 };
    const int8_t expected[] = { 127, 0, 2, 2, 0, -2, 0, 126, -127 };
    int8_t q[COUNT_OF(x)];
    ck_assert(requantise(COUNT_OF(x), x, q) == 1);
    ck_assert_mem_eq(q, expected, sizeof q);
    float small[] = { 0, -0.0f, 0x1p-140f, -0x1.fp-119f };
    ck_assert(requantise(4, small, q) == 0);
    for (int i = 0; i < 4; i++) ck_assert(q[i] == 0 && small[i] == 0);
}

/* ---- products: every table against plain C --------------------------------------------------- */

typedef struct operands {
    int64_t m, n, k;
    float *a, *w, *d, *expected, *c;
    char *panels, *rows;
} operands;

static void pack(operands *o, int64_t whole) {
    const int64_t bytes = (int64_t)wf_int8_weight_bytes(o->k);
    int8_t *q = malloc((size_t)o->k);
    for (int64_t j = 0; j < o->n; j += whole) {
        int64_t width = o->n - j < whole ? o->n - j : whole;
        char *panel = o->panels + j * bytes, *words = panel + 4 * width;
        memset(words, 128, (size_t)(width * (bytes - 4)));
        for (int64_t r = 0; r < width; r++) {
            float scale = wf_int8_scale(o->k, o->w + (j + r) * o->k);
            wf_int8_round(o->k, o->w + (j + r) * o->k, scale, q);
            memcpy(panel + 4 * r, &scale, 4);
            for (int64_t p = 0; p < o->k; p++)
                words[(p / 4 * width + r) * 4 + p % 4] = (char)(q[p] + 128);
        }
    }
    free(q);
}

/* An element of the product in plain C, with sums of 64 bits. The scale of a row of A is its
 * largest |x|, divided by 127. */
static float true_element(const operands *o, int64_t i, int64_t j, bool adds) {
    const float *a = o->a + i * o->k, *w = o->w + j * o->k;
    float largest = 0, scale = wf_int8_scale(o->k, w);
    for (int64_t p = 0; p < o->k; p++) largest = fabsf(a[p]) > largest ? fabsf(a[p]) : largest;
    volatile float inverse = 127 / largest, of_row = largest / 127;
    int64_t sum = 0;
    for (int64_t p = 0; p < o->k && largest > 0; p++) {
        volatile float scaled = a[p] * inverse;
        int8_t q;
        wf_int8_round(1, &w[p], scale, &q);
        sum += q * (int64_t)nearbyintf(scaled);
    }
    ck_assert(sum >= INT32_MIN && sum <= INT32_MAX);
    volatile float of_rows = (float)sum * of_row;
    volatile float product = of_rows * scale;
    return adds ? product + o->d[i * o->n + j] : product;
}

static operands new_operands(int64_t m, int64_t n, int64_t k) {
    operands o = { .m = m, .n = n, .k = k };
    o.a = malloc((size_t)(m * k) * 4), o.w = malloc((size_t)(n * k) * 4);
    o.d = malloc((size_t)(m * n) * 4), o.c = malloc((size_t)(m * n) * 4);
    o.expected = malloc((size_t)(m * n) * 4);
    o.panels = malloc((size_t)n * wf_int8_weight_bytes(k)); /* not a byte more may be touched */
    o.rows = aligned_alloc(64, (size_t)m * wf_int8_row_bytes(k));
    for (int64_t i = 0; i < m * k; i++) o.a[i] = draw(1, i);
    for (int64_t i = 0; i < n * k; i++) o.w[i] = draw(2, i);
    for (int64_t i = 0; i < m * n; i++) o.d[i] = draw(3, i);
    return o;
}

static void free_operands(operands *o) {
    free(o->a), free(o->w), free(o->d), free(o->c), free(o->expected), free(o->panels);
    free(o->rows);
}

static void multiply(operands *o, const wf_kernels_f32 *t, bool with_dot, bool adds) {
    for (int64_t i = 0; i < o->m; i++)
        t->int8_row(o->k, o->a + i * o->k, with_dot, o->rows + (size_t)i * wf_int8_row_bytes(o->k));
    wf_int8_product p = { .m = o->m, .n = o->n, .k = o->k, .a = o->rows, .panels = o->panels };
    p.c = o->c, p.c_row = o->n, p.d = adds ? o->d : NULL, p.d_row = o->n, p.with_dot = with_dot;
    t->int8_panels(&p);
}

static void check_tables(operands *o) {
    bool adds = (o->m + o->n) % 2;
    for (int64_t i = 0; i < o->m * o->n; i++)
        o->expected[i] = true_element(o, i / o->n, i % o->n, adds);
    const wf_kernels_f32 *t;
    for (int i = 0; (t = wf_f32_at(i)); i++) {
        pack(o, t->panel_rows);
        for (int with_dot = 0; with_dot <= t->has_dot(); with_dot++) {
            multiply(o, t, with_dot, adds);
            ck_assert_msg(memcmp(o->c, o->expected, (size_t)(o->m * o->n) * 4) == 0,
                          "%s%s: [%d,%d,%d]", t->isa, with_dot ? " with dot" : "", (int)o->m,
                          (int)o->n, (int)o->k);
        }
    }
}

TEST(every_table_has_the_bits_of_plain_c) {
    static const int64_t columns[] = { 1, 3, 8, 15, 16, 17, 31, 32, 33, 64, 65, 100, 129 };
    static const int64_t lengths[] = { 1, 3, 4, 5, 31, 33, 63, 64, 65, 130 };
    for (int n = 0; n < COUNT_OF(columns); n++)
        for (int k = 0; k < COUNT_OF(lengths); k++)
            for (int64_t m = 1; m <= 14; m += m < 7 ? 1 : 6) {
                operands o = new_operands(m, columns[n], lengths[k]);
                check_tables(&o);
                free_operands(&o);
            }
    operands long_rows = new_operands(3, 70, 1027);
    check_tables(&long_rows);
    free_operands(&long_rows);
}

/* The product of the two scales overflows a float, but the sum is 0, and so is the result. */
TEST(a_sum_of_zero_is_zero_whatever_the_scales) {
    operands o = new_operands(2, 33, 8);
    memset(o.a, 0, (size_t)(2 * o.k) * 4), memset(o.w, 0, (size_t)(33 * o.k) * 4);
    memset(o.d, 0, 2 * 33 * 4);
    for (int i = 0; i < 2; i++) o.a[i * o.k] = 1e30f;
    for (int j = 0; j < 33; j++) o.w[j * o.k + 1] = 1e14f;
    check_tables(&o);
    ck_assert(o.c[0] == 0 && o.c[65] == 0);
    free_operands(&o);
}

/* The products are all 127 x 127, or all -127 x 127, in rows of up to WF_INT8_LONGEST elements: the
 * largest sums that may occur. They fit in 32 bits. */
TEST(sums_neither_saturate_nor_overflow) {
    static const int64_t lengths[] = { 4096, WF_INT8_LONGEST };
    for (int l = 0; l < COUNT_OF(lengths); l++)
        for (int signs = 0; signs < 4; signs++) {
            operands o = new_operands(2, 33, lengths[l]);
            for (int64_t i = 0; i < 2 * o.k; i++) o.a[i] = signs & 1 ? -127 : 127;
            for (int64_t i = 0; i < 33 * o.k; i++) o.w[i] = signs & 2 ? -127 : 127;
            check_tables(&o);
            ck_assert(fabsf(o.c[0] - o.d[0]) >= 127 * 126 * (float)o.k);
            free_operands(&o);
        }
}

TEST(odd_rows_stay_alone) {
    enum { K = 70, N = 40 };
    const wf_kernels_f32 *t;
    for (int i = 0; (t = wf_f32_at(i)); i++)
        for (int with_dot = 0; with_dot <= t->has_dot(); with_dot++) {
            operands o = new_operands(6, N, K);
            memset(o.a, 0, K * 4);
            o.a[K + 69] = NAN, o.a[2 * K] = -INFINITY, o.a[3 * K + 1] = 0x1p-140f;
            for (int p = 0; p < K; p++) o.a[4 * K + p] = 0x1p-130f;
            pack(&o, t->panel_rows);
            multiply(&o, t, with_dot, true);
            for (int j = 0; j < N; j++) {
                ck_assert(o.c[j] == o.d[j] && o.c[4 * N + j] == o.d[4 * N + j]);
                ck_assert(isnan(o.c[N + j]) && isnan(o.c[2 * N + j]));
                ck_assert(o.c[3 * N + j] == true_element(&o, 3, j, true));
                ck_assert(o.c[5 * N + j] == true_element(&o, 5, j, true));
            }
            free_operands(&o);
        }
}

/* ---- parameters ------------------------------------------------------------------------------ */

static wf_tensor *numbers(wf_graph *g, const char *name, int ndim, const int64_t *shape) {
    int64_t n = 1;
    for (int i = 0; i < ndim; i++) n *= shape[i];
    double *data = malloc((size_t)n * sizeof *data);
    for (int64_t i = 0; i < n; i++) data[i] = draw(key_of(name, 3), i);
    wf_tensor *t = param_of(g, name, ndim, shape, data);
    free(data);
    return t;
}

/* The rows of a are given one by one, transposed and in a batch. w is read whole, as a slice and by
 * an embedding. */
TEST(operands_of_all_kinds_give_the_same_rows) {
    enum { M = 9, N = 192, K = 45 };
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = numbers(g, "w", SHAPE(N, K)), *a = numbers(g, "a", SHAPE(M, K));
    wf_tensor *bias = numbers(g, "bias", SHAPE(N));
    wf_tensor *cube = wf_reshape(wf_slice(a, 0, 0, 8), SHAPE(4, 2, K));
    int32_t ids[] = { 191, 0, 64 };
    wf_tensor *y[] = {
        wf_gemm(a, w, bias, WF_TRANSPOSE_B),
        wf_gemm(wf_slice(a, 0, 4, 5), w, bias, WF_TRANSPOSE_B),
        wf_gemm(wf_permute(a, (int[]){ 1, 0 }), w, bias, WF_TRANSPOSE_A | WF_TRANSPOSE_B),
        wf_gemm(wf_slice(cube, 1, 1, 2), w, bias, WF_TRANSPOSE_B), /* rows 1, 3, 5, 7 */
        wf_gemm(a, wf_slice(w, 0, 64, WF_END), NULL, WF_TRANSPOSE_B),
        wf_gemm(a, w, NULL, WF_TRANSPOSE_B),
        wf_embedding(w, ids_of(g, "ids", SHAPE(3), ids)),
    };
    ck_assert(wf_pack_weights(g, WF_PANELS_INT8, NULL));
    float kept[N * K];
    ck_assert(wf_read(w, kept, sizeof kept));
    for (int threads = 1; threads <= 3; threads += 2) {
        values v[COUNT_OF(y)];
        evaluate(y, COUNT_OF(y), threads, false, v);
        for (int j = 0; j < N; j++) {
            ck_assert(v[1].data[j] == v[0].data[4 * N + j]);
            for (int i = 0; i < 4; i++)
                ck_assert(v[3].data[i * N + j] == v[0].data[(2 * i + 1) * N + j]);
            for (int i = 0; i < M && j >= 64; i++)
                ck_assert(v[4].data[i * (N - 64) + j - 64] == v[5].data[i * N + j]);
        }
        ck_assert(same_bits(v[0], v[2]));
        for (int i = 0; i < 3 * K; i++)
            ck_assert((float)v[6].data[i] == kept[ids[i / K] * K + i % K]);
        free_values(v, COUNT_OF(y));
    }
    end_graph(g);
}

TEST(what_int8_cannot_hold_is_refused) {
    char message[WF_MESSAGE] = "";
    wf_graph *g = new_graph(WF_F32), *doubles = new_graph(WF_F64);
    wf_tensor *w = numbers(g, "w", SHAPE(5, 6)), *empty = numbers(g, "empty", SHAPE(3, 0));
    wf_tensor *y = wf_gemm(numbers(g, "a", SHAPE(2, 6)), w, NULL, WF_TRANSPOSE_B);
    ck_assert(!wf_pack_weights(doubles, WF_PANELS_INT8, message));
    assert_contains(message, "bf16 or int8 in a graph of f32 only");
    ck_assert(!wf_set_layout(empty, WF_PANELS_INT8));
    float data[30] = { 1, 2, 3 }, before[30], now[30];
    data[7] = NAN;
    ck_assert(wf_write(w, data, sizeof data) && wf_read(w, before, sizeof before));
    ck_assert(!wf_pack_weights(g, WF_PANELS_INT8, message));
    assert_contains(message, "is NaN or infinite");
    ck_assert(wf_read(w, now, sizeof now));
    ck_assert_mem_eq(before, now, sizeof now);
    data[7] = 4;
    ck_assert(wf_write(w, data, sizeof data) && wf_pack_weights(g, WF_PANELS_INT8, message));
    data[7] = -INFINITY;
    ck_assert(!wf_write(w, data, sizeof data) && wf_read(w, now, sizeof now));
    ck_assert(fabsf(now[7] - 4) < 0.02f);
    (void)y;
    end_graph(g), end_graph(doubles);
}
