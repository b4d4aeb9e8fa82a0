/* tests/network/update.c - how long an update takes among ranks on a network, beside what is
 * forecast: its exchanges alone, as nothing else is computed that takes time. Run by hosts.py.
 *
 *     mpirun ... network-update PARAMETERS [NETWORK [MICRO_BATCHES [PAUSE]]]
 *
 * MICRO_BATCHES: one for each rank, if nothing is said. PAUSE: seconds between two updates, in which
 * a training would compute. Prints medians, and the bytes that were sent beside those that
 * wf_sharded_traffic says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nn/sharded.h"
#include "tools/train/mpi.h"
#include "tools/train/network.h"
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

/* ---- exchanges, as they pass ------------------------------------------------------------------ */

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

/* ---- updates ---------------------------------------------------------------------------------- */

typedef struct subject {
    wf_graph *g;
    int n;
    wf_tensor **params;
    wf_optimizer_options options;
    wf_optimizer o;
    wf_plan *add;
    wf_sharded *s;
} subject;

/* The sum of all parameters' squares. */
static bool make(subject *u, int64_t parameters, int64_t micro_batches, wf_transport *t) {
    char message[256] = "out of memory";
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
    u->options = wf_optimizer_defaults(WF_ADAM);
    u->options.clip_norm = 1;
    u->options.partial_sums = wf_sharded_partial_sums(micro_batches, t->rank, t->size);
    u->o = wf_optimizer_new(u->g, loss, wf_constant(u->g, 1), u->params, u->n, &u->options);
    u->add = wf_plan_new(u->g, &(wf_plan_options){ .fetch = u->o.accumulation.adds,
                                                   .n_fetch = u->n + 1,
                                                   .feed = &u->o.accumulation.at,
                                                   .n_feed = 1 });
    u->s = wf_sharded_new(u->g, &u->o, u->params, &u->options, micro_batches, t, NULL, message);
    if (!wf_plan_ok(u->add) || !u->s) say(u->s ? wf_plan_error(u->add) : message);
    return wf_plan_ok(u->add) && u->s;
}

static void drop(subject *u) {
    wf_sharded_free(u->s);
    wf_plan_free(u->add);
    wf_optimizer_free(&u->o);
    wf_graph_free(u->g);
    free(u->params);
}

/* The exchange alone is timed: nothing may leave before the barrier (main). */
static bool update(subject *u, int64_t micro_batches, int64_t step, double pause, wf_transport *t,
                   double *seconds, double *moving) {
    int64_t from, to;
    double rates[3];
    wf_sharded_range(u->s, micro_batches, &from, &to);
    for (int64_t i = from; i < to; i++)
        if (!wf_sharded_feed(u->s, u->add, i, micro_batches) || !wf_run(u->add)) return false;
    wf_optimizer_rates(&u->options, 1e-3, step, rates);
    struct timespec wait = { .tv_sec = (time_t)pause };
    wait.tv_nsec = (long)(1e9 * (pause - (double)wait.tv_sec));
    nanosleep(&wait, NULL);
    if (!wf_barrier(t)) return false;
    double began = now(), before = t->seconds;
    bool ok = wf_sharded_update(u->s, micro_batches, rates, NULL);
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
    int64_t sent = 0, told = UPDATES * wf_sharded_traffic(u->s, micro_batches);
    count(t);
    for (int i = 0; i <= UPDATES; i++) { /* the first is not counted */
        if (i == 1) counted.seen = (traffic){ 0 }, counted.exchanges = 0, sent = t->sent;
        if (!update(u, micro_batches, i + 1, pause, t, &took[i], &moving[i])) return false;
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
