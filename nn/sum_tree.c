/* nn/sum_tree.c - see sum_tree.h. */
#include "sum_tree.h"

#include <assert.h>
#include <stdbool.h>

wf_sum_tree wf_sum_tree_of(int64_t micro_batches) {
    return (wf_sum_tree){ .end = micro_batches };
}

/* Are these the children of one node? */
static bool are_siblings(const wf_sum_tree *t, wf_sum_node left, wf_sum_node right) {
    int64_t width = left.to - left.from, end = left.from + 2 * width;
    bool begins = (width & (width - 1)) == 0 && left.from % (2 * width) == 0;
    return begins && left.to == right.from && right.to == (end < t->end ? end : t->end);
}

int wf_sum_tree_push(wf_sum_tree *t, int64_t from, int64_t to) {
    wf_sum_node node = { from, to };
    int added = 0;
    assert(from < to && to <= t->end);
    for (; t->depth > 0 && are_siblings(t, t->node[t->depth - 1], node); added++)
        node.from = t->node[--t->depth].from;
    assert(t->depth < WF_SUM_TREE_DEPTH);
    t->node[t->depth++] = node;
    return added;
}

int wf_sum_tree_height(int64_t from, int64_t to, int64_t end) {
    wf_sum_tree t = wf_sum_tree_of(end);
    int height = 0;
    for (int64_t i = from; i < to; i++) {
        wf_sum_tree_push(&t, i, i + 1);
        if (t.depth > height) height = t.depth;
    }
    return height;
}
