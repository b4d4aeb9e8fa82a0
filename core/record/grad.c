/* core/record/grad.c - reverse-mode differentiation: gradients recorded as nodes of the same graph.
 *
 * Ops return shares; the books are kept here: which nodes lie between x and y, shares of a tensor
 * that is used twice, the sum that undoes a broadcast. An op without a rule of its own is
 * differentiated through its decomposition: a walk within the walk, so that the books hold what y
 * is made of and not the whole graph. What no gradient passes is refused first: flow.c. */
#include "core/basis.h"
#include "record.h"

#include <stdlib.h>

typedef struct entry {     /* a node that y may be made of */
    wf_tensor *node, *cot; /* cot: the cotangent so far, or NULL */
    int outer;             /* its place in the books of the walk that this one is within */
    unsigned char on;      /* bits below */
} entry;
enum { REACHED = 1, WANTED = 2 };

typedef struct books {
    wf_graph *g;
    entry *entries; /* in the order of their nodes; places[id] of the graph says where */
    int n, cap;
    bool through; /* what lies beneath x is looked at too */
    int first;    /* but nothing that was recorded before this node, except x */
} books;

/* ---- what gradients are written in: basis.h -------------------------------------------------- */

static wf_tensor *filled(wf_tensor *like, double value) {
    return wf_record(wf_basis.fill, 1, &like, &value);
}

static wf_tensor *sum_to(wf_tensor *x, wf_tensor *like) {
    return wf_record(wf_basis.sum_to, 2, (wf_tensor *[]){ x, like }, NULL);
}

static wf_tensor *added(wf_tensor *a, wf_tensor *b) {
    return wf_record(wf_basis.add, 2, (wf_tensor *[]){ a, b }, NULL);
}

/* ---- the books ------------------------------------------------------------------------------- */

static entry *find(const books *b, const wf_tensor *t) {
    int place = b->g->places[t->id];
    return place < b->n && b->entries[place].node == t ? &b->entries[place] : NULL;
}

static bool differentiable(const wf_op *op) {
    return op && (op->grad || op->decompose);
}

static bool passes(const wf_tensor *t, int i, const books *b) {
    const wf_tensor *in = t->in[i];
    if (!in || in->dtype == WF_I32 || (t->op->shape_only >> i & 1)) return false;
    const entry *e = find(b, in);
    return e && (e->on & REACHED);
}

static bool ends(const books *b, const entry *e) {
    return (e->on & WANTED) && !b->through;
}

/* Mark what depends on x, between x and the last node. */
static void reach(books *b) {
    for (entry *e = b->entries; e < b->entries + b->n; e++) {
        const wf_tensor *t = e->node;
        if (ends(b, e)) continue;
        if (t->kind != WF_COMPUTED || t->dtype == WF_I32 || t->op->no_grad) continue;
        for (int i = 0; i < t->n_in; i++)
            if (passes(t, i, b)) e->on |= REACHED;
    }
}

static bool same_recorded_shape(const wf_tensor *a, const wf_tensor *b) {
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i]) return false;
    return true;
}

/* Add a share to x's cotangent. Equal recorded shapes stay equal under every binding, because the
 * nominal sizes of extents are distinct primes; so the sum is recorded only where they differ. */
static void add_share(books *b, wf_tensor *x, wf_tensor *share) {
    if (!same_recorded_shape(share, x)) share = sum_to(share, x);
    entry *e = find(b, x);
    e->cot = e->cot ? added(e->cot, share) : share;
}

static bool differentiate(wf_tensor *const *y, wf_tensor *const *dy, int n_y, wf_tensor *const *x,
                          int n_x, wf_tensor **dx, bool through, int first);

