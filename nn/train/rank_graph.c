/* nn/train/rank_graph.c - a rank's shard of the optimizer: its pieces of the parameters, a separate
 * graph with an optimizer for them, and buffers for the exchanges. See sharded.h. */
#include "core/graph_internal.h"
#include "core/transport_internal.h"
#include "nn/optimizer_internal.h"
#include "sharded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/update/sums.h"

enum { MESSAGE = WF_SHARD_MESSAGE };

static bool no_memory(wf_sharded *s) {
    return wf_shard_failed(s, "out of memory");
}

/* ---- micro-batches --------------------------------------------------------------------------- */

int wf_sharded_partial_sums(int64_t micro_batches, int rank, int ranks) {
    int most = 1;
    if (micro_batches < 1 || micro_batches > WF_MOST_MICRO_BATCHES) return 0;
    if (rank < 0 || rank >= ranks) return 0;
    for (int64_t of = 1; of <= micro_batches; of++) {
        wf_range range = wf_rank_range(of, rank, ranks);
        int n = wf_sum_tree_height(range.from, range.to, of);
        if (n > most) most = n;
    }
    return most;
}

/* The most partial sums on the stack of a rank that adds up the gradients of its slice: it receives
 * the partial sums of all ranks for them. */
static int owner_sums(int64_t micro_batches, int ranks) {
    int most = 1;
    for (int64_t of = 1; of <= micro_batches; of++) {
        wf_sum_tree all = wf_sum_tree_of(of);
        for (int r = 0; r < ranks; r++) {
            wf_sum_tree t = wf_shard_nodes(of, r, ranks);
            for (int k = 0; k < t.depth; k++) {
                wf_sum_tree_push(&all, t.node[k].from, t.node[k].to);
                if (all.depth > most) most = all.depth;
            }
        }
    }
    return most;
}

/* ---- the rank's own graph -------------------------------------------------------------------- */

/* Lists the pieces of this rank, round by round. */
static bool find_pieces(wf_sharded *s) {
    int n = 0;
    for (int pass = 0; pass < 2; pass++, n = 0) {
        for (int round = 0; round < s->slices.rounds; round++) {
            wf_blocks b = wf_slice_in_round(&s->slices, s->t->rank, round);
            wf_piece piece;
            if (pass) s->first[round] = n;
            while (wf_next_piece(&s->slices, &b, &piece)) {
                if (pass) s->pieces[n] = piece;
                n++;
            }
        }
        if (pass) {
            s->first[s->slices.rounds] = n;
            return true;
        }
        s->n_pieces = n;
        s->pieces = calloc((size_t)n + 1, sizeof *s->pieces);
        s->first = calloc((size_t)s->slices.rounds + 1, sizeof *s->first);
        s->leaves = calloc(5 * (size_t)n + 1, sizeof *s->leaves);
        s->add = calloc((size_t)s->slices.rounds + 1, sizeof *s->add);
        s->missing = calloc((size_t)s->slices.rounds + 1, sizeof *s->missing);
        if (!s->pieces || !s->first || !s->leaves || !s->add || !s->missing) return false;
        s->values = s->leaves + n;
        s->sums = s->values + n;
        s->adds = s->sums + n;
        s->totals = s->adds + n;
    }
    return true;
}

/* Records a piece in the rank's graph. A piece of a matrix stays a matrix, so that it gets weight
 * decay; its name begins with that of the whole parameter. */
static void record_piece(wf_sharded *s, int i, int partial_sums) {
    const wf_piece *piece = &s->pieces[i];
    const wf_tensor *of = s->slices.params[piece->param];
    int ndim = of->ndim < 2 ? 1 : 2;
    int64_t shape[3] = { partial_sums, 1, 1 }, *own = shape + 1;
    shape[ndim] = piece->n;
    size_t size = strlen(of->name) + 32;
    char *name = malloc(size);
    if (!name) {
        wf_poison(s->own, "out of memory");
        return;
    }
    int length = snprintf(name, size, "%s", of->name);
    if (piece->first) snprintf(name + length, 32, "@%lld", (long long)piece->first);
    s->leaves[i] = wf_param(s->own, name, ndim, own, wf_init_zeros());
    const char *outer = wf_scope_push(s->own, name);
    s->sums[i] =
        wf_transient_buffer(s->own, "sum", wf_real(s->own), ndim + 1, shape, wf_init_zeros());
    s->values[i] = wf_input(s->own, "value", wf_real(s->own), ndim, own);
    wf_scope(s->own, outer);
    s->adds[i] = wf_accumulate(s->sums[i], s->values[i], s->at);
    s->totals[i] = wf_squeeze(wf_slice(s->sums[i], 0, 0, 1), WF_AXIS(0));
    free(name);
}

/* Makes a group for each piece of a parameter that is in a group of the options. Returns their
 * number. */
