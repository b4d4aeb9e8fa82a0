/* tests/ops/test_emit.c - plans as C files: a plan of the value and gradients of every row of the
 * table of ops is written as C, compiled by the compiler of this build, and run. The results must
 * have the bits of wf_run. WEFT_EMIT_CC names another compiler, with options.
 *
 * Without a compiler the rows are skipped, and a line says so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/emit.h"
#include "core/emit/c_text.h"
#include "core/record/record.h"
#include "op_cases.h"
#include "ops/base/op_base.h"
#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/emitted.h"

TESTS(emit)

/* PARTS: the rows are compiled as that many programs. */
enum { PARTS = 8, MOST_PREFIX = 64, LARGE = 10000, TOO_LARGE = 500000 };

/* -fno-builtin: the compiler may not replace loops by calls of libc. */
#define FLAGS                                                                                      \
    "-std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -ffreestanding -fno-builtin"

/* ---- one row --------------------------------------------------------------------------------- */

/* A row as wf_run computes it: the bytes of each output. */
typedef struct trial {
    const op_case *row;
    char prefix[MOST_PREFIX];
    bool written; /* the C file */
    bool apart;   /* the values of its leaves are in a second file */
    int n;
    void *expected[MAX_OUTPUTS];
    int64_t count[MAX_OUTPUTS]; /* elements of 4 bytes */
    bool real[MAX_OUTPUTS];
} trial;

/* Rows that differ, for one message at the end. */
static wf_text faults;
static int compared;

static wf_plan *plan_of(fixture *f, wf_tensor **fetch) {
    int n = f->row->update ? 1 : fixture_outputs(f);
    char name[32];
    fetch[0] = f->y;
    for (int i = 1; i < n; i++) fetch[i] = f->grad[i - 1];
    for (int i = 0; i < n && !f->row->update; i++) {
        snprintf(name, sizeof name, "output_%d", i);
        if (!fetch[i]->label && !wf_find(f->g, name)) wf_named(fetch[i], name);
    }
    wf_plan_options o = { .fetch = fetch, .n_fetch = n, .training = f->row->random };
    wf_plan *p = wf_plan_new(f->g, &o);
    ck_assert_msg(wf_plan_ok(p), "%s: %s", f->row->name, wf_plan_error(p));
    return p;
}

static void keep_output(trial *t, const wf_tensor *of, int64_t count, void *data) {
    t->expected[t->n] = data;
    t->count[t->n] = count;
    t->real[t->n] = of->dtype != WF_I32;
    t->n++;
}

/* Appends a function that runs the plan and copies output i to to[i]: a fetched value, or a leaf
 * that was updated. The emitted file has constants for the places of leaves. */
static void add_trial(FILE *file, const trial *t, const fixture *f, wf_tensor *const *fetch) {
    const char *of = t->prefix;
    char name[128];
    bool updates = f->row->update;
    fprintf(file, "\nint %s_try(void *const *to);\nint %s_try(void *const *to) {\n", of, of);
    fprintf(file, "    static _Alignas(64) unsigned char arena[%s_ARENA + 64];\n", of);
    if (updates) fprintf(file, "    static float weights[%s_WEIGHTS + 1];\n", of);
    fprintf(file, "    static %s m;\n", of);
    if (t->apart)
        fprintf(file,
                "    extern const void *read_file(const char *path, size_t size);\n"
                "    const void *file = read_file(\"%s.weights\", %s_FILE);\n"
                "    if (%s_start(&m, arena%s, file, %s_FILE)) return 1;\n",
                of, of, of, updates ? ", weights" : "", of);
    else
        fprintf(file, "    %s_start(&m, arena%s);\n", of, updates ? ", weights" : "");
    fprintf(file, "    if (%s_run(&m)) return 1;\n", of);
    for (int i = 0, k = 0; updates && i < f->n; i++) {
        if (f->row->in[i].domain != DOMAIN_STATE) continue;
        const wf_tensor *of_row = f->leaf[i];
        fprintf(file, "    for (int i = 0; i < %d; i++)\n", (int)wf_count(of_row));
        fprintf(file, "        ((float *)to[%d])[i] = m.weights[at_%s_%d + i];\n", k++,
                of_row->name, of_row->id);
    }
    for (int i = 0; !updates && i < t->n; i++) {
        wf_identifier(called(fetch[i]), name, sizeof name);
        fprintf(file, "    %s_get_%s(&m, to[%d]);\n", of, name, i);
    }
    fprintf(file, "    return 0;\n}\n");
}

