/* core/plan/pool.c - a thread pool: workers, a queue of tasks for each, a barrier.
 *
 * Every worker begins with its own queue, which holds the same part of the tasks in every job. So
 * the data that it wrote in one job are in its cache when the next job reads them. A worker whose
 * queue is empty takes tasks from the other queues. Each queue has cache lines of its own.
 *
 * `epoch` is the number of the newest job. To enter a job, a worker sets `active` in its queue and
 * then reads the epoch again: if it is unchanged, the job's fields do not change until the worker
 * clears `active`. The caller takes tasks like a worker; when none are left, it waits until no
 * worker is active. It never waits for a thread that has not entered, so sleeping or preempted
 * workers cost nothing, and more threads than processors do no harm. Jobs alternate between two
 * structs, so that a worker that comes late finds its old job unchanged, with no tasks left. Before
 * a struct is used again, the caller waits until no worker is active in it.
 *
 * Waiting threads spin for a while and then sleep. No wake-up is lost: a thread that goes to sleep
 * first increments the number of sleepers and then checks its condition; the thread that wakes it
 * first makes the condition true and then reads the number (all sequentially consistent, as are
 * `active` and `epoch`). The mutex covers the time between the check and the sleep. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "pool.h"
#include "core/run_internal.h"

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
/* how often a waiting thread checks its condition before it sleeps; SPINS_CROWDED if there are more
 * threads than processors */
enum { SPINS = 1500, SPINS_CROWDED = 50 };

/* The epoch in bits: bit 0 is the flag STOP, and the bits above it are the number of the job. */
#define STOP UINT64_C(1)
#define JOB UINT64_C(2)

typedef bool task_function(void *arg, int64_t index, int worker);
typedef bool condition(const wf_pool *pool, uint64_t epoch);

struct queue { /* queue of one worker: tasks next..end - 1 */
    _Alignas(CACHE_LINE) atomic_int_fast64_t next;
    int64_t end;
    atomic_bool active;
};

struct job { /* the fields that are not atomic are written while no worker is active */
    _Alignas(CACHE_LINE) task_function *task;
    void *arg;
    int n_queues;
    bool one_each; /* every queue has at most one task */
    atomic_bool failed;
    struct queue queues[MAX_THREADS];
};

struct waiters { /* threads that wait for a condition */
    pthread_cond_t wake;
    atomic_int sleepers;
};

struct worker {
    wf_pool *pool;
    int index;
    pthread_t thread;
};

struct wf_pool {
    _Alignas(CACHE_LINE) atomic_uint_fast64_t epoch;
    _Alignas(CACHE_LINE) int threads, processors, spins;
    /* turn: held by the caller whose job runs; mutex: held to sleep on a condition variable of idle
     * or done, and to signal it */
    pthread_mutex_t turn, mutex;
    /* idle: workers that wait for a job; done: the caller, which waits at the barrier */
    struct waiters idle, done;
    struct worker workers[MAX_THREADS]; /* from 1: worker 0 is the caller */
    struct job jobs[2];
};

/* ---- the processor ----------------------------------------------------------------------- */

#if defined(__SSE2__)
unsigned wf_float_mode_enter(void) {
    unsigned mode = _mm_getcsr();
    _mm_setcsr(0x1F80); /* MXCSR's default: denormals are not flushed, nothing traps */
    return mode;
}
void wf_float_mode_leave(unsigned mode) {
    _mm_setcsr(mode);
}
void wf_relax(void) {
    _mm_pause();
}
#elif defined(__aarch64__)
unsigned wf_float_mode_enter(void) {
    uint64_t mode, plain = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("msr fpcr, %0" : : "r"(plain));
    return (unsigned)mode;
}
void wf_float_mode_leave(unsigned mode) {
    uint64_t all = mode;
    __asm__ volatile("msr fpcr, %0" : : "r"(all));
}
void wf_relax(void) {
    __asm__ volatile("yield");
}
#else
unsigned wf_float_mode_enter(void) {
    return 0;
}
void wf_float_mode_leave(unsigned mode) {
    (void)mode;
}
void wf_relax(void) {
    atomic_signal_fence(memory_order_seq_cst);
}
#endif

int wf_processors(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : MAX_THREADS;
}

/* ---- waiting ----------------------------------------------------------------------------- */

static bool epoch_changed(const wf_pool *pool, uint64_t epoch) {
    return atomic_load(&pool->epoch) != epoch;
}

static bool none_active(const wf_pool *pool, uint64_t epoch) {
    const struct job *job = &pool->jobs[epoch / JOB % 2];
    for (int w = 1; w < pool->threads; w++)
        if (atomic_load(&job->queues[w].active)) return false;
    return true;
}

static void wait_until(wf_pool *pool, struct waiters *waiters, condition *met, uint64_t epoch) {
    for (int i = 0; i < pool->spins; i++, wf_relax())
        if (met(pool, epoch)) return;
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&waiters->sleepers, 1);
    while (!met(pool, epoch)) pthread_cond_wait(&waiters->wake, &pool->mutex);
    atomic_fetch_sub(&waiters->sleepers, 1);
    pthread_mutex_unlock(&pool->mutex);
}

