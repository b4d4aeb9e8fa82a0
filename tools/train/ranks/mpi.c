/* tools/train/ranks/mpi.c - collectives over MPI, and a ring of heartbeats. See mpi.h.
 *
 * Bytes go from rank to rank in messages whose length fits an int. With Open MPI, messages are
 * short enough for its eager protocol. Before a larger message Open MPI asks the receiver, whose
 * answer waits behind the receiver's own data on the same connection. Then the two ranks would send
 * in turns, and take twice the time. MPI computes nothing, so results do not depend on it. */
#include "mpi.h"

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "network.h"

/* The most bytes of a message, and the most messages between two ranks at a time. */
#ifdef OPEN_MPI
enum { PIECE = MPI_PIECE, AT_ONCE = MPI_AT_ONCE };
#else
enum { PIECE = 1 << 26, AT_ONCE = 1 };
#endif
/* polls without a pause; length of the pauses between later polls */
enum { ASKED = 10, NAP_NS = 100000 };
enum { HEARTBEAT_NS = 100000000 }; /* between two heartbeats */
enum { HEARD_NS = 200000000 };     /* time for MPICH's mpirun to forward stderr */
#define SILENCE 15.0 /* seconds without a heartbeat after which a rank counts as hung */
enum { HEARTBEAT, LAST_HEARTBEAT };

static struct {
    wf_transport transport;
    MPI_Comm data, heartbeats;
    MPI_Request *requests; /* two for each rank and simultaneous message */
    /* as many as requests; never read, but gcc warns about MPICH's STATUSES_IGNORE */
    MPI_Status *statuses;
    void (*say)(const char *sentence);
    pthread_t watchdog;
    bool watched; /* the watchdog runs */
    atomic_bool leaving;
} mpi;

/* ---- failing --------------------------------------------------------------------------------- */

/* Delays ranks other than 0, so that rank 0 reports a failure that all ranks find, such as a
 * mistake on the command line. */
static void wait_for_the_first(int rank) {
    int later = rank < 20 ? rank : 20;
    if (rank > 0) nanosleep(&(struct timespec){ .tv_nsec = 500000000L + 20000000L * later }, NULL);
}

static void fail(wf_transport *t, int code, const char *why) {
    wait_for_the_first(t->rank);
    mpi.say(why);
    nanosleep(&(struct timespec){ .tv_nsec = HEARD_NS }, NULL);
    MPI_Abort(MPI_COMM_WORLD, code ? code : 1);
}

/* True if an MPI call succeeded. Otherwise this rank prints the error, because the others may not
 * have it, and ends all ranks. */
static bool ok(wf_transport *t, int error) {
    int length = 0;
    char text[MPI_MAX_ERROR_STRING] = "";
    if (error == MPI_SUCCESS) return true;
    MPI_Error_string(error, text, &length);
    t->code = 1;
    snprintf(t->error, sizeof t->error, "MPI: %.200s", text);
    fail(t, t->code, t->error);
    return false;
}

/* ---- collectives ----------------------------------------------------------------------------- */

/* The bytes that a collective moves: part r of `at` to or from rank r; or part 0 to all ranks. */
typedef struct side {
    char *bytes;
    const int64_t *at;
    bool to_all;
} side;

/* Returns the bytes of message `number` to or from a rank, which begin at *at; 0: there is no such
 * message. Sender and receiver cut a part into the same messages. */
static int piece(const side *s, int rank, int64_t number, char **at) {
    const int64_t *part = s->at + (s->to_all ? 0 : rank);
    int64_t from = part[0] + number * PIECE, left = part[1] - from;
    if (left <= 0) return 0;
    *at = s->bytes + from;
    return left < PIECE ? (int)left : PIECE;
}

/* Waits for n requests. MPI_Waitall would poll without pauses, and so take time from threads that
 * compute. Here there is a pause between calls after the first few. */
