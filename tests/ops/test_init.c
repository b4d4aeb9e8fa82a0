/* tests/ops/test_init.c - initial values and checked sizes. */
#include "core/op_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"

#include "core/base/random.h"

TESTS(init)

enum { N = 100000 };
static const int64_t shape[2] = { 100, N / 100 };

static double *fill(wf_init init, uint64_t key) {
    double *x = malloc(N * sizeof *x);
    ck_assert_ptr_nonnull(x);
    init.fill(&init, key, WF_F64, 2, shape, x);
    return x;
}

static double moment(const double *x, int power) {
    double sum = 0;
    for (int i = 0; i < N; i++) sum += pow(x[i], power);
    return sum / N;
}

/* Bounds of five standard errors. */
TEST(uniform_and_normal_have_their_moments) {
    double *u = fill(wf_init_uniform(0.5), 1), *n = fill(wf_init_normal(2), 1), e = 5 / sqrt(N);
    ck_assert_double_eq_tol(moment(u, 1), 0, e * 0.5 / sqrt(3));
    ck_assert_double_eq_tol(moment(u, 2), 0.25 / 3, e * 0.25 * sqrt(4.0 / 45));
    ck_assert_double_eq_tol(moment(n, 1), 0, e * 2);
    ck_assert_double_eq_tol(moment(n, 2), 4, e * 4 * sqrt(2));
    ck_assert_double_eq_tol(moment(n, 4), 48, e * 16 * sqrt(96));
    for (int i = 0; i < N; i++) ck_assert(u[i] >= -0.5 && u[i] < 0.5 && isfinite(n[i]));
    free(u), free(n);
}

TEST(values_depend_on_key_and_element_alone) {
    wf_init inits[] = { wf_init_uniform(3), wf_init_normal(1) };
    for (int i = 0; i < COUNT_OF(inits); i++) {
        double *a = fill(inits[i], 7), *b = fill(inits[i], 8), few[5];
        float narrow[5];
        inits[i].fill(&inits[i], 7, WF_F64, 1, (int64_t[]){ 5 }, few);
        inits[i].fill(&inits[i], 7, WF_F32, 1, (int64_t[]){ 5 }, narrow);
        ck_assert_mem_eq(a, few, sizeof few);
        for (int k = 0; k < 5; k++) ck_assert(narrow[k] == (float)a[k]);
        for (int k = 0; k < 5; k++) ck_assert(a[k] != b[k]);
        free(a), free(b);
    }
    double *u = fill(wf_init_uniform(1), 7);
    wf_philox r = wf_philox4x32(7, 99, 0);
    ck_assert(u[99] == 2 * wf_unit_double(r.v[0], r.v[1]) - 1);
    free(u);
}

/* Initial values are near those of libm's functions. An f32 element is the f64 one, rounded
 * once. */
TEST(f32_is_the_rounded_f64) {
    wf_init inits[] = { wf_init_uniform(0.3), wf_init_normal(0.02) };
    float *narrow = malloc(N * sizeof *narrow);
    for (int i = 0; i < COUNT_OF(inits); i++) {
        double *wide = fill(inits[i], 11);
        inits[i].fill(&inits[i], 11, WF_F32, 2, shape, narrow);
        for (int e = 0; e < N; e++) {
            wf_philox r = wf_philox4x32(11, (uint64_t)e, 0);
            double u = wf_unit_double(r.v[0], r.v[1]), v = wf_unit_double(r.v[2], r.v[3]);
            double x =
                i ? 0.02 * sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v) : 0.3 * (2 * u - 1);
            ck_assert_double_eq_tol(wide[e], x, 1e-15 * (1 + fabs(x)));
            ck_assert(narrow[e] == (float)wide[e]);
        }
        free(wide);
    }
    free(narrow);
}

TEST(constants_in_every_type) {
    wf_init three = wf_init_constant(3), zero = wf_init_zeros(), huge = wf_init_constant(1e300);
    int32_t i[4] = { 9, 9, 9, 9 };
    float f[1] = { 9 };
    three.fill(&three, 0, WF_I32, 2, (int64_t[]){ 1, 2 }, i);
    zero.fill(&zero, 0, WF_I32, 0, NULL, i + 2);
    ck_assert(i[0] == 3 && i[1] == 3 && i[2] == 0 && i[3] == 9);
    huge.fill(&huge, 0, WF_I32, 0, NULL, i);
    ck_assert_int_eq(i[0], INT32_MAX);
    three.fill(&three, 0, WF_F32, 1, (int64_t[]){ 0 }, f);
    ck_assert(f[0] == 9);
}

TEST(sizes_do_not_overflow) {
    int64_t product = 0;
    size_t bytes = 0;
    ck_assert(wf_mul_size(INT64_MAX, 1, &product) && product == INT64_MAX);
    ck_assert(wf_mul_size(0, INT64_MAX, &product) && product == 0);
    ck_assert(wf_mul_size(INT64_C(1) << 31, INT64_C(1) << 31, &product) && product == INT64_C(1)
                                                                                          << 62);
    ck_assert(!wf_mul_size(INT64_C(1) << 32, INT64_C(1) << 31, &product));
    ck_assert(!wf_mul_size(INT64_MAX, 2, &product));
    ck_assert(!wf_mul_size(-1, 1, &product) && !wf_mul_size(1, -1, &product));
    ck_assert(wf_shape_bytes(WF_F64, 0, NULL, &bytes) && bytes == 8);
    ck_assert(wf_shape_bytes(WF_I32, 2, (int64_t[]){ 3, 5 }, &bytes) && bytes == 60);
    ck_assert(wf_shape_bytes(WF_F32, 2, (int64_t[]){ 0, 7 }, &bytes) && bytes == 0);
    ck_assert(
        !wf_shape_bytes(WF_F32, 2, (int64_t[]){ 0, INT64_MAX }, &bytes)); /* nor its strides */
    ck_assert(!wf_shape_bytes(WF_F32, 1, (int64_t[]){ INT64_MAX / 2 }, &bytes));
    ck_assert(!wf_shape_bytes(WF_F32, 1, (int64_t[]){ -1 }, &bytes));
    ck_assert(!wf_shape_bytes((wf_dtype)3, 1, (int64_t[]){ 1 }, &bytes));
    ck_assert(!wf_shape_bytes(WF_F32, WF_MAX_DIMS + 1, (int64_t[9]){ 1 }, &bytes));
    ck_assert_uint_eq(wf_dtype_size((wf_dtype)-1), 0);
    ck_assert_str_eq(wf_dtype_name(WF_F32), "f32");
    ck_assert_str_eq(wf_dtype_name((wf_dtype)77), "?");
}
