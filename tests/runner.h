/* tests/runner.h - runs suites: in this process one after another, or several at once, each in a
 * process of its own. */
#ifndef WEFT_TESTS_RUNNER_H
#define WEFT_TESTS_RUNNER_H

#include <stdbool.h>

#include "suites.h"

typedef struct suite_entry {
    const char *name;
    Suite *(*make)(void);
    /* hundreds of small tests from a table, which share a process */
    bool rows;
} suite_entry;

/* Both functions print a closing line with Check's counts of all suites. They return false if a
 * test failed or a suite did not finish. */
bool run_in_turn(const suite_entry *const *suites, int n);
bool run_at_once(const suite_entry *const *suites, int n, int jobs);

#endif
