/* core/pool.c - threads that wait, tasks that are handed out, a barrier.
 *
 * One word, the gate, says all: the job's number, whether it is open, how many workers are inside.
 * A worker goes in by a compare-and-swap that succeeds only while the gate is open; the job's
 * fields are then its to read until it goes out. The caller opens the gate, takes tasks like everyone,
 * closes it when none are left, and waits for those inside. It never waits for a thread that has
 * not come: a sleeping or preempted worker costs nothing, so any number of threads does no harm.
 *
 * Who waits spins for a while, then sleeps. No wake-up is lost: the sleeper counts itself, then
 * looks at the gate; the waker changes the gate, then looks at the count (all sequentially
 * consistent); the mutex covers the moment between looking and sleeping. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { MAX_THREADS = 256, CACHE_LINE = 64 };
enum { SPINS = 1500, SPINS_CROWDED = 50 }; /* crowded: more threads than processors */

/* The gate's bits: job number | stop | open | inside. */
#define INSIDE UINT64_C(0xFFFF)
#define OPEN UINT64_C(0x10000)
#define STOP UINT64_C(0x20000)
#define JOB UINT64_C(0x40000)

typedef bool task_function(void *arg, int64_t index, int worker);
typedef bool condition(uint64_t gate, uint64_t last_job);

struct bed { /* where threads sleep */
    pthread_cond_t wake;
    atomic_int sleepers;
};

struct worker {
    wf_pool *pool;
    int index;
    pthread_t thread;
};

struct wf_pool {
    _Alignas(CACHE_LINE) atomic_uint_fast64_t gate;
    _Alignas(CACHE_LINE) atomic_int_fast64_t next; /* the task to hand out */
    _Alignas(CACHE_LINE) int64_t n;                /* the job: written while the gate is closed */
    task_function *task;
    void *arg;
    atomic_bool failed;
    int threads, processors, spins;
    pthread_mutex_t turn, mutex; /* turn: one caller at a time; mutex: for going to sleep */
    struct bed idle, done;       /* workers without a job; the caller at the barrier */
    struct worker workers[MAX_THREADS]; /* from 1: worker 0 is the caller */
};

/* ---- the processor ----------------------------------------------------------------------- */

#if defined(__SSE2__)
unsigned wf_float_mode_enter(void) {
    unsigned mode = _mm_getcsr();
    _mm_setcsr(0x1F80 | 0x8000 | 0x0040); /* the default; flush results; and operands */
    return mode;
}
void wf_float_mode_leave(unsigned mode) { _mm_setcsr(mode); }
static void relax(void) { _mm_pause(); } /* 10 to 50 ns */
#else
unsigned wf_float_mode_enter(void) { return 0; }
void wf_float_mode_leave(unsigned mode) { (void)mode; }
static void relax(void) { atomic_signal_fence(memory_order_seq_cst); }
#endif

static int count_processors(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : MAX_THREADS;
}

/* ---- waiting ----------------------------------------------------------------------------- */

static bool job_or_stop(uint64_t gate, uint64_t last_job) {
    return (gate & STOP) || ((gate & OPEN) && gate / JOB != last_job);
}

static bool all_out(uint64_t gate, uint64_t last_job) { return (void)last_job, !(gate & INSIDE); }

static bool spin(wf_pool *pool, condition *met, uint64_t last_job) {
    for (int i = 0; i < pool->spins; i++, relax())
        if (met(atomic_load(&pool->gate), last_job)) return true;
    return false;
}

static void wait_until(wf_pool *pool, struct bed *bed, condition *met, uint64_t last_job) {
    if (spin(pool, met, last_job)) return;
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&bed->sleepers, 1);
    while (!met(atomic_load(&pool->gate), last_job)) pthread_cond_wait(&bed->wake, &pool->mutex);
    atomic_fetch_sub(&bed->sleepers, 1);
    pthread_mutex_unlock(&pool->mutex);
}

static void wake(wf_pool *pool, struct bed *bed, int at_most) {
    if (at_most <= 0 || atomic_load(&bed->sleepers) == 0) return;
    pthread_mutex_lock(&pool->mutex);
    for (int i = 0; i < at_most && i < atomic_load(&bed->sleepers); i++)
        pthread_cond_signal(&bed->wake);
    pthread_mutex_unlock(&pool->mutex);
}

