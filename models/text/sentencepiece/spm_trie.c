/* models/text/sentencepiece/spm_trie.c - builds a double array from sorted strings; see spm.h.
 *
 * The children of a node are put where all of them fit. Only the first TRIES free nodes are tried,
 * and then the end of the array is taken. So time and memory are linear in the strings. */
#include <stdlib.h>

#include "spm.h"

enum { FAN_OUT = 256, TRIES = 32, FREE = -1, NO_PARENT = -2 };

/* A trie being built. Free nodes form a list: base is the next one, value the previous one. */
typedef struct builder {
    wf_trie *t;
    const wf_trie_key *keys;
    int32_t first, last; /* free nodes; -1: none */
    struct range *todo;
    size_t n, capacity;
} builder;

/* Keys [from, to), whose first `depth` bytes are equal and lead to a node. */
typedef struct range {
    size_t from, to, depth;
    int32_t node;
} range;

static int compare(const void *a, const void *b) {
    const wf_trie_key *x = a, *y = b;
    size_t n = x->text.bytes < y->text.bytes ? x->text.bytes : y->text.bytes;
    int order = memcmp(x->text.text, y->text.text, n);
    if (order) return order;
    return (x->text.bytes > y->text.bytes) - (x->text.bytes < y->text.bytes);
}

/* Extends the array to at least n nodes. */
static bool extend(builder *b, size_t n) {
    wf_trie *t = b->t;
    if (n > INT32_MAX || !wf_grow(&t->nodes, &t->capacity, n, sizeof *t->nodes)) return false;
    for (; t->n < n; t->n++) {
        int32_t at = (int32_t)t->n;
        t->nodes[at] = (wf_trie_node){ -1, FREE, b->last };
        if (b->last >= 0)
            t->nodes[b->last].base = at;
        else
            b->first = at;
        b->last = at;
    }
    return true;
}

static void take(builder *b, int32_t at, int32_t parent) {
    wf_trie_node *nodes = b->t->nodes, free_node = nodes[at];
    if (free_node.value >= 0)
        nodes[free_node.value].base = free_node.base;
    else
        b->first = free_node.base;
    if (free_node.base >= 0)
        nodes[free_node.base].value = free_node.value;
    else
        b->last = free_node.value;
    nodes[at] = (wf_trie_node){ 0, parent, -1 };
}

static bool fits(const wf_trie *t, int32_t base, const unsigned char *labels, int n) {
    for (int i = 1; i < n; i++) {
        size_t at = (size_t)base + labels[i];
        if (at < t->n && t->nodes[at].parent != FREE) return false;
    }
    return true;
}

static int32_t find_base(const builder *b, const unsigned char *labels, int n) {
    const wf_trie *t = b->t;
    int32_t at = b->first;
    for (int tries = 0; at >= 0 && tries < TRIES; at = t->nodes[at].base, tries++)
        if (at >= labels[0] && fits(t, at - labels[0], labels, n)) return at - labels[0];
    return (int32_t)t->n;
}

/* The first key after r.from whose next byte is greater. */
static size_t end_of(const wf_trie_key *keys, range r) {
    char byte = keys[r.from].text.text[r.depth];
    while (r.from < r.to && keys[r.from].text.text[r.depth] == byte) r.from++;
    return r.from;
}

static bool expand(builder *b, range r) {
    unsigned char labels[FAN_OUT];
    int n = 0;
    for (; r.from < r.to && b->keys[r.from].text.bytes == r.depth; r.from++)
        b->t->nodes[r.node].value = b->keys[r.from].value;
    for (range rest = r; rest.from < rest.to; rest.from = end_of(b->keys, rest))
        labels[n++] = (unsigned char)b->keys[rest.from].text.text[r.depth];
    if (!n) return true;
    int32_t base = find_base(b, labels, n);
    if (!extend(b, (size_t)base + FAN_OUT) ||
        !wf_grow(&b->todo, &b->capacity, b->n + (size_t)n, sizeof *b->todo))
        return false;
    b->t->nodes[r.node].base = base;
    for (int i = 0; i < n; i++) {
        size_t end = end_of(b->keys, r);
        take(b, base + labels[i], r.node);
        b->todo[b->n++] = (range){ r.from, end, r.depth + 1, base + labels[i] };
        r.from = end;
    }
    return true;
}

bool wf_trie_build(wf_trie *t, wf_trie_key *keys, size_t n) {
    builder b = { .t = t, .keys = keys, .first = -1, .last = -1 };
    if (!n) return true;
    qsort(keys, n, sizeof *keys, compare);
    bool ok = extend(&b, FAN_OUT) && wf_grow(&b.todo, &b.capacity, 1, sizeof *b.todo);
    if (ok) {
        /* children never get the first 256 places: bases are not negative, so high bytes could not
         * use them */
        for (int32_t at = 0; at < FAN_OUT; at++) take(&b, at, NO_PARENT);
        b.todo[b.n++] = (range){ 0, n, 0, 0 };
    }
    while (ok && b.n) ok = expand(&b, b.todo[--b.n]);
    free(b.todo);
    return ok;
}

void wf_trie_free(wf_trie *t) {
    free(t->nodes);
    *t = (wf_trie){ 0 };
}