static void wake(wf_pool *pool, struct waiters *waiters, int at_most) {
    if (at_most <= 0 || atomic_load(&waiters->sleepers) == 0) return;
    pthread_mutex_lock(&pool->mutex);
    for (int i = 0; i < at_most && i < atomic_load(&waiters->sleepers); i++)
        pthread_cond_signal(&waiters->wake);
    pthread_mutex_unlock(&pool->mutex);
}

/* ---- a job ------------------------------------------------------------------------------- */

/* Divide n tasks among the workers, or among n of them if there are more. The numbers of tasks
 * differ by at most one; the first workers have the larger ones. */
static void fill_queues(const wf_pool *pool, struct job *job, int64_t n) {
    int n_queues = job->n_queues = n < pool->threads ? (int)n : pool->threads;
    int64_t each = n / n_queues, more = n % n_queues, from = 0;
    job->one_each = each + (more > 0) == 1;
    for (int w = 0; w < n_queues; w++) {
        struct queue *q = &job->queues[w];
        q->end = from + each + (w < more);
        atomic_store_explicit(&q->next, from, memory_order_relaxed);
        from = q->end;
    }
}

/* Take the next task of a queue; -1: it is empty. The counter of an empty queue is only read,
 * because writing it would move its cache line. */
static int64_t take(struct queue *q) {
    if (atomic_load_explicit(&q->next, memory_order_relaxed) >= q->end) return -1;
    int64_t index = atomic_fetch_add_explicit(&q->next, 1, memory_order_relaxed);
    return index < q->end ? index : -1;
}

static void cancel(struct job *job) {
    atomic_store(&job->failed, true);
    for (int w = 0; w < job->n_queues; w++) /* empties the queues */
        atomic_store(&job->queues[w].next, job->queues[w].end);
}

/* Take tasks from the worker's own queue first, then from the others in turn. If no queue has more
 * than one task, workers do not look into the caller's queue: that would cost as much as a small
 * task. */
static void take_tasks(struct job *job, int worker) {
    int64_t index;
    for (int i = 0; i < job->n_queues; i++) {
        int w = (worker + i) % job->n_queues;
        if (w == 0 && worker != 0 && job->one_each) continue;
        while ((index = take(&job->queues[w])) >= 0)
            if (!job->task(job->arg, index, worker)) cancel(job);
    }
}

static void *work(void *arg) {
    struct worker *self = arg;
    wf_pool *pool = self->pool;
    wf_float_mode_enter();
    for (uint64_t epoch = 0; !(epoch & STOP);) {
        wait_until(pool, &pool->idle, epoch_changed, epoch);
        epoch = atomic_load(&pool->epoch);
        struct job *job = &pool->jobs[epoch / JOB % 2];
        struct queue *queue = &job->queues[self->index];
        atomic_store(&queue->active, true);
        if (!epoch_changed(pool, epoch)) take_tasks(job, self->index);
        atomic_store(&queue->active, false);
        wake(pool, &pool->done, 1);
    }
    return NULL;
}

/* Wake no more workers than there are tasks or processors. */
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
    uint64_t epoch = atomic_load(&pool->epoch) + JOB;
    struct job *job = &pool->jobs[epoch / JOB % 2];
    wait_until(pool, &pool->done, none_active, epoch);
    job->task = task;
    job->arg = arg;
    atomic_store_explicit(&job->failed, false, memory_order_relaxed);
    fill_queues(pool, job, n);
    atomic_store(&pool->epoch, epoch);
    wake_helpers(pool, n);
    take_tasks(job, 0);
    wait_until(pool, &pool->done, none_active, epoch);
    bool ok = !atomic_load(&job->failed);
    pthread_mutex_unlock(&pool->turn);
    return ok;
}

/* ---- starting and stopping --------------------------------------------------------------- */

static void start_workers(wf_pool *pool, int threads) {
    sigset_t all, before;
    sigfillset(&all);
    /* workers start with all signals blocked, so that signals go to the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (pool->threads = 1; pool->threads < threads; pool->threads++) {
        struct worker *w = &pool->workers[pool->threads];
        w->pool = pool;
        w->index = pool->threads;
        if (pthread_create(&w->thread, NULL, work, w) != 0) break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

wf_pool *wf_pool_new(int threads) {
    wf_pool *pool = aligned_alloc(CACHE_LINE, sizeof *pool);
    if (!pool) return NULL;
    threads = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
    *pool = (wf_pool){ .processors = wf_processors() };
    pool->spins = threads > pool->processors ? SPINS_CROWDED : SPINS;
    pthread_mutex_init(&pool->turn, NULL);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->idle.wake, NULL);
    pthread_cond_init(&pool->done.wake, NULL);
    start_workers(pool, threads);
    return pool;
}

int wf_pool_threads(const wf_pool *pool) {
    return pool ? pool->threads : 1;
}

void wf_pool_free(wf_pool *pool) {
    if (!pool) return;
    atomic_fetch_or(&pool->epoch, STOP);
    wake(pool, &pool->idle, pool->threads);
    for (int i = 1; i < pool->threads; i++) pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->idle.wake);
    pthread_cond_destroy(&pool->done.wake);
    pthread_mutex_destroy(&pool->mutex);
    pthread_mutex_destroy(&pool->turn);
    free(pool);
}
