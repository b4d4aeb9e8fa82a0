/* nn/train/sharded.h - inside nn/train: data-parallel training with an optimizer that is sharded
 * (ZeRO-1, Rajbhandari et al. 2020). Each rank owns a slice of the parameters with their moments
 * and averages, and computes some of an update's micro-batches. An update of M micro-batches is:
 *
 *     wf_sharded_range(s, M, &from, &to);
 *     for (i = from; i < to; i++)
 *         ok = wf_sharded_feed(s, p, i, M) && wf_run(p);      p fetches accumulation.adds
 *     wf_sharded_update(s, M, rates, &norm, numbers);
 *
 * Gradients are added in the order of the tree of sum_tree.h, and the norm is added block by block.
 * So the bits are those of one process, for any number of ranks. All ranks call the collectives
 * below in the same order. If the transport allows any_thread, gradients are sent in rounds of 16
 * MB while the last micro-batch runs. From then to the end of wf_sharded_update the transport
 * belongs to another thread. During this time its counters must not be read, all other calls here
 * return false (or 0), and one rank alone cannot cancel the update.
 *
 * sharded.c has the exchanges; rank_graph.c has the data that a rank owns. Not installed. */
#ifndef WEFT_NN_TRAIN_SHARDED_H
#define WEFT_NN_TRAIN_SHARDED_H

#include <stdio.h>

#include "accumulation.h"
#include "core/transport_internal.h"
#include "nn/trainer.h"
#include "sender.h"
#include "slices.h"

enum {
    WF_SHARD_MESSAGE = 256,
    WF_IN_FLIGHT = 256 /* blocks of gradients in one round of an exchange: 16 MB of f32 */
};

/* The optimizer to shard, and how it is trained. Everything that it points to must live longer. */
typedef struct wf_sharded_options {
    const wf_optimizer *optimizer;
    const wf_accumulation *accumulation;
    const wf_optimizer_options *options;
    int64_t micro_batches; /* most micro-batches of an update */
    int64_t in_flight;     /* blocks of gradients in one round of an exchange */
    /* the number of doubles that each micro-batch gives besides its gradients: wf_sharded_update */
    int numbers;
    wf_transport *transport;
    wf_pool *pool;
} wf_sharded_options;

typedef struct wf_sharded {
    wf_graph *graph; /* the model's */
    const wf_optimizer *of;
    const wf_accumulation *parts; /* partial sums of this rank's micro-batches */
    wf_transport *t;
    wf_slices slices;
    size_t real;      /* bytes of an element */
    int64_t most;     /* most micro-batches of an update */
    int numbers;      /* doubles that each micro-batch gives */
    wf_sum_tree tree; /* the stack of sums of this rank's micro-batches */
    int64_t room;     /* bytes of `send`, and of `receive` */
    char *send, *receive;
    int64_t *send_at, *receive_at; /* [ranks + 1] */
    /* the sender: it sends gradients while the last micro-batch is computed */
    /* between wf_sender_ready and wf_sender_finish its thread owns the transport, send, receive,
     * their offsets and the plans `add`: no other thread may touch them */
    wf_sender *sender;
    int64_t micro_batches; /* micro-batches of the current update */
    /* [rounds]: number of parameters in the round whose sums are not computed yet */
    int *missing;
    /* unsummed: parameters whose sums are not computed yet; ready: rounds that can be sent */
    int unsummed, ready;
    double exchanged; /* the transport's seconds before this exchange */
    double hidden;    /* seconds of all exchanges so far that certainly overlapped with computing */
    /* this rank's own graph; NULL if the rank owns nothing */
    wf_graph *own;
    wf_optimizer optimizer;
    int n_pieces;
    wf_piece *pieces;
    int *first; /* [rounds + 1]: index of the first piece of each round */
    /* [n_pieces]: the piece as a parameter; the input for its received gradient sums */
    wf_tensor **leaves, **values;
    wf_tensor **sums, **adds, **totals; /* [n_pieces] */
    wf_tensor *at, *count, *squares, *all_squares;
    wf_plan **add, *norm, *update, *average; /* add: [rounds] */
    char error[WF_SHARD_MESSAGE];            /* written and read by the caller's thread alone */
    /* belongs to the sender's thread until wf_sender_finish has returned */
    char exchange_error[WF_SHARD_MESSAGE];
} wf_sharded;

