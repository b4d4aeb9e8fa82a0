/* tests/core/ranks/test_transport.c - ranks that are processes of one machine: the collectives
 * among them, and the end of all ranks when one fails. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "core/transport_internal.h"
#include "tests/suites.h"
#include "tests/support/collectives.h"
#include "tests/support/commands.h"
#include "tests/support/faults.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/plan/pool.h"
#include "core/ranks/region.h"

TESTS(transport)

enum { MOST = 8 };
static const int sizes[] = { 1, 2, 3, 5, MOST };
static const int64_t most_bytes = SANITIZED ? 1 << 20 : 3 << 20;

/* Notes that ranks write for the test, in shared memory. */
typedef struct notes {
    atomic_int met, signals[MOST], code[MOST], go;
    atomic_int pid[MOST];
    char error[MOST][256];
} notes;

static notes *seen;
static wf_processes_result cause;

static void new_notes(void) {
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(seen, MAP_FAILED);
    cause = (wf_processes_result){ .rank = 99 };
}

static void drop_notes(void) {
    ck_assert(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD); /* no zombie */
    munmap(seen, sizeof *seen);
}

SETUP(new_notes, drop_notes)

static int run_ranks(int n, int (*body)(wf_transport *t, void *user)) {
    return wf_processes_run(n, body, (void *)&most_bytes, _exit, &cause);
}

