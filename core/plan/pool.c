/* core/plan/pool.c - threads that wait, tasks that are shared out, a barrier.
 *
 * Every worker begins with its own share of the tasks, the same part of every job: what it wrote in
 * one job is in its cache when the next job reads it. Who is done with his share takes from the
 * others'. The counter of a share lies in the cache line of its worker's seat.
 *
 * The gate is the number of the newest job. A worker goes in by taking its seat, then looking at
 * the gate again: if the number is still that of the job, the job's fields are its to read until it
 * gets up. The caller takes tasks like everyone; when none are left, it waits for those who sit. It
 * never waits for a thread that has not come: a sleeping or preempted worker costs nothing, so any
 * number of threads does no harm. Jobs alternate between two places, so that who comes late finds
 * the job as it was left, without tasks; before a place is used again, its seats are seen to be
 * empty.
 *
 * Who waits spins for a while, then sleeps. No wake-up is lost: the sleeper counts itself, then
 * looks at what it waits for; the waker changes that, then looks at the count (all sequentially
 * consistent, as are seats and gate); the mutex covers the moment between looking and sleeping. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "pool.h"

#include <assert.h>
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

/* The gate's bits: job number | stop. */
#define STOP UINT64_C(1)
#define JOB UINT64_C(2)

typedef bool task_function(void *arg, int64_t index, int worker);
typedef bool condition(const wf_pool *pool, uint64_t gate);

struct seat { /* of one worker: its share are the tasks from next to end */
    _Alignas(CACHE_LINE) atomic_int_fast64_t next;
    int64_t end;
    atomic_bool taken;
};

struct job { /* the fields that are not atomic are written while nobody sits */
    _Alignas(CACHE_LINE) task_function *task;
    void *arg;
    int shares;
    bool one_each; /* no share has more than one task */
    atomic_bool failed;
    struct seat seats[MAX_THREADS];
};

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
    _Alignas(CACHE_LINE) int threads, processors, spins;
    pthread_mutex_t turn, mutex;        /* turn: one caller at a time; mutex: for going to sleep */
    struct bed idle, done;              /* workers without a job; the caller at the barrier */
    struct worker workers[MAX_THREADS]; /* from 1: worker 0 is the caller */
    struct job jobs[2];
};

/* ---- the processor ----------------------------------------------------------------------- */

#if defined(__SSE2__)
unsigned wf_float_mode_enter(void) {
    unsigned mode = _mm_getcsr();
    _mm_setcsr(0x1F80 | 0x8000 | 0x0040); /* the default; flush results; and operands */
    return mode;
}
void wf_float_mode_leave(unsigned mode) {
    _mm_setcsr(mode);
}
static void relax(void) {
    _mm_pause();
} /* 10 to 50 ns */
#else
unsigned wf_float_mode_enter(void) {
    return 0;
}
void wf_float_mode_leave(unsigned mode) {
    (void)mode;
}
static void relax(void) {
    atomic_signal_fence(memory_order_seq_cst);
}
#endif

static int count_processors(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : MAX_THREADS;
}

/* ---- waiting ----------------------------------------------------------------------------- */

static bool gate_moved(const wf_pool *pool, uint64_t gate) {
    return atomic_load(&pool->gate) != gate;
}

static bool seats_empty(const wf_pool *pool, uint64_t gate) {
    const struct job *job = &pool->jobs[gate / JOB % 2];
    for (int w = 1; w < pool->threads; w++)
        if (atomic_load(&job->seats[w].taken)) return false;
    return true;
}

static void wait_until(wf_pool *pool, struct bed *bed, condition *met, uint64_t gate) {
    for (int i = 0; i < pool->spins; i++, relax())
        if (met(pool, gate)) return;
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&bed->sleepers, 1);
    while (!met(pool, gate)) pthread_cond_wait(&bed->wake, &pool->mutex);
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

/* Equal shares, one for each worker that can have a task; the first ones take the rest. */
static void share_out(const wf_pool *pool, struct job *job, int64_t n) {
    int shares = job->shares = n < pool->threads ? (int)n : pool->threads;
    int64_t each = n / shares, more = n % shares, from = 0;
    job->one_each = each + (more > 0) == 1;
    for (int w = 0; w < shares; w++) {
        struct seat *s = &job->seats[w];
        s->end = from + each + (w < more);
        atomic_store_explicit(&s->next, from, memory_order_relaxed);
        from = s->end;
    }
}

/* The next task of a share, or -1. A share that is used up is read, not written. */
static int64_t take(struct seat *s) {
    if (atomic_load_explicit(&s->next, memory_order_relaxed) >= s->end) return -1;
    int64_t index = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
    return index < s->end ? index : -1;
}

static void give_up(struct job *job) {
    atomic_store(&job->failed, true);
    for (int w = 0; w < job->shares; w++) /* nothing more to take */
        atomic_store(&job->seats[w].next, job->seats[w].end);
}

/* The own share first, then the others' in turn; but a caller's only task is never left to others:
 * to look for it would cost as much as a small task. */
static void take_tasks(struct job *job, int worker) {
    int64_t index;
    for (int i = 0; i < job->shares; i++) {
        int w = (worker + i) % job->shares;
        if (w == 0 && worker != 0 && job->one_each) continue;
        while ((index = take(&job->seats[w])) >= 0)
            if (!job->task(job->arg, index, worker)) give_up(job);
    }
}

static void *work(void *arg) {
    struct worker *self = arg;
    wf_pool *pool = self->pool;
    wf_float_mode_enter();
    for (uint64_t gate = 0; !(gate & STOP);) {
        wait_until(pool, &pool->idle, gate_moved, gate);
        gate = atomic_load(&pool->gate);
        struct job *job = &pool->jobs[gate / JOB % 2];
        struct seat *seat = &job->seats[self->index];
        atomic_store(&seat->taken, true);
        if (!gate_moved(pool, gate)) take_tasks(job, self->index);
        atomic_store(&seat->taken, false);
        wake(pool, &pool->done, 1);
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
    assert(n >= 0 && task);
    if (!pool || pool->threads == 1 || n <= 1) {
        for (int64_t i = 0; i < n; i++)
            if (!task(arg, i, 0)) return false;
        return true;
    }
    pthread_mutex_lock(&pool->turn);
    uint64_t gate = atomic_load(&pool->gate) + JOB;
    struct job *job = &pool->jobs[gate / JOB % 2];
    wait_until(pool, &pool->done, seats_empty, gate);
    job->task = task, job->arg = arg;
    atomic_store_explicit(&job->failed, false, memory_order_relaxed);
    share_out(pool, job, n);
    atomic_store(&pool->gate, gate);
    wake_helpers(pool, n);
    take_tasks(job, 0);
    wait_until(pool, &pool->done, seats_empty, gate);
    bool ok = !atomic_load(&job->failed);
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

int wf_pool_threads(const wf_pool *pool) {
    return pool ? pool->threads : 1;
}

void wf_pool_free(wf_pool *pool) {
    if (!pool) return;
    atomic_fetch_or(&pool->gate, STOP);
    wake(pool, &pool->idle, pool->threads);
    for (int i = 1; i < pool->threads; i++) pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->idle.wake), pthread_cond_destroy(&pool->done.wake);
    pthread_mutex_destroy(&pool->mutex), pthread_mutex_destroy(&pool->turn);
    free(pool);
}
