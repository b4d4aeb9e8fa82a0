/* core/record/grad.c - reverse-mode differentiation: gradients recorded as nodes of the same graph.
 *
 * An op's gradient rule returns what this use of its operands contributes to their gradients. This
 * file does the rest: it finds the nodes that lie between y, which is differentiated, and x, the
 * tensors that y is differentiated with respect to; it adds up the contributions to a tensor that
 * is used more than once, and sums over broadcast axes. An op without a gradient rule is
 * differentiated through its decomposition, in a backward pass inside the backward pass; for this
 * reason a pass holds only the nodes that y is computed from, not the whole graph. Gradients
 * through ops that have none are rejected before any gradient rule runs: flow.c. */
#include "core/basis.h"
#include "record.h"

#include <stdlib.h>

/* a node of a backward pass: one of x or y, or a node that y is computed from */
typedef struct entry {
    wf_tensor *node;
    wf_tensor *cotangent; /* the sum of the contributions so far, or NULL */
    int outer;            /* the index of the node's entry in the enclosing backward pass */
    unsigned char marks;  /* bits below */
} entry;
enum { REACHED = 1, WRT = 2 }; /* bits: the node depends on x; the node is one of x */

/* The state of one backward pass. */
typedef struct backward {
    wf_graph *g;
    entry *entries; /* sorted by node id; g->entry_of[id] is the index */
    int n;
    size_t cap;
    bool through;     /* go on from x to its operands, because one x may depend on another */
    int first;        /* nodes with a smaller id are ignored, except x and y */
    recomputed again; /* the region that the pass is in */
} backward;

/* ---- the ops that this file records: basis.h ------------------------------------------------- */

static wf_tensor *fill(wf_tensor *like, double value) {
    return wf_record(wf_basis.fill, 1, &like, &value);
}

static wf_tensor *sum_to(wf_tensor *x, wf_tensor *like) {
    return wf_record(wf_basis.sum_to, 2, (wf_tensor *[]){ x, like }, NULL);
}

static wf_tensor *add(wf_tensor *a, wf_tensor *b) {
    return wf_record(wf_basis.add, 2, (wf_tensor *[]){ a, b }, NULL);
}

static entry *find(const backward *b, const wf_tensor *t) {
    int at = b->g->entry_of[t->id];
    return at < b->n && b->entries[at].node == t ? &b->entries[at] : NULL;
}

/* True if operand i of t must get a gradient. */
static bool needs_gradient(const wf_tensor *t, int i, const backward *b) {
    const wf_tensor *in = t->in[i];
    if (!in || in->dtype == WF_I32 || (t->op->shape_only >> i & 1)) return false;
    const entry *e = find(b, in);
    return e && (e->marks & REACHED);
}

/* Does the pass end at this node? */
static bool is_target(const backward *b, const entry *e) {
    return (e->marks & WRT) && !b->through;
}

/* Mark the nodes that depend on x, except through integers and ops without a gradient. */
static void mark_reached(backward *b) {
    for (entry *e = b->entries; e < b->entries + b->n; e++) {
        const wf_tensor *t = e->node;
        if (is_target(b, e)) continue;
        if (t->kind != WF_COMPUTED || t->dtype == WF_I32 || t->op->no_grad) continue;
        for (int i = 0; i < t->n_in; i++)
            if (needs_gradient(t, i, b)) e->marks |= REACHED;
    }
}

static bool same_recorded_shape(const wf_tensor *a, const wf_tensor *b) {
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i]) return false;
    return true;
}

/* Add a contribution to x's cotangent. Equal recorded shapes stay equal under every binding,
 * because the nominal sizes of extents are distinct primes; so sum_to is recorded only where they
 * differ. */
static void accumulate(backward *b, wf_tensor *x, wf_tensor *dx) {
    if (!same_recorded_shape(dx, x)) dx = sum_to(dx, x);
    entry *e = find(b, x);
    e->cotangent = e->cotangent ? add(e->cotangent, dx) : dx;
}

