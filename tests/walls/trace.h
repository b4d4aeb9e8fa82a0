/* tests/walls/trace.h - a program run under the eyes of another, system call by system call.
 *
 * By ptrace, as strace does it: what the C library calls for itself is seen too, which no preloaded
 * library sees. What a call means is not here: see recording.h. Linux alone. */
#ifndef WEFT_TESTS_WALLS_TRACE_H
#define WEFT_TESTS_WALLS_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct call {
    pid_t pid, thread;
    int64_t number; /* SYS_write ... */
    uint64_t argument[6];
    bool made;      /* false: about to be made */
    int64_t result; /* of one that was made; -errno */
} call;

/* Told of every call, before and after; the program stands still. */
typedef enum verdict { GO_ON, KILL } verdict; /* KILL: with SIGKILL, before the call is made */
typedef verdict watcher(void *context, const call *c);

/* Run argv in the folder, stdout and stderr into the file `said` (of the folder that weft's test
 * runs in), until it ends: its status as of waitpid, or -1 if this system does not let programs be
 * watched. */
int watch(const char *folder, char *const *argv, const char *said, watcher *look, void *context);

/* Runs without a watcher; after `microseconds`, if >= 0, it gets `number` as a signal. */
int run_timed(const char *folder, char *const *argv, const char *said, int64_t microseconds,
              int number);

#endif