/* ---- a job ------------------------------------------------------------------------------- */

static void take_tasks(wf_pool *pool, int worker) {
    int64_t index;
    while ((index = atomic_fetch_add(&pool->next, 1)) < pool->n) {
        if (pool->task(pool->arg, index, worker)) continue;
        atomic_store(&pool->failed, true);
        atomic_store(&pool->next, pool->n); /* nothing more to hand out */
    }
}

static bool go_in(wf_pool *pool, uint64_t *last_job) {
    uint64_t gate = atomic_load(&pool->gate);
    while ((gate & OPEN) && gate / JOB != *last_job) {
        if (!atomic_compare_exchange_weak(&pool->gate, &gate, gate + 1)) continue;
        *last_job = gate / JOB;
        return true;
    }
    return false;
}

static void go_out(wf_pool *pool) {
    uint64_t gate = atomic_fetch_sub(&pool->gate, 1) - 1;
    if (!(gate & (OPEN | INSIDE))) wake(pool, &pool->done, 1);
}

static void *work(void *arg) {
    struct worker *self = arg;
    wf_pool *pool = self->pool;
    wf_float_mode_enter();
    for (uint64_t last_job = 0; !(atomic_load(&pool->gate) & STOP);) {
        wait_until(pool, &pool->idle, job_or_stop, last_job);
        if (!go_in(pool, &last_job)) continue;
        take_tasks(pool, self->index);
        go_out(pool);
    }
    return NULL;
}

/* A job of n tasks is worth no more threads than there are tasks or processors. */
static void wake_helpers(wf_pool *pool, int64_t n) {
    int useful = (int)(n < pool->processors ? n : pool->processors) - 1;
    int awake = pool->threads - 1 - atomic_load(&pool->idle.sleepers);
    wake(pool, &pool->idle, useful - awake);
}

bool wf_pool_run(wf_pool *pool, int64_t n, task_function *task, void *arg) {
    if (!pool || pool->threads == 1 || n <= 1) {
        for (int64_t i = 0; i < n; i++)
            if (!task(arg, i, 0)) return false;
        return true;
    }
    pthread_mutex_lock(&pool->turn);
    pool->n = n, pool->task = task, pool->arg = arg;
    atomic_store(&pool->failed, false);
    atomic_store(&pool->next, 0);
    atomic_fetch_add(&pool->gate, JOB | OPEN);
    wake_helpers(pool, n);
    take_tasks(pool, 0);
    atomic_fetch_and(&pool->gate, ~OPEN);
    wait_until(pool, &pool->done, all_out, 0);
    bool ok = !atomic_load(&pool->failed);
    pthread_mutex_unlock(&pool->turn);
    return ok;
}

/* ---- starting and stopping --------------------------------------------------------------- */

static void start_workers(wf_pool *pool, int threads) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the program's own threads */
    for (pool->threads = 1; pool->threads < threads; pool->threads++) {
        struct worker *w = &pool->workers[pool->threads];
        w->pool = pool, w->index = pool->threads;
        if (pthread_create(&w->thread, NULL, work, w) != 0) break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

wf_pool *wf_pool_new(int threads) {
    wf_pool *pool = aligned_alloc(CACHE_LINE, sizeof *pool);
    if (!pool) return NULL;
    threads = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
    *pool = (wf_pool){ .processors = count_processors() };
    pool->spins = threads > pool->processors ? SPINS_CROWDED : SPINS;
    pthread_mutex_init(&pool->turn, NULL), pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->idle.wake, NULL), pthread_cond_init(&pool->done.wake, NULL);
    start_workers(pool, threads);
    return pool;
}

int wf_pool_threads(const wf_pool *pool) { return pool ? pool->threads : 1; }

void wf_pool_free(wf_pool *pool) {
    if (!pool) return;
    atomic_fetch_or(&pool->gate, STOP);
    wake(pool, &pool->idle, pool->threads);
    for (int i = 1; i < pool->threads; i++) pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->idle.wake), pthread_cond_destroy(&pool->done.wake);
    pthread_mutex_destroy(&pool->mutex), pthread_mutex_destroy(&pool->turn);
    free(pool);
}
