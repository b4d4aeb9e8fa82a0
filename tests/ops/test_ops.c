/* tests/ops/test_ops.c - requirements that hold for every row of the table of ops.
 *
 * Not here: gradients, which are in test_gradients.c; the engine: test_graph.c, test_plan.c. */
#include <float.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/graph_internal.h"
#include "op_cases.h"
#include "ops/ops_internal.h"
#include "tests/suites.h"

TESTS(ops)

static const char *shape_of(const wf_tensor *t, char *buffer, size_t size) {
    return wf_shape_text(t->graph, t->ndim, t->shape, buffer, size);
}

TEST_ROWS(row_gives_its_shape, op_case_count) {
    fixture f;
    char text[128];
    values once[MAX_OUTPUTS], again[MAX_OUTPUTS];
    fixture_open(&f, &op_cases[_i], WF_F64, PLAIN);
    ck_assert_msg(wf_ok(f.g), "%s", wf_error(f.g));
    if (!f.row->update) ck_assert_str_eq(shape_of(f.y, text, sizeof text), f.row->expect);
    int n = fixture_outputs(&f);
    fixture_evaluate(&f, 1, once);
    if (!f.row->update) {
        int64_t count = wf_count(f.y);
        ck_assert_int_eq(once[0].count, count);
        fixture_evaluate(&f, 1, again);
        ck_assert_msg(same_bits(once[0], again[0]), "%s differs from run to run", f.row->name);
        free_values(again, n);
    }
    free_values(once, n);
    tally_note(TALLY_ROWS, 0);
    fixture_close(&f);
}

/* An op returns a new node, never its operand, because their gradients differ. Only a dropout with
 * rate 0 returns its operand, so that models without dropout have no nodes for it. */
TEST_ROWS(row_is_a_node_of_its_own, op_case_count) {
    fixture f;
    fixture_open(&f, &op_cases[_i], WF_F64, PLAIN);
    bool excepted = strcmp(f.row->name, "dropout_none") == 0;
    for (int i = 0; i < f.n; i++)
        ck_assert_msg(f.y != f.x[i] || excepted, "%s is its operand", f.row->name);
    fixture_close(&f);
}

TEST_ROWS(row_fails_with_its_message, failing_case_count) {
    fixture f;
    fixture_open(&f, &failing_cases[_i], WF_F32, PLAIN);
    ck_assert_ptr_nonnull(f.y);
    ck_assert_msg(!wf_ok(f.g), "%s was accepted", f.row->name);
    assert_contains(wf_error(f.g), f.row->expect);
    wf_graph_free(f.g);
}

static void outputs_of(const op_case *row, wf_dtype real, dressing how, int threads, values *out,
                       int *n) {
    fixture f;
    fixture_open(&f, row, real, how);
    fixture_differentiate(&f);
    *n = fixture_outputs(&f);
    fixture_evaluate(&f, threads, out);
    fixture_close(&f);
}

/* Operands that are transposed, every third element of a leaf, or computed values that the op may
 * overwrite give the same results. */
TEST_ROWS(row_takes_any_layout, op_case_count) {
    const op_case *row = &op_cases[_i];
    values plain[MAX_OUTPUTS], dressed[MAX_OUTPUTS];
    int n, m;
    outputs_of(row, WF_F64, PLAIN, 1, plain, &n);
    for (dressing how = TRANSPOSED; how <= COMPUTED; how++) {
        outputs_of(row, WF_F64, how, 1, dressed, &m);
        ck_assert_int_eq(n, m);
        for (int i = 0; i < n; i++) {
            double error = distance(dressed[i], plain[i]);
            ck_assert_msg(error <= 1e-12, "%s, dressing %d, output %d: %g", row->name, (int)how, i,
                          error);
        }
        free_values(dressed, m);
    }
    free_values(plain, n);
}

TEST_ROWS(row_has_the_same_bits_on_any_number_of_threads, op_case_count) {
    const op_case *row = &op_cases[_i];
    static const int threads[] = { 2, 5 };
    for (wf_dtype real = WF_F32; real <= WF_F64; real++) {
        values one[MAX_OUTPUTS], many[MAX_OUTPUTS];
        int n, m;
        outputs_of(row, real, PLAIN, 1, one, &n);
        for (int t = 0; t < COUNT_OF(threads); t++) {
            outputs_of(row, real, PLAIN, threads[t], many, &m);
            for (int i = 0; i < n; i++)
                ck_assert_msg(same_bits(one[i], many[i]), "%s: output %d differs on %d threads",
                              row->name, i, threads[t]);
            free_values(many, m);
        }
        free_values(one, n);
    }
}

