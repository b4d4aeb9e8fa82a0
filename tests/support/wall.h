/* tests/support/wall.h - a function (the work) that is run again and again, with another of its
 * allocations failing each time: it must return an error, without a crash, a leak or a wrong
 * result.
 *
 * The work reports its results piece by piece (wall_say), each as soon as it must be right: values
 * that were computed, fed or updated, and files. The pieces of a run with a failed allocation must
 * be the first pieces of a run without failures, and all of them if the work returns true. */
#ifndef WEFT_TESTS_SUPPORT_WALL_H
#define WEFT_TESTS_SUPPORT_WALL_H

#include "faults.h"
#include "support.h"

/* An assertion of Check allocates memory even when it holds, so Check is called only on failure. */
#define must(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition)) faults_pause(true), ck_abort_msg(__VA_ARGS__);                           \
    } while (0)

typedef struct wall_work {
    const char *name;
    bool (*run)(void); /* true: all of it succeeded */
    /* The work may succeed in spite of a failure: a thread that does not start, say. */
    bool may_do_without;
} wall_work;

void wall_say(const void *bytes, size_t n);
/* wall_mark returns the number of pieces so far. wall_take_back removes the pieces after `mark`,
 * so that a retry can report them again. */
int wall_mark(void);
void wall_take_back(int mark);
bool wall_say_leaf(const wf_tensor *leaf); /* its values; false: out of memory */
void wall_say_file(const char *path);      /* at most 256 KB */

/* Runs the work with allocation 1 failing, then with allocation 2, and so on until a run has no
 * failure; if persistent, all later allocations of the run fail, too. Returns the number of
 * failures that the work survived; fails the test if it did not. */
long wall_fail_each(const wall_work *w, bool persistent);

#endif
