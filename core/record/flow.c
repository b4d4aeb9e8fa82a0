/* core/record/flow.c - an error where a gradient would silently be zero.
 *
 * An argmax, a comparison or a cast to ids is piecewise constant: its derivative is 0 wherever it
 * exists. A program that asks for a gradient through such an op has most probably made a mistake.
 * So this is an error, with three exceptions: ops that detach (wf_detach, wf_round and the like);
 * results that are used only as ids or masks (wf_op.nondiff); and nodes that gradient rules
 * recorded, because a gradient rule may use comparisons. */
#include "record.h"

#include <stdlib.h>

/* Marks of a node. VARIES: it depends on one of x, the tensors that y is differentiated with
 * respect to; FLOWS: a gradient flows into it; WRT: it is one of x. */
enum { VARIES = 1, FLOWS = 2, WRT = 4 };

/* True if t reads the values of operand i, and these depend on one of x. */
static bool operand_varies(const wf_tensor *t, int i, const unsigned char *marks) {
    return t->in[i] && !(t->op->shape_only >> i & 1) && t->in[i]->id >= 0 &&
           (marks[t->in[i]->id] & VARIES);
}

/* Mark x, and the nodes that depend on one of x on a path without ops that detach. */
static void mark_varying(const wf_graph *g, unsigned char *marks) {
    for (int id = 0; id < g->n_nodes; id++) {
        const wf_tensor *t = g->nodes[id];
        if (marks[id] & WRT) marks[id] |= VARIES;
        if (t->kind != WF_COMPUTED || t->op->detaches) continue;
        for (int i = 0; i < t->n_in; i++)
            if (operand_varies(t, i, marks)) marks[id] |= VARIES;
    }
}

/* True if t stops the gradient of a real operand that depends on x: its op has none, or its result
 * is i32. False for ops that detach, and for nodes that gradient rules recorded. */
static bool blocks_gradient(const wf_tensor *t, const unsigned char *marks) {
    bool stops = t->kind == WF_COMPUTED && (t->op->no_grad || t->dtype == WF_I32);
    /* an op that detaches is no error: the search just ends there */
    if (!stops || t->forward || t->op->detaches) return false;
    for (int i = 0; i < t->n_in; i++)
        if (operand_varies(t, i, marks) && t->in[i]->dtype != WF_I32) return true;
    return false;
}

/* The first of x that is found on a path from t along its operands, for the message. */
static const wf_tensor *find_wrt(const wf_tensor *t, const unsigned char *marks) {
    while (!(marks[t->id] & WRT)) {
        int i = 0;
        while (i < t->n_in - 1 && !operand_varies(t, i, marks)) i++;
        t = t->in[i];
    }
    return t;
}

static bool reject(wf_graph *g, const wf_tensor *t, const unsigned char *marks) {
    const wf_tensor *x = find_wrt(t, marks);
    const char *scope = wf_scope(g, t->name);
    wf_poison(g,
              "%s: no gradient passes it towards '%s': %s. Leave it out of what is differentiated, "
              "or apply wf_detach",
              t->op->name, called(x), t->op->no_grad ? t->op->no_grad : "ids have none");
    wf_scope(g, scope);
    return false;
}

/* Walk back from y along the operands that a gradient flows to (`all`: along every operand). At the
 * first op that blocks the gradient the graph fails, and the result is false. */
static bool follow(wf_graph *g, unsigned char *marks, bool through, bool all) {
    for (int id = g->n_nodes - 1; id >= 0; id--) {
        const wf_tensor *t = g->nodes[id];
        if (!(marks[id] & FLOWS) || !(marks[id] & VARIES)) continue;
        if (blocks_gradient(t, marks)) return reject(g, t, marks);
        if ((marks[id] & WRT && !through) || t->kind != WF_COMPUTED || t->op->detaches) continue;
        /* true for a mask or ids that a gradient rule recorded for itself */
        bool internal = t->forward && (t->op->no_grad || t->dtype == WF_I32);
        for (int i = 0; i < t->n_in && !internal; i++)
            if (operand_varies(t, i, marks) && (all || !(t->op->nondiff >> i & 1)))
                marks[t->in[i]->id] |= FLOWS;
    }
    return true;
}

/* Search from y for ops that block the gradient towards x. If `grads` is given, only towards those
 * x that have no gradient in it. */
static bool check(wf_graph *g, wf_tensor *const *y, wf_tensor *const *dy, int n_y,
                  wf_tensor *const *x, int n_x, wf_tensor *const *grads, bool through, bool all) {
    unsigned char *marks = calloc((size_t)g->n_nodes + 1, 1);
    if (!marks) return wf_refuse(g, "out of memory");
    for (int i = 0; i < n_x; i++)
        if (!grads || !grads[i]) marks[x[i]->id] |= WRT;
    for (int i = 0; i < n_y; i++)
        if (y[i] && dy[i]) marks[y[i]->id] |= FLOWS;
    mark_varying(g, marks);
    bool ok = follow(g, marks, through, all);
    free(marks);
    return ok;
}

bool wf_gradient_flows(wf_graph *g, wf_tensor *const *y, wf_tensor *const *dy, int n_y,
                       wf_tensor *const *x, int n_x, bool through) {
    return check(g, y, dy, n_y, x, n_x, NULL, through, false);
}

bool wf_gradients_are_zero(wf_tensor *y, wf_tensor *const *x, int n, wf_tensor *const *grads) {
    return check(y->graph, &y, &y, 1, x, n, grads, true, true);
}
