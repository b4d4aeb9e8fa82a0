/* core/ranks/processes.c - ranks as child processes: starts them, watches over them, and ends all
 * of them when one has failed.
 *
 * The library does not call exit: a child process ends by the function `leave` of the caller. Every
 * rank runs a watchdog thread. It sends heartbeats while the rank computes, notices when the parent
 * has died, and delivers signals.
 *
 * Signals are forwarded by the parent, because Ctrl-C in a terminal and killall reach every
 * process, and a rank would get them twice. SIGINT, SIGTERM and SIGHUP are blocked in the ranks;
 * the watchdog delivers one for each that the parent has forwarded. */
#define _GNU_SOURCE /* sigtimedwait, on systems where it is no part of POSIX */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include "core/base/clock.h"
#include "region.h"

/* Times in seconds. A rank without a heartbeat for HEARTBEAT_TIMEOUT counts as hung. The remaining
 * ranks are killed GRACE seconds after a failure. */
#define HEARTBEAT_TIMEOUT 10.0
#define GRACE 3.0
/* GNU timeout signals the process and then its group: equal signals within this time count as
 * one. */
#define REPEAT_WINDOW 0.2
enum { HEARTBEAT_NS = 100000000 };
static const int forwarded[WF_FORWARDED] = { SIGINT, SIGTERM, SIGHUP };

/* ---- a rank ---------------------------------------------------------------------------------- */

struct watchdog {
    wf_region *region;
    int rank;
    pid_t caller;
    void (*leave)(int code);
    /* signals already delivered */
    unsigned seen[WF_FORWARDED];
};

/* Raise a signal that all threads block, and run its handler in this thread. If the signal is
 * already pending, as after Ctrl-C, the two merge, and the handler runs once. */
