/* tests/core/file/test_load.c - entries of files loaded into leaves: which types are converted, and
 * which types, shapes and values are refused. */
#include "core/file_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"

#include <float.h>

#include "core/file.h"

TESTS(load)

enum { MESSAGE = 256 };
static const float six[6] = { 1, -2, 3.5f, 0, INFINITY, 6 };

static void check_load(wf_graph *g, const char *dtype, const void *data, size_t bytes,
                       const double *expected) {
    char message[MESSAGE] = "";
    wf_tensor *leaf = wf_find(g, "w");
    wf_entry e = { "w", dtype, 1, { 3 }, data, bytes };
    ck_assert_msg(wf_file_load(&e, leaf, message), "%s: %s", dtype, message);
    double *got = leaf_values(leaf);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(got[i] == expected[i], "%s: %.17g is not %.17g", dtype, got[i], expected[i]);
    free(got);
}

TEST(real_types_convert) {
    for (wf_dtype real = WF_F32; real <= WF_F64; real++) {
        wf_graph *g = new_graph(real);
        wf_param(g, "w", SHAPE(3), wf_init_zeros());
        const double expected[3] = { 1.5, -2, INFINITY },
                     tiny[3] = { 0x1p-24, -0x1.ff8p-15, 65504 };
        check_load(g, "F32", (float[]){ 1.5f, -2, INFINITY }, 12, expected);
        check_load(g, "F64", expected, 24, expected);
        check_load(g, "BF16", (uint16_t[]){ 0x3FC0, 0xC000, 0x7F80 }, 6, expected);
        check_load(g, "F16", (uint16_t[]){ 0x3E00, 0xC000, 0x7C00 }, 6, expected);
        check_load(g, "F16", (uint16_t[]){ 0x0001, 0x83FF, 0x7BFF }, 6, tiny);
        const wf_entry nan = { "w", "F16", 1, { 3 }, (uint16_t[]){ 0x7E00, 0x7C01, 0xFFFF }, 6 };
        ck_assert(wf_file_load(&nan, wf_find(g, "w"), NULL));
        double *got = leaf_values(wf_find(g, "w"));
        ck_assert(isnan(got[0]) && isnan(got[1]) && isnan(got[2]));
        free(got);
        end_graph(g);
    }
}

static int64_t not_finite(const char *dtype, const void *data, size_t bytes) {
    return wf_file_not_finite(&(wf_entry){ "w", dtype, 1, { 4 }, data, bytes });
}

/* wf_file_not_finite counts NaN and infinities, but not the largest finite numbers. The data may
 * have any alignment. */
TEST(what_is_not_finite_is_counted) {
    const char shifted[] = "\0\0\0\x80\x7f\0\0\xc0\xff\xff\xff\x7f\x7f\0\0\0";
    ck_assert_int_eq(not_finite("F32", (float[]){ 1, INFINITY, -NAN, FLT_MAX }, 16), 2);
    ck_assert_int_eq(not_finite("F64", (double[]){ NAN, -INFINITY, DBL_MAX, 0 }, 32), 2);
    ck_assert_int_eq(not_finite("F16", (uint16_t[]){ 0x7C00, 0xFFFF, 0x7BFF, 0xFBFF }, 8), 2);
    ck_assert_int_eq(not_finite("BF16", (uint16_t[]){ 0x7F80, 0xFFFF, 0x7F7F, 0xFF7F }, 8), 2);
    ck_assert_int_eq(not_finite("F32", shifted + 1, 12), 2);
    ck_assert_int_eq(not_finite("I32", (int32_t[]){ -1, -1, -1, -1 }, 16), 0);
    ck_assert_int_eq(not_finite("F32", NULL, 0), 0);
    ck_assert_int_eq(wf_file_not_finite(NULL), 0);
}

TEST(integers_convert_in_range) {
    wf_graph *g = new_graph(WF_F32);
    wf_buffer(g, "w", WF_I32, SHAPE(3), wf_init_zeros());
    const double expected[3] = { INT32_MIN, 7, INT32_MAX };
    check_load(g, "I32", (int32_t[]){ INT32_MIN, 7, INT32_MAX }, 12, expected);
    check_load(g, "I64", (int64_t[]){ INT32_MIN, 7, INT32_MAX }, 24, expected);
    const int64_t beyond[] = { (int64_t)INT32_MAX + 1, (int64_t)INT32_MIN - 1, INT64_MAX,
                               INT64_MIN };
    for (int i = 0; i < 4; i++) {
        char message[MESSAGE] = "";
        wf_entry e = { "w", "I64", 1, { 3 }, (int64_t[]){ 0, beyond[i], 0 }, 24 };
        ck_assert(!wf_file_load(&e, wf_find(g, "w"), message));
        assert_contains(message, "tensor 'w': element 1 is ");
    }
    double *got = leaf_values(wf_find(g, "w"));
    ck_assert(got[1] == 7); /* nothing was written */
    free(got);
    end_graph(g);
}

TEST(data_may_lie_anywhere) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = wf_param(g, "w", SHAPE(3, 2), wf_init_zeros());
    char bytes[25];
    float got[6];
    memcpy(bytes + 1, six, 24);
    ck_assert(wf_set_layout(w, WF_PANELS));
    ck_assert(wf_file_load(&(wf_entry){ "w", "F32", 2, { 3, 2 }, bytes + 1, 24 }, w, NULL));
    ck_assert(wf_read(w, got, sizeof got) && memcmp(got, six, sizeof got) == 0);
    end_graph(g);
}

TEST(what_does_not_fit_is_not_loaded) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = wf_param(g, "w", SHAPE(3, 2), wf_init_zeros()),
              *v = wf_param(g, "v", SHAPE(1), wf_init_zeros());
    char message[MESSAGE] = "";
    ck_assert(!wf_file_load(&(wf_entry){ "w", "F32", 2, { 2, 3 }, six, 24 }, w, message));
    assert_contains(message, "'w' is [2,3] in the file, not [3,2] as in the model");
    ck_assert(!wf_file_load(&(wf_entry){ "w", "F32", 1, { 6 }, six, 24 }, w, message));
    assert_contains(message, "[6] in the file");
    ck_assert(!wf_file_load(&(wf_entry){ "w", "I32", 2, { 3, 2 }, six, 24 }, w, message));
    assert_contains(message, "I32 in the file cannot become f32");
    ck_assert(!wf_file_load(&(wf_entry){ "w", "F32", 2, { 3, 2 }, six, 20 }, w, message));
    assert_contains(message, "20 bytes, 24 expected");
    ck_assert(
        !wf_file_load(&(wf_entry){ "v", "F64", 1, { 1 }, (double[]){ 1e300 }, 8 }, v, message));
    assert_contains(message, "too large for f32");
    ck_assert(!wf_file_load(NULL, w, message) && *message);
    const wf_entry none[] = { { NULL, "F32", 2, { 3, 2 }, six, 24 },
                              { "w", NULL, 2, { 3, 2 }, six, 24 } };
    for (int i = 0; i < COUNT_OF(none); i++) {
        ck_assert(!wf_file_load(&none[i], w, message));
        assert_contains(message, "no entry, or no leaf");
    }
    ck_assert(!wf_file_load(&(wf_entry){ "w", "F32", 2, { 3, 2 }, NULL, 24 }, w, message));
    assert_contains(message, "tensor 'w': its data are not there");
    ck_assert(!wf_file_load(&(wf_entry){ "w", "F32", 2, { 3, 2 }, six, 24 }, NULL, message));
    end_graph(g);
}
