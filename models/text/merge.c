/* models/text/merge.c - the merge loop of byte-pair encoding; see merge.h. */
#include "merge.h"

#include <assert.h>
#include <stdlib.h>

static bool comes_first(const void *context, const wf_item *a, const wf_item *b) {
    (void)context;
    return a->key != b->key ? a->key < b->key : a->value < b->value;
}

bool wf_merger_add(wf_merger *g, int32_t symbol, size_t bytes) {
    const wf_link *last = g->n ? &g->chain[g->n - 1] : NULL;
    int32_t begin = last ? last->begin + last->bytes : 0, at = g->n;
    if (bytes > (size_t)(INT32_MAX - 1 - begin) ||
        ((size_t)at == g->capacity &&
         !wf_grow(&g->chain, &g->capacity, (size_t)at + 1, sizeof *g->chain)))
        return false;
    g->chain[g->n++] = (wf_link){ symbol, at - 1, -1, begin, (int32_t)bytes, -1, WF_NO_MERGE };
    if (at) g->chain[at - 1].after = at;
    return true;
}

/* If the rule merges the link `at` with the next one, adds this merge to the heap. False: no
 * memory. */
static bool visit(wf_merger *g, const wf_merge_rule *rule, int32_t at) {
    wf_link *link = at < 0 ? NULL : &g->chain[at];
    if (!link || link->after < 0) return true;
    link->result = rule->find(rule->context, link, &g->chain[link->after], &link->key);
    if (link->result < 0) link->key = WF_NO_MERGE;
    return link->result < 0 || wf_heap_push(&g->heap, (wf_item){ link->key, at });
}

/* Merges a link with the next one. False: the heap's item is out of date, and nothing is merged. */
static bool join(wf_merger *g, wf_item item) {
    wf_link *link = &g->chain[item.value];
    if (!link->bytes || link->key != item.key) return false;
    wf_link *right = &g->chain[link->after];
    link->symbol = link->result;
    link->bytes += right->bytes;
    link->after = right->after;
    link->key = WF_NO_MERGE;
    right->bytes = 0;
    if (link->after >= 0) g->chain[link->after].before = item.value;
    if (link->before >= 0) g->chain[link->before].key = WF_NO_MERGE;
    return true;
}

bool wf_merge_all(wf_merger *g, const wf_merge_rule *rule) {
    assert(rule->find && g->n >= 0);
    g->heap.before = comes_first;
    g->heap.n = 0;
    if (!wf_grow(&g->fresh, &g->fresh_capacity, (size_t)g->n + 1, sizeof *g->fresh)) return false;
    for (int32_t i = 0; i < g->n; i++)
        if (!visit(g, rule, i)) return false;
    while (g->heap.n) {
        int64_t key = g->heap.items[0].key;
        int32_t n = 0;
        do {
            wf_item item = wf_heap_pop(&g->heap);
            if (join(g, item)) g->fresh[n++] = item.value;
        } while (rule->together && g->heap.n && g->heap.items[0].key == key);
        for (int32_t i = 0; i < n; i++)
            if (!visit(g, rule, g->chain[g->fresh[i]].before) || !visit(g, rule, g->fresh[i]))
                return false;
    }
    return true;
}

void wf_merger_free(wf_merger *g) {
    free(g->chain), free(g->heap.items), free(g->fresh);
    *g = (wf_merger){ 0 };
}

/* ---- a rule from a list of merges ------------------------------------------------------------ */

bool wf_merges_add(wf_merges *m, wf_merge merge) {
    if (m->n == INT32_MAX || !wf_grow(&m->at, &m->capacity, m->n + 1, sizeof *m->at) ||
        !wf_pairs_add(&m->ranks, merge.left, merge.right, (int32_t)m->n))
        return false;
    m->at[m->n++] = merge;
    return true;
}

bool wf_merges_reserve(wf_merges *m, size_t n) {
    return wf_grow(&m->at, &m->capacity, n, sizeof *m->at) && wf_pairs_reserve(&m->ranks, n);
}

void wf_merges_free(wf_merges *m) {
    wf_pairs_free(&m->ranks);
    free(m->at);
    *m = (wf_merges){ 0 };
}

static int32_t find_merge(void *merges, const wf_link *left, const wf_link *right, int64_t *key) {
    const wf_merges *m = merges;
    int32_t rank = wf_pairs_find(&m->ranks, left->symbol, right->symbol);
    *key = rank;
    return rank < 0 ? -1 : m->at[rank].result;
}

wf_merge_rule wf_merges_rule(wf_merges *m, bool together) {
    return (wf_merge_rule){ find_merge, m, together };
}
