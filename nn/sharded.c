/* nn/sharded.c - an optimizer divided among ranks.
 *
 * A rank has a second, small graph: its pieces of the parameters as parameters, with an optimizer
 * over them whose gradients are sums that arrive. What travels does so in rounds (slices.h):
 *
 *     sums of micro-batches  --alltoallv-->  owners: accumulate, in the order of the tree
 *     square_sums of blocks  --allgatherv->  all: the norm
 *     pieces, updated        --allgatherv->  all: the parameters
 *
 * Transports move bytes; every sum is made by the ops that one process would use. */
#include "sharded.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/record/record.h"
#include "slices.h"
#include "sum_tree.h"

/* Blocks that travel at a time, of all slices together: 16 MB of f32. */
enum { IN_FLIGHT = 256, MESSAGE = 256 };

struct wf_sharded {
    wf_graph *graph; /* the model's */
    const wf_optimizer *of;
    wf_transport *t;
    wf_slices slices;
    size_t real;      /* bytes of an element */
    wf_sum_tree tree; /* of this rank's micro-batches */
    int64_t room;     /* bytes of each of: */
    char *send, *receive;
    int64_t *send_at, *receive_at; /* [ranks + 1] */
    /* the rank's own graph: NULL if it owns nothing */
    wf_graph *own;
    wf_optimizer optimizer;
    int n_pieces;
    wf_piece *pieces;
    int *first;                   /* [rounds + 1]: pieces of each round */
    wf_tensor **leaves, **values; /* [n_pieces]: parameters; what arrives of their gradients */
    wf_tensor **sums, **adds, **totals; /* [n_pieces] */
    wf_tensor *at, *count, *squares, *all_squares;
    wf_plan **add, *norm, *update, *average; /* add: [rounds] */
    char error[MESSAGE];
};

static bool failed(wf_sharded *s, const char *why) {
    snprintf(s->error, sizeof s->error, "%s", why);
    return false;
}

static bool no_memory(wf_sharded *s) {
    return failed(s, "out of memory");
}

static bool cut_off(wf_sharded *s) {
    return failed(s, wf_transport_error(s->t));
}

static int rank_of(const wf_sharded *s) {
    return wf_transport_rank(s->t);
}

/* ---- micro-batches ---------------------------------------------------------------------------- */

/* [of r / ranks, of (r + 1) / ranks), where the products may be too large. */
static wf_sum_node range_of(int64_t of, int rank, int ranks) {
    int64_t each = of / ranks, rest = of % ranks;
    return (wf_sum_node){ each * rank + rest * rank / ranks,
                          each * (rank + 1) + rest * (rank + 1) / ranks };
}

/* What a rank has to send, of an update of so many. */
static wf_sum_tree nodes_of(int64_t of, int rank, int ranks) {
    wf_sum_tree t = wf_sum_tree_of(of);
    wf_sum_node range = range_of(of, rank, ranks);
    for (int64_t i = range.from; i < range.to; i++) wf_sum_tree_push(&t, i, i + 1);
    return t;
}

int wf_sharded_partial_sums(int64_t micro_batches, int rank, int ranks) {
    int most = 1;
    for (int64_t of = 1; ranks > 0 && of <= micro_batches; of++) {
        wf_sum_node range = range_of(of, rank, ranks);
        int n = wf_sum_tree_height(range.from, range.to, of);
        if (n > most) most = n;
    }
    return most;
}

/* The same of an owner, to whom the sums of all ranks come. */
static int owner_sums(int64_t micro_batches, int ranks) {
    int most = 1;
    for (int64_t of = 1; of <= micro_batches; of++) {
        wf_sum_tree all = wf_sum_tree_of(of);
        for (int r = 0; r < ranks; r++) {
            wf_sum_tree t = nodes_of(of, r, ranks);
            for (int k = 0; k < t.depth; k++) {
                wf_sum_tree_push(&all, t.node[k].from, t.node[k].to);
                if (all.depth > most) most = all.depth;
            }
        }
    }
    return most;
}

void wf_sharded_range(const wf_sharded *s, int64_t micro_batches, int64_t *from, int64_t *to) {
    wf_sum_node range = { 0 };
    if (s && micro_batches > 0) range = range_of(micro_batches, rank_of(s), s->slices.ranks);
    *from = range.from, *to = range.to;
}

