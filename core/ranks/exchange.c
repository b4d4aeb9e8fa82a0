/* core/ranks/exchange.c - collectives over shared memory. Each rank copies what it sends into its
 * ring buffers, and what it receives out of other ranks' ring buffers. It copies piece by piece, as
 * room and data appear.
 *
 * A ring buffer is an endless stream: a rank that is ahead already writes bytes of the next
 * collective. Bytes for all ranks are written once, and every rank reads them. */
#include <string.h>

#include "core/plan/pool.h"
#include "region.h"

/* A waiting rank checks so many times, which takes some 50 us, before it sleeps. */
enum { SPINS = 1500 };

/* The bytes that one ring buffer has to move in this collective. */
typedef struct flow {
    wf_ring ring;
    /* the source of the next byte, or its destination */
    char *at;
    int64_t left;
    /* the rank that is waited for */
    int peer;
    /* in an incoming flow: the index of this rank among the ring's readers */
    int index;
} flow;

static unsigned at_most(int64_t left, unsigned n) {
    return left < (int64_t)n ? (unsigned)left : n;
}

/* The length of the next contiguous piece, at most up to the end of the ring. A piece is at most a
 * quarter of the ring, so that the other side can start while more is copied. */
static unsigned piece(const flow *f, unsigned there, unsigned from) {
    unsigned whole = f->ring.size - from % f->ring.size, part = f->ring.size / 4;
    unsigned n = at_most(f->left, there < whole ? there : whole);
    return n < part ? n : part;
}

/* The bytes that the slowest reader has not read yet; f->peer becomes that reader. */
static unsigned unread(flow *f, unsigned written, int self) {
    unsigned most = 0;
    for (int r = 0; r < f->ring.readers; r++) {
        if (f->ring.to < 0 && r == self) continue;
        unsigned n = written - atomic_load_explicit(&f->ring.read[r].n, memory_order_acquire);
        if (n > most) {
            most = n;
            f->peer = f->ring.to < 0 ? r : f->ring.to;
        }
    }
    return most;
}

static bool put(wf_rank *me, flow *f) {
    if (!f->left) return false;
    unsigned from = atomic_load_explicit(f->ring.written, memory_order_relaxed);
    unsigned n = piece(f, f->ring.size - unread(f, from, me->transport.rank), from);
    if (!n) return false;
    memcpy(f->ring.data + from % f->ring.size, f->at, n);
    f->at += n;
    f->left -= n;
    atomic_store_explicit(f->ring.written, from + n, memory_order_release);
    if (f->ring.to < 0)
        wf_region_wake_others(me->region, me->transport.rank);
    else
        wf_region_wake(me->region, f->ring.to);
    return true;
}

