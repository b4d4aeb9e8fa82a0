/* core/ranks/region.c - the memory that the ranks of one machine share: its layout, waking
 * sleepers, and the record of the first failure.
 *
 * The memory has no name: only this process and children forked after its creation can use it, and
 * the system frees it with the last of them.
 *
 * No wake-up is lost. Each rank has an eventcount: a futex word that its peers increment. A waiting
 * rank reads its event count, looks for work, and sleeps only while the count is unchanged; a peer
 * that makes work increments the count afterwards. The sleeper sets `asleep` before the kernel
 * compares the count, and the peer reads `asleep` after it has incremented the count. All of this
 * is sequentially consistent. */
#define _GNU_SOURCE /* syscall, MAP_ANONYMOUS */
#include "region.h"

#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#include "core/plan/pool.h"

/* Sizes of a rank's ring buffers in bytes. COMMON: the one that all ranks read; RINGS: limits the
 * sum of those to single ranks, each of which has at least LEAST_RING. They are small enough that
 * data are read from a cache, and large enough that other ranks need not wait for one that is
 * preempted for a moment. */
enum { COMMON = 1 << 19, RINGS = 1 << 20, LEAST_RING = 1 << 12 };

/* A waiting rank yields its processor each time it has spun this often: the awaited rank may need
 * it. */
enum { BEFORE_YIELD = 64 };

static size_t lines(size_t bytes) {
    return (bytes + WF_CACHE_LINE - 1) / WF_CACHE_LINE * WF_CACHE_LINE;
}

wf_region *wf_region_new(int ranks) {
    assert(ranks > 0 && ranks <= WF_MOST_PROCESSES);
    size_t n = (size_t)ranks, ring = RINGS / 2;
    while (ring > LEAST_RING && ring * (n - 1) > RINGS) ring /= 2;
    size_t slots = lines(sizeof(wf_region) + (n + 1) * sizeof(wf_slot));
    size_t counters = n * (3 * n + 1) * sizeof(wf_counter);
    size_t bytes = slots + counters + n * (n * ring + COMMON);
    wf_region *g = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (g == MAP_FAILED) return NULL;
    g->ranks = ranks;
    g->bytes = bytes;
    g->ring = (unsigned)ring;
    g->common = COMMON;
    g->counters = (wf_counter *)(void *)((char *)g + slots);
    g->data = (char *)g->counters + counters;
    return g;
}

void wf_region_free(wf_region *g) {
    munmap(g, g->bytes);
}

/* Rank `from` has counters in this order: bytes written to each rank and to all; bytes that each
 * rank has read from the ring to itself; bytes that each rank has read from the ring to all. */
wf_ring wf_region_ring(wf_region *g, int from, int to) {
    size_t n = (size_t)g->ranks, one = to < 0 ? 0 : (size_t)to;
    wf_counter *of = g->counters + (size_t)from * (3 * n + 1);
    char *data = g->data + (size_t)from * (n * g->ring + g->common);
    if (to < 0)
        return (wf_ring){ &of[n].n, of + 2 * n + 1, g->ranks, to, g->common, data + n * g->ring };
    return (wf_ring){ &of[one].n, of + n + 1 + one, 1, to, g->ring, data + one * g->ring };
}

/* ---- waking ---------------------------------------------------------------------------------- */

#if defined(__linux__) && defined(SYS_futex)
static void futex_wait(atomic_uint *word, unsigned seen) {
    syscall(SYS_futex, word, FUTEX_WAIT, seen, NULL, NULL, 0);
}
static void futex_wake(atomic_uint *word) {
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}
#else
static void futex_wait(atomic_uint *word, unsigned seen) {
    if (atomic_load(word) == seen) nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}
static void futex_wake(atomic_uint *word) {
    (void)word;
}
#endif

void wf_region_wake(wf_region *g, int rank) {
    wf_slot *slot = &g->slots[rank];
    atomic_fetch_add(&slot->events.n, 1);
    if (atomic_load(&slot->asleep)) futex_wake(&slot->events.n);
}

void wf_region_wake_others(wf_region *g, int rank) {
    for (int r = 0; r < g->ranks; r++)
        if (r != rank) wf_region_wake(g, r);
}

void wf_region_wait(wf_region *g, int rank, unsigned seen, int spins) {
    wf_slot *slot = &g->slots[rank];
    for (int i = 1; i <= spins; i++) {
        if (atomic_load_explicit(&slot->events.n, memory_order_relaxed) != seen) return;
        if (i % BEFORE_YIELD == 0)
            sched_yield();
        else
            wf_relax();
    }
    atomic_store(&slot->asleep, true);
    futex_wait(&slot->events.n, seen);
    atomic_store(&slot->asleep, false);
}

/* ---- what has failed ------------------------------------------------------------------------- */

void wf_region_fail(wf_region *g, int slot, wf_processes_result why) {
    wf_slot *s = &g->slots[slot];
    int none = 0;
    if (atomic_exchange(&s->reported, true)) return;
    s->rank = why.rank;
    s->signal = why.signal;
    s->code = why.code ? why.code : 1;
    snprintf(s->why, sizeof s->why, "%s", why.why);
    atomic_compare_exchange_strong(&g->cause, &none, slot + 1);
    wf_region_wake_others(g, -1);
}

const wf_slot *wf_region_failure(const wf_region *g) {
    int cause = atomic_load(&g->cause);
    return cause ? &g->slots[cause - 1] : NULL;
}

void wf_region_ended(wf_region *g, int rank) {
    atomic_store(&g->slots[rank].ended, true);
    wf_region_wake_others(g, rank);
}