static void run_row(trial *t, fixture *f, wf_plan *p, wf_tensor **fetch) {
    ck_assert_msg(wf_run(p), "%s: %s", t->row->name, wf_plan_error(p));
    for (int i = 0; f->row->update && i < f->n; i++) {
        if (f->row->in[i].domain != DOMAIN_STATE) continue;
        size_t bytes = (size_t)wf_count(f->leaf[i]) * sizeof(float);
        void *data = calloc(1, bytes + 1);
        ck_assert(data && wf_read(f->leaf[i], data, bytes));
        keep_output(t, f->leaf[i], wf_count(f->leaf[i]), data);
    }
    for (int i = 0, n = fixture_outputs(f); !f->row->update && i < n; i++) {
        size_t bytes = wf_bound_bytes(p, fetch[i]);
        void *data = calloc(1, bytes + 1);
        ck_assert(data && wf_fetch(p, fetch[i], data, bytes));
        keep_output(t, fetch[i], (int64_t)(bytes / 4), data);
    }
}

static int64_t elements_of(const op_case *row) {
    int64_t n = 0;
    for (int i = 0; i < MAX_CASE_OPERANDS && row->in[i].domain != NO_OPERAND; i++)
        n += operand_count(&row->in[i]);
    return n;
}

static void write_weights(const trial *t, const wf_emit_weights *weights) {
    char path[MOST_PREFIX + 10];
    snprintf(path, sizeof path, "%s.weights", t->prefix);
    FILE *file = fopen(path, "wb");
    ck_assert(file && fwrite(weights->bytes, 1, weights->n, file) == weights->n);
    ck_assert_int_eq(fclose(file), 0);
}

/* Large operands are written to a file of weights, because a compiler takes seconds for large
 * tables. */
static void write_row(trial *t, int index, dressing how) {
    fixture f;
    wf_tensor *fetch[MAX_OUTPUTS];
    wf_emit_weights weights = { 0 };
    char path[MOST_PREFIX + 4], message[256];
    snprintf(t->prefix, sizeof t->prefix, "row_%d_%d", index, (int)how);
    t->row = &op_cases[index];
    fixture_open(&f, t->row, WF_F32, how);
    fixture_differentiate(&f);
    wf_plan *p = plan_of(&f, fetch);
    t->apart = elements_of(t->row) > LARGE;
    wf_emit_options o = { .name = t->prefix, .weights_file = t->apart ? &weights : NULL };
    char *text = wf_emit(&p, 1, &o, message);
    if (text && t->apart) write_weights(t, &weights);
    t->written = text != NULL;
    if (!text)
        wf_text_print(&faults, "%s: %s\n", t->row->name, message);
    else
        run_row(t, &f, p, fetch);
    snprintf(path, sizeof path, "%s.c", t->prefix);
    FILE *file = text ? fopen(path, "w") : NULL;
    ck_assert(file || !text);
    if (file) {
        fputs(text, file);
        add_trial(file, t, &f, fetch);
        ck_assert_int_eq(fclose(file), 0);
    }
    free(text);
    free(weights.bytes);
    wf_plan_free(p);
    fixture_close(&f);
}

/* The rows' operands are, by turns, plain, transposed, spaced and computed; large ones are
 * plain. */
static dressing dressing_of(int index) {
    return elements_of(&op_cases[index]) > LARGE ? PLAIN
                                                 : (dressing)(index / PARTS % (COMPUTED + 1));
}

/* Is the row compiled and run? Rows of TOO_LARGE elements or more are not. */
static bool is_tried(const op_case *row) {
    const char *only = getenv("WEFT_EMIT_ROW"); /* for a debugger: this row alone */
    return only ? strcmp(only, row->name) == 0 : elements_of(row) < TOO_LARGE;
}

static void compare(const trial *t, int i, const void *got) {
    const uint32_t *a = got, *b = t->expected[i];
    const float *x = got, *y = t->expected[i];
    for (int64_t k = 0; k < t->count[i]; k++) {
        if (a[k] == b[k] || (t->real[i] && isnan(x[k]) && isnan(y[k]))) continue;
        wf_text_print(&faults, "%s (%s): element %n of output %d is %g, not %g\n", t->row->name,
                      t->prefix, k, i, t->real[i] ? (double)x[k] : (double)(int32_t)a[k],
                      t->real[i] ? (double)y[k] : (double)(int32_t)b[k]);
        return;
    }
    compared++;
}

