/* core/plan/order.c - the order in which a plan computes its nodes.
 *
 * It is the order of recording, with two exceptions. A scalar comes directly after the last of its
 * operands, while that operand is in the cache; an update comes after all readers of the leaves
 * that it writes, and after all values that are not gradients. Nodes are therefore kept in a linked
 * list, and inserted after other nodes. To find the node to insert after, one must know which of
 * two nodes is later in the list. For this the insertions are recorded as trees: the parent of a
 * node is the node after which it was inserted, and roots are in the order of recording. Of two
 * children of the same parent the newer is earlier in the list. The common ancestor of two nodes is
 * found in O(log n) with jump pointers (Myers 1983, "An applicative random-access stack"). */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

/* the place of a node in the order: one entry for every node after the leaves; entry 0 is the head
 * of the list */
typedef struct entry {
    int next; /* the next entry in the list; 0: none */
    int root; /* the root of its tree */
    /* in its tree: the parent, an ancestor further up (the jump pointer), and the depth */
    int parent, jump, depth;
    /* the number of insertions up to this one, itself included; 0: the node was appended */
    int time;
    int leaf; /* index of the leaf of which the node may be a view; -1: none */
    /* for an update: the last node in the list that must precede it, of those found so far */
    int after;
    int missing; /* for an update: the number of updates not yet in the list that must precede it */
} entry;

typedef struct leaf_use { /* how the plan uses a leaf */
    int writer;           /* the update that writes it; 0: none */
    int reader;           /* the last value that may read the leaf */
} leaf_use;

typedef struct order {
    wf_plan *p;
    int leaves, n, now;
    entry *entries;
    leaf_use *uses;
    int *ready; /* updates whose predecessors are all in the list */
    planned *ordered;
} order;

/* ---- the list -------------------------------------------------------------------------------- */

static int later(const order *o, int a, int b) {
    const entry *s = o->entries;
    if (s[a].root != s[b].root) return s[a].root > s[b].root ? a : b;
    int x = a, y = b;
    while (s[x].depth > s[y].depth) x = s[s[x].jump].depth >= s[y].depth ? s[x].jump : s[x].parent;
    while (s[y].depth > s[x].depth) y = s[s[y].jump].depth >= s[x].depth ? s[y].jump : s[y].parent;
    if (x == y) return s[a].depth > s[b].depth ? a : b;
    while (s[x].parent != s[y].parent) {
        bool far = s[x].jump != s[y].jump;
        x = far ? s[x].jump : s[x].parent;
        y = far ? s[y].jump : s[y].parent;
    }
    return s[x].time < s[y].time ? a : b;
}

/* Append node i at the end of the list. */
static void append(order *o, int i, int *last) {
    entry *s = &o->entries[i];
    s->root = s->parent = s->jump = i;
    o->entries[*last].next = i;
    *last = i;
}

/* Insert i directly after `before`. */
static void insert_after(order *o, int i, int before, int *last) {
    entry *s = &o->entries[i], *up = &o->entries[before], *jump = &o->entries[up->jump];
    s->root = up->root;
    s->parent = before;
    s->depth = up->depth + 1;
    s->time = ++o->now;
    s->jump =
        up->depth - jump->depth == jump->depth - o->entries[jump->jump].depth ? jump->jump : before;
    s->next = up->next;
    up->next = i;
    if (*last == before) *last = i;
}

static const wf_tensor *node_of(const order *o, int i) {
    return o->p->nodes[o->leaves + i - 1].node;
}

/* The index of the node's entry; 0 for a leaf, or for NULL. */
static int entry_of(const order *o, const wf_tensor *t) {
    int index = t ? o->p->index[t->id] : -1;
    return index < o->leaves ? 0 : index - o->leaves + 1;
}

/* ---- values ---------------------------------------------------------------------------------- */

static int last_operand(const order *o, int i) {
    const wf_tensor *t = node_of(o, i);
    int last = 0;
    for (int k = 0; k < t->n_in; k++) last = later(o, last, entry_of(o, t->in[k]));
    return last;
}

static void place_values(order *o, int n, int *last) {
    for (int i = 1; i <= n; i++) {
        const wf_tensor *t = node_of(o, i);
        if (t->ndim || t->result)
            append(o, i, last);
        else
            insert_after(o, i, last_operand(o, i), last);
    }
}

/* The index of the leaf whose memory an operand may be a view of, or -1. */
static int leaf_viewed(const order *o, const wf_tensor *t) {
    if (!t) return -1;
    int i = entry_of(o, t);
    return i ? o->entries[i].leaf : is_stored(t) ? o->p->index[t->id] : -1;
}

/* Find the last reader of each leaf, and the last value that is not part of a gradient
 * (*last_value). */
