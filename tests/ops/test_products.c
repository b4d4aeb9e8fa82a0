/* tests/ops/test_products.c - matrix products that are large enough to be divided into many tasks,
 * or to have A packed. An element is one chain of multiply-adds over k, so neither changes its
 * bits. Also gradients of small weights, which are divided along k. */
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(products)

/* Products of the same numbers, with operands in every layout, have the same bits. */
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

TEST_ROWS(same_bits_however_the_operands_lie, 5) {
    static const int64_t sizes[][3] = {
        { 300, 260, 557 },  /* packed A: rows and k with remainders */
        { 129, 270, 2048 }, /* several blocks of k; rows of A are padded off page boundaries */
        { 1000, 33, 520 },  /* few columns */
        { 64, 1031, 300 },  /* few rows */
        { 400, 64, 64 },    /* a small B: the tasks are blocks of rows */
    };
    for (int threads = 1; threads <= 3; threads++)
        same_however_given(WF_F32, sizes[_i][0], sizes[_i][1], sizes[_i][2], threads);
    same_however_given(WF_F64, sizes[_i][0], sizes[_i][1], sizes[_i][2], 2);
}

/* The gradient of a small weight is a sum of products over halves, quarters or eighths of k. A
 * product that a program records itself is one chain over k, whatever its shape. */
TEST_ROWS(gradients_of_small_weights_sum_pieces_of_k, 5) {
    static const struct {
        int64_t k, pieces;
    } cuts[] = { { 319, 1 }, { 320, 2 }, { 352, 2 }, { 647, 4 }, { 4099, 8 } };
    enum { M = 70, N = 130, OUT = 3 };
    int64_t k = cuts[_i].k, pieces = cuts[_i].pieces;
    for (int type = WF_F32; type <= WF_F64; type++) {
        wf_graph *g = new_graph((wf_dtype)type);
        wf_tensor *x = wf_param(g, "x", SHAPE(k, N), wf_init_uniform(1));
        wf_tensor *w = wf_param(g, "w", SHAPE(M, N), wf_init_uniform(1));
        wf_tensor *dy = wf_param(g, "dy", SHAPE(k, M), wf_init_uniform(1)), *sum = NULL;
        wf_tensor *y = wf_gemm(x, w, NULL, WF_TRANSPOSE_B), *dw[1]; /* [k, M] */
        wf_vjp(&y, &dy, 1, &w, 1, dw);
        for (int64_t i = 0; i < pieces; i++) {
            int64_t from = k * i / pieces, to = k * (i + 1) / pieces;
            wf_tensor *part =
                wf_gemm(wf_slice(dy, 0, from, to), wf_slice(x, 0, from, to), NULL, WF_TRANSPOSE_A);
            sum = sum ? wf_add(sum, part) : part;
        }
        wf_tensor *out[OUT] = { dw[0], sum, wf_gemm(dy, x, NULL, WF_TRANSPOSE_A) };
        values first[OUT];
        evaluate(out, OUT, 1, false, first);
        ck_assert(same_bits(first[0], first[1]));
        ck_assert_int_eq(same_bits(first[0], first[2]), pieces == 1);
        for (int threads = 2; threads <= 3; threads++) {
            values v[OUT];
            evaluate(out, OUT, threads, false, v);
            for (int i = 0; i < OUT; i++) ck_assert(same_bits(first[i], v[i]));
            free_values(v, OUT);
        }
        free_values(first, OUT);
        end_graph(g);
    }
}

/* Two contributions to a small weight's gradient: the second product has the first as its
 * addend. */
TEST(pieces_begin_with_an_addend) {
    enum { M = 31, N = 65, K = 400 };
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x[2], *dy[2], *y[2], *dw[1], *each[2], *w, *sum;
    w = wf_param(g, "w", SHAPE(M, N), wf_init_uniform(1));
    for (int i = 0; i < 2; i++) {
        x[i] = wf_param(g, i ? "x1" : "x0", SHAPE(K, N), wf_init_uniform(1));
        dy[i] = wf_param(g, i ? "dy1" : "dy0", SHAPE(K, M), wf_init_uniform(1));
        y[i] = wf_gemm(x[i], w, NULL, WF_TRANSPOSE_B); /* [K, M] */
        wf_vjp(&y[i], &dy[i], 1, &w, 1, &each[i]);
    }
    wf_vjp(y, dy, 2, &w, 1, dw);
    sum = wf_add(each[0], each[1]);
    values v[2];
    evaluate((wf_tensor *[]){ dw[0], sum }, 2, 2, false, v);
    ck_assert_double_lt(distance(v[0], v[1]), 1e-5);
    free_values(v, 2);
    end_graph(g);
}

/* Products with an addend that is a column, a strided view or a number. Rows at the borders of
 * tasks must begin with it, too. */
TEST(addends_begin_every_row) {
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
