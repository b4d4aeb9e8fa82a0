/* tests/support/marks.h - assertions that are cheap in loops.
 *
 * Check writes a note to a file for every assertion that holds, so that it can name the last line
 * before a crash. In loops this takes longer than the test. With this header, a line of
 * ck_assert_msg is noted when it is reached for the first time, and seldom again. A failed
 * assertion is reported with its line, as before. */
#ifndef WEFT_TESTS_SUPPORT_MARKS_H
#define WEFT_TESTS_SUPPORT_MARKS_H

#include <check.h>

#ifdef CHECK_MAJOR_VERSION /* tests/systems/check.h notes nothing */

enum { MARKED_LINES = 64 };

/* Notes a line, unless the table has it as the last line noted in its slot. Each file and each
 * thread has a table of its own. */
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