static void find_readers(order *o, int n, int *last_value) {
    for (int i = 1; i <= n; i++) {
        const wf_tensor *t = node_of(o, i);
        o->entries[i].leaf = t->op->view ? leaf_viewed(o, t->in[0]) : -1;
        if (!t->forward) *last_value = later(o, *last_value, i);
        for (int k = 0; k < t->n_in; k++) {
            int read = leaf_viewed(o, t->in[k]);
            if (read >= 0) o->uses[read].reader = later(o, o->uses[read].reader, i);
        }
    }
}

/* ---- updates --------------------------------------------------------------------------------- */

static bool writes(const wf_tensor *u, int k) {
    return u->in[k] && (u->op->writes >> k & 1);
}

static bool find_writers(order *o, int first) {
    for (int i = first; i <= o->n; i++) {
        const wf_tensor *u = node_of(o, i);
        for (int k = 0; k < u->n_in; k++) {
            leaf_use *written = writes(u, k) ? &o->uses[o->p->index[u->in[k]->id]] : NULL;
            if (written && written->writer && written->writer != i)
                return wf_plan_fail(o->p, "'%s' is written by two updates", u->in[k]->name);
            if (written) written->writer = i;
        }
    }
    return true;
}

/* The update that must follow update i because it writes the leaf that i reads as operand k; 0:
 * none. */
static int successor(const order *o, int i, int k) {
    const wf_tensor *u = node_of(o, i);
    int read = writes(u, k) ? -1 : leaf_viewed(o, u->in[k]);
    int writer = read < 0 ? 0 : o->uses[read].writer;
    return writer == i ? 0 : writer;
}

/* Updates follow all values that are not gradients. Of all values only these can fail on bad data,
 * and then no update has run. An update itself fails if its scale or its rates are not finite. */
static void count_predecessors(order *o, int first, int last_value) {
    for (int i = first; i <= o->n; i++) {
        const wf_tensor *u = node_of(o, i);
        int after = later(o, last_value, last_operand(o, i));
        for (int k = 0; k < u->n_in; k++) {
            if (writes(u, k)) after = later(o, after, o->uses[o->p->index[u->in[k]->id]].reader);
            int next = successor(o, i, k);
            if (next) o->entries[next].missing++;
        }
        o->entries[i].after = after;
    }
}

/* Insert update i, and then every earlier update that waited only for it. Returns how many were
 * inserted. */
static int place_update(order *o, int i, int *last) {
    int n = 0, placed = 0;
    o->ready[n++] = i;
    while (n > 0) {
        int u = o->ready[--n];
        insert_after(o, u, o->entries[u].after, last);
        placed++;
        o->entries[u].missing = -1;
        for (int k = 0; k < node_of(o, u)->n_in; k++) {
            int next = successor(o, u, k);
            if (!next) continue;
            o->entries[next].after = later(o, o->entries[next].after, u);
            if (--o->entries[next].missing == 0 && next < i) o->ready[n++] = next;
        }
    }
    return placed;
}

static bool place_updates(order *o, int values, int *last) {
    int first = values + 1, last_value = 0, placed = 0;
    if (first > o->n) return true;
    find_readers(o, values, &last_value);
    if (!find_writers(o, first)) return false;
    count_predecessors(o, first, last_value);
    for (int i = first; i <= o->n; i++)
        if (o->entries[i].missing == 0) placed += place_update(o, i, last);
    return placed == o->n - values ||
           wf_plan_fail(o->p, "updates read each other's leaves in a cycle");
}

/* ---- order ----------------------------------------------------------------------------------- */

bool wf_order_nodes(wf_plan *p, int leaves, int values) {
    order o = { .p = p, .leaves = leaves, .n = p->n_nodes - leaves };
    size_t n = (size_t)o.n + 1;
    o.entries = calloc(n, sizeof *o.entries);
    o.uses = calloc((size_t)leaves + 1, sizeof *o.uses);
    o.ready = malloc(n * sizeof *o.ready);
    o.ordered = malloc(n * sizeof *o.ordered);
    bool ok = o.entries && o.uses && o.ready && o.ordered;
    if (!ok) wf_plan_fail(p, "out of memory");
    if (ok) {
        int last = 0, at = 0;
        place_values(&o, values - leaves, &last);
        ok = place_updates(&o, values - leaves, &last);
        for (int i = o.entries[0].next; i; i = o.entries[i].next)
            o.ordered[at++] = p->nodes[leaves + i - 1];
        if (ok) memcpy(p->nodes + leaves, o.ordered, (size_t)o.n * sizeof *o.ordered);
    }
    free(o.entries), free(o.uses), free(o.ready), free(o.ordered);
    return ok;
}
