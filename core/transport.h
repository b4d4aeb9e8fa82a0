/* weft/core/transport.h - what moves bytes between the ranks of a training: processes of one machine
 * or of many.
 *
 * A transport moves bytes and computes nothing, so that results are the same with any of them. All
 * ranks call the same collectives in the same order, each with what the others expect of it:
 *
 *     int64_t at[] = { 0, 8, 16 };                        of two ranks, 8 bytes each
 *     double mine = ..., all[2];
 *     wf_allgatherv(t, &mine, all, at) || puts(wf_transport_error(t));
 *
 * NULL is the transport of a program that is alone: rank 0 of 1. A program may bring its own: the
 * struct with its functions.
 *
 * A transport belongs to one thread at a time: its collectives and the numbers in the struct are that
 * thread's. Only wf_transport_fail may come from another thread meanwhile. */
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
    /* Collectives may come from any thread, one at a time; and fail may come from another thread: it
     * ends the collective that this rank is in. */
    bool any_thread;
    void *user;
    /* Each false: another rank has failed or is gone, with the reason in error. After that no
     * collective succeeds. Offsets are in bytes and rise; rank r's part is [at[r], at[r + 1]). */
    bool (*alltoallv)(wf_transport *t, const void *send, const int64_t *send_at, void *receive,
                      const int64_t *receive_at);
    bool (*allgatherv)(wf_transport *t, const void *send, void *receive, const int64_t *receive_at);
    bool (*barrier)(wf_transport *t);
    /* All ranks' collectives fail from now on, or their processes end, with this exit code and
     * sentence. May not return, and writes none of what follows. */
    void (*fail)(wf_transport *t, int code, const char *why);
    /* Written by collectives alone, and to be read between them. */
    int code;               /* the exit code of what failed; 0: nothing has */
    char error[256];        /* a sentence, "" if nothing has failed */
    int64_t sent, received; /* bytes to and from other ranks so far */
    double seconds;         /* in collectives, so far: waiting for other ranks is in it */
};

/* Rank r gets what each rank sends to it: send[send_at[r] ..) of every rank, in the order of ranks.
 * Both have size + 1 offsets. */
WF_API bool wf_alltoallv(wf_transport *t, const void *send, const int64_t *send_at, void *receive,
                         const int64_t *receive_at);
/* Every rank gets what each sends: receive_at[r + 1] - receive_at[r] bytes of rank r. send may be
 * where they go. */
WF_API bool wf_allgatherv(wf_transport *t, const void *send, void *receive,
                          const int64_t *receive_at);
WF_API bool wf_barrier(wf_transport *t);
WF_API void wf_transport_fail(wf_transport *t, int code, const char *why);
WF_API const char *wf_transport_error(const wf_transport *t);
WF_API int wf_transport_rank(const wf_transport *t);
WF_API int wf_transport_size(const wf_transport *t);

/* ---- ranks as processes of this machine ------------------------------------------------------ */

/* What ended a run: the first rank that failed. */
typedef struct wf_processes_result {
    int rank;      /* -1: none has, or the run itself did */
    int code;      /* 0: all ended well; 128 + signal: killed; WF_HUNG: did not live for 10 s */
    int signal;    /* that killed it, or 0 */
    char why[256]; /* a sentence, or "" */
} wf_processes_result;

enum { WF_HUNG = 124, WF_MOST_PROCESSES = 256 };

/* Run n ranks, each a child of this program, which must have one thread then. Each calls body with
 * a transport over memory that it shares with the others, and ends by leave(what body returned):
 * _exit, or what flushes this program's streams first. Returns the code of the cause, when all are
 * gone.
 *
 * A rank that says wf_transport_fail, returns a code other than 0, is killed, or hangs (stopped, not
 * busy), ends the others: their collectives fail, and who is still there 3 s later is killed. So
 * ranks that return such a code alike meet at a barrier first. If this program is killed, the ranks
 * end as well. SIGINT and SIGTERM that reach it are passed on to every rank, once each: the same
 * one again within 0.2 s says nothing new, and later it is passed on again (a program may take a
 * second one for "at once"). To a rank alone they say nothing. */
WF_API int wf_processes_run(int n, int (*body)(wf_transport *t, void *user), void *user,
                            void (*leave)(int code), wf_processes_result *cause);

#ifdef __cplusplus
}
#endif
#endif
