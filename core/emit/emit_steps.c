/* core/emit/emit_steps.c - a step of a schedule as a call of a C function. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "emit_kept.h"
#include "emit_places.h"
#include "emit_sections.h"
#include "emit_steps.h"

/* ---- what ops ask for ------------------------------------------------------------------------ */

void wf_emit_text(wf_emitter *e, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    wf_text_format(&e->body, true, format, arguments);
    va_end(arguments);
}

const char *wf_emit_operand(const wf_emitter *e, int i) {
    return e->operand[i];
}

void wf_emit_scratch(wf_emitter *e, int64_t floats) {
    e->uses_scratch = true;
    if (floats > e->scratch) e->scratch = floats;
}

void wf_emit_stream(wf_emitter *e) {
    e->uses_stream = true;
}

void wf_emit_table(wf_emitter *e, int table, int ids) {
    e->table = table;
    e->ids = ids;
}

void wf_emit_may_fail(wf_emitter *e) {
    e->may_fail = true;
}

const char *wf_emit_result(wf_emitter *e, int k, const char *name) {
    if (name) snprintf(e->result[k], sizeof e->result[k], "%s", name);
    return e->result[k];
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* True if the body uses this parameter; parameters that it does not use are left out. */
static bool uses(const wf_emitter *e, const char *name) {
    return e->body.at && wf_find_word(e->body.at, name);
}

static bool is_given(const wf_emitter *e, const wf_call *c, int i) {
    return c->in[i].ndim >= 0 && !(c->op->shape_only >> i & 1) && uses(e, e->operand[i]);
}

/* Can operand i keep its name? It must be an identifier that is no word of C or of the file, and
 * differ from the other parameters and from earlier operands. */
static bool can_name_operand(wf_emitter *e, int i) {
    static const char *const others[] = {
        "out", "out1", "out2", "out3", "work", "scratch", "stream"
    };
    const char *name = e->operand[i];
    parameter_name same;
    bool ok = wf_identifier(name, same, sizeof same) > 0 && strcmp(name, same) == 0 &&
              (strcmp(name, "m") == 0 || !wf_is_word_of_c(name));
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        ok = ok && strcmp(name, others[k]) != 0;
    for (int k = 0; k < i; k++) ok = ok && strcmp(name, e->operand[k]) != 0;
    return ok;
}

/* Name the operands as the op's formula does, "name(a, b, ...): value". If that has no name for
 * operand i, or the name cannot be kept, it is called x and i, as x3; an absent operand is "0".
 * Results are called out, out1... */
static void name_operands(wf_emitter *e, const wf_call *c) {
    const char *at = c->op->formula ? strchr(c->op->formula, '(') : NULL;
    at = at ? at + 1 : "";
    for (int i = 0; i < c->n_in; i++) {
        size_t n = strcspn(at, ",).");
        snprintf(e->operand[i], sizeof e->operand[i], "%.*s", n < sizeof e->operand[i] ? (int)n : 0,
                 at);
        if (!can_name_operand(e, i)) snprintf(e->operand[i], sizeof e->operand[i], "x%d", i);
        if (c->in[i].ndim < 0) strcpy(e->operand[i], "0");
        at += n;
        at += strspn(at, ", ");
    }
    for (int k = 0; k < c->n_out; k++)
        snprintf(e->result[k], sizeof e->result[k], k ? "out%d" : "out", k);
}

static void separate(wf_text *t, bool *any) {
    if (*any) wf_text_puts(t, ", ");
    *any = true;
}

/* Append one more text to a list separated by commas. */
static void add_next(wf_text *t, bool *any, const char *text) {
    separate(t, any);
    wf_text_puts(t, text);
}

/* True if the body uses the scales of int8 operand i, which are then a parameter after the
 * operand. */
static bool uses_scales(const wf_emitter *e, const wf_call *c, int i) {
    char name[sizeof e->operand[i] + 8];
    snprintf(name, sizeof name, "%s_scales", e->operand[i]);
    return c->in[i].layout == WF_PANELS_INT8 && uses(e, name);
}

static void add_parameters(const wf_emitter *e, const exec *x, wf_text *t) {
    const wf_call *c = &x->call;
    bool any = false;
    wf_text_puts(t, "(");
    for (int i = 0; i < c->n_in; i++) {
        if (!is_given(e, c, i)) continue;
        separate(t, &any);
        wf_text_print(t, "%s%s *%s", c->op->writes >> i & 1 ? "" : "const ",
                      c->in[i].layout == WF_PANELS_INT8 ? "signed char" : wf_c_type(c->in[i].dtype),
                      e->operand[i]);
        if (uses_scales(e, c, i)) wf_text_print(t, ", const float *%s_scales", e->operand[i]);
    }
    for (int k = 0; k < c->n_out; k++) {
        if (!uses(e, e->result[k])) continue;
        separate(t, &any);
        wf_text_print(t, "%s *%s", wf_c_type(c->out[k].dtype), e->result[k]);
    }
    if (uses(e, "work")) add_next(t, &any, "void *work");
    if (e->uses_scratch) add_next(t, &any, "float *scratch");
    if (e->uses_stream) add_next(t, &any, "uint64_t stream");
    wf_text_puts(t, any ? ")" : "void)");
}

/* Write the address of operand i as an argument. If it is a table, note how much of it the step
 * reads. */
static bool add_operand(wf_emitter *e, const exec *x, int i, wf_text *t) {
    const wf_call *c = &x->call;
    if (c->in[i].layout == WF_PANELS_INT8)
        return wf_add_int8_place(e, x->in[i], uses_scales(e, c, i), t);
    int64_t read = i == e->table ? wf_floats_picked(e, x, i, e->ids) : 0;
    if (read < 0) return wf_emitter_lacks(e);
    return wf_add_place(e, x->in[i], c->in[i].dtype, c->op->writes >> i & 1, read, t);
}

/* The arguments in the order of add_parameters. */
static bool add_arguments(wf_emitter *e, const exec *x, wf_text *t) {
    const wf_call *c = &x->call;
    bool any = false, ok = true;
    wf_text_puts(t, "(");
    for (int i = 0; ok && i < c->n_in; i++) {
        if (!is_given(e, c, i)) continue;
        separate(t, &any);
        ok = add_operand(e, x, i, t);
    }
    for (int k = 0; ok && k < c->n_out; k++) {
        if (!uses(e, e->result[k])) continue;
        separate(t, &any);
        ok = wf_add_place(e, x->out[k], c->out[k].dtype, false, 0, t);
    }
    if (ok && uses(e, "work")) {
        separate(t, &any);
        ok = wf_add_place(e, (location){ x->work, 0 }, WF_F32, false, 0, t);
    }
    if (e->uses_scratch) add_next(t, &any, "floats(m, SCRATCH)");
    if (e->uses_stream) {
        const char *run = e->now->name;
        separate(t, &any);
        wf_text_print(t, "stream_of(m->%s_step, m->%s_micro_batch)", run, run);
        e->now->draws = true;
    }
    wf_text_puts(t, ")");
    return ok;
}

/* ---- a step in texts ------------------------------------------------------------------------- */

void wf_step_free(step_text *s) {
    wf_text_free(&s->name);
    wf_text_free(&s->code);
    wf_text_free(&s->arguments);
    wf_text_free(&s->results);
}

/* A copy of a step. Where an operand was fetched by an earlier plan, its view is the one in that
 * plan's memory. */
typedef struct linked_step {
    exec x;
    wf_view in[WF_MAX_OPERANDS];
} linked_step;

static bool link_step(wf_emitter *e, const exec *x, linked_step *s) {
    const binding *b = e->now->plan->now;
    const wf_kernel *run = kernel_of(x->call.op);
    s->x = *x;
    memcpy(s->in, x->call.in, (size_t)x->call.n_in * sizeof *s->in);
    s->x.call.in = s->in;
    for (int i = 0; i < x->call.n_in; i++) {
        const storage *at = x->in[i].storage < 0 ? NULL : &b->storages[x->in[i].storage];
        if (!wf_set_panels(e, x, i, &s->in[i])) return false;
        if (!at || at->place != IN_FEED || x->call.op->shape_only >> i & 1) continue;
        if (!wf_link_view(e, e->now->plan->feeds[at->index].tensor, x->in[i].offset,
                          run->strided >> i & 1, run->indexed >> i & 1, &s->in[i]))
            return false;
    }
    return true;
}

/* "matmul_32x128" */
static void name_step(const wf_call *c, wf_text *t) {
    const wf_view *v = c->op->writes ? &c->in[0] : &c->out[0];
    char name[MOST_NAME];
    wf_identifier(c->op->name, name, sizeof name);
    wf_text_puts(t, name);
    if (v->ndim == 0) wf_text_puts(t, "_scalar");
    for (int i = 0; i < v->ndim; i++) {
        wf_text_puts(t, i ? "x" : "_");
        wf_text_number(t, v->shape[i]);
    }
}

/* Can the offsets of all elements be of type int? */
static bool has_int_offsets(const wf_view *v) {
    double last = 1;
    for (int i = 0; i < v->ndim; i++)
        last += fabs((double)v->stride[i]) * (double)(v->shape[i] > 0 ? v->shape[i] - 1 : 0);
    return v->ndim < 0 || (last < INT32_MAX && (double)wf_view_count(v) < INT32_MAX);
}

static bool fits_int(wf_emitter *e, const wf_call *c) {
    bool ok = true;
    for (int i = 0; i < c->n_in; i++) ok = ok && has_int_offsets(&c->in[i]);
    for (int k = 0; k < c->n_out; k++) ok = ok && has_int_offsets(&c->out[k]);
    return ok || wf_emitter_fail(e, "%s: 2^31 elements or more have no form in C", c->op->name);
}

bool wf_write_body(wf_emitter *e, const exec *x) {
    const wf_call *c = &x->call;
    const wf_kernel *run = kernel_of(c->op);
    wf_text_free(&e->body);
    e->uses_scratch = e->uses_stream = e->may_fail = false;
    e->table = e->ids = -1;
    name_operands(e, c);
    if (!run->emit) return wf_emitter_fail(e, "%s: this op has no form in C", c->op->name);
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i].layout == WF_PANELS_INT8 && !(run->panels && run->panels(c) >> i & 1))
            return wf_emitter_fail(e, "%s: weights in int8 have no form in C", c->op->name);
    if (!fits_int(e, c)) return false;
    wf_report_reset(&e->now->plan->report, true);
    if (run->emit(e, c)) return !e->body.lacks || wf_emitter_lacks(e);
    wf_plan_fail_at(e->now->plan, x->node, c->op);
    return wf_emitter_fail_plan(e);
}

