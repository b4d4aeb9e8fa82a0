/* tests/suites.h - what the test program is made of: one suite per file, named in suites.inc.
 *
 *     TESTS(plan)                              once, after the includes: the suite that the file is
 *     TEST(a_plan_fails_without_feeds) {...}   runs because it is written
 *     TEST_ROWS(bad_shapes, COUNT_OF(rows)) {...}    once for each _i from 0
 *     SETUP(make_folder, remove_folder)        called before and after each of the following tests;
 *                                              SETUP(NULL, NULL) ends that
 *     SETUP_ONCE(train, forget)                before the first and after the last of them
 *
 * test_main.c runs all suites, or those named on the command line. */
#ifndef WEFT_TESTS_SUITES_H
#define WEFT_TESTS_SUITES_H

#include <stdbool.h>

#include "tests/support/marks.h"
#undef fail /* an old name of Check; the programs have a function so called */

typedef struct test_row {
    const TTest *test; /* NULL: this row is a fixture of the tests that follow it */
    bool once;         /* the fixture runs once for all of them, not for each */
    void (*before)(void), (*after)(void);
    int count, line;
    struct test_row *next;
} test_row;
void test_row_add(test_row **rows, test_row *row); /* keeps the list in the order of lines */
Suite *suite_of(const char *name, const test_row *rows);

#define TESTS(name)                                                                                \
    static test_row *rows_here;                                                                    \
    Suite *name##_suite(void) {                                                                    \
        return suite_of(#name, rows_here);                                                         \
    }
#define TEST(name) TEST_ROWS(name, 1)
#define TEST_ROWS(name, n) TEST_NAMED(name, n) /* a name may be a macro */
#define TEST_NAMED(name, n)                                                                        \
    static const TTest *name;                                                                      \
    __attribute__((constructor)) static void name##_row(void) {                                    \
        static test_row row = { .line = __LINE__ };                                                \
        row.test = name, row.count = (n);                                                          \
        test_row_add(&rows_here, &row);                                                            \
    }                                                                                              \
    START_TEST(name)
#define SETUP(before, after) FIXTURE(before, after, false, __LINE__)
#define SETUP_ONCE(before, after) FIXTURE(before, after, true, __LINE__)
#define FIXTURE(...) FIXTURE_AT(__VA_ARGS__)
#define FIXTURE_AT(before, after, once, line)                                                      \
    __attribute__((constructor)) static void fixture_row_##line(void) {                            \
        static test_row row = { NULL, once, before, after, 0, line, NULL };                        \
        test_row_add(&rows_here, &row);                                                            \
    }

#ifndef SUITES /* another list than that of all suites */
#define SUITES "tests/suites.inc"
#endif
#define SUITE(name) Suite *name##_suite(void);
#define ROWS(name) SUITE(name)
#include SUITES
#undef SUITE
#undef ROWS

#endif
