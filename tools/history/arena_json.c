/* tools/history/arena_json.c - writes the use of a plan's arena over its steps. See
 * arena_json.h. */
#include "arena_json.h"

#include <stdlib.h>

#include "core/op.h"

typedef struct lifetimes {
    wf_plan *plan;
    int steps, nodes;
    int *writer; /* by node id: the step that wrote the memory of its first result; -1: none */
    int *last;   /* by step: the last step that reads its result */
} lifetimes;

/* The step whose memory holds a tensor; -1: none, or one that the plan replaced. */
static int writer_of(const lifetimes *l, const wf_tensor *t) {
    return t && t->id >= 0 && t->id < l->nodes ? l->writer[t->id - t->result] : -1;
}

static void read_operands(lifetimes *l, const wf_tensor *node, int step) {
    for (int i = 0; node && i < node->n_in; i++) {
        int writer = writer_of(l, node->in[i]);
        if (writer >= 0) l->last[writer] = step;
    }
}

/* Finds the writer of each node's memory and the last reader of each step's result. A view has no
 * memory of its own, so its readers read that of its operand. */
static void follow(lifetimes *l) {
    wf_step s;
    for (int i = 0; i < l->nodes; i++) l->writer[i] = -1;
    for (int i = 0; i < l->steps; i++) {
        l->last[i] = i;
        if (!wf_step_at(l->plan, i, &s)) continue;
        read_operands(l, s.node, i);
        if (!s.node || s.node->id < 0 || s.node->id >= l->nodes) continue;
        bool view = s.size == 0 && s.node->n_in > 0;
        l->writer[s.node->id] = view ? writer_of(l, s.node->in[0]) : i;
    }
}

enum { FORWARD, BACKWARD, UPDATE };

static int part_of(const wf_step *s) {
    if (s->op && s->op->writes) return UPDATE;
    return s->node && s->node->forward ? BACKWARD : FORWARD;
}

static void put_block(jsonl *out, const wf_step *s, int first, int last) {
    json_open(out, NULL, '[');
    json_int(out, NULL, (int64_t)s->offset);
    json_int(out, NULL, (int64_t)s->size);
    json_int(out, NULL, first);
    json_int(out, NULL, last);
    json_text(out, NULL, s->op ? s->op->name : "copy");
    json_int(out, NULL, part_of(s));
    json_text(out, NULL, s->node && s->node->name ? s->node->name : "");
    json_close(out, ']');
}

static void put_blocks(jsonl *out, const lifetimes *l) {
    wf_step s;
    json_open(out, "blocks", '[');
    for (int i = 0; i < l->steps; i++)
        if (wf_step_at(l->plan, i, &s) && s.size) put_block(out, &s, i, l->last[i]);
    json_close(out, ']');
}

void arena_put(jsonl *out, wf_plan *plan) {
    lifetimes l = { .plan = plan, .steps = wf_step_count(plan) };
    wf_step s;
    for (int i = 0; i < l.steps; i++)
        if (wf_step_at(plan, i, &s) && s.node && s.node->graph)
            l.nodes = wf_node_count(s.node->graph);
    l.writer = malloc(((size_t)l.nodes + 1) * sizeof *l.writer);
    l.last = malloc(((size_t)l.steps + 1) * sizeof *l.last);
    if (l.writer && l.last) {
        follow(&l);
        json_open(out, "memory", '{');
        json_int(out, "bytes", (int64_t)wf_plan_memory(plan));
        json_int(out, "steps", l.steps);
        put_blocks(out, &l);
        json_close(out, '}');
    }
    free(l.writer);
    free(l.last);
}