static void nap(void) {
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* The other ranks wait in a barrier until one fails. They note the code and message that they
 * get. */
static int wait_in_vain(wf_transport *t) {
    bool met = wf_barrier(t);
    seen->code[t->rank] = t->code;
    strcpy(seen->error[t->rank], wf_transport_error(t));
    return met ? 50 : 51;
}

static void expect_cause(int rank, int code, const char *why) {
    ck_assert_int_eq(cause.rank, rank);
    ck_assert_int_eq(cause.code, code);
    ck_assert_str_eq(cause.why, why);
}

static void expect_told(int from, int to, int code, const char *why) {
    for (int r = from; r < to; r++) {
        ck_assert_int_eq(seen->code[r], code);
        ck_assert_str_eq(seen->error[r], why);
    }
}

/* ---- what is sent ---------------------------------------------------------------------------- */

TEST_ROWS(collectives_of_processes, COUNT_OF(sizes)) {
    int code = run_ranks(sizes[_i], check_collectives);
    ck_assert_msg(code == 0, "%d ranks: %d, %s", sizes[_i], code, cause.why);
    expect_cause(-1, 0, "");
}

typedef struct thread_rank {
    wf_rank rank;
    pthread_t thread;
    bool meets;
    int code;
} thread_rank;

static int meet(wf_transport *t, void *user) {
    (void)user;
    for (int i = 1; i <= 2000; i++) {
        atomic_fetch_add(&seen->met, 1);
        if (!wf_barrier(t) || seen->met < i * t->size) return 1;
        if (!wf_barrier(t)) return 2;
    }
    return 0;
}

static void *be_thread(void *arg) {
    thread_rank *r = arg;
    if (r->meets) r->code = meet(&r->rank.transport, NULL);
    if (!r->code) r->code = check_collectives(&r->rank.transport, (void *)&most_bytes);
    return NULL;
}

/* Sets the counters of bytes, barriers and events, which wrap around at 2^32, to values shortly
 * before that. */
static void near_the_end(wf_region *g, thread_rank *ranks) {
    for (int i = 0; i < g->ranks * (3 * g->ranks + 1); i++) g->counters[i].n = 0u - 12345;
    for (int r = 0; r < g->ranks; r++) {
        g->slots[r].barriers.n = 0u - 100;
        ranks[r].rank.barriers = 0u - 100;
        g->slots[r].events.n = 0u - 1000;
        ranks[r].meets = true;
    }
}

static void run_threads(int n, bool to_the_end) {
    thread_rank ranks[MOST] = { 0 };
    wf_region *g = wf_region_new(n);
    for (int r = 0; r < n; r++) wf_rank_join(&ranks[r].rank, g, r);
    if (to_the_end) near_the_end(g, ranks);
    for (int r = 0; r < n; r++)
        ck_assert_int_eq(pthread_create(&ranks[r].thread, NULL, be_thread, &ranks[r]), 0);
    for (int r = 0; r < n; r++) pthread_join(ranks[r].thread, NULL);
    for (int r = 0; r < n; r++)
        ck_assert_msg(ranks[r].code == 0, "%d %s", ranks[r].code,
                      wf_transport_error(&ranks[r].rank.transport));
    for (int i = 0; to_the_end && i < g->ranks; i++) {
        ck_assert_uint_lt(g->slots[i].barriers.n, 1u << 31);
        ck_assert_uint_lt(g->slots[i].events.n, 1u << 31);
        for (int to = -1; to < g->ranks; to++)
            ck_assert(to == i || *wf_region_ring(g, i, to).written < 1u << 31);
    }
    wf_region_free(g);
}

/* The ranks are threads of one process here, so that the thread sanitizer sees all of them. */
TEST_ROWS(collectives_of_threads, COUNT_OF(sizes)) {
    run_threads(sizes[_i], false);
}

TEST(counters_go_round) {
    run_threads(3, true);
}

TEST(a_transport_without_functions_fails) {
    wf_transport t = { .size = 2 };
    int64_t at[3] = { 0 };
    ck_assert(!wf_alltoallv(&t, NULL, at, NULL, at) && !wf_allgatherv(&t, NULL, NULL, at));
    ck_assert(!wf_alltoallv(NULL, NULL, NULL, NULL, NULL) && !wf_allgatherv(&t, NULL, NULL, NULL));
    ck_assert(!wf_barrier(&t) && !wf_allgather(&t, at, at, 0));
    wf_transport_fail(&t, 1, NULL);
}

/* ---- shares ---------------------------------------------------------------------------------- */

TEST(shares_follow_each_other_and_differ_by_one) {
    static const int64_t items[] = { 0, 1, 2, 7, 64, 1000, INT64_MAX };
    for (int i = 0; i < COUNT_OF(items); i++)
        for (int ranks = 1; ranks < 300; ranks += 1 + ranks / 9) {
            int64_t at = 0, n = items[i];
            for (int rank = 0; rank < ranks; rank++) {
                wf_range own = wf_rank_range(n, rank, ranks);
                ck_assert_int_eq(own.from, at);
                ck_assert(own.to - own.from == n / ranks || own.to - own.from == n / ranks + 1);
                at = own.to;
            }
            wf_range last = wf_rank_range(n, ranks - 1, ranks);
            ck_assert_int_eq(at, n);
            ck_assert_int_eq(last.to - last.from, n / ranks + (n % ranks != 0));
        }
}

TEST(no_such_rank_has_no_share) {
    static const int wrong[][2] = {
        { -1, 2 }, { 2, 2 }, { 0, 0 }, { 0, -3 }, { INT_MAX, INT_MIN }
    };
    for (int i = 0; i < COUNT_OF(wrong); i++) {
        wf_range none = wf_rank_range(9, wrong[i][0], wrong[i][1]);
        ck_assert(none.from == 0 && none.to == 0);
    }
    wf_range none = wf_rank_range(-1, 0, 1);
    ck_assert(none.from == 0 && none.to == 0);
}

/* wf_allgather works without a transport (NULL: one process), and with more ranks than one machine
 * can have: then it allocates the list of offsets. */
static bool count_offsets(wf_transport *t, const void *send, void *receive, const int64_t *at) {
    (void)send, (void)receive;
    return at[t->size] == 3 * (int64_t)t->size;
}

static void note_failure(wf_transport *t, int code, const char *why) {
    (void)code;
    snprintf(t->error, sizeof t->error, "%s", why);
}

TEST(equal_parts_of_many_ranks) {
    double mine = 4, all = 0;
    ck_assert(wf_allgather(NULL, &mine, &all, sizeof mine) && all == mine);
    ck_assert(!wf_allgather(NULL, &mine, NULL, sizeof mine) && !wf_allgather(NULL, NULL, &all, 1));
    wf_transport t = { .size = 1000, .allgatherv = count_offsets, .fail = note_failure };
    char text[3000];
    ck_assert(wf_allgather(&t, "abc", text, 3));
    ck_assert(!wf_allgather(&t, "abc", text, SIZE_MAX / 8));
    long left;
    faults_begin(1, false);
    bool ok = wf_allgather(&t, "abc", text, 3);
    ck_assert_int_eq(faults_end(&left), 1);
    ck_assert(!ok);
    ck_assert_str_eq(wf_transport_error(&t), "out of memory");
}

TEST_ROWS(nobody_passes_a_barrier_before_all_came, COUNT_OF(sizes)) {
    if (sizes[_i] == 1) return;
    ck_assert_int_eq(run_ranks(sizes[_i], meet), 0);
}

/* ---- what fails ------------------------------------------------------------------------------ */

static void *wait_for_bytes(void *arg) {
    thread_rank *r = arg;
    int64_t send_at[] = { 0, 0, 0 }, receive_at[] = { 0, 0, 1 };
    char byte;
    r->code = wf_alltoallv(&r->rank.transport, NULL, send_at, &byte, receive_at);
    return NULL;
}

/* A rank waits for bytes, and another fails at any moment: the waiting rank must not sleep on. It
 * is woken without a cause up to 49 times before, so that in many trials the failure comes at each
 * of the instructions between two of its checks. */
TEST(a_failure_at_any_instruction_wakes_a_rank) {
    enum { TRIALS = SANITIZED ? 3000 : 10000 };
    for (int i = 0; i < TRIALS; i++) {
        thread_rank waits = { .code = 1 };
        wf_region *g = wf_region_new(2);
        wf_rank_join(&waits.rank, g, 0);
        waits.rank.spins = 0;
        ck_assert_int_eq(pthread_create(&waits.thread, NULL, wait_for_bytes, &waits), 0);
        while (!atomic_load(&g->slots[0].asleep)) sched_yield();
        for (int k = 0; k < i % 50; k++) wf_region_wake(g, 0);
        wf_region_fail(g, 1, (wf_processes_result){ 1, 7, 0, "the network is gone" });
        pthread_join(waits.thread, NULL);
        ck_assert_int_eq(waits.code, 0);
        ck_assert_str_eq(wf_transport_error(&waits.rank.transport), "the network is gone");
        wf_region_free(g);
    }
}

static int one_returns(wf_transport *t, void *user) {
    (void)user;
    return t->rank == 1 ? 7 : wait_in_vain(t);
}

TEST(a_code_ends_all) {
    ck_assert_int_eq(run_ranks(3, one_returns), 7);
    expect_cause(1, 7, "rank 1 ended with code 7");
    expect_told(2, 3, 7, cause.why);
}

static int one_is_killed(wf_transport *t, void *user) {
    (void)user;
    if (t->rank == 2) raise(SIGKILL);
    return wait_in_vain(t);
}

TEST(a_kill_ends_all) {
    ck_assert_int_eq(run_ranks(5, one_is_killed), 128 + SIGKILL);
    expect_cause(2, 128 + SIGKILL, "rank 2 was killed by signal 9");
    ck_assert_int_eq(cause.signal, SIGKILL);
    expect_told(0, 2, 128 + SIGKILL, cause.why);
    expect_told(3, 5, 128 + SIGKILL, cause.why);
}

static int one_fails(wf_transport *t, void *user) {
    (void)user;
    if (t->rank != 1) return wait_in_vain(t);
    wf_transport_fail(t, 5, "the disk is full");
    wf_transport_fail(t, 6, "and more");
    return wait_in_vain(t); /* its own collectives fail too */
}

TEST(a_failure_ends_all_with_its_sentence) {
    ck_assert_int_eq(run_ranks(3, one_fails), 5);
    expect_cause(1, 5, "the disk is full");
    expect_told(0, 3, 5, cause.why);
}

/* Rank 0 is stopped (SIGSTOP), and rank 1 sleeps without end: both are killed. */
static int one_is_stopped(wf_transport *t, void *user) {
    (void)user;
    if (t->rank == 0) raise(SIGSTOP);
    while (t->rank == 1) nap();
    return wait_in_vain(t);
}

TEST(a_hang_ends_all) {
    ck_assert_int_eq(run_ranks(3, one_is_stopped), WF_HUNG);
    expect_cause(0, WF_HUNG, "rank 0 sent no heartbeat for 10 seconds");
    expect_told(2, 3, WF_HUNG, cause.why);
}

static int one_leaves(wf_transport *t, void *user) {
    int64_t at[4] = { 0, 0, 1, 2 };
    char all[2];
    (void)user;
    if (t->rank == 1) return 0;
    if (!(t->rank ? wf_allgatherv(t, "x", all, at) : wf_alltoallv(t, "x", at, all, at))) return 8;
    return wait_in_vain(t);
}

TEST(who_waits_for_one_that_ended_well_fails) {
    ck_assert_int_ne(run_ranks(3, one_leaves), 0);
    ck_assert_str_eq(cause.why, "another rank has ended before");
}

/* Data arrive even if the rank that sent them has ended since. */
static int one_is_early(wf_transport *t, void *user) {
    int64_t at[3] = { 0, 1 << 17, 1 << 17 };
    static char all[1 << 17];
    (void)user;
    for (int i = 0; t->rank == 1 && i < 300; i++) nap();
    if (!wf_allgatherv(t, all, all, at)) return 2;
    atomic_fetch_add(&seen->met, 1);
    return t->rank == 0 ? 0 : wait_in_vain(t);
}

TEST(what_came_from_one_that_ended_is_there) {
    ck_assert_int_eq(run_ranks(2, one_is_early), 1);
    ck_assert_int_eq(seen->met, 2);
    ck_assert_str_eq(cause.why, "another rank has ended before");
}

/* ---- who watches ----------------------------------------------------------------------------- */

static int stay(wf_transport *t, void *user) {
    (void)user;
    signal(SIGINT, SIG_DFL); /* Check has a handler */
    seen->pid[t->rank] = getpid();
    if (t->rank == 1) raise(SIGSTOP);
    while (t->rank == 0) nap();
    return wait_in_vain(t);
}

static pid_t run_apart(int n, int (*body)(wf_transport *t, void *user)) {
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) _exit(run_ranks(n, body));
    return pid;
}

