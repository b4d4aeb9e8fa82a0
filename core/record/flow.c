/* core/record/flow.c - gradients that would be zero without a word: asked for through an op that has none.
 *
 * An argmax, a comparison or a cast to ids jumps or stays; what comes of it has the slope 0, which
 * nobody means who asks for a gradient. So it is an error, unless the program said so (detach) or
 * the op is only told which (a mask, ids: wf_op.picks). What gradient rules record is theirs. */
#include "record.h"

#include <stdlib.h>

enum { VARIES = 1, FLOWS = 2, SOUGHT = 4 };

/* Does operand i of t move when what is sought does? */
static bool moves(const wf_tensor *t, int i, const unsigned char *marks) {
    return t->in[i] && !(t->op->shape_only >> i & 1) && t->in[i]->id >= 0 &&
           (marks[t->in[i]->id] & VARIES);
}

/* What depends on what is sought, in any way but through a detach. */
static void mark_varying(const wf_graph *g, unsigned char *marks, bool through) {
    for (int id = 0; id < g->n_nodes; id++) {
        const wf_tensor *t = g->nodes[id];
        if (marks[id] & SOUGHT) marks[id] |= VARIES;
        if ((marks[id] & SOUGHT && !through) || t->kind != WF_COMPUTED || t->op->detaches) continue;
        for (int i = 0; i < t->n_in; i++)
            if (moves(t, i, marks)) marks[id] |= VARIES;
    }
}

/* Does t turn a real number that varies into one that jumps? */
static bool jumps(const wf_tensor *t, const unsigned char *marks) {
    if (t->kind != WF_COMPUTED || t->forward || (!t->op->no_grad && t->dtype != WF_I32))
        return false;
    for (int i = 0; i < t->n_in; i++)
        if (moves(t, i, marks) && t->in[i]->dtype != WF_I32) return true;
    return false;
}

/* The leaf or other tensor that is sought and lies beneath. */
static const wf_tensor *sought_beneath(const wf_tensor *t, const unsigned char *marks) {
    while (!(marks[t->id] & SOUGHT)) {
        int i = 0;
        while (i < t->n_in - 1 && !moves(t, i, marks)) i++;
        t = t->in[i];
    }
    return t;
}

static bool refuse(wf_graph *g, const wf_tensor *t, const unsigned char *marks) {
    const wf_tensor *x = sought_beneath(t, marks);
    const char *scope = wf_scope(g, t->name);
    wf_poison(g,
              "%s: no gradient passes it towards '%s': %s. Leave it out of what is differentiated, "
              "or say wf_detach",
              t->op->name, called(x), t->op->no_grad ? t->op->no_grad : "ids have none");
    wf_scope(g, scope);
    return false;
}

/* From y down: along what a gradient flows (`all`: along everything). True, or the graph fails at
 * the first op that jumps. */
static bool follow(wf_graph *g, unsigned char *marks, bool through, bool all) {
    for (int id = g->n_nodes - 1; id >= 0; id--) {
        const wf_tensor *t = g->nodes[id];
        if (!(marks[id] & FLOWS) || !(marks[id] & VARIES)) continue;
        if (jumps(t, marks)) return refuse(g, t, marks);
        if ((marks[id] & SOUGHT && !through) || t->kind != WF_COMPUTED) continue;
        bool rule = t->forward && (t->op->no_grad || t->dtype == WF_I32); /* its own mask or ids */
        for (int i = 0; i < t->n_in && !rule; i++)
            if (moves(t, i, marks) && (all || !(t->op->picks >> i & 1)))
                marks[t->in[i]->id] |= FLOWS;
    }
    return true;
}

/* Of x those alone that have no `grads` yet, if there is such a list. */
static bool check(wf_graph *g, wf_tensor *const *y, wf_tensor *const *dy, int n_y,
                  wf_tensor *const *x, int n_x, wf_tensor *const *grads, bool through, bool all) {
    unsigned char *marks = calloc((size_t)g->n_nodes + 1, 1);
    if (!marks) return wf_poison(g, "out of memory"), false;
    for (int i = 0; i < n_x; i++)
        if (!grads || !grads[i]) marks[x[i]->id] |= SOUGHT;
    for (int i = 0; i < n_y; i++)
        if (y[i] && dy[i]) marks[y[i]->id] |= FLOWS;
    mark_varying(g, marks, through);
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
