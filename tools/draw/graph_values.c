/* tools/draw/graph_values.c - numbers in the nodes of a small graph. See graph_values.h.
 *
 * Gradients with respect to every node, and second derivatives, are recorded in the same graph. One
 * plan then fetches them all. */
#include "graph_values.h"
#include "core/graph_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/refused.h"
#include "tools/cli/terminal.h"

/* ---- what is recorded ------------------------------------------------------------------------ */

/* Finds the nodes of the forward pass, in the order of recording, without constants. */
static bool find_nodes(graph_values *v, const subject *s, char *message) {
    wf_tensor *ends[] = { v->loss, s->result };
    int total = wf_node_count(s->graph);
    bool *needed = nodes_behind(s->graph, ends, 2);
    v->node = calloc((size_t)total + 1, sizeof *v->node);
    v->gradient = calloc((size_t)total + 1, sizeof *v->gradient);
    v->second = calloc((size_t)total + 1, sizeof *v->second);
    bool room = needed && v->node && v->gradient && v->second;
    for (int id = 0; room && id < total; id++)
        if (needed[id] && wf_node(s->graph, id)->kind != WF_CONSTANT)
            v->node[v->n++] = wf_node(s->graph, id);
    free(needed);
    if (!room) return refused(message, "out of memory");
    if (v->n <= MOST_VALUED) return true;
    return refused(
        message,
        "--values: the graph has %d nodes, and %d can be looked at; --step walks through them",
        v->n, MOST_VALUED);
}

/* Records the gradients of the loss with respect to all nodes but ids, which have none. */
static bool record_gradients(graph_values *v, char *message) {
    wf_tensor **of = calloc((size_t)v->n + 1, sizeof *of);
    wf_tensor **dx = calloc((size_t)v->n + 1, sizeof *dx);
    int n = 0;
    for (int i = 0; of && i < v->n; i++)
        if (v->node[i]->dtype != WF_I32 && !v->node[i]->result) of[n++] = v->node[i];
    if (of && dx) wf_grad(v->loss, of, n, dx);
    for (int i = 0, k = 0; of && dx && i < v->n; i++)
        if (k < n && v->node[i] == of[k]) v->gradient[i] = dx[k++];
    bool room = of && dx;
    free(of);
    free(dx);
    return room || refused(message, "out of memory");
}

static void record_second(graph_values *v) {
    for (int i = 0; i < v->n; i++) {
        wf_tensor *g = v->gradient[i];
        if (!g) continue;
        wf_tensor *sum = g->ndim ? wf_sum(g, WF_ALL_AXES, false) : g;
        wf_grad(sum, &v->node[i], 1, &v->second[i]);
    }
}

/* The index of a node of the forward pass, or -1. */
static int index_of(const graph_values *v, const wf_tensor *t) {
    for (int i = 0; i < v->n; i++)
        if (v->node[i] == t) return i;
    return -1;
}

/* The operands of y that have a gradient, each once. */
static int operands_of(const graph_values *v, const wf_tensor *y, wf_tensor **to) {
    int n = 0;
    for (int k = 0; k < y->n_in; k++) {
        int i = y->in[k] ? index_of(v, y->in[k]) : -1;
        bool again = i < 0 || !v->gradient[i];
        for (int j = 0; j < n; j++) again = again || to[j] == y->in[k];
        if (!again) to[n++] = y->in[k];
    }
    return n;
}

/* Records what a consumer contributes to the gradients of its operands: its own gradient times its
 * derivative for each. Consumers with several results are left out, because only the first result
 * has a gradient here. */
static void record_shares_of(graph_values *v, int consumer) {
    wf_tensor *x[WF_MAX_OPERANDS], *dx[WF_MAX_OPERANDS], *y = v->node[consumer];
    int n = operands_of(v, y, x);
    if (!n || !v->gradient[consumer] || y->op->results > 1) return;
    if (!wf_vjp(&y, &v->gradient[consumer], 1, x, n, dx)) return;
    for (int k = 0; k < n; k++)
        if (dx[k]) v->share[v->n_shares++] = (share){ x[k], y, dx[k], 0 };
}

static bool record_shares(graph_values *v, char *message) {
    v->share = calloc((size_t)v->n * WF_MAX_OPERANDS + 1, sizeof *v->share);
    if (!v->share) return refused(message, "out of memory");
    for (int i = 0; i < v->n; i++) record_shares_of(v, i);
    return true;
}

/* ---- one plan -------------------------------------------------------------------------------- */

static bool fetch_all(graph_values *v, const subject *s, const example *e, char *message) {
    wf_tensor **wanted = calloc(3 * (size_t)v->n + (size_t)v->n_shares + 2, sizeof *wanted);
    int n = 0;
    if (!wanted) return refused(message, "out of memory");
    wanted[n++] = s->result;
    wanted[n++] = v->loss;
    for (int i = 0; i < v->n; i++) {
        if (v->gradient[i]) wanted[n++] = v->gradient[i];
        if (v->second[i]) wanted[n++] = v->second[i];
    }
    for (int i = 0; i < v->n_shares; i++) wanted[n++] = v->share[i].value;
    bool ok = node_list_new(&v->list, wanted, n, e, message);
    free(wanted);
    return ok;
}

