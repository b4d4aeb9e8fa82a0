/* tests/ops/test_emit_int8.c - products and embedding with weights in int8, written as C: with the
 * weights as arrays of the file, or in a second file. The results have the bits of the library. */
#include <math.h>
#include <stdio.h>

#include "core/emit.h"
#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/emitted.h"

TESTS(emit_int8)

SETUP(enter_folder, leave_folder)

typedef enum addend_form { NONE, BIAS, COLUMN, FULL } addend_form;

/* y = x w^T + addend for x [batch, m, k] and w [n, k]. turned: x is a transpose. */
typedef struct product_row {
    int64_t batch, m, n, k;
    addend_form addend;
    bool turned;
} product_row;

static const product_row products[] = {
    { 1, 1, 1, 1, NONE, false },    { 1, 4, 32, 64, BIAS, false }, { 1, 5, 33, 63, BIAS, false },
    { 3, 7, 65, 130, NONE, false }, { 3, 2, 70, 40, BIAS, true },  { 2, 3, 5, 17, COLUMN, false },
    { 2, 6, 40, 257, FULL, false }, { 1, 9, 129, 31, FULL, true }, { 4, 1, 36, 96, BIAS, false },
    { 1, 5, 33, 300, BIAS, false },
};

static wf_tensor *addend_of(wf_graph *g, const product_row *r) {
    if (r->addend == NONE) return NULL;
    wf_init normal = wf_init_normal(1);
    if (r->addend == BIAS) return wf_param(g, "addend", SHAPE(r->n), normal);
    if (r->addend == COLUMN) return wf_param(g, "addend", SHAPE(r->m, 1), normal);
    return wf_param(g, "addend", SHAPE(r->batch, r->m, r->n), normal);
}

/* Numbers of many sizes; a row of zeros, one of tiny numbers, and rows with an infinity and a
 * NaN. */
static void fill(const product_row *r, float *x) {
    int64_t k = r->k, rows = r->batch * r->m;
    for (int64_t i = 0; i < rows * k; i++) {
        double u = number(3, (uint64_t)i) * 2 - 1;
        x[i] = (float)(u * exp2(8 * number(4, (uint64_t)(i / k)) - 4));
        if (i / k == 4) x[i] = 0;
        if (i / k == 5) x[i] *= 1e-37f;
        if (i == 6 * k) x[i] = INFINITY;
        if (i == 8 * k - 1) x[i] = NAN;
    }
}

static void write_bytes(const char *path, const void *data, size_t n) {
    FILE *file = fopen(path, "wb");
    ck_assert(file && fwrite(data, 1, n, file) == n && fclose(file) == 0);
}

/* The test's program: it reads the inputs from a file, and prints the results. */
static const char program[] =
    "int main(void) {\n"
    "    static _Alignas(64) unsigned char memory[model_ARENA];\n"
    "    static float x[X], y[Y], e[E];\n    static int32_t ids[3] = { 0, 0, N - 1 };\n"
    "    static model m;\n"
    "    FILE *in = fopen(\"input\", \"rb\");\n"
    "    if (!in || fread(x, 4, X, in) != X) return 1;\n    fclose(in);\n"
    "    BEGIN\n    m.x = x;\n    m.ids = ids;\n    if (model_run(&m)) return 4;\n"
    "    model_get_y(&m, y);\n    model_get_e(&m, e);\n"
    "    fwrite(y, 4, Y, stdout);\n    fwrite(e, 4, E, stdout);\n    return 0;\n}\n";

static const char reads_file[] =
    "static _Alignas(4) unsigned char bytes[model_FILE + 1];\\\n"
    "    in = fopen(\"weights\", \"rb\");\\\n"
    "    if (!in || fread(bytes, 1, model_FILE + 1, in) != model_FILE) return 2;\\\n"
    "    fclose(in);\\\n    if (model_start(&m, memory, bytes, model_FILE)) return 3;";