static bool wait_for_all(wf_transport *t, int n) {
    for (int asked = 1, all = 0;; asked++) {
        if (!ok(t, MPI_Testall(n, mpi.requests, &all, mpi.statuses))) return false;
        if (all) return true;
        if (asked > ASKED) nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
    }
}

static bool receive_pieces(wf_transport *t, const side *in, int64_t number, int *moved) {
    for (int i = 1; i < t->size; i++) {
        char *at;
        int from = (t->rank + t->size - i) % t->size, n = piece(in, from, number, &at);
        MPI_Request *r = &mpi.requests[*moved];
        if (n && ++*moved && !ok(t, MPI_Irecv(at, n, MPI_BYTE, from, 0, mpi.data, r))) return false;
    }
    return true;
}

/* Each rank begins with its neighbour, so that no two ranks send to the same one first. */
static bool send_pieces(wf_transport *t, const side *out, int64_t number, int *moved) {
    for (int i = 1; i < t->size; i++) {
        char *at;
        int to = (t->rank + i) % t->size, n = piece(out, to, number, &at);
        MPI_Request *r = &mpi.requests[*moved];
        if (n && ++*moved && !ok(t, MPI_Isend(at, n, MPI_BYTE, to, 0, mpi.data, r))) return false;
    }
    return true;
}

static bool move(wf_transport *t, const side *out, const side *in, int64_t round, int *moved) {
    int64_t from = round * AT_ONCE, to = from + AT_ONCE;
    *moved = 0;
    for (int64_t i = from; i < to; i++)
        if (!receive_pieces(t, in, i, moved)) return false;
    for (int64_t i = from; i < to; i++)
        if (!send_pieces(t, out, i, moved)) return false;
    return wait_for_all(t, *moved);
}

static bool move_all(wf_transport *t, side out, side in) {
    int moved = 1;
    for (int64_t round = 0; moved; round++)
        if (!move(t, &out, &in, round, &moved)) return false;
    return true;
}

static void keep_own(void *to, const void *from, int64_t bytes) {
    if (bytes && to != from) memmove(to, from, (size_t)bytes);
}

static bool alltoallv(wf_transport *t, const void *send, const int64_t *send_at, void *receive,
                      const int64_t *receive_at) {
    int r = t->rank;
    keep_own((char *)receive + receive_at[r], (const char *)send + send_at[r],
             send_at[r + 1] - send_at[r]);
    return move_all(t, (side){ (char *)send, send_at, false },
                    (side){ receive, receive_at, false });
}

static bool allgatherv(wf_transport *t, const void *send, void *receive,
                       const int64_t *receive_at) {
    int64_t mine[2] = { 0, receive_at[t->rank + 1] - receive_at[t->rank] };
    keep_own((char *)receive + receive_at[t->rank], send, mine[1]);
    return move_all(t, (side){ (char *)send, mine, true }, (side){ receive, receive_at, false });
}

static bool barrier(wf_transport *t) {
    return ok(t, MPI_Ibarrier(mpi.data, mpi.requests)) && wait_for_all(t, 1);
}

/* ---- heartbeats in a ring -------------------------------------------------------------------- */

/* A rank sends heartbeats to the next rank, and receives those of the previous one. */
struct neighbours {
    int from, to, word, heard;
    MPI_Request out, in;
    bool said_last, heard_last;
    double silent;
};

static void send_heartbeat(struct neighbours *b) {
    int sent;
    MPI_Test(&b->out, &sent, MPI_STATUS_IGNORE);
    if (!sent || b->said_last) return;
    b->word = atomic_load(&mpi.leaving) ? LAST_HEARTBEAT : HEARTBEAT;
    b->said_last = b->word == LAST_HEARTBEAT;
    MPI_Isend(&b->word, 1, MPI_INT, b->to, 0, mpi.heartbeats, &b->out);
}

