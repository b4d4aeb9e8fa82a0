/* tools/generate/explain_stack.c - writes the nodes of the model, with a sample of each one's
 * values. See explain.h. */
#include <stdlib.h>
#include <string.h>

#include "core/graph_internal.h"
#include "core/op.h"
#include "explain.h"

/* How many numbers the page shows: at most MOST_CELLS in all, COLUMNS in a row, and MOST_NODE_CELLS
 * of one node; FEWEST_CELLS of one node even if all together are then more. */
enum { MOST_CELLS = 26000, COLUMNS = 8, FEWEST_CELLS = 16, MOST_NODE_CELLS = 160 };

/* ---- which nodes ----------------------------------------------------------------------------- */

/* Operands come before results, so one pass backwards marks every node that a marked node reads. */
static void mark_operands(const wf_graph *g, bool *needed) {
    for (int id = wf_node_count(g); id-- > 0;) {
        const wf_tensor *t = wf_node(g, id);
        if (!needed[id] || !t->op) continue;
        for (int i = 0; i < t->n_in; i++)
            if (t->in[i] && !(t->op->shape_only >> i & 1)) needed[t->in[i]->id] = true;
    }
}

static void mark_roots(const wf_model *m, bool *needed) {
    needed[m->log_probs->id] = true;
    for (int i = 0; i < m->n_maps; i++)
        for (int64_t k = 0; k < m->maps[i].layers; k++) needed[m->maps[i].weights[k]->id] = true;
}

bool stack_open(stack *s, const wf_model *m) {
    int count = wf_node_count(m->graph);
    bool *needed = calloc((size_t)count + 1, sizeof *needed);
    *s = (stack){ calloc((size_t)count + 1, sizeof *s->nodes), 0 };
    if (needed && s->nodes) {
        mark_roots(m, needed);
        mark_operands(m->graph, needed);
        for (int id = 0; id < count; id++) {
            wf_tensor *t = wf_node(m->graph, id);
            if (needed[id] && t->op && t->kind == WF_COMPUTED) s->nodes[s->n++] = t;
        }
    }
    bool ok = needed && s->nodes;
    free(needed);
    return ok;
}

void stack_close(stack *s) {
    free(s->nodes);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* True for a node whose numbers are copied from its operand. The page shows no numbers for it. */
static bool is_view(const wf_tensor *t) {
    return t->op->family && strcmp(t->op->family, "shape") == 0 && t->n_in == 1;
}

static void number_json(const wf_tensor *t, const void *values, int64_t i, jsonl *out) {
    if (t->dtype == WF_I32)
        json_int(out, NULL, ((const int32_t *)values)[i]);
    else
        json_digits(out, NULL,
                    t->dtype == WF_F64 ? ((const double *)values)[i] : ((const float *)values)[i],
                    4);
}

/* Writes the first columns of the first rows, which lie along the last axis. */
static void sample_json(const wf_tensor *t, const void *values, int64_t rows, int64_t columns,
                        int64_t cells, jsonl *out) {
    int64_t wide = columns < COLUMNS ? columns : COLUMNS;
    int64_t high = wide && cells / wide < rows ? cells / wide : rows;
    json_open(out, "values", '[');
    for (int64_t i = 0; i < high; i++) {
        json_open(out, NULL, '[');
        for (int64_t k = 0; k < wide; k++) number_json(t, values, i * columns + k, out);
        json_close(out, ']');
    }
    json_close(out, ']');
}

static bool values_json(const wf_tensor *t, wf_plan *p, int64_t cells, jsonl *out) {
    int64_t shape[WF_MAX_DIMS], rows = 1;
    int ndim = wf_bound_shape(p, t, shape);
    if (ndim < 0) return false;
    json_sizes(out, "shape", shape, ndim);
    for (int i = 0; i + 1 < ndim; i++) rows *= shape[i];
    if (is_view(t)) return true;
    size_t bytes = wf_bound_bytes(p, t);
    void *values = malloc(bytes ? bytes : 1);
    bool ok = values && wf_fetch(p, t, values, bytes);
    if (ok) sample_json(t, values, rows, ndim ? shape[ndim - 1] : 1, cells, out);
    free(values);
    return ok;
}

/* ---- a node ---------------------------------------------------------------------------------- */

static int index_of(const stack *s, const wf_tensor *t) {
    int low = 0, high = s->n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (s->nodes[middle]->id < t->id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->n && s->nodes[low] == t ? low : -1;
}

/* Writes an operand: a node by its number in the page, a leaf by its name and shape. */
static void operand_json(const stack *s, const wf_tensor *t, jsonl *out) {
    char shape[64], text[400];
    int at = index_of(s, t);
    if (at >= 0) {
        json_int(out, NULL, at);
        return;
    }
    const char *name = t->kind == WF_CONSTANT ? "constant" : t->name;
    snprintf(text, sizeof text, "%.300s %s", name ? name : "",
             wf_shape_text(t->graph, t->ndim, t->shape, shape, sizeof shape));
    json_text(out, NULL, text);
}

static void operands_json(const stack *s, const wf_tensor *t, jsonl *out) {
    json_open(out, "in", '[');
    for (int i = 0; i < t->n_in; i++)
        if (t->in[i] && !(t->op->shape_only >> i & 1)) operand_json(s, t->in[i], out);
    json_close(out, ']');
}

static bool node_json(const stack *s, const wf_tensor *t, wf_plan *p, int64_t cells, jsonl *out) {
    char axes[128];
    json_open(out, NULL, '{');
    json_text(out, "path", t->name ? t->name : "");
    if (t->label) json_text(out, "label", t->label);
    json_text(out, "op", t->op->name);
    if (t->function) json_text(out, "function", t->function);
    json_text(out, "axes", wf_shape_text(t->graph, t->ndim, t->shape, axes, sizeof axes));
    operands_json(s, t, out);
    bool ok = values_json(t, p, cells, out);
    json_close(out, '}');
    return ok;
}

static int64_t cells_of_a_node(const stack *s) {
    int n = 1;
    for (int i = 0; i < s->n; i++) n += !is_view(s->nodes[i]);
    int64_t cells = MOST_CELLS / n;
    if (cells < FEWEST_CELLS) return FEWEST_CELLS;
    return cells < MOST_NODE_CELLS ? cells : MOST_NODE_CELLS;
}

bool stack_json(const stack *s, wf_plan *p, jsonl *out) {
    int64_t cells = cells_of_a_node(s);
    bool ok = true;
    json_open(out, "stack", '[');
    for (int i = 0; i < s->n && ok; i++) ok = node_json(s, s->nodes[i], p, cells, out);
    json_close(out, ']');
    return ok;
}
