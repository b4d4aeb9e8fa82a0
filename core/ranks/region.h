/* core/ranks/region.h - inside core: the memory that ranks of one machine share, and what they say
 * to each other in it.
 *
 * Each rank has a seat, where it can be woken, and lanes to each other rank and to all of them:
 * rings of bytes with one writer. Nothing here is locked: a rank may be killed anywhere.
 *
 *     wf_region *g = wf_region_new(2);     before the fork
 *     wf_rank me;
 *     wf_rank_join(&me, g, 0);             in the child: &me.transport has its collectives */
#ifndef WEFT_CORE_RANKS_REGION_H
#define WEFT_CORE_RANKS_REGION_H

#include <stdatomic.h>

#include "core/transport.h"

enum { WF_CACHE_LINE = 64 };

/* A number that one rank changes and others read: bytes since the start, modulo 2^32. */
typedef struct wf_counter {
    _Alignas(WF_CACHE_LINE) atomic_uint n;
} wf_counter;

typedef struct wf_seat {
    wf_counter bell;     /* rung by whoever has changed what this rank may wait for */
    atomic_bool asleep;  /* on the bell */
    wf_counter barriers; /* that it has come to */
    atomic_uint beats;   /* of its heart */
    atomic_bool ended;   /* well: it takes part in no more */
    atomic_bool told;    /* what follows, once */
    int rank, code, signal;
    char why[256];
} wf_seat;

typedef struct wf_region {
    int ranks;
    size_t bytes;
    unsigned lane, common;     /* bytes of a lane to one rank, to all: powers of 2 */
    atomic_int cause;          /* the seat that was the first to tell, plus 1 */
    atomic_uint interrupts[2]; /* SIGINT, SIGTERM that came to the caller */
    wf_counter *counters;      /* of rank r from r (3 ranks + 1): wf_region_lane */
    char *data;
    wf_seat seats[]; /* of each rank; the last is the caller's, who watches */
} wf_region;

/* A ring: bytes read..written of it are on the way. */
typedef struct wf_lane {
    atomic_uint *written;
    wf_counter *read; /* of each reader */
    int readers, to;  /* to: -1 for all */
    unsigned size;
    char *data;
} wf_lane;

typedef struct wf_rank {
    wf_transport transport;
    wf_region *region;
    unsigned barriers;
    int spins;
} wf_rank;

wf_region *wf_region_new(int ranks); /* NULL: no memory */
void wf_region_free(wf_region *g);
wf_lane wf_region_lane(wf_region *g, int from, int to);

void wf_rank_join(wf_rank *me, wf_region *g, int rank);

/* Says what has failed, from a seat: the first to say so is the cause. */
void wf_region_fail(wf_region *g, int seat, wf_processes_result why);
const wf_seat *wf_region_cause(const wf_region *g); /* NULL: nothing has failed */
void wf_region_ended(wf_region *g, int rank);

void wf_region_ring(wf_region *g, int rank);
void wf_region_ring_others(wf_region *g, int rank); /* -1: all */
/* Until the bell is not what it was seen at, or for no reason. */
void wf_region_await(wf_region *g, int rank, unsigned seen, int spins);

#endif
