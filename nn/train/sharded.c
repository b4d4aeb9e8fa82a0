/* nn/train/sharded.c - an optimizer sharded among ranks: the exchanges between them.
 *
 * A rank has a second, small graph (rank_graph.c). Its parameters are the rank's pieces of the
 * parameters, and its optimizer uses gradient sums that other ranks send. Exchanges are made in
 * rounds (slices.h):
 *
 *     sums of micro-batches  --alltoallv-->  owners: accumulate, in the order of the tree
 *     square_sums of blocks  --allgatherv->  all: the norm
 *     pieces, updated        --allgatherv->  all: the parameters
 *
 * The first exchange takes longest, so it begins during the backward pass of the last micro-batch:
 * the plan reports each node that it has computed (wf_plan_watch), and a round is sent (sender.h)
 * once its sums are computed.
 *
 * Transports move bytes; every sum of gradients is made by the ops that one process would use. */
#include "sharded.h"
#include "core/graph_internal.h"
#include "core/run_internal.h"
#include "core/transport_internal.h"
#include "nn/optimizer_internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/lend.h"

/* The reason why a collective has failed. A program's own transport may have given none. */
static const char *cut_off_by(const wf_sharded *s) {
    const char *why = wf_transport_error(s->t);
    return *why ? why : "a collective of the transport has failed";
}

static bool cut_off(wf_sharded *s) {
    return wf_shard_failed(s, cut_off_by(s));
}

/* Returns ok. If it is false and the transport has not failed yet, fails the transport, because the
 * other ranks wait for this one. Called by the thread that currently uses the transport. */
static bool told_why(wf_sharded *s, bool ok, const char *why) {
    if (!ok && !s->t->code) wf_transport_fail(s->t, 1, why);
    return ok;
}

static bool told(wf_sharded *s, bool ok) {
    return told_why(s, ok, s->error);
}

/* While the last micro-batch runs, and until the update has finished the exchange, the sender's
 * thread uses the transport and the exchange buffers, so other calls are refused. */
bool wf_sharded_in_update(wf_sharded *s) {
    if (!wf_sender_begun(s->sender)) return false;
    wf_shard_failed(s, "the last micro-batch of an update was added: wf_trainer_update");
    return true;
}

/* ---- micro-batches --------------------------------------------------------------------------- */

void wf_sharded_range(const wf_sharded *s, int64_t micro_batches, int64_t *from, int64_t *to) {
    wf_range range = wf_rank_range(micro_batches, s->t->rank, s->slices.ranks);
    *from = range.from;
    *to = range.to;
}

/* Begins an exchange in which no round is ready yet. */
static void begin(wf_sharded *s, int64_t micro_batches) {
    s->micro_batches = micro_batches;
    s->ready = 0;
    s->unsummed = s->of->n;
    s->exchanged = s->t->seconds;
    memset(s->missing, 0, (size_t)s->slices.rounds * sizeof *s->missing);
    for (int round = 0; round < s->slices.rounds; round++) {
        wf_blocks b = wf_round_of(&s->slices, round);
        wf_piece piece;
        while (wf_next_piece(&s->slices, &b, &piece)) s->missing[round]++;
    }
}

/* Notes that all gradient sums of a parameter are computed. The rounds of the exchange that contain
 * its blocks have one parameter less to wait for. A round may be sent when it waits for none, in
 * order. */
static void is_summed(wf_sharded *s, int param) {
    int64_t from = s->slices.first_block[param], to = s->slices.first_block[param + 1];
    for (int round = 0; round < s->slices.rounds && from < to; round++) {
        wf_blocks b = wf_round_of(&s->slices, round);
        s->missing[round] -= b.from < to && from < b.to;
    }
    int was = s->ready;
    while (s->ready < s->slices.rounds && s->missing[s->ready] == 0) s->ready++;
    if (s->ready > was) wf_sender_ready(s->sender, s->ready);
}

static void computed(void *sharded, const wf_tensor *node) {
    wf_sharded *s = sharded;
    for (int i = 0; i < s->of->n && s->unsummed > 0; i++) {
        if (node != s->parts->adds[i]) continue;
        s->unsummed--;
        is_summed(s, i);
    }
}

/* The micro-batch that must be fed next. */
static int64_t next_of(const wf_sharded *s, int64_t from) {
    return s->tree.depth ? s->tree.node[s->tree.depth - 1].to : from;
}