static int larger_first(const void *a, const void *b) {
    double x = ((const share *)a)->size, y = ((const share *)b)->size;
    return (x < y) - (x > y);
}

static void sort_shares(graph_values *v) {
    for (int i = 0; i < v->n_shares; i++) {
        numbers x;
        if (!node_numbers(&v->list, v->share[i].value, &x)) continue;
        for (int64_t k = 0; k < x.n; k++) v->share[i].size += fabs(x.x[k]);
        free(x.x);
    }
    if (v->n_shares > 1) qsort(v->share, (size_t)v->n_shares, sizeof *v->share, larger_first);
}

bool graph_values_new(graph_values *v, const subject *s, const example *e, bool gradient,
                      bool second, char *message) {
    *v = (graph_values){ .loss = gradient ? subject_loss(s) : s->result };
    if (!find_nodes(v, s, message)) return false;
    if (gradient && !record_gradients(v, message)) return false;
    if (second) record_second(v);
    if (gradient && !record_shares(v, message)) return false;
    if (!wf_ok(s->graph)) return refused(message, "%s", wf_error(s->graph));
    if (!fetch_all(v, s, e, message)) return false;
    sort_shares(v);
    return !v->list.failed || refused(message, "out of memory");
}

void graph_values_free(graph_values *v) {
    node_list_free(&v->list);
    free(v->node);
    free(v->gradient);
    free(v->second);
    free(v->share);
    *v = (graph_values){ 0 };
}

/* ---- as Graphviz text ------------------------------------------------------------------------ */

char *graph_values_dot(const graph_values *v, const subject *s, wf_dot_options options,
                       char *message) {
    wf_dot_value *rows = calloc(3 * (size_t)v->n + 1, sizeof *rows);
    wf_tensor *fetch[] = { v->loss, s->result };
    int n = 0;
    for (int i = 0; rows && i < v->n; i++) {
        const wf_tensor *t = v->node[i];
        rows[n++] = (wf_dot_value){ t, t, NULL };
        if (v->gradient[i]) rows[n++] = (wf_dot_value){ t, v->gradient[i], "gradient" };
        if (v->second[i]) rows[n++] = (wf_dot_value){ t, v->second[i], "second derivative" };
    }
    options.values = rows;
    options.n_values = n;
    options.valued = v->list.plan;
    const int n_fetch = v->loss == s->result ? 1 : 2;
    char *text = rows ? wf_dot(fetch, n_fetch, &options, message) : NULL;
    if (!rows) refused(message, "out of memory");
    free(rows);
    return text;
}

/* ---- as a table ------------------------------------------------------------------------------ */

enum { LONGEST_CONSTANT = 64 };

/* Writes the name of a node in the table: "x", "#3". */
static void put_name(graph_values *v, const wf_tensor *t, FILE *out) {
    if (!t) {
        fputs("none", out);
        return;
    }
    if (t->kind == WF_CONSTANT) {
        char *number = node_text(&v->list, t);
        if (number) fputs(strlen(number) < LONGEST_CONSTANT ? number : "constant", out);
        free(number);
        return;
    }
    if (!t->op) {
        put_clean(out, t->name, -1);
        return;
    }
    if (index_of(v, t) >= 0) fprintf(out, "#%d", index_of(v, t) + 1);
}

static void put_value(graph_values *v, const char *label, const wf_tensor *t, FILE *out) {
    char *text = node_text(&v->list, t);
    for (char *at = text; at && *at;) {
        size_t n = strcspn(at, "\n");
        fprintf(out, "  %-18s %.*s\n", at == text ? label : "", (int)n, at);
        at += n + (at[n] == '\n');
    }
    free(text);
}

/* Writes the shares of a node's gradient. A single share is the gradient itself, so it is left
 * out. */
static void put_shares(graph_values *v, const wf_tensor *t, FILE *out) {
    char label[64];
    int n = 0;
    for (int i = 0; i < v->n_shares; i++) n += v->share[i].of == t;
    for (int i = 0; i < v->n_shares && n > 1; i++) {
        if (v->share[i].of != t) continue;
        snprintf(label, sizeof label, "  share by #%d", index_of(v, v->share[i].by) + 1);
        put_value(v, label, v->share[i].value, out);
    }
}

bool graph_values_table(graph_values *v, FILE *out) {
    char shape[160], attributes[ATTRIBUTES_TEXT];
    for (int i = 0; i < v->n && !v->list.failed; i++) {
        const wf_tensor *t = v->node[i];
        put_name(v, t, out);
        for (int k = 0; k < t->n_in; k++) {
            if (!k) fprintf(out, " = %s(", t->op->name);
            if (k && t->in[k]) fputs(", ", out);
            if (t->in[k]) put_name(v, t->in[k], out);
        }
        if (v->list.failed) break;
        if (t->op && *attributes_text(t, attributes)) fprintf(out, "; %s", attributes);
        fprintf(out, "%s  %s%s\n", t->n_in ? ")" : "",
                wf_shape_text(t->graph, t->ndim, t->shape, shape, sizeof shape),
                t == v->loss && v->gradient[i] ? "  differentiated" : "");
        put_value(v, "value", t, out);
        if (v->gradient[i]) put_value(v, "gradient", v->gradient[i], out);
        put_shares(v, t, out);
        if (v->second[i]) put_value(v, "second derivative", v->second[i], out);
    }
    return !v->list.failed;
}
