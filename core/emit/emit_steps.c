/* core/emit/emit_steps.c - a step of a schedule as a call of a C function. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/basis.h"
#include "core/graph_internal.h"
#include "writer.h"

/* Calls in a function that is named after a module. */
enum { MOST_CALLS = 40 };
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

void wf_emit_may_fail(wf_emitter *e) {
    e->may_fail = true;
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* True if the body uses this parameter: others are left out. */
static bool uses(const wf_emitter *e, const char *name) {
    return e->body.at && wf_find_word(e->body.at, name);
}

static bool is_given(const wf_emitter *e, const wf_call *c, int i) {
    return c->in[i].ndim >= 0 && !(c->op->shape_only >> i & 1) && uses(e, e->operand[i]);
}

static const char *const result_names[] = { "out", "out1", "out2", "out3" };

/* The operands' names in the op's formula, "name(a, b, ...): value". Operands beyond its list are
 * called x3, x4... */
static void name_operands(wf_emitter *e, const wf_call *c) {
    const char *at = c->op->formula ? strchr(c->op->formula, '(') : NULL;
    at = at ? at + 1 : "";
    for (int i = 0; i < c->n_in; i++) {
        size_t n = strcspn(at, ",).");
        bool named = n > 0 && n < sizeof e->operand[i];
        if (named)
            snprintf(e->operand[i], sizeof e->operand[i], "%.*s", (int)n, at);
        else
            snprintf(e->operand[i], sizeof e->operand[i], "x%d", i);
        if (c->in[i].ndim < 0) strcpy(e->operand[i], "0");
        at += n;
        at += strspn(at, ", ");
    }
}

static void separate(wf_text *t, bool *any) {
    if (*any) wf_text_puts(t, ", ");
    *any = true;
}

/* The next text of a list. */
static void add_next(wf_text *t, bool *any, const char *text) {
    separate(t, any);
    wf_text_puts(t, text);
}

static void add_parameters(const wf_emitter *e, const exec *x, wf_text *t) {
    const wf_call *c = &x->call;
    bool any = false;
    wf_text_puts(t, "(");
    for (int i = 0; i < c->n_in; i++) {
        if (!is_given(e, c, i)) continue;
        separate(t, &any);
        wf_text_print(t, "%s%s *%s", c->op->writes >> i & 1 ? "" : "const ",
                      wf_c_type(c->in[i].dtype), e->operand[i]);
    }
    for (int k = 0; k < c->n_out; k++) {
        if (!uses(e, result_names[k])) continue;
        separate(t, &any);
        wf_text_print(t, "%s *%s", wf_c_type(c->out[k].dtype), result_names[k]);
    }
    if (uses(e, "work")) add_next(t, &any, "void *work");
    if (e->uses_scratch) add_next(t, &any, "float *scratch");
    if (e->uses_stream) add_next(t, &any, "uint64_t stream");
    wf_text_puts(t, any ? ")" : "void)");
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Gives a leaf its place in the weights, if it has none yet; name: its name in C. */
static void place_leaf(wf_emitter *e, const wf_tensor *t, char name[MOST_NAME]) {
    wf_identifier(t->name && t->name[0] ? t->name : "constant", name, MOST_NAME);
    if (e->is_placed[t->id]) return;
    e->is_placed[t->id] = true;
    e->leaves[e->n_leaves++] = t->id;
    wf_text_print(&e->names, "    at_%s_%d = %n,\n", name, t->id, e->n_weights);
    e->n_weights += (wf_count(t) + LEAF_UNIT - 1) / LEAF_UNIT * LEAF_UNIT;
}

/* A leaf of i32 is a table of its own, which no update may write; name: its name in C. */
static bool place_table(wf_emitter *e, wf_tensor *t, char name[MOST_NAME]) {
    int64_t n = wf_count(t);
    wf_identifier(t->name && t->name[0] ? t->name : "constant", name, MOST_NAME);
    if (e->is_placed[t->id]) return true;
    e->is_placed[t->id] = true;
    int32_t *values = malloc(((size_t)n + 1) * sizeof *values);
    bool ok = values && wf_read(t, values, (size_t)n * sizeof *values);
    wf_text_print(&e->tables, "static const int32_t ids_%s_%d[%n] = {", name, t->id, n ? n : 1);
    for (int64_t i = 0; ok && i < n; i++)
        wf_text_print(&e->tables, i % 16 ? " %n," : "\n    %n,", (int64_t)values[i]);
    wf_text_puts(&e->tables, n ? "\n};\n\n" : " 0 };\n\n");
    free(values);
    return ok || wf_emitter_fail(e, "'%s' cannot be read", called(t));
}

const bound_view *wf_linked(const wf_emitter *e, const wf_tensor *t, const part **of) {
    for (const part *q = e->parts; q < e->now; q++) {
        wf_plan *p = q->plan;
        int at = t->id < p->n_index ? p->index[t->id] : -1;
        if (at < 0 || !p->nodes[at].fetched) continue;
        *of = q;
        return &p->now->values[at];
    }
    return NULL;
}

static void add_memory(wf_text *t, wf_dtype dtype, int64_t at) {
    wf_text_print(t, dtype == WF_I32 ? "ints(m, " : "floats(m, ");
    wf_text_number(t, at);
    wf_text_puts(t, ")");
}

static void add_member(wf_text *t, const char *member, int64_t offset) {
    wf_text_print(t, "m->%s", member);
    if (!offset) return;
    wf_text_puts(t, " + ");
    wf_text_number(t, offset);
}

int64_t wf_slot_floats(const slot *s) {
    return (int64_t)(s->outer * s->rows * s->inner / sizeof(float));
}

int64_t wf_slot_at(const part *p, int index) {
    const binding *b = p->plan->now;
    int64_t at = p->state;
    for (int k = 0; k < index; k++)
        at += (b->batch * wf_slot_floats(&b->slots[k]) + LEAF_UNIT - 1) / LEAF_UNIT * LEAF_UNIT;
    return at;
}

/* A value that the program feeds, or that an earlier part has computed. */
static void add_feed(wf_emitter *e, int index, int64_t offset, wf_dtype dtype, wf_text *t) {
    const wf_tensor *fed = e->now->plan->feeds[index].tensor;
    const part *of = NULL;
    const bound_view *v = wf_linked(e, fed, &of);
    char name[MOST_NAME];
    if (v) {
        const storage *s = &of->plan->now->storages[v->at.storage];
        add_memory(t, dtype, of->arena + (int64_t)(s->offset / 4) + v->at.offset + offset);
        return;
    }
    wf_identifier(called(fed), name, sizeof name);
    add_member(t, name, offset);
}

/* The place of element `offset` of a leaf. */
static bool add_leaf(wf_emitter *e, wf_tensor *of, int64_t offset, bool written, wf_text *t) {
    char name[MOST_NAME], member[MOST_NAME + 32];
    if (of->dtype == WF_F32) {
        place_leaf(e, of, name);
        snprintf(member, sizeof member, "weights + at_%s_%d", name, of->id);
        add_member(t, member, offset);
        return true;
    }
    if (written)
        return wf_emitter_fail(e, "'%s' is an i32 leaf that is updated: this has no form in C",
                               called(of));
    if (!place_table(e, of, name)) return false;
    wf_text_print(t, "ids_%s_%d + ", name, of->id);
    wf_text_number(t, offset);
    return true;
}

bool wf_add_place(wf_emitter *e, location at, wf_dtype dtype, bool written, wf_text *t) {
    const storage *s = &e->now->plan->now->storages[at.storage];
    if (s->place == IN_FEED) {
        add_feed(e, s->index, at.offset, dtype, t);
    } else if (s->place == IN_LEAF) {
        return add_leaf(e, e->now->plan->graph->nodes[s->index], at.offset, written, t);
    } else {
        int64_t from = s->place == IN_STATE ? wf_slot_at(e->now, s->index)
                                            : e->now->arena + (int64_t)(s->offset / 4);
        add_memory(t, dtype, from + at.offset);
    }
    return true;
}

/* The arguments in the order of add_parameters. */
static bool add_arguments(wf_emitter *e, const exec *x, wf_text *t) {
    const wf_call *c = &x->call;
    bool any = false, ok = true;
    wf_text_puts(t, "(");
    for (int i = 0; ok && i < c->n_in; i++) {
        if (!is_given(e, c, i)) continue;
        separate(t, &any);
        ok = wf_add_place(e, x->in[i], c->in[i].dtype, c->op->writes >> i & 1, t);
    }
    for (int k = 0; ok && k < c->n_out; k++) {
        if (!uses(e, result_names[k])) continue;
        separate(t, &any);
        ok = wf_add_place(e, x->out[k], c->out[k].dtype, false, t);
    }
    if (ok && uses(e, "work")) {
        separate(t, &any);
        ok = wf_add_place(e, (location){ x->work, 0 }, WF_F32, false, t);
    }
    if (e->uses_scratch) add_next(t, &any, "floats(m, SCRATCH)");
    if (e->uses_stream) add_next(t, &any, "stream_of(m)");
    wf_text_puts(t, ")");
    return ok;
}

/* ---- a step in texts ------------------------------------------------------------------------- */

void wf_step_free(step_text *s) {
    wf_text_free(&s->name), wf_text_free(&s->code), wf_text_free(&s->arguments);
}

/* An operand that an earlier part has computed lies as that part left it. Rows of a batch may share
 * it, if attention reads it, which could do so by an index of rows. */
static bool link_view(wf_emitter *e, exec *x, int i, const wf_tensor *fed, const wf_view *v) {
    const wf_view *here = &wf_plan_value(e->now->plan, fed)->view;
    const wf_kernel *run = kernel_of(x->call.op);
    wf_view *in = &x->call.in[i];
    bool shares = v->ndim > 0 && v->shape[0] == 1 && here->shape[0] != 1;
    wf_view whole = *v;
    if (shares) whole.shape[0] = here->shape[0];
    if (!wf_same_shape(&whole, here) || (shares && !(run->indexed >> i & 1)))
        return wf_emitter_fail(e, "'%s' has another size in the plan that reads it", called(fed));
    if (wf_view_dense(v) && !shares) return true;
    if (!wf_same_shape(in, here) || !((run->strided | run->indexed) >> i & 1))
        return wf_emitter_fail(e, "'%s' does not lie in one piece", called(fed));
    for (int k = 0; k < in->ndim; k++) in->stride[k] = shares && k == 0 ? 0 : v->stride[k];
    return true;
}

static bool link_views(wf_emitter *e, exec *x) {
    const binding *b = e->now->plan->now;
    for (int i = 0; i < x->call.n_in; i++) {
        const part *of;
        int at = x->in[i].storage;
        if (at < 0 || b->storages[at].place != IN_FEED) continue;
        const wf_tensor *fed = e->now->plan->feeds[b->storages[at].index].tensor;
        const bound_view *v = wf_linked(e, fed, &of);
        if (v && !link_view(e, x, i, fed, &v->view)) return false;
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

/* Write the body of a step. */
static bool write_body(wf_emitter *e, const exec *x) {
    const wf_call *c = &x->call;
    const wf_kernel *run = kernel_of(c->op);
    e->body.length = 0;
    wf_text_puts(&e->body, "");
    e->uses_scratch = e->uses_stream = e->may_fail = false;
    name_operands(e, c);
    if (!run->emit) return wf_emitter_fail(e, "%s: this op has no form in C", c->op->name);
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i].layout == WF_PANELS_INT8)
            return wf_emitter_fail(e, "%s: weights in int8 have no form in C", c->op->name);
    if (!fits_int(e, c)) return false;
    wf_report_reset(&e->now->plan->report, true);
    if (run->emit(e, c)) return true;
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

static bool describe(wf_emitter *e, exec *x, step_text *s) {
    if (!link_views(e, x) || !write_body(e, x)) return false;
    add_parameters(e, x, &s->code);
    wf_text_puts(&s->code, " {\n");
    wf_text_add(&s->code, e->body.at, e->body.length);
    wf_text_puts(&s->code, e->may_fail ? "\nreturn 0;\n}\n" : "\n}\n");
    name_step(&x->call, &s->name);
    s->formula = x->call.op->formula;
    s->may_fail = e->may_fail;
    s->writes = x->call.op->writes != 0;
    if (!add_arguments(e, x, &s->arguments)) return false;
    return (!s->code.lacks && !s->arguments.lacks) || wf_emitter_fail(e, "out of memory");
}

bool wf_describe_step(wf_emitter *e, int index, step_text *s) {
    exec *x = &e->now->plan->now->execs[index];
    const wf_view *v = &x->call.out[0];
    module_of(e, index, s->module);
    wf_shape_text(NULL, v->ndim, v->shape, s->shape, sizeof s->shape);
    return describe(e, x, s);
}

/* ---- numbers that depend on the position ----------------------------------------------------- */

/* The number after a mark; *at moves behind the mark at its end. */
static int64_t read_number(const char **at) {
    char *end;
    int64_t n = strtoll(*at + 1, &end, 10);
    *at = end + 1;
    return n;
}

static bool add_even(int n, const int64_t *number, const int64_t *positions, wf_text *to) {
    int64_t slope = 0;
    if (n > 1) slope = (number[0] - number[1]) / (positions[0] - positions[1]);
    int64_t start = number[0] - slope * positions[0];
    for (int i = 0; i < n; i++)
        if (number[i] != start + slope * positions[i]) return false;
    if (!slope)
        wf_text_print(to, "%n", start);
    else if (slope == 1)
        wf_text_print(to, start ? "(position + %n)" : "position", start);
    else
        wf_text_print(to, start ? "(position * %n + %n)" : "position * %n", slope, start);
    return true;
}

bool wf_merge_numbers(int n, const wf_text *const *texts, const int64_t *positions, wf_text *to) {
    const char *at[MOST_POSITIONS];
    for (int i = 0; i < n; i++) at[i] = texts[i]->at;
    while (*at[0]) {
        int64_t number[MOST_POSITIONS] = { 0 };
        char letter = *at[0];
        for (int i = 1; i < n; i++)
            if (*at[i] != letter) return false;
        if (letter != WF_NUMBER_BEGINS) {
            wf_text_add(to, &letter, 1);
            for (int i = 0; i < n; i++) at[i]++;
            continue;
        }
        for (int i = 0; i < n; i++) number[i] = read_number(&at[i]);
        if (!add_even(n, number, positions, to)) return false;
    }
    return !*at[n - 1];
}

/* ---- functions ------------------------------------------------------------------------------- */

static bool name_is_taken(const wf_emitter *e, const char *name) {
    for (size_t i = 0; i < e->n_forms; i++)
        if (strcmp(e->forms[i].name, name) == 0) return true;
    return false;
}

/* The name of the step, with "n" for numbers that depend on the position, and with a number behind
 * it if that is another function. */
static void name_form(const wf_emitter *e, const char *wanted, char name[MOST_NAME]) {
    size_t n = 0;
    for (; *wanted && n < MOST_NAME - 16; n++) {
        name[n] = *wanted == '(' || *wanted == 'p' ? 'n' : *wanted;
        if (*wanted == '(' || strncmp(wanted, "position", 8) == 0) {
            name[n] = 'n';
            wanted += strcspn(wanted, *wanted == '(' ? ")" : "x");
            if (*wanted == ')') wanted++;
        } else {
            name[n] = *wanted++;
        }
    }
    name[n] = 0;
    for (int number = 2; name_is_taken(e, name); number++)
        snprintf(name + n, MOST_NAME - n, "_%d", number);
}

/* The function with this code; it is written if there is none yet. NULL: out of memory. */
static const form *form_of(wf_emitter *e, const step_text *s, const char *name, const char *code) {
    for (size_t i = 0; i < e->n_forms; i++)
        if (strcmp(e->codes.at + e->forms[i].code, code) == 0) return &e->forms[i];
    if (!wf_grow(&e->forms, &e->cap_forms, e->n_forms + 1, sizeof *e->forms)) return NULL;
    form *f = &e->forms[e->n_forms];
    f->code = e->codes.length;
    name_form(e, name, f->name);
    wf_text_add(&e->codes, code, strlen(code) + 1);
    if (s->formula) wf_text_print(&e->functions, "/* %s */\n", s->formula);
    wf_text_print(&e->functions, "static %s %s", s->may_fail ? "int" : "void", f->name);
    wf_text_indent(&e->functions, code);
    wf_text_puts(&e->functions, "\n");
    e->n_forms++;
    return e->codes.lacks ? NULL : f;
}

/* ---- modules --------------------------------------------------------------------------------- */

void wf_end_module(wf_emitter *e) {
    if (!e->n_calls) return;
    e->n_modules++;
    const char *type = e->module_fails ? "int" : "void", *by = e->module_moves ? ", position" : "";
    wf_text_print(&e->modules, "static %s %s_%d(const %s *m%s) {\n", type, e->module, e->n_modules,
                  e->prefix, e->module_moves ? ", int position" : "");
    if (!wf_find_word(e->calls.at, "m")) wf_text_puts(&e->modules, "    (void)m;\n");
    wf_text_add(&e->modules, e->calls.at, e->calls.length);
    wf_text_puts(&e->modules, e->module_fails ? "    return 0;\n}\n\n" : "}\n\n");
    if (e->module_fails)
        wf_text_print(&e->now->run, "    if (%s_%d(m%s)) return 1;\n", e->module, e->n_modules, by);
    else
        wf_text_print(&e->now->run, "    %s_%d(m%s);\n", e->module, e->n_modules, by);
    e->calls.length = 0;
    e->n_calls = 0;
    e->now->fails |= e->module_fails;
    e->module_fails = e->module_moves = false;
}

/* The code of the function that computes the step, its name, and its arguments. */
static bool merge(wf_emitter *e, int n, step_text *const *s, const int64_t *positions,
                  wf_text to[3]) {
    const wf_text *texts[3][MOST_POSITIONS];
    for (int i = 0; i < n; i++) {
        texts[0][i] = &s[i]->name;
        texts[1][i] = &s[i]->code;
        texts[2][i] = &s[i]->arguments;
    }
    for (int k = 0; k < 3; k++)
        if (!wf_merge_numbers(n, texts[k], positions, &to[k]))
            return wf_emitter_fail(e, "%.80s: at another position it is computed otherwise",
                                   s[0]->name.at);
    return (!to[0].lacks && !to[1].lacks && !to[2].lacks) || wf_emitter_fail(e, "out of memory");
}

/* Insert a parameter or an argument before the parenthesis that ends a list. */
static void insert_last(wf_text *t, const char *list_end, const char *what) {
    wf_text with = { 0 };
    size_t n = (size_t)(list_end - t->at);
    wf_text_add(&with, t->at, n);
    if (t->at[n - 1] != '(') wf_text_puts(&with, ", ");
    wf_text_puts(&with, what);
    wf_text_puts(&with, list_end);
    wf_text_free(t);
    *t = with;
}

bool wf_write_step(wf_emitter *e, int n, step_text *const *s, const int64_t *positions) {
    wf_text to[3] = { { 0 } }, *code = &to[1], *arguments = &to[2];
    bool ok = merge(e, n, s, positions, to);
    if (e->n_calls == MOST_CALLS || strcmp(s[0]->module, e->module) != 0) wf_end_module(e);
    strcpy(e->module, s[0]->module);
    if (ok && wf_find_word(code->at, "position")) {
        insert_last(code, strstr(code->at, ") {"), "int position");
        insert_last(arguments, strrchr(arguments->at, ')'), "position");
    }
    const form *f = ok ? form_of(e, s[0], to[0].at, code->at) : NULL;
    if (ok && !f) ok = wf_emitter_fail(e, "out of memory");
    if (ok) {
        wf_text_print(&e->calls, s[0]->may_fail ? "    if (%s%s) return 1;" : "    %s%s;", f->name,
                      arguments->at);
        if (s[0]->writes)
            wf_text_puts(&e->calls, "\n");
        else
            wf_text_print(&e->calls, " /* %s */\n", s[0]->shape);
        e->module_fails |= s[0]->may_fail;
        e->module_moves |= wf_find_word(arguments->at, "position") != NULL;
        e->updates |= s[0]->writes;
        e->n_calls++;
    }
    for (int k = 0; k < 3; k++) wf_text_free(&to[k]);
    return ok;
}
