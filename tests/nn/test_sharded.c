/* tests/nn/test_sharded.c - a trainer with ranks has the bits of a trainer in one process, however
 * moments and parameters are sharded. Ranks are threads here, with the shared memory that processes
 * would use. */
#include "core/op_internal.h"
#include "core/ranks/region.h"
#include "core/transport_internal.h"
#include "nn/train/sharded.h"
#include "nn/train/way.h"
#include "ops/custom.h"
#include "ops/update/sums.h"
#include "tests/suites.h"
#include "tests/support/models.h"
#include "tests/support/sanitized.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "core/save.h"

TESTS(sharded)

enum { MOST_RANKS = 9, MOST_PARTS = 8, UPDATES = 4 };
/* Sizes of the model below: its first matrix has three blocks. */
enum { ROWS_IN = 4, WIDTH_IN = 47, WIDTH = 700 };

/* ---- a model --------------------------------------------------------------------------------- */

/* A net with parameters of several blocks, of one block, and of no elements. */
typedef struct net {
    wf_graph *g;
    wf_tensor *x, *loss, *count, *sum;
    wf_tensor *params[5];
    wf_trainer *t;
} net;

/* One setting of an optimizer. */
typedef struct setting {
    wf_optimizer_kind kind;
    double momentum, weight_decay, clip_norm, average_decay, dampening;
    bool unguarded, centered, grouped, f64;
} setting;

static const setting settings[] = {
    { .kind = WF_ADAM },
    { .kind = WF_ADAM, .f64 = true, .clip_norm = 0.1 },
    { .kind = WF_ADAMW, .weight_decay = 0.1, .clip_norm = 0.5, .average_decay = 0.9 },
    { .kind = WF_ADAMW, .weight_decay = 0.1, .grouped = true, .average_decay = 0.99 },
    { .kind = WF_SGD, .momentum = 0.9, .dampening = 0.5, .clip_norm = 1 },
    { .kind = WF_SGD, .unguarded = true },
    { .kind = WF_RMSPROP, .momentum = 0.5, .centered = true },
    { .kind = WF_ADAGRAD, .weight_decay = 0.01, .average_decay = 0.5 },
    { .kind = WF_LION, .weight_decay = 0.1, .clip_norm = 0.01 },
};

static const wf_parameter_group groups[] = { { "wide", 0.5, 0.3 }, { "!*w*", 2, 0 } };

static wf_optimizer_options options_of(const setting *s) {
    wf_optimizer_options o = wf_optimizer_defaults(s->kind);
    o.momentum = s->momentum, o.weight_decay = s->weight_decay, o.clip_norm = s->clip_norm;
    o.average_decay = s->average_decay, o.dampening = s->dampening;
    o.unguarded = s->unguarded, o.centered = s->centered;
    if (s->grouped) o.groups = groups, o.n_groups = COUNT_OF(groups);
    return o;
}

static net net_of(const setting *s) {
    net n = { .g = new_graph(s->f64 ? WF_F64 : WF_F32) };
    wf_graph *g = n.g;
    n.x = wf_input(g, "x", wf_real(g), SHAPE(ROWS_IN, WIDTH_IN));
    n.params[0] = wf_param(g, "wide", SHAPE(WIDTH_IN, WIDTH), wf_init_uniform(0.2));
    n.params[1] = wf_param(g, "bias", SHAPE(WIDTH), wf_init_uniform(0.1));
    n.params[2] = wf_param(g, "none", SHAPE(0, 3), wf_init_zeros());
    n.params[3] = wf_param(g, "narrow", SHAPE(WIDTH, 3), wf_init_uniform(0.1));
    n.params[4] = wf_param(g, "scalar", 0, NULL, wf_init_constant(0.7));
    wf_tensor *h = wf_tanh(wf_add(wf_matmul(n.x, n.params[0]), n.params[1]));
    wf_tensor *y = wf_mul(wf_matmul(h, n.params[3]), n.params[4]);
    n.loss = wf_add(wf_square_sum(y), wf_sum(n.params[2], WF_ALL_AXES, false));
    n.count = wf_add(wf_constant(g, 1), wf_scale(wf_square_sum(n.x), 0.01));
    n.sum = wf_sum(y, WF_ALL_AXES, false);
    return n;
}