bool wf_sharded_feed(wf_sharded *s, wf_plan *p, int64_t i, int64_t micro_batches) {
    if (micro_batches < 1) return false;
    wf_range range = wf_rank_range(micro_batches, s->t->rank, s->slices.ranks);
    if (i < range.from || i >= range.to) return wf_shard_failed(s, "a micro-batch of another rank");
    if (wf_sharded_in_update(s)) return false;
    if (i == range.from) s->tree = wf_sum_tree_of(micro_batches);
    if (s->tree.end != micro_batches || i != next_of(s, range.from))
        return wf_shard_failed(s, "micro-batches are fed in order, each once");
    bool last = i == range.to - 1 && wf_sender_threaded(s->sender);
    if (last) begin(s, micro_batches);
    wf_plan_watch(p, last ? computed : NULL, s);
    double at[] = { s->tree.depth, wf_sum_tree_push(&s->tree, i, i + 1) };
    return wf_feed_reals(p, s->parts->at, at, 2) || wf_shard_failed(s, wf_plan_error(p));
}

/* ---- gradients to their owners --------------------------------------------------------------- */

/* A pointer to the elements of a piece in the k-th partial sum on this rank's stack. */
static const char *sum_of(const wf_sharded *s, const wf_piece *piece, int k) {
    wf_tensor *sums = s->parts->sums[piece->param];
    int64_t first = k * wf_count(s->slices.params[piece->param]) + piece->first;
    assert(k < s->tree.depth && wf_leaf_lent(sums));
    return (const char *)wf_leaf_lent(sums) + (size_t)first * s->real;
}

/* Packs those parts of this rank's partial sums that the rank `owner` owns in this round; nothing
 * if that is this rank. Returns the end of the packed data. */
static char *pack_sums(const wf_sharded *s, int owner, int round, char *to) {
    wf_piece piece;
    for (int k = 0; owner != s->t->rank && k < s->tree.depth; k++) {
        wf_blocks b = wf_slice_in_round(&s->slices, owner, round);
        while (wf_next_piece(&s->slices, &b, &piece)) {
            memcpy(to, sum_of(s, &piece, k), (size_t)piece.n * s->real);
            to += (size_t)piece.n * s->real;
        }
    }
    return to;
}

/* Records the error of an exchange; returns false. It does not use s->error, because another thread
 * may write that meanwhile. */
static bool exchange_failed(wf_sharded *s, const char *why) {
    snprintf(s->exchange_error, sizeof s->exchange_error, "%s", why);
    return false;
}

/* Adds a partial sum to the stack of this rank's slice. `from` points to a received sum; NULL: the
 * sum is number `own` on the stack of this rank's micro-batches. */
static bool add_sum(wf_sharded *s, int round, const double at[2], int own, const char *from) {
    wf_plan *p = s->add[round];
    for (int i = s->first[round]; i < s->first[round + 1]; i++) {
        size_t bytes = (size_t)s->pieces[i].n * s->real;
        const char *values = from ? from : sum_of(s, &s->pieces[i], own);
        if (!wf_feed(p, s->values[i], values, bytes)) return exchange_failed(s, wf_plan_error(p));
        if (from) from += bytes;
    }
    return (wf_feed_reals(p, s->at, at, 2) && wf_run(p)) || exchange_failed(s, wf_plan_error(p));
}

static bool add_sums(wf_sharded *s, int round, int64_t micro_batches, int64_t elements) {
    wf_sum_tree all = wf_sum_tree_of(micro_batches);
    const char *from = s->receive;
    for (int r = 0; r < s->slices.ranks; r++) {
        bool own = r == s->t->rank;
        wf_sum_tree t = wf_shard_nodes(micro_batches, r, s->slices.ranks);
        for (int k = 0; k < t.depth; k++) {
            double at[] = { all.depth, wf_sum_tree_push(&all, t.node[k].from, t.node[k].to) };
            if (!add_sum(s, round, at, k, own ? NULL : from)) return false;
            if (!own) from += (size_t)elements * s->real;
        }
    }
    return true;
}

static bool exchange_round(wf_sharded *s, int round) {
    int ranks = s->slices.ranks;
    wf_blocks own = wf_slice_in_round(&s->slices, s->t->rank, round);
    int64_t elements = wf_slice_elements(&s->slices, own), micro_batches = s->micro_batches;
    char *to = s->send;
    for (int r = 0; r < ranks; r++) {
        int sums = r == s->t->rank ? 0 : wf_shard_nodes(micro_batches, r, ranks).depth;
        to = pack_sums(s, r, round, to);
        s->send_at[r + 1] = to - s->send;
        s->receive_at[r + 1] = s->receive_at[r] + sums * elements * (int64_t)s->real;
    }
    if (!wf_alltoallv(s->t, s->send, s->send_at, s->receive, s->receive_at))
        return exchange_failed(s, cut_off_by(s));
    return !elements || add_sums(s, round, micro_batches, elements);
}

