/* models/text/sentencepiece/spm_trie.c - builds a double array from strings; see spm.h.
 *
 * Strings are sorted by one byte at each node, which takes less time than sorting them as a whole.
 * The children of a node are put where all of them fit. Only the first TRIES free nodes are tried,
 * and then the end of the array is taken. So time and memory are linear in the strings. */
#include <stdlib.h>

#include "spm.h"

enum { FAN_OUT = 256, TRIES = 32, FREE = -1, NO_PARENT = -2, FEW = 16 };

/* A trie being built. Free nodes form a list: base is the next one, value the previous one. */
typedef struct builder {
    wf_trie *t;
    wf_trie_key *keys, *sorted; /* sorted: room for as many */
    int32_t first, last;        /* free nodes; -1: none */
    struct range *todo;
    size_t n, capacity;
} builder;

/* Keys [from, to), whose first `depth` bytes are equal and lead to a node. */
typedef struct range {
    size_t from, to, depth;
    int32_t node;
} range;

/* The byte of a key at this depth, plus 1; 0: the key ends there. */
static int digit(const wf_trie_key *key, size_t depth) {
    return key->text.bytes > depth ? (unsigned char)key->text.text[depth] + 1 : 0;
}

/* sort_few and sort_many sort keys by their byte at r.depth; equal ones stay in their order. */
static void sort_few(wf_trie_key *keys, range r) {
    for (size_t i = r.from + 1; i < r.to; i++) {
        wf_trie_key key = keys[i];
        int last = digit(&key, r.depth);
        size_t at = i;
        for (; at > r.from && digit(&keys[at - 1], r.depth) > last; at--) keys[at] = keys[at - 1];
        if (at < i) keys[at] = key;
    }
}

static void sort_many(builder *b, range r) {
    size_t starts[FAN_OUT + 2] = { 0 };
    for (size_t i = r.from; i < r.to; i++) starts[digit(&b->keys[i], r.depth) + 1]++;
    for (int i = 0; i <= FAN_OUT; i++) starts[i + 1] += starts[i];
    for (size_t i = r.from; i < r.to; i++)
        b->sorted[starts[digit(&b->keys[i], r.depth)]++] = b->keys[i];
    memcpy(&b->keys[r.from], b->sorted, (r.to - r.from) * sizeof *b->keys);
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

/* Splits sorted keys by their byte at r.depth. Writes the different bytes, and where the keys of
 * each end. Returns how many bytes there are. */
static int split(const wf_trie_key *keys, range r, unsigned char *labels, size_t *ends) {
    int n = 0;
    for (size_t i = r.from; i < r.to; i++) {
        unsigned char byte = (unsigned char)keys[i].text.text[r.depth];
        if (!n || labels[n - 1] != byte) labels[n++] = byte;
        ends[n - 1] = i + 1;
    }
    return n;
}

/* Adds the rest of a key that no other key shares. */
static bool add_rest(builder *b, const wf_trie_key *key, range r) {
    for (; r.depth < key->text.bytes; r.depth++) {
        unsigned char label = (unsigned char)key->text.text[r.depth];
        int32_t base = find_base(b, &label, 1);
        if (!extend(b, (size_t)base + FAN_OUT)) return false;
        b->t->nodes[r.node].base = base;
        take(b, base + label, r.node);
        r.node = base + label;
    }
    b->t->nodes[r.node].value = key->value;
    return true;
}

static bool expand(builder *b, range r) {
    unsigned char labels[FAN_OUT];
    size_t ends[FAN_OUT];
    if (r.to - r.from == 1) return add_rest(b, &b->keys[r.from], r);
    if (r.to - r.from > FEW)
        sort_many(b, r);
    else
        sort_few(b->keys, r);
    for (; r.from < r.to && b->keys[r.from].text.bytes == r.depth; r.from++)
        b->t->nodes[r.node].value = b->keys[r.from].value;
    int n = split(b->keys, r, labels, ends);
    if (!n) return true;
    int32_t base = find_base(b, labels, n);
    if (!extend(b, (size_t)base + FAN_OUT) ||
        !wf_grow(&b->todo, &b->capacity, b->n + (size_t)n, sizeof *b->todo))
        return false;
    b->t->nodes[r.node].base = base;
    for (int i = 0; i < n; i++) {
        take(b, base + labels[i], r.node);
        b->todo[b->n++] =
            (range){ i ? ends[i - 1] : r.from, ends[i], r.depth + 1, base + labels[i] };
    }
    return true;
}

/* Allocates one node for each byte of the keys at once, and asks for huge pages. That is enough for
 * most tries; otherwise the array grows as usual. */
static bool reserve(wf_trie *t, const wf_trie_key *keys, size_t n) {
    size_t nodes = 2 * FAN_OUT;
    for (size_t i = 0; i < n; i++) nodes += keys[i].text.bytes;
    t->nodes = wf_memory_raw(nodes * sizeof *t->nodes);
    if (t->nodes) t->capacity = nodes;
    return t->nodes;
}

bool wf_trie_build(wf_trie *t, wf_trie_key *keys, size_t n) {
    builder b = { .t = t, .keys = keys, .first = -1, .last = -1 };
    if (!n) return true;
    b.sorted = wf_memory_raw(n * sizeof *keys);
    bool ok = b.sorted && reserve(t, keys, n) && extend(&b, FAN_OUT) &&
              wf_grow(&b.todo, &b.capacity, 1, sizeof *b.todo);
    if (ok) {
        /* children never get the first 256 places: bases are not negative, so high bytes could not
         * use them */
        for (int32_t at = 0; at < FAN_OUT; at++) take(&b, at, NO_PARENT);
        b.todo[b.n++] = (range){ 0, n, 0, 0 };
    }
    while (ok && b.n) ok = expand(&b, b.todo[--b.n]);
    free(b.todo), free(b.sorted);
    return ok;
}

void wf_trie_free(wf_trie *t) {
    free(t->nodes);
    *t = (wf_trie){ 0 };
}
