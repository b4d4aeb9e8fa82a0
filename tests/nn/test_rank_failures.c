/* tests/nn/test_rank_failures.c - sharded trainings in which one rank fails, at each of its calls
 * of the transport: all ranks stop with a message, none hangs, and there are no data races.
 *
 * Ranks are threads that use the shared memory of ranks that are processes, so that the thread
 * sanitizer sees all of them. Their transport waits for a random time before and after each call,
 * so that the order of events depends little on the number of processors. */
#include "core/ranks/region.h"
#include "nn/train/sharded.h"
#include "nn/train/way.h"
#include "nn/trainer_internal.h"
#include "tests/suites.h"
#include "tests/support/models.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

TESTS(rank_failures)

enum { LAYERS = 6, WIDTH = 8, ROWS = 3, UPDATES = 2, MICRO_BATCHES = 4, MOST_RANKS = 3 };
enum { GATHERING = LAYERS + 1 }; /* most calls that the final gather of a training makes */
enum { LEAVES = 4 * LAYERS };    /* parameters, two moments of each, averages */

/* How the rank fails at a call of its transport. */
typedef enum way {
    SAYS_SO,     /* wf_transport_fail, and then the call */
    RETURNS,     /* the call returns false without a message, and the other ranks get none */
    AFTERWARDS,  /* the call succeeds; then wf_transport_fail */
    LEAVES_WELL, /* the rank ends, as a process that returns 0 */
    WAYS
} way;

/* Calls that the failing rank's own thread makes between its last micro-batch and the update, while
 * another of its threads sends. */
typedef enum slip {
    NO_SLIP,
    CALLS_OTHERS,    /* other functions of the trainer, which are refused; the update continues */
    WRONG_UPDATE,    /* an update with another number of micro-batches */
    FAILS_MEANWHILE, /* wf_transport_fail */
    FREES,
    SLIPS
} slip;

typedef struct run {
    int ranks;
    bool at_once; /* nothing is sent before all micro-batches have run */
    bool waits;   /* the transport waits for random times */
    int failing;  /* the rank; -1: none */
    int at;       /* the number of its call */
    way way;
    slip slip;
    uint64_t seed;
    wf_region *region;
    int calls[MOST_RANKS];
    bool done[MOST_RANKS];
    char error[MOST_RANKS][256];
    values leaf[LEAVES]; /* rank 0's in the end */
} run;

/* ---- a transport that waits and fails -------------------------------------------------------- */

/* A rank whose transport waits and fails. */
typedef struct shaky {
    wf_rank rank;
    wf_transport sound; /* the functions of the region's transport */
    run *run;
    int calls;
    bool fails; /* in this call */
    uint64_t waited;
} shaky;

static void wait_a_little(const run *r, uint64_t key, uint64_t *counter) {
    if (!r->waits) return;
    double x = number(r->seed * 1000 + key, (*counter)++);
    for (int i = 0; x < 0.5 && i < 20 * x; i++) sched_yield();
    if (x > 0.8) nanosleep(&(struct timespec){ .tv_nsec = (long)((x - 0.8) * 1e6) }, NULL);
}

static void leave(shaky *s) {
    wf_transport *t = &s->rank.transport;
    wf_region_ended(s->run->region, t->rank);
    t->code = 1;
    snprintf(t->error, sizeof t->error, "this rank has left");
}

/* Waits, and lets the rank fail if this is its call. Returns false if the call must not be made. */
static bool before_call(shaky *s) {
    wf_transport *t = &s->rank.transport;
    const run *r = s->run;
    wait_a_little(r, 10 + (uint64_t)t->rank, &s->waited);
    s->fails = t->rank == r->failing && s->calls == r->at;
    s->calls++;
    if (s->fails && r->way == SAYS_SO) t->fail(t, 7, "the network is gone");
    if (s->fails && r->way == LEAVES_WELL) leave(s);
    return !s->fails || r->way == SAYS_SO || r->way == AFTERWARDS;
}

static bool after_call(shaky *s, bool ok) {
    wf_transport *t = &s->rank.transport;
    if (s->fails && s->run->way == AFTERWARDS) t->fail(t, 7, "the network is gone");
    wait_a_little(s->run, 10 + (uint64_t)t->rank, &s->waited);
    return ok;
}

static bool shaky_alltoallv(wf_transport *t, const void *send, const int64_t *send_at,
                            void *receive, const int64_t *receive_at) {
    shaky *s = t->user;
    return before_call(s) &&
           after_call(s, s->sound.alltoallv(t, send, send_at, receive, receive_at));
}

static bool shaky_allgatherv(wf_transport *t, const void *send, void *receive,
                             const int64_t *receive_at) {
    shaky *s = t->user;
    return before_call(s) && after_call(s, s->sound.allgatherv(t, send, receive, receive_at));
}

