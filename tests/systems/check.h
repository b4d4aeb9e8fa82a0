/* tests/systems/check.h - as much of Check as the suites use, for machines that have no Check.
 *
 * A cross build includes this file as <check.h>: another machine's Check would have to be built
 * first. On this machine the suites run with Check itself (libcheck.github.io), whose names these
 * are. Each test has a process of its own and a time limit; CK_FORK=no, CK_RUN_CASE and
 * CK_DEFAULT_TIMEOUT hold, and the closing line is Check's. What is missing: signals that are
 * expected, tags, logs. */
#ifndef WEFT_TESTS_SYSTEMS_CHECK_H
#define WEFT_TESTS_SYSTEMS_CHECK_H

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct Suite Suite;
typedef struct TCase TCase;
typedef struct SRunner SRunner;
typedef struct TTest {
    const char *name;
    void (*run)(int i);
} TTest;
enum print_output { CK_NORMAL, CK_ENV };

Suite *suite_create(const char *name);
void suite_add_tcase(Suite *s, TCase *c);
TCase *tcase_create(const char *name);
void tcase_add_loop_test(TCase *c, const TTest *test, int from, int end);
#define tcase_add_test(c, test) tcase_add_loop_test(c, test, 0, 1)
void tcase_add_checked_fixture(TCase *c, void (*setup)(void), void (*teardown)(void));
void tcase_add_unchecked_fixture(TCase *c, void (*setup)(void), void (*teardown)(void));

SRunner *srunner_create(Suite *s); /* of one suite, or none yet */
void srunner_add_suite(SRunner *r, Suite *s);
void srunner_run_all(SRunner *r, enum print_output mode);
int srunner_ntests_run(const SRunner *r);
int srunner_ntests_failed(const SRunner *r);
void srunner_free(SRunner *r); /* with its suites */

/* START_TEST(name) { ... _i of a loop ... } */
#define START_TEST(test)                                                                           \
    static void test##_run(int _i);                                                                \
    static const TTest test##_test = { #test, test##_run };                                        \
    static const TTest *test = &test##_test;                                                       \
    static void test##_run(int _i __attribute__((unused)))
#define END_TEST

/* Prints what is wrong, and ends the test. */
__attribute__((noreturn, format(printf, 3, 4))) void ck_failed(const char *file, int line,
                                                               const char *format, ...);

#define ck_abort_msg(...) ck_failed(__FILE__, __LINE__, __VA_ARGS__)
#define ck_assert_msg(holds, ...) ((holds) ? (void)0 : ck_abort_msg(__VA_ARGS__))
#define ck_assert(holds) ck_assert_msg(holds, "'%s' does not hold", #holds)

#define CK_COMPARE(type, format, x, op, y)                                                         \
    do {                                                                                           \
        type ck_x = (x);                                                                           \
        type ck_y = (y);                                                                           \
        ck_assert_msg(ck_x op ck_y, "'%s %s %s' does not hold: %" format " and %" format, #x, #op, \
                      #y, ck_x, ck_y);                                                             \
    } while (0)
#define ck_assert_int_eq(x, y) CK_COMPARE(intmax_t, PRIdMAX, x, ==, y)
#define ck_assert_int_ne(x, y) CK_COMPARE(intmax_t, PRIdMAX, x, !=, y)
#define ck_assert_int_lt(x, y) CK_COMPARE(intmax_t, PRIdMAX, x, <, y)
#define ck_assert_int_le(x, y) CK_COMPARE(intmax_t, PRIdMAX, x, <=, y)
#define ck_assert_int_gt(x, y) CK_COMPARE(intmax_t, PRIdMAX, x, >, y)
#define ck_assert_int_ge(x, y) CK_COMPARE(intmax_t, PRIdMAX, x, >=, y)
#define ck_assert_uint_eq(x, y) CK_COMPARE(uintmax_t, PRIuMAX, x, ==, y)
#define ck_assert_uint_ne(x, y) CK_COMPARE(uintmax_t, PRIuMAX, x, !=, y)
#define ck_assert_uint_lt(x, y) CK_COMPARE(uintmax_t, PRIuMAX, x, <, y)
#define ck_assert_uint_le(x, y) CK_COMPARE(uintmax_t, PRIuMAX, x, <=, y)
#define ck_assert_uint_gt(x, y) CK_COMPARE(uintmax_t, PRIuMAX, x, >, y)
#define ck_assert_uint_ge(x, y) CK_COMPARE(uintmax_t, PRIuMAX, x, >=, y)
#define ck_assert_double_eq(x, y) CK_COMPARE(double, ".17g", x, ==, y)
#define ck_assert_double_ne(x, y) CK_COMPARE(double, ".17g", x, !=, y)
#define ck_assert_double_lt(x, y) CK_COMPARE(double, ".17g", x, <, y)
#define ck_assert_double_le(x, y) CK_COMPARE(double, ".17g", x, <=, y)
#define ck_assert_double_gt(x, y) CK_COMPARE(double, ".17g", x, >, y)
#define ck_assert_double_ge(x, y) CK_COMPARE(double, ".17g", x, >=, y)
#define ck_assert_float_eq(x, y) CK_COMPARE(float, ".9g", x, ==, y)
#define ck_assert_double_eq_tol(x, y, tolerance)                                                   \
    CK_COMPARE(double, ".17g", fabs((x) - (y)), <=, tolerance)
#define ck_assert_float_eq_tol(x, y, tolerance)                                                    \
    CK_COMPARE(float, ".9g", fabsf((x) - (y)), <=, tolerance)
#define ck_assert_ptr_eq(x, y) CK_COMPARE(const void *, "p", x, ==, y)
#define ck_assert_ptr_ne(x, y) CK_COMPARE(const void *, "p", x, !=, y)
#define ck_assert_ptr_null(x) ck_assert_ptr_eq(x, NULL)
#define ck_assert_ptr_nonnull(x) ck_assert_ptr_ne(x, NULL)

#define CK_TEXTS(x, op, y)                                                                         \
    do {                                                                                           \
        const char *ck_x = (x), *ck_y = (y);                                                       \
        ck_assert_msg(ck_x &&ck_y &&strcmp(ck_x, ck_y) op 0,                                       \
                      "'%s %s %s' does not hold: \"%s\" "                                          \
                      "and \"%s\"",                                                                \
                      #x, #op, #y, ck_x ? ck_x : "NULL", ck_y ? ck_y : "NULL");                    \
    } while (0)
#define ck_assert_str_eq(x, y) CK_TEXTS(x, ==, y)
#define ck_assert_str_ne(x, y) CK_TEXTS(x, !=, y)
#define ck_assert_mem_eq(x, y, n)                                                                  \
    ck_assert_msg(memcmp(x, y, n) == 0, "the bytes of '%s' and '%s' differ", #x, #y)

#endif
