/* tests/nn/test_training_faults.c - trainings in which each allocation fails in turn: they end with
 * a message, or have the bits of a training without failures. With each optimizer, saved and
 * resumed; and sharded among ranks, which are threads here. */
#define _XOPEN_SOURCE 700 /* mkstemp */
#include "core/ranks/region.h"
#include "core/save.h"
#include "nn/nn.h"
#include "nn/trainer_internal.h"
#include "tests/suites.h"
#include "tests/support/wall.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

TESTS(training_faults)

enum { IN = 3, OUT = 2, ROWS = 2, STEPS = 2, MICRO_BATCHES = 3 };

static char path[] = "/tmp/weft-training-faults-XXXXXX";

static void make_file(void) {
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void remove_file(void) {
    unlink(path);
    strcpy(path + strlen(path) - 6, "XXXXXX");
}

SETUP(make_file, remove_file)

/* ---- a model --------------------------------------------------------------------------------- */

typedef struct net {
    wf_graph *g;
    wf_tensor *x, *loss, *count, *params[2];
} net;

static net new_net(void) {
    net n = { .g = wf_graph_new(&(wf_graph_options){ .seed = 5 }) };
    n.x = wf_input(n.g, "x", WF_F32, SHAPE(ROWS, IN));
    n.params[0] = wf_param(n.g, "w", SHAPE(IN, OUT), wf_init_uniform(0.5));
    n.params[1] = wf_param(n.g, "b", SHAPE(OUT), wf_init_uniform(0.5));
    wf_tensor *y = wf_add(wf_matmul(wf_tanh(n.x), n.params[0]), n.params[1]);
    n.loss = wf_square_sum(y), n.count = wf_constant(n.g, ROWS);
    return n;
}

static bool feed_rows(wf_plan *p, const wf_tensor *x, int64_t number_of_run) {
    double v[ROWS * IN];
    for (int i = 0; i < ROWS * IN; i++) v[i] = number((uint64_t)number_of_run, (uint64_t)i) - 0.3;
    return wf_feed_reals(p, x, v, ROWS * IN);
}

/* Reports the parameters and the optimizer's moments and averages to wall.h. */
static bool say_state(const net *n, const wf_optimizer *o) {
    bool ok = wall_say_leaf(n->params[0]) && wall_say_leaf(n->params[1]);
    for (int i = 0; ok && i < o->n * o->n_moments; i++)
        ok = wall_say_leaf(o->moments[i / o->n_moments][i % o->n_moments]);
    for (int i = 0; ok && o->averages && i < o->n; i++) ok = wall_say_leaf(o->averages[i]);
    return ok;
}

/* ---- by a trainer ---------------------------------------------------------------------------- */

static wf_trainer_options trained; /* the options of the test's row */

static bool refused(const wf_trainer *t) {
    must(!t || wf_trainer_error(t)[0], "a failure without a message");
    return false;
}

/* Adds the micro-batches of this process, and makes the update. */
static bool update_once(wf_trainer *t, const net *n, wf_progress *now) {
    int parts = trained.micro_batches > 1 ? (int)trained.micro_batches : 1;
    int64_t from, to;
    if (!wf_trainer_begin(t, parts, &from, &to)) return refused(t);
    for (int64_t i = from; i < to; i++) {
        if (!feed_rows(wf_trainer_plan(t), n->x, wf_trainer_steps(t) * parts + i)) return false;
        if (!wf_trainer_add(t, i)) return refused(t);
    }
    return wf_trainer_update(t, now) || refused(t);
}

static void say_progress(const wf_progress *now) {
    wall_say(&now->loss, sizeof now->loss), wall_say(&now->rate, sizeof now->rate);
    wall_say(&now->norm, sizeof now->norm);
}

static bool train(wf_trainer *t, const net *n, int64_t steps) {
    while (wf_trainer_steps(t) < steps) {
        wf_progress now;
        if (!update_once(t, n, &now)) return false;
        say_progress(&now);
    }
    return say_state(n, wf_trainer_optimizer(t));
}

static bool in_one_go(wf_trainer *t, const net *n) {
    if (!wf_trainer_ok(t)) return refused(t);
    if (!train(t, n, STEPS)) return false;
    if (!wf_trainer_save(t, path, &(wf_meta){ "mine", "words" }, 1)) return refused(t);
    wall_say_file(path);
    return true;
}

static bool resumed(wf_trainer *t, const net *n) {
    if (!wf_trainer_ok(t) || !wf_trainer_load(t, path, NULL)) return refused(t);
    return say_state(n, wf_trainer_optimizer(t)) && train(t, n, STEPS + 1);
}

static bool with_trainer(bool (*work)(wf_trainer *t, const net *n)) {
    net n = new_net();
    wf_trainer *t = wf_trainer_new(n.g, n.loss, n.count, &trained);
    bool ok = work(t, &n);
    wf_trainer_free(t), wf_graph_free(n.g);
    return ok;
}

static bool training_and_resuming(void) {
    return with_trainer(in_one_go) && with_trainer(resumed);
}

static const wf_optimizer_kind kinds[] = { WF_SGD,     WF_ADAM,    WF_ADAMW,
                                           WF_RMSPROP, WF_ADAGRAD, WF_LION };

/* Each allocation of a training fails in turn, with each optimizer: in even rows with single
 * batches, in odd rows with micro-batches, averages and groups of parameters. */
TEST_ROWS(a_training_is_right_or_fails, 2 * COUNT_OF(kinds)) {
    static const wf_parameter_group groups[] = { { "b", 0.5, 0 } };
    const wall_work work = { "training", training_and_resuming, false };
    wf_optimizer_kind kind = kinds[_i / 2];
    trained = (wf_trainer_options){ .optimizer = wf_optimizer_defaults(kind),
                                    .schedule = { .kind = WF_INVERSE_SQRT, .peak = 0.01 } };
    trained.optimizer.clip_norm = 1;
    trained.optimizer.momentum = kind == WF_SGD || kind == WF_RMSPROP ? 0.9 : 0;
    trained.optimizer.centered = kind == WF_RMSPROP;
    if (_i % 2) {
        trained.micro_batches = MICRO_BATCHES, trained.optimizer.average_decay = 0.9;
        trained.optimizer.groups = groups, trained.optimizer.n_groups = 1;
    }
    wall_fail_each(&work, false);
    if (kind == WF_ADAM) wall_fail_each(&work, true);
}

/* If allocations fail from some request on, a swap of averages leaves weights and averages as they
 * were. */
TEST(averages_are_swapped_whole_or_not_at_all) {
    trained = (wf_trainer_options){ .optimizer = wf_optimizer_defaults(WF_ADAM),
                                    .schedule = { .peak = 0.01 } };
    trained.optimizer.average_decay = 0.5;
    net n = new_net();
    wf_trainer *t = wf_trainer_new(n.g, n.loss, n.count, &trained);
    wf_progress now;
    ck_assert(wf_trainer_ok(t) && update_once(t, &n, &now) && update_once(t, &n, &now));
    float w[IN * OUT], b[OUT], same_w[IN * OUT], same_b[OUT];
    ck_assert(wf_read(n.params[0], w, sizeof w) && wf_read(n.params[1], b, sizeof b));
    bool swapped = false;
    for (long at = 1; !swapped; at++) {
        long left;
        faults_begin(at, true);
        swapped = wf_trainer_swap_averages(t);
        faults_end(&left);
        ck_assert(wf_read(n.params[0], same_w, sizeof w) && wf_read(n.params[1], same_b, sizeof b));
        ck_assert_int_eq(memcmp(w, same_w, sizeof w) == 0, !swapped);
        ck_assert_int_eq(memcmp(b, same_b, sizeof b) == 0, !swapped);
        ck_assert(swapped || wf_trainer_error(t)[0]);
        ck_assert_int_lt(at, 100);
    }
    wf_trainer_free(t), wf_graph_free(n.g);
}

/* ---- sharded among ranks --------------------------------------------------------------------- */

static int ranks; /* by the row of the test */

typedef struct rank_work {
    wf_region *region;
    int rank;
    bool ok;
} rank_work;

static bool train_sharded(wf_trainer *t, const net *n, int rank) {
    while (wf_trainer_steps(t) < STEPS) {
        wf_progress now;
        if (!update_once(t, n, &now)) return false;
        if (rank == 0) say_progress(&now);
    }
    if (!wf_trainer_swap_averages(t) || !wf_trainer_swap_averages(t)) return refused(t);
    if (!wf_trainer_save(t, path, &(wf_meta){ "mine", "words" }, 1)) return refused(t);
    if (rank == 0) wall_say_file(path);
    return rank > 0 || (wall_say_leaf(n->params[0]) && wall_say_leaf(n->params[1]));
}

static bool sharded(wf_transport *transport) {
    net n = new_net();
    wf_trainer_options o = trained;
    o.transport = transport;
    wf_trainer *t = wf_trainer_new(n.g, n.loss, n.count, &o);
    bool ok = wf_trainer_ok(t) ? train_sharded(t, &n, transport->rank) : refused(t);
    if (!ok) wf_transport_fail(transport, 1, "a rank is out of memory");
    wf_trainer_free(t), wf_graph_free(n.g);
    return ok;
}

static void *be_rank(void *user) {
    rank_work *w = user;
    wf_rank me;
    wf_rank_join(&me, w->region, w->rank);
    w->ok = sharded(&me.transport);
    return NULL;
}

static bool training_sharded(void) {
    bool was = faults_pause(true);
    wf_region *region = wf_region_new(ranks);
    must(region, "no region");
    rank_work work[2] = { { region, 0, false }, { region, 1, false } };
    pthread_t other;
    faults_pause(was);
    if (ranks == 2) {
        faults_pause(true);
        must(pthread_create(&other, NULL, be_rank, &work[1]) == 0, "no thread");
        faults_pause(was);
    }
    be_rank(&work[0]);
    if (ranks == 2) pthread_join(other, NULL);
    wf_region_free(region);
    return work[0].ok && (ranks == 1 || work[1].ok);
}

/* A rank that has no memory for its list of leaves still takes part in the save, so that no other
 * rank waits for it. Only a failure of rank 0, which writes the file, makes the save fail. */
typedef struct lister {
    wf_region *region;
    int rank, without; /* the rank that has no list */
    bool wrote, saved;
} lister;

static void *write_without_a_list(void *user) {
    lister *l = user;
    wf_rank me;
    wf_rank_join(&me, l->region, l->rank);
    net n = new_net();
    wf_trainer_options o = trained;
    o.transport = &me.transport;
    wf_trainer *t = wf_trainer_new(n.g, n.loss, n.count, &o);
    bool none = l->rank == l->without;
    l->wrote = wf_trainer_write(t, path, none ? NULL : n.params, none ? 1 : 2, NULL, 0);
    l->saved = wf_trainer_save(t, path, none ? NULL : &(wf_meta){ "mine", "words" }, 1);
    wf_trainer_free(t), wf_graph_free(n.g);
    return NULL;
}

TEST_ROWS(a_rank_without_a_list_is_not_waited_for, 2) {
    trained = (wf_trainer_options){ .optimizer = wf_optimizer_defaults(WF_ADAM),
                                    .schedule = { .peak = 0.01 },
                                    .micro_batches = MICRO_BATCHES };
    wf_region *region = wf_region_new(2);
    ck_assert_ptr_nonnull(region);
    lister l[2] = { { region, 0, _i, false, false }, { region, 1, _i, false, false } };
    pthread_t other;
    ck_assert_int_eq(pthread_create(&other, NULL, write_without_a_list, &l[1]), 0);
    write_without_a_list(&l[0]);
    ck_assert_int_eq(pthread_join(other, NULL), 0);
    for (int r = 0; r < 2; r++) {
        ck_assert_int_eq(l[r].wrote, _i == 1); /* rank 0 writes, and has its list */
        ck_assert_int_eq(l[r].saved, _i == 1);
    }
    wf_region_free(region);
}

/* If the sending thread does not start, gradients are sent after the backward pass. */
TEST_ROWS(a_sharded_training_is_right_or_fails, 4) {
    const wall_work work = { "sharded training", training_sharded, true };
    ranks = 1 + _i / 2;
    trained = (wf_trainer_options){ .optimizer = wf_optimizer_defaults(WF_ADAM),
                                    .schedule = { .peak = 0.01 },
                                    .micro_batches = MICRO_BATCHES };
    trained.optimizer.clip_norm = 1, trained.optimizer.average_decay = 0.9;
    wall_fail_each(&work, _i % 2);
}
