/* tests/core/file/test_scaled.c - int8 matrices in files: a tensor of int8 numbers, and a tensor of
 * scales, one for each row. Numbers and scales that do not fit each other are refused. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "core/file_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <unistd.h>

#include "core/save.h"

TESTS(scaled)

static char folder[] = "/tmp/weft-scaled-XXXXXX";

static void enter_folder(void) {
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void leave_folder(void) {
    unlink("file"), unlink("first"), unlink("again");
    ck_assert(chdir("/") == 0 && rmdir(folder) == 0);
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
}

SETUP(enter_folder, leave_folder)

enum { N = 3, K = 5, MESSAGE = 256 };
static const float weights[N * K] = { 1, -2, 3, 0.1f, 0, 0, 0, 0, 0, 0, -5, 4, 3, 2, 1 };

/* w is a weight of a matrix product, which can be packed in int8; b is not. */
static wf_graph *new_model(wf_layout layout, wf_dtype real) {
    wf_graph *g = new_graph(real);
    wf_tensor *w = wf_param(g, "w", SHAPE(N, K), wf_init_zeros());
    wf_tensor *b = wf_param(g, "b", SHAPE(N), wf_init_zeros());
    wf_gemm(wf_input(g, "a", real, SHAPE(2, K)), w, b, WF_TRANSPOSE_B);
    ck_assert(wf_pack_weights(g, layout, NULL));
    return g;
}

static void save_weights(const char *path) {
    char message[MESSAGE] = "";
    wf_graph *g = new_model(WF_PANELS_INT8, WF_F32);
    ck_assert(wf_write(wf_find(g, "w"), weights, sizeof weights));
    ck_assert_msg(wf_save(g, path, NULL, NULL, 0, message), "%s", message);
    end_graph(g);
}

