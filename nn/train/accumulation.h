/* nn/train/accumulation.h - inside nn/train: gradient accumulation. An update from several
 * micro-batches equals, up to rounding, the update from one large batch.
 *
 * For each micro-batch a plan runs that feeds `at` and fetches `adds`. Then another plan feeds the
 * rates and fetches `updates`. Gradients and counts are added as a binary tree over the numbers of
 * micro-batches (sum_tree.h), so that the bits do not depend on which rank adds them. Not
 * installed. */
#ifndef WEFT_NN_TRAIN_ACCUMULATION_H
#define WEFT_NN_TRAIN_ACCUMULATION_H

#include "nn/optimizer.h"
#include "sum_tree.h"

typedef struct wf_accumulation {
    int n;         /* parameters */
    wf_tensor *at; /* the input [2] that wf_accumulate reads */
    /* n + 1 transient buffers "<name>.<parameter>.sum" and "<name>.count", each a stack of partial
     * sums [partial_sums,...]. No update reads sums that an earlier one has left */
    wf_tensor **sums;
    wf_tensor **adds;    /* n + 1 nodes: a plan that fetches all of them adds a micro-batch */
    wf_tensor **grads;   /* n tensors: the sums over all micro-batches */
    wf_tensor *norm;     /* norm of the summed gradients, divided by the count; NULL if unguarded */
    wf_tensor **updates; /* n nodes: a plan that fetches all of them makes a step with the sums */
} wf_accumulation;

/* Record the sums of o's gradients and of the count, with room for partial_sums sums each, and the
 * updates made from them. False: the graph has failed, or out of memory. */
bool wf_accumulation_new(wf_accumulation *a, const wf_optimizer *o, wf_tensor *count,
                         const wf_optimizer_options *options, int partial_sums);
void wf_accumulation_free(wf_accumulation *a);
/* Bytes of all stacks. */
size_t wf_accumulation_memory(const wf_accumulation *a);
/* The most partial sums that exist at once while this many micro-batches are added: log2 of their
 * number, rounded down, but at least 1. */
int wf_partial_sums(int64_t micro_batches);
/* Feed `at` for micro-batch i, counted from 0, of an update of `of` micro-batches. They must run in
 * order. */
bool wf_feed_micro_batch(wf_plan *p, const wf_accumulation *a, int64_t i, int64_t of);
/* Read a scalar from a plan that has run. */
bool wf_fetch_real(wf_plan *p, const wf_tensor *x, double *out);

/* ---- optimizer.c ----------------------------------------------------------------------------- */

/* Gradients of a sum of losses, and the numbers that scale them in an update. */
typedef struct wf_gradients {
    wf_tensor *const *grads;
    wf_tensor *count; /* number of losses, at least 1 */
    wf_tensor *scale; /* 1 / count if unguarded; otherwise NULL */
    /* wf_square_sums of all gradients that the norm covers; NULL: those of these gradients */
    wf_tensor *squares;
} wf_gradients;
wf_gradients wf_gradients_of(wf_tensor *const *grads, wf_tensor *count,
                             const wf_optimizer_options *o);
/* Record an update of every parameter of r. Returns the norm, NULL if unguarded. */
wf_tensor *wf_record_updates(const wf_optimizer *r, const wf_gradients *of,
                             const wf_optimizer_options *o, wf_tensor **updates);
/* Enters the scope of the optimizer's name with wf_scope_push. Returns the scope before. */
const char *wf_optimizer_scope(wf_graph *g, const wf_optimizer_options *o);

#endif
