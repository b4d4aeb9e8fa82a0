/* core/transport_internal.h - inside the library and its programs: collectives with parts of
 * different sizes, and the share of a rank. Not installed. */
#ifndef WEFT_CORE_TRANSPORT_INTERNAL_H
#define WEFT_CORE_TRANSPORT_INTERNAL_H

#include "core/transport.h"

/* Every rank sends the bytes from send_at[r] up to send_at[r + 1] to rank r, and receives rank r's
 * part at receive_at[r]. Both arrays have size + 1 offsets. */
bool wf_alltoallv(wf_transport *t, const void *send, const int64_t *send_at, void *receive,
                  const int64_t *receive_at);
/* Every rank receives what all ranks send: receive_at[r + 1] - receive_at[r] bytes of rank r. send
 * may point into receive, at this rank's own part. */
bool wf_allgatherv(wf_transport *t, const void *send, void *receive, const int64_t *receive_at);
/* Items [from, to). */
typedef struct wf_range {
    int64_t from, to;
} wf_range;

/* Rank's contiguous share of n items: [n rank / ranks, n (rank + 1) / ranks), rounded down, so that
 * shares differ by one item at most and the last rank's is the largest. Empty if there is no such
 * rank or n < 0. */
wf_range wf_rank_range(int64_t n, int rank, int ranks);

#endif