static void deliver_signal(int number) {
    sigset_t one;
    sigemptyset(&one), sigaddset(&one, number);
    kill(getpid(), number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
}

/* Called when the parent has died: fail all collectives, give code outside of collectives 3 s
 * (GRACE) to end, and then leave. */
static void on_parent_death(struct watchdog *w) {
    wf_processes_result why = { w->rank, 128 + SIGKILL, 0,
                                "the program that started the ranks is gone" };
    wf_region_fail(w->region, w->rank, why);
    nanosleep(&(struct timespec){ .tv_sec = (time_t)GRACE }, NULL);
    w->leave(128 + SIGKILL);
}

static void *watch_caller(void *arg) {
    struct watchdog *w = arg;
    for (;;) {
        atomic_fetch_add(&w->region->slots[w->rank].heartbeats, 1);
        for (int i = 0; i < WF_FORWARDED; i++)
            for (; w->seen[i] != atomic_load(&w->region->interrupts[i]); w->seen[i]++)
                deliver_signal(forwarded[i]);
        if (getppid() != w->caller) on_parent_death(w);
        nanosleep(&(struct timespec){ .tv_nsec = HEARTBEAT_NS }, NULL);
    }
    return NULL;
}

static bool start_watchdog(struct watchdog *w) {
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    /* the watchdog starts with all signals blocked, so that signals go to the program's own
     * threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&thread, NULL, watch_caller, w) == 0 && pthread_detach(thread) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}

/* ---- the caller ------------------------------------------------------------------------------ */

struct run {
    wf_region *region;
    int (*body)(wf_transport *t, void *user);
    void *user;
    void (*leave)(int code);
    pid_t caller;
    /* the signals that the parent waits for; its previous signal mask */
    sigset_t watched, before;
    int alive;                              /* number of ranks that run */
    pid_t pid[WF_MOST_PROCESSES];           /* 0: it has ended */
    unsigned heartbeats[WF_MOST_PROCESSES]; /* counts that the last check found */
    double silent[WF_MOST_PROCESSES], failing;
    /* the time at which each signal was last forwarded */
    double interrupted[WF_FORWARDED];
};

/* A stopped rank must wake up when the parent dies, to notice its death. */
static void wake_at_parent_death(void) {
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, SIGCONT);
#endif
}

static void child_main(struct run *r, int rank) {
    sigset_t mask = r->before;
    for (int i = 0; i < WF_FORWARDED; i++) sigaddset(&mask, forwarded[i]);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    wake_at_parent_death();
    wf_rank me;
    struct watchdog dog = { r->region, rank, r->caller, r->leave, { 0 } };
    wf_rank_join(&me, r->region, rank);
    int code = 1;
    if (start_watchdog(&dog))
        code = r->body(&me.transport, r->user);
    else
        wf_transport_fail(&me.transport, code, "a rank's thread does not start");
    r->leave(code);
    raise(SIGKILL); /* `leave` returned, which it must not do */
}

/* The parent reports the failure of a rank, or (rank -1) of the run as a whole. */
__attribute__((format(printf, 5, 6))) static void
report_failure(struct run *r, int rank, int code, int signal, const char *format, ...) {
    wf_processes_result why = { .rank = rank, .code = code, .signal = signal };
    va_list args;
    va_start(args, format);
    vsnprintf(why.why, sizeof why.why, format, args);
    va_end(args);
    wf_region_fail(r->region, r->region->ranks, why);
}

static void start(struct run *r) {
    /* Flush first: otherwise each child would write the buffered output again. */
    fflush(NULL);
    for (int rank = 0; rank < r->region->ranks; rank++) {
        pid_t pid = fork();
        if (pid == 0) child_main(r, rank);
        if (pid < 0) {
            report_failure(r, -1, 1, 0, "rank %d does not start: %s", rank, strerror(errno));
            return;
        }
        r->pid[rank] = pid;
        r->alive++;
    }
}

static void report_status(struct run *r, int rank, int status) {
    if (WIFSIGNALED(status))
        report_failure(r, rank, 128 + WTERMSIG(status), WTERMSIG(status),
                       "rank %d was killed by signal %d", rank, WTERMSIG(status));
    else if (WEXITSTATUS(status))
        report_failure(r, rank, WEXITSTATUS(status), 0, "rank %d ended with code %d", rank,
                       WEXITSTATUS(status));
    else
        wf_region_ended(r->region, rank);
}

static void reap(struct run *r) {
    for (int rank = 0; rank < r->region->ranks; rank++) {
        int status;
        if (!r->pid[rank] || waitpid(r->pid[rank], &status, WNOHANG) != r->pid[rank]) continue;
        r->pid[rank] = 0;
        r->alive--;
        report_status(r, rank, status);
    }
}

static void check_heartbeats(struct run *r, double passed) {
    for (int rank = 0; rank < r->region->ranks; rank++) {
        unsigned heartbeats = atomic_load(&r->region->slots[rank].heartbeats);
        r->silent[rank] = heartbeats == r->heartbeats[rank] ? r->silent[rank] + passed : 0;
        r->heartbeats[rank] = heartbeats;
        if (r->pid[rank] && r->silent[rank] > HEARTBEAT_TIMEOUT)
            report_failure(r, rank, WF_HUNG, 0, "rank %d sent no heartbeat for %.0f seconds", rank,
                           HEARTBEAT_TIMEOUT);
    }
}

static void kill_all(const struct run *r) {
    for (int rank = 0; rank < r->region->ranks; rank++)
        if (r->pid[rank]) kill(r->pid[rank], SIGKILL);
}

static void forward_signal(struct run *r, int number, double time) {
    for (int i = 0; i < WF_FORWARDED; i++) {
        if (number != forwarded[i] || time - r->interrupted[i] < REPEAT_WINDOW) continue;
        r->interrupted[i] = time;
        atomic_fetch_add(&r->region->interrupts[i], 1);
    }
}

/* Watch the ranks until all have ended. A pass counts as at most 1 s, so that time during which the
 * parent itself was stopped, as by Ctrl-Z, hardly counts. */
static void watch(struct run *r) {
    for (double last = wf_seconds_now(), time; r->alive; last = time) {
        int number = sigtimedwait(&r->watched, NULL, &(struct timespec){ .tv_nsec = HEARTBEAT_NS });
        time = wf_seconds_now();
        double passed = time - last < 1 ? time - last : 1;
        forward_signal(r, number, time);
        reap(r);
        check_heartbeats(r, passed);
        if (wf_region_failure(r->region) && (r->failing += passed) > GRACE) kill_all(r);
    }
}

/* The parent receives signals by waiting for them. SIGCHLD gets its default action, because a
 * program may have ignored it, and the ends of children would then not be reported. */
static void run_ranks(struct run *r) {
    struct sigaction child = { .sa_handler = SIG_DFL }, before;
    sigemptyset(&child.sa_mask), sigemptyset(&r->watched), sigaddset(&r->watched, SIGCHLD);
    for (int i = 0; i < WF_FORWARDED; i++) sigaddset(&r->watched, forwarded[i]);
    sigaction(SIGCHLD, &child, &before);
    pthread_sigmask(SIG_BLOCK, &r->watched, &r->before);
    start(r);
    watch(r);
    pthread_sigmask(SIG_SETMASK, &r->before, NULL);
    sigaction(SIGCHLD, &before, NULL);
}

int wf_processes_run(int n, int (*body)(wf_transport *t, void *user), void *user,
                     void (*leave)(int code), wf_processes_result *cause) {
    wf_processes_result untold;
    if (!cause) cause = &untold;
    *cause = (wf_processes_result){ -1, 1, 0, "no memory that ranks can share" };
    if (!body || !leave) {
        snprintf(cause->why, sizeof cause->why, "the function %s of the ranks is NULL",
                 body ? "leave" : "body");
        return cause->code;
    }
    if (n < 1 || n > WF_MOST_PROCESSES) {
        snprintf(cause->why, sizeof cause->why, "%d ranks, not from 1 to %d", n,
                 (int)WF_MOST_PROCESSES);
        return cause->code;
    }
    struct run r = { .body = body, .user = user, .leave = leave, .caller = getpid() };
    if (!(r.region = wf_region_new(n))) return cause->code;
    run_ranks(&r);
    const wf_slot *s = wf_region_failure(r.region);
    *cause = (wf_processes_result){ .rank = -1 };
    if (s) {
        cause->rank = s->rank;
        cause->code = s->code;
        cause->signal = s->signal;
        memcpy(cause->why, s->why, sizeof cause->why);
    }
    wf_region_free(r.region);
    return cause->code;
}