/* Makes the net's trainer. transport NULL: one process. in_flight: blocks per round. */
static void open_net(net *n, const setting *s, int most, wf_transport *transport,
                     int64_t in_flight) {
    const wf_trainer_options o = { .optimizer = options_of(s),
                                   .schedule = { .peak = 1e-2 },
                                   .micro_batches = most,
                                   .params = n->params,
                                   .n_params = 5,
                                   .sums = &n->sum,
                                   .n_sums = 1,
                                   .transport = transport };
    n->t = wf_trainer_open(n->g, n->loss, n->count, &o, in_flight);
    ck_assert_msg(wf_trainer_ok(n->t), "%s", wf_trainer_error(n->t));
}

static void drop_net(net *n) {
    wf_trainer_free(n->t);
    end_graph(n->g);
}

static void feed_part(const net *n, int update, int part) {
    double x[ROWS_IN * WIDTH_IN];
    wf_plan *p = wf_trainer_plan(n->t);
    for (int i = 0; i < ROWS_IN * WIDTH_IN; i++)
        x[i] = number((uint64_t)(1000 * update + part), (uint64_t)i) * (part % 3 ? 1 : 30) - 0.4;
    assert_plan(p, wf_feed_reals(p, n->x, x, ROWS_IN * WIDTH_IN));
}

/* Micro-batches of each update. */
static int parts_of(int update, int most) {
    return update % 2 ? most : (most + 1) / 2;
}

/* ---- one process ----------------------------------------------------------------------------- */

enum { LEAVES = 5 * 5 }; /* parameters, up to three moments of each, averages */

typedef struct result {
    values leaf[LEAVES];
    wf_progress now[UPDATES + 1];
    double sum[UPDATES + 1];
} result;

static void read_leaves(const net *n, result *r) {
    const wf_optimizer *o = wf_trainer_optimizer(n->t);
    int k = 0;
    for (int i = 0; i < 5; i++)
        r->leaf[k++] = (values){ wf_count(n->params[i]), leaf_values(n->params[i]) };
    for (int i = 0; i < 5 * o->n_moments; i++) {
        const wf_tensor *m = o->moments[i / o->n_moments][i % o->n_moments];
        r->leaf[k++] = (values){ wf_count(m), leaf_values(m) };
    }
    for (int i = 0; o->averages && i < 5; i++)
        r->leaf[k++] = (values){ wf_count(o->averages[i]), leaf_values(o->averages[i]) };
}

static void keep_progress(result *r, int update, const wf_progress *now) {
    r->now[update] = *now;
    r->sum[update] = now->sums[0];
}

