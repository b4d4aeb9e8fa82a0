/* tests/support/collectives.c - compares the results of collectives with data that each rank
 * computes by itself. */
#include "collectives.h"
#include "core/transport_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, GUARDED = 0x5A, ROUNDS = 1000 };

static uint32_t hash(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t x = a * 0x9E3779B1u ^ b * 0x85EBCA77u ^ c * 0xC2B2AE3Du;
    x ^= x >> 15, x *= 0x2C1B3C6Du, x ^= x >> 12;
    return x;
}

/* The number of bytes that rank `from` sends to rank `to` in a round, at most about `most`. */
typedef struct pattern {
    const char *name;
    int64_t (*bytes)(int round, int from, int to, int64_t most);
} pattern;

static int64_t nothing(int round, int from, int to, int64_t most) {
    return 0 * (round + from + to + most);
}
static int64_t small(int round, int from, int to, int64_t most) {
    return most < 0 ? most : (int64_t)(hash((uint32_t)round, (uint32_t)from, (uint32_t)to) % 8);
}
static int64_t ragged(int round, int from, int to, int64_t most) {
    int64_t x = hash((uint32_t)round, (uint32_t)from, (uint32_t)to);
    return x % 3 == 0 ? 0 : x / 3 % (most / 16);
}
static int64_t large(int round, int from, int to, int64_t most) {
    return most - (from * 7 + to * 3 + round) % 100;
}
static int64_t one_sided(int round, int from, int to, int64_t most) {
    return from == round % 2 ? most - to : 0;
}
static const pattern patterns[] = {
    { "nothing", nothing }, { "small", small },         { "ragged", ragged },
    { "large", large },     { "one_sided", one_sided },
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

/* Returns word number `fourth`, 4 bytes, of the data that rank `from` sends to rank `to`: a
 * hash. */
static uint32_t word(int round, int from, int to, int64_t fourth) {
    return hash((uint32_t)(round * 31 + from), (uint32_t)to, (uint32_t)fourth);
}

/* Fills n bytes. Whole words are copied with a fixed size, which compiles to one instruction,
 * because a sanitizer takes long to check each call of memcpy and memcmp. */
static void fill(unsigned char *bytes, int64_t n, int round, int from, int to) {
    uint32_t x;
    int64_t whole = n / 4 * 4;
    for (int64_t i = 0; i < whole; i += 4) {
        x = word(round, from, to, i / 4);
        memcpy(bytes + i, &x, sizeof x);
    }
    x = word(round, from, to, whole / 4);
    memcpy(bytes + whole, &x, (size_t)(n - whole));
}

static bool filled(const unsigned char *bytes, int64_t n, int round, int from, int to) {
    uint32_t x, there;
    int64_t whole = n / 4 * 4;
    for (int64_t i = 0; i < whole; i += 4) {
        memcpy(&there, bytes + i, sizeof there);
        if (there != word(round, from, to, i / 4)) return false;
    }
    x = word(round, from, to, whole / 4);
    return memcmp(bytes + whole, &x, (size_t)(n - whole)) == 0;
}

typedef struct buffers {
    int64_t send_at[WF_MOST_PROCESSES + 1], receive_at[WF_MOST_PROCESSES + 1];
    unsigned char *send, *receive;
} buffers;

static bool make(buffers *b, int n) {
    b->send = malloc((size_t)b->send_at[n] + 1);
    b->receive = malloc((size_t)b->receive_at[n] + GUARD);
    if (b->receive) memset(b->receive, GUARDED, (size_t)b->receive_at[n] + GUARD);
    return b->send && b->receive;
}

static bool release(buffers *b, bool ok) {
    free(b->send), free(b->receive);
    return ok;
}

/* Checks the parts that all ranks sent, and that no byte around them has changed. */
static bool right(const buffers *b, int n, int round, int to) {
    for (int from = 0; from < n; from++) {
        int64_t at = b->receive_at[from], bytes = b->receive_at[from + 1] - at;
        if (!filled(b->receive + at, bytes, round, from, to)) return false;
    }
    for (int64_t i = 0; i < b->receive_at[0]; i++)
        if (b->receive[i] != GUARDED) return false;
    for (int64_t i = b->receive_at[n]; i < b->receive_at[n] + GUARD; i++)
        if (b->receive[i] != GUARDED) return false;
    return true;
}

static bool all_to_all(wf_transport *t, const pattern *p, int round, int64_t most) {
    int n = wf_transport_size(t), rank = wf_transport_rank(t);
    buffers b = { .receive_at = { 5 } };
    for (int r = 0; r < n; r++) {
        b.send_at[r + 1] = b.send_at[r] + p->bytes(round, rank, r, most);
        b.receive_at[r + 1] = b.receive_at[r] + p->bytes(round, r, rank, most);
    }
    if (!make(&b, n)) return release(&b, false);
    for (int to = 0; to < n; to++)
        fill(b.send + b.send_at[to], b.send_at[to + 1] - b.send_at[to], round, rank, to);
    int64_t sent = t->sent, received = t->received;
    bool ok =
        wf_alltoallv(t, b.send, b.send_at, b.receive, b.receive_at) && right(&b, n, round, rank);
    int64_t own = n > 1 ? b.send_at[rank + 1] - b.send_at[rank] : b.send_at[n];
    ok = ok && t->sent - sent == b.send_at[n] - own;
    ok = ok && t->received - received == b.receive_at[n] - b.receive_at[0] - own;
    return release(&b, ok);
}

static bool all_gather(wf_transport *t, const pattern *p, int round, int64_t most, bool in_place) {
    int n = wf_transport_size(t), rank = wf_transport_rank(t);
    buffers b = { .receive_at = { 5 } };
    for (int r = 0; r < n; r++) b.receive_at[r + 1] = b.receive_at[r] + p->bytes(round, r, 0, most);
    int64_t mine = b.receive_at[rank + 1] - b.receive_at[rank], sent = t->sent;
    b.send_at[n] = mine;
    if (!make(&b, n)) return release(&b, false);
    unsigned char *from = in_place ? b.receive + b.receive_at[rank] : b.send;
    fill(from, mine, round, rank, 0);
    bool ok = wf_allgatherv(t, from, b.receive, b.receive_at) && right(&b, n, round, 0);
    return release(&b, ok && t->sent - sent == mine * (n - 1));
}

/* wf_allgather of equally many bytes of each rank: in even rounds they are sent from a separate
 * buffer, in odd rounds in place. */
static bool gather_equal(wf_transport *t, int round, size_t bytes) {
    int n = wf_transport_size(t), rank = wf_transport_rank(t);
    buffers b = { .receive_at = { 5 } };
    for (int r = 0; r < n; r++) b.receive_at[r + 1] = b.receive_at[r] + (int64_t)bytes;
    b.send_at[n] = (int64_t)bytes;
    int64_t sent = t->sent;
    if (!make(&b, n)) return release(&b, false);
    unsigned char *all = b.receive + b.receive_at[0];
    unsigned char *from = round % 2 ? all + (size_t)rank * bytes : b.send;
    fill(from, (int64_t)bytes, round, rank, 0);
    bool ok = wf_allgather(t, from, all, bytes) && right(&b, n, round, 0);
    return release(&b, ok && t->sent - sent == (int64_t)bytes * (n - 1));
}

static int wrong(wf_transport *t, const char *what, const char *name, int round) {
    char why[128];
    snprintf(why, sizeof why, "%s, %s, round %d is wrong", what, name, round);
    if (!*wf_transport_error(t)) wf_transport_fail(t, 9, why);
    return 9;
}

int check_collectives(wf_transport *t, void *user) {
    int64_t most = *(int64_t *)user;
    for (int i = 0; i < PATTERNS; i++)
        for (int round = 0; round < 3; round++) {
            const pattern *p = &patterns[i];
            if (!all_to_all(t, p, round, most)) return wrong(t, "alltoallv", p->name, round);
            if (!all_gather(t, p, round, most, round % 2))
                return wrong(t, "allgatherv", p->name, round);
        }
    for (int round = 0; round < 4; round++)
        if (!gather_equal(t, round, round < 2 ? 24 : (size_t)most / 8))
            return wrong(t, "allgather", "equal", round);
    for (int round = 0; round < ROUNDS; round++) {
        if (!all_to_all(t, &patterns[1], round, most)) return wrong(t, "alltoallv", "many", round);
        if (round % 3 == 0 && !wf_barrier(t)) return wrong(t, "barrier", "many", round);
        if (!all_gather(t, &patterns[1], round, most, round % 2))
            return wrong(t, "allgatherv", "many", round);
    }
    return wf_barrier(t) ? 0 : wrong(t, "barrier", "last", 0);
}