/* The path under which a step was recorded; that of a gradient ends in "_gradient". A copy that
 * the plan inserted belongs to the step after it. */
static void module_of(const wf_emitter *e, int step, char name[MOST_NAME]) {
    const binding *b = e->now->plan->now;
    while (step + 1 < b->n_execs && !b->execs[step].node) step++;
    const wf_tensor *t = b->execs[step].node, *of = t && t->forward ? t->forward : t;
    char path[MOST_NAME];
    wf_identifier(of && of->name && of->name[0] ? of->name : e->prefix, path, sizeof path);
    snprintf(name, MOST_NAME, t && t->forward ? "%.96s_gradient" : "%.96s", path);
}

/* Write "stats [8, 2]": the results that the body writes, with their names in the graph or in the
 * op. */
static void name_results(const wf_emitter *e, const exec *x, wf_text *t) {
    const wf_call *c = &x->call;
    bool any = false;
    for (int k = 0; k < c->n_out && !c->op->writes; k++) {
        const wf_tensor *node = x->node ? x->node + k : NULL;
        if (k > 0 && !uses(e, e->result[k])) continue;
        separate(t, &any);
        if (node && node->label)
            wf_text_print(t, "%s ", node->label);
        else if (c->n_out > 1)
            wf_text_print(t, "%s ", e->result[k]);
        for (int i = 0; i < c->out[k].ndim; i++)
            wf_text_marked(t, i ? ", %n" : "[%n", c->out[k].shape[i]);
        wf_text_puts(t, c->out[k].ndim ? "]" : "[]");
    }
}

static bool describe(wf_emitter *e, const exec *x, step_text *s) {
    if (!wf_write_body(e, x)) return false;
    add_parameters(e, x, &s->code);
    wf_text_puts(&s->code, " {\n");
    wf_text_puts(&s->code, wf_text_of(&e->body));
    wf_text_puts(&s->code, e->may_fail ? "\nreturn 0;\n}\n" : "\n}\n");
    name_step(&x->call, &s->name);
    name_results(e, x, &s->results);
    s->formula = x->call.op->formula;
    s->may_fail = e->may_fail;
    s->writes = x->call.op->writes != 0;
    if (!add_arguments(e, x, &s->arguments)) return false;
    return (!s->name.lacks && !s->code.lacks && !s->arguments.lacks && !s->results.lacks) ||
           wf_emitter_lacks(e);
}

bool wf_describe_step(wf_emitter *e, int index, step_text *s) {
    linked_step x;
    e->step = index;
    module_of(e, index, s->module);
    const kept_cache *kept = wf_kept_at(e, index);
    if (kept) return wf_describe_kept(e, kept, index, s);
    return link_step(e, &e->now->plan->now->execs[index], &x) && describe(e, &x.x, s);
}