/* Sends the gradient sums of a round (slices.h) to their owners, and adds those that this rank
 * owns. */
static bool exchange(void *sharded, int round) {
    wf_sharded *s = sharded;
    return told_why(s, exchange_round(s, round), s->exchange_error);
}

/* ---- numbers that all ranks need ------------------------------------------------------------- */

static double real_at(const wf_sharded *s, const void *x, int64_t i) {
    return s->real == sizeof(double) ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

/* Add the counts of all ranks in the same order as the gradients. Two floats added in double and
 * then rounded give their sum in float, so the bits are those of one process. */
static bool add_counts(wf_sharded *s, int64_t micro_batches, double *total) {
    wf_sum_tree all = wf_sum_tree_of(micro_batches);
    double stack[WF_SUM_TREE_DEPTH];
    int64_t at = 0;
    for (int r = 0; r < s->slices.ranks; r++)
        s->receive_at[r + 1] =
            s->receive_at[r] +
            wf_shard_nodes(micro_batches, r, s->slices.ranks).depth * (int64_t)s->real;
    if (!wf_read_part(s->parts->sums[s->of->n], 0, s->tree.depth, s->send))
        return wf_shard_failed(s, "out of memory");
    if (!wf_allgatherv(s->t, s->send, s->receive, s->receive_at)) return cut_off(s);
    for (int r = 0; r < s->slices.ranks; r++) {
        wf_sum_tree t = wf_shard_nodes(micro_batches, r, s->slices.ranks);
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

/* Gathers the sums of squares of all blocks into s->send, in the order of the blocks. */
static bool gather_squares(wf_sharded *s) {
    for (int r = 0; r < s->slices.ranks; r++)
        s->receive_at[r + 1] =
            s->receive_at[r] + wf_slice_size(&s->slices, r).blocks * (int64_t)s->real;
    char *own = s->receive + s->receive_at[s->t->rank];
    size_t bytes = (size_t)(s->receive_at[s->t->rank + 1] - s->receive_at[s->t->rank]);
    if (s->own && !(wf_run(s->norm) && wf_fetch(s->norm, s->squares, own, bytes)))
        return wf_shard_failed(s, wf_plan_error(s->norm));
    if (!wf_allgatherv(s->t, own, s->receive, s->receive_at)) return cut_off(s);
    const char *from = s->receive;
    for (int r = 0; r < s->slices.ranks; r++)
        for (int round = 0; round < s->slices.rounds; round++) {
            wf_blocks b = wf_slice_in_round(&s->slices, r, round);
            size_t size = (size_t)(b.to - b.from) * s->real;
            memcpy(s->send + (size_t)b.from * s->real, from, size);
            from += size;
        }
    return true;
}

/* True on all ranks if `ok` is true on all of them. Also gives all ranks the norm that rank 0
 * computed, and the `numbers` of each micro-batch, from the rank that ran it. */
static bool agree(wf_sharded *s, int64_t micro_batches, bool ok, double *norm, double *numbers) {
    double *mine = (double *)(void *)s->send, *all = (double *)(void *)s->receive;
    wf_range own = wf_rank_range(micro_batches, s->t->rank, s->slices.ranks);
    const size_t row = (size_t)s->numbers * sizeof(double);
    mine[0] = ok;
    mine[1] = s->own && s->optimizer.norm ? *norm : NAN;
    if (own.to > own.from)
        memcpy(mine + 2, numbers + own.from * s->numbers, (size_t)(own.to - own.from) * row);
    for (int r = 0; r < s->slices.ranks; r++) {
        wf_range range = wf_rank_range(micro_batches, r, s->slices.ranks);
        s->receive_at[r + 1] =
            s->receive_at[r] + 2 * (int64_t)sizeof(double) + (range.to - range.from) * (int64_t)row;
    }
    if (!wf_allgatherv(s->t, mine, all, s->receive_at)) return told(s, cut_off(s));
    bool all_ok = true;
    *norm = all[1];
    for (int r = 0; r < s->slices.ranks; r++) {
        int64_t n = (s->receive_at[r + 1] - s->receive_at[r]) / (int64_t)sizeof(double) - 2;
        all_ok &= all[0] != 0;
        memcpy(numbers, all + 2, (size_t)n * sizeof *numbers);
        numbers += n;
        all += n + 2;
    }
    return all_ok || (ok ? wf_shard_failed(s, "the update failed on another rank") : false);
}

bool wf_sharded_agree(wf_sharded *s, bool yes) {
    bool *all = (bool *)s->receive;
    if (!wf_allgather(s->t, &yes, all, sizeof yes)) return cut_off(s);
    return all[0];
}

/* ---- an update ------------------------------------------------------------------------------- */

static bool update_own(wf_sharded *s, double count, const double rates[3], double *norm) {
    const wf_optimizer *o = &s->optimizer;
    wf_plan *p = s->update;
    if (!s->own) return true;
    bool ok = wf_feed_reals(p, o->rates, rates, 3) && wf_feed_reals(p, s->count, &count, 1);
    if (ok && o->norm) ok = wf_feed(p, s->all_squares, s->send, wf_bound_bytes(p, s->all_squares));
    ok = ok && wf_run(p) && (!o->norm || wf_fetch_real(p, o->norm, norm));
    return ok || wf_shard_failed(s, wf_plan_error(p));
}

/* Sends the owners' updated pieces to all ranks, for one round. */
static bool spread_round(wf_sharded *s, int round) {
    wf_piece piece;
    for (int r = 0; r < s->slices.ranks; r++) {
        wf_blocks b = wf_slice_in_round(&s->slices, r, round);
        s->receive_at[r + 1] =
            s->receive_at[r] + wf_slice_elements(&s->slices, b) * (int64_t)s->real;
    }
    char *own = s->receive + s->receive_at[s->t->rank], *to = own;
    bool ok = true;
    for (int i = s->first[round]; i < s->first[round + 1]; i++) {
        ok &= wf_read_part(s->leaves[i], 0, s->pieces[i].n, to);
        to += (size_t)s->pieces[i].n * s->real;
    }
    if (!wf_allgatherv(s->t, own, s->receive, s->receive_at)) return cut_off(s);
    const char *from = s->receive;
    for (int r = 0; r < s->slices.ranks; r++) {
        wf_blocks b = wf_slice_in_round(&s->slices, r, round);
        while (wf_next_piece(&s->slices, &b, &piece)) {
            ok &= wf_write_part(s->slices.params[piece.param], piece.first, piece.n, from);
            from += (size_t)piece.n * s->real;
        }
    }
    return ok || wf_shard_failed(s, "a parameter has no memory, or is not in rows");
}

static bool spread(wf_sharded *s) {
    for (int round = 0; round < s->slices.rounds; round++)
        if (!told(s, spread_round(s, round))) return false;
    return true;
}

/* True if this rank has fed all of its micro-batches of an update with this many micro-batches. */
static bool all_are_summed(wf_sharded *s, int64_t micro_batches) {
    wf_range range = wf_rank_range(micro_batches, s->t->rank, s->slices.ranks);
    if (range.from == range.to) s->tree = wf_sum_tree_of(micro_batches);
    int64_t to = next_of(s, range.from);
    return micro_batches <= s->most && s->tree.end == micro_batches && to == range.to;
}

/* Makes the update fail on all ranks, and ends an exchange that has begun. */
static bool refuse(wf_sharded *s) {
    const char *why = "an update is not of the micro-batches that were summed";
    wf_transport_fail(s->t, 1, why);
    if (wf_sender_begun(s->sender)) wf_sender_finish(s->sender);
    return wf_shard_failed(s, why);
}

/* Finish the exchange. s->hidden counts the time of its collectives minus the time of waiting here:
 * for at least so long the exchange overlapped with the last micro-batch. */
static bool finish_exchange(wf_sharded *s, int64_t micro_batches) {
    double began = wf_seconds_now();
    if (!wf_sender_begun(s->sender)) begin(s, micro_batches);
    bool ok = wf_sender_finish(s->sender);
    double waited = wf_seconds_now() - began;
    double exchanging = s->t->seconds - s->exchanged;
    if (exchanging > waited) s->hidden += exchanging - waited;
    return ok || wf_shard_failed(s, s->exchange_error);
}

bool wf_sharded_update(wf_sharded *s, int64_t micro_batches, const double rates[3], double *norm,
                       double *numbers) {
    double count = 0;
    *norm = NAN;
    if (micro_batches < 1) return false;
    s->error[0] = '\0';
    if (!all_are_summed(s, micro_batches)) return refuse(s);
    if (!finish_exchange(s, micro_batches)) return false;
    if (!told(s, add_counts(s, micro_batches, &count))) return false;
    if (s->of->norm && !told(s, gather_squares(s))) return false;
    bool ok = update_own(s, count, rates, norm);
    return agree(s, micro_batches, ok, norm, numbers) && spread(s);
}

/* ---- averages -------------------------------------------------------------------------------- */

bool wf_sharded_average(wf_sharded *s, double rate) {
    if (!s->average) return true;
    if (wf_sharded_in_update(s)) return false;
    return (wf_feed_reals(s->average, s->optimizer.average_rate, &rate, 1) && wf_run(s->average)) ||
           wf_shard_failed(s, wf_plan_error(s->average));
}

bool wf_sharded_swap_averages(wf_sharded *s) {
    if (!s->of->averages || wf_sharded_in_update(s)) return false;
    if (s->own && !wf_optimizer_swap_averages(&s->optimizer))
        return told(s, wf_shard_failed(s, "out of memory"));
    return spread(s);
}

/* ---- to and from the model's graph ----------------------------------------------------------- */

static bool gather_round(wf_sharded *s, int round) {
    wf_piece piece;
    char *to = s->send;
    int all = wf_shard_kept_count(s);
    for (int i = s->first[round]; i < s->first[round + 1]; i++)
        for (int k = 0; k < all; k++) {
            if (!wf_read_part(wf_shard_kept(&s->optimizer, i, k), 0, s->pieces[i].n, to))
                return wf_shard_failed(s, "out of memory");
            to += (size_t)s->pieces[i].n * s->real;
        }
    for (int r = 0; r < s->slices.ranks; r++) {
        wf_blocks b = wf_slice_in_round(&s->slices, r, round);
        int64_t bytes = all * wf_slice_elements(&s->slices, b) * (int64_t)s->real;
        s->send_at[r + 1] = to - s->send;
        s->receive_at[r + 1] = s->receive_at[r] + (s->t->rank == 0 ? bytes : 0);
    }
    if (!wf_alltoallv(s->t, s->send, s->send_at, s->receive, s->receive_at)) return cut_off(s);
    const char *from = s->receive;
    for (int r = 0; r < s->slices.ranks && s->t->rank == 0; r++) {
        wf_blocks b = wf_slice_in_round(&s->slices, r, round);
        while (wf_next_piece(&s->slices, &b, &piece))
            for (int k = 0; k < all; k++, from += (size_t)piece.n * s->real)
                if (!wf_write_part(wf_shard_kept(s->of, piece.param, k), piece.first, piece.n,
                                   from))
                    return wf_shard_failed(s, "out of memory");
    }
    return true;
}

bool wf_sharded_gather(wf_sharded *s) {
    if (wf_sharded_in_update(s)) return false;
    for (int round = 0; wf_shard_kept_count(s) && round < s->slices.rounds; round++)
        if (!told(s, gather_round(s, round))) return false;
    return true;
}

void wf_sharded_release(wf_sharded *s) {
    for (int i = 0; i < s->of->n; i++)
        for (int k = 0; k < wf_shard_kept_count(s); k++) wf_leaf_forget(wf_shard_kept(s->of, i, k));
}

/* Copy a piece of a parameter or buffer from the model's graph to the rank's own graph. A parameter
 * without values gives its initial ones; a buffer without values is not copied. */
static bool take(wf_sharded *s, const wf_piece *piece, wf_tensor *from, wf_tensor *to) {
    if (from->kind == WF_BUFFER && !wf_leaf_lent(from)) return true;
    char *at = s->send;
    int64_t most = s->room / (int64_t)s->real;
    for (int64_t done = 0, n; done < piece->n; done += n) {
        n = piece->n - done < most ? piece->n - done : most;
        if (!wf_read_part(from, piece->first + done, n, at) || !wf_write_part(to, done, n, at))
            return wf_shard_failed(s, "out of memory, or a parameter is not in rows");
    }
    return true;
}

bool wf_sharded_scatter(wf_sharded *s) {
    if (wf_sharded_in_update(s)) return false;
    for (int i = 0; i < s->n_pieces; i++) {
        int param = s->pieces[i].param;
        if (!take(s, &s->pieces[i], s->slices.params[param], s->leaves[i])) return false;
        for (int k = 0; k < wf_shard_kept_count(s); k++)
            if (!take(s, &s->pieces[i], wf_shard_kept(s->of, param, k),
                      wf_shard_kept(&s->optimizer, i, k)))
                return false;
    }
    wf_sharded_release(s);
    return true;
}

/* ---- made ------------------------------------------------------------------------------------ */

wf_sharded *wf_sharded_new(wf_graph *g, const wf_sharded_options *o, char *message) {
    wf_sharded *s = wf_shard_new(g, o, exchange, message);
    if (!s || wf_sharded_scatter(s)) return s;
    snprintf(message, WF_SHARD_MESSAGE, "%s", s->error);
    wf_sharded_free(s);
    return NULL;
}