static bool differentiate(wf_tensor *const *y, wf_tensor *const *dy, int n_y, wf_tensor *const *x,
                          int n_x, wf_tensor **dx, bool through, int first);

static void differentiate_decomposition(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx,
                                        uint32_t need) {
    wf_tensor *results[WF_MAX_RESULTS] = { 0 }, *x[WF_MAX_OPERANDS], *grads[WF_MAX_OPERANDS];
    int operand[WF_MAX_OPERANDS], n = 0, first = y->graph->n_nodes;
    y->op->decompose(y, results);
    /* A tensor that is an operand twice is listed once: its gradient then covers both uses. */
    for (int i = 0; i < y->n_in; i++) {
        bool again = false;
        for (int j = 0; j < n; j++) again |= x[j] == y->in[i];
        if ((need >> i & 1) && !again) {
            operand[n] = i;
            x[n++] = y->in[i];
        }
    }
    if (!differentiate(results, dy, result_count(y->op), x, n, grads, false, first)) return;
    for (int j = 0; j < n; j++) dx[operand[j]] = grads[j];
}

/* Differentiate one node: y is its result 0. */
static void visit(backward *b, wf_tensor *y) {
    wf_graph *g = b->g;
    wf_tensor *dy[WF_MAX_RESULTS] = { 0 }, *dx[WF_MAX_OPERANDS] = { 0 };
    uint32_t need = 0;
    bool any = false;
    for (int k = 0; k < result_count(y->op); k++) {
        const entry *e = find(b, &y[k]);
        if (e && !is_target(b, e)) any |= (dy[k] = e->cotangent) != NULL;
    }
    for (int i = 0; i < y->n_in; i++) need |= (uint32_t)needs_gradient(y, i, b) << i;
    if (!any || !need || y->op->detaches) return;
    if (!y->op->grad && !y->op->decompose) {
        wf_poison(g, "%s has no gradient rule", y->op->name);
        return;
    }
    wf_tensor *read = wf_recomputed(&b->again, y);
    if (!read) return;
    const wf_tensor *outer = g->forward;
    const char *scope = wf_scope(g, y->name);
    g->forward = outer ? outer : y;
    if (y->op->grad)
        y->op->grad(read, dy, dx, need);
    else
        differentiate_decomposition(read, dy, dx, need);
    for (int i = 0; i < y->n_in; i++)
        if ((need >> i & 1) && dx[i] && !g->failed) accumulate(b, y->in[i], dx[i]);
    wf_scope(g, scope);
    g->forward = outer;
}

static void propagate(backward *b) {
    for (int i = b->n - 1; i >= 0 && !b->g->failed; i--) {
        wf_tensor *t = b->entries[i].node;
        if (t->kind == WF_COMPUTED && t->result == 0) visit(b, t);
    }
}

/* ---- begin and finish ------------------------------------------------------------------------ */

static bool add_entry(backward *b, wf_tensor *t, int marks) {
    if (find(b, t)) return true;
    if (!wf_grow(&b->entries, &b->cap, (size_t)b->n + 1, sizeof *b->entries))
        return wf_refuse(b->g, "out of memory");
    b->entries[b->n] = (entry){ t, NULL, b->g->entry_of[t->id], (unsigned char)marks };
    b->g->entry_of[t->id] = b->n++;
    return true;
}

/* Add entries for the operands of node t. For a later result of an op, add result 0 instead, whose
 * operands are added when its turn comes. */
static bool add_operands(backward *b, wf_tensor *t) {
    if (t->result) return add_entry(b, t - t->result, 0);
    for (int i = 0; i < t->n_in; i++)
        if (t->in[i] && t->in[i]->id >= b->first && !add_entry(b, t->in[i], 0)) return false;
    return true;
}

static int by_id(const void *a, const void *b) {
    return ((const entry *)a)->node->id - ((const entry *)b)->node->id;
}

