/* nn/train/way.h - inside nn/train: a trainer, and the three ways of making an update: at once (one
 * micro-batch), in parts (several, accumulated), in shards (several ranks). Each way has its own
 * plans and its own handling of gradients. The loop, rates and numbers are in trainer.c, files in
 * trainer_file.c. Not installed. */
#ifndef WEFT_NN_TRAIN_WAY_H
#define WEFT_NN_TRAIN_WAY_H

#include <stdio.h>

#include "accumulation.h"
#include "nn/trainer.h"

struct wf_sharded;

/* Tensors to fetch or to feed, with room for as many as a plan may need. */
typedef struct wf_tensor_list {
    wf_tensor **data;
    int n;
} wf_tensor_list;
static inline void wf_list_add(wf_tensor_list *l, wf_tensor *t) { /* NULL: nothing */
    if (t) l->data[l->n++] = t;
}
static inline void wf_list_add_all(wf_tensor_list *l, wf_tensor *const *t, int n) {
    for (int i = 0; i < n; i++) wf_list_add(l, t[i]);
}

typedef struct wf_way {
    /* Record what the way needs besides the optimizer; NULL: nothing. Here and below false means
     * that wf_trainer_failed has noted the error */
    bool (*record)(wf_trainer *t);
    /* Add the way's own fetches and feeds to the plan of a micro-batch */
    void (*list)(const wf_trainer *t, wf_tensor_list *fetch, wf_tensor_list *feed);
    /* Make the other plans. in_flight: see wf_trainer_open */
    bool (*open)(wf_trainer *t, int64_t in_flight);
    void (*close)(wf_trainer *t);
    /* Set t->from and t->to to this rank's micro-batches; NULL: all of them */
    bool (*range)(wf_trainer *t);
    /* Run the plan on micro-batch i, which has been fed */
    bool (*add)(wf_trainer *t, int64_t i);
    /* Make the update, and set t->norm; with ranks also write the numbers of other ranks'
     * micro-batches (wf_trainer_options.sums) into t->numbers. The function is NULL where `add` has
     * made the update already */
    bool (*update)(wf_trainer *t);
    bool (*average)(wf_trainer *t, double rate);
    bool (*swap)(wf_trainer *t);
    /* For several ranks; NULL in one process. gather: copy moments and averages into rank 0's
     * graph, to be saved. release: free them there; returns rank 0's `yes`. scatter: take
     * parameters, moments and averages from the graph after a load */
    bool (*gather)(wf_trainer *t);
    bool (*release)(wf_trainer *t, bool yes);
    bool (*scatter)(wf_trainer *t);
    bool (*memory)(wf_trainer *t, size_t *bytes);
} wf_way;

extern const wf_way wf_at_once, wf_in_parts, wf_in_shards;

struct wf_trainer {
    wf_graph *g;
    wf_tensor *loss, *count;
    wf_optimizer_options options;
    wf_optimizer optimizer;
    wf_accumulation accumulation; /* gradient sums; not used by wf_at_once */
    struct wf_sharded *sharded;   /* the optimizer's shard; used by wf_in_shards alone */
    wf_schedule schedule;
    wf_pool *pool;
    wf_transport *transport; /* NULL: one process */
    const wf_way *way;
    bool made;
    int64_t most; /* most micro-batches of an update */
    /* plans of a micro-batch, of the update and of the averages; the last two may be NULL */
    wf_plan *step, *update, *average;
    int64_t steps;
    int64_t averaged_since; /* number of steps when the averages began */
    /* the update in progress */
    /* micro-batches of all ranks (0: no update has begun); this rank's [from, to); the next one */
    int64_t micro_batches, from, to, next;
    double rates[3], norm;
    double *numbers; /* [most][width]: loss, count and sums of each micro-batch */
    double *totals;  /* [width] */
    wf_tensor **sums;
    int width;
    /* with several ranks: the transport's counters when the update began; after it, the seconds and
     * bytes of this update */
    double exchanging;
    int64_t sent, received;
    char error[256];
};

/* Notes why something failed. Returns false. */
static inline bool wf_trainer_failed(wf_trainer *t, const char *why) {
    snprintf(t->error, sizeof t->error, "%s", why);
    return false;
}

/* ---- trainer.c ------------------------------------------------------------------------------- */

/* Make a plan that is fed one input, and fetches these updates, one per parameter, and `more`
 * unless it is NULL. */
wf_plan *wf_trainer_plan_updates(wf_trainer *t, wf_tensor *const *updates, wf_tensor *more,
                                 wf_tensor *feed);
/* Like wf_trainer_new; with several ranks, a round of an exchange has about in_flight blocks. */
wf_trainer *wf_trainer_open(wf_graph *g, wf_tensor *loss_sum, wf_tensor *count,
                            const wf_trainer_options *options, int64_t in_flight);

/* ---- one_process.c: shared by ways that accumulate gradients --------------------------------- */

bool wf_record_sums(wf_trainer *t, int partial_sums);
void wf_list_sums(const wf_trainer *t, wf_tensor_list *fetch, wf_tensor_list *feed);

#endif
