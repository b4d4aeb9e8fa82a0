/* tests/nn/test_sharded.c - an optimizer divided among ranks: the bits of one process, whatever is
 * divided how. Ranks are threads here, over the memory that processes would share. */
#include "core/ranks/region.h"
#include "nn/shard.h"
#include "nn/slices.h"
#include "ops/custom.h"
#include "tests/suites.h"
#include "tests/support/models.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "core/save.h"

TESTS(sharded)

enum { MOST_RANKS = 9, MOST_PARTS = 8, UPDATES = 4 };

/* ---- a model ---------------------------------------------------------------------------------- */

/* Parameters of several blocks, of one, of no element. */
typedef struct net {
    wf_graph *g;
    wf_tensor *x, *loss, *count;
    wf_tensor *params[5];
    wf_optimizer o;
    wf_plan *add, *update, *average;
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

static net net_of(const setting *s, wf_optimizer_options *o) {
    net n = { .g = new_graph(s->f64 ? WF_F64 : WF_F32) };
    wf_graph *g = n.g;
    n.x = wf_input(g, "x", wf_real(g), SHAPE(4, 70));
    n.params[0] = wf_param(g, "wide", SHAPE(70, 700), wf_init_uniform(0.2));
    n.params[1] = wf_param(g, "bias", SHAPE(700), wf_init_uniform(0.1));
    n.params[2] = wf_param(g, "none", SHAPE(0, 3), wf_init_zeros());
    n.params[3] = wf_param(g, "narrow", SHAPE(700, 3), wf_init_uniform(0.1));
    n.params[4] = wf_param(g, "scalar", 0, NULL, wf_init_constant(0.7));
    wf_tensor *h = wf_tanh(wf_add(wf_matmul(n.x, n.params[0]), n.params[1]));
    wf_tensor *y = wf_mul(wf_matmul(h, n.params[3]), n.params[4]);
    n.loss = wf_add(wf_square_sum(y), wf_sum(n.params[2], WF_ALL_AXES, false));
    n.count = wf_add(wf_constant(g, 1), wf_scale(wf_square_sum(n.x), 0.01));
    n.o = wf_optimizer_new(g, n.loss, n.count, n.params, 5, o);
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    wf_tensor *feed[] = { n.x, n.o.accumulation.at };
    n.add = wf_plan_new(
        g, &(wf_plan_options){
               .fetch = n.o.accumulation.adds, .n_fetch = 6, .feed = feed, .n_feed = 2 });
    return n;
}

static void drop_net(net *n) {
    wf_plan_free(n->add), wf_plan_free(n->update), wf_plan_free(n->average);
    wf_optimizer_free(&n->o);
    end_graph(n->g);
}

static void feed_part(const net *n, int update, int part) {
    double x[4 * 70];
    for (int i = 0; i < 4 * 70; i++)
        x[i] = number((uint64_t)(1000 * update + part), (uint64_t)i) * (part % 3 ? 1 : 30) - 0.4;
    assert_plan(n->add, wf_feed_reals(n->add, n->x, x, 4 * 70));
}

/* Micro-batches of each update. */
static int parts_of(int update, int most) {
    return update % 2 ? most : (most + 1) / 2;
}

static void rates_of(const wf_optimizer_options *o, int update, double rates[3]) {
    wf_optimizer_rates(o, 1e-2, update, rates);
}

/* ---- one process ------------------------------------------------------------------------------ */

enum { LEAVES = 5 * 5 }; /* parameters, up to three moments of each, averages */

typedef struct result {
    values leaf[LEAVES];
    double norm[UPDATES + 1];
} result;

static void read_leaves(const net *n, result *r) {
    int k = 0;
    for (int i = 0; i < 5; i++)
        r->leaf[k++] = (values){ wf_count(n->params[i]), leaf_values(n->params[i]) };
    for (int i = 0; i < 5 * n->o.n_moments; i++) {
        const wf_tensor *m = n->o.moments[i / n->o.n_moments][i % n->o.n_moments];
        r->leaf[k++] = (values){ wf_count(m), leaf_values(m) };
    }
    for (int i = 0; n->o.averages && i < 5; i++)
        r->leaf[k++] = (values){ wf_count(n->o.averages[i]), leaf_values(n->o.averages[i]) };
}

static void train_alone(const setting *s, int most, result *r) {
    wf_optimizer_options o = options_of(s);
    o.partial_sums = wf_partial_sums(most);
    net n = net_of(s, &o);
    const wf_accumulation *a = &n.o.accumulation;
    wf_tensor *fetch[6];
    memcpy(fetch, a->updates, 5 * sizeof *fetch), fetch[5] = a->norm;
    n.update = wf_plan_new(n.g, &(wf_plan_options){ .fetch = fetch,
                                                    .n_fetch = s->unguarded ? 5 : 6,
                                                    .feed = &n.o.rates,
                                                    .n_feed = 1 });
    if (n.o.averages)
        n.average = wf_plan_new(n.g, &(wf_plan_options){ .fetch = n.o.average_updates,
                                                         .n_fetch = 5,
                                                         .feed = &n.o.average_rate,
                                                         .n_feed = 1 });
    for (int update = 1; update <= UPDATES; update++) {
        int parts = parts_of(update, most);
        double rates[3], rate = wf_optimizer_average_rate(&o, update);
        rates_of(&o, update, rates);
        for (int i = 0; i < parts; i++) {
            feed_part(&n, update, i);
            assert_plan(n.add, wf_feed_micro_batch(n.add, &n.o, i, parts) && wf_run(n.add));
        }
        assert_plan(n.update, wf_feed_reals(n.update, n.o.rates, rates, 3) && wf_run(n.update));
        r->norm[update] = NAN;
        if (a->norm) {
            values v = fetched(n.update, a->norm);
            r->norm[update] = v.data[0];
            free_values(&v, 1);
        }
        if (n.average)
            assert_plan(n.average,
                        wf_feed_reals(n.average, n.o.average_rate, &rate, 1) && wf_run(n.average));
    }
    read_leaves(&n, r);
    drop_net(&n);
}

/* ---- ranks ------------------------------------------------------------------------------------ */

typedef struct run {
    const setting *s;
    int most, updates;
    wf_region *region;
    result *r; /* rank 0's */
    double norm[MOST_RANKS][UPDATES + 1];
    bool same[MOST_RANKS]; /* are averages, swapped in and out, what they should be? */
    int64_t sent[MOST_RANKS], told[MOST_RANKS];
    bool nan;
    bool at_once;      /* nothing is sent while micro-batches are run */
    int64_t in_flight; /* blocks of a round; 0: as it is */
    /* rank 0's files of the whole graph: read before, written after; NULL: none */
    const char *resumes, *saves;
    int first;  /* the update to begin with; 0: 1 */
    int breaks; /* how rank 0 breaks off the first update, after its last micro-batch */
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

/* Averages become parameters, everywhere; then they are what they were. Rank 0 sees all averages. */
static bool swap_and_look(wf_sharded *s, const net *n, int rank) {
    values was = { wf_count(n->params[0]), leaf_values(n->params[0]) };
    bool ok = wf_sharded_gather(s) && wf_sharded_swap_averages(s);
    if (rank == 0)
        for (int i = 0; i < 5; i++) ok = ok && same_values(n->params[i], n->o.averages[i]);
    ok = ok && wf_sharded_swap_averages(s);
    values is = { wf_count(n->params[0]), leaf_values(n->params[0]) };
    ok = ok && same_bits(was, is);
    free_values(&was, 1), free_values(&is, 1);
    wf_sharded_release(s);
    return ok;
}

/* By another number of micro-batches, by one that it has run already, by leaving. */
enum { WRONG_NUMBER = 1, ONCE_MORE, LEAVES_OFF, WAYS };

static void break_off(run *r, wf_sharded *s, const net *n, int parts) {
    const double rates[] = { 0.1, 1, 1 };
    if (r->breaks == WRONG_NUMBER) ck_assert(!wf_sharded_update(s, parts + 1, rates, NULL));
    if (r->breaks == ONCE_MORE) ck_assert(!wf_sharded_feed(s, n->add, 0, parts));
    snprintf(r->error[0], 256, "broke off: %s", wf_sharded_error(s));
}

static void updates_of(run *r, wf_sharded *s, const net *n, const wf_optimizer_options *o,
                       int rank) {
    int first = r->first ? r->first : 1, last = r->updates ? r->updates : UPDATES;
    for (int update = first; update <= last; update++) {
        int parts = parts_of(update, r->most);
        int64_t from, to;
        double rates[3];
        rates_of(o, update, rates);
        if (r->nan && update == 2) rates[0] = NAN;
        wf_sharded_range(s, parts, &from, &to);
        for (int64_t i = from; i < to; i++) {
            feed_part(n, update, (int)i);
            assert_plan(n->add, wf_sharded_feed(s, n->add, i, parts) && wf_run(n->add));
        }
        if (rank == 0 && r->breaks) {
            break_off(r, s, n, parts);
            return;
        }
        r->told[rank] += wf_sharded_traffic(s, parts);
        if (!wf_sharded_update(s, parts, rates, &r->norm[rank][update])) {
            snprintf(r->error[rank], 256, "%s", wf_sharded_error(s));
            return;
        }
        ck_assert(wf_sharded_average(s, wf_optimizer_average_rate(o, update)));
    }
}

static void load_whole(wf_sharded *s, const net *n, const char *path) {
    wf_load_report report;
    wf_file *f = wf_file_open(path);
    ck_assert_msg(wf_load(n->g, f, NULL, &report) && wf_sharded_scatter(s), "%s", report.message);
    wf_file_free(f);
}

static void *train_rank(void *user) {
    const seat *at = user;
    run *r = at->run;
    wf_rank me;
    wf_rank_join(&me, r->region, at->rank);
    int ranks = r->region->ranks;
    char message[256];
    wf_optimizer_options o = options_of(r->s);
    o.partial_sums = wf_sharded_partial_sums(r->most, at->rank, ranks);
    net n = net_of(r->s, &o);
    wf_transport *t = &me.transport;
    t->any_thread = !r->at_once;
    int64_t in_flight = r->in_flight ? r->in_flight : WF_IN_FLIGHT;
    wf_sharded *s = wf_shard_new(n.g, &n.o, n.params, &o, r->most, in_flight, t, NULL, message);
    ck_assert_msg(s != NULL, "%s", message);
    if (in_flight == 1 && ranks < 6) ck_assert_int_gt(s->slices.rounds, 1);
    if (r->resumes) load_whole(s, &n, r->resumes);
    updates_of(r, s, &n, &o, at->rank);
    if (!r->error[at->rank][0]) r->sent[at->rank] = t->sent; /* no collective is under way */
    r->same[at->rank] = r->error[at->rank][0] || !n.o.averages || swap_and_look(s, &n, at->rank);
    if (!r->error[at->rank][0]) {
        ck_assert(wf_sharded_gather(s));
        if (at->rank == 0 && r->r) read_leaves(&n, r->r);
        if (at->rank == 0 && r->saves)
            ck_assert_msg(wf_save(n.g, r->saves, NULL, NULL, 0, message), "%s", message);
        wf_sharded_release(s);
    }
    wf_sharded_free(s);
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

/* ---- the tests -------------------------------------------------------------------------------- */

static const int most_parts[] = { 1, 2, 3, 5, MOST_PARTS }, rank_counts[] = { 1, 2, 3, 4, 8 };

TEST_ROWS(ranks_get_the_bits_of_one_process, COUNT_OF(settings)) {
    for (int p = 0; p < COUNT_OF(most_parts); p++) {
        result want = { 0 };
        train_alone(&settings[_i], most_parts[p], &want);
        for (int k = 0; k < 3 * COUNT_OF(rank_counts); k++) {
            result have = { 0 };
            int ranks = rank_counts[k / 3];
            run r = { .s = &settings[_i],
                      .most = most_parts[p],
                      .r = &have,
                      .at_once = k % 3 == 1,
                      .in_flight = k % 3 == 2 };
            train_in_ranks(&r, ranks);
            assert_same(&want, &have, ranks, r.most);
            for (int i = 0; i < ranks; i++) {
                ck_assert_str_eq(r.error[i], "");
                ck_assert(r.same[i]);
                for (int u = 1; u <= UPDATES; u++)
                    ck_assert(r.norm[i][u] == want.norm[u] ||
                              (isnan(r.norm[i][u]) && isnan(want.norm[u])));
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

/* wf_save of the whole graph leaves out what depends on the ranks, so that any number of them goes
 * on. */
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
        run after = { .s = &settings[2], .most = 3, .first = 3, .resumes = half, .saves = have };
        train_in_ranks(&before, ranks), train_in_ranks(&after, ranks % 3 + 1);
        ck_assert_msg(same_files(want, have), "%d ranks, then %d", ranks, ranks % 3 + 1);
    }
    unlink(want), unlink(half), unlink(have);
}

/* What is sent is what was said. */
TEST_ROWS(traffic_is_what_the_formula_says, COUNT_OF(rank_counts)) {
    setting s = { .kind = WF_ADAM };
    for (int p = 0; p < COUNT_OF(most_parts); p++) {
        result have = { 0 };
        run r = { .s = &s, .most = most_parts[p], .r = &have };
        train_in_ranks(&r, rank_counts[_i]);
        for (int i = 0; i < rank_counts[_i]; i++) ck_assert_int_eq(r.sent[i], r.told[i]);
        free_values(have.leaf, LEAVES);
    }
}

TEST(a_step_that_is_not_finite_fails_on_all) {
    for (int k = 1; k < COUNT_OF(rank_counts); k++) {
        run r = { .s = &settings[0], .most = 3, .nan = true };
        train_in_ranks(&r, rank_counts[k]);
        for (int i = 0; i < rank_counts[k]; i++) ck_assert_str_ne(r.error[i], "");
    }
}

/* What has begun to leave does not arrive: no rank goes on, and none waits for ever. */
TEST_ROWS(an_update_that_is_broken_off_fails_on_all, WAYS - 1) {
    static const char *const says[] = { "broke off: an update is not of",
                                        "was run: wf_sharded_update", "broke off: " };
    for (int k = 1; k < COUNT_OF(rank_counts); k++) {
        run r = { .s = &settings[0], .most = 8, .breaks = 1 + _i, .in_flight = 1 };
        train_in_ranks(&r, rank_counts[k]);
        assert_contains(r.error[0], says[_i]);
        for (int i = 1; i < rank_counts[k]; i++) ck_assert_str_ne(r.error[i], "");
    }
}

/* Every element has one owner, in each of as many ranks as there are blocks, and more. */
TEST(slices_hold_every_element_once) {
    wf_optimizer_options o = options_of(&settings[0]);
    o.partial_sums = 1;
    net n = net_of(&settings[0], &o);
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

/* More micro-batches than there is room for, or others than were summed. */
TEST(an_update_is_of_what_was_summed) {
    char message[256];
    const double rates[] = { 0.1, 1, 1 };
    int64_t from, to;
    wf_optimizer_options o = options_of(&settings[0]);
    o.partial_sums = wf_sharded_partial_sums(3, 0, 1);
    net n = net_of(&settings[0], &o);
    wf_sharded *s = wf_sharded_new(n.g, &n.o, n.params, &o, 3, NULL, NULL, message);
    ck_assert_msg(s != NULL, "%s", message);
    ck_assert(!wf_sharded_update(s, 2, rates, NULL)); /* nothing was fed */
    assert_contains(wf_sharded_error(s), "not of the micro-batches");
    wf_sharded_range(s, 2, &from, &to);
    ck_assert(from == 0 && to == 2);
    for (int i = 0; i < 2; i++) {
        ck_assert(!wf_sharded_update(s, 2, rates, NULL));
        feed_part(&n, 1, i);
        assert_plan(n.add, wf_sharded_feed(s, n.add, i, 2) && wf_run(n.add));
    }
    ck_assert(!wf_sharded_update(s, 3, rates, NULL) && !wf_sharded_update(s, 4, rates, NULL));
    ck_assert(!wf_sharded_feed(s, n.add, 2, 2) && !wf_sharded_feed(s, n.add, -1, 2));
    ck_assert_msg(wf_sharded_update(s, 2, rates, NULL), "%s", wf_sharded_error(s));
    wf_sharded_free(s);
    drop_net(&n);
}

/* ---- while the last micro-batch is run -------------------------------------------------------- */

/* A rank of two; the other's sums are its own. Its exchanges are counted. */
typedef struct lone {
    wf_transport t;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int exchanges, seen; /* so far; when the pause was over */
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

static lone *paused; /* what the op below waits for */

/* x, whose gradient waits for an exchange: a whole minute, if there is none. */
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

/* Most of the gradient of the last matrix is a round by itself, which leaves before that of the first is
 * computed: whose backward pass waits for just that. */
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
    char message[256];
    const double rates[] = { 0.1, 1, 1 }, x[] = { 1, 2, 3, 4 };
    wf_optimizer_options o = wf_optimizer_defaults(WF_SGD);
    o.partial_sums = 1;
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *in = wf_input(g, "x", WF_F32, SHAPE(1, 4));
    wf_tensor *params[] = { wf_param(g, "first", SHAPE(4, 64), wf_init_uniform(0.1)),
                            wf_param(g, "large", SHAPE(64, LARGE), wf_init_uniform(0.1)) };
    wf_tensor *h = wf_record(&paused_op, 1, (wf_tensor *[]){ wf_matmul(in, params[0]) }, NULL);
    wf_tensor *loss = wf_square_sum(wf_matmul(h, params[1]));
    wf_optimizer opt = wf_optimizer_new(g, loss, wf_constant(g, 1), params, 2, &o);
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    wf_tensor *feed[] = { in, opt.accumulation.at };
    wf_plan *p = wf_plan_new(
        g, &(wf_plan_options){
               .fetch = opt.accumulation.adds, .n_fetch = 3, .feed = feed, .n_feed = 2 });
    wf_sharded *s = wf_sharded_new(g, &opt, params, &o, 2, &l.t, NULL, message);
    ck_assert_msg(s != NULL, "%s", message);
    for (int update = 0; update < 2; update++) {
        l.exchanges = l.seen = 0;
        assert_plan(p, wf_feed_reals(p, in, x, 4) && wf_sharded_feed(s, p, 1, 2) && wf_run(p));
        ck_assert_int_ge(l.seen, 1);
        ck_assert_msg(wf_sharded_update(s, 2, rates, NULL), "%s", wf_sharded_error(s));
        ck_assert_int_gt(l.exchanges, 1); /* the round of the first came after it */
    }
    wf_sharded_free(s);
    wf_plan_free(p);
    wf_optimizer_free(&opt);
    end_graph(g);
}

TEST(nonsense_is_refused) {
    char message[256];
    wf_optimizer_options o = options_of(&settings[0]);
    net n = { .g = new_graph(WF_F32) };
    n.params[0] = wf_param(n.g, "w", SHAPE(3), wf_init_zeros());
    n.o = wf_optimizer_new(n.g, wf_square_sum(n.params[0]), wf_constant(n.g, 1), n.params, 1, &o);
    ck_assert_ptr_null(wf_sharded_new(NULL, NULL, NULL, NULL, 1, NULL, NULL, message));
    ck_assert_ptr_null(wf_sharded_new(n.g, &n.o, n.params, &o, 1, NULL, NULL, message));
    assert_contains(message, "no partial sums");
    drop_net(&n);
}

TEST(partial_sums_are_of_ranks_that_exist) {
    static const int64_t most = WF_MOST_MICRO_BATCHES;
    for (int64_t M = 1; M <= 40; M++)
        for (int ranks = 1; ranks <= 5; ranks++)
            for (int rank = 0, want = 1; rank < ranks; rank++, want = 1) {
                for (int64_t of = 1; of <= M; of++) {
                    wf_sum_node range = wf_shard_range(of, rank, ranks);
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

TEST(what_no_training_can_use_is_refused) {
    char message[256];
    wf_transport hollow = { .size = 2 }, nobody = { .rank = 2, .size = 2 };
    wf_optimizer_options o = options_of(&settings[0]);
    o.partial_sums = wf_sharded_partial_sums(3, 0, 1);
    net n = net_of(&settings[0], &o);
    ck_assert_ptr_null(wf_sharded_new(n.g, &n.o, n.params, &o, 3, &hollow, NULL, message));
    assert_contains(message, "lacks alltoallv");
    ck_assert_ptr_null(wf_sharded_new(n.g, &n.o, n.params, &o, 3, &nobody, NULL, message));
    assert_contains(message, "is none of its ranks");
    ck_assert_ptr_null(wf_sharded_new(n.g, &n.o, n.params, &o, INT64_MAX, NULL, NULL, message));
    assert_contains(message, "more than 65,536");
    wf_sharded *s = wf_sharded_new(n.g, &n.o, n.params, &o, 3, NULL, NULL, message);
    ck_assert_msg(s != NULL, "%s", message);
    wf_sharded_range(s, 3, NULL, NULL);
    feed_part(&n, 1, 0);
    ck_assert(!wf_sharded_feed(s, n.add, 1, 3)); /* before 0 */
    ck_assert(wf_sharded_feed(s, n.add, 0, 3) && !wf_sharded_feed(s, n.add, 2, 3));
    assert_contains(wf_sharded_error(s), "in order");
    wf_sharded_free(s);
    drop_net(&n);
}
