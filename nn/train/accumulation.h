/* nn/train/accumulation.h - inside nn/train: gradient accumulation, an update from several
 * micro-batches, equal up to rounding to that from all of them at once.
 *
 * For each micro-batch a plan feeds `at` and fetches `adds`; then one feeds the rates and fetches
 * `updates`. Gradients and counts are added as a binary tree over the numbers of micro-batches
 * (sum_tree.h), so that the bits do not depend on which rank adds them. Not installed. */
#ifndef WEFT_NN_TRAIN_ACCUMULATION_H
#define WEFT_NN_TRAIN_ACCUMULATION_H

#include "nn/optimizer.h"
#include "sum_tree.h"

typedef struct wf_accumulation {
    int n;         /* parameters */
    wf_tensor *at; /* the input [2] of wf_accumulate */
    /* n + 1 transient buffers "<name>.<parameter>.sum" and "<name>.count": stacks of partial sums,
     * [partial_sums,...]. Their values when an update begins are not read */
    wf_tensor **sums;
    wf_tensor **adds;    /* n + 1: fetch all to add a micro-batch */
    wf_tensor **grads;   /* n: the sums of all micro-batches */
    wf_tensor *norm;     /* of the sums; NULL if unguarded */
    wf_tensor **updates; /* n: fetch all to perform a step with the sums */
} wf_accumulation;

/* Record the sums of o's gradients and of the count, with room for so many partial sums, and updates
 * from them. False: the graph has failed, or there is no memory. */
bool wf_accumulation_new(wf_accumulation *a, const wf_optimizer *o, wf_tensor *count,
                         const wf_optimizer_options *options, int partial_sums);
void wf_accumulation_free(wf_accumulation *a);
/* Bytes of all stacks. */
size_t wf_accumulation_memory(const wf_accumulation *a);
/* How many partial sums there are at a time of so many micro-batches: the logarithm. */
int wf_partial_sums(int64_t micro_batches);
/* Feed `at` for micro-batch i of so many, from 0; they run in order. */
bool wf_feed_micro_batch(wf_plan *p, const wf_accumulation *a, int64_t i, int64_t of);

/* ---- optimizer.c ----------------------------------------------------------------------------- */

/* Gradients of a sum of losses, and the numbers that an update divides them by. */
typedef struct wf_gradients {
    wf_tensor *const *grads;
    wf_tensor *count;   /* of losses, at least 1 */
    wf_tensor *scale;   /* 1 / count if unguarded, else NULL */
    wf_tensor *squares; /* wf_square_sums of all gradients; NULL: of these */
} wf_gradients;
wf_gradients wf_gradients_of(wf_tensor *const *grads, wf_tensor *count,
                             const wf_optimizer_options *o);
/* Record an update of every parameter of r. Returns the norm, NULL if unguarded. */
wf_tensor *wf_record_updates(const wf_optimizer *r, const wf_gradients *of,
                             const wf_optimizer_options *o, wf_tensor **updates);
/* wf_scope_push of the optimizer's name. */
const char *wf_optimizer_scope(wf_graph *g, const wf_optimizer_options *o);
/* wf_optimizer_from_gradients of some of the parameters that a norm is of; squares: of all. */
wf_optimizer wf_optimizer_of_slice(wf_graph *g, wf_tensor *const *grads, wf_tensor *count,
                                   wf_tensor *squares, wf_tensor *const *params, int n,
                                   const wf_optimizer_options *o);

#endif
