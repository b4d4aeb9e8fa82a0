/* core/ranks/transport.c - the collectives as programs call them: they count the traffic, and a
 * single rank copies to itself. The transport's own functions move the bytes: exchange.c. */
#include "core/transport.h"
#include "core/transport_internal.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"

static bool alone(const wf_transport *t) {
    return !t || t->size == 1;
}

/* True if the offsets are NULL, or if `data` is NULL although there are bytes between the
 * offsets. */
static bool missing(const wf_transport *t, const void *data, const int64_t *at) {
    return !at || (!data && at[wf_transport_size(t)] > at[0]);
}

/* Copies one part. An empty part may have a NULL pointer, which memcpy does not allow. */
static bool copy(void *to, const void *from, int64_t bytes) {
    if (bytes > 0 && to != from) memmove(to, from, (size_t)bytes);
    return true;
}

static bool counted(wf_transport *t, double began, bool ok, int64_t sent, int64_t received) {
    t->seconds += wf_seconds_now() - began;
    if (ok) {
        t->sent += sent;
        t->received += received;
    }
    return ok;
}

static int64_t of_others(const wf_transport *t, const int64_t *at) {
    return at[t->size] - at[0] - (at[t->rank + 1] - at[t->rank]);
}

bool wf_alltoallv(wf_transport *t, const void *send, const int64_t *send_at, void *receive,
                  const int64_t *receive_at) {
    if (missing(t, send, send_at) || missing(t, receive, receive_at)) return false;
    if (alone(t))
        return copy((char *)receive + receive_at[0], (const char *)send + send_at[0],
                    send_at[1] - send_at[0]);
    double began = wf_seconds_now();
    bool ok = !t->code && t->alltoallv && t->alltoallv(t, send, send_at, receive, receive_at);
    return counted(t, began, ok, of_others(t, send_at), of_others(t, receive_at));
}

bool wf_allgatherv(wf_transport *t, const void *send, void *receive, const int64_t *receive_at) {
    if (missing(t, receive, receive_at)) return false;
    int64_t mine = receive_at[wf_transport_rank(t) + 1] - receive_at[wf_transport_rank(t)];
    if (!send && mine > 0) return false;
    if (alone(t)) return copy((char *)receive + receive_at[0], send, mine);
    double began = wf_seconds_now();
    bool ok = !t->code && t->allgatherv && t->allgatherv(t, send, receive, receive_at);
    return counted(t, began, ok, mine * (t->size - 1), of_others(t, receive_at));
}

bool wf_allgather(wf_transport *t, const void *send, void *receive, size_t bytes) {
    enum { FEW = WF_MOST_PROCESSES };
    const int ranks = wf_transport_size(t);
    int64_t few[FEW + 1], *many = NULL;
    if (bytes > (size_t)(INT64_MAX / ranks)) return false;
    if (ranks > FEW && !(many = malloc(((size_t)ranks + 1) * sizeof *many))) {
        wf_transport_fail(t, 1, "out of memory");
        return false;
    }
    int64_t *at = many ? many : few;
    for (int r = 0; r <= ranks; r++) at[r] = r * (int64_t)bytes;
    bool ok = wf_allgatherv(t, send, receive, at);
    free(many);
    return ok;
}

bool wf_barrier(wf_transport *t) {
    if (alone(t)) return true;
    double began = wf_seconds_now();
    return counted(t, began, !t->code && t->barrier && t->barrier(t), 0, 0);
}

void wf_transport_fail(wf_transport *t, int code, const char *why) {
    if (!alone(t) && t->fail) t->fail(t, code, why ? why : "");
}

const char *wf_transport_error(const wf_transport *t) {
    return t ? t->error : "";
}

int wf_transport_rank(const wf_transport *t) {
    return t ? t->rank : 0;
}

int wf_transport_size(const wf_transport *t) {
    return t ? t->size : 1;
}

/* Uses n = each * ranks + rest, so that no product exceeds n or ranks^2. */
wf_range wf_rank_range(int64_t n, int rank, int ranks) {
    if (n < 0 || rank < 0 || rank >= ranks) return (wf_range){ 0, 0 };
    int64_t each = n / ranks, rest = n % ranks;
    return (wf_range){ each * rank + rest * rank / ranks,
                       each * (rank + 1) + rest * (rank + 1) / ranks };
}
