/* tests/main.c - the test program: all suites, or those named on the command line.
 *
 *     weft-tests                     everything
 *     weft-tests gradients ops       those suites
 *     weft-tests --operands FILE     write the operands of the table's small rows: record_ops.py
 *
 * Check's own settings hold: CK_FORK=no runs in one process (for a debugger), CK_RUN_CASE picks
 * a case. Ends with Check's closing line and the counts that the project promises; exits with 0
 * if all is well, and with 77 (skipped, for meson) if WEFT_ISA names kernels that do not run here:
 * others must not pass in their name. */
#include <stdio.h>
#include <stdlib.h>

#include "suites.h"
#include "tests/ops/op_cases.h"

int write_operands(const char *path); /* write_operands.c */

/* ---- suites from rows ------------------------------------------------------------------------ */

void test_row_add(test_row **rows, test_row *row) {
    while (*rows && (*rows)->line <= row->line) rows = &(*rows)->next;
    row->next = *rows, *rows = row;
}

Suite *suite_of(const char *name, const test_row *rows) {
    Suite *s = suite_create(name);
    TCase *c = tcase_create(name);
    suite_add_tcase(s, c);
    for (bool fixtures = false; rows; fixtures = !rows->test, rows = rows->next) {
        if (!rows->test && !fixtures) suite_add_tcase(s, c = tcase_create(name));
        if (rows->test)
            tcase_add_loop_test(c, rows->test, 0, rows->count);
        else if (rows->before)
            (rows->once ? tcase_add_unchecked_fixture : tcase_add_checked_fixture)(c, rows->before,
                                                                                   rows->after);
    }
    return s;
}

/* ---- the program ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    Suite *(*make)(void);
} suites[] = {
#define SUITE(name) { #name, name##_suite },
#include "suites.inc"
#undef SUITE
};

static bool wanted(const char *name, int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0) return true;
    return argc == 1;
}

static bool known(const char *name) {
    for (int i = 0; i < COUNT_OF(suites); i++)
        if (strcmp(suites[i].name, name) == 0) return true;
    fprintf(stderr, "no suite is called %s; there are", name);
    for (int i = 0; i < COUNT_OF(suites); i++) fprintf(stderr, " %s", suites[i].name);
    fprintf(stderr, "\n");
    return false;
}

static bool isa_as_wanted(void) {
    const char *wanted = getenv("WEFT_ISA");
    if (!wanted || !*wanted || strcmp(wanted, wf_isa()) == 0) return true;
    fprintf(stderr, "skipped: WEFT_ISA is %s, and %s would run here\n", wanted, wf_isa());
    return false;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--operands") == 0) return write_operands(argv[2]);
    for (int i = 1; i < argc; i++)
        if (!known(argv[i])) return 2;
    if (!isa_as_wanted()) return 77;
    setenv("CK_DEFAULT_TIMEOUT", "1200", 0); /* seconds: for what hangs, not for what is slow */
    if (!tally_open()) return fprintf(stderr, "no memory to share between tests\n"), 1;
    SRunner *runner = srunner_create(NULL);
    for (int i = 0; i < COUNT_OF(suites); i++)
        if (wanted(suites[i].name, argc, argv)) srunner_add_suite(runner, suites[i].make());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner), run = srunner_ntests_run(runner);
    srunner_free(runner);
    printf("Instruction set %s\n", wf_isa());
    tally_print();
    return failed > 0 || run == 0;
}
