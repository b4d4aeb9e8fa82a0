/* tools/draw/graph_page.c - a graph as a page. See graph_page.h.
 *
 * The page's data are nodes, ops and steps:
 *     nodes   id, op or kind, path, name, dtype, shape, operands, the node whose gradient rule made
 *             it; and in the plan: the op that runs instead, or the node that computes it
 *     ops     formula, family, gradient rule
 *     steps   node, op, seconds, bytes, flops, tasks, place in the arena, last reader */
#include "graph_page.h"
#include "core/graph_internal.h"
#include "core/run_internal.h"

#include <stdlib.h>

#include "gradient_rule.h"
#include "node_values.h"
#include "tools/cli/options/options.h"
#include "tools/page/page.h"

typedef struct writer {
    jsonl *out;
    const subject *subject;
    wf_plan *plan;
    bool *needed;   /* by id: true if the page has the node */
    int *step_of;   /* by id: the step that computes it, or -1 */
    int *last_read; /* by step: the last step that reads its result */
    int n_nodes, n_steps;
} writer;

/* ---- nodes ----------------------------------------------------------------------------------- */

static void write_operands(writer *w, const wf_tensor *t) {
    json_open(w->out, "in", '[');
    for (int i = 0; i < t->n_in; i++) {
        if (t->in[i])
            json_int(w->out, NULL, t->in[i]->id);
        else
            json_text(w->out, NULL, NULL);
    }
    json_close(w->out, ']');
}

static void write_plan_of_node(writer *w, const wf_tensor *t) {
    const wf_tensor *by = wf_computed_in(w->plan, t);
    wf_step step;
    if (!by)
        json_bool(w->out, "absent", true);
    else if (by->id != t->id - t->result)
        json_int(w->out, "computedIn", by->id);
    int k = w->step_of[t->id];
    if (k >= 0 && wf_step_at(w->plan, k, &step) && step.op != t->op)
        json_text(w->out, "runsAs", step.op->name);
}

enum { LONGEST_CONSTANT = 32 };

static void write_node(writer *w, const wf_tensor *t) {
    static const char *const kinds[] = { "", "parameter", "buffer", "input", "constant" };
    char text[ATTRIBUTES_TEXT];
    json_open(w->out, NULL, '{');
    json_int(w->out, "id", t->id);
    if (t->op)
        json_text(w->out, "op", t->op->name);
    else
        json_text(w->out, "kind", kinds[t->kind]);
    json_text(w->out, "path", t->name ? t->name : "");
    if (t->label) json_text(w->out, "label", t->label);
    if (t->function) json_text(w->out, "function", t->function);
    if (t->result) json_int(w->out, "result", t->result);
    json_text(w->out, "type", wf_dtype_name(t->dtype));
    json_text(w->out, "shape", wf_shape_text(t->graph, t->ndim, t->shape, text, sizeof text));
    int n = t->kind == WF_CONSTANT ? wf_print(NULL, t, text, sizeof text) : LONGEST_CONSTANT;
    if (n < LONGEST_CONSTANT) json_text(w->out, "value", text);
    w->out->failed |= n < 0;
    if (*attributes_text(t, text)) json_text(w->out, "attributes", text);
    if (t->forward) json_int(w->out, "forward", t->forward->id);
    if (t->n_in) write_operands(w, t);
    if (t->op) write_plan_of_node(w, t);
    json_close(w->out, '}');
}

static void write_nodes(writer *w) {
    json_open(w->out, "nodes", '[');
    for (int id = 0; id < w->n_nodes; id++)
        if (w->needed[id]) write_node(w, wf_node(w->subject->graph, id));
    json_close(w->out, ']');
}

/* ---- ops ------------------------------------------------------------------------------------- */

static void write_op(writer *w, wf_tensor *y) {
    char rule[RULE_TEXT], name[32];
    json_open(w->out, y->op->name, '{');
    json_text(w->out, "family", y->op->family ? y->op->family : "");
    json_text(w->out, "formula", y->op->formula ? y->op->formula : "");
    w->out->failed |= gradient_rule(y, rule) == NULL;
    json_text(w->out, "gradient", rule);
    json_open(w->out, "operands", '[');
    for (int i = 0; i < y->n_in; i++) json_text(w->out, NULL, operand_name(y->op, i, name));
    json_close(w->out, ']');
    json_close(w->out, '}');
}

