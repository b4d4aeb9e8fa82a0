/* nn/shard.h - inside nn: what a rank has of an optimizer that is divided. shard.c makes it,
 * sharded.c trains with it. Not installed. */
#ifndef WEFT_NN_SHARD_H
#define WEFT_NN_SHARD_H

#include "courier.h"
#include "sharded.h"
#include "slices.h"
#include "sum_tree.h"

enum { WF_SHARD_MESSAGE = 256, WF_IN_FLIGHT = 256 /* blocks of a round: 16 MB of f32 */ };

struct wf_sharded {
    wf_graph *graph; /* the model's */
    const wf_optimizer *of;
    wf_transport *t;
    wf_slices slices;
    size_t real;      /* bytes of an element */
    int64_t most;     /* micro-batches of an update, at most */
    wf_sum_tree tree; /* of this rank's micro-batches */
    int64_t room;     /* bytes of each of: */
    char *send, *receive;
    int64_t *send_at, *receive_at; /* [ranks + 1] */
    /* the exchange of gradients, which begins while the last micro-batch is run */
    wf_courier *courier;   /* from wf_courier_ready to wf_courier_finish it has the transport, send,
                          * receive, their offsets, the plans `add`; nobody else may touch them */
    int64_t micro_batches; /* of this update */
    int *missing;          /* [rounds]: parameters whose sums are not computed yet */
    int unsummed, ready;   /* parameters; rounds of which none is missing */
    double exchanged;      /* the transport's seconds before it */
    double hidden;         /* seconds in collectives meanwhile, so far */
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
    char exchange_error[WF_SHARD_MESSAGE]; /* the courier's, until wf_courier_finish has returned */
};

/* wf_sharded_new with rounds of about so many blocks. */
wf_sharded *wf_shard_new(wf_graph *g, const wf_optimizer *o, wf_tensor *const *params,
                         const wf_optimizer_options *options, int64_t micro_batches,
                         int64_t in_flight, wf_transport *t, wf_pool *pool, char *message);
bool wf_shard_failed(wf_sharded *s, const char *why); /* false; not for the courier's thread */
/* sharded.c: gradients of a round to their owners, who add them; a wf_courier's. */
bool wf_shard_exchange(void *sharded, int round);

/* The micro-batches of a rank, and the sums of them that it has in the end. */
wf_sum_node wf_shard_range(int64_t of, int rank, int ranks);
wf_sum_tree wf_shard_nodes(int64_t of, int rank, int ranks);

/* What a checkpoint holds of a parameter: moments, an average. Of parameter or piece i the k-th. */
int wf_shard_kept_count(const wf_sharded *s);
wf_tensor *wf_shard_kept(const wf_optimizer *o, int i, int k);

#endif
