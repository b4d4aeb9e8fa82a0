/* nn/train/sum_tree.c - see sum_tree.h. */
#include "sum_tree.h"

#include <assert.h>
#include <stdbool.h>

wf_sum_tree wf_sum_tree_of(int64_t micro_batches) {
    return (wf_sum_tree){ .end = micro_batches };
}

/* True if these are the two children of one node. */
static bool are_siblings(const wf_sum_tree *t, wf_sum_node left, wf_sum_node right) {
    int64_t width = left.to - left.from, rest = t->end - left.to;
    bool begins = (width & (width - 1)) == 0 && left.from % width == 0;
    if (!begins || left.from / width % 2 || left.to != right.from) return false;
    return right.to == left.to + (width < rest ? width : rest);
}

int wf_sum_tree_push(wf_sum_tree *t, int64_t from, int64_t to) {
    wf_sum_node node = { from, to };
    int added = 0;
    assert(from < to && to <= t->end);
    assert(t->depth == 0 || t->node[t->depth - 1].to == from); /* in order, without a gap */
    for (; t->depth > 0 && are_siblings(t, t->node[t->depth - 1], node); added++)
        node.from = t->node[--t->depth].from;
    assert(t->depth < WF_SUM_TREE_DEPTH);
    t->node[t->depth++] = node;
    return added;
}

/* The largest k for which [from, from + 2^k) is a node that ends by `to`. */
static int largest_node(int64_t from, int64_t to) {
    int k = 0;
    while (k < 62 && from % ((int64_t)2 << k) == 0 && to - from >= (int64_t)2 << k) k++;
    return k;
}

/* Appends nodes to the stack. While the 2^k micro-batches of a node are added one by one, up to k
 * partial sums wait above the others: one for each bit of 2^k - 1. */
int wf_sum_tree_add(wf_sum_tree *t, int64_t from, int64_t to) {
    int height = 0;
    while (from < to) {
        int k = largest_node(from, to), within = t->depth + k;
        wf_sum_tree_push(t, from, from + ((int64_t)1 << k));
        from += (int64_t)1 << k;
        if (k == 0) within = t->depth;
        if (within > height) height = within;
    }
    return height;
}

int wf_sum_tree_height(int64_t from, int64_t to, int64_t end) {
    wf_sum_tree t = wf_sum_tree_of(end);
    return wf_sum_tree_add(&t, from, to);
}
