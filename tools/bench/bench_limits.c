/* tools/bench/bench_limits.c - the name of the processor, and the limits of the machine: rate of
 * multiply-adds and memory bandwidth, on one thread and on all.
 *
 * Threads are started anew for each burst of work. Each measures its own time, so that the time of
 * starting them does not count. */
#include "bench.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "bench_loops.h"
#include "core/base/clock.h"

enum { MOST_THREADS = 256, BURSTS = 5, ARRAYS = 3, ALIGNMENT = 64, PROCESSOR_NAME = 128 };

/* floats in an array: 256 MB, which is more than caches hold; and the number in a trial */
static const int64_t most_elements = INT64_C(64) << 20, trial_elements = INT64_C(1) << 18;

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct worker {
    void (*work)(struct worker *w);
    int64_t rounds;       /* of arithmetic */
    float *array[ARRAYS]; /* its part of memory */
    int64_t elements;
    double done, seconds; /* flops or bytes that were done; seconds that they took */
} worker;

static void *start(void *arg) {
    worker *w = arg;
    double from = wf_seconds_now();
    w->work(w);
    w->seconds = wf_seconds_now() - from;
    return NULL;
}

/* The rate of work of all threads together, per second. */
static double burst(worker *w, int64_t threads) {
    pthread_t thread[MOST_THREADS];
    for (int64_t i = 1; i < threads; i++)
        if (pthread_create(&thread[i], NULL, start, &w[i]) != 0)
            fail(&bench_program, "a thread does not start");
    start(&w[0]);
    double rate = w[0].done / w[0].seconds;
    for (int64_t i = 1; i < threads; i++) {
        pthread_join(thread[i], NULL);
        rate += w[i].done / w[i].seconds;
    }
    return rate;
}

/* The best of several bursts: other programs can only lower the rate. */
static double best_rate(worker *w, int64_t threads, int bursts) {
    double best = 0;
    for (int i = 0; i < bursts; i++) {
        double rate = burst(w, threads);
        if (rate > best) best = rate;
    }
    return best;
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

static void multiply_add(worker *w) {
    w->done = limit_loops_here()->multiply_add(w->rounds);
}

/* About how many rounds one thread does in a second. */
static double rounds_a_second(void) {
    static double rate;
    int64_t rounds = 1 << 18;
    double from = wf_seconds_now();
    if (rate > 0) return rate;
    limit_loops_here()->multiply_add(rounds);
    return rate = (double)rounds / (wf_seconds_now() - from);
}

double peak_flops(int64_t threads, double seconds) {
    worker w[MOST_THREADS];
    int64_t rounds = (int64_t)(seconds * rounds_a_second()) + 1;
    for (int64_t i = 0; i < threads; i++) w[i] = (worker){ .work = multiply_add, .rounds = rounds };
    return burst(w, threads);
}

double best_flops(int64_t threads, bool trial) {
    double best = 0;
    for (int i = 0; i < (trial ? 1 : 5 * BURSTS); i++) {
        double rate = peak_flops(threads, 0.01);
        if (rate > best) best = rate;
    }
    return best;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void triad(worker *w) {
    limit_loops_here()->triad(w->elements, w->array[0], w->array[1], w->array[2]);
    w->done = 3 * sizeof(float) *
              /* bytes that caches read only because they will be overwritten are not counted */
              (double)w->elements;
}

static void total(worker *w) {
    for (int i = 0; i < ARRAYS; i++) limit_loops_here()->total(w->elements, w->array[i]);
    w->done = ARRAYS * sizeof(float) * (double)w->elements;
}

/* Each thread is the first to write its part, so the kernel puts the part into memory near it. */
static void touch(worker *w) {
    for (int i = 0; i < ARRAYS; i++)
        for (int64_t k = 0; k < w->elements; k++) w->array[i][k] = 1;
    w->done = 0;
}

/* Elements of an array: many, but the three arrays take at most a quarter of the memory. */
static int64_t elements_of_array(int64_t threads, bool trial) {
    double installed = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    int64_t n = trial ? trial_elements : most_elements,
            fair = (int64_t)(installed / 4 / ARRAYS / sizeof(float));
    if (fair > 0 && fair < n) n = fair;
    return n / (threads * 1024) * (threads * 1024);
}

bandwidth measure_bandwidth(int64_t threads, bool trial) {
    worker w[MOST_THREADS] = { 0 };
    float *array[ARRAYS];
    int64_t n = elements_of_array(threads, trial);
    int bursts = trial ? 1 : BURSTS;
    for (int k = 0; k < ARRAYS; k++)
        if (!(array[k] = aligned_alloc(ALIGNMENT, (size_t)n * sizeof(float))))
            fail(&bench_program, "out of memory");
    for (int64_t i = 0; i < threads; i++) {
        w[i].elements = n / threads;
        for (int k = 0; k < ARRAYS; k++) w[i].array[k] = array[k] + i * w[i].elements;
    }
    bandwidth found;
    for (int64_t i = 0; i < threads; i++) w[i].work = touch;
    burst(w, threads);
    for (int64_t i = 0; i < threads; i++) w[i].work = triad;
    found.triad = best_rate(w, threads, bursts);
    for (int64_t i = 0; i < threads; i++) w[i].work = total;
    found.read = best_rate(w, threads, bursts);
    for (int k = 0; k < ARRAYS; k++) free(array[k]);
    return found;
}

/* ---- the processor's name -------------------------------------------------------------------- */

#if defined(__x86_64__)
/* The processor's name from CPUID, in three parts of 16 bytes. */
static const char *name_told(char name[PROCESSOR_NAME]) {
    for (unsigned i = 0; i < 3; i++) {
        unsigned part[4];
        if (!__get_cpuid(0x80000002 + i, &part[0], &part[1], &part[2], &part[3])) return "";
        memcpy(name + 16 * i, part, 16);
    }
    name[48] = '\0';
    return name + strspn(name, " ");
}
#else
/* The processor's name from Linux: "model name", on small machines "Model" or "Hardware". */
static const char *name_told(char name[PROCESSOR_NAME]) {
    FILE *f = fopen("/proc/cpuinfo", "r");
    const char *told = NULL;
    while (f && !told && fgets(name, PROCESSOR_NAME, f)) {
        const char *colon = strstr(name, ": ");
        if (!colon || !strchr("mMH", *name) || strncmp(name, "model\t", 6) == 0) continue;
        name[strcspn(name, "\n")] = '\0';
        told = colon + 2;
    }
    if (f) fclose(f);
    return told ? told : "";
}
#endif

const char *processor_name(void) {
    static char name[PROCESSOR_NAME];
    const char *told = name_told(name);
    return *told ? told : "an unknown processor";
}

/* ---- the report ------------------------------------------------------------------------------ */

void send_limits(bench_settings *set, int64_t threads, double flops, bandwidth memory) {
    jsonl *e = event(&set->report, "limits");
    json_int(e, "threads", threads);
    json_real(e, "gflops", flops / 1e9);
    json_real(e, "read_gbytes", memory.read / 1e9);
    json_real(e, "triad_gbytes", memory.triad / 1e9);
    event_send(&set->report);
}

void measure_limits(bench_settings *set) {
    double flops = best_flops(set->threads, is_trial(set));
    bandwidth memory = measure_bandwidth(set->threads, is_trial(set));
    set->bandwidth = memory.read > memory.triad ? memory.read : memory.triad;
    say(&set->report, "limits: %.1f GFLOP/s f32, %.1f GB/s read, %.1f GB/s triad", flops / 1e9,
        memory.read / 1e9, memory.triad / 1e9);
    send_limits(set, set->threads, flops, memory);
}