/* Writes each op once, at its first node. */
static void write_ops(writer *w) {
    const wf_graph *g = w->subject->graph;
    json_open(w->out, "ops", '{');
    for (int id = 0; id < w->n_nodes; id++) {
        wf_tensor *t = wf_node(g, id);
        bool seen = !w->needed[id] || !t->op || t->result;
        for (int k = 0; k < id && !seen; k++) seen = w->needed[k] && wf_node(g, k)->op == t->op;
        if (!seen) write_op(w, t);
    }
    json_close(w->out, '}');
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The step whose memory holds t; a view is held by the memory of its operand. -1: a leaf's memory,
 * or none. */
static int holder(const writer *w, const wf_tensor *t) {
    while (t && t->op) {
        const wf_tensor *by = wf_computed_in(w->plan, t - t->result);
        int k = by && by->id < w->n_nodes ? w->step_of[by->id] : -1;
        wf_step step;
        if (k >= 0 && wf_step_at(w->plan, k, &step) && step.size) return k;
        t = t->op->view ? t->in[0] : NULL;
    }
    return -1;
}

static void find_readers(writer *w) {
    wf_step step;
    for (int k = 0; k < w->n_steps; k++) {
        if (!wf_step_at(w->plan, k, &step) || !step.node) continue;
        for (int i = 0; i < step.node->n_in; i++) {
            int from = step.node->in[i] ? holder(w, step.node->in[i]) : -1;
            if (from >= 0 && from != k) w->last_read[from] = k;
        }
    }
    for (int i = 0; i < w->subject->n; i++) {
        int from = holder(w, w->subject->fetch[i]);
        if (from >= 0) w->last_read[from] = w->n_steps;
    }
}

static void write_steps(writer *w) {
    wf_step s;
    json_open(w->out, "steps", '[');
    for (int k = 0; k < w->n_steps; k++) {
        if (!wf_step_at(w->plan, k, &s)) continue;
        json_open(w->out, NULL, '{');
        if (s.node) json_int(w->out, "id", s.node->id);
        json_text(w->out, "op", s.op->name);
        json_real(w->out, "seconds", s.runs ? s.seconds / (double)s.runs : 0);
        json_real(w->out, "bytes", s.bytes);
        json_real(w->out, "flops", s.flops);
        json_int(w->out, "tasks", s.tasks);
        if (s.size) {
            json_int(w->out, "offset", (int64_t)s.offset);
            json_int(w->out, "size", (int64_t)s.size);
            json_int(w->out, "last", w->last_read[k]);
        }
        json_close(w->out, '}');
    }
    json_close(w->out, ']');
    json_int(w->out, "arena", (int64_t)wf_plan_memory(w->plan));
}

/* ---- the page -------------------------------------------------------------------------------- */

static bool open_writer(writer *w, const subject *s, wf_plan *plan) {
    wf_step step;
    *w = (writer){ .subject = s,
                   .plan = plan,
                   .n_nodes = wf_node_count(s->graph),
                   .n_steps = wf_step_count(plan) };
    w->needed = nodes_behind(s->graph, s->fetch, s->n);
    w->step_of = malloc(((size_t)w->n_nodes + 1) * sizeof(int));
    w->last_read = malloc(((size_t)w->n_steps + 1) * sizeof(int));
    if (!w->needed || !w->step_of || !w->last_read) return false;
    for (int id = 0; id < w->n_nodes; id++) w->step_of[id] = -1;
    for (int k = 0; k < w->n_steps; k++) {
        w->last_read[k] = k;
        bool known = wf_step_at(plan, k, &step) && step.node && step.node->id < w->n_nodes;
        if (known) w->step_of[step.node->id] = k;
    }
    find_readers(w);
    return true;
}

static void close_writer(writer *w) {
    free(w->needed);
    free(w->step_of);
    free(w->last_read);
}

bool graph_page_write(FILE *stream, const subject *s, wf_plan *plan, char *message) {
    writer w;
    page p;
    bool ok = open_writer(&w, s, plan);
    if (ok) {
        w.out = page_begin(&p, stream, s->title, page_graph_css, page_graph_js);
        write_nodes(&w);
        write_steps(&w);
        write_ops(&w); /* last, because it records nodes of gradient rules */
        ok = page_end(&p);
    }
    close_writer(&w);
    if (!ok) check_reader(stream);
    if (!ok) snprintf(message, WF_MESSAGE, "the page could not be written");
    return ok;
}