/* When the caller is killed, its ranks end: rank 0 naps, rank 1 is stopped, rank 2 waits in a
 * barrier. */
TEST(ranks_end_with_their_caller) {
    int ends[2], status;
    char nothing;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t caller = run_apart(3, stay);
    close(ends[1]); /* the ranks have copies of it, so ends[0] ends when all of them have ended */
    while (!seen->pid[0] || !seen->pid[1] || !seen->pid[2]) nap();
    kill(caller, SIGKILL);
    ck_assert_int_eq(waitpid(caller, &status, 0), caller);
    ck_assert_int_eq(read(ends[0], &nothing, 1), 0);
    expect_told(2, 3, 128 + SIGKILL, "the program that started the ranks is gone");
    close(ends[0]);
}

static int rank_here;

static void count_signal(int number) {
    atomic_fetch_add(&seen->signals[rank_here], number);
}

static int await_signals(wf_transport *t, void *user) {
    struct sigaction action = { .sa_handler = count_signal };
    (void)user;
    sigemptyset(&action.sa_mask);
    rank_here = t->rank;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    if (!wf_barrier(t)) return 1;
    seen->pid[t->rank] = getpid();
    while (!seen->go) nap();
    return wf_barrier(t) ? 0 : 2;
}

static void await_count(int wanted) {
    for (int r = 0; r < 2; r++)
        while (seen->signals[r] < wanted) nap();
    for (int i = 0; i < 300; i++) nap();
    for (int r = 0; r < 2; r++) ck_assert_int_eq(seen->signals[r], wanted);
}

