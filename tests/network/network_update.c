/* tests/network/network_update.c - measures an update of a data-parallel training among ranks on a
 * network, beside its forecast time. The model computes next to nothing, so the time is that of the
 * exchanges. Run by hosts.py.
 *
 *     mpirun ... network-update PARAMETERS [NETWORK [MICRO_BATCHES [PAUSE]]]
 *
 * MICRO_BATCHES: the default is one for each rank. PAUSE: seconds between two updates, in which a
 * training would compute. The program prints medians, and the bytes that were sent beside those
 * that wf_sharded_traffic predicts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nn/train/sharded.h"
#include "nn/train/way.h"
#include "tools/train/ranks/mpi.h"
#include "tools/train/ranks/network.h"
#include "weft.h"

enum { WIDTH = 512, UPDATES = 9 };

static void say(const char *sentence) {
    fprintf(stderr, "network-update: %s\n", sentence);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- a count of the exchanges ---------------------------------------------------------------- */

static struct {
    wf_transport of; /* whose functions are called */
    traffic seen;
    int64_t exchanges;
} counted;

static bool alltoallv(wf_transport *t, const void *send, const int64_t *send_at, void *receive,
                      const int64_t *receive_at) {
    traffic_alltoallv(&counted.seen, send_at, receive_at, t->rank, t->size);
    counted.exchanges++;
    return counted.of.alltoallv(t, send, send_at, receive, receive_at);
}

static bool allgatherv(wf_transport *t, const void *send, void *receive, const int64_t *at) {
    traffic_allgatherv(&counted.seen, at, t->rank, t->size);
    counted.exchanges++;
    return counted.of.allgatherv(t, send, receive, at);
}

static void count(wf_transport *t) {
    counted.of = *t;
    t->alltoallv = alltoallv, t->allgatherv = allgatherv;
}

/* ---- updates --------------------------------------------------------------------------------- */

typedef struct subject {
    wf_graph *g;
    int n;
    wf_tensor **params;
    wf_trainer *trainer;
} subject;

/* A graph whose loss is the sum of the squares of all parameters, and its trainer. */
static bool make(subject *u, int64_t parameters, int64_t micro_batches, wf_transport *t) {
    u->g = wf_graph_new(&(wf_graph_options){ .real = WF_F32 });
    u->n = (int)((parameters + WIDTH * WIDTH - 1) / (WIDTH * WIDTH));
    u->params = calloc((size_t)u->n, sizeof *u->params);
    wf_tensor *loss = wf_constant(u->g, 0);
    for (int i = 0; i < u->n; i++) {
        char name[20];
        int64_t rows = i + 1 < u->n ? WIDTH : (parameters - (int64_t)i * WIDTH * WIDTH) / WIDTH;
        snprintf(name, sizeof name, "p%d", i);
        u->params[i] = wf_param(u->g, name, 2, (int64_t[]){ rows, WIDTH }, wf_init_uniform(0.1));
        loss = wf_add(loss, wf_square_sum(u->params[i]));
    }
    wf_trainer_options o = { .optimizer = wf_optimizer_defaults(WF_ADAM),
                             .schedule = { .peak = 1e-3 },
                             .micro_batches = micro_batches,
                             .transport = t };
    o.optimizer.clip_norm = 1;
    u->trainer = wf_trainer_new(u->g, loss, wf_constant(u->g, 1), &o);
    if (!wf_trainer_ok(u->trainer)) say(wf_trainer_error(u->trainer));
    return wf_trainer_ok(u->trainer);
}

static void drop(subject *u) {
    wf_trainer_free(u->trainer);
    wf_graph_free(u->g);
    free(u->params);
}

/* Times wf_trainer_update alone: the call, and its exchanges (*moving). With any_thread false, set
 * in main, nothing is sent earlier. */
static bool update(subject *u, int64_t micro_batches, double pause, wf_transport *t,
                   double *seconds, double *moving) {
    int64_t i, to;
    if (!wf_trainer_begin(u->trainer, micro_batches, &i, &to)) return false;
    for (; i < to; i++)
        if (!wf_trainer_add(u->trainer, i)) return false;
    struct timespec wait = { .tv_sec = (time_t)pause };
    wait.tv_nsec = (long)(1e9 * (pause - (double)wait.tv_sec));
    nanosleep(&wait, NULL);
    if (!wf_barrier(t)) return false;
    double began = now(), before = t->seconds;
    bool ok = wf_trainer_update(u->trainer, NULL);
    *seconds = now() - began, *moving = t->seconds - before;
    return ok;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(const wf_transport *t, const char *network_text, double *took, double *moving) {
    network n;
    traffic one = { counted.seen.bytes / UPDATES, counted.seen.delays / UPDATES };
    qsort(took, UPDATES, sizeof *took, compare), qsort(moving, UPDATES, sizeof *moving, compare);
    printf(
        "%d ranks: %lld exchanges, %lld delays; an update %.1f ms, exchanging %.1f (%.1f to %.1f)",
        t->size, (long long)counted.exchanges / UPDATES, (long long)one.delays,
        1e3 * took[UPDATES / 2], 1e3 * moving[UPDATES / 2], 1e3 * moving[0],
        1e3 * moving[UPDATES - 1]);
    if (network_text && network_read(network_text, &n)) {
        double seconds = network_seconds(&n, &one);
        printf("; forecast %.1f, %+.0f %%", 1e3 * seconds,
               100 * (seconds / moving[UPDATES / 2] - 1));
    }
    puts("");
}

static bool measure(subject *u, int64_t micro_batches, double pause, const char *network_text,
                    wf_transport *t) {
    double took[UPDATES + 1], moving[UPDATES + 1];
    int64_t sent = 0, told = UPDATES * wf_sharded_traffic(u->trainer->sharded, micro_batches);
    count(t);
    for (int i = 0; i <= UPDATES; i++) { /* the first is not counted */
        if (i == 1) counted.seen = (traffic){ 0 }, counted.exchanges = 0, sent = t->sent;
        if (!update(u, micro_batches, pause, t, &took[i], &moving[i])) return false;
    }
    sent = t->sent - sent;
    if (sent != told)
        fprintf(stderr, "network-update: rank %d has sent %lld bytes, not %lld\n", t->rank,
                (long long)sent, (long long)told);
    if (t->rank == 0) {
        print(t, network_text, took + 1, moving + 1);
        printf("%lld bytes sent by rank 0 in %d updates, as wf_sharded_traffic says\n",
               (long long)sent, UPDATES);
    }
    return sent == told;
}

int main(int argc, char **argv) {
    int here;
    wf_transport *t = mpi_join(&argc, &argv, say, &here);
    t->any_thread = false;
    int64_t parameters = argc > 1 ? atoll(argv[1]) : 0;
    int64_t micro_batches = argc > 3 ? atoll(argv[3]) : t->size;
    subject u = { 0 };
    bool ok =
        parameters >= WIDTH && make(&u, parameters, micro_batches, t) &&
        measure(&u, micro_batches, argc > 4 ? atof(argv[4]) : 0, argc > 2 ? argv[2] : NULL, t);
    drop(&u);
    mpi_leave();
    return !ok;
}
