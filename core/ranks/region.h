/* core/ranks/region.h - inside core: the memory that the ranks of one machine share.
 *
 * Each rank has a slot, with a futex word on which it sleeps and a record of its failure. It also
 * has a ring buffer to each other rank, and one to all of them. A ring buffer has one writer.
 * Nothing is locked, since a rank may be killed at any point.
 *
 *     wf_region *g = wf_region_new(2);     before the fork
 *     wf_rank me;
 *     wf_rank_join(&me, g, 0);             in the child: &me.transport has its collectives */
#ifndef WEFT_CORE_RANKS_REGION_H
#define WEFT_CORE_RANKS_REGION_H

#include <stdatomic.h>

#include "core/transport.h"

/* WF_FORWARDED: SIGINT, SIGTERM and SIGHUP, which the parent forwards to the ranks. */
enum { WF_CACHE_LINE = 64, WF_FORWARDED = 3 };

/* A counter in a cache line of its own, such as a number of bytes modulo 2^32. */
typedef struct wf_counter {
    _Alignas(WF_CACHE_LINE) atomic_uint n;
} wf_counter;

typedef struct wf_slot {
    /* eventcount and futex word: incremented after each change that this rank may wait for */
    wf_counter events;
    atomic_bool asleep;     /* waits on the futex word */
    wf_counter barriers;    /* number of barriers that the rank has reached */
    atomic_uint heartbeats; /* heartbeats that its watchdog has sent */
    /* the rank has ended without a failure, and takes part in no more collectives */
    atomic_bool ended;
    /* true once this slot has a failure in the fields below; later failures of the slot are
     * ignored */
    atomic_bool reported;
    int rank, code, signal;
    char why[256];
} wf_slot;

typedef struct wf_region {
    int ranks;
    size_t bytes;
    /* sizes in bytes of the ring buffer to one rank and of the one to all: powers of 2 */
    unsigned ring, common;
    /* 1 + the slot of the first failure; 0: none */
    atomic_int cause;
    /* the numbers of SIGINTs, SIGTERMs and SIGHUPs that the parent has forwarded */
    atomic_uint interrupts[WF_FORWARDED];
    /* counters of ring buffers; those of rank r begin at r (3 ranks + 1), see wf_region_ring */
    wf_counter *counters;
    char *data;
    /* a slot for each rank, and the last one for the parent */
    wf_slot slots[];
} wf_region;

/* A ring buffer: the bytes from `read` to `written` have been sent and not yet received. */
typedef struct wf_ring {
    atomic_uint *written;
    wf_counter *read; /* one for each reader */
    int readers, to;  /* to: -1 for all */
    unsigned size;
    char *data;
} wf_ring;

typedef struct wf_rank {
    wf_transport transport;
    wf_region *region;
    unsigned barriers;
    int spins;
} wf_rank;

wf_region *wf_region_new(int ranks); /* NULL: out of memory */
void wf_region_free(wf_region *g);
wf_ring wf_region_ring(wf_region *g, int from, int to);

void wf_rank_join(wf_rank *me, wf_region *g, int rank);

/* Record a failure in a slot. Only the first failure of all slots is reported. */
void wf_region_fail(wf_region *g, int slot, wf_processes_result why);
const wf_slot *wf_region_failure(const wf_region *g); /* NULL: no rank has failed */
void wf_region_ended(wf_region *g, int rank);

void wf_region_wake(wf_region *g, int rank);
void wf_region_wake_others(wf_region *g, int rank); /* rank -1: all */
/* Wait until the rank's event count differs from `seen`: check it `spins` times, then sleep. May
 * return earlier for no reason. */
void wf_region_wait(wf_region *g, int rank, unsigned seen, int spins);

#endif
