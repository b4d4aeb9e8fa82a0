/* tests/support/wall.h - a piece of work, in which every single allocation fails: an error, no
 * crash, no leak, and never another result.
 *
 * The work says what comes of it (wall_say), piece by piece, each when it is known to be right:
 * results, values that were fed or updated, files. What it says with a failed allocation must be
 * the beginning of what it says without one; and all of it, if the work returns true. */
#ifndef WEFT_TESTS_SUPPORT_WALL_H
#define WEFT_TESTS_SUPPORT_WALL_H

#include "faults.h"
#include "support.h"

/* An assertion of Check allocates even when it holds, so it is made only when it does not. */
#define must(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition)) faults_pause(true), ck_abort_msg(__VA_ARGS__);                           \
    } while (0)

typedef struct wall_work {
    const char *name;
    bool (*run)(void);   /* true: all of it succeeded */
    bool may_do_without; /* a failure may go unnoticed, as a thread that does not start */
} wall_work;

void wall_say(const void *bytes, size_t n);
/* How much was said so far; and what came after that was never said, as it is tried again. */
int wall_mark(void);
void wall_take_back(int mark);
bool wall_say_leaf(const wf_tensor *leaf); /* its values; false: out of memory */
void wall_say_file(const char *path);      /* at most 256 KB */

/* Fails request 1, then 2, ... until nothing fails any more; persistent: and all that follow. Fails
 * the test, or returns how many failures the work survived. */
long wall_fail_each(const wall_work *w, bool persistent);

#endif
