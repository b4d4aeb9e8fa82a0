/* tests/suites.h - what the test program is made of: one suite per file, named in suites.inc.
 *
 * Each suite is a function that returns its Suite; main.c runs all, or those named on the
 * command line. */
#ifndef WEFT_TESTS_SUITES_H
#define WEFT_TESTS_SUITES_H

#include <check.h>
#undef fail /* an old name of Check; the programs have a function so called */

#define SUITE(name) Suite *name##_suite(void);
#include "suites.inc"
#undef SUITE

#endif
