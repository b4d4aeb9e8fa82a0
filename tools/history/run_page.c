/* tools/history/run_page.c - writes the page of a training. See run_page.h; page/report.js draws
 * it. */
#include "run_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/op.h"
#include "tools/cli/output.h"
#include "tools/cli/refused.h"
#include "tools/cli/report.h"
#include "tools/page/page.h"

enum { MOST_POINTS = 2000 }; /* most points of a curve in the page */

static void put_texts(jsonl *out, const char *key, char *const *texts, int64_t n) {
    json_open(out, key, '[');
    for (int64_t i = 0; i < n; i++) json_text(out, NULL, texts[i]);
    json_close(out, ']');
}

/* Writes every `every`-th value, and the last one. */
static void put_values(jsonl *out, const char *key, const double *values, int64_t n,
                       int64_t every) {
    json_open(out, key, '[');
    for (int64_t i = (n - 1) % every; i < n; i += every) json_digits(out, NULL, values[i], 7);
    json_close(out, ']');
}

static void put_curves(jsonl *out, const history *h) {
    json_open(out, "curves", '[');
    for (int i = 0; i < MEASURES; i++) {
        const series *s = &h->of[i];
        int64_t every = s->n / MOST_POINTS + 1;
        if (!s->n) continue;
        json_open(out, NULL, '{');
        json_text(out, "group", measure_rows[i].group);
        json_text(out, "name", measure_rows[i].name);
        json_text(out, "unit", measure_rows[i].unit);
        put_values(out, "x", s->x, s->n, every);
        put_values(out, "y", s->y, s->n, every);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void put_attention(jsonl *out, const album_labels *l) {
    if (!l->title) return;
    json_open(out, "attention", '{');
    json_text(out, "title", l->title);
    json_text(out, "row_axis", l->row_axis);
    json_text(out, "column_axis", l->column_axis);
    json_int(out, "heads", l->heads);
    put_texts(out, "rows", l->row_labels, l->rows);
    put_texts(out, "columns", l->column_labels, l->columns);
    json_close(out, '}');
}

static void put_frames(jsonl *out, const album *a) {
    put_texts(out, "sources", a->source, ALBUM_SAMPLES);
    put_texts(out, "references", a->reference, ALBUM_SAMPLES);
    json_open(out, "frames", '[');
    for (int i = 0; i < a->n; i++) {
        const frame *f = &a->frames[i];
        json_open(out, NULL, '{');
        json_int(out, "step", f->step);
        put_texts(out, "outputs", f->output, ALBUM_SAMPLES);
        if (f->weights) json_text(out, "weights", f->weights);
        json_close(out, '}');
    }
    json_close(out, ']');
}

/* Writes the time by op, or nothing if there is no memory for it. */
static void put_ops(jsonl *out, wf_plan *plan) {
    int n;
    profile_row *rows = profile_rows(plan, &n);
    json_open(out, "ops", '[');
    for (int i = 0; rows && i < n; i++) {
        json_open(out, NULL, '{');
        json_text(out, "op", rows[i].op);
        json_int(out, "calls", rows[i].calls);
        json_real(out, "seconds", rows[i].seconds);
        json_real(out, "flops", rows[i].flops);
        json_real(out, "bytes", rows[i].bytes);
        json_close(out, '}');
    }
    json_close(out, ']');
    free(rows);
}

/* ---- the arena ------------------------------------------------------------------------------- */

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

/* Writes the field "memory": the arena's bytes, its steps, and a block for each first result of a
 * step. A block has its offset, its size, the step that writes it, the last step that reads it, the
 * op, the part of a training step (0 forward, 1 backward, 2 update) and the module. */
static void put_arena(jsonl *out, wf_plan *plan) {
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

/* ---- the whole ------------------------------------------------------------------------------- */

static void put_run(jsonl *out, const run_page *p) {
    json_text(out, "run", p->run);
    json_int(out, "step", p->step);
    json_int(out, "total", p->total);
    json_real(out, "elapsed", p->elapsed);
    json_bool(out, "ended", p->ended);
    json_open(out, "facts", '[');
    for (int i = 0; i < p->n_facts; i++) {
        json_open(out, NULL, '[');
        json_text(out, NULL, p->facts[i].name);
        json_text(out, NULL, p->facts[i].text);
        json_close(out, ']');
    }
    json_close(out, ']');
}

bool run_page_write(const run_page *p, const char *path, char *message) {
    output o;
    page whole;
    if (!output_open(&o, path, message)) return false;
    jsonl *out = page_begin(&whole, o.stream, p->title, page_report_css, page_report_js);
    put_run(out, p);
    put_curves(out, p->history);
    put_attention(out, &p->album->map);
    put_frames(out, p->album);
    put_ops(out, p->plan);
    put_arena(out, p->plan);
    bool composed = page_end(&whole) || ferror(o.stream);
    if (composed) return output_close(&o, message);
    output_discard(&o);
    return refused(message, "%.150s could not be written: out of memory", path);
}
