/* core/grad.c - reverse-mode differentiation: gradients recorded as nodes of the same graph.
 *
 * Ops return shares; the books are kept here: which nodes lie between x and y, shares of a tensor
 * that is used twice, the sum that undoes a broadcast. An op without a rule of its own is
 * differentiated through its decomposition. */
#include "engine.h"

#include <stdlib.h>

typedef struct books {
    wf_graph *g;
    int n;             /* nodes there were when the walk began */
    wf_tensor **cot;   /* by id: the cotangent so far, or NULL */
    unsigned char *on; /* by id: bits below */
    bool through;      /* what lies beneath x is looked at too */
    int fresh;         /* nodes from here on are of the rule that is being called */
} books;
enum { REACHED = 1, WANTED = 2 };

static bool differentiable(const wf_op *op) {
    return op && (op->grad || op->decompose);
}

static bool passes(const wf_tensor *t, int i, const books *b) {
    const wf_tensor *in = t->in[i];
    return in && in->dtype != WF_I32 && !(t->op->shape_only >> i & 1) && in->id < b->n &&
           (b->on[in->id] & REACHED);
}

static bool ends(const books *b, int id) {
    return (b->on[id] & WANTED) && !b->through;
}

/* Mark what depends on x, between x and the last node. */
static void reach(books *b) {
    for (int id = 0; id < b->n; id++) {
        const wf_tensor *t = b->g->nodes[id];
        if (ends(b, id)) continue;
        if (t->kind != WF_COMPUTED || t->dtype == WF_I32 || t->op->no_grad) continue;
        for (int i = 0; i < t->n_in; i++)
            if (passes(t, i, b)) b->on[id] |= REACHED;
    }
}

static bool same_recorded_shape(const wf_tensor *a, const wf_tensor *b) {
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i]) return false;
    return true;
}

/* so_far + share: as one node if their op can join them, or if the share's op can begin with what
 * it is added to, and nobody else has been given the share, so that it is not computed twice. */
static wf_tensor *sum(const books *b, wf_tensor *so_far, wf_tensor *share) {
    const wf_op *op = share->op;
    wf_tensor *in[WF_MAX_OPERANDS];
    wf_tensor *both = op && op->join && so_far->op == op ? op->join(so_far, share) : NULL;
    if (both) return both;
    bool begins =
        op && op->addend && share->id >= b->fresh && !share->result && !share->in[op->addend];
    if (!begins) return wf_add(so_far, share);
    for (int i = 0; i < share->n_in; i++) in[i] = share->in[i];
    in[op->addend] = so_far;
    return wf_record(op, share->n_in, in, share->attrs);
}

/* Add a share to x's cotangent. Equal recorded shapes stay equal under every binding, because the
 * nominal sizes of extents are distinct primes; so the sum is recorded only where they differ. */
static void add_share(books *b, wf_tensor *x, wf_tensor *share) {
    if (!same_recorded_shape(share, x)) share = wf_sum_to(share, x);
    b->cot[x->id] = b->cot[x->id] ? sum(b, b->cot[x->id], share) : share;
}

static void share_by_decomposition(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx,
                                   uint32_t need) {
    wf_tensor *results[WF_MAX_RESULTS] = { 0 }, *x[WF_MAX_OPERANDS], *shares[WF_MAX_OPERANDS];
    int place[WF_MAX_OPERANDS], n = 0;
    y->op->decompose(y, results);
    for (int i = 0; i < y->n_in;
         i++) { /* a tensor used twice is asked for once: its share is whole */
        bool again = false;
        for (int j = 0; j < n; j++) again |= x[j] == y->in[i];
        if ((need >> i & 1) && !again) place[n] = i, x[n++] = y->in[i];
    }
    if (!wf_vjp(results, dy, result_count(y->op), x, n, shares)) return;
    for (int j = 0; j < n; j++) dx[place[j]] = shares[j];
}

/* Differentiate one node: y is its result 0. */
static void visit(books *b, wf_tensor *y) {
    wf_graph *g = b->g;
    wf_tensor *dy[WF_MAX_RESULTS] = { 0 }, *dx[WF_MAX_OPERANDS] = { 0 };
    uint32_t need = 0;
    bool any = false;
    for (int k = 0; k < result_count(y->op); k++)
        if (!ends(b, y[k].id)) any |= (dy[k] = b->cot[y[k].id]) != NULL;
    for (int i = 0; i < y->n_in; i++) need |= (uint32_t)passes(y, i, b) << i;
    if (!any || !need) return;
    if (!differentiable(y->op)) {
        wf_poison(g, "%s has no gradient rule", y->op->name);
        return;
    }
    const wf_tensor *outer = g->forward;
    const char *scope = wf_scope(g, y->name);
    g->forward = outer ? outer : y;
    b->fresh = g->n_nodes;
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
    for (int id = b->n - 1; id >= 0 && !b->g->failed; id--) {
        wf_tensor *t = b->g->nodes[id];
        if (t->kind == WF_COMPUTED && t->result == 0) visit(b, t);
    }
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
    b->cot = calloc((size_t)b->n + 1, sizeof *b->cot);
    b->on = calloc((size_t)b->n + 1, 1);
    if (!b->cot || !b->on) return wf_poison(b->g, "out of memory"), false;
    for (int i = 0; i < n_x; i++) b->on[x[i]->id] = REACHED | WANTED;
    for (int i = 0; i < n_y; i++)
        if (y[i] && dy[i]) add_share(b, y[i], dy[i]);
    return true;
}

static bool differentiate(wf_tensor *const *y, wf_tensor *const *dy, int n_y, wf_tensor *const *x,
                          int n_x, wf_tensor **dx, bool through) {
    wf_graph *g = NULL;
    if ((n_y && (!y || !dy)) || (n_x && (!x || !dx))) return false;
    for (int i = 0; i < n_y && !g; i++) g = y[i] ? y[i]->graph : NULL;
    for (int i = 0; i < n_x; i++) dx[i] = NULL;
    if (!wf_ok(g)) return false;
    books b = { .g = g, .n = g->n_nodes, .through = through, .fresh = INT32_MAX };
    if (open_books(&b, y, dy, n_y, x, n_x)) {
        reach(&b);
        walk(&b);
        for (int i = 0; i < n_x; i++) dx[i] = b.cot[x[i]->id];
    }
    free(b.cot), free(b.on);
    return !g->failed;
}

bool wf_vjp(wf_tensor *const *y, wf_tensor *const *dy, int n_y, wf_tensor *const *x, int n_x,
            wf_tensor **dx) {
    return differentiate(y, dy, n_y, x, n_x, dx, false);
}

bool wf_grad(wf_tensor *loss, wf_tensor *const *wrt, int n, wf_tensor **grads) {
    wf_graph *g = loss ? loss->graph : n > 0 && wrt && wrt[0] ? wrt[0]->graph : failed_graph();
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
    wf_tensor *one = wf_fill(loss, 1);
    g->forward = outer;
    bool ok = differentiate(&loss, &one, 1, wrt, n, grads, true);
    for (int i = 0; i < n; i++)
        if (!grads[i]) grads[i] = ok ? wf_fill(wrt[i], 0) : &g->poison;
    return wf_ok(g);
}
