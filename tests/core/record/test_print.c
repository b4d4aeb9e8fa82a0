/* tests/core/record/test_print.c - tensors printed into a buffer. */
#include "ops/ops.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(print)

static void assert_prints(wf_plan *p, const wf_tensor *t, const char *expected) {
    char text[2048];
    int n = wf_print(p, t, text, sizeof text);
    ck_assert_str_eq(text, expected);
    ck_assert_int_eq(n, (int)strlen(expected));
    for (size_t size = 0; size <= strlen(expected) + 1; size++) { /* cut as snprintf does */
        memset(text, '#', sizeof text);
        ck_assert_int_eq(wf_print(p, t, text, size), n);
        ck_assert(!size || (strlen(text) == size - 1 && !strncmp(text, expected, size - 1)));
        ck_assert(text[size] == '#');
    }
}

TEST(leaves_are_printed_as_numpy_does) {
    wf_graph *g = new_graph(WF_F64);
    assert_prints(NULL, wf_constant(g, 0.5), "0.5");
    assert_prints(NULL, param_of(g, "v", SHAPE(3), (double[]){ 1, -2.5, 1e10 }),
                  "[    1  -2.5 1e+10]");
    assert_prints(NULL, param_of(g, "m", SHAPE(2, 2), (double[]){ 1, 2, NAN, -INFINITY }),
                  "[[   1    2]\n [ nan -inf]]");
    assert_prints(NULL, param_of(g, "t", SHAPE(2, 2, 1), (double[]){ 1, 2, 3, 4 }),
                  "[[[1]\n  [2]]\n\n [[3]\n  [4]]]");
    assert_prints(NULL, wf_param(g, "none", SHAPE(0), wf_init_zeros()), "[]");
    assert_prints(NULL, wf_shape(g, SHAPE(2, 30)), "[2,30]");
    end_graph(g);
}

TEST(long_axes_are_shortened) {
    wf_graph *g = new_graph(WF_F32);
    double count[12 * 11];
    for (int i = 0; i < COUNT_OF(count); i++) count[i] = i;
    assert_prints(NULL, param_of(g, "ten", SHAPE(10), count), "[0 1 2 3 4 5 6 7 8 9]");
    assert_prints(NULL, param_of(g, "long", SHAPE(11), count), "[ 0  1  2 ...  8  9 10]");
    assert_prints(NULL, param_of(g, "square", SHAPE(12, 11), count),
                  "[[  0   1   2 ...   8   9  10]\n [ 11  12  13 ...  19  20  21]\n [ 22  23  24 "
                  "...  30  31  32]\n"
                  " ...\n [ 99 100 101 ... 107 108 109]\n [110 111 112 ... 118 119 120]\n"
                  " [121 122 123 ... 129 130 131]]");
    end_graph(g);
}

TEST(results_of_a_plan_are_printed) {
    wf_graph *g = new_graph(WF_F32);
    int64_t B = wf_extent(g, "B", 8);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(B, 2)), *ids = wf_arange(x, 0),
              *y = wf_scale(x, 0.5), *out[] = { ids, y };
    wf_plan *p =
        wf_plan_new(g, &(wf_plan_options){ .fetch = out, .n_fetch = 2, .feed = &x, .n_feed = 1 });
    char text[64];
    ck_assert_int_eq(wf_print(p, y, text, sizeof text), -1); /* not bound, not run */
    ck_assert(wf_bind(p, "B", 2) && wf_feed(p, x, (float[]){ 1, 2, 3, 4 }, 4 * sizeof(float)) &&
              wf_run(p));
    assert_prints(p, ids, "[0 1]");
    assert_prints(p, y, "[[0.5   1]\n [1.5   2]]");
    ck_assert_int_eq(wf_print(NULL, y, text, sizeof text), -1); /* not a leaf */
    ck_assert_int_eq(wf_print(p, NULL, text, sizeof text), -1);
    wf_plan_free(p);
    end_graph(g);
}
