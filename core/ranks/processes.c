/* core/ranks/processes.c - ranks as children of one program: starting them, watching over them,
 * ending them all when one has failed.
 *
 * The library never ends a program: a child leaves by the caller's function. Every rank has a
 * thread, its heart, that says that it lives however long it computes, that notices when the caller
 * is gone, and that alone is interrupted: a terminal's Ctrl-C comes to all processes at once, and
 * killall too, so that a rank would get it twice. In the ranks SIGINT and SIGTERM are blocked, and
 * the heart lets in one for each that has come to the caller. */
#define _GNU_SOURCE /* sigtimedwait where it is no part of POSIX */
#include <assert.h>
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

/* Seconds: without a heartbeat a rank has hung; a rank is killed so long after another's failure. */
#define SILENCE 10.0
#define GRACE 3.0
/* Who signals a program and then its group, as GNU timeout does, means it once. */
#define ONCE 0.2
enum { BEAT_NS = 100000000 };
static const int passed_on[2] = { SIGINT, SIGTERM };

/* ---- a rank ---------------------------------------------------------------------------------- */

struct heart {
    wf_region *region;
    int rank;
    pid_t caller;
    void (*leave)(int code);
    unsigned seen[2]; /* interrupts that were let in */
};

/* Of this number that have come to the rank itself meanwhile, it gets none. */
static void let_in(int number) {
    sigset_t one;
    sigemptyset(&one), sigaddset(&one, number);
    kill(getpid(), number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
}

/* Collectives fail; whoever makes none has a while to leave. */
static void orphaned(struct heart *h) {
    wf_processes_result why = { h->rank, 128 + SIGKILL, 0,
                                "the program that started the ranks is gone" };
    wf_region_fail(h->region, h->rank, why);
    nanosleep(&(struct timespec){ .tv_sec = (time_t)GRACE }, NULL);
    h->leave(128 + SIGKILL);
}

static void *beat(void *arg) {
    struct heart *h = arg;
    for (;;) {
        atomic_fetch_add(&h->region->seats[h->rank].beats, 1);
        for (int i = 0; i < 2; i++)
            for (; h->seen[i] != atomic_load(&h->region->interrupts[i]); h->seen[i]++)
                let_in(passed_on[i]);
        if (getppid() != h->caller) orphaned(h);
        nanosleep(&(struct timespec){ .tv_nsec = BEAT_NS }, NULL);
    }
    return NULL;
}

static bool start_heart(struct heart *h) {
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals go to the program's own threads */
    bool ok = pthread_create(&thread, NULL, beat, h) == 0 && pthread_detach(thread) == 0;
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
    sigset_t watched, before;          /* signals: that the caller waits for; as they were */
    int alive;                         /* ranks */
    pid_t pid[WF_MOST_PROCESSES];      /* 0: gone */
    unsigned beats[WF_MOST_PROCESSES]; /* when last looked at */
    double silent[WF_MOST_PROCESSES], failing;
    double interrupted[2]; /* when the last was passed on */
};

/* Stopped ranks wake when the caller dies, and see it. */
static void outlive_no_caller(void) {
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, SIGCONT);
#endif
}

static void be_rank(struct run *r, int rank) {
    sigset_t mask = r->before;
    for (int i = 0; i < 2; i++) sigaddset(&mask, passed_on[i]);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    outlive_no_caller();
    wf_rank me;
    struct heart heart = { r->region, rank, r->caller, r->leave, { 0, 0 } };
    wf_rank_join(&me, r->region, rank);
    int code = 1;
    if (start_heart(&heart))
        code = r->body(&me.transport, r->user);
    else
        wf_transport_fail(&me.transport, code, "a rank's thread does not start");
    r->leave(code);
    raise(SIGKILL); /* leave came back */
}

/* The caller says what became of a rank; -1: of the run. */
__attribute__((format(printf, 5, 6))) static void tell(struct run *r, int rank, int code,
                                                       int signal, const char *format, ...) {
    wf_processes_result why = { .rank = rank, .code = code, .signal = signal };
    va_list args;
    va_start(args, format);
    vsnprintf(why.why, sizeof why.why, format, args);
    va_end(args);
    wf_region_fail(r->region, r->region->ranks, why);
}

