/* core/ranks/region.c - the memory that ranks of one machine share: its layout, who wakes whom, what
 * has failed.
 *
 * The memory has no name: it is there for those who were forked from its maker, and gone with them.
 *
 * No wake-up is lost. Who waits reads its bell, looks for something to do, and sleeps only while the
 * bell is as it was read; who makes something to do rings afterwards. A sleeper says so before it
 * looks at the bell for the last time, and the ringer looks for sleepers after it has rung (all
 * sequentially consistent). */
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

/* Small enough that what was written is read from a cache; large enough that a rank that is not
 * running for a moment keeps none waiting. */
enum { COMMON = 1 << 19, LANES = 1 << 20, LEAST_LANE = 1 << 12 };

/* Who is waited for may want this very processor. */
enum { BEFORE_YIELD = 64 };

static size_t lines(size_t bytes) {
    return (bytes + WF_CACHE_LINE - 1) / WF_CACHE_LINE * WF_CACHE_LINE;
}

wf_region *wf_region_new(int ranks) {
    assert(ranks > 0 && ranks <= WF_MOST_PROCESSES);
    size_t n = (size_t)ranks, lane = LANES / 2;
    while (lane > LEAST_LANE && lane * (n - 1) > LANES) lane /= 2;
    size_t seats = lines(sizeof(wf_region) + (n + 1) * sizeof(wf_seat));
    size_t counters = n * (3 * n + 1) * sizeof(wf_counter);
    size_t bytes = seats + counters + n * (n * lane + COMMON);
    wf_region *g = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (g == MAP_FAILED) return NULL;
    g->ranks = ranks, g->bytes = bytes;
    g->lane = (unsigned)lane, g->common = COMMON;
    g->counters = (wf_counter *)(void *)((char *)g + seats);
    g->data = (char *)g->counters + counters;
    return g;
}

void wf_region_free(wf_region *g) {
    munmap(g, g->bytes);
}

/* Of a rank: what is written to each and to all, what each has read of its own, and of all's. */
wf_lane wf_region_lane(wf_region *g, int from, int to) {
    size_t n = (size_t)g->ranks, one = to < 0 ? 0 : (size_t)to;
    wf_counter *of = g->counters + (size_t)from * (3 * n + 1);
    char *data = g->data + (size_t)from * (n * g->lane + g->common);
    if (to < 0)
        return (wf_lane){ &of[n].n, of + 2 * n + 1, g->ranks, to, g->common, data + n * g->lane };
    return (wf_lane){ &of[one].n, of + n + 1 + one, 1, to, g->lane, data + one * g->lane };
}

/* ---- waking ---------------------------------------------------------------------------------- */

#if defined(__linux__) && defined(SYS_futex)
static void sleep_at(atomic_uint *bell, unsigned seen) {
    syscall(SYS_futex, bell, FUTEX_WAIT, seen, NULL, NULL, 0);
}
static void wake(atomic_uint *bell) {
    syscall(SYS_futex, bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}
#else
static void sleep_at(atomic_uint *bell, unsigned seen) {
    if (atomic_load(bell) == seen) nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}
static void wake(atomic_uint *bell) {
    (void)bell;
}
#endif

void wf_region_ring(wf_region *g, int rank) {
    wf_seat *seat = &g->seats[rank];
    atomic_fetch_add(&seat->bell.n, 1);
    if (atomic_load(&seat->asleep)) wake(&seat->bell.n);
}

void wf_region_ring_others(wf_region *g, int rank) {
    for (int r = 0; r < g->ranks; r++)
        if (r != rank) wf_region_ring(g, r);
}

void wf_region_await(wf_region *g, int rank, unsigned seen, int spins) {
    wf_seat *seat = &g->seats[rank];
    for (int i = 1; i <= spins; i++) {
        if (atomic_load_explicit(&seat->bell.n, memory_order_relaxed) != seen) return;
        if (i % BEFORE_YIELD == 0)
            sched_yield();
        else
            wf_relax();
    }
    atomic_store(&seat->asleep, true);
    sleep_at(&seat->bell.n, seen);
    atomic_store(&seat->asleep, false);
}

/* ---- what has failed ------------------------------------------------------------------------- */

void wf_region_fail(wf_region *g, int seat, wf_processes_result why) {
    wf_seat *s = &g->seats[seat];
    int none = 0;
    if (atomic_exchange(&s->told, true)) return;
    s->rank = why.rank, s->signal = why.signal, s->code = why.code ? why.code : 1;
    snprintf(s->why, sizeof s->why, "%s", why.why);
    atomic_compare_exchange_strong(&g->cause, &none, seat + 1);
    wf_region_ring_others(g, -1);
}

const wf_seat *wf_region_cause(const wf_region *g) {
    int cause = atomic_load(&g->cause);
    return cause ? &g->seats[cause - 1] : NULL;
}

void wf_region_ended(wf_region *g, int rank) {
    atomic_store(&g->seats[rank].ended, true);
    wf_region_ring_others(g, rank);
}