TEST_ROWS(row_in_f32_agrees_with_f64, op_case_count) {
    const op_case *row = &op_cases[_i];
    values narrow[MAX_OUTPUTS], wide[MAX_OUTPUTS];
    int n, m;
    outputs_of(row, WF_F32, PLAIN, 1, narrow, &n);
    outputs_of(row, WF_F64, PLAIN, 1, wide, &m);
    for (int i = 0; i < n; i++) {
        double error = distance(narrow[i], wide[i]);
        tally_note(TALLY_F32_F64, error);
        ck_assert_msg(error <= 1e-5, "%s: output %d: %g", row->name, i, error);
    }
    free_values(narrow, n), free_values(wide, m);
}

/* ---- a fused op equals its decomposition ----------------------------------------------------- */

static void compare_results(const op_case *row, wf_tensor *node, wf_tensor *const *results) {
    for (int k = 0; k < WF_MAX_RESULTS; k++) {
        if (!results[k]) continue;
        values v[2];
        evaluate((wf_tensor *[]){ node + k, results[k] }, 2, 1, row->random, v);
        double error = distance(v[0], v[1]);
        tally_note(TALLY_DECOMPOSED, error);
        ck_assert_msg(error <= 1e-11, "%s: result %d of %s differs from its decomposition by %g",
                      row->name, k, node->op->name, error);
        free_values(v, 2);
    }
}

/* Each fused op is compared with the simpler ops that it decomposes into. The gradients are
 * recorded, too, because they contain fused backward ops. */
TEST_ROWS(row_equals_its_decomposition, op_case_count) {
    fixture f;
    fixture_open(&f, &op_cases[_i], WF_F64, PLAIN);
    if (!f.row->update) fixture_differentiate(&f);
    int nodes = wf_node_count(f.g);
    for (int id = f.first; id < nodes; id++) {
        wf_tensor *node = wf_node(f.g, id), *results[WF_MAX_RESULTS] = { NULL };
        if (!node->op || !node->op->decompose || node->result != 0) continue;
        node->op->decompose(node, results);
        ck_assert_msg(wf_ok(f.g), "%s", wf_error(f.g));
        compare_results(f.row, node, results);
    }
    fixture_close(&f);
}

/* ---- values and gradients recorded from PyTorch: record_ops.py ------------------------------- */

static const wf_entry *recorded(const wf_file *file, const op_case *row, const char *part, int i) {
    char name[128];
    snprintf(name, sizeof name, i < 0 ? "%s/%s" : "%s/%s%d", row->name, part, i);
    return wf_file_find(file, name);
}

static void load_recorded(const wf_entry *entry, wf_tensor *leaf) {
    char message[WF_MESSAGE] = "not recorded";
    ck_assert_msg(entry && wf_file_load(entry, leaf, message), "%s: %s", leaf->name, message);
}

static void compare_recorded(const op_case *row, const wf_entry *entry, values got, wf_dtype real) {
    double *copy = malloc(entry->bytes + 1);
    ck_assert_ptr_nonnull(copy);
    ck_assert_str_eq(entry->dtype, "F64");
    memcpy(copy, entry->data, entry->bytes);
    double error = distance(got, (values){ (int64_t)(entry->bytes / sizeof *copy), copy });
    free(copy);
    tally_note(real == WF_F32 ? TALLY_TORCH_F32 : TALLY_TORCH_F64, error);
    ck_assert_msg(error <= (real == WF_F32 ? 1e-5 : 1e-10), "%s: %s differs by %g", row->name,
                  entry->name, error);
}

static void compare_with_torch(const wf_file *file, const op_case *row, wf_dtype real) {
    fixture f;
    values out[MAX_OUTPUTS];
    fixture_open(&f, row, real, PLAIN);
    for (int i = 0; i < f.n; i++) load_recorded(recorded(file, row, "x", i), f.leaf[i]);
    if (fixture_differentiate(&f)) load_recorded(recorded(file, row, "w", -1), f.weight);
    fixture_evaluate(&f, 1, out);
    int outputs = fixture_outputs(&f), compared = 0;
    for (int i = 0; i < outputs; i++) {
        const wf_entry *entry = i == 0 && !row->update ? recorded(file, row, "y", -1)
                                                       : recorded(file, row, "d", i - !row->update);
        if (entry) compare_recorded(row, entry, out[i], real), compared++;
    }
    ck_assert_int_eq(compared, outputs);
    free_values(out, outputs);
    fixture_close(&f);
}

