/* core/plan/order.c - the order in which a plan computes, beyond that of recording.
 *
 * Numbers come right behind the last of what they are taken of, while it is at hand; updates behind
 * all that must not see them. Both are put behind another node of a linked list, which needs to
 * know of two nodes which is the later. So who was put behind whom is a tree: for each node that
 * stayed in its place, those that were put behind it, and behind these; of two that were put behind
 * the same one, the newer comes first. What two nodes have in common is found in O(log n) by jump
 * pointers (Myers 1983, "An applicative random-access stack"). */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

/* A seat for every node after the leaves; seat 0 comes before them all. */
typedef struct seat {
    int next;                /* in the list; 0: none */
    int base;                /* the node that stayed in its place */
    int behind, jump, depth; /* in its tree; jump: an ancestor further up */
    int time;                /* when it was put there */
    int leaf;                /* whose memory it may be a view of, as an index; -1: none */
    int after;               /* an update: the latest that it has to wait for so far */
    int waits;               /* and how many updates must come before it */
} seat;

typedef struct user { /* of a leaf: */
    int writer;       /* the update that writes it; 0: none */
    int reader;       /* the last value that may read it */
} user;

typedef struct order {
    wf_plan *p;
    int leaves, n, now;
    seat *seats;
    user *users;
    int *ready; /* updates that nothing holds back any more */
    planned *ordered;
} order;

/* ---- before and behind ----------------------------------------------------------------------- */

static int later(const order *o, int a, int b) {
    const seat *s = o->seats;
    if (s[a].base != s[b].base) return s[a].base > s[b].base ? a : b;
    int x = a, y = b;
    while (s[x].depth > s[y].depth) x = s[s[x].jump].depth >= s[y].depth ? s[x].jump : s[x].behind;
    while (s[y].depth > s[x].depth) y = s[s[y].jump].depth >= s[x].depth ? s[y].jump : s[y].behind;
    if (x == y) return s[a].depth > s[b].depth ? a : b;
    while (s[x].behind != s[y].behind) {
        bool far = s[x].jump != s[y].jump;
        x = far ? s[x].jump : s[x].behind, y = far ? s[y].jump : s[y].behind;
    }
    return s[x].time < s[y].time ? a : b;
}

/* i stays where it was recorded: behind all that have a seat. */
static void stay(order *o, int i, int *last) {
    seat *s = &o->seats[i];
    s->base = s->behind = s->jump = i;
    o->seats[*last].next = i, *last = i;
}

static void put_behind(order *o, int i, int before, int *last) {
    seat *s = &o->seats[i], *up = &o->seats[before], *jump = &o->seats[up->jump];
    s->base = up->base, s->behind = before, s->depth = up->depth + 1, s->time = ++o->now;
    s->jump =
        up->depth - jump->depth == jump->depth - o->seats[jump->jump].depth ? jump->jump : before;
    s->next = up->next, up->next = i;
    if (*last == before) *last = i;
}

static const wf_tensor *node_of(const order *o, int i) {
    return o->p->nodes[o->leaves + i - 1].node;
}

/* Its seat; 0 for a leaf. */
static int seat_of(const order *o, const wf_tensor *t) {
    int index = t ? o->p->index[t->id] : -1;
    return index < o->leaves ? 0 : index - o->leaves + 1;
}

/* ---- values ---------------------------------------------------------------------------------- */

static int last_operand(const order *o, int i) {
    const wf_tensor *t = node_of(o, i);
    int last = 0;
    for (int k = 0; k < t->n_in; k++) last = later(o, last, seat_of(o, t->in[k]));
    return last;
}

static void seat_values(order *o, int n, int *last) {
    for (int i = 1; i <= n; i++) {
        const wf_tensor *t = node_of(o, i);
        if (t->ndim || t->result)
            stay(o, i, last);
        else
            put_behind(o, i, last_operand(o, i), last);
    }
}

/* The index of the leaf whose memory an operand may be a view of, or -1. */
static int leaf_beneath(const order *o, const wf_tensor *t) {
    if (!t) return -1;
    int i = seat_of(o, t);
    return i ? o->seats[i].leaf : is_stored(t) ? o->p->index[t->id] : -1;
}

