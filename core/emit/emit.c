/* core/emit/emit.c - plans as one C file: what emit.h promises.
 *
 * Every step of a schedule is a call of a C function, whose body the op's kernel writes
 * (emitter.h). Steps with the same body call the same function. The calls of one module path, in
 * the order of the schedule, are a function named after it. Memory lies where the plan puts it.
 *
 * A plan with a state has another schedule at every position. It is written at three positions:
 * the texts must be equal but for numbers that grow evenly, which become a + b * position. */
#include "core/emit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "writer.h"

enum { PASSES = 3 };

bool wf_emitter_fail(wf_emitter *e, const char *format, ...) {
    va_list arguments;
    if (e->message[0]) return false;
    va_start(arguments, format);
    vsnprintf(e->message, sizeof e->message, format, arguments);
    va_end(arguments);
    return false;
}

bool wf_emitter_fail_plan(wf_emitter *e) {
    return wf_emitter_fail(e, "%s", e->now->plan->error);
}

/* ---- a plan ---------------------------------------------------------------------------------- */

static void free_passes(int n, int steps, step_text **text) {
    for (int pass = 0; pass < n; pass++) {
        for (int i = 0; text[pass] && i < steps; i++) wf_step_free(&text[pass][i]);
        free(text[pass]);
    }
}

/* Describe the schedule at each position. False: it fails, or has another length. */
static bool describe(wf_emitter *e, int n, const int64_t *positions, int *steps, step_text **text) {
    wf_plan *p = e->now->plan;
    for (int pass = 0; pass < n; pass++) {
        if (!wf_plan_prepare(p, positions[pass])) return wf_emitter_fail_plan(e);
        if (pass == 0) *steps = p->now->n_execs;
        if (p->now->n_execs != *steps)
            return wf_emitter_fail(e, "the plan has other steps at other positions");
        text[pass] = calloc((size_t)*steps + 1, sizeof *text[pass]);
        if (!text[pass]) return wf_emitter_fail(e, "out of memory");
        for (int i = 0; i < *steps; i++)
            if (!wf_describe_step(e, i, &text[pass][i])) return false;
    }
    return true;
}