/* Make entries for x, y and the nodes that y is computed from, in the order of their ids. */
static bool collect(backward *b, wf_tensor *const *y, wf_tensor *const *dy, int n_y,
                    wf_tensor *const *x, int n_x) {
    for (int i = 0; i < n_x; i++)
        if (!add_entry(b, x[i], REACHED | WRT)) return false;
    for (int i = 0; i < n_y; i++)
        if (y[i] && dy[i] && !add_entry(b, y[i], 0)) return false;
    for (int i = 0; i < b->n; i++)
        if (!is_target(b, &b->entries[i]) && !add_operands(b, b->entries[i].node)) return false;
    if (b->n) qsort(b->entries, (size_t)b->n, sizeof *b->entries, by_id);
    for (int i = 0; i < b->n; i++) b->g->entry_of[b->entries[i].node->id] = i;
    return true;
}

/* End the pass: g->entry_of again has the indices of the enclosing pass. */
static void finish(backward *b) {
    for (int i = 0; i < b->n; i++) b->g->entry_of[b->entries[i].node->id] = b->entries[i].outer;
    free(b->entries), free(b->again.copies);
}

static bool begin(backward *b, wf_tensor *const *y, wf_tensor *const *dy, int n_y,
                  wf_tensor *const *x, int n_x) {
    for (int i = 0; i < n_y; i++)
        if (y[i] && (y[i]->graph != b->g || (dy[i] && dy[i]->graph != b->g)))
            return wf_refuse(b->g, "gradient: tensors of different graphs");
    for (int i = 0; i < n_x; i++) {
        if (!x[i]) return wf_refuse(b->g, "gradient: tensor %d is NULL", i);
        if (x[i]->graph != b->g) return wf_refuse(b->g, "gradient: tensors of different graphs");
        if (x[i]->dtype == WF_I32)
            return wf_refuse(b->g, "gradient: '%s' is i32, which has no gradient", x[i]->name);
    }
    if (!collect(b, y, dy, n_y, x, n_x)) return false;
    for (int i = 0; i < n_y; i++)
        if (y[i] && dy[i]) accumulate(b, y[i], dy[i]);
    return true;
}

static bool differentiate(wf_tensor *const *y, wf_tensor *const *dy, int n_y, wf_tensor *const *x,
                          int n_x, wf_tensor **dx, bool through, int first) {
    wf_graph *g = NULL;
    if ((n_y && (!y || !dy)) || (n_x && (!x || !dx))) return false;
    for (int i = 0; i < n_y && !g; i++) g = y[i] ? y[i]->graph : NULL;
    for (int i = 0; i < n_x; i++) dx[i] = NULL;
    if (!wf_ok(g)) return false;
    backward b = { .g = g, .through = through, .first = first };
    bool begun = begin(&b, y, dy, n_y, x, n_x);
    if (begun && (g->forward || wf_gradient_flows(g, y, dy, n_y, x, n_x, through))) {
        mark_reached(&b);
        propagate(&b);
        for (int i = 0; i < n_x; i++) dx[i] = find(&b, x[i])->cotangent;
    }
    finish(&b);
    return !g->failed;
}

/* The smallest id in x. No node with a smaller id depends on any of x. */
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
    if (n > 0 && (!wrt || !grads)) return wf_refuse(g, "gradient: a list is NULL");
    for (int i = 0; i < n; i++) grads[i] = &g->poison;
    if (!loss) return wf_refuse(g, "gradient: the loss is NULL");
    if (!wf_ok(g)) return false;
    if (loss->ndim != 0 || loss->dtype == WF_I32) {
        char shape[96];
        wf_shape_text(g, loss->ndim, loss->shape, shape, sizeof shape);
        return wf_refuse(g, "gradient: the loss is %s of shape %s, not a real scalar",
                         wf_dtype_name(loss->dtype), shape);
    }
    const wf_tensor *outer = g->forward;
    g->forward = loss;
    wf_tensor *one = fill(loss, 1);
    g->forward = outer;
    bool ok = differentiate(&loss, &one, 1, wrt, n, grads, true, first_of(wrt, n));
    ok = ok && wf_gradients_are_zero(loss, wrt, n, grads);
    for (int i = 0; i < n; i++)
        if (!grads[i]) grads[i] = ok ? fill(wrt[i], 0) : &g->poison;
    return wf_ok(g);
}
