/* tests/core/plan/test_pool.c - the thread pool: every task once, failures, sharing, starting and
 * stopping. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "core/run_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "core/plan/pool.h"

TESTS(pool)

enum { MOST = 5000 };

struct job {
    int threads;
    atomic_int done[MOST];
    atomic_int wrong_worker, running[256];
    int64_t fail_at; /* -1: never */
    double plain[MOST];
};

static bool count_task(void *arg, int64_t index, int worker) {
    struct job *job = arg;
    if (worker < 0 || worker >= job->threads || atomic_fetch_add(&job->running[worker], 1) != 0)
        atomic_fetch_add(&job->wrong_worker, 1);
    job->plain[index] += 1; /* not atomic: the pool must order it */
    atomic_fetch_add(&job->done[index], 1);
    atomic_fetch_sub(&job->running[worker], 1);
    return index != job->fail_at;
}

static struct job *new_job(const wf_pool *pool) {
    struct job *job = calloc(1, sizeof *job);
    ck_assert_ptr_nonnull(job);
    job->threads = wf_pool_threads(pool), job->fail_at = -1;
    return job;
}

static void expect_runs(const struct job *job, int64_t n, int runs) {
    for (int64_t i = 0; i < MOST; i++) {
        ck_assert_int_eq(job->done[i], i < n ? runs : 0);
        ck_assert(job->plain[i] == job->done[i]);
    }
    ck_assert_int_eq(job->wrong_worker, 0);
}

TEST_ROWS(each_task_runs_once, 4) {
    static const int threads[] = { 1, 2, 5, 16 };
    static const int64_t sizes[] = { 0, 1, 2, 3, 7, 64, 1000, MOST };
    wf_pool *pool = wf_pool_new(threads[_i]);
    ck_assert_int_eq(wf_pool_threads(pool), threads[_i]);
    for (int s = 0; s < COUNT_OF(sizes); s++) {
        struct job *job = new_job(pool);
        for (int runs = 1; runs <= 20; runs++) {
            ck_assert(wf_pool_run(pool, sizes[s], count_task, job));
            if (runs == 20) expect_runs(job, sizes[s], runs);
        }
        free(job);
    }
    wf_pool_free(pool);
}

TEST(no_pool_is_one_thread_in_order) {
    struct job *job = new_job(NULL);
    ck_assert_int_eq(job->threads, 1);
    ck_assert(wf_pool_run(NULL, 10, count_task, job));
    expect_runs(job, 10, 1);
    job->fail_at = 4;
    ck_assert(!wf_pool_run(NULL, 10, count_task, job));
    for (int i = 0; i < 10; i++) ck_assert_int_eq(job->done[i], i <= 4 ? 2 : 1);
    wf_pool_free(NULL);
    free(job);
}

TEST(number_of_threads_is_limited) {
    static const int asked[] = { -3, 0, 1, 256, 1000 }, got[] = { 1, 1, 1, 256, 256 };
    for (int i = 0; i < COUNT_OF(asked); i++) {
        wf_pool *pool = wf_pool_new(asked[i]);
        ck_assert_int_eq(wf_pool_threads(pool), got[i]);
        wf_pool_free(pool);
    }
}

TEST(failing_task_stops_the_job) {
    wf_pool *pool = wf_pool_new(3);
    int64_t skipped = 0;
    for (int64_t at = 0; at < MOST; at += 97) {
        struct job *job = new_job(pool);
        job->fail_at = at;
        ck_assert(!wf_pool_run(pool, MOST, count_task, job));
        ck_assert_int_eq(job->done[at], 1);
        for (int64_t i = 0; i < MOST; i++) {
            ck_assert_int_le(job->done[i], 1);
            skipped += job->done[i] == 0;
        }
        job->fail_at = -1; /* the failure must not reach the next job */
        ck_assert(wf_pool_run(pool, at, count_task, job));
        free(job);
    }
    ck_assert_int_gt(skipped, MOST); /* many tasks after the failed one are not started */
    wf_pool_free(pool);
}

/* Each of two workers stays in its first task until the other has begun one, too. The two first
 * tasks must be the first of each half. */
struct halves {
    int first[2]; /* the task that each worker did first; -1: none yet */
    atomic_int begun;
};

static bool meet_task(void *arg, int64_t index, int worker) {
    struct halves *h = arg;
    if (h->first[worker] >= 0) return true;
    h->first[worker] = (int)index;
    atomic_fetch_add(&h->begun, 1);
    while (atomic_load(&h->begun) < 2) nanosleep(&(struct timespec){ .tv_nsec = 10000 }, NULL);
    return true;
}

TEST(workers_begin_with_their_own_share) {
    static const int64_t sizes[] = { 4, 5, 100 };
    cpu_set_t usable; /* on one processor the caller runs all tasks and wakes no worker */
    if (sched_getaffinity(0, sizeof usable, &usable) == 0 && CPU_COUNT(&usable) < 2) return;
    wf_pool *pool = wf_pool_new(2);
    for (int i = 0; i < 60; i++) {
        int64_t n = sizes[i % COUNT_OF(sizes)];
        struct halves h = { .first = { -1, -1 } };
        ck_assert(wf_pool_run(pool, n, meet_task, &h));
        ck_assert_int_eq(h.first[0], 0);
        ck_assert_int_eq(h.first[1], (n + 1) / 2);
    }
    wf_pool_free(pool);
}