bool wf_sharded_feed(wf_sharded *s, wf_plan *p, int64_t i, int64_t micro_batches) {
    if (!s || micro_batches < 1) return false;
    wf_sum_node range = range_of(micro_batches, rank_of(s), s->slices.ranks);
    if (i < range.from || i >= range.to) return failed(s, "a micro-batch of another rank");
    if (i == range.from) s->tree = wf_sum_tree_of(micro_batches);
    double at[] = { s->tree.depth, wf_sum_tree_push(&s->tree, i, i + 1) };
    return wf_feed_reals(p, s->of->accumulation.at, at, 2) || failed(s, wf_plan_error(p));
}

/* ---- the rank's own graph --------------------------------------------------------------------- */

/* The pieces of this rank, round by round. */
static bool find_pieces(wf_sharded *s) {
    int n = 0;
    for (int pass = 0; pass < 2; pass++, n = 0) {
        for (int round = 0; round < s->slices.rounds; round++) {
            wf_blocks b = wf_slice_in_round(&s->slices, rank_of(s), round);
            wf_piece piece;
            if (pass) s->first[round] = n;
            while (wf_next_piece(&s->slices, &b, &piece)) {
                if (pass) s->pieces[n] = piece;
                n++;
            }
        }
        if (pass) return s->first[s->slices.rounds] = n, true;
        s->n_pieces = n;
        s->pieces = calloc((size_t)n + 1, sizeof *s->pieces);
        s->first = calloc((size_t)s->slices.rounds + 1, sizeof *s->first);
        s->leaves = calloc(5 * (size_t)n + 1, sizeof *s->leaves);
        s->add = calloc((size_t)s->slices.rounds + 1, sizeof *s->add);
        if (!s->pieces || !s->first || !s->leaves || !s->add) return false;
        s->values = s->leaves + n, s->sums = s->values + n;
        s->adds = s->sums + n, s->totals = s->adds + n;
    }
    return true;
}

/* A piece of a matrix is a matrix, which decays; its name tells which one. */
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
    s->sums[i] = wf_buffer(s->own, "sum", wf_real(s->own), ndim + 1, shape, wf_init_zeros());
    s->values[i] = wf_input(s->own, "value", wf_real(s->own), ndim, own);
    wf_scope(s->own, outer);
    s->adds[i] = wf_accumulate(s->sums[i], s->values[i], s->at);
    s->totals[i] = wf_squeeze(wf_slice(s->sums[i], 0, 0, 1), WF_AXIS(0));
    free(name);
}

/* The groups, by the names that the pieces have. */
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
    o.n_groups = groups_of(s, options, groups), o.groups = groups;
    o.partial_sums = 0;
    o.square_sums = s->all_squares;
    s->optimizer =
        wf_optimizer_from_gradients(s->own, s->totals, s->count, s->leaves, s->n_pieces, &o);
    free(groups);
    return wf_ok(s->own) || failed(s, wf_error(s->own));
}

static bool record(wf_sharded *s, const wf_optimizer_options *o, int64_t micro_batches) {
    wf_dtype real = wf_real(s->graph);
    int partial_sums = owner_sums(micro_batches, s->slices.ranks);
    s->own = wf_graph_new(&(wf_graph_options){ .real = real });
    s->at = wf_input(s->own, "at", real, 1, (int64_t[]){ 2 });
    s->count = wf_input(s->own, "count", real, 0, NULL);
    s->all_squares = wf_input(s->own, "squares", real, 1, &s->slices.first_block[s->slices.n]);
    for (int i = 0; i < s->n_pieces && wf_ok(s->own); i++) record_piece(s, i, partial_sums);
    if (!wf_ok(s->own)) return failed(s, wf_error(s->own));
    wf_tensor **squares = calloc((size_t)s->n_pieces, sizeof *squares);
    if (!squares) return no_memory(s);
    for (int i = 0; i < s->n_pieces; i++) squares[i] = wf_square_sums(s->totals[i]);
    s->squares = wf_concat(squares, s->n_pieces, 0);
    free(squares);
    return record_optimizer(s, o);
}