/* PyTorch's recorded results. The rows of this suite run in one process, so the file, whose header
 * has thousands of entries, is read once. */
static wf_file *recorded_results(void) {
    static wf_file *file;
    char path[512];
    if (!file) file = wf_file_open(source_path("tests/data/ops.safetensors", path, sizeof path));
    ck_assert_msg(wf_file_ok(file), "%s", wf_file_error(file));
    return file;
}

TEST_ROWS(row_equals_pytorch, op_case_count) {
    const op_case *row = &op_cases[_i];
    wf_file *file = recorded_results();
    if (recorded(file, row, "x", 0)) {
        compare_with_torch(file, row, WF_F32);
        compare_with_torch(file, row, WF_F64);
    }
}

/* ---- the table is complete ------------------------------------------------------------------- */

static char *read_text(const char *relative) {
    char path[512];
    FILE *file = fopen(source_path(relative, path, sizeof path), "rb");
    ck_assert_msg(file != NULL, "cannot read %s", path);
    char *text = calloc(1, 1 << 16);
    ck_assert_ptr_nonnull(text);
    size_t n = fread(text, 1, (1 << 16) - 1, file);
    fclose(file);
    ck_assert_uint_gt(n, 0);
    return text;
}

/* Does a header declare wf_<name>? Then programs can record the op, and the table needs a row. */
static bool declared(const char *header, const char *name) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "wf_%s(", name);
    return strstr(header, wanted) != NULL;
}

static int index_of(const wf_op *op) {
    for (int i = 0; i < wf_op_count(); i++)
        if (wf_op_at(i) == op) return i;
    return -1;
}

enum { UNSEEN, IN_GRADIENT, IN_ROW };

/* Marks the ops of one row, and those of its first and second order gradients. */
static void mark(const op_case *row, int *seen) {
    fixture f;
    fixture_open(&f, row, WF_F64, PLAIN);
    ck_assert_msg(wf_ok(f.g), "%s: %s", row->name, wf_error(f.g));
    int own = f.y->op ? index_of(f.y->op) : -1, from = f.last;
    if (own >= 0) seen[own] = IN_ROW;
    if (fixture_differentiate(&f)) {
        wf_tensor *second[MAX_CASE_OPERANDS];
        wf_vjp(f.grad, f.grad, f.n_wrt, f.wrt, f.n_wrt, second);
    }
    for (int id = from; id < wf_node_count(f.g); id++) {
        const wf_op *op = wf_node(f.g, id)->op;
        int i = op ? index_of(op) : -1;
        if (i >= 0 && seen[i] == UNSEEN) seen[i] = IN_GRADIENT;
    }
    fixture_close(&f);
}

/* True if op.h or a header of ops declares a function of this name. */
static bool is_public(const char *name) {
    char *list = read_text("weft.h"), *path = list;
    bool found = false;
    while (!found && (path = strstr(path, "#include \""))) {
        path += strlen("#include \"");
        char *end = path + strcspn(path, "\"");
        *end = '\0';
        if (strcmp(path, "core/op.h") == 0 || strncmp(path, "ops/", 4) == 0) {
            char *header = read_text(path);
            found = declared(header, name);
            free(header);
        }
        path = end + 1;
    }
    free(list);
    return found;
}

TEST(every_op_has_a_row) {
    int *seen = calloc((size_t)wf_op_count() + 1, sizeof *seen);
    ck_assert_ptr_nonnull(seen);
    for (int i = 0; i < op_case_count; i++) mark(&op_cases[i], seen);
    for (int i = 0; i < wf_op_count(); i++) {
        const char *name = wf_op_at(i)->name;
        ck_assert_msg(seen[i] == IN_ROW || (seen[i] == IN_GRADIENT && !is_public(name)),
                      "%s has no row in the table of ops", name);
        tally_note(TALLY_OPS, 0);
    }
    free(seen);
}

/* An op's formula, such as "matmul(a, b, addend): a b + addend", begins with its name and a name
 * for each operand. */
