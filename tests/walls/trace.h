/* tests/walls/trace.h - runs a program and reports each of its system calls to a callback.
 *
 * It uses ptrace, as strace does, so it also sees the calls that the C library makes for itself,
 * which no preloaded library could. recording.h interprets the calls. Linux alone. */
#ifndef WEFT_TESTS_WALLS_TRACE_H
#define WEFT_TESTS_WALLS_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct call {
    pid_t pid, thread;
    int64_t number; /* SYS_write ... */
    uint64_t argument[6];
    bool made;      /* the call has returned; false: it is about to be made */
    int64_t result; /* of a call that has returned; -errno if it failed */
} call;

/* A watcher is called before and after every system call, while the program is stopped. */
typedef enum verdict { GO_ON, KILL } verdict; /* KILL: with SIGKILL, before the call is made */
typedef verdict watcher(void *context, const call *c);

/* Runs argv in the folder until it ends, with stdout and stderr in the file `said` (relative to the
 * caller's folder). Returns the status as of waitpid, or -1 if programs may not be traced here. */
int watch(const char *folder, char *const *argv, const char *said, watcher *look, void *context);

/* Runs argv without a watcher, and sends it the signal `number` after `microseconds`, if >= 0. */
int run_timed(const char *folder, char *const *argv, const char *said, int64_t microseconds,
              int number);

#endif
