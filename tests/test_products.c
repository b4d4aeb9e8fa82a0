/* tests/test_products.c - products large enough to be cut into many tasks, or to have an operand
 * stood upright first: an element is one chain over k, so the bits may not tell. Gradients of small
 * weights, which are cut along k. */
#include "suites.h"
#include "support.h"

/* Products of the same numbers: operands as they are, and given in every other way. */
static void same_however_given(wf_dtype real, int64_t m, int64_t n, int64_t k, int threads) {
    wf_graph *g = new_graph(real);
    wf_tensor *a = wf_param(g, "a", SHAPE(m, k), wf_init_uniform(1));
    wf_tensor *b = wf_param(g, "b", SHAPE(k, n), wf_init_uniform(1));
    wf_tensor *row = wf_param(g, "row", SHAPE(n), wf_init_uniform(1));
    wf_tensor *at = wf_add(wf_transpose(a, 0, 1), wf_constant(g, 0)); /* dense, and so on */
    wf_tensor *bt = wf_add(wf_transpose(b, 0, 1), wf_constant(g, 0));
    wf_tensor *plain = wf_gemm(a, b, row, 0);
    wf_tensor *out[] = {
        plain,
        wf_gemm(at, b, row, WF_TRANSPOSE_A),
        wf_gemm(a, bt, row, WF_TRANSPOSE_B),
        wf_gemm(at, bt, row, WF_TRANSPOSE_A | WF_TRANSPOSE_B),
        wf_gemm(wf_transpose(a, 0, 1), b, wf_mul(row, wf_fill(plain, 1)), WF_TRANSPOSE_A),
        wf_gemm(at, b, wf_unsqueeze(row, WF_AXIS(0)), WF_TRANSPOSE_A),
    };
    values v[COUNT_OF(out)];
    evaluate(out, COUNT_OF(out), threads, false, v);
    for (int i = 1; i < COUNT_OF(out); i++)
        ck_assert_msg(same_bits(v[0], v[i]), "[%d,%d,%d], %d threads: form %d differs", (int)m,
                      (int)n, (int)k, threads, i);
    free_values(v, COUNT_OF(out));
    end_graph(g);
}

START_TEST(same_bits_however_the_operands_lie) {
    static const int64_t sizes[][3] = {
        { 300, 260, 257 },  /* upright, rows with remainders */
        { 129, 270, 2048 }, /* several stretches of k, its rows kept off whole pages */
        { 1000, 33, 520 },  /* few columns */
        { 64, 1031, 300 },  /* few rows */
        { 400, 64, 64 },    /* a small b: rows are cut */
    };
    for (int threads = 1; threads <= 3; threads++)
        same_however_given(WF_F32, sizes[_i][0], sizes[_i][1], sizes[_i][2], threads);
    same_however_given(WF_F64, sizes[_i][0], sizes[_i][1], sizes[_i][2], 2);
}
END_TEST

/* The gradient of a small weight is the sum of its pieces: halves, quarters or eighths of k. */
START_TEST(small_weights_sum_pieces_of_k) {
    static const struct {
        int64_t k, pieces;
    } cuts[] = { { 319, 1 }, { 320, 2 }, { 352, 2 }, { 647, 4 }, { 4099, 8 } };
    enum { M = 70, N = 130 };
    int64_t k = cuts[_i].k, pieces = cuts[_i].pieces;
    for (int type = WF_F32; type <= WF_F64; type++)
        for (int addend = 0; addend < 3; addend++) {
            wf_graph *g = new_graph(type);
            wf_tensor *a = wf_param(g, "a", SHAPE(k, M), wf_init_uniform(1));
            wf_tensor *b = wf_param(g, "b", SHAPE(k, N), wf_init_uniform(1));
            wf_tensor *row = wf_param(g, "row", SHAPE(N), wf_init_uniform(1));
            wf_tensor *whole = wf_mul(row, wf_fill(wf_gemm(a, b, NULL, WF_TRANSPOSE_A), 1));
            wf_tensor *d[] = { NULL, row, whole }, *sum = d[addend];
            for (int64_t i = 0; i < pieces; i++) {
                int64_t from = k * i / pieces, to = k * (i + 1) / pieces;
                wf_tensor *part = wf_matmul(wf_transpose(wf_slice(a, 0, from, to), 0, 1),
                                            wf_slice(b, 0, from, to));
                sum = !sum          ? part
                      : pieces == 1 ? wf_gemm(a, b, sum, WF_TRANSPOSE_A)
                                    : wf_add(sum, part);
            }
            wf_tensor *out[] = { sum, wf_gemm(a, b, d[addend], WF_TRANSPOSE_A) };
            for (int threads = 1; threads <= 3; threads++) {
                values v[2];
                evaluate(out, 2, threads, false, v);
                ck_assert_msg(same_bits(v[0], v[1]), "k %d, addend %d", (int)k, addend);
                free_values(v, 2);
            }
            end_graph(g);
        }
}
END_TEST

/* Rows that follow a bias, a matrix and a strided addend, at the cuts between tasks. */
START_TEST(addends_begin_every_row) {
    wf_graph *g = new_graph(WF_F32);
    enum { M = 300, N = 200, K = 9 };
    wf_tensor *a = wf_param(g, "a", SHAPE(M, K), wf_init_uniform(1));
    wf_tensor *b = wf_param(g, "b", SHAPE(K, N), wf_init_uniform(1));
    wf_tensor *column = wf_param(g, "column", SHAPE(M, 1), wf_init_uniform(1));
    wf_tensor *turned = wf_transpose(wf_param(g, "turned", SHAPE(N, M), wf_init_uniform(1)), 0, 1);
    wf_tensor *like = wf_matmul(a, b);
    wf_tensor *out[] = {
        wf_gemm(a, b, column, 0),
        wf_gemm(a, b, wf_add(column, wf_fill(like, 0)), 0),
        wf_gemm(a, b, turned, 0),
        wf_gemm(a, b, wf_add(turned, wf_constant(g, 0)), 0),
        wf_gemm(a, b, wf_constant(g, 3), 0),
        wf_gemm(a, b, wf_fill(like, 3), 0),
    };
    values v[COUNT_OF(out)];
    evaluate(out, COUNT_OF(out), 2, false, v);
    for (int i = 0; i < COUNT_OF(out); i += 2)
        ck_assert_msg(same_bits(v[i], v[i + 1]), "addend %d", i / 2);
    free_values(v, COUNT_OF(out));
    end_graph(g);
}
END_TEST

Suite *products_suite(void) {
    Suite *s = suite_create("products");
    TCase *c = tcase_create("products");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, same_bits_however_the_operands_lie, 0, 5);
    tcase_add_loop_test(c, small_weights_sum_pieces_of_k, 0, 5);
    tcase_add_test(c, addends_begin_every_row);
    suite_add_tcase(s, c);
    return s;
}
