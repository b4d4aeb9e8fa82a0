/* nn/train/way.h - inside nn/train: a trainer, and the three ways in which an update is made. A way
 * differs in its plans and in what it does with gradients; the loop, rates, numbers and files are
 * trainer.c's and trainer_file.c's. Not installed. */
#ifndef WEFT_NN_TRAIN_WAY_H
#define WEFT_NN_TRAIN_WAY_H

#include "accumulation.h"
#include "nn/trainer.h"

struct wf_sharded;

/* Tensors to fetch or to feed; there is room for all that a plan may need. */
typedef struct wf_tensor_list {
    wf_tensor **data;
    int n;
} wf_tensor_list;
void wf_list_add(wf_tensor_list *l, wf_tensor *t); /* NULL: nothing */
void wf_list_add_all(wf_tensor_list *l, wf_tensor *const *t, int n);

typedef struct wf_way {
    /* Record what is needed beside the optimizer. False: wf_trainer_failed */
    bool (*record)(wf_trainer *t);
    /* Add to the fetches and feeds of the plan of a micro-batch */
    void (*list)(const wf_trainer *t, wf_tensor_list *fetch, wf_tensor_list *feed);
    /* Make the other plans */
    bool (*open)(wf_trainer *t, int64_t in_flight);
    void (*close)(wf_trainer *t);
    /* This rank's micro-batches into t->from and t->to; NULL: all */
    bool (*range)(wf_trainer *t);
    /* Run the plan on micro-batch i, which is fed */
    bool (*add)(wf_trainer *t, int64_t i);
    /* After the last micro-batch; writes t->norm and, of other ranks, t->numbers */
    bool (*update)(wf_trainer *t);
    bool (*average)(wf_trainer *t, double rate);
    bool (*swap)(wf_trainer *t);
    /* Ranks; all NULL where there is one process. Moments and averages into rank 0's graph, to be
     * saved; away again, and whether rank 0 says yes; from the graph after a load */
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
    wf_accumulation accumulation; /* but at once */
    struct wf_sharded *sharded;   /* in shards */
    wf_schedule schedule;
    wf_pool *pool;
    wf_transport *transport; /* NULL: alone */
    const wf_way *way;
    bool made;
    int64_t most; /* micro-batches of an update */
    wf_plan *step, *update,
        *average; /* of a micro-batch; of the update and the averages, or NULL */
    int64_t steps;
    int64_t averaged_since; /* the steps when the averages began */
    /* the update in progress */
    int64_t micro_batches, from, to, next; /* of all ranks, 0: none is begun; own; the next one */
    double rates[3], norm;
    double *numbers; /* [most][width]: of each micro-batch loss, count and sums */
    double *totals;  /* [width] */
    wf_tensor **sums;
    int width;
    double exchanging; /* the transport's numbers when it began */
    int64_t sent, received;
    char error[256];
};

bool wf_trainer_failed(wf_trainer *t, const char *why); /* false */
/* A plan of the trainer's graph. */
wf_plan *wf_trainer_plan_of(wf_trainer *t, const wf_tensor_list *fetch, const wf_tensor_list *feed,
                            bool training);
/* A plan that fetches these n and more, if there is one, and feeds one input. */
wf_plan *wf_trainer_plan_updates(wf_trainer *t, wf_tensor *const *updates, wf_tensor *more,
                                 wf_tensor *feed);
/* A scalar of a plan that has run. */
bool wf_fetch_real(wf_plan *p, const wf_tensor *x, double *out);
/* wf_trainer_new with rounds of about so many blocks, where there are ranks. */
wf_trainer *wf_trainer_open(wf_graph *g, wf_tensor *loss_sum, wf_tensor *count,
                            const wf_trainer_options *options, int64_t in_flight);

/* ---- at_once.c: ways without ranks share these ----------------------------------------------- */

bool wf_alone_average(wf_trainer *t, double rate);
bool wf_alone_swap(wf_trainer *t);
/* The bytes of moments, averages, sums, and the plans beside that of a micro-batch. */
bool wf_alone_memory(wf_trainer *t, size_t *bytes);
bool wf_alone_open(wf_trainer *t, int64_t in_flight);

/* ---- in_parts.c: ways that accumulate gradients share these ---------------------------------- */

bool wf_record_sums(wf_trainer *t, int partial_sums);
void wf_list_sums(const wf_trainer *t, wf_tensor_list *fetch, wf_tensor_list *feed);

#endif