/* Who reads each leaf last; and the last value that is no gradient, into *plain. */
static void find_readers(order *o, int n, int *plain) {
    for (int i = 1; i <= n; i++) {
        const wf_tensor *t = node_of(o, i);
        o->seats[i].leaf = t->op->view ? leaf_beneath(o, t->in[0]) : -1;
        if (!t->forward) *plain = later(o, *plain, i);
        for (int k = 0; k < t->n_in; k++) {
            int read = leaf_beneath(o, t->in[k]);
            if (read >= 0) o->users[read].reader = later(o, o->users[read].reader, i);
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
            user *written = writes(u, k) ? &o->users[o->p->index[u->in[k]->id]] : NULL;
            if (written && written->writer && written->writer != i)
                return wf_plan_fail(o->p, "'%s' is written by two updates", u->in[k]->name);
            if (written) written->writer = i;
        }
    }
    return true;
}

/* The update that must come after u because it writes what u reads in operand k; 0: none. */
static int follower(const order *o, int i, int k) {
    const wf_tensor *u = node_of(o, i);
    int read = writes(u, k) ? -1 : leaf_beneath(o, u->in[k]);
    int writer = read < 0 ? 0 : o->users[read].writer;
    return writer == i ? 0 : writer;
}

/* Only gradients and other updates can be passed: they don't fail on bad data once the values are
 * known, so that a run that fails has performed no update. */
static void find_waits(order *o, int first, int plain) {
    for (int i = first; i <= o->n; i++) {
        const wf_tensor *u = node_of(o, i);
        int after = later(o, plain, last_operand(o, i));
        for (int k = 0; k < u->n_in; k++) {
            if (writes(u, k)) after = later(o, after, o->users[o->p->index[u->in[k]->id]].reader);
            int next = follower(o, i, k);
            if (next) o->seats[next].waits++;
        }
        o->seats[i].after = after;
    }
}

/* Puts an update where it belongs, and those that waited for nothing but it. */
static int seat_update(order *o, int i, int *last) {
    int n = 0, seated = 0;
    o->ready[n++] = i;
    while (n > 0) {
        int u = o->ready[--n];
        put_behind(o, u, o->seats[u].after, last), seated++;
        o->seats[u].waits = -1;
        for (int k = 0; k < node_of(o, u)->n_in; k++) {
            int next = follower(o, u, k);
            if (!next) continue;
            o->seats[next].after = later(o, o->seats[next].after, u);
            if (--o->seats[next].waits == 0 && next < i) o->ready[n++] = next;
        }
    }
    return seated;
}

static bool seat_updates(order *o, int values, int *last) {
    int first = values + 1, plain = 0, seated = 0;
    if (first > o->n) return true;
    find_readers(o, values, &plain);
    if (!find_writers(o, first)) return false;
    find_waits(o, first, plain);
    for (int i = first; i <= o->n; i++)
        if (o->seats[i].waits == 0) seated += seat_update(o, i, last);
    return seated == o->n - values ||
           wf_plan_fail(o->p, "updates read each other's leaves in a circle");
}

/* ---- all ------------------------------------------------------------------------------------- */

bool wf_order_nodes(wf_plan *p, int leaves, int values) {
    order o = { .p = p, .leaves = leaves, .n = p->n_nodes - leaves };
    size_t n = (size_t)o.n + 1;
    o.seats = calloc(n, sizeof *o.seats), o.users = calloc((size_t)leaves + 1, sizeof *o.users);
    o.ready = malloc(n * sizeof *o.ready), o.ordered = malloc(n * sizeof *o.ordered);
    bool ok = o.seats && o.users && o.ready && o.ordered;
    if (!ok) wf_plan_fail(p, "out of memory");
    if (ok) {
        int last = 0, at = 0;
        seat_values(&o, values - leaves, &last);
        ok = seat_updates(&o, values - leaves, &last);
        for (int i = o.seats[0].next; i; i = o.seats[i].next)
            o.ordered[at++] = p->nodes[leaves + i - 1];
        if (ok) memcpy(p->nodes + leaves, o.ordered, (size_t)o.n * sizeof *o.ordered);
    }
    free(o.seats), free(o.users), free(o.ready), free(o.ordered);
    return ok;
}
