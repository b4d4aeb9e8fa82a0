/* nn/train/sum_tree.h - the order in which the gradients of an update's micro-batches are added: a binary
 * tree over their numbers.
 *
 *     M = 7:      ((0 + 1) + (2 + 3)) + ((4 + 5) + 6)
 *
 * A node [from, to) of the tree has a left child of a power of two, the largest that leaves
 * something to the right. So the numbers can be divided among machines, each adds what is in its
 * range, and the sum of all has the same bits wherever the range was cut. Sums that are not yet part
 * of a larger one wait on a stack, that of wf_accumulate:
 *
 *     wf_sum_tree t = wf_sum_tree_of(M);
 *     for (i = from; i < to; i++) added = wf_sum_tree_push(&t, i, i + 1);   then t.node[0 .. t.depth)
 *
 * Not installed. */
#ifndef WEFT_NN_TRAIN_SUM_TREE_H
#define WEFT_NN_TRAIN_SUM_TREE_H

#include <stdint.h>

enum { WF_SUM_TREE_DEPTH = 128 }; /* nodes of a range at most: two of each power of two */

typedef struct wf_sum_node {
    int64_t from, to; /* micro-batches */
} wf_sum_node;

typedef struct wf_sum_tree {
    int64_t end; /* micro-batches of the update */
    int depth;
    wf_sum_node node[WF_SUM_TREE_DEPTH]; /* on the stack, from the bottom */
} wf_sum_tree;

wf_sum_tree wf_sum_tree_of(int64_t micro_batches);
/* The sum of the node [from, to), which follows the last one, is put on the stack; how many from the
 * top it is added to before. */
int wf_sum_tree_push(wf_sum_tree *t, int64_t from, int64_t to);
/* The micro-batches [from, to) one by one, in a number of steps that is its logarithm. Returns how high
 * the stack got. */
int wf_sum_tree_add(wf_sum_tree *t, int64_t from, int64_t to);
/* How high the stack gets with the micro-batches [from, to) of `end`. */
int wf_sum_tree_height(int64_t from, int64_t to, int64_t end);

#endif