TEST(numbers_and_scales_are_stored_and_read) {
    save_weights("first");
    wf_file *f = wf_file_open("first");
    ck_assert_msg(wf_file_ok(f) && wf_file_count(f) == 3, "%s", wf_file_error(f));
    const wf_entry *w = wf_file_find(f, "w"), *scale = wf_file_find(f, "w_scale");
    ck_assert_str_eq(w->dtype, "I8");
    ck_assert(scale == wf_file_scale_of(f, w) && wf_file_is_scale(f, scale));
    ck_assert(!wf_file_is_scale(f, w) && !wf_file_scale_of(f, scale));
    ck_assert(w->bytes == N * K && scale->bytes == N * 4 && scale->ndim == 1);
    const int8_t *q = w->data;
    ck_assert(q[2] == 127 && q[1] == -85 && q[5] == 0 && q[10] == -127);
    ck_assert(((const float *)scale->data)[1] == 0);
    static const wf_layout layouts[] = { WF_ROW_MAJOR, WF_PANELS, WF_PANELS_INT8 };
    for (int i = 0; i < COUNT_OF(layouts); i++) {
        wf_load_report report;
        wf_graph *g = new_model(layouts[i], WF_F32);
        ck_assert_msg(wf_load(g, f, NULL, &report), "%s", report.message);
        ck_assert(report.loaded == 2 && report.unexpected == 0);
        float now[N * K];
        ck_assert(wf_read(wf_find(g, "w"), now, sizeof now));
        for (int j = 0; j < N * K; j++)
            ck_assert(now[j] == (float)q[j] * ((const float *)scale->data)[j / K]);
        ck_assert(wf_pack_weights(g, WF_PANELS_INT8, NULL)); /* and back: nothing more is lost */
        ck_assert(wf_save(g, "again", NULL, NULL, 0, NULL));
        end_graph(g);
        wf_file *again = wf_file_open("again");
        ck_assert_mem_eq(wf_file_find(again, "w")->data, w->data, w->bytes);
        ck_assert_mem_eq(wf_file_find(again, "w_scale")->data, scale->data, scale->bytes);
        wf_file_free(again);
    }
    wf_graph *doubles = new_model(WF_ROW_MAJOR, WF_F64);
    ck_assert(wf_load(doubles, f, NULL, NULL));
    end_graph(doubles);
    wf_file_free(f);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static const int8_t whole[N * K] = { 127, 1, 2 }, lowest[N * K] = { 127, 1, 2, 3, 4, 5, -128 };
static const float good[N] = { 1, 2, 3 }, broken[N] = { 1, NAN, 3 }, below[N] = { 1, 2, -1 };
static const double wide[N] = { 1, 2, 3 };
static const float not_finite[N * K] = { 1, 2, INFINITY };

static const struct {
    const char *name, *dtype; /* of the tensor of scales; NULL: there is none */
    const void *numbers, *scale;
    int64_t rows;
    const char *message;
} refused[] = {
    { NULL, NULL, whole, NULL, 0, "tensor 'w': I8 without 'w_scale', an F32 for each row" },
    { "w_scale", "F32", whole, good, 2, "I8 without 'w_scale'" },
    { "w_scale", "F64", whole, wide, N, "I8 without 'w_scale'" },
    { "w_scales", "F32", whole, good, N, "I8 without 'w_scale'" },
    { "w_scale", "F32", whole, broken, N, "tensor 'w_scale': element 1 is nan: a scale is finite" },
    { "w_scale", "F32", whole, below, N, "tensor 'w_scale': element 2 is -1" },
    { "w_scale", "F32", lowest, good, N, "tensor 'w': element 6 is -128: int8 weights are from" },
    { "w_scale", "F32", not_finite, good, N, "element 2 is NaN or infinite: it cannot be kept as" },
};

TEST_ROWS(what_contradicts_is_refused, COUNT_OF(refused)) {
    bool f32 = refused[_i].numbers == not_finite;
    wf_entry entries[3] = {
        { "w", f32 ? "F32" : "I8", 2, { N, K }, refused[_i].numbers, N * K * (f32 ? 4 : 1) },
        { "b", "F32", 1, { N }, good, sizeof good },
    };
    size_t size = refused[_i].dtype && strcmp(refused[_i].dtype, "F64") == 0 ? 8 : 4;
    entries[2] =
        (wf_entry){ refused[_i].name,     refused[_i].dtype, 1,
                    { refused[_i].rows }, refused[_i].scale, (size_t)refused[_i].rows * size };
    char message[MESSAGE] = "";
    ck_assert_msg(wf_file_save("file", entries, refused[_i].name ? 3 : 2, NULL, 0, message), "%s",
                  message);
    wf_file *f = wf_file_open("file");
    wf_graph *g = new_model(WF_PANELS_INT8, WF_F32);
    wf_load_report report;
    ck_assert(wf_write(wf_find(g, "w"), weights, sizeof weights));
    wf_load_options loose = { .allow = WF_ALLOW_UNEXPECTED };
    ck_assert(!wf_load(g, f, &loose, &report));
    assert_contains(report.message, refused[_i].message);
    float now[N * K];
    ck_assert(wf_read(wf_find(g, "w"), now, sizeof now) && now[10] < -4.9f); /* as it was */
    end_graph(g), wf_file_free(f);
}

/* A tensor w_scale beside a w that is not int8 is a tensor like others. */
TEST(a_scale_alone_is_unexpected) {
    static const float zeros[N * K] = { 0 };
    const wf_entry entries[] = { { "w", "F32", 2, { N, K }, zeros, sizeof zeros },
                                 { "b", "F32", 1, { N }, good, sizeof good },
                                 { "w_scale", "F32", 1, { N }, good, sizeof good } };
    ck_assert(wf_file_save("file", entries, 3, NULL, 0, NULL));
    wf_file *f = wf_file_open("file");
    wf_graph *g = new_model(WF_ROW_MAJOR, WF_F32);
    wf_load_report report;
    ck_assert(!wf_load(g, f, NULL, &report));
    assert_contains(report.message, "'w_scale' [3] is in the file but not in the graph");
    ck_assert(!wf_file_is_scale(f, wf_file_find(f, "w_scale")) && !wf_file_is_scale(f, NULL));
    ck_assert(!wf_file_scale_of(f, NULL) && !wf_file_scale_of(NULL, &entries[0]));
    end_graph(g), wf_file_free(f);
}

/* A file that is cut at any place is refused, and one with a changed bit in any byte of its
 * data. */
TEST(a_damaged_file_is_refused) {
    char bytes[4096], damaged[4096];
    save_weights("file");
    FILE *file = fopen("file", "rb");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    ck_assert(size > 64 && size < sizeof bytes);
    for (size_t n = 0; n < size; n++) {
        wf_file *f = wf_file_parse(bytes, n);
        ck_assert(!wf_file_ok(f));
        wf_file_free(f);
    }
    for (size_t i = size - (N * K + N * 4 + N * 4); i < size; i++) {
        memcpy(damaged, bytes, size);
        damaged[i] ^= 1;
        wf_file *f = wf_file_parse(damaged, size);
        ck_assert(!wf_file_ok(f));
        wf_file_free(f);
    }
}