static int groups_of(const wf_sharded *s, const wf_optimizer_options *o, wf_parameter_group *out) {
    int n = 0;
    for (int i = 0; i < s->n_pieces; i++) {
        const char *name = s->slices.params[s->pieces[i].param]->name;
        int k = 0;
        while (k < o->n_groups && !wf_name_fits(o->groups[k].names, name)) k++;
        if (k == o->n_groups) continue;
        out[n] = o->groups[k];
        out[n++].names = s->leaves[i]->name;
    }
    return n;
}

static bool record_optimizer(wf_sharded *s, const wf_optimizer_options *options) {
    wf_optimizer_options o = *options;
    wf_parameter_group *groups = calloc((size_t)s->n_pieces, sizeof *groups);
    if (!groups) return no_memory(s);
    o.n_groups = groups_of(s, options, groups);
    o.groups = groups;
    s->optimizer = wf_optimizer_from_gradients(s->own, s->totals, s->count, s->all_squares,
                                               s->leaves, s->n_pieces, &o);
    free(groups);
    return wf_ok(s->own) || wf_shard_failed(s, wf_error(s->own));
}

static bool record(wf_sharded *s, const wf_optimizer_options *o, int64_t micro_batches) {
    wf_dtype real = wf_real(s->graph);
    int partial_sums = owner_sums(micro_batches, s->slices.ranks);
    s->own = wf_graph_new(&(wf_graph_options){ .real = real });
    s->at = wf_input(s->own, "at", real, 1, (int64_t[]){ 2 });
    s->count = wf_input(s->own, "count", real, 0, NULL);
    s->all_squares = wf_input(s->own, "squares", real, 1, &s->slices.first_block[s->slices.n]);
    for (int i = 0; i < s->n_pieces && wf_ok(s->own); i++) record_piece(s, i, partial_sums);
    if (!wf_ok(s->own)) return wf_shard_failed(s, wf_error(s->own));
    wf_tensor **squares = calloc((size_t)s->n_pieces, sizeof *squares);
    if (!squares) return no_memory(s);
    for (int i = 0; i < s->n_pieces; i++) squares[i] = wf_square_sums(s->totals[i]);
    s->squares = wf_concat(squares, s->n_pieces, 0);
    free(squares);
    return record_optimizer(s, o);
}

/* ---- its plans ------------------------------------------------------------------------------- */

static wf_plan *plan_of(wf_sharded *s, wf_tensor **fetch, int n_fetch, wf_tensor **feed, int n_feed,
                        wf_pool *pool) {
    return wf_plan_new(s->own, &(wf_plan_options){ .fetch = fetch,
                                                   .n_fetch = n_fetch,
                                                   .feed = feed,
                                                   .n_feed = n_feed,
                                                   .pool = pool,
                                                   .training = true });
}

/* Makes the plans of the rank's graph. list has room for all pieces and three more. If the sender
 * has a thread, that thread adds sums without the pool, which is busy with the next gradients. */
static void make_plans(wf_sharded *s, wf_tensor **list, wf_pool *pool) {
    const wf_optimizer *o = &s->optimizer;
    int n = s->n_pieces;
    wf_pool *adding = wf_sender_threaded(s->sender) ? NULL : pool;
    for (int round = 0; round < s->slices.rounds; round++) {
        int first = s->first[round], some = s->first[round + 1] - first;
        if (!some) continue;
        memcpy(list, s->values + first, (size_t)some * sizeof *list);
        list[some] = s->at;
        s->add[round] = plan_of(s, s->adds + first, some, list, some + 1, adding);
    }
    wf_tensor *feed[] = { o->rates, s->count, s->all_squares };
    if (o->norm) s->norm = plan_of(s, &s->squares, 1, NULL, 0, pool);
    memcpy(list, o->updates, (size_t)n * sizeof *list);
    list[n] = o->norm;
    s->update = plan_of(s, list, n + (o->norm != NULL), feed, o->norm ? 3 : 2, pool);
    if (o->averages)
        s->average = plan_of(s, o->average_updates, n, (wf_tensor **)&o->average_rate, 1, pool);
}

static bool plans_ok(wf_sharded *s) {
    wf_plan *const others[] = { s->norm, s->update, s->average };
    for (int i = 0; i < s->slices.rounds + 3; i++) {
        wf_plan *p = i < 3 ? others[i] : s->add[i - 3];
        if (p && !wf_plan_ok(p)) return wf_shard_failed(s, wf_plan_error(p));
    }
    return true;
}