struct caller {
    wf_pool *pool;
    struct job *job;
    pthread_t thread;
    bool ok;
};

static void *call_often(void *arg) {
    struct caller *c = arg;
    c->ok = true;
    for (int i = 0; i < 300; i++) c->ok = wf_pool_run(c->pool, 50, count_task, c->job) && c->ok;
    return NULL;
}

TEST(callers_take_turns) {
    wf_pool *pool = wf_pool_new(3);
    struct caller callers[3];
    for (int i = 0; i < 3; i++) {
        callers[i] = (struct caller){ .pool = pool, .job = new_job(pool) };
        ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(callers[i].thread, NULL);
        ck_assert(callers[i].ok);
        expect_runs(callers[i].job, 50, 300);
        free(callers[i].job);
    }
    wf_pool_free(pool);
}

TEST(start_and_stop_200_times) {
    for (int i = 0; i < 200; i++) {
        wf_pool *pool = wf_pool_new(1 + i % 5);
        if (i % 3 != 0) {
            struct job *job = new_job(pool);
            ck_assert(wf_pool_run(pool, 20, count_task, job));
            expect_runs(job, 20, 1);
            free(job);
        }
        wf_pool_free(pool);
    }
}

/* A task that takes longer than idle workers spin. They fall asleep, and must be woken. */
static bool slow_task(void *arg, int64_t index, int worker) {
    if (index % 2 == 0) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    return count_task(arg, index, worker);
}

TEST(sleeping_workers_wake) {
    wf_pool *pool = wf_pool_new(3);
    struct job *job = new_job(pool);
    for (int i = 0; i < 50; i++) {
        nanosleep(&(struct timespec){ .tv_nsec = i % 5 * 300000 }, NULL);
        ck_assert(wf_pool_run(pool, 5, slow_task, job));
    }
    expect_runs(job, 5, 50);
    wf_pool_free(pool);
    free(job);
}

static double seconds_per_job(int threads, struct job *job) {
    struct timespec from, to;
    wf_pool *pool = wf_pool_new(threads);
    job->threads = wf_pool_threads(pool);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < 2000; i++) wf_pool_run(pool, 32, count_task, job);
    clock_gettime(CLOCK_MONOTONIC, &to);
    wf_pool_free(pool);
    return ((double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec)) / 2000;
}

/* With more than four threads per processor, a job must not wait for threads that no processor
 * runs. A barrier that spins until all threads arrive would take a time slice of the system, some
 * milliseconds. */
TEST(too_many_threads_do_not_collapse) {
    struct job *job = new_job(NULL);
    int processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
    double best = 1;
    for (int i = 0; i < 3; i++) best = fmin(best, seconds_per_job(4 * processors + 1, job));
    ck_assert_msg(best < 500e-6, "%.0f microseconds per job", 1e6 * best);
    free(job);
}

static bool tiny_task(void *arg, int64_t index, int worker) {
    volatile float tiny = 0x1p-126f;
    ((float *)arg)[index] = tiny * 0.25f;
    (void)worker;
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL); /* leaves tasks to other threads */
    return true;
}

/* No thread of a pool flushes denormal numbers to zero, even if the program has set that mode:
 * processors differ in what they flush, and so would results. */
TEST(denormal_numbers_are_what_they_are_on_every_thread) {
    float result[8];
    wf_pool *pool = wf_pool_new(4);
#if defined(__SSE2__)
    unsigned own = _mm_getcsr();
    _mm_setcsr(own | 0x8000 | 0x0040); /* flush results; and operands */
#endif
    volatile float tiny = 0x1p-126f, quarter = tiny * 0.25f;
    unsigned mode = wf_float_mode_enter();
    ck_assert(wf_pool_run(pool, 8, tiny_task, result));
    for (int i = 0; i < 8; i++) ck_assert(result[i] > 0 && 4 * result[i] == tiny);
    wf_float_mode_leave(mode);
    ck_assert(tiny * 0.25f == quarter); /* the program's own arithmetic is as it was */
#if defined(__SSE2__)
    _mm_setcsr(own);
#endif
    wf_pool_free(pool);
}

static bool blocks_signals(void *arg, int64_t index, int worker) {
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    bool blocked =
        sigismember(&set, SIGINT) && sigismember(&set, SIGTERM) && sigismember(&set, SIGUSR1);
    ((bool *)arg)[index] = blocked == (worker > 0);
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    return true;
}

TEST(workers_leave_signals_to_the_program) {
    bool right[16] = { false };
    wf_pool *pool = wf_pool_new(4);
    ck_assert(wf_pool_run(pool, 16, blocks_signals, right));
    for (int i = 0; i < 16; i++) ck_assert(right[i]);
    wf_pool_free(pool);
}