/* Notes why something failed. Returns false; must not be called by the sender's thread. */
static inline bool wf_shard_failed(wf_sharded *s, const char *why) {
    snprintf(s->error, sizeof s->error, "%s", why);
    return false;
}

/* The partial sums that a rank sends: the nodes of the tree that are on its stack after its last
 * micro-batch. Its micro-batches are those of wf_rank_range. */
static inline wf_sum_tree wf_shard_nodes(int64_t of, int rank, int ranks) {
    wf_sum_tree t = wf_sum_tree_of(of);
    wf_range range = wf_rank_range(of, rank, ranks);
    wf_sum_tree_add(&t, range.from, range.to);
    return t;
}

/* ---- rank_graph.c ---------------------------------------------------------------------------- */

/* Make the optimizer of a rank for the model's graph g; the rank's own graph has no values yet.
 * exchange does one round of an exchange. NULL with message[256]. */
wf_sharded *wf_shard_new(wf_graph *g, const wf_sharded_options *o, wf_round_work exchange,
                         char *message);
void wf_sharded_free(wf_sharded *s); /* before the graph */
/* The number of partial sums that a rank needs for updates of up to this many micro-batches. 0: the
 * rank or the number is invalid. */
int wf_sharded_partial_sums(int64_t micro_batches, int rank, int ranks);
/* A checkpoint keeps these values of a parameter: its moments and its average. wf_shard_kept_count
 * is their number; wf_shard_kept is the k-th one of parameter or piece i of an optimizer. */
int wf_shard_kept_count(const wf_sharded *s);
wf_tensor *wf_shard_kept(const wf_optimizer *o, int i, int k);

/* wf_sharded_memory: the bytes of this rank's slice and exchange buffers; 0 while
 * wf_sharded_in_update is true. wf_sharded_traffic: the bytes that the rank sends in an update. */
size_t wf_sharded_memory(const wf_sharded *s);
int64_t wf_sharded_traffic(const wf_sharded *s, int64_t micro_batches);

/* ---- sharded.c ------------------------------------------------------------------------------- */

/* Make the optimizer, and take this rank's slice from the graph, as wf_sharded_scatter does. NULL
 * with message[256]. */
wf_sharded *wf_sharded_new(wf_graph *g, const wf_sharded_options *o, char *message);
/* This rank's micro-batches [from, to) in an update of micro_batches; there may be none. */
void wf_sharded_range(const wf_sharded *s, int64_t micro_batches, int64_t *from, int64_t *to);
/* True while gradients may be sent: from the run of the last micro-batch until the update has
 * finished the exchange. Its error then says so. */
bool wf_sharded_in_update(wf_sharded *s);
/* Feed accumulation.at for micro-batch i; call it in order, beginning with *from of
 * wf_sharded_range. p must not run after s is freed. */
bool wf_sharded_feed(wf_sharded *s, wf_plan *p, int64_t i, int64_t micro_batches);
/* Collective: send gradients to their owners, update with these rates, send parameters to all
 * ranks. norm: NaN if unguarded. numbers [micro_batches][s->numbers]: the caller fills the rows of
 * this rank's micro-batches, and gets those of all. False on all ranks if it failed on one, for
 * instance because a gradient is not finite. Other failures may leave some slices updated; nothing
 * must be saved then. */
bool wf_sharded_update(wf_sharded *s, int64_t micro_batches, const double rates[3], double *norm,
                       double *numbers);
/* Update the averages of this rank's slice. rate: wf_optimizer_average_rate. */
bool wf_sharded_average(wf_sharded *s, double rate);
/* Collective: exchange averages and parameters on all ranks. */
bool wf_sharded_swap_averages(wf_sharded *s);
/* Collective: copy all moments and averages into rank 0's graph, for saving. */
bool wf_sharded_gather(wf_sharded *s);
/* Free the moments and averages in the model's graph, which ranks do not train with. */
void wf_sharded_release(wf_sharded *s);
/* Take this rank's slice from the model's graph, as after loading a file: parameters, and those
 * moments and averages that have values. Then frees as wf_sharded_release does. */
bool wf_sharded_scatter(wf_sharded *s);
/* Collective: returns rank 0's `yes` on every rank. False too if a rank has failed: see
 * its error. */
bool wf_sharded_agree(wf_sharded *s, bool yes);

#endif
