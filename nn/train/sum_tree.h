/* nn/train/sum_tree.h - the order in which the gradients of an update's micro-batches are added: a
 * binary tree over their numbers.
 *
 *     M = 7:      ((0 + 1) + (2 + 3)) + ((4 + 5) + 6)
 *
 * The left child of a node [from, to) has a power of two of the micro-batches: the largest that
 * leaves some for the right child. So each machine can add the micro-batches of its own range, and
 * the total has the same bits wherever the ranges were cut. Partial sums that are not yet part of a
 * larger one wait on the stack of wf_accumulate:
 *
 *     wf_sum_tree t = wf_sum_tree_of(M);
 *     for (i = from; i < to; i++) added = wf_sum_tree_push(&t, i, i + 1);
 *
 * Not installed. */
#ifndef WEFT_NN_TRAIN_SUM_TREE_H
#define WEFT_NN_TRAIN_SUM_TREE_H

#include <stdint.h>

enum { WF_SUM_TREE_DEPTH = 128 }; /* most nodes that a range is made of: two of each power of two */

typedef struct wf_sum_node {
    int64_t from, to; /* micro-batches */
} wf_sum_node;

typedef struct wf_sum_tree {
    int64_t end; /* number of micro-batches in the update */
    int depth;
    wf_sum_node node[WF_SUM_TREE_DEPTH]; /* the nodes on the stack, from the bottom */
} wf_sum_tree;

wf_sum_tree wf_sum_tree_of(int64_t micro_batches);
/* Push the sum of the node [from, to), which begins where the last node ended. First, finished left
 * siblings are popped from the top of the stack and added to it. Returns how many. */
int wf_sum_tree_push(wf_sum_tree *t, int64_t from, int64_t to);
/* Push the micro-batches [from, to), as if one by one, but in logarithmic time. Returns the
 * greatest height that the stack would have meanwhile. */
int wf_sum_tree_add(wf_sum_tree *t, int64_t from, int64_t to);
/* The greatest height of the stack while the micro-batches [from, to) of `end` are pushed. */
int wf_sum_tree_height(int64_t from, int64_t to, int64_t end);

#endif