/* The program that runs all rows. It writes for each row whether it failed, then its outputs. */
static void write_main(const trial *trials, int n) {
    FILE *file = fopen("rows.c", "w");
    int64_t most = 1;
    ck_assert(file);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < trials[k].n; i++)
            if (trials[k].count[i] > most) most = trials[k].count[i];
    fprintf(file, "#include <stdint.h>\n#include <stdio.h>\n\nstatic int32_t room[%d][%lld];\n",
            MAX_OUTPUTS, (long long)most);
    fprintf(file,
            "static int32_t bytes[%d];\n"
            "const void *read_file(const char *path, size_t size) {\n"
            "    FILE *file = fopen(path, \"rb\");\n"
            "    size_t n = file && size <= sizeof bytes ? fread(bytes, 1, size, file) : 0;\n"
            "    if (file) fclose(file);\n    return n == size ? bytes : 0;\n}\n",
            2 * TOO_LARGE);
    for (int k = 0; k < n; k++)
        if (trials[k].written) fprintf(file, "int %s_try(void *const *to);\n", trials[k].prefix);
    fprintf(file,
            "\nint main(void) {\n    int32_t failed;\n    void *to[%d];\n"
            "    for (int i = 0; i < %d; i++) to[i] = room[i];\n",
            MAX_OUTPUTS, MAX_OUTPUTS);
    for (int k = 0; k < n; k++) {
        const trial *t = &trials[k];
        if (!t->written) continue;
        fprintf(file, "    failed = %s_try(to);\n    fwrite(&failed, 4, 1, stdout);\n", t->prefix);
        for (int i = 0; i < t->n; i++)
            fprintf(file, "    fwrite(room[%d], 4, %lld, stdout);\n", i, (long long)t->count[i]);
    }
    fprintf(file, "    return 0;\n}\n");
    ck_assert_int_eq(fclose(file), 0);
}

/* Reads what the program wrote for a row. */
static void read_row(const trial *t, FILE *got) {
    int32_t failed;
    ck_assert_msg(fread(&failed, 4, 1, got) == 1, "%s: the program ended", t->row->name);
    if (failed) wf_text_print(&faults, "%s: the run fails\n", t->row->name);
    for (int i = 0; i < t->n; i++) {
        size_t n = (size_t)t->count[i];
        void *output = calloc(n + 1, 4);
        ck_assert_msg(output && fread(output, 4, n, got) == n, "%s: the program ended",
                      t->row->name);
        compare(t, i, output);
        free(output);
    }
}

static void free_trial(trial *t) {
    for (int i = 0; i < t->n; i++) free(t->expected[i]);
}

/* ---- all rows -------------------------------------------------------------------------------- */

SETUP(enter_folder, leave_folder)

TEST_ROWS(rows_as_c_have_the_same_bits, PARTS) {
    trial *trials = calloc((size_t)op_case_count, sizeof *trials);
    int n = 0;
    if (!has_emitted_compiler("emit")) return;
    faults = (wf_text){ 0 };
    for (int i = _i; i < op_case_count; i += PARTS)
        if (is_tried(&op_cases[i])) write_row(&trials[n++], i, dressing_of(i));
    if (n == 0) return;
    bool compiled = compiles_row(_i);
    write_main(trials, n);
    if (compiled)
        run("%s " FLAGS " -c row_*.c && %s -std=c11 row_*.o rows.c -o rows && ./rows > got",
            emitted_compiler(), emitted_compiler());
    if (compiled && result.status) wf_text_print(&faults, "%s", result.err);
    FILE *got = compiled && !result.status ? fopen("got", "r") : NULL;
    for (int i = 0; i < n; i++) {
        if (got && trials[i].written) read_row(&trials[i], got);
        free_trial(&trials[i]);
    }
    if (got) fclose(got);
    if (compiled) ck_assert_int_gt(compared + (int)faults.length, 0);
    free(trials);
    if (faults.length) printf("%s", faults.at);
    ck_assert_msg(!faults.length, "%d outputs are equal, others not:\n%.3000s", compared,
                  faults.at);
    wf_text_free(&faults);
}

/* ---- what has no form ------------------------------------------------------------------------ */

SETUP(NULL, NULL)

/* The ops that have a kernel but cannot be written as C. There are none. */
static const char *const without_form[] = { NULL };

TEST(every_op_has_a_form_in_c) {
    static const wf_op *const all[] = {
#define OP(name) &wf_op_##name,
#include "ops/list.inc"
#undef OP
    };
    char lacking[4096] = "", expected[4096] = "";
    for (int i = 0; i < COUNT_OF(all); i++) {
        const wf_kernel *run = all[i]->run;
        if (!run || !run->eval || run->emit) continue;
        strcat(strcat(lacking, all[i]->name), " ");
    }
    for (int i = 0; without_form[i]; i++) strcat(strcat(expected, without_form[i]), " ");
    ck_assert_str_eq(lacking, expected);
}