/* ---- its plans -------------------------------------------------------------------------------- */

static wf_plan *plan_of(wf_sharded *s, wf_tensor **fetch, int n_fetch, wf_tensor **feed, int n_feed,
                        wf_pool *pool) {
    return wf_plan_new(s->own, &(wf_plan_options){ .fetch = fetch,
                                                   .n_fetch = n_fetch,
                                                   .feed = feed,
                                                   .n_feed = n_feed,
                                                   .pool = pool,
                                                   .training = true });
}

/* list has room for all pieces and three more. */
static void make_plans(wf_sharded *s, wf_tensor **list, wf_pool *pool) {
    const wf_optimizer *o = &s->optimizer;
    int n = s->n_pieces;
    for (int round = 0; round < s->slices.rounds; round++) {
        int first = s->first[round], some = s->first[round + 1] - first;
        if (!some) continue;
        memcpy(list, s->values + first, (size_t)some * sizeof *list);
        list[some] = s->at;
        s->add[round] = plan_of(s, s->adds + first, some, list, some + 1, pool);
    }
    wf_tensor *feed[] = { o->rates, s->count, s->all_squares };
    if (o->norm) s->norm = plan_of(s, &s->squares, 1, NULL, 0, pool);
    memcpy(list, o->updates, (size_t)n * sizeof *list);
    list[n] = o->norm;
    s->update = plan_of(s, list, n + (o->norm != NULL), feed, o->norm ? 3 : 2, pool);
    if (o->averages.n)
        s->average = plan_of(s, o->averages.updates, n, (wf_tensor **)&o->averages.rate, 1, pool);
}

