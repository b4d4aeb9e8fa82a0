/* core/pool.c - threads that wait, tasks that are handed out, a barrier.
 *
 * One 64-bit word, the gate, says all: the number of the job, whether it is open, and how many workers are
 * inside. A worker goes in by a compare-and-swap that succeeds only while the gate is open; then the
 * job's fields are its to read until it goes out. The caller opens the gate, takes tasks like everyone,
 * closes it when none are left, and waits for those inside. It never waits for a thread that has not
 * come: a sleeping or preempted worker costs nothing, so more threads than processors do no harm.
 *
 * Who waits spins for a while, then sleeps. Going to sleep and waking cannot miss each other: the sleeper
 * counts itself and then looks at the gate, the waker changes the gate and then looks at the count
 * (both sequentially consistent), and the mutex covers the moment between looking and sleeping. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { MAX_THREADS = 256, CACHE_LINE = 64 };
enum { SPIN_NS = 50000, SPIN_CROWDED_NS = 2000 }; /* crowded: more threads than processors */

/* The gate's bits: [job number | stop | open | inside]. */
#define INSIDE UINT64_C(0xFFFF)
#define OPEN UINT64_C(0x10000)
#define STOP UINT64_C(0x20000)
#define JOB UINT64_C(0x40000)

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
    bool (*task)(void *arg, int64_t index, int worker);
    void *arg;
    atomic_bool failed;
    int threads, processors;
    int64_t spin_ns;
    pthread_mutex_t turn, mutex; /* turn: one caller at a time; mutex: for going to sleep */
    struct bed idle, done;       /* workers without a job; the caller at the barrier */
    struct worker workers[MAX_THREADS];
};

/* ---- the float mode --------------------------------------------------------------------------- */

#if defined(__SSE2__)
unsigned wf_float_mode_enter(void) {
    unsigned mode = _mm_getcsr();
    _mm_setcsr(0x1F80 /* the default */ | 0x8000 /* results flushed */ | 0x0040 /* operands too */);
    return mode;
}
void wf_float_mode_leave(unsigned mode) { _mm_setcsr(mode); }
static void pause_briefly(void) { _mm_pause(); }
#else
unsigned wf_float_mode_enter(void) { return 0; }
void wf_float_mode_leave(unsigned mode) { (void)mode; }
static void pause_briefly(void) { atomic_signal_fence(memory_order_seq_cst); }
#endif

/* ---- waiting ---------------------------------------------------------------------------------- */

typedef bool condition(uint64_t gate, uint64_t last_job);

static bool job_or_stop(uint64_t gate, uint64_t last_job) {
    return (gate & STOP) || ((gate & OPEN) && gate / JOB != last_job);
}

