/* nn/train/sharded.h - inside nn/train: data-parallel training with an optimizer that is sharded
 * (ZeRO-1, Rajbhandari et al. 2020). Each rank owns a slice of the parameters, of their moments and
 * averages, and computes a part of an update's micro-batches. An update of M micro-batches:
 *
 *     wf_sharded_range(s, M, &from, &to);
 *     for (i = from; i < to; i++)
 *         ok = wf_sharded_feed(s, p, i, M) && wf_run(p);      p fetches accumulation.adds
 *     wf_sharded_update(s, M, rates, &norm, numbers);
 *
 * Gradients are added in the order of the tree of accumulation.h, the norm block by block: the bits
 * are those of one process, for any number of ranks. All ranks call the collectives below in the same
 * order. Where the transport allows any_thread, gradients leave in rounds of 16 MB, while the last
 * micro-batch is run. From there to the end of wf_sharded_update the transport belongs to another
 * thread: its numbers are not to be read, all other calls here return false (or 0), and one rank
 * alone cannot cancel the update.
 *
 * sharded.c has the exchanges, rank_graph.c what a rank owns. Not installed. */
#ifndef WEFT_NN_TRAIN_SHARDED_H
#define WEFT_NN_TRAIN_SHARDED_H

#include "accumulation.h"
#include "core/transport.h"
#include "nn/trainer.h"
#include "sender.h"
#include "slices.h"

enum { WF_SHARD_MESSAGE = 256, WF_IN_FLIGHT = 256 /* blocks of a round: 16 MB of f32 */ };

/* The optimizer to be sharded, and how it is trained. All it points to must live longer. */
typedef struct wf_sharded_options {
    const wf_optimizer *optimizer;
    const wf_accumulation *accumulation;
    const wf_optimizer_options *options;
    int64_t micro_batches; /* of an update, at most */
    int64_t in_flight;     /* blocks of a round */
    int numbers;           /* that each micro-batch gives beside its gradients */
    wf_transport *transport;
    wf_pool *pool;
} wf_sharded_options;

typedef struct wf_sharded {
    wf_graph *graph; /* the model's */
    const wf_optimizer *of;
    const wf_accumulation *parts; /* sums of this rank's micro-batches */
    wf_transport *t;
    wf_slices slices;
    size_t real;      /* bytes of an element */
    int64_t most;     /* micro-batches of an update, at most */
    int numbers;      /* doubles of each micro-batch */
    wf_sum_tree tree; /* of this rank's micro-batches */
    int64_t room;     /* bytes of each of: */
    char *send, *receive;
    int64_t *send_at, *receive_at; /* [ranks + 1] */
    /* the exchange of gradients, which begins while the last micro-batch is run */
    wf_sender *sender;     /* from wf_sender_ready to wf_sender_finish its thread has the transport,
                            * send, receive, their offsets, the plans `add`: nobody else touches them */
    int64_t micro_batches; /* of this update */
    int *missing;          /* [rounds]: parameters whose sums are not computed yet */
    int unsummed, ready;   /* parameters; rounds of which none is missing */
    double exchanged;      /* the transport's seconds before it */
    double hidden;         /* seconds of exchanges so far that overlapped with computing */
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
    char error[WF_SHARD_MESSAGE];            /* the caller's thread alone writes and reads it */
    char exchange_error[WF_SHARD_MESSAGE];   /* the sender's, until wf_sender_finish has returned */
} wf_sharded;

/* ---- rank_graph.c ---------------------------------------------------------------------------- */

/* With an own graph that has no values yet. exchange: of a round. NULL with message[256]. */
wf_sharded *wf_shard_new(wf_graph *g, const wf_sharded_options *o, wf_round_work exchange,
                         char *message);
void wf_sharded_free(wf_sharded *s);                  /* before the graph */
const char *wf_sharded_error(const wf_sharded *s);    /* the last failure, or "" */
bool wf_shard_failed(wf_sharded *s, const char *why); /* false; not for the sender's thread */
/* Partial sums of a rank, for updates of up to so many micro-batches. 0: there is no such rank, or
 * number. */
int wf_sharded_partial_sums(int64_t micro_batches, int rank, int ranks);
/* The sums that a rank has after all of its micro-batches, those of wf_rank_range. */
wf_sum_tree wf_shard_nodes(int64_t of, int rank, int ranks);
/* The values of a parameter in a checkpoint: moments, an average. The k-th of parameter or piece i. */
int wf_shard_kept_count(const wf_sharded *s);
wf_tensor *wf_shard_kept(const wf_optimizer *o, int i, int k);

/* Bytes of this rank's slice and of what travels; and bytes that it sends in an update. */
size_t wf_sharded_memory(const wf_sharded *s);
int64_t wf_sharded_traffic(const wf_sharded *s, int64_t micro_batches);

/* ---- sharded.c ------------------------------------------------------------------------------- */

/* Takes the slice from the graph: wf_sharded_scatter. NULL with message[256]. */
wf_sharded *wf_sharded_new(wf_graph *g, const wf_sharded_options *o, char *message);
/* This rank's micro-batches of an update of so many: [from, to), perhaps none. */
void wf_sharded_range(const wf_sharded *s, int64_t micro_batches, int64_t *from, int64_t *to);
/* From the last micro-batch to the end of the update: wf_sharded_error says so. */
bool wf_sharded_in_update(wf_sharded *s);
/* Feed accumulation.at for micro-batch i, in order from `from` on. p may not run after s is freed. */
bool wf_sharded_feed(wf_sharded *s, wf_plan *p, int64_t i, int64_t micro_batches);
/* Collective: gradients to their owners, an update by these rates, parameters to all. norm: NaN if
 * unguarded. numbers [micro_batches][s->numbers]: the rows of this rank's micro-batches; then those
 * of all. False on all ranks if it failed on one, as on a gradient that is not finite; what it has
 * changed is then not to be saved. */
bool wf_sharded_update(wf_sharded *s, int64_t micro_batches, const double rates[3], double *norm,
                       double *numbers);
/* The averages of this rank's slice move: wf_optimizer_average_rate. */
bool wf_sharded_average(wf_sharded *s, double rate);
/* Collective: averages and parameters change places on all ranks. */
bool wf_sharded_swap_averages(wf_sharded *s);
/* Collective: rank 0's graph gets all moments and averages, to be saved. */
bool wf_sharded_gather(wf_sharded *s);
/* The graph's moments and averages, which the ranks do not train with, give their memory back. */
void wf_sharded_release(wf_sharded *s);
/* Takes the slice from the graph: parameters, and what it has of moments and averages, as after
 * loading a file; then as wf_sharded_release. */
bool wf_sharded_scatter(wf_sharded *s);
/* Collective: does rank 0 say yes? False too if a rank has failed: wf_sharded_error. */
bool wf_sharded_agree(wf_sharded *s, bool yes);

#endif