static bool plans_ok(wf_sharded *s) {
    wf_plan *const others[] = { s->norm, s->update, s->average };
    for (int i = 0; i < s->slices.rounds + 3; i++) {
        wf_plan *p = i < 3 ? others[i] : s->add[i - 3];
        if (p && !wf_plan_ok(p)) return failed(s, wf_plan_error(p));
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

/* ---- made and freed --------------------------------------------------------------------------- */

/* Moments of a parameter. */
static int moments_of(const wf_sharded *s) {
    return s->of->n_moments / s->of->n;
}

/* For the largest round: the sums of an update, or everything of a piece that is saved. */
static bool make_room(wf_sharded *s, int64_t micro_batches) {
    int ranks = s->slices.ranks, most = moments_of(s) + 1, received = 1;
    for (int64_t of = 1; of <= micro_batches; of++) {
        int all = 0;
        for (int r = 0; r < ranks; r++) {
            int n = nodes_of(of, r, ranks).depth;
            all += n;
            if (n > most) most = n;
        }
        if (all > received) received = all;
    }
    int64_t slice = s->slices.in_round * WF_SQUARE_BLOCK * (int64_t)s->real;
    if (most * ranks > received) received = most * ranks;
    s->room = slice * received + s->slices.first_block[s->slices.n] * (int64_t)s->real;
    s->send = malloc((size_t)s->room), s->receive = malloc((size_t)s->room);
    s->send_at = calloc(2 * ((size_t)ranks + 1), sizeof *s->send_at);
    s->receive_at = s->send_at ? s->send_at + ranks + 1 : NULL;
    return s->send && s->receive && s->send_at;
}

static const char *wrong(const wf_graph *g, const wf_optimizer *o, wf_tensor *const *params,
                         const wf_optimizer_options *options, int64_t micro_batches) {
    if (!g || !o || !params || !options) return "the graph or optimizer to be divided is NULL";
    if (!wf_ok(g)) return wf_error(g);
    if (!o->accumulation.at) return "the optimizer to be divided has no partial sums";
    return micro_batches < 1 ? "updates of no micro-batches" : NULL;
}

wf_sharded *wf_sharded_new(wf_graph *g, const wf_optimizer *o, wf_tensor *const *params,
                           const wf_optimizer_options *options, int64_t micro_batches,
                           wf_transport *t, wf_pool *pool, char *message) {
    const char *why = wrong(g, o, params, options, micro_batches);
    wf_sharded *s = why ? NULL : calloc(1, sizeof *s);
    snprintf(message, MESSAGE, "%s", why ? why : "out of memory");
    if (!s) return NULL;
    s->graph = g, s->of = o, s->t = t;
    s->real = wf_dtype_size(wf_real(g));
    s->tree = wf_sum_tree_of(micro_batches);
    bool ok = (wf_slices_new(&s->slices, params, o->n, wf_transport_size(t), IN_FLIGHT) &&
               find_pieces(s) && make_room(s, micro_batches)) ||
              no_memory(s);
    if (ok && open_own(s, options, micro_batches, pool) && wf_sharded_scatter(s)) return s;
    snprintf(message, MESSAGE, "%s", s->error);
    wf_sharded_free(s);
    return NULL;
}

void wf_sharded_free(wf_sharded *s) {
    if (!s) return;
    for (int i = 0; s->add && i < s->slices.rounds; i++) wf_plan_free(s->add[i]);
    wf_plan_free(s->norm), wf_plan_free(s->update), wf_plan_free(s->average);
    wf_optimizer_free(&s->optimizer);
    wf_graph_free(s->own);
    wf_slices_free(&s->slices);
    free(s->pieces), free(s->first), free(s->leaves), free(s->add);
    free(s->send), free(s->receive), free(s->send_at);
    free(s);
}

const char *wf_sharded_error(const wf_sharded *s) {
    return s ? s->error : "an optimizer to be divided is NULL";
}

/* ---- gradients to their owners ---------------------------------------------------------------- */

/* The k-th sum of this rank of a piece, in rows. */
static const char *sum_of(const wf_sharded *s, const wf_piece *piece, int k) {
    wf_tensor *sums = s->of->accumulation.sums[piece->param];
    int64_t first = k * wf_count(s->slices.params[piece->param]) + piece->first;
    return (const char *)leaf_of(sums)->data + (size_t)first * s->real;
}

/* What this rank has of another's slice in a round, of each of its sums. Returns where the next one
 * goes. */
static char *pack_sums(const wf_sharded *s, int owner, int round, char *to) {
    wf_piece piece;
    for (int k = 0; owner != rank_of(s) && k < s->tree.depth; k++) {
        wf_blocks b = wf_slice_in_round(&s->slices, owner, round);
        while (wf_next_piece(&s->slices, &b, &piece)) {
            memcpy(to, sum_of(s, &piece, k), (size_t)piece.n * s->real);
            to += (size_t)piece.n * s->real;
        }
    }
    return to;
}

/* A sum of this rank, where it is, or one that has arrived. */
static bool add_sum(wf_sharded *s, int round, const double at[2], int own, const char *from) {
    wf_plan *p = s->add[round];
    for (int i = s->first[round]; i < s->first[round + 1]; i++) {
        size_t bytes = (size_t)s->pieces[i].n * s->real;
        const char *values = from ? from : sum_of(s, &s->pieces[i], own);
        if (!wf_feed(p, s->values[i], values, bytes)) return failed(s, wf_plan_error(p));
        if (from) from += bytes;
    }
    return (wf_feed_reals(p, s->at, at, 2) && wf_run(p)) || failed(s, wf_plan_error(p));
}

static bool add_sums(wf_sharded *s, int round, int64_t micro_batches, int64_t elements) {
    wf_sum_tree all = wf_sum_tree_of(micro_batches);
    const char *from = s->receive;
    for (int r = 0; r < s->slices.ranks; r++) {
        bool own = r == rank_of(s);
        wf_sum_tree t = nodes_of(micro_batches, r, s->slices.ranks);
        for (int k = 0; k < t.depth; k++) {
            double at[] = { all.depth, wf_sum_tree_push(&all, t.node[k].from, t.node[k].to) };
            if (!add_sum(s, round, at, k, own ? NULL : from)) return false;
            if (!own) from += (size_t)elements * s->real;
        }
    }
    return true;
}

static bool exchange_round(wf_sharded *s, int round, int64_t micro_batches) {
    int ranks = s->slices.ranks;
    wf_blocks own = wf_slice_in_round(&s->slices, rank_of(s), round);
    int64_t elements = wf_slice_elements(&s->slices, own);
    char *to = s->send;
    for (int r = 0; r < ranks; r++) {
        int sums = r == rank_of(s) ? 0 : nodes_of(micro_batches, r, ranks).depth;
        to = pack_sums(s, r, round, to);
        s->send_at[r + 1] = to - s->send;
        s->receive_at[r + 1] = s->receive_at[r] + sums * elements * (int64_t)s->real;
    }
    if (!wf_alltoallv(s->t, s->send, s->send_at, s->receive, s->receive_at)) return cut_off(s);
    return !elements || add_sums(s, round, micro_batches, elements);
}

/* ---- numbers that all ranks need -------------------------------------------------------------- */

static double real_at(const wf_sharded *s, const void *x, int64_t i) {
    return s->real == sizeof(double) ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

/* The counts of the sums of all ranks, added as the sums are. A sum of two floats, made in double and
 * rounded, is their sum in float. */
static bool add_counts(wf_sharded *s, int64_t micro_batches, double *total) {
    wf_sum_tree all = wf_sum_tree_of(micro_batches);
    double stack[WF_SUM_TREE_DEPTH];
    int64_t at = 0;
    for (int r = 0; r < s->slices.ranks; r++)
        s->receive_at[r + 1] =
            s->receive_at[r] + nodes_of(micro_batches, r, s->slices.ranks).depth * (int64_t)s->real;
    wf_read_part(s->of->accumulation.sums[s->of->n], 0, s->tree.depth, s->send);
    if (!wf_allgatherv(s->t, s->send, s->receive, s->receive_at)) return cut_off(s);
    for (int r = 0; r < s->slices.ranks; r++) {
        wf_sum_tree t = nodes_of(micro_batches, r, s->slices.ranks);
        for (int k = 0; k < t.depth; k++) {
            double sum = real_at(s, s->receive, at++);
            int depth = all.depth, added = wf_sum_tree_push(&all, t.node[k].from, t.node[k].to);
            for (int i = 1; i <= added; i++) {
                sum += stack[depth - i];
                if (s->real == sizeof(float)) sum = (double)(float)sum;
            }
            stack[depth - added] = sum;
        }
    }
    *total = stack[0];
    return true;
}

/* Of all blocks, in s->receive. */
static bool gather_squares(wf_sharded *s) {
    for (int r = 0; r < s->slices.ranks; r++)
        s->receive_at[r + 1] = wf_slice_of(&s->slices, r).to * (int64_t)s->real;
    size_t bytes = (size_t)(s->receive_at[rank_of(s) + 1] - s->receive_at[rank_of(s)]);
    if (s->own && !(wf_run(s->norm) && wf_fetch(s->norm, s->squares, s->send, bytes)))
        return failed(s, wf_plan_error(s->norm));
    return wf_allgatherv(s->t, s->send, s->receive, s->receive_at) || cut_off(s);
}

/* Is all well on all ranks? And the norm, from one that computed it. */
static bool agree(wf_sharded *s, bool ok, double *norm) {
    double mine[] = { ok, s->own && s->optimizer.norm ? *norm : NAN };
    double *all = (double *)(void *)s->receive;
    for (int r = 0; r < s->slices.ranks; r++) s->receive_at[r + 1] = (r + 1) * (int64_t)sizeof mine;
    if (!wf_allgatherv(s->t, mine, all, s->receive_at)) return cut_off(s);
    *norm = all[1];
    for (int r = 0; r < s->slices.ranks; r++)
        if (all[2 * r] == 0) return ok ? failed(s, "the update failed on another rank") : false;
    return true;
}

/* ---- an update -------------------------------------------------------------------------------- */

static bool update_own(wf_sharded *s, double count, const double rates[3], double *norm) {
    const wf_optimizer *o = &s->optimizer;
    wf_plan *p = s->update;
    float single;
    if (!s->own) return true;
    bool ok = wf_feed_reals(p, o->rates, rates, 3) && wf_feed_reals(p, s->count, &count, 1);
    if (ok && o->norm)
        ok = wf_feed(p, s->all_squares, s->receive, wf_bound_bytes(p, s->all_squares));
    ok = ok && wf_run(p);
    if (ok && o->norm && s->real == sizeof *norm) ok = wf_fetch(p, o->norm, norm, sizeof *norm);
    if (ok && o->norm && s->real == sizeof single) {
        ok = wf_fetch(p, o->norm, &single, sizeof single);
        *norm = (double)single;
    }
    return ok || failed(s, wf_plan_error(p));
}

/* The owners' pieces to the parameters of all ranks. */
static bool spread_round(wf_sharded *s, int round) {
    wf_piece piece;
    for (int r = 0; r < s->slices.ranks; r++) {
        wf_blocks b = wf_slice_in_round(&s->slices, r, round);
        s->receive_at[r + 1] =
            s->receive_at[r] + wf_slice_elements(&s->slices, b) * (int64_t)s->real;
    }
    char *own = s->receive + s->receive_at[rank_of(s)], *to = own;
    for (int i = s->first[round]; i < s->first[round + 1]; i++) {
        wf_read_part(s->leaves[i], 0, s->pieces[i].n, to);
        to += (size_t)s->pieces[i].n * s->real;
    }
    if (!wf_allgatherv(s->t, own, s->receive, s->receive_at)) return cut_off(s);
    const char *from = s->receive;
    for (int r = 0; r < s->slices.ranks; r++) {
        wf_blocks b = wf_slice_in_round(&s->slices, r, round);
        while (wf_next_piece(&s->slices, &b, &piece)) {
            wf_write_part(s->slices.params[piece.param], piece.first, piece.n, from);
            from += (size_t)piece.n * s->real;
        }
    }
    return true;
}

static bool spread(wf_sharded *s) {
    for (int round = 0; round < s->slices.rounds; round++)
        if (!spread_round(s, round)) return false;
    return true;
}

/* A failure on this rank alone must reach the others, who wait for it. */
static bool told(wf_sharded *s, bool ok) {
    if (!ok && !(s->t && s->t->code)) wf_transport_fail(s->t, 1, s->error);
    return ok;
}

bool wf_sharded_update(wf_sharded *s, int64_t micro_batches, const double rates[3], double *norm) {
    double count = 0, unseen;
    if (!norm) norm = &unseen;
    *norm = NAN;
    if (!s || micro_batches < 1) return false;
    s->error[0] = '\0';
    wf_sum_node range = range_of(micro_batches, rank_of(s), s->slices.ranks);
    if (range.from == range.to) s->tree = wf_sum_tree_of(micro_batches);
    for (int round = 0; round < s->slices.rounds; round++)
        if (!told(s, exchange_round(s, round, micro_batches))) return false;
    if (!told(s, add_counts(s, micro_batches, &count))) return false;
    if (s->of->norm && !told(s, gather_squares(s))) return false;
    bool ok = update_own(s, count, rates, norm);
    return agree(s, ok, norm) && spread(s);
}

/* ---- averages --------------------------------------------------------------------------------- */

bool wf_sharded_average(wf_sharded *s, double rate) {
    if (!s || !s->average) return s;
    return (wf_feed_reals(s->average, s->optimizer.averages.rate, &rate, 1) &&
            wf_run(s->average)) ||
           failed(s, wf_plan_error(s->average));
}

bool wf_sharded_swap_averages(wf_sharded *s) {
    if (!s || !s->of->averages.n) return false;
    if (s->own && !wf_optimizer_swap_averages(&s->optimizer)) return told(s, no_memory(s));
    return spread(s);
}

/* ---- to and from the model's graph ------------------------------------------------------------ */

/* The buffers that a checkpoint holds of a parameter, here and in the model's graph. */
static int kept_of(const wf_sharded *s) {
    return moments_of(s) + (s->of->averages.n > 0);
}

static wf_tensor *kept(const wf_optimizer *o, int i, int k) {
    int moments = o->n_moments / o->n;
    return k < moments ? o->moments[i * moments + k] : o->averages.values[i];
}

static bool gather_round(wf_sharded *s, int round) {
    wf_piece piece;
    char *to = s->send;
    int all = kept_of(s);
    for (int i = s->first[round]; i < s->first[round + 1]; i++)
        for (int k = 0; k < all; k++) {
            wf_read_part(kept(&s->optimizer, i, k), 0, s->pieces[i].n, to);
            to += (size_t)s->pieces[i].n * s->real;
        }
    for (int r = 0; r < s->slices.ranks; r++) {
        wf_blocks b = wf_slice_in_round(&s->slices, r, round);
        int64_t bytes = all * wf_slice_elements(&s->slices, b) * (int64_t)s->real;
        s->send_at[r + 1] = to - s->send;
        s->receive_at[r + 1] = s->receive_at[r] + (rank_of(s) == 0 ? bytes : 0);
    }
    if (!wf_alltoallv(s->t, s->send, s->send_at, s->receive, s->receive_at)) return cut_off(s);
    const char *from = s->receive;
    for (int r = 0; r < s->slices.ranks && rank_of(s) == 0; r++) {
        wf_blocks b = wf_slice_in_round(&s->slices, r, round);
        while (wf_next_piece(&s->slices, &b, &piece))
            for (int k = 0; k < all; k++, from += (size_t)piece.n * s->real)
                if (!wf_write_part(kept(s->of, piece.param, k), piece.first, piece.n, from))
                    return no_memory(s);
    }
    return true;
}

bool wf_sharded_gather(wf_sharded *s) {
    if (!s) return false;
    for (int round = 0; kept_of(s) && round < s->slices.rounds; round++)
        if (!told(s, gather_round(s, round))) return false;
    return true;
}

void wf_sharded_release(wf_sharded *s) {
    for (int i = 0; s && i < s->of->n; i++)
        for (int k = 0; k < kept_of(s); k++) wf_leaf_forget(kept(s->of, i, k));
}

/* A piece of a leaf of the model's graph; one that has no values yet has its initial ones. */
static bool take(wf_sharded *s, const wf_piece *piece, wf_tensor *from, wf_tensor *to) {
    if (from->kind == WF_BUFFER && !leaf_of(from)->data) return true;
    char *at = s->send;
    int64_t most = s->room / (int64_t)s->real;
    for (int64_t done = 0, n; done < piece->n; done += n) {
        n = piece->n - done < most ? piece->n - done : most;
        if (!wf_read_part(from, piece->first + done, n, at) || !wf_write_part(to, done, n, at))
            return failed(s, "out of memory, or a parameter is not in rows");
    }
    return true;
}

bool wf_sharded_scatter(wf_sharded *s) {
    if (!s) return false;
    for (int i = 0; i < s->n_pieces; i++) {
        int param = s->pieces[i].param;
        if (!take(s, &s->pieces[i], s->slices.params[param], s->leaves[i])) return false;
        for (int k = 0; k < kept_of(s); k++)
            if (!take(s, &s->pieces[i], kept(s->of, param, k), kept(&s->optimizer, i, k)))
                return false;
    }
    wf_sharded_release(s);
    return true;
}

/* ---- what it takes ---------------------------------------------------------------------------- */

size_t wf_sharded_memory(const wf_sharded *s) {
    if (!s) return 0;
    size_t bytes = 2 * (size_t)s->room;
    for (int i = 0; i < s->n_pieces; i++) {
        size_t piece = wf_bytes(s->leaves[i]);
        bytes += piece * (1 + (size_t)kept_of(s)) + wf_bytes(s->sums[i]);
    }
    for (int i = 0; i < s->slices.rounds; i++) bytes += s->add[i] ? wf_plan_memory(s->add[i]) : 0;
    wf_plan *const plans[] = { s->norm, s->update, s->average };
    for (int i = 0; i < 3; i++) bytes += plans[i] ? wf_plan_memory(plans[i]) : 0;
    return bytes;
}

int64_t wf_sharded_traffic(const wf_sharded *s, int64_t micro_batches) {
    if (!s || micro_batches < 1) return 0;
    int ranks = s->slices.ranks, rank = rank_of(s);
    int64_t all =
        wf_slice_elements(&s->slices, (wf_blocks){ 0, s->slices.first_block[s->slices.n] });
    wf_blocks slice = wf_slice_of(&s->slices, rank);
    int64_t own = wf_slice_elements(&s->slices, slice);
    int sums = nodes_of(micro_batches, rank, ranks).depth;
    int64_t squares = s->of->norm ? slice.to - slice.from : 0;
    int64_t reals = sums * (all - own) + (ranks - 1) * (own + squares + sums);
    return reals * (int64_t)s->real + (ranks - 1) * 2 * (int64_t)sizeof(double);
}
