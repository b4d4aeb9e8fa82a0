/* tests/ops/test_order.c - sorts and scans along an axis: sorts and topk against a stable sort in
 * plain C, with NaN, infinities, zeros of both signs and ties; scans alone and among neighbours.
 *
 * Shapes, gradients, layouts and threads are rows of op_cases_reduce.inc. */
#include <stdio.h>

#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(order)

/* ---- sorting --------------------------------------------------------------------------------- */

typedef enum { RANDOM, RISING, FALLING, EQUAL, FEW, EDGES, KINDS } pattern;

static double element(pattern kind, int64_t i) {
    static const double edges[] = { NAN, INFINITY, -INFINITY, 0.0, -0.0, 1, -1, 1e-30, -NAN };
    double u = number(5, (uint64_t)i);
    switch (kind) {
    case RANDOM:
        return (float)(200 * u - 100);
    case RISING:
        return (double)i;
    case FALLING:
        return (double)-i;
    case EQUAL:
        return 3;
    case FEW:
        return floor(4 * u);
    default:
        return (float)edges[(int)(u * COUNT_OF(edges))];
    }
}

/* Is a larger than b? NaN is larger than numbers. */
static bool larger(double a, double b) {
    return isnan(a) ? !isnan(b) : a > b;
}

/* The indices of n elements, `step` apart, in order: an insertion sort, which is stable. */
static void sort_plainly(const double *x, int64_t n, int64_t step, bool descending,
                         int32_t *index) {
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i;
        for (; at > 0; at--) {
            double before = x[index[at - 1] * step], own = x[i * step];
            if (descending ? !larger(own, before) : !larger(before, own)) break;
            index[at] = index[at - 1];
        }
        index[at] = (int32_t)i;
    }
}

static void check_order(const values *x, const values *got, int64_t outer, int64_t n, int64_t inner,
                        int64_t k, bool descending, const char *what) {
    int32_t *index = malloc((size_t)n * sizeof *index + 1);
    ck_assert_ptr_nonnull(index);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t j = 0; j < inner; j++) {
            const double *row = x->data + o * n * inner + j;
            sort_plainly(row, n, inner, descending, index);
            for (int64_t i = 0; i < k; i++) {
                int64_t at = (o * k + i) * inner + j;
                double want = row[index[i] * inner], value = got[0].data[at];
                ck_assert_msg(got[1].data[at] == index[i], "%s: n %d k %d: place %d has %d, not %d",
                              what, (int)n, (int)k, (int)i, (int)got[1].data[at], (int)index[i]);
                ck_assert(isnan(want) ? isnan(value) : value == want);
            }
        }
    free(index);
}

/* topk of a tensor [outer, n, inner] along its axis 1; k < 0: a sort. */
static void try_order(pattern kind, wf_dtype real, int64_t outer, int64_t n, int64_t inner,
                      int64_t k, bool descending) {
    wf_graph *g = new_graph(real);
    values x = { outer * n * inner, malloc((size_t)(outer * n * inner) * sizeof(double) + 1) };
    values got[2];
    ck_assert_ptr_nonnull(x.data);
    for (int64_t i = 0; i < x.count; i++) x.data[i] = element(kind, i);
    wf_tensor *leaf = param_of(g, "x", SHAPE(outer, n, inner), x.data);
    wf_sorted s = k < 0 ? wf_sort(leaf, 1, descending) : wf_topk(leaf, k, 1, descending);
    evaluate((wf_tensor *[]){ s.values, s.indices }, 2, 2, false, got);
    char what[64];
    snprintf(what, sizeof what, "pattern %d %s%s", (int)kind, wf_dtype_name(real),
             descending ? " descending" : "");
    check_order(&x, got, outer, n, inner, k < 0 ? n : k, descending, what);
    free_values(got, 2), free_values(&x, 1);
    end_graph(g);
}

static const int64_t lengths[] = { 1, 2, 31, 32, 33, 100, 1000, 4095, 4097 };

TEST_ROWS(sort_is_a_stable_sort, KINDS) {
    for (int i = 0; i < COUNT_OF(lengths); i++)
        for (int how = 0; how < 4; how++)
            try_order((pattern)_i, how & 1 ? WF_F64 : WF_F32, 2, lengths[i], 1, -1, how & 2);
}

TEST_ROWS(any_axis_is_sorted, KINDS) {
    for (int64_t inner = 2; inner < 40; inner += 15)
        for (int how = 0; how < 4; how++)
            try_order((pattern)_i, how & 1 ? WF_F64 : WF_F32, 2, 130, inner, how ? 5 : -1, how & 2);
}