static void try_row(const product_row *r, wf_plan *p, bool apart) {
    char message[WF_MESSAGE], main[8192];
    wf_emit_weights file;
    int64_t n_int8 = 0;
    char *text = wf_emit(
        &p, 1, &(wf_emit_options){ .n_int8 = &n_int8, .weights_file = apart ? &file : NULL },
        message);
    ck_assert_msg(text, "%s", message);
    ck_assert_int_ge(n_int8, r->n * r->k);
    if (apart) write_bytes("weights", file.bytes, file.n);
    if (apart) free(file.bytes);
    snprintf(main, sizeof main,
             "enum { X = %lld, Y = %lld, E = %lld, N = %lld };\n#define BEGIN %s\n%s",
             (long long)(r->batch * r->m * r->k), (long long)(r->batch * r->m * r->n),
             (long long)(3 * r->k), (long long)r->n,
             apart ? reads_file : "model_start(&m, memory);", program);
    try_emitted(text, main);
    free(text);
}

TEST_ROWS(products_with_weights_in_int8, COUNT_OF(products)) {
    const product_row *r = &products[_i];
    int64_t rows = r->batch * r->m;
    if (!has_emitted_compiler("emit_int8")) return;
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *ids = wf_input(g, "ids", WF_I32, SHAPE(3)), *x;
    if (r->turned)
        x = wf_input(g, "x", WF_F32, SHAPE(r->batch, r->k, r->m));
    else
        x = wf_input(g, "x", WF_F32, SHAPE(r->batch, r->m, r->k));
    wf_tensor *w = wf_param(g, "w", SHAPE(r->n, r->k), wf_init_normal(0.3));
    wf_tensor *a = r->turned ? wf_transpose(x, 1, 2) : x;
    wf_tensor *y = wf_named(wf_gemm(a, w, addend_of(g, r), WF_TRANSPOSE_B), "y");
    wf_tensor *e = wf_named(wf_embedding(w, ids), "e");
    ck_assert_msg(wf_pack_weights(g, WF_PANELS_INT8, NULL), "%s", wf_error(g));
    wf_tensor *fetch[] = { y, e }, *feed[] = { x, ids };
    wf_plan *p = wf_plan_new(
        g, &(wf_plan_options){ .fetch = fetch, .n_fetch = 2, .feed = feed, .n_feed = 2 });
    size_t bytes = (size_t)(rows * r->n + 3 * r->k) * 4, in = (size_t)(rows * r->k) * 4;
    float *sources = malloc(in), *results = malloc(bytes);
    const int32_t which[] = { 0, 0, (int32_t)r->n - 1 };
    fill(r, sources);
    write_bytes("input", sources, in);
    ck_assert_msg(wf_feed(p, x, sources, in) && wf_feed(p, ids, which, sizeof which) && wf_run(p),
                  "%s", wf_plan_error(p));
    ck_assert(wf_fetch(p, y, results, (size_t)(rows * r->n) * 4));
    ck_assert(wf_fetch(p, e, results + rows * r->n, (size_t)(3 * r->k) * 4));
    write_bytes("expected", results, bytes);
    try_row(r, p, false);
    try_row(r, p, true);
    free(sources);
    free(results);
    wf_plan_free(p);
    end_graph(g);
}

/* Only products and embedding can read weights in int8: any other op of them is refused. */
TEST(other_readers_of_int8_are_refused) {
    wf_graph *g = new_graph(WF_F32);
    char message[WF_MESSAGE];
    wf_tensor *w = wf_param(g, "w", SHAPE(8, 8), wf_init_normal(1));
    wf_tensor *y = wf_named(wf_exp(w), "y");
    ck_assert(wf_set_layout(w, WF_PANELS_INT8));
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = &y, .n_fetch = 1 });
    ck_assert_ptr_null(wf_emit(&p, 1, NULL, message));
    ck_assert_msg(strstr(message, "weights in int8 have no form in C"), "%s", message);
    wf_plan_free(p);
    end_graph(g);
}
