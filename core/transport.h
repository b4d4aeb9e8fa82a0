/* weft/core/transport.h - moves bytes between the ranks of a data-parallel training: processes of
 * one machine or of many.
 *
 * A transport moves bytes and computes nothing, so results are the same with any of them. All ranks
 * call the same collectives in the same order, with matching sizes:
 *
 *     double mine = 0.5, all[2];                                                    2 ranks
 *     wf_allgather(t, &mine, all, sizeof mine) || puts(wf_transport_error(t));
 *
 * NULL is the transport of a single process: rank 0 of 1. A program may bring its own transport, by
 * filling the struct with its functions.
 *
 * A transport belongs to one thread at a time, and so do the numbers in its struct. Only
 * wf_transport_fail may be called from another thread meanwhile, if any_thread is true. */
#ifndef WEFT_CORE_TRANSPORT_H
#define WEFT_CORE_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wf_transport wf_transport;
struct wf_transport {
    int rank, size; /* 0 <= rank < size */
    /* True: any thread may call collectives, one at a time, and `fail` may be called from another
     * thread meanwhile, to end the collective that this rank is in. */
    bool any_thread;
    void *user;
    /* The collectives return false if another rank has failed or exited; error has the reason, and
     * no later collective succeeds. Offsets are in bytes and ascend: rank r's part is from at[r] up
     * to at[r + 1]. */
    bool (*alltoallv)(wf_transport *t, const void *send, const int64_t *send_at, void *receive,
                      const int64_t *receive_at);
    bool (*allgatherv)(wf_transport *t, const void *send, void *receive, const int64_t *receive_at);
    bool (*barrier)(wf_transport *t);
    /* Makes all ranks' collectives fail from now on, or ends their processes, with this exit code
     * and sentence. It need not return. It must not write the fields below. */
    void (*fail)(wf_transport *t, int code, const char *why);
    /* Only collectives write these fields; read them between collectives. */
    /* the exit code of the failure; 0: none */
    int code;
    char error[256];        /* a sentence, or "" */
    int64_t sent, received; /* bytes sent to other ranks and received from them so far */
    /* time spent in collectives so far, including waiting for other ranks */
    double seconds;
};

/* Every rank sends `bytes` bytes to all: those of rank r arrive at receive + r * bytes. False:
 * another rank has failed. A rank without memory for the offsets fails all ranks. */
WF_API bool wf_allgather(wf_transport *t, const void *send, void *receive, size_t bytes);
/* Wait until all ranks have called wf_barrier. False: the transport has failed. */
WF_API bool wf_barrier(wf_transport *t);
/* Fail all ranks, with an exit code and a sentence that each of them gets. */
WF_API void wf_transport_fail(wf_transport *t, int code, const char *why);
/* The sentence of the failure, or "" if there is none. */
WF_API const char *wf_transport_error(const wf_transport *t);
/* The number of this rank, 0..size-1. */
WF_API int wf_transport_rank(const wf_transport *t);
/* How many ranks there are. */
WF_API int wf_transport_size(const wf_transport *t);

/* ---- ranks as processes of this machine ------------------------------------------------------ */

/* The first failure of a run, if any. */
typedef struct wf_processes_result {
    /* the rank that failed first; -1: none, or the run itself has failed */
    int rank;
    /* 0: all ranks ended well; 128 + signal: a rank was killed; WF_HUNG: a rank had no heartbeat
     * for 10 s; otherwise the code with which the rank ended or failed */
    int code;
    int signal;    /* the signal that killed the rank, or 0 */
    char why[256]; /* a sentence, or "" */
} wf_processes_result;

enum { WF_HUNG = 124, WF_MOST_PROCESSES = 256 };

/* Run n ranks, each a child process of this program, which must have one thread at that time. Each
 * rank calls body with a transport over shared memory, and ends by leave(the result of body):
 * _exit, or a function that flushes the program's streams first. Returns the exit code of the first
 * failure when all ranks are gone, and 0 if there is none. It is 1, and no rank starts, if n is not
 * from 1 to WF_MOST_PROCESSES, body or leave is NULL, or memory runs out. cause may be NULL.
 *
 * A rank that calls wf_transport_fail, returns another code than 0, is killed, or hangs (stopped,
 * not busy), ends the others: their collectives fail, and ranks still running 3 s later are killed.
 * So ranks that all return the same failure code should meet at a barrier first. If this program is
 * killed, the ranks end as well. SIGINT, SIGTERM and SIGHUP sent to it are forwarded to every rank,
 * once each. The same signal again within 0.2 s is ignored, and later it is forwarded again: a
 * program may take the second as "stop at once". These three signals have no effect if they are
 * sent to a single rank. */
WF_API int wf_processes_run(int n, int (*body)(wf_transport *t, void *user), void *user,
                            void (*leave)(int code), wf_processes_result *cause);

#ifdef __cplusplus
}
#endif
#endif