TEST(every_op_has_a_formula_that_names_its_operands) {
    for (int i = 0; i < wf_op_count(); i++) {
        const wf_op *op = wf_op_at(i);
        const char *f = op->formula ? op->formula : "";
        size_t n = strlen(op->name), most = 0;
        ck_assert_msg(strncmp(f, op->name, n) == 0 && f[n] == '(', "%s: \"%s\"", op->name, f);
        const char *end = strstr(f, "): ");
        ck_assert_msg(end && strlen(end) > 3, "%s: \"%s\" has no value", op->name, f);
        int operands = 1;
        for (const char *at = f + n; at < end; at++) operands += *at == ',';
        bool more = strncmp(end - 3, "...", 3) == 0;
        ck_assert_msg(op->arity < 0 ? more : operands == op->arity, "%s takes %d operands: \"%s\"",
                      op->name, op->arity, f);
        for (const char *at = f; *at; at++)
            most = (unsigned char)*at >= ' ' && *at < 127 ? most : 1;
        ck_assert_msg(!most, "%s: \"%s\" is not ASCII", op->name, f);
    }
}

TEST(every_op_has_a_derivative_or_says_why_not) {
    for (int i = 0; i < wf_op_count(); i++) {
        const wf_op *op = wf_op_at(i);
        int ways = (op->grad != NULL || op->decompose != NULL) + (op->no_grad != NULL);
        ck_assert_msg(ways == 1, "%s has %s", op->name,
                      ways ? "both" : "no gradient and no reason");
        ck_assert_msg(op->shape && op->family && *op->family, "%s lacks a shape rule or family",
                      op->name);
        ck_assert_msg(!op->no_grad || strlen(op->no_grad) > 10, "%s: \"%s\"", op->name,
                      op->no_grad);
    }
    ck_assert_ptr_null(wf_op_at(-1));
    ck_assert_ptr_null(wf_op_at(wf_op_count()));
}

TEST(names_of_ops_and_rows_are_unique) {
    for (int i = 0; i < wf_op_count(); i++)
        for (int k = 0; k < i; k++) ck_assert_str_ne(wf_op_at(i)->name, wf_op_at(k)->name);
    for (int i = 0; i < op_case_count; i++)
        for (int k = 0; k < i; k++) ck_assert_str_ne(op_cases[i].name, op_cases[k].name);
}

/* ---- oracles in plain C, on sizes that PyTorch's recorded rows leave out --------------------- */

static values random_values(int64_t n, uint64_t key) {
    values v = { n, malloc((size_t)n * sizeof(double) + 1) };
    ck_assert_ptr_nonnull(v.data);
    for (int64_t i = 0; i < n; i++) v.data[i] = (float)(4 * number(key, (uint64_t)i) - 2);
    return v;
}

static values naive_product(values a, values b, int64_t m, int64_t n, int64_t k) {
    values c = { m * n, calloc((size_t)(m * n) + 1, sizeof(double)) };
    ck_assert_ptr_nonnull(c.data);
    for (int64_t i = 0; i < m; i++)
        for (int64_t l = 0; l < k; l++)
            for (int64_t j = 0; j < n; j++)
                c.data[i * n + j] += a.data[i * k + l] * b.data[l * n + j];
    return c;
}

static const int64_t product_sizes[][3] = { /* m, n, k */
                                            { 1, 1, 1 },    { 1, 513, 7 },   { 513, 1, 7 },
                                            { 2, 2, 1025 }, { 3, 16, 5 },    { 6, 64, 512 },
                                            { 7, 65, 513 }, { 65, 129, 33 }, { 129, 65, 64 },
                                            { 5, 5, 0 },    { 240, 64, 64 }, { 13, 1030, 3 },
                                            { 8, 16, 4 },   { 12, 8, 256 },  { 97, 101, 103 }
};

TEST_ROWS(matmul_equals_three_loops, COUNT_OF(product_sizes)) {
    const int64_t *size = product_sizes[_i], m = size[0], n = size[1], k = size[2];
    values a = random_values(m * k, 1), b = random_values(k * n, 2),
           c = naive_product(a, b, m, n, k);
    for (wf_dtype real = WF_F32; real <= WF_F64; real++) {
        wf_graph *g = new_graph(real);
        values got;
        wf_tensor *x = param_of(g, "a", SHAPE(m, k), a.data),
                  *y = param_of(g, "b", SHAPE(k, n), b.data);
        evaluate((wf_tensor *[]){ wf_matmul(x, y) }, 1, 2, false, &got);
        double error = distance(got, c), bound = real == WF_F32 ? 2e-6 : 1e-14;
        ck_assert_msg(error <= bound, "%s: %g", wf_dtype_name(real), error);
        free_values(&got, 1);
        end_graph(g);
    }
    free_values((values[]){ a, b, c }, 3);
}