static bool take(wf_rank *me, flow *f) {
    if (!f->left) return false;
    atomic_uint *read = &f->ring.read[f->index].n;
    unsigned from = atomic_load_explicit(read, memory_order_relaxed);
    unsigned there = atomic_load_explicit(f->ring.written, memory_order_acquire) - from;
    unsigned n = piece(f, there, from);
    if (!n) return false;
    memcpy(f->at, f->ring.data + from % f->ring.size, n);
    f->at += n;
    f->left -= n;
    atomic_store_explicit(read, from + n, memory_order_release);
    wf_region_wake(me->region, f->peer);
    return true;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* True if a rank has failed; t->code and t->error then get the reason. Only collectives call this
 * function, so its thread may write these fields. */
static bool failed(wf_rank *me) {
    wf_transport *t = &me->transport;
    const wf_slot *cause = wf_region_failure(me->region);
    if (!cause) return false;
    memcpy(t->error, cause->why, sizeof t->error);
    t->code = cause->code;
    return true;
}

/* True if a peer has exited and can send nothing more; the region is then marked as failed. A rank
 * wakes its peers after everything it does. So if this rank's event count is unchanged since
 * `seen`, nothing that the peer sent is left to read. */
static bool gone(wf_rank *me, int peer, unsigned seen) {
    wf_region *g = me->region;
    int rank = me->transport.rank;
    if (!atomic_load(&g->slots[peer].ended) || atomic_load(&g->slots[rank].events.n) != seen)
        return false;
    wf_region_fail(g, rank, (wf_processes_result){ rank, 1, 0, "another rank has ended before" });
    return true;
}

static unsigned events(const wf_rank *me) {
    return atomic_load(&me->region->slots[me->transport.rank].events.n);
}

static void await(wf_rank *me, unsigned seen) {
    wf_region_wait(me->region, me->transport.rank, seen, me->spins);
}

/* ---- collectives ----------------------------------------------------------------------------- */

static bool any_gone(wf_rank *me, const flow *f, int n, unsigned seen) {
    for (int i = 0; i < n; i++)
        if (f[i].left && gone(me, f[i].peer, seen)) return true;
    return false;
}

static bool move(wf_rank *me, flow *out, int n_out, flow *in, int n_in) {
    for (;;) {
        /* read before failed(): a failure after this line changes the event count */
        unsigned seen = events(me);
        if (failed(me)) return false;
        bool moved = false;
        int64_t left = 0;
        for (int i = 0; i < n_out; i++) {
            moved |= put(me, &out[i]);
            left |= out[i].left;
        }
        for (int i = 0; i < n_in; i++) {
            moved |= take(me, &in[i]);
            left |= in[i].left;
        }
        if (!left) return true;
        if (!moved && !any_gone(me, out, n_out, seen) && !any_gone(me, in, n_in, seen))
            await(me, seen);
    }
}

static int64_t part(const int64_t *at, int rank) {
    return at[rank + 1] - at[rank];
}

static void keep_own(char *to, const char *from, int64_t bytes) {
    if (bytes && to != from) memmove(to, from, (size_t)bytes);
}

/* Each rank begins with the rank after it, so that no two ranks send to the same rank first. */
static bool alltoallv(wf_transport *t, const void *send, const int64_t *send_at, void *receive,
                      const int64_t *receive_at) {
    wf_rank *me = t->user;
    int rank = t->rank, n = t->size;
    flow out[WF_MOST_PROCESSES], in[WF_MOST_PROCESSES];
    for (int i = 1; i < n; i++) {
        int to = (rank + i) % n, from = (rank + n - i) % n;
        out[i - 1] = (flow){ wf_region_ring(me->region, rank, to), (char *)send + send_at[to],
                             part(send_at, to), to, 0 };
        in[i - 1] = (flow){ wf_region_ring(me->region, from, rank),
                            (char *)receive + receive_at[from], part(receive_at, from), from, 0 };
    }
    keep_own((char *)receive + receive_at[rank], (const char *)send + send_at[rank],
             part(receive_at, rank));
    return move(me, out, n - 1, in, n - 1);
}

static bool allgatherv(wf_transport *t, const void *send, void *receive,
                       const int64_t *receive_at) {
    wf_rank *me = t->user;
    int rank = t->rank, n = t->size;
    flow in[WF_MOST_PROCESSES], out = { wf_region_ring(me->region, rank, -1), (char *)send,
                                        part(receive_at, rank), (rank + 1) % n, 0 };
    for (int i = 1; i < n; i++) {
        int from = (rank + n - i) % n;
        in[i - 1] =
            (flow){ wf_region_ring(me->region, from, -1), (char *)receive + receive_at[from],
                    part(receive_at, from), from, rank };
    }
    keep_own((char *)receive + receive_at[rank], send, part(receive_at, rank));
    return move(me, &out, 1, in, n - 1);
}

/* The first rank that has not reached the barrier, or -1 if all have. */
static int late(const wf_rank *me) {
    for (int r = 0; r < me->transport.size; r++)
        if ((int)(atomic_load(&me->region->slots[r].barriers.n) - me->barriers) < 0) return r;
    return -1;
}

static bool barrier(wf_transport *t) {
    wf_rank *me = t->user;
    if (failed(me)) return false;
    atomic_store(&me->region->slots[t->rank].barriers.n, ++me->barriers);
    wf_region_wake_others(me->region, t->rank);
    for (;;) {
        unsigned seen = events(me);
        int r = late(me);
        if (r < 0) return true;
        if (failed(me)) return false;
        if (!gone(me, r, seen)) await(me, seen);
    }
}

/* Records a failure in the shared region, and not in the transport's fields. Another thread of this
 * rank may be in a collective, which then finds the failure in the region. */
static void fail(wf_transport *t, int code, const char *why) {
    const wf_rank *me = t->user;
    wf_processes_result result = { .rank = t->rank, .code = code };
    strncpy(result.why, why, sizeof result.why - 1);
    wf_region_fail(me->region, t->rank, result);
}

void wf_rank_join(wf_rank *me, wf_region *g, int rank) {
    *me = (wf_rank){ .region = g, .spins = g->ranks > wf_processors() ? 0 : SPINS };
    me->transport = (wf_transport){ .rank = rank,
                                    .size = g->ranks,
                                    .any_thread = true,
                                    .user = me,
                                    .alltoallv = alltoallv,
                                    .allgatherv = allgatherv,
                                    .barrier = barrier,
                                    .fail = fail };
}