static bool open_own(wf_sharded *s, const wf_optimizer_options *o, int64_t micro_batches,
                     wf_pool *pool) {
    if (!s->n_pieces) return true;
    if (!record(s, o, micro_batches)) return false;
    wf_tensor **list = calloc((size_t)s->n_pieces + 3, sizeof *list);
    if (!list) return no_memory(s);
    make_plans(s, list, pool);
    free(list);
    return plans_ok(s);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

int wf_shard_kept_count(const wf_sharded *s) {
    return s->of->n_moments + (s->of->averages != NULL);
}

wf_tensor *wf_shard_kept(const wf_optimizer *o, int i, int k) {
    return k < o->n_moments ? o->moments[i][k] : o->averages[i];
}

/* ---- made and freed -------------------------------------------------------------------------- */

/* Allocates the exchange buffers for the largest round. They hold the sums of an update, or all
 * values of the pieces that a checkpoint keeps. */
static bool make_room(wf_sharded *s, int64_t micro_batches) {
    int ranks = s->slices.ranks, most = s->of->n_moments + 1, received = 1;
    for (int64_t of = 1; of <= micro_batches; of++) {
        int all = 0;
        for (int r = 0; r < ranks; r++) {
            int n = wf_shard_nodes(of, r, ranks).depth;
            all += n;
            if (n > most) most = n;
        }
        if (all > received) received = all;
    }
    int64_t slice = s->slices.in_round / ranks * WF_SQUARE_BLOCK * (int64_t)s->real;
    if (most * ranks > received) received = most * ranks;
    int64_t numbers = (2 * ranks + micro_batches * s->numbers) * (int64_t)sizeof(double);
    s->room = slice * received + s->slices.first_block[s->slices.n] * (int64_t)s->real;
    if (s->room < numbers) s->room = numbers;
    s->send = malloc((size_t)s->room);
    s->receive = malloc((size_t)s->room);
    s->send_at = calloc(2 * ((size_t)ranks + 1), sizeof *s->send_at);
    s->receive_at = s->send_at ? s->send_at + ranks + 1 : NULL;
    return s->send && s->receive && s->send_at;
}

wf_sharded *wf_shard_new(wf_graph *g, const wf_sharded_options *o, wf_round_work exchange,
                         char *message) {
    wf_sharded *s = calloc(1, sizeof *s);
    snprintf(message, MESSAGE, "out of memory");
    if (!s) return NULL;
    s->graph = g;
    s->of = o->optimizer;
    s->parts = o->accumulation;
    s->t = o->transport;
    s->most = o->micro_batches;
    s->numbers = o->numbers;
    s->real = wf_dtype_size(wf_real(g));
    s->tree = wf_sum_tree_of(o->micro_batches);
    bool ok = wf_slices_new(&s->slices, s->of->params, s->of->n, s->t->size, o->in_flight) &&
              find_pieces(s) && make_room(s, o->micro_batches);
    if (ok) s->sender = wf_sender_new(s->slices.rounds, s->t->any_thread, exchange, s);
    ok = s->sender || no_memory(s);
    if (ok && open_own(s, o->options, o->micro_batches, o->pool)) return s;
    snprintf(message, MESSAGE, "%s", s->error);
    wf_sharded_free(s);
    return NULL;
}

void wf_sharded_free(wf_sharded *s) {
    if (!s) return;
    if (s->sender && wf_sender_begun(s->sender))
        wf_transport_fail(s->t, 1, "a training ended within an update");
    wf_sender_free(s->sender);
    for (int i = 0; s->add && i < s->slices.rounds; i++) wf_plan_free(s->add[i]);
    wf_plan_free(s->norm), wf_plan_free(s->update), wf_plan_free(s->average);
    wf_optimizer_free(&s->optimizer);
    wf_graph_free(s->own);
    wf_slices_free(&s->slices);
    free(s->pieces), free(s->first), free(s->leaves), free(s->add), free(s->missing);
    free(s->send), free(s->receive), free(s->send_at);
    free(s);
}

/* ---- what it takes --------------------------------------------------------------------------- */

size_t wf_sharded_memory(const wf_sharded *s) {
    if (wf_sender_begun(s->sender)) return 0;
    size_t bytes = 2 * (size_t)s->room;
    for (int i = 0; i < s->n_pieces; i++) {
        size_t piece = wf_bytes(s->leaves[i]);
        bytes += piece * (1 + (size_t)wf_shard_kept_count(s)) + wf_bytes(s->sums[i]);
    }
    for (int i = 0; i < s->slices.rounds; i++) bytes += s->add[i] ? wf_plan_memory(s->add[i]) : 0;
    wf_plan *const plans[] = { s->norm, s->update, s->average };
    for (int i = 0; i < 3; i++) bytes += plans[i] ? wf_plan_memory(plans[i]) : 0;
    return bytes;
}

int64_t wf_sharded_traffic(const wf_sharded *s, int64_t micro_batches) {
    if (micro_batches < 1) return 0;
    int ranks = s->slices.ranks, rank = s->t->rank;
    wf_blocks all = { 0, s->slices.first_block[s->slices.n] };
    wf_slice_sizes own = wf_slice_size(&s->slices, rank);
    int sums = wf_shard_nodes(micro_batches, rank, ranks).depth;
    int64_t squares = s->of->norm ? own.blocks : 0;
    int64_t reals = sums * (wf_slice_elements(&s->slices, all) - own.elements) +
                    (ranks - 1) * (own.elements + squares + sums);
    wf_range range = wf_rank_range(micro_batches, rank, ranks);
    int64_t doubles = (ranks - 1) * (2 + s->numbers * (range.to - range.from));
    return reals * (int64_t)s->real + doubles * (int64_t)sizeof(double);
}