static void share_by_decomposition(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx,
                                   uint32_t need) {
    wf_tensor *results[WF_MAX_RESULTS] = { 0 }, *x[WF_MAX_OPERANDS], *shares[WF_MAX_OPERANDS];
    int place[WF_MAX_OPERANDS], n = 0, first = y->graph->n_nodes;
    y->op->decompose(y, results);
    for (int i = 0; i < y->n_in;
         i++) { /* a tensor used twice is asked for once: its share is whole */
        bool again = false;
        for (int j = 0; j < n; j++) again |= x[j] == y->in[i];
        if ((need >> i & 1) && !again) place[n] = i, x[n++] = y->in[i];
    }
    if (!differentiate(results, dy, result_count(y->op), x, n, shares, false, first)) return;
    for (int j = 0; j < n; j++) dx[place[j]] = shares[j];
}

/* Differentiate one node: y is its result 0. */
static void visit(books *b, wf_tensor *y) {
    wf_graph *g = b->g;
    wf_tensor *dy[WF_MAX_RESULTS] = { 0 }, *dx[WF_MAX_OPERANDS] = { 0 };
    uint32_t need = 0;
    bool any = false;
    for (int k = 0; k < result_count(y->op); k++) {
        const entry *e = find(b, &y[k]);
        if (e && !ends(b, e)) any |= (dy[k] = e->cot) != NULL;
    }
    for (int i = 0; i < y->n_in; i++) need |= (uint32_t)passes(y, i, b) << i;
    if (!any || !need) return;
    if (!differentiable(y->op)) {
        wf_poison(g, "%s has no gradient rule", y->op->name);
        return;
    }
    const wf_tensor *outer = g->forward;
    const char *scope = wf_scope(g, y->name);
    g->forward = outer ? outer : y;
    if (y->op->grad)
        y->op->grad(y, dy, dx, need);
    else
        share_by_decomposition(y, dy, dx, need);
    for (int i = 0; i < y->n_in; i++)
        if ((need >> i & 1) && dx[i] && !g->failed) add_share(b, y->in[i], dx[i]);
    wf_scope(g, scope);
    g->forward = outer;
}

static void walk(books *b) {
    for (int i = b->n - 1; i >= 0 && !b->g->failed; i--) {
        wf_tensor *t = b->entries[i].node;
        if (t->kind == WF_COMPUTED && t->result == 0) visit(b, t);
    }
}

/* ---- what y is made of ----------------------------------------------------------------------- */

static bool enter(books *b, wf_tensor *t, int on) {
    if (find(b, t)) return true;
    if (b->n == b->cap) {
        int cap = b->cap ? 2 * b->cap : 32;
        entry *more = realloc(b->entries, (size_t)cap * sizeof *more);
        if (!more) return wf_poison(b->g, "out of memory"), false;
        b->entries = more, b->cap = cap;
    }
    b->entries[b->n] = (entry){ t, NULL, b->g->places[t->id], (unsigned char)on };
    b->g->places[t->id] = b->n++;
    return true;
}

/* A node with several results is asked by way of result 0. */
static bool enter_operands(books *b, wf_tensor *t) {
    if (t->result) return enter(b, t - t->result, 0);
    for (int i = 0; i < t->n_in; i++)
        if (t->in[i] && t->in[i]->id >= b->first && !enter(b, t->in[i], 0)) return false;
    return true;
}

static int by_id(const void *a, const void *b) {
    return ((const entry *)a)->node->id - ((const entry *)b)->node->id;
}

static bool collect(books *b, wf_tensor *const *y, wf_tensor *const *dy, int n_y,
                    wf_tensor *const *x, int n_x) {
    for (int i = 0; i < n_x; i++)
        if (!enter(b, x[i], REACHED | WANTED)) return false;
    for (int i = 0; i < n_y; i++)
        if (y[i] && dy[i] && !enter(b, y[i], 0)) return false;
    for (int i = 0; i < b->n; i++)
        if (!ends(b, &b->entries[i]) && !enter_operands(b, b->entries[i].node)) return false;
    qsort(b->entries, (size_t)b->n, sizeof *b->entries, by_id);
    for (int i = 0; i < b->n; i++) b->g->places[b->entries[i].node->id] = i;
    return true;
}

static void close_books(books *b) {
    for (int i = 0; i < b->n; i++) b->g->places[b->entries[i].node->id] = b->entries[i].outer;
    free(b->entries);
}

