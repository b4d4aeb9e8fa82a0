/* tests/ops/emitted_plans.h - helpers of tests that write plans as C: a program prints the results
 * of the emitted C code, which must be the bits of the library's results in the file `expected`. */
#ifndef WEFT_TESTS_OPS_EMITTED_PLANS_H
#define WEFT_TESTS_OPS_EMITTED_PLANS_H

#include <stdio.h>

#include "core/emit.h"
#include "tests/support/emitted.h"
#include "tests/support/marks.h"
#include "tests/support/support.h"

enum { D = 4 };

static char message[256];
static FILE *expected;

static inline void open_expected(void) {
    expected = fopen("expected", "wb");
    ck_assert(expected);
}

static inline void expect_fetch(wf_plan *p, const wf_tensor *t) {
    char data[4096];
    size_t bytes = wf_bound_bytes(p, t);
    ck_assert(bytes <= sizeof data);
    ck_assert_msg(wf_fetch(p, t, data, bytes), "%s", wf_plan_error(p));
    ck_assert_int_eq(fwrite(data, 1, bytes, expected), bytes);
}

static inline wf_plan *plan(wf_graph *g, wf_plan_options o) {
    wf_plan *p = wf_plan_new(g, &o);
    ck_assert_msg(wf_plan_ok(p), "%s", wf_plan_error(p));
    return p;
}

/* A list of feeds or fetches, and its length. */
#define LIST(field, ...)                                                                           \
    .field = (wf_tensor *[]){ __VA_ARGS__ },                                                       \
    .n_##field = (int)(sizeof((wf_tensor *[]){ __VA_ARGS__ }) / sizeof(wf_tensor *))

/* Emits plan a, and b if it is not NULL, as C text, with functions of these names. */
static inline char *emit(wf_plan *a, const char *name_a, wf_plan *b, const char *name_b) {
    wf_plan *const plans[] = { a, b };
    const char *const runs[] = { name_a, name_b };
    return wf_emit(plans, b ? 2 : 1, &(wf_emit_options){ .runs = runs }, message);
}

static inline char *must_emit(wf_plan *a, const char *name_a, wf_plan *b, const char *name_b) {
    char *text = emit(a, name_a, b, name_b);
    ck_assert_msg(text, "%s", message);
    return text;
}

static inline void must_refuse(wf_plan *a, const char *name_a, wf_plan *b, const char *name_b,
                               const char *why) {
    ck_assert_ptr_null(emit(a, name_a, b, name_b));
    ck_assert_msg(strstr(message, why), "%s", message);
}

/* Compiles and runs a program with the emitted C `text`, which it frees; the output must be the
 * file `expected`. `body` is the code in main after the struct `m` has its memory. */
static inline void try_main(char *text, const char *body) {
    char program[8192];
    fclose(expected);
    snprintf(program, sizeof program,
             "static unsigned char memory[model_ARENA + 64];\nstatic float number[1024];\n"
             "static void print(int n) {\n    fwrite(number, 4, (size_t)n, stdout);\n}\n"
             "int main(void) {\n    static model m;\n"
             "    model_start(&m, memory + (64 - (uintptr_t)memory %% 64) %% 64);\n%s"
             "    (void)print;\n    return 0;\n}\n",
             body);
    try_emitted(text, program);
    free(text);
}

static const float numbers[] = { 0.5f,  -1.25f, 2,     3.5f,    -0.75f, 1.5f,  0.25f, -2,
                                 1.75f, 0.125f, -0.5f, -3.125f, 4,      -1.5f, 2.75f, 0.375f };

#define NUMBERS                                                                                    \
    "    static const float numbers[] = { 0.5f, -1.25f, 2, 3.5f, -0.75f, 1.5f, 0.25f, -2,\n"       \
    "        1.75f, 0.125f, -0.5f, -3.125f, 4, -1.5f, 2.75f, 0.375f };\n"

static inline void feed(wf_plan *p, wf_tensor *t) {
    ck_assert_msg(wf_feed(p, t, numbers, wf_bound_bytes(p, t)), "%s", wf_plan_error(p));
}

#endif