static void receive_heartbeats(struct neighbours *b) {
    for (int came = 1; !b->heard_last;) {
        MPI_Test(&b->in, &came, MPI_STATUS_IGNORE);
        if (!came) return;
        b->silent = 0;
        b->heard_last = b->heard == LAST_HEARTBEAT;
        if (!b->heard_last) MPI_Irecv(&b->heard, 1, MPI_INT, b->from, 0, mpi.heartbeats, &b->in);
    }
}

static void hung(int rank) {
    char why[80];
    snprintf(why, sizeof why, "rank %d sent no heartbeat for %.0f seconds", rank, SILENCE);
    fail(&mpi.transport, WF_HUNG, why);
}

/* The watchdog thread. Time in which this rank itself was stopped counts as at most a second. */
static void *watch(void *arg) {
    const wf_transport *t = arg;
    struct neighbours b = { .from = (t->rank + t->size - 1) % t->size,
                            .to = (t->rank + 1) % t->size };
    b.out = MPI_REQUEST_NULL;
    MPI_Irecv(&b.heard, 1, MPI_INT, b.from, 0, mpi.heartbeats, &b.in);
    for (double last = wf_seconds_now(), time; !(b.said_last && b.heard_last); last = time) {
        send_heartbeat(&b);
        receive_heartbeats(&b);
        nanosleep(&(struct timespec){ .tv_nsec = HEARTBEAT_NS }, NULL);
        time = wf_seconds_now();
        if (!b.heard_last && (b.silent += time - last < 1 ? time - last : 1) > SILENCE)
            hung(b.from);
    }
    MPI_Wait(&b.out, MPI_STATUS_IGNORE);
    return NULL;
}

/* ---- joining and leaving --------------------------------------------------------------------- */

static int count_here(void) {
    MPI_Comm machine;
    int here = 1;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    MPI_Comm_size(machine, &here);
    MPI_Comm_free(&machine);
    return here;
}

static wf_transport *give_up(const char *why) {
    mpi.say(why);
    MPI_Abort(MPI_COMM_WORLD, 1);
    return NULL;
}

/* The watchdog uses MPI from another thread than the training, so MPI_THREAD_MULTIPLE is needed. */
wf_transport *mpi_join(int *argc, char ***argv, void (*say)(const char *sentence), int *here) {
    int level;
    wf_transport *t = &mpi.transport;
    *t = (wf_transport){
        .alltoallv = alltoallv, .allgatherv = allgatherv, .barrier = barrier, .fail = fail
    };
    mpi.say = say;
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
    t->any_thread = level == MPI_THREAD_MULTIPLE;
    MPI_Comm_rank(MPI_COMM_WORLD, &t->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t->size);
    MPI_Comm_dup(MPI_COMM_WORLD, &mpi.data);
    MPI_Comm_dup(MPI_COMM_WORLD, &mpi.heartbeats);
    MPI_Comm_set_errhandler(mpi.data, MPI_ERRORS_RETURN);
    *here = count_here();
    size_t most = 2 * (size_t)t->size * AT_ONCE;
    mpi.requests = malloc(most * sizeof *mpi.requests);
    mpi.statuses = malloc(most * sizeof *mpi.statuses);
    if (!mpi.requests || !mpi.statuses) return give_up("out of memory");
    if (level < MPI_THREAD_MULTIPLE && t->rank == 0 && t->size > 1)
        say("this MPI has no MPI_THREAD_MULTIPLE: a rank that stands still will not be noticed");
    mpi.watched = t->size > 1 && level == MPI_THREAD_MULTIPLE;
    if (mpi.watched && pthread_create(&mpi.watchdog, NULL, watch, t) != 0)
        return give_up("a rank's thread does not start");
    return t;
}

void mpi_leave(void) {
    MPI_Barrier(mpi.data);
    atomic_store(&mpi.leaving, true);
    if (mpi.watched) pthread_join(mpi.watchdog, NULL);
    free(mpi.requests), free(mpi.statuses);
    MPI_Comm_free(&mpi.data), MPI_Comm_free(&mpi.heartbeats);
    MPI_Finalize();
}
