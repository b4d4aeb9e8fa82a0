/* tests/walls/trace.c - see trace.h. */
#define _GNU_SOURCE
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    OPTIONS = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
              PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC,
    AT_CALL = SIGTRAP | 0x80,
    NOT_WATCHED = 125,
    NOT_STARTED = 126
};

static void start(const char *folder, char *const *argv, const char *said, bool watched) {
    int out = open(said, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (out < 0 || in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 ||
        chdir(folder) != 0)
        _exit(NOT_STARTED);
    if (watched && ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(NOT_WATCHED);
    if (watched) raise(SIGSTOP);
    execvp(argv[0], argv);
    _exit(NOT_STARTED);
}

/* Reads the system call at which the thread is stopped. c->pid is the thread group's id, because
 * the threads of a group share their files. */
static bool read_call(pid_t thread, pid_t group, call *c) {
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0) return false;
    c->pid = group, c->thread = thread;
    c->made = info.op == PTRACE_SYSCALL_INFO_EXIT;
    if (c->made)
        c->result = info.exit.rval;
    else if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        c->number = (int64_t)info.entry.nr;
        for (int i = 0; i < 6; i++) c->argument[i] = info.entry.args[i];
    } else
        return false;
    return true;
}

/* Handles one stop of the thread. Returns the signal that is delivered to it when it continues, or
 * 0. *last is the call that it has begun. */
static int stopped(pid_t thread, pid_t group, int status, call *last, watcher *look,
                   void *context) {
    int number = WSTOPSIG(status);
    if (number == AT_CALL) {
        if (read_call(thread, group, last) && look(context, last) == KILL) kill(group, SIGKILL);
        return 0;
    }
    return status >> 16 || number == SIGSTOP || number == SIGTRAP ? 0 : number;
}

int watch(const char *folder, char *const *argv, const char *said, watcher *look, void *context) {
    enum { THREADS = 64 };
    struct {
        pid_t thread;
        call last;
    } at[THREADS] = { { 0 } };
    int status;
    pid_t child = fork();
    if (child == 0) start(folder, argv, said, true);
    if (child < 0 || waitpid(child, &status, __WALL) != child || !WIFSTOPPED(status)) return -1;
    if (ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)(intptr_t)OPTIONS) != 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, __WALL);
        return -1;
    }
    for (pid_t thread = child; thread > 0; thread = waitpid(-1, &status, __WALL)) {
        if (!WIFSTOPPED(status)) {
            if (thread == child) return status;
            continue;
        }
        int i = 0;
        while (i < THREADS - 1 && at[i].thread && at[i].thread != thread) i++;
        at[i].thread = thread;
        int number = stopped(thread, child, status, &at[i].last, look, context);
        ptrace(PTRACE_SYSCALL, thread, NULL, (void *)(intptr_t)number);
    }
    return -1;
}

int run_timed(const char *folder, char *const *argv, const char *said, int64_t microseconds,
              int number) {
    int status;
    pid_t child = fork();
    if (child == 0) start(folder, argv, said, false);
    if (child < 0) return -1;
    if (microseconds >= 0) {
        struct timespec pause = { microseconds / 1000000, microseconds % 1000000 * 1000 };
        nanosleep(&pause, NULL);
        kill(child, number);
    }
    while (waitpid(child, &status, 0) != child)
        if (errno != EINTR) return -1;
    return status;
}