/* A terminal and killall send a signal both to the caller, which passes it on, and to each rank: a
 * rank's handler must run once. */
TEST(a_signal_comes_to_each_rank_once) {
    int status;
    pid_t caller = run_apart(2, await_signals);
    while (!seen->pid[0] || !seen->pid[1]) nap();
    for (int r = 0; r < 2; r++) kill(seen->pid[r], SIGTERM);
    await_count(0); /* to a rank alone: nothing */
    kill(caller, SIGTERM);
    await_count(SIGTERM);
    for (int r = 0; r < 2; r++) kill(seen->pid[r], SIGINT);
    kill(caller, SIGINT);
    await_count(SIGTERM + SIGINT);
    for (int r = 0; r < 2; r++) kill(seen->pid[r], SIGHUP);
    kill(caller, SIGHUP);
    await_count(SIGTERM + SIGINT + SIGHUP);
    seen->go = 1;
    ck_assert_int_eq(waitpid(caller, &status, 0), caller);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* GNU timeout signals the caller, and then its group. A later signal counts as another. */
TEST(a_signal_twice_at_once_is_one) {
    int status;
    pid_t caller = run_apart(2, await_signals);
    while (!seen->pid[0] || !seen->pid[1]) nap();
    double began = seconds();
    kill(caller, SIGTERM), nap(), kill(caller, SIGTERM);
    if (seconds() - began < 0.1) await_count(SIGTERM);
    for (int i = 0; i < 300; i++) nap();
    int before = seen->signals[0];
    kill(caller, SIGTERM);
    await_count(before + SIGTERM);
    seen->go = 1;
    ck_assert_int_eq(waitpid(caller, &status, 0), caller);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A signal that nobody handles. */
TEST(a_signal_to_the_caller_ends_ranks) {
    int status;
    seen->go = 0;
    pid_t caller = run_apart(3, stay);
    while (!seen->pid[0] || !seen->pid[1] || !seen->pid[2]) nap();
    kill(seen->pid[1], SIGCONT);
    kill(caller, SIGINT);
    ck_assert_int_eq(waitpid(caller, &status, 0), caller);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGINT);
}

/* ---- what is missing ------------------------------------------------------------------------- */

static int nothing_to_do(wf_transport *t, void *user) {
    (void)user;
    return wf_barrier(t) ? 0 : 1;
}

TEST(numbers_of_ranks) {
    ck_assert_int_eq(run_ranks(0, nothing_to_do), 1);
    expect_cause(-1, 1, "0 ranks, not from 1 to 256");
    ck_assert_int_eq(run_ranks(257, nothing_to_do), 1);
    expect_cause(-1, 1, "257 ranks, not from 1 to 256");
    ck_assert_int_eq(run_ranks(64, nothing_to_do), 0);
}

/* A rank starts with a fork, and then with a thread in the new process. Each process goes on
 * counting from the number that it inherits at its fork. In rank 1's process the forks of ranks 0
 * and 1 are requests 1 and 2, so its thread is request 3, which fails. In rank 0's process the
 * thread is request 2, and succeeds. */
TEST(no_thread_for_a_rank) {
    long left;
    faults_begin(3, true);
    int code = run_ranks(2, nothing_to_do);
    faults_end(&left);
    ck_assert_int_eq(code, 1);
    expect_cause(1, 1, "a rank's thread does not start");
}

TEST(no_process_for_a_rank) {
    long left;
    faults_begin(1, true);
    int code = run_ranks(2, nothing_to_do);
    faults_end(&left);
    ck_assert_int_eq(code, 1);
    expect_cause(-1, 1, "rank 0 does not start: Resource temporarily unavailable");
}

/* The fork of rank 2 fails: ranks 0 and 1, which have started, must end. */
TEST(no_process_for_the_last_rank) {
    long left;
    faults_begin(3, false);
    int code = run_ranks(3, nothing_to_do);
    faults_end(&left);
    ck_assert_int_eq(code, 1);
}

#if !SANITIZED
TEST(no_memory_for_ranks) {
    struct rlimit before, none = { 0, 0 };
    getrlimit(RLIMIT_AS, &before);
    none.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_AS, &none);
    int code = run_ranks(2, nothing_to_do);
    setrlimit(RLIMIT_AS, &before);
    ck_assert_int_eq(code, 1);
    expect_cause(-1, 1, "no memory that ranks can share");
}
#endif