TEST_ROWS(topk_is_the_head_of_a_sort, KINDS) {
    static const int64_t k[] = { 0, 1, 2, 7, 62, 63, 128, 129, 400, 500, 501, 999, 1000 };
    for (int i = 0; i < COUNT_OF(k); i++)
        for (int how = 0; how < 4; how++)
            try_order((pattern)_i, how & 1 ? WF_F64 : WF_F32, 2, 1000, 1, k[i], how & 2);
}

TEST_ROWS(topk_of_short_rows_is_the_head_of_a_sort, KINDS) {
    static const int64_t n[] = { 2, 5, 16, 33, 64, 65, 100 };
    for (int i = 0; i < COUNT_OF(n); i++)
        for (int64_t k = 1; k <= n[i]; k += 1 + n[i] / 9)
            for (int how = 0; how < 4; how++)
                try_order((pattern)_i, how & 1 ? WF_F64 : WF_F32, 3, n[i], 1, k, how & 2);
}

TEST(long_rows_are_listed) {
    for (int kind = 0; kind < KINDS; kind++)
        try_order((pattern)kind, WF_F32, 1, 4097, 1, 128, true);
}

/* topk's k is known while recording. The size of the axis is known only when its extent is bound,
 * so the error occurs there. */
TEST(topk_of_too_few_is_an_error_of_the_binding) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2, wf_extent(g, "N", 100)));
    wf_tensor *y = wf_topk(x, 4, -1, true).values;
    wf_plan *p =
        wf_plan_new(g, &(wf_plan_options){ .fetch = &y, .n_fetch = 1, .feed = &x, .n_feed = 1 });
    float data[8] = { 4, 1, 3, 2, 5, 6, 7, 8 };
    ck_assert_msg(wf_plan_ok(p), "%s", wf_plan_error(p));
    ck_assert(!(wf_bind(p, "N", 3) && wf_feed(p, x, data, 6 * sizeof *data) && wf_run(p)));
    ck_assert_msg(strstr(wf_plan_error(p), "the 4 first of axis 1, where [2,3] has 3") != NULL,
                  "%s", wf_plan_error(p));
    ck_assert_msg(wf_bind(p, "N", 4) && wf_feed(p, x, data, sizeof data) && wf_run(p), "%s",
                  wf_plan_error(p));
    wf_plan_free(p);
    end_graph(g);
}

/* ---- scans ----------------------------------------------------------------------------------- */

static wf_tensor *scan_of(int which, wf_tensor *x, int axis, bool reverse) {
    return which == 0   ? wf_cumsum(x, axis, reverse)
           : which == 1 ? wf_cumprod(x, axis, reverse)
                        : wf_linear_scan(x, wf_neg(x), axis, reverse);
}

/* A scan has the same bits alone and beside others, along rows or columns. */
TEST_ROWS(scans_do_not_depend_on_their_neighbours, 6) {
    enum { N = 333, MANY = 1100 };
    for (wf_dtype real = WF_F32; real <= WF_F64; real++) {
        wf_graph *g = new_graph(real);
        values got[3];
        double *data = malloc(N * MANY * sizeof *data);
        ck_assert_ptr_nonnull(data);
        for (int64_t i = 0; i < N * MANY; i++) data[i] = 2 * number(9, (uint64_t)i) - 1;
        wf_tensor *x = param_of(g, "x", SHAPE(N, MANY), data), *column = wf_slice(x, 1, 7, 8);
        wf_tensor *turned = wf_transpose(x, 0, 1);
        bool reverse = _i % 2;
        evaluate((wf_tensor *[]){ wf_slice(scan_of(_i / 2, x, 0, reverse), 1, 7, 8),
                                  scan_of(_i / 2, column, 0, reverse),
                                  wf_slice(scan_of(_i / 2, turned, 1, reverse), 0, 7, 8) },
                 3, 3, false, got);
        ck_assert_mem_eq(got[0].data, got[1].data, N * sizeof(double));
        ck_assert_mem_eq(got[0].data, got[2].data, N * sizeof(double));
        free_values(got, 3), free(data);
        end_graph(g);
    }
}

/* Running sums of f32 are computed in double: in f32, 2^24 + 1 + 1 + ... would stay 2^24. */
TEST(sums_are_kept_in_double) {
    wf_graph *g = new_graph(WF_F32);
    values got;
    wf_tensor *x = param_of(g, "x", SHAPE(5), (double[]){ 16777216, 1, 1, 1, 1 });
    evaluate((wf_tensor *[]){ wf_cumsum(x, 0, false) }, 1, 1, false, &got);
    ck_assert_double_eq(got.data[4], 16777220);
    free_values(&got, 1);
    end_graph(g);
}
