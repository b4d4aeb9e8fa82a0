/* core/record/record.c - records a node from an op and its operands.
 *
 * wf_record makes the checks common to all ops, runs the op's shape rule on the nominal shapes, and
 * appends the node. */
#include "record.h"
#include "core/compose.h"

#include <string.h>

/* ---- operands -------------------------------------------------------------------------------- */

/* The graph of the first operand whose graph was allocated; else the failed graph, or NULL if all
 * operands are NULL. */
static wf_graph *graph_of(int n, wf_tensor *const *in) {
    wf_graph *g = NULL;
    for (int i = 0; i < n; i++)
        if (in[i] && (!g || g == wf_failed_graph())) g = in[i]->graph;
    return g;
}

/* The graph that all operands belong to. If they belong to different graphs, those graphs fail. */
static wf_graph *common_graph(const char *name, int n, wf_tensor *const *in) {
    wf_graph *g = graph_of(n, in);
    for (int i = 0; i < n; i++) {
        wf_graph *other = in[i] ? in[i]->graph : g;
        if (other == g) continue;
        if (other == wf_failed_graph()) {
            wf_poison(g, "%s: operand %d is the result of a call that failed", name, i);
            continue;
        }
        wf_poison(other, "%s: operand %d is of another graph", name, i);
        wf_poison(g, "%s: operand %d is of another graph", name, i);
    }
    return g;
}

static bool operand_ok(wf_graph *g, const wf_op *op, int i, const wf_tensor *t) {
    if (!t) {
        if (op->optional >> i & 1) return true;
        return wf_refuse(g, "%s: operand %d is NULL", op->name, i);
    }
    if (t->op && t->op->writes)
        return wf_refuse(g, "%s: operand %d is the update %s, which has no value", op->name, i,
                         t->op->name);
    if (op->writes >> i & 1 && !is_stored(t))
        return wf_refuse(g, "%s: operand %d is not a parameter or buffer", op->name, i);
    return true;
}

static bool operands_ok(wf_graph *g, const wf_op *op, int n, wf_tensor *const *in) {
    bool fits = op->arity < 0 ? n <= WF_MAX_OPERANDS : n == op->arity;
    int most = op->arity < 0 ? WF_MAX_OPERANDS : op->arity;
    if (!fits)
        return wf_refuse(g, "%s: %d operands, %s %d", op->name, n,
                         op->arity < 0 ? "at most" : "expected", most);
    for (int i = 0; i < n; i++)
        if (!operand_ok(g, op, i, in[i])) return false;
    return true;
}

/* ---- recording ------------------------------------------------------------------------------- */

static wf_tensor *append(wf_graph *g, const wf_call *c, wf_tensor *const *in, const void *attrs) {
    wf_tensor **operands = wf_graph_alloc(g, (size_t)c->n_in * sizeof *operands);
    void *copy = c->op->attr_bytes ? wf_graph_alloc(g, c->op->attr_bytes) : NULL;
    wf_tensor *t = g->failed ? NULL : wf_graph_add(g, c->n_out);
    if (!t) return &g->poison;
    memcpy(operands, in, (size_t)c->n_in * sizeof *operands);
    if (copy && attrs) memcpy(copy, attrs, c->op->attr_bytes);
    for (int k = 0; k < c->n_out; k++) {
        t[k].kind = WF_COMPUTED;
        t[k].dtype = c->out[k].dtype;
        t[k].ndim = c->out[k].ndim;
        memcpy(t[k].shape, c->out[k].shape, sizeof t[k].shape);
        t[k].op = c->op;
        t[k].in = operands;
        t[k].n_in = c->n_in;
        t[k].attrs = copy;
        t[k].forward = g->forward;
        t[k].function = g->function;
    }
    return t;
}

/* Programs define ops too, so their fields are checked. */
static bool op_ok(wf_graph *g, const wf_op *op, const void *attrs) {
    if (!op->name || !op->shape || (!kernel_of(op)->eval && !op->view))
        return wf_refuse(g, "an op needs a name, a shape rule, and an eval or a view");
    if (op->arity > WF_MAX_OPERANDS || op->results < 0 || op->results > WF_MAX_RESULTS)
        return wf_refuse(g, "%s: %d operands and %d results, at most %d and %d", op->name,
                         op->arity, op->results, WF_MAX_OPERANDS, WF_MAX_RESULTS);
    if (op->attr_bytes && !attrs) return wf_refuse(g, "%s: its attributes are missing", op->name);
    return true;
}

wf_tensor *wf_record(const wf_op *op, int n_in, wf_tensor *const *in, const void *attrs) {
    if (!op || n_in < 1 || !in) return &wf_failed_graph()->poison;
    wf_graph *g = common_graph(op->name ? op->name : "an op", n_in, in);
    if (!g) return &wf_failed_graph()->poison;
    if (g->failed || !op_ok(g, op, attrs) || !operands_ok(g, op, n_in, in)) return &g->poison;
    wf_report report;
    wf_report_reset(&report, false);
    recorded_call c;
    wf_fill_call(&c, g, op, n_in, in, attrs, &report);
    if (!op->shape(&c.call)) {
        wf_name_sizes(g, op, n_in, in, attrs, report.message);
        return wf_poison(g, "%s: %s", op->name,
                         report.message[0] ? report.message : "does not fit");
    }
    for (int k = 0; k < c.call.n_out; k++) {
        if (!wf_shape_counts(c.out[k].dtype, c.out[k].ndim, c.out[k].shape))
            return wf_poison(g, "%s: the result %s is too large", op->name,
                             wf_show(&c.call, &c.out[k]));
    }
    return append(g, &c.call, in, attrs);
}

/* ---- functions that record several ops: compose.h -------------------------------------------- */

void wf_compose(const char *name, int n, wf_tensor *const *operands) {
    wf_graph *g = common_graph(name, n, operands);
    for (int i = 0; i < n; i++)
        if (!operands[i]) wf_poison(g, "%s: operand %d is NULL", name, i);
    if (!wf_ok(g)) return;
    if (!g->n_functions++) g->function = name;
}

wf_tensor *wf_composed(wf_tensor *y) {
    wf_graph *g = y ? y->graph : NULL;
    if (wf_ok(g) && !--g->n_functions) g->function = NULL;
    return y;
}
