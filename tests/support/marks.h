/* tests/support/marks.h - assertions that are cheap in loops.
 *
 * Check notes every assertion that holds, so that it can say after which line a test crashed. It
 * writes each note to a file, which in loops takes longer than the test. Here a line is noted when
 * it is reached first. A failed assertion is told with its own line, as before. */
#ifndef WEFT_TESTS_SUPPORT_MARKS_H
#define WEFT_TESTS_SUPPORT_MARKS_H

#include <check.h>

#ifdef CHECK_MAJOR_VERSION /* tests/systems/check.h notes nothing */

enum { MARKED_LINES = 64 };

/* Each file has a table of its own, and so has each thread. */
static inline void mark_line(const char *file, int line) {
    static _Thread_local int marked[MARKED_LINES];
    if (marked[line % MARKED_LINES] == line) return;
    marked[line % MARKED_LINES] = line;
    _mark_point(file, line);
}

#undef ck_assert_msg
#define ck_assert_msg(expression, ...)                                                             \
    ((expression) ? mark_line(__FILE__, __LINE__)                                                  \
                  : _ck_assert_failed(__FILE__, __LINE__, "Assertion '" #expression "' failed",    \
                                      __VA_ARGS__))

#endif
#endif