static void flush_and_leave(int code) {
    fflush(NULL);
    _exit(code);
}

/* Buffered output of a stream is written once. */
TEST(streams_are_written_once) {
    FILE *f = tmpfile();
    ck_assert_ptr_nonnull(f);
    fputs("once", f);
    ck_assert_int_eq(wf_processes_run(3, nothing_to_do, NULL, flush_and_leave, &cause), 0);
    fseek(f, 0, SEEK_END);
    ck_assert_int_eq(ftell(f), 4);
    fclose(f);
}

static void come_back(int code) {
    (void)code;
}

TEST(a_rank_does_not_go_on_as_its_caller) {
    ck_assert_int_eq(wf_processes_run(2, nothing_to_do, NULL, come_back, &cause), 128 + SIGKILL);
}

TEST(functions_of_ranks_that_are_null_are_refused) {
    ck_assert_int_eq(wf_processes_run(2, NULL, NULL, flush_and_leave, &cause), 1);
    ck_assert_str_eq(cause.why, "the function body of the ranks is NULL");
    ck_assert_int_eq(cause.rank, -1);
    ck_assert_int_eq(wf_processes_run(2, nothing_to_do, NULL, NULL, &cause), 1);
    ck_assert_str_eq(cause.why, "the function leave of the ranks is NULL");
    ck_assert_int_eq(wf_processes_run(2, NULL, NULL, NULL, NULL), 1);
}

/* A caller that does not ask for the cause gets the exit code alone. */
TEST(the_cause_of_a_failure_may_go_unasked) {
    ck_assert_int_eq(wf_processes_run(3, nothing_to_do, NULL, flush_and_leave, NULL), 0);
    ck_assert_int_eq(wf_processes_run(0, nothing_to_do, NULL, flush_and_leave, NULL), 1);
}