static bool all_out(uint64_t gate, uint64_t last_job) {
    (void)last_job;
    return (gate & INSIDE) == 0;
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool spin(wf_pool *pool, condition *met, uint64_t last_job) {
    int64_t end = 0;
    do {
        for (int i = 0; i < 32; i++, pause_briefly())
            if (met(atomic_load_explicit(&pool->gate, memory_order_acquire), last_job)) return true;
        if (end == 0) end = now_ns() + pool->spin_ns;
    } while (now_ns() < end);
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

static void wake(wf_pool *pool, struct bed *bed, int64_t at_most) {
    int64_t sleepers = atomic_load(&bed->sleepers);
    if (sleepers == 0 || at_most <= 0) return;
    pthread_mutex_lock(&pool->mutex);
    if (at_most >= sleepers) pthread_cond_broadcast(&bed->wake);
    else
        while (at_most-- > 0) pthread_cond_signal(&bed->wake);
    pthread_mutex_unlock(&pool->mutex);
}

/* ---- a job ------------------------------------------------------------------------------------ */

static void take_tasks(wf_pool *pool, int worker) {
    int64_t index;
    while ((index = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed)) < pool->n) {
        if (pool->task(pool->arg, index, worker)) continue;
        atomic_store(&pool->failed, true);
        atomic_store(&pool->next, pool->n); /* nothing more to hand out */
    }
}

static bool go_in(wf_pool *pool, uint64_t *last_job) {
    uint64_t gate = atomic_load(&pool->gate);
    while (!(gate & STOP) && job_or_stop(gate, *last_job))
        if (atomic_compare_exchange_weak(&pool->gate, &gate, gate + 1)) {
            *last_job = gate / JOB;
            return true;
        }
    return false;
}

static void go_out(wf_pool *pool) {
    uint64_t gate = atomic_fetch_sub(&pool->gate, 1) - 1;
    if (!(gate & OPEN) && all_out(gate, 0)) wake(pool, &pool->done, 1);
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

static bool run_alone(int64_t n, bool (*task)(void *arg, int64_t index, int worker), void *arg) {
    for (int64_t i = 0; i < n; i++)
        if (!task(arg, i, 0)) return false;
    return true;
}

/* How many sleepers a job of n tasks is worth: no more than there are tasks or processors for. */
static int64_t helpers_missing(wf_pool *pool, int64_t n) {
    int64_t useful = n < pool->processors ? n - 1 : pool->processors - 1;
    int64_t awake = pool->threads - 1 - atomic_load(&pool->idle.sleepers);
    return useful - awake;
}

bool wf_pool_run(wf_pool *pool, int64_t n, bool (*task)(void *arg, int64_t index, int worker),
                 void *arg) {
    if (!pool || pool->threads == 1 || n <= 1) return run_alone(n, task, arg);
    pthread_mutex_lock(&pool->turn);
    pool->n = n, pool->task = task, pool->arg = arg;
    atomic_store(&pool->failed, false);
    atomic_store(&pool->next, 0);
    atomic_fetch_add(&pool->gate, JOB | OPEN);
    wake(pool, &pool->idle, helpers_missing(pool, n));
    take_tasks(pool, 0);
    if (!all_out(atomic_fetch_and(&pool->gate, ~OPEN), 0)) wait_until(pool, &pool->done, all_out, 0);
    bool ok = !atomic_load(&pool->failed);
    pthread_mutex_unlock(&pool->turn);
    return ok;
}

/* ---- starting and stopping -------------------------------------------------------------------- */

static int count_processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

static void start_workers(wf_pool *pool, int threads) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the program's own threads */
    for (pool->threads = 1; pool->threads < threads; pool->threads++) {
        struct worker *w = &pool->workers[pool->threads];
        *w = (struct worker){ .pool = pool, .index = pool->threads };
        if (pthread_create(&w->thread, NULL, work, w) != 0) break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

wf_pool *wf_pool_new(int threads) {
    wf_pool *pool = aligned_alloc(CACHE_LINE, sizeof *pool);
    if (!pool) return NULL;
    threads = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
    atomic_init(&pool->gate, 0);
    atomic_init(&pool->next, 0);
    atomic_init(&pool->failed, false);
    pool->processors = count_processors();
    pool->spin_ns = threads > pool->processors ? SPIN_CROWDED_NS : SPIN_NS;
    pthread_mutex_init(&pool->turn, NULL);
    pthread_mutex_init(&pool->mutex, NULL);
    for (int i = 0; i < 2; i++) {
        struct bed *bed = i ? &pool->done : &pool->idle;
        pthread_cond_init(&bed->wake, NULL);
        atomic_init(&bed->sleepers, 0);
    }
    start_workers(pool, threads);
    return pool;
}

int wf_pool_threads(const wf_pool *pool) { return pool ? pool->threads : 1; }

void wf_pool_free(wf_pool *pool) {
    if (!pool) return;
    atomic_fetch_or(&pool->gate, STOP);
    wake(pool, &pool->idle, pool->threads);
    for (int i = 1; i < pool->threads; i++) pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->idle.wake);
    pthread_cond_destroy(&pool->done.wake);
    pthread_mutex_destroy(&pool->mutex);
    pthread_mutex_destroy(&pool->turn);
    free(pool);
}
