/* tests/core/ranks/speed.c - the median time of a collective, beside that of a copy in memory. */
#include "speed.h"
#include "core/transport_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TIMES = 41 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Memory of a collective in which each rank sends `bytes` bytes to each other rank. */
typedef struct subject {
    wf_transport *t;
    int64_t bytes, *at;
    char *out, *in;
} subject;

static bool copy(subject *s) {
    memcpy(s->in, s->out, (size_t)s->bytes);
    __asm__ volatile("" : : : "memory");
    return true;
}
static bool exchange(subject *s) {
    return wf_alltoallv(s->t, s->out, s->at, s->in, s->at);
}
static bool gather(subject *s) {
    return wf_allgatherv(s->t, s->out, s->in, s->at);
}

/* The median of TIMES measurements: seconds of one call of `once`. If the messages are small, a
 * measurement is of many calls, one after another. */
static double median(subject *s, bool (*once)(subject *s)) {
    double took[TIMES];
    int many = s->bytes < 1000 ? 1000 : s->bytes < 1000000 ? 100 : 1;
    for (int i = 0; i < TIMES; i++) {
        wf_barrier(s->t);
        double began = now();
        for (int k = 0; k < many; k++)
            if (!once(s)) return 0;
        took[i] = (now() - began) / many;
    }
    qsort(took, TIMES, sizeof *took, compare);
    return took[TIMES / 2];
}

static void say(const subject *s, const char *name, const char *what, double seconds) {
    if (s->t->rank == 0)
        printf("%-10s %-10s %9lld bytes %12.2f us %8.2f GB/s\n", name, what, (long long)s->bytes,
               1e6 * seconds, 1e-9 * (double)s->bytes / seconds);
}

int measure_speed(wf_transport *t, const char *name) {
    static const int64_t sizes[] = { 4, 64 << 10, 64 << 20 };
    int n = t->size;
    for (int i = 0; i < 3; i++) {
        subject s = { t, sizes[i], malloc(((size_t)n + 1) * sizeof *s.at),
                      calloc((size_t)n, (size_t)sizes[i]), calloc((size_t)n, (size_t)sizes[i]) };
        for (int r = 0; r <= n; r++) s.at[r] = r * sizes[i];
        memset(s.in, 1, (size_t)n * (size_t)s.bytes), memset(s.out, 1, (size_t)n * (size_t)s.bytes);
        say(&s, "memcpy", "", median(&s, copy));
        say(&s, name, "alltoallv", median(&s, exchange));
        say(&s, name, "allgatherv", median(&s, gather));
        free(s.at), free(s.out), free(s.in);
    }
    return 0;
}