static void start(struct run *r) {
    fflush(NULL); /* or what waits in streams would come from each child again */
    for (int rank = 0; rank < r->region->ranks; rank++) {
        pid_t pid = fork();
        if (pid == 0) be_rank(r, rank);
        if (pid < 0) {
            tell(r, -1, 1, 0, "rank %d does not start: %s", rank, strerror(errno));
            return;
        }
        r->pid[rank] = pid, r->alive++;
    }
}

static void judge(struct run *r, int rank, int status) {
    if (WIFSIGNALED(status))
        tell(r, rank, 128 + WTERMSIG(status), WTERMSIG(status), "rank %d was killed by signal %d",
             rank, WTERMSIG(status));
    else if (WEXITSTATUS(status))
        tell(r, rank, WEXITSTATUS(status), 0, "rank %d ended with code %d", rank,
             WEXITSTATUS(status));
    else
        wf_region_ended(r->region, rank);
}

static void reap(struct run *r) {
    for (int rank = 0; rank < r->region->ranks; rank++) {
        int status;
        if (!r->pid[rank] || waitpid(r->pid[rank], &status, WNOHANG) != r->pid[rank]) continue;
        r->pid[rank] = 0, r->alive--;
        judge(r, rank, status);
    }
}

static void listen_to_hearts(struct run *r, double passed) {
    for (int rank = 0; rank < r->region->ranks; rank++) {
        unsigned beats = atomic_load(&r->region->seats[rank].beats);
        r->silent[rank] = beats == r->beats[rank] ? r->silent[rank] + passed : 0;
        r->beats[rank] = beats;
        if (r->pid[rank] && r->silent[rank] > SILENCE)
            tell(r, rank, WF_HUNG, 0, "rank %d has not lived for %.0f seconds", rank, SILENCE);
    }
}

static void kill_all(const struct run *r) {
    for (int rank = 0; rank < r->region->ranks; rank++)
        if (r->pid[rank]) kill(r->pid[rank], SIGKILL);
}

static void pass_on(struct run *r, int number, double time) {
    for (int i = 0; i < 2; i++) {
        if (number != passed_on[i] || time - r->interrupted[i] < ONCE) continue;
        r->interrupted[i] = time;
        atomic_fetch_add(&r->region->interrupts[i], 1);
    }
}

/* Time in which the caller itself was stopped, as by Ctrl-Z, does not count. */
static void watch(struct run *r) {
    for (double last = wf_seconds_now(), time; r->alive; last = time) {
        int number = sigtimedwait(&r->watched, NULL, &(struct timespec){ .tv_nsec = BEAT_NS });
        time = wf_seconds_now();
        double passed = time - last < 1 ? time - last : 1;
        pass_on(r, number, time);
        reap(r);
        listen_to_hearts(r, passed);
        if (wf_region_cause(r->region) && (r->failing += passed) > GRACE) kill_all(r);
    }
}

/* Signals come to the caller when it waits for them; a child's end says so whatever was wished
 * before. */
static void run_ranks(struct run *r) {
    struct sigaction child = { .sa_handler = SIG_DFL }, before;
    sigemptyset(&child.sa_mask), sigemptyset(&r->watched), sigaddset(&r->watched, SIGCHLD);
    for (int i = 0; i < 2; i++) sigaddset(&r->watched, passed_on[i]);
    sigaction(SIGCHLD, &child, &before);
    pthread_sigmask(SIG_BLOCK, &r->watched, &r->before);
    start(r);
    watch(r);
    pthread_sigmask(SIG_SETMASK, &r->before, NULL);
    sigaction(SIGCHLD, &before, NULL);
}

int wf_processes_run(int n, int (*body)(wf_transport *t, void *user), void *user,
                     void (*leave)(int code), wf_processes_result *cause) {
    assert(body && leave && cause);
    *cause = (wf_processes_result){ -1, 1, 0, "no memory that ranks can share" };
    if (n < 1 || n > WF_MOST_PROCESSES) {
        snprintf(cause->why, sizeof cause->why, "%d ranks: there are 1 to %d", n,
                 (int)WF_MOST_PROCESSES);
        return cause->code;
    }
    struct run r = { .body = body, .user = user, .leave = leave, .caller = getpid() };
    if (!(r.region = wf_region_new(n))) return cause->code;
    run_ranks(&r);
    const wf_seat *s = wf_region_cause(r.region);
    *cause = (wf_processes_result){ .rank = -1 };
    if (s) {
        cause->rank = s->rank, cause->code = s->code, cause->signal = s->signal;
        memcpy(cause->why, s->why, sizeof cause->why);
    }
    wf_region_free(r.region);
    return cause->code;
}