static wf_transport *join_shaky(shaky *s, run *r, int rank) {
    wf_transport *t = &s->rank.transport;
    wf_rank_join(&s->rank, r->region, rank);
    s->run = r, s->sound = *t;
    t->alltoallv = shaky_alltoallv, t->allgatherv = shaky_allgatherv;
    t->any_thread = !r->at_once;
    return t;
}

/* ---- a model --------------------------------------------------------------------------------- */

typedef struct net {
    wf_graph *g;
    wf_tensor *x, *params[LAYERS];
    wf_trainer *t;
} net;

/* A net in which each matrix is one block. With one block of each rank in flight, an update has
 * several rounds of exchange. */
static net new_net(wf_transport *transport) {
    net n = { .g = new_graph(WF_F32) };
    wf_trainer_options o = { .optimizer = wf_optimizer_defaults(WF_ADAM),
                             .schedule = { .peak = 1e-2 },
                             .micro_batches = MICRO_BATCHES,
                             .transport = transport };
    o.optimizer.clip_norm = 1, o.optimizer.average_decay = 0.9;
    n.x = wf_input(n.g, "x", WF_F32, SHAPE(ROWS, WIDTH));
    wf_tensor *y = n.x;
    for (int i = 0; i < LAYERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        n.params[i] = wf_param(n.g, name, SHAPE(WIDTH, WIDTH), wf_init_uniform(0.5));
        y = wf_tanh(wf_matmul(y, n.params[i]));
    }
    n.t = wf_trainer_open(n.g, wf_square_sum(y), wf_constant(n.g, ROWS), &o, 1);
    assert_trainer(n.t, wf_trainer_ok(n.t));
    return n;
}

static void drop_net(net *n) {
    wf_trainer_free(n->t);
    end_graph(n->g);
}

static void feed_rows(const net *n, int update, int64_t part) {
    double x[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++)
        x[i] = number((uint64_t)(10 * update + part), (uint64_t)i) - 0.5;
    wf_plan *p = wf_trainer_plan(n->t);
    assert_plan(p, wf_feed_reals(p, n->x, x, ROWS * WIDTH));
}

static void read_leaf(run *r, int i, const wf_tensor *t) {
    r->leaf[i] = (values){ wf_count(t), leaf_values(t) };
}

static void read_leaves(run *r, const net *n) {
    const wf_optimizer *o = wf_trainer_optimizer(n->t);
    for (int i = 0; i < LAYERS; i++) {
        read_leaf(r, 4 * i, n->params[i]);
        read_leaf(r, 4 * i + 1, o->moments[i][0]);
        read_leaf(r, 4 * i + 2, o->moments[i][1]);
        read_leaf(r, 4 * i + 3, o->averages[i]);
    }
}

/* ---- a training ------------------------------------------------------------------------------ */

typedef struct seat {
    run *run;
    int rank;
} seat;

static const char saved[] = "/tmp/no/such/folder/a.safetensors";

/* Makes the calls of the run's slip. Returns false if the training ends. */
static bool slip_now(const run *r, wf_trainer *t) {
    size_t bytes;
    if (r->slip == CALLS_OTHERS) {
        ck_assert(!wf_trainer_begin(t, MICRO_BATCHES, NULL, NULL) && !wf_trainer_add(t, 0));
        ck_assert(!wf_sharded_feed(t->sharded, t->step, 0, MICRO_BATCHES));
        ck_assert(!t->way->average(t, 0.5) && !wf_trainer_swap_averages(t));
        ck_assert(!t->way->gather(t) && !t->way->scatter(t));
        ck_assert(!wf_trainer_save(t, saved, NULL, 0) && !wf_trainer_memory(t, &bytes));
        assert_contains(wf_trainer_error(t), "was added: wf_trainer_update");
    }
    if (r->slip == WRONG_UPDATE) {
        t->micro_batches--;
        ck_assert(!wf_trainer_update(t, NULL));
    }
    if (r->slip == FAILS_MEANWHILE) wf_transport_fail(t->transport, 7, "this rank has had enough");
    return r->slip != WRONG_UPDATE && r->slip != FREES;
}

static bool update_once(run *r, const net *n, uint64_t *waited) {
    wf_trainer *t = n->t;
    int rank = t->transport->rank, update = (int)wf_trainer_steps(t) + 1;
    int64_t from, to;
    if (!wf_trainer_begin(t, MICRO_BATCHES, &from, &to)) return false;
    for (int64_t i = from; i < to; i++) {
        wait_a_little(r, (uint64_t)rank, waited);
        feed_rows(n, update, i);
        assert_trainer(t, wf_trainer_add(t, i));
    }
    wait_a_little(r, (uint64_t)rank, waited);
    if (rank == r->failing && r->slip && !slip_now(r, t)) return false;
    return wf_trainer_update(t, NULL);
}