/* A row's result must not depend on how many rows there are: a sentence alone equals itself in a
 * batch. */
TEST_ROWS(matmul_rows_do_not_depend_on_their_neighbours, COUNT_OF(product_sizes)) {
    const int64_t *size = product_sizes[_i], m = size[0], n = size[1], k = size[2];
    values a = random_values(m * k, 3), b = random_values(k * n, 4);
    for (wf_dtype real = WF_F32; real <= WF_F64; real++) {
        wf_graph *g = new_graph(real);
        values got[2];
        wf_tensor *x = param_of(g, "a", SHAPE(m, k), a.data),
                  *y = param_of(g, "b", SHAPE(k, n), b.data);
        wf_tensor *last = wf_slice(x, 0, m - 1, WF_END);
        evaluate((wf_tensor *[]){ wf_matmul(x, y), wf_matmul(last, y) }, 2, 1, false, got);
        ck_assert_mem_eq(got[0].data + (m - 1) * n, got[1].data, (size_t)n * sizeof(double));
        free_values(got, 2);
        end_graph(g);
    }
    free_values((values[]){ a, b }, 2);
}

static const struct {
    const char *name;
    wf_tensor *(*op)(wf_tensor *);
    double (*reference)(double);
} functions[] = {
    { "exp", wf_exp, exp },    { "log", wf_log, log },    { "sin", wf_sin, sin },
    { "cos", wf_cos, cos },    { "tanh", wf_tanh, tanh }, { "erf", wf_erf, erf },
    { "sqrt", wf_sqrt, sqrt }, { "abs", wf_abs, fabs },   { "sinh", wf_sinh, sinh },
    { "cosh", wf_cosh, cosh },
};

/* Functions of zeros, infinities, NaN, large and small numbers are close to those of libm, except
 * that a denormal result may be 0. */
TEST_ROWS(functions_behave_at_the_edges, COUNT_OF(functions)) {
    double edge[] = { 0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-30, -1e-30, 1e4, -1e4,
                      88,  -88,  5,        -5,        1e8, -1e8,  1e17,   3e38 };
    for (wf_dtype real = WF_F32; real <= WF_F64; real++) {
        wf_graph *g = new_graph(real);
        values got;
        wf_tensor *x = param_of(g, "x", SHAPE(COUNT_OF(edge)), edge);
        evaluate((wf_tensor *[]){ functions[_i].op(x) }, 1, 1, false, &got);
        for (int i = 0; i < COUNT_OF(edge); i++) {
            double at = real == WF_F32 ? (float)edge[i] : edge[i];
            double want = functions[_i].reference(at), have = got.data[i];
            if (real == WF_F32) want = (float)want;
            double bound = real == WF_F32 ? 1e-6 : 1e-14,
                   least = real == WF_F32 ? FLT_MIN : DBL_MIN;
            ck_assert_msg(have == want || (isnan(have) && isnan(want)) ||
                              fabs(have - want) <= bound * fabs(want) ||
                              (have == 0 && fabs(want) < least),
                          "%s(%g) in %s: %.17g, not %.17g", functions[_i].name, at,
                          wf_dtype_name(real), have, want);
        }
        free_values(&got, 1);
        end_graph(g);
    }
}

/* This program, run with WEFT_ISA. */
TEST_ROWS(kernels_that_do_not_run_are_skipped, 3) {
    static const struct {
        const char *isa;
        int status;
    } cases[] = { { "bogus", 77 }, { "base", 0 }, { "", 0 } };
    char self[512], command[640];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0) return; /* not Linux */
    self[n] = '\0';
    snprintf(command, sizeof command, "'%s' init > /dev/null 2>&1", self);
    unsetenv("CK_RUN_CASE"), unsetenv("CK_RUN_SUITE"); /* the child runs the suite init */
    ck_assert_int_eq(setenv("WEFT_ISA", cases[_i].isa, 1), 0);
    int status = system(command);
    ck_assert(WIFEXITED(status));
    if (WEXITSTATUS(status) == 126) return; /* under an emulator, the shell can't run the binary */
    ck_assert_int_eq(WEXITSTATUS(status), cases[_i].status);
}