static void train_alone(const setting *s, int most, result *r) {
    net n = net_of(s);
    open_net(&n, s, most, NULL, WF_IN_FLIGHT);
    for (int update = 1; update <= UPDATES; update++) {
        wf_progress now;
        int64_t from, to;
        assert_trainer(n.t, wf_trainer_begin(n.t, parts_of(update, most), &from, &to));
        ck_assert(from == 0 && to == parts_of(update, most));
        for (int64_t i = from; i < to; i++) {
            feed_part(&n, update, (int)i);
            assert_trainer(n.t, wf_trainer_add(n.t, i));
        }
        assert_trainer(n.t, wf_trainer_update(n.t, &now));
        keep_progress(r, update, &now);
    }
    read_leaves(&n, r);
    drop_net(&n);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

typedef struct run {
    const setting *s;
    int most, updates;
    wf_region *region;
    result *r;                   /* rank 0's */
    result progress[MOST_RANKS]; /* without leaves */
    bool same[MOST_RANKS];       /* are averages right after they were swapped in and out? */
    /* bytes sent by each rank: as counted by the transport, as predicted, as the trainer reports */
    int64_t sent[MOST_RANKS], told[MOST_RANKS], passed[MOST_RANKS];
    bool nan;
    bool at_once;      /* nothing is sent before all micro-batches have run */
    int64_t in_flight; /* blocks per round; 0: the default */
    /* rank 0's files of the whole graph: read before, written after; NULL: none */
    const char *resumes, *saves;
    int breaks; /* how rank 0 breaks off the first update, at its last micro-batch */
    char error[MOST_RANKS][256];
} run;

typedef struct seat {
    run *run;
    int rank;
} seat;

static bool same_values(const wf_tensor *a, const wf_tensor *b) {
    values x = { wf_count(a), leaf_values(a) }, y = { wf_count(b), leaf_values(b) };
    bool same = same_bits(x, y);
    free_values(&x, 1), free_values(&y, 1);
    return same;
}

/* Gathers all moments and averages on rank 0. Without ranks they are there already. */
static bool gather_all(wf_trainer *t) {
    return !t->way->gather || t->way->gather(t);
}

/* Swaps averages and parameters on all ranks, and back. Returns true if rank 0 had all averages and
 * the parameters are the same as before. */
static bool swap_and_look(const net *n, int rank) {
    const wf_optimizer *o = wf_trainer_optimizer(n->t);
    values was = { wf_count(n->params[0]), leaf_values(n->params[0]) };
    bool ok = gather_all(n->t) && wf_trainer_swap_averages(n->t);
    if (rank == 0 && n->t->sharded) /* the graph's averages are copies */
        for (int i = 0; i < 5; i++) ok = ok && same_values(n->params[i], o->averages[i]);
    ok &= wf_trainer_swap_averages(n->t);
    values is = { wf_count(n->params[0]), leaf_values(n->params[0]) };
    ok = ok && same_bits(was, is);
    free_values(&was, 1), free_values(&is, 1);
    return ok && (!n->t->way->release || n->t->way->release(n->t, true));
}

/* How rank 0 breaks off an update: it updates with another number of micro-batches, begins again,
 * ends, or updates without adding its last micro-batch. */
enum { WRONG_NUMBER = 1, ONCE_MORE, LEAVES_OFF, ADDS_TOO_FEW, WAYS };

static void break_off(run *r, wf_trainer *t, int parts) {
    if (r->breaks == WRONG_NUMBER) t->micro_batches++;
    if (r->breaks == WRONG_NUMBER || r->breaks == ADDS_TOO_FEW)
        ck_assert(!wf_trainer_update(t, NULL));
    if (r->breaks == ONCE_MORE) ck_assert(!wf_trainer_begin(t, parts, NULL, NULL));
    snprintf(r->error[0], 256, "broke off: %.200s", wf_trainer_error(t));
}

/* Makes an update. Returns false if the rank breaks it off, or if it fails. */
static bool update_once(run *r, const net *n, int update, int rank) {
    wf_trainer *t = n->t;
    int parts = parts_of(update, r->most);
    bool breaks = rank == 0 && r->breaks;
    int64_t from, to;
    wf_progress now;
    assert_trainer(t, wf_trainer_begin(t, parts, &from, &to));
    if (r->nan && update == 2) t->rates[0] = NAN;
    for (int64_t i = from; i < to - (breaks && r->breaks == ADDS_TOO_FEW); i++) {
        feed_part(n, update, (int)i);
        assert_trainer(t, wf_trainer_add(t, i));
    }
    if (breaks) {
        break_off(r, t, parts);
        return false;
    }
    if (t->sharded) r->told[rank] += wf_sharded_traffic(t->sharded, parts);
    if (!wf_trainer_update(t, &now)) {
        snprintf(r->error[rank], 256, "%s", wf_trainer_error(t));
        return false;
    }
    keep_progress(&r->progress[rank], update, &now);
    r->passed[rank] += now.sent;
    return true;
}

static void save_and_look(run *r, const net *n, int rank) {
    wf_trainer *t = n->t;
    r->sent[rank] = wf_transport_size(t->transport) > 1 ? t->transport->sent : 0;
    r->same[rank] = !wf_trainer_optimizer(t)->averages || swap_and_look(n, rank);
    if (r->saves) assert_trainer(t, wf_trainer_save(t, r->saves, NULL, 0));
    ck_assert(gather_all(t));
    if (rank == 0 && r->r) read_leaves(n, r->r);
}

static void *train_rank(void *user) {
    const seat *at = user;
    run *r = at->run;
    wf_rank me;
    wf_rank_join(&me, r->region, at->rank);
    int ranks = r->region->ranks;
    net n = net_of(r->s);
    wf_transport *t = &me.transport;
    t->any_thread = !r->at_once;
    int64_t in_flight = r->in_flight ? r->in_flight : WF_IN_FLIGHT;
    open_net(&n, r->s, r->most, t, in_flight);
    if (in_flight == 1 && ranks > 1 && ranks < 6) ck_assert_int_gt(n.t->sharded->slices.rounds, 1);
    if (r->resumes) assert_trainer(n.t, wf_trainer_load(n.t, r->resumes, NULL));
    int64_t last = r->updates ? r->updates : UPDATES;
    while (wf_trainer_steps(n.t) < last)
        if (!update_once(r, &n, (int)wf_trainer_steps(n.t) + 1, at->rank)) break;
    if (!r->error[at->rank][0]) save_and_look(r, &n, at->rank);
    drop_net(&n);
    return NULL;
}

static void train_in_ranks(run *r, int ranks) {
    pthread_t thread[MOST_RANKS];
    seat seats[MOST_RANKS];
    r->region = wf_region_new(ranks);
    ck_assert_ptr_nonnull(r->region);
    for (int i = 0; i < ranks; i++) {
        seats[i] = (seat){ r, i };
        ck_assert_int_eq(pthread_create(&thread[i], NULL, train_rank, &seats[i]), 0);
    }
    for (int i = 0; i < ranks; i++) pthread_join(thread[i], NULL);
    wf_region_free(r->region);
}

static void assert_same(const result *want, const result *have, int ranks, int most) {
    for (int i = 0; i < LEAVES; i++) {
        ck_assert_int_eq(want->leaf[i].count, have->leaf[i].count);
        if (want->leaf[i].data)
            ck_assert_msg(same_bits(want->leaf[i], have->leaf[i]), "leaf %d, %d ranks, %d parts", i,
                          ranks, most);
    }
}

static void assert_same_progress(const result *a, const result *b, int update) {
    const wf_progress *x = &a->now[update], *y = &b->now[update];
    ck_assert(x->norm == y->norm || (isnan(x->norm) && isnan(y->norm)));
    ck_assert(x->loss == y->loss && x->count == y->count && a->sum[update] == b->sum[update]);
    ck_assert(x->step == update && y->step == update && x->rate == y->rate);
}

/* ---- the tests ------------------------------------------------------------------------------- */

static const int most_parts[] = { 1, 2, 3, 5, MOST_PARTS }, rank_counts[] = { 1, 2, 3, 4, 8 };

/* Each number of ranks sends in three ways. With a sanitizer, which looks for races and not at
 * bits, only a third of the combinations with numbers of parts is tried. */
enum { WAYS_TO_SEND = 3 };

TEST_ROWS(ranks_get_the_bits_of_one_process, COUNT_OF(settings)) {
    for (int p = 0; p < COUNT_OF(most_parts); p++) {
        result want = { 0 };
        train_alone(&settings[_i], most_parts[p], &want);
        for (int k = 0; k < WAYS_TO_SEND * COUNT_OF(rank_counts); k++) {
            result have = { 0 };
            int ranks = rank_counts[k / WAYS_TO_SEND];
            if (SANITIZED && (k + p + _i) % WAYS_TO_SEND) continue;
            run r = { .s = &settings[_i],
                      .most = most_parts[p],
                      .r = &have,
                      .at_once = k % WAYS_TO_SEND == 1,
                      .in_flight = k % WAYS_TO_SEND == 2 };
            train_in_ranks(&r, ranks);
            assert_same(&want, &have, ranks, r.most);
            for (int i = 0; i < ranks; i++) {
                ck_assert_str_eq(r.error[i], "");
                ck_assert(r.same[i]);
                /* the bytes that are sent are those that the formula gives */
                ck_assert(r.sent[i] == r.told[i] && r.passed[i] == r.told[i]);
                for (int u = 1; u <= UPDATES; u++) assert_same_progress(&r.progress[i], &want, u);
            }
            free_values(have.leaf, LEAVES);
        }
        free_values(want.leaf, LEAVES);
    }
}

static bool same_files(const char *a, const char *b) {
    FILE *x = fopen(a, "rb"), *y = fopen(b, "rb");
    ck_assert(x && y);
    int one, other;
    do one = getc(x), other = getc(y);
    while (one == other && one != EOF);
    fclose(x), fclose(y);
    return one == other;
}

/* A checkpoint does not depend on the ranks: any number of ranks can resume from it. */
TEST(files_do_not_depend_on_the_ranks) {
    char want[64], half[64], have[64];
    snprintf(want, sizeof want, "/tmp/weft-sharded-%d-want", (int)getpid());
    snprintf(half, sizeof half, "/tmp/weft-sharded-%d-half", (int)getpid());
    snprintf(have, sizeof have, "/tmp/weft-sharded-%d-have", (int)getpid());
    for (int ranks = 1; ranks <= 4; ranks++) {
        run r = { .s = &settings[2], .most = 3, .saves = ranks == 1 ? want : have };
        train_in_ranks(&r, ranks);
        ck_assert_msg(ranks == 1 || same_files(want, have), "%d ranks", ranks);
    }
    for (int ranks = 1; ranks <= 3; ranks++) {
        run before = { .s = &settings[2], .most = 3, .updates = 2, .saves = half };
        run after = { .s = &settings[2], .most = 3, .resumes = half, .saves = have };
        train_in_ranks(&before, ranks), train_in_ranks(&after, ranks % 3 + 1);
        ck_assert_msg(same_files(want, have), "%d ranks, then %d", ranks, ranks % 3 + 1);
    }
    unlink(want), unlink(half), unlink(have);
}

TEST(a_step_that_is_not_finite_fails_on_all) {
    for (int k = 1; k < COUNT_OF(rank_counts); k++) {
        run r = { .s = &settings[0], .most = 3, .nan = true };
        train_in_ranks(&r, rank_counts[k]);
        for (int i = 0; i < rank_counts[k]; i++) ck_assert_str_ne(r.error[i], "");
    }
}

/* If one rank breaks off an update, the update fails on all ranks, and none waits for ever. */
TEST_ROWS(an_update_that_is_broken_off_fails_on_all, WAYS - 1) {
    static const char *const says[] = { "broke off: an update is not of",
                                        "was added: wf_trainer_update",
                                        "broke off: ", "broke off: an update is not of" };
    for (int k = 1; k < COUNT_OF(rank_counts); k++) {
        run r = { .s = &settings[0], .most = 8, .breaks = 1 + _i, .in_flight = 1 };
        train_in_ranks(&r, rank_counts[k]);
        assert_contains(r.error[0], says[_i]);
        for (int i = 1; i < rank_counts[k]; i++) ck_assert_str_ne(r.error[i], "");
    }
}

/* Every element belongs to exactly one rank's slice, for up to more ranks than blocks. */
TEST(slices_hold_every_element_once) {
    net n = net_of(&settings[0]);
    for (int ranks = 1; ranks <= 12; ranks++)
        for (int most = 1; most <= 20; most += 6) {
            wf_slices s;
            int64_t seen[5] = { 0 }, owners[5][4] = { { 0 } };
            ck_assert(wf_slices_new(&s, n.params, 5, ranks, most));
            for (int r = 0; r < ranks; r++) {
                int64_t of_rank = 0;
                for (int round = 0; round < s.rounds; round++) {
                    wf_blocks b = wf_slice_in_round(&s, r, round);
                    wf_piece piece;
                    of_rank += wf_slice_elements(&s, b);
                    while (wf_next_piece(&s, &b, &piece)) {
                        ck_assert(piece.n > 0 && piece.first % WF_SQUARE_BLOCK == 0);
                        seen[piece.param] += piece.n;
                        for (int64_t at = 0; at < piece.n; at += WF_SQUARE_BLOCK)
                            owners[piece.param][(piece.first + at) / WF_SQUARE_BLOCK]++;
                    }
                }
                ck_assert_int_eq(of_rank, wf_slice_size(&s, r).elements);
                ck_assert(r > 0 || of_rank > 0);
            }
            for (int i = 0; i < 5; i++) {
                ck_assert_int_eq(seen[i], wf_count(n.params[i]));
                for (int k = 0; k < 4; k++)
                    ck_assert(owners[i][k] == (k * WF_SQUARE_BLOCK < seen[i]));
            }
            wf_slices_free(&s);
        }
    drop_net(&n);
}

/* ---- while the last micro-batch is run ------------------------------------------------------- */

/* A transport for rank 1 of 2 without a rank 0: it receives zeros in alltoallv, and a copy of its
 * own part in allgatherv. It counts its exchanges. */
typedef struct lone {
    wf_transport t;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int exchanges, seen; /* the number of exchanges; that number when the pause ended */
} lone;

static bool count_exchange(wf_transport *t, const void *send, const int64_t *send_at, void *receive,
                           const int64_t *receive_at) {
    lone *l = t->user;
    memset(receive, 0, (size_t)receive_at[2]);
    (void)send, (void)send_at;
    pthread_mutex_lock(&l->mutex);
    l->exchanges++;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
    return true;
}

static bool say_all_is_well(wf_transport *t, const void *send, void *receive, const int64_t *at) {
    memset(receive, 0, (size_t)at[2]);
    memcpy((char *)receive + at[t->rank], send, (size_t)(at[t->rank + 1] - at[t->rank]));
    memcpy((char *)receive + at[1 - t->rank], send, (size_t)(at[2 - t->rank] - at[1 - t->rank]));
    return true;
}

static void end_test(wf_transport *t, int code, const char *why) {
    (void)t;
    ck_abort_msg("%d: %s", code, why);
}

static lone *paused; /* the transport for whose exchange the op below waits */

/* An op that copies x and waits for an exchange, up to a minute. It is recorded as the gradient of
 * paused_op. */
static bool eval_pause(const wf_call *c, int phase, int64_t task, void *scratch) {
    struct timespec late;
    (void)phase, (void)task, (void)scratch;
    memcpy(c->out[0].data, c->in[0].data,
           (size_t)wf_view_bytes(&c->in[0], wf_view_count(&c->in[0])));
    clock_gettime(CLOCK_REALTIME, &late);
    late.tv_sec += 60;
    pthread_mutex_lock(&paused->mutex);
    while (!paused->exchanges && !pthread_cond_timedwait(&paused->changed, &paused->mutex, &late))
        continue;
    paused->seen = paused->exchanges;
    pthread_mutex_unlock(&paused->mutex);
    return true;
}

static const wf_kernel run_pause = { .eval = eval_pause };
static const wf_op pause_op = {
    .name = "pause", .family = "shape", .arity = 1, .shape = wf_same_as_operands, .run = &run_pause
};

static void grad_paused(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)y, (void)need;
    dx[0] = wf_record(&pause_op, 1, dy, NULL);
}