/* Trains, swaps the averages and gathers all state. Returns false at the first call that fails. */
static bool train_here(run *r, const net *n) {
    uint64_t waited = 0;
    while (wf_trainer_steps(n->t) < UPDATES)
        if (!update_once(r, n, &waited)) return false;
    return wf_trainer_swap_averages(n->t) && n->t->way->gather(n->t);
}

static void *be_rank(void *user) {
    const seat *at = user;
    run *r = at->run;
    int rank = at->rank;
    shaky own = { 0 };
    net n = new_net(join_shaky(&own, r, rank));
    r->done[rank] = train_here(r, &n);
    snprintf(r->error[rank], 256, "%s", wf_trainer_error(n.t));
    /* after a failure, no later call succeeds */
    if (!r->done[rank] && r->slip != FREES) ck_assert(!n.t->way->gather(n.t));
    if (r->done[rank] && rank == 0) read_leaves(r, &n);
    drop_net(&n);
    if (r->done[rank]) wf_region_ended(r->region, rank);
    r->calls[rank] = own.calls;
    return NULL;
}

static void train_all(run *r) {
    pthread_t thread[MOST_RANKS];
    seat seats[MOST_RANKS];
    r->region = wf_region_new(r->ranks);
    ck_assert_ptr_nonnull(r->region);
    for (int i = 0; i < r->ranks; i++) {
        seats[i] = (seat){ r, i };
        ck_assert_int_eq(pthread_create(&thread[i], NULL, be_rank, &seats[i]), 0);
    }
    for (int i = 0; i < r->ranks; i++) pthread_join(thread[i], NULL);
    wf_region_free(r->region);
}

/* ---- the tests ------------------------------------------------------------------------------- */

static const run kinds[] = {
    { .ranks = 2 },
    { .ranks = 2, .at_once = true },
    { .ranks = 3 },
};

/* Random delays of ranks change no bit of the results. */
TEST_ROWS(waiting_changes_no_bit, COUNT_OF(kinds)) {
    run want = kinds[_i];
    want.failing = -1;
    train_all(&want);
    for (uint64_t seed = 1; seed <= 10; seed++) {
        run have = kinds[_i];
        have.failing = -1, have.waits = true, have.seed = seed;
        train_all(&have);
        for (int i = 0; i < LEAVES; i++) ck_assert(same_bits(want.leaf[i], have.leaf[i]));
        for (int i = 0; i < have.ranks; i++) ck_assert_str_eq(have.error[i], "");
        free_values(have.leaf, LEAVES);
    }
    free_values(want.leaf, LEAVES);
}

/* Asserts that each rank is done or has an error. If the failure is in one of the last calls, other
 * ranks may be done, because they have all data that they need; otherwise none may. */
static void assert_stopped(const run *r, int calls) {
    for (int i = 0; i < r->ranks; i++) {
        bool says = r->error[i][0] != '\0', late = i != r->failing || r->way == AFTERWARDS;
        ck_assert_msg(r->done[i] != says && !(r->done[i] && (r->at < calls - GATHERING || !late)),
                      "rank %d of %d: call %d of rank %d, way %d: done %d, '%s'", i, r->ranks,
                      r->at, r->failing, r->way, r->done[i], r->error[i]);
    }
}

static void fail_at_every_call(const run *kind, int failing, way fails) {
    run sound = *kind;
    sound.failing = -1;
    train_all(&sound);
    free_values(sound.leaf, LEAVES);
    for (int at = 0; at < sound.calls[failing]; at++) {
        run r = *kind;
        r.failing = failing, r.at = at, r.way = fails;
        r.waits = at % 3 != 0, r.seed = (uint64_t)(1 + at);
        train_all(&r);
        assert_stopped(&r, sound.calls[failing]);
        free_values(r.leaf, LEAVES);
    }
}

TEST_ROWS(a_rank_fails_at_every_call, COUNT_OF(kinds) * WAYS) {
    const run *kind = &kinds[_i / WAYS];
    for (int failing = 0; failing < kind->ranks; failing++)
        fail_at_every_call(kind, failing, (way)(_i % WAYS));
}

TEST_ROWS(nothing_is_touched_while_gradients_travel, SLIPS - 1) {
    run sound = { .ranks = 3, .failing = -1 };
    train_all(&sound);
    for (int i = 0; i < 20 * sound.ranks; i++) {
        run r = { .ranks = 3, .failing = i % 3, .at = -1, .slip = (slip)(1 + _i) };
        r.waits = i % 4 != 0, r.seed = (uint64_t)(1 + i);
        train_all(&r);
        for (int k = 0; k < r.ranks; k++)
            ck_assert_msg(r.done[k] == (r.slip == CALLS_OTHERS), "rank %d: '%s'", k, r.error[k]);
        for (int k = 0; k < LEAVES && r.done[0]; k++)
            ck_assert(same_bits(sound.leaf[k], r.leaf[k]));
        free_values(r.leaf, LEAVES);
    }
    free_values(sound.leaf, LEAVES);
}
