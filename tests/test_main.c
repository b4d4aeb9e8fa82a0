/* tests/test_main.c - the test program: all suites, or those named on the command line.
 *
 *     weft-tests                     everything
 *     weft-tests gradients ops       those suites
 *     weft-tests --jobs 2 [SUITE...] two suites at a time, and how long each took
 *     weft-tests --operands FILE     write the operands of the table's small rows: record_ops.py
 *
 * Check's own settings hold: CK_FORK=no runs in one process (for a debugger), CK_RUN_CASE picks
 * a case. The program ends with Check's closing line and the project's own counts (tally_print). It
 * exits with 0 if all is well, and with 77, which meson counts as skipped, if WEFT_ISA names an
 * instruction set that does not run here: the kernels that run instead must not pass for it. With
 * WEFT_OTHER_ISA=1 it also exits with 77 if WEFT_ISA names the best set of this machine, because
 * tools/test.sh runs all suites with that set anyway; but not if WEFT_CACHES is set, because those
 * suites run with this machine's cache sizes. */
#include <stdio.h>
#include <stdlib.h>

#include "ops/kernels/kernels.h"
#include "runner.h"
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

static const suite_entry suites[] = {
#define SUITE(name) { #name, name##_suite, false },
#define ROWS(name) { #name, name##_suite, true },
#include SUITES
#undef SUITE
#undef ROWS
};

static const suite_entry *suite_called(const char *name) {
    for (int i = 0; i < COUNT_OF(suites); i++)
        if (strcmp(suites[i].name, name) == 0) return &suites[i];
    fprintf(stderr, "no suite is called %s; there are", name);
    for (int i = 0; i < COUNT_OF(suites); i++) fprintf(stderr, " %s", suites[i].name);
    fprintf(stderr, "\n");
    return NULL;
}

/* Fills list with the named suites, or with all if n is 0, in the order of suites.inc. Returns
 * their number; -1 if a name is unknown. */
static int wanted_suites(char *const *names, int n, const suite_entry **list) {
    bool wanted[COUNT_OF(suites)] = { false };
    for (int i = 0; i < n; i++) {
        const suite_entry *suite = suite_called(names[i]);
        if (!suite) return -1;
        wanted[suite - suites] = true;
    }
    int count = 0;
    for (int i = 0; i < COUNT_OF(suites); i++)
        if (wanted[i] || n == 0) list[count++] = &suites[i];
    return count;
}

/* Returns the name of the best instruction set of this machine. wf_f32_at lists the sets that run
 * here, and the last of them is the one that is chosen without WEFT_ISA. */
static const char *best_isa(void) {
    const char *best = wf_isa();
    for (int i = 0; wf_f32_at(i); i++) best = wf_f32_at(i)->isa;
    return best;
}

static bool isa_as_wanted(void) {
    const char *wanted = getenv("WEFT_ISA"), *why = NULL;
    if (!wanted || !*wanted) return true;
    if (strcmp(wanted, wf_isa()) != 0)
        why = "other kernels would run here";
    else if (getenv("WEFT_OTHER_ISA") && !getenv("WEFT_CACHES") && strcmp(wanted, best_isa()) == 0)
        why = "all suites run with these kernels anyway";
    if (why) fprintf(stderr, "skipped: WEFT_ISA is %s, and %s\n", wanted, why);
    return !why;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--operands") == 0) return write_operands(argv[2]);
    bool at_once = argc > 2 && strcmp(argv[1], "--jobs") == 0;
    int jobs = at_once ? atoi(argv[2]) : 1, first = at_once ? 3 : 1;
    const suite_entry *list[COUNT_OF(suites)];
    int n = wanted_suites(argv + first, argc - first, list);
    if (n < 0 || jobs < 1) return 2;
    if (!isa_as_wanted()) return 77;
    /* Seconds after which Check kills a test: so long that only a test which hangs is killed. */
    setenv("CK_DEFAULT_TIMEOUT", "1200", 0);
    if (!tally_open(n)) return fprintf(stderr, "no memory to share between tests\n"), 1;
    bool well = at_once ? run_at_once(list, n, jobs) : run_in_turn(list, n);
    printf("Instruction set %s\n", wf_isa());
    tally_print();
    return well ? 0 : 1;
}