static bool open_books(books *b, wf_tensor *const *y, wf_tensor *const *dy, int n_y,
                       wf_tensor *const *x, int n_x) {
    for (int i = 0; i < n_y; i++)
        if (y[i] && (y[i]->graph != b->g || (dy[i] && dy[i]->graph != b->g)))
            return wf_poison(b->g, "gradient: tensors of different graphs"), false;
    for (int i = 0; i < n_x; i++) {
        if (!x[i]) return wf_poison(b->g, "gradient: tensor %d is NULL", i), false;
        if (x[i]->graph != b->g)
            return wf_poison(b->g, "gradient: tensors of different graphs"), false;
        if (x[i]->dtype == WF_I32)
            return wf_poison(b->g, "gradient: '%s' is i32, which has no gradient", x[i]->name),
                   false;
    }
    if (!collect(b, y, dy, n_y, x, n_x)) return false;
    for (int i = 0; i < n_y; i++)
        if (y[i] && dy[i]) add_share(b, y[i], dy[i]);
    return true;
}

static bool differentiate(wf_tensor *const *y, wf_tensor *const *dy, int n_y, wf_tensor *const *x,
                          int n_x, wf_tensor **dx, bool through, int first) {
    wf_graph *g = NULL;
    if ((n_y && (!y || !dy)) || (n_x && (!x || !dx))) return false;
    for (int i = 0; i < n_y && !g; i++) g = y[i] ? y[i]->graph : NULL;
    for (int i = 0; i < n_x; i++) dx[i] = NULL;
    if (!wf_ok(g)) return false;
    books b = { .g = g, .through = through, .first = first };
    bool open = open_books(&b, y, dy, n_y, x, n_x);
    if (open && (g->forward || wf_gradient_flows(g, y, dy, n_y, x, n_x, through))) {
        reach(&b);
        walk(&b);
        for (int i = 0; i < n_x; i++) dx[i] = find(&b, x[i])->cot;
    }
    close_books(&b);
    return !g->failed;
}

/* What was recorded before all x does not depend on them. */
static int first_of(wf_tensor *const *x, int n) {
    int first = INT32_MAX;
    for (int i = 0; i < n; i++)
        if (x && x[i] && x[i]->id < first) first = x[i]->id;
    return first;
}

bool wf_vjp(wf_tensor *const *y, wf_tensor *const *dy, int n_y, wf_tensor *const *x, int n_x,
            wf_tensor **dx) {
    return differentiate(y, dy, n_y, x, n_x, dx, false, first_of(x, n_x));
}

bool wf_grad(wf_tensor *loss, wf_tensor *const *wrt, int n, wf_tensor **grads) {
    wf_graph *g = loss ? loss->graph : n > 0 && wrt && wrt[0] ? wrt[0]->graph : wf_failed_graph();
    if (n > 0 && (!wrt || !grads)) return wf_poison(g, "gradient: a list is NULL"), false;
    for (int i = 0; i < n; i++) grads[i] = &g->poison;
    if (!loss) return wf_poison(g, "gradient: the loss is NULL"), false;
    if (!wf_ok(g)) return false;
    if (loss->ndim != 0 || loss->dtype == WF_I32) {
        char shape[96];
        wf_shape_text(g, loss->ndim, loss->shape, shape, sizeof shape);
        return wf_poison(g, "gradient: the loss is %s of shape %s, not a real scalar",
                         wf_dtype_name(loss->dtype), shape),
               false;
    }
    const wf_tensor *outer = g->forward;
    g->forward = loss;
    wf_tensor *one = filled(loss, 1);
    g->forward = outer;
    bool ok = differentiate(&loss, &one, 1, wrt, n, grads, true, first_of(wrt, n));
    ok = ok && wf_gradients_are_zero(loss, wrt, n, grads);
    for (int i = 0; i < n; i++)
        if (!grads[i]) grads[i] = ok ? filled(wrt[i], 0) : &g->poison;
    return wf_ok(g);
}