static bool write_part(wf_emitter *e) {
    wf_plan *p = e->now->plan;
    int64_t most = p->graph->extents[0].max, positions[PASSES] = { 0 };
    int n = p->with_state ? PASSES : 1, steps = 0;
    step_text *text[PASSES] = { NULL };
    if (p->with_state && most < PASSES)
        return wf_emitter_fail(e, "a state of %lld positions has no form in C", (long long)most);
    if (p->with_state) {
        positions[0] = most - 1; /* the largest first, so that memory is planned for all */
        positions[1] = 1;
        positions[2] = 2;
    }
    bool ok = describe(e, n, positions, &steps, text);
    for (int i = 0; ok && i < steps; i++) {
        step_text *one[PASSES] = { &text[0][i] };
        for (int pass = 1; pass < n; pass++) one[pass] = &text[pass][i];
        ok = wf_write_step(e, n, one, positions);
    }
    free_passes(n, steps, text);
    wf_end_module(e);
    return ok;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* All rows of a state are reserved from the start, so that its layout depends on no position. */
static void reserve_all(wf_plan *p, bool all) {
    if (!p->with_state) return;
    for (int i = 0; i < MAX_BINDINGS; i++) {
        wf_binding_free(p->bindings[i]);
        p->bindings[i] = NULL;
    }
    p->now = NULL;
    p->reserves_all = all;
}

/* Bind the plans, and place their arenas and states one after the other. */
static bool lay_out(wf_emitter *e) {
    int64_t at = 0;
    for (int i = 0; i < e->n_parts; i++) {
        part *q = e->now = &e->parts[i];
        reserve_all(q->plan, true);
        int64_t last = q->plan->with_state ? q->plan->graph->extents[0].max - 1 : 0;
        if (!wf_plan_prepare(q->plan, last)) return wf_emitter_fail_plan(e);
        const binding *b = q->plan->now;
        q->arena = at;
        at += (int64_t)(b->arena + 63) / 64 * 16;
        q->state = at;
        at = wf_slot_at(q, b->n_slots);
    }
    e->memory = at;
    return true;
}

static bool is_identifier(const char *name) {
    char same[MOST_PREFIX];
    return name && wf_identifier(name, same, sizeof same) < sizeof same &&
           strcmp(name, same) == 0 && name[0];
}

static bool can_be_emitted(wf_emitter *e) {
    if (!is_identifier(e->prefix))
        return wf_emitter_fail(e, "'%s' is no identifier of C", e->prefix);
    for (int i = 0; i < e->n_parts; i++) {
        wf_plan *p = e->parts[i].plan;
        e->now = &e->parts[i];
        if (!p || !wf_plan_ok(p))
            return p ? wf_emitter_fail_plan(e) : wf_emitter_fail(e, "no plan");
        if (!is_identifier(e->parts[i].name))
            return wf_emitter_fail(e, "'%s' is no identifier of C",
                                   e->parts[i].name ? e->parts[i].name : "");
        if (p->graph != e->parts[0].plan->graph)
            return wf_emitter_fail(e, "the plans are of several graphs");
        if (p->graph->real != WF_F32) return wf_emitter_fail(e, "a graph of f64 has no form in C");
    }
    return true;
}

static bool write_all(wf_emitter *e) {
    size_t n = (size_t)e->parts[0].plan->graph->n_nodes + 1;
    e->is_placed = calloc(n, sizeof *e->is_placed);
    e->leaves = malloc(n * sizeof *e->leaves);
    if (!e->is_placed || !e->leaves) return wf_emitter_fail(e, "out of memory");
    if (!lay_out(e)) return false;
    for (int i = 0; i < e->n_parts; i++) {
        e->now = &e->parts[i];
        if (!write_part(e)) return false;
    }
    return wf_write_getters(e) && wf_write_weights(e);
}

static void free_emitter(wf_emitter *e) {
    for (int i = 0; i < e->n_parts; i++) {
        wf_text_free(&e->parts[i].run);
        if (e->parts[i].plan && wf_plan_ok(e->parts[i].plan)) reserve_all(e->parts[i].plan, false);
    }
    wf_text_free(&e->body), wf_text_free(&e->codes), wf_text_free(&e->functions);
    wf_text_free(&e->modules), wf_text_free(&e->weights), wf_text_free(&e->names);
    wf_text_free(&e->tables), wf_text_free(&e->getters), wf_text_free(&e->calls);
    free(e->forms);
    free(e->is_placed);
    free(e->leaves);
}

char *wf_emit_plans(wf_plan *const *plans, int n, const wf_emit_options *options, char *message) {
    wf_emitter e = { .prefix = options && options->name ? options->name : "model", .n_parts = n };
    char *text = NULL;
    if (n < 1 || n > MOST_PARTS || !plans) {
        e.n_parts = 0;
        wf_emitter_fail(&e, "%d plans, not 1 to %d", n, MOST_PARTS);
    }
    for (int i = 0; i < e.n_parts; i++)
        e.parts[i] =
            (part){ .plan = plans[i], .name = options && options->runs ? options->runs[i] : "run" };
    if (e.n_parts && can_be_emitted(&e) && write_all(&e)) text = wf_join_file(&e);
    if (message) snprintf(message, WF_MESSAGE, "%.255s", text ? "" : e.message);
    free_emitter(&e);
    return text;
}

char *wf_emit(wf_plan *p, const wf_emit_options *options) {
    char message[WF_MESSAGE];
    char *text = wf_emit_plans(&p, 1, options, message);
    if (!text && p && wf_plan_ok(p)) wf_plan_fail(p, "%s", message);
    return text;
}