WF_ELEMENTWISE(eval_same, x)
static const wf_kernel run_same = { WF_ELEMENTWISE_RUN(eval_same) };
static const wf_op paused_op = { .name = "paused",
                                 .family = "elementwise",
                                 .arity = 1,
                                 .shape = wf_same_as_operands,
                                 .grad = grad_paused,
                                 .run = &run_same };

/* The gradient of the last matrix is sent while the backward pass still runs: the gradient of the
 * first matrix is computed only after an op that waits for this exchange. */
TEST(gradients_leave_during_the_backward_pass) {
    enum { LARGE = 70000 };
    lone l = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
    l.t = (wf_transport){ .rank = 1,
                          .size = 2,
                          .any_thread = true,
                          .user = &l,
                          .alltoallv = count_exchange,
                          .allgatherv = say_all_is_well,
                          .fail = end_test };
    paused = &l;
    const double x[] = { 1, 2, 3, 4 };
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *in = wf_input(g, "x", WF_F32, SHAPE(1, 4));
    wf_tensor *params[] = { wf_param(g, "first", SHAPE(4, 64), wf_init_uniform(0.1)),
                            wf_param(g, "large", SHAPE(64, LARGE), wf_init_uniform(0.1)) };
    wf_tensor *h = wf_record(&paused_op, 1, (wf_tensor *[]){ wf_matmul(in, params[0]) }, NULL);
    wf_tensor *loss = wf_square_sum(wf_matmul(h, params[1]));
    wf_trainer *t = wf_trainer_new(g, loss, wf_constant(g, 1),
                                   &(wf_trainer_options){ .optimizer = { .kind = WF_SGD },
                                                          .schedule = { .peak = 0.1 },
                                                          .micro_batches = 2,
                                                          .transport = &l.t });
    assert_trainer(t, wf_trainer_ok(t));
    wf_plan *p = wf_trainer_plan(t);
    for (int update = 0; update < 2; update++) {
        int64_t from, to;
        l.exchanges = l.seen = 0;
        assert_trainer(t, wf_trainer_begin(t, 2, &from, &to));
        ck_assert(from == 1 && to == 2);
        assert_plan(p, wf_feed_reals(p, in, x, 4));
        assert_trainer(t, wf_trainer_add(t, 1));
        ck_assert_int_ge(l.seen, 1);
        assert_trainer(t, wf_trainer_update(t, NULL));
        ck_assert_int_gt(l.exchanges, 1); /* the gradient of the first matrix was sent later */
    }
    wf_trainer_free(t);
    end_graph(g);
}

TEST(partial_sums_are_of_ranks_that_exist) {
    static const int64_t most = WF_MOST_MICRO_BATCHES;
    for (int64_t M = 1; M <= 40; M++)
        for (int ranks = 1; ranks <= 5; ranks++)
            for (int rank = 0, want = 1; rank < ranks; rank++, want = 1) {
                for (int64_t of = 1; of <= M; of++) {
                    wf_range range = wf_rank_range(of, rank, ranks);
                    int height = wf_sum_tree_height(range.from, range.to, of);
                    if (height > want) want = height;
                }
                ck_assert_int_eq(wf_sharded_partial_sums(M, rank, ranks), want);
            }
    ck_assert_int_eq(wf_sharded_partial_sums(most, 0, 1), wf_partial_sums(most));
    ck_assert(!wf_sharded_partial_sums(most + 1, 0, 1) &&
              !wf_sharded_partial_sums(INT64_MAX, 0, 1));
    ck_assert(!wf_sharded_partial_sums(0, 0, 1) && !wf_sharded_partial_sums(1, 1, 1));
    ck_assert(!wf_sharded_partial_sums(1, -1, 2) && !wf_sharded_partial_sums(1, 0, 0));
}
