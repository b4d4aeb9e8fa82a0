/* core/emit/emit.c - a plan as one C file: what emit.h promises.
 *
 * Every step of the schedule is a call of a C function, whose body the op's kernel writes
 * (emitter.h). Steps with the same body call the same function. The calls of one module path, in
 * the order of the schedule, are a function named after it. Memory lies where the plan puts it. */
#include "core/emit.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/basis.h"
#include "core/plan/plan.h"
#include "emitter.h"
#include "text.h"

/* Calls of a function named after a module; functions that run them. */
enum { MOST_CALLS = 40, MOST_NAME = 128, MOST_PREFIX = 64 };
/* A leaf begins at a multiple of so many floats. */
enum { LEAF_UNIT = 16 };

/* A function that computes one or several steps. */
typedef struct form {
    size_t code; /* where its parameters and body begin in emitter.codes, ended by 0 */
    char name[MOST_NAME];
} form;

struct wf_emitter {
    wf_plan *plan;
    const char *prefix;
    /* of the step that is written */
    char operand[WF_MAX_OPERANDS][32];
    wf_text body;
    bool uses_scratch, uses_stream, may_fail;
    /* of the whole file */
    wf_text codes, functions, modules, run, weights, names, getters;
    form *forms;
    size_t n_forms, cap_forms;
    int64_t scratch; /* most floats that a step asked for */
    bool *is_placed; /* by node id: the leaf has a place in the weights */
    int *leaves;     /* the ids of those leaves in the order of their places */
    int n_leaves;
    int64_t n_weights;
    bool updates;
    /* the module whose calls are collected */
    char module[MOST_NAME];
    wf_text calls;
    int n_calls, n_modules;
    bool module_fails;
};

/* ---- what ops ask for ------------------------------------------------------------------------ */

void wf_emit_text(wf_emitter *e, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    wf_text_format(&e->body, false, format, arguments);
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

static const char *type_of(wf_dtype dtype) {
    return dtype == WF_I32 ? "int32_t" : "float";
}

static void add_parameters(const wf_emitter *e, const exec *x, wf_text *t) {
    const wf_call *c = &x->call;
    bool any = false;
    wf_text_puts(t, "(");
    for (int i = 0; i < c->n_in; i++) {
        if (!is_given(e, c, i)) continue;
        separate(t, &any);
        wf_text_print(t, "%s%s *%s", c->op->writes >> i & 1 ? "" : "const ",
                      type_of(c->in[i].dtype), e->operand[i]);
    }
    for (int k = 0; k < c->n_out; k++) {
        if (!uses(e, result_names[k])) continue;
        separate(t, &any);
        wf_text_print(t, "%s *%s", type_of(c->out[k].dtype), result_names[k]);
    }
    if (uses(e, "work")) separate(t, &any), wf_text_puts(t, "void *work");
    if (e->uses_scratch) separate(t, &any), wf_text_puts(t, "float *scratch");
    if (e->uses_stream) separate(t, &any), wf_text_puts(t, "uint64_t stream");
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

/* The expression for the first element of a value. */
static bool add_place(wf_emitter *e, location at, wf_dtype dtype, wf_text *t) {
    const storage *s = &e->plan->now->storages[at.storage];
    char name[MOST_NAME];
    switch (s->place) {
    case IN_ARENA:
        wf_text_print(t, "%s(m, %n)", dtype == WF_I32 ? "ints" : "floats",
                      (int64_t)(s->offset / 4) + at.offset);
        return true;
    case IN_FEED:
        wf_identifier(e->plan->feeds[s->index].tensor->name, name, sizeof name);
        wf_text_print(t, at.offset ? "m->%s + %n" : "m->%s", name, at.offset);
        return true;
    case IN_LEAF: {
        const wf_tensor *of = e->plan->graph->nodes[s->index];
        if (of->dtype != WF_F32)
            return wf_plan_fail(e->plan, "'%s' is an i32 leaf, which has no form in C", called(of));
        place_leaf(e, of, name);
        wf_text_print(t, at.offset ? "m->weights + at_%s_%d + %n" : "m->weights + at_%s_%d", name,
                      of->id, at.offset);
        return true;
    }
    default:
        return wf_plan_fail(e->plan, "a plan with a state has no form in C");
    }
}

/* The arguments in the order of add_parameters. `to`: what stands for result 0, or NULL. */
static bool add_arguments(wf_emitter *e, const exec *x, const char *to, wf_text *t) {
    const wf_call *c = &x->call;
    bool any = false, ok = true;
    wf_text_puts(t, "(");
    for (int i = 0; ok && i < c->n_in; i++) {
        if (!is_given(e, c, i)) continue;
        separate(t, &any);
        ok = add_place(e, x->in[i], c->in[i].dtype, t);
    }
    for (int k = 0; ok && k < c->n_out; k++) {
        if (!uses(e, result_names[k])) continue;
        separate(t, &any);
        if (to)
            wf_text_puts(t, to);
        else
            ok = add_place(e, x->out[k], c->out[k].dtype, t);
    }
    if (ok && uses(e, "work")) {
        separate(t, &any);
        ok = add_place(e, (location){ x->work, 0 }, WF_F32, t);
    }
    if (e->uses_scratch) separate(t, &any), wf_text_puts(t, "floats(m, SCRATCH)");
    if (e->uses_stream) separate(t, &any), wf_text_puts(t, "stream_of(m)");
    wf_text_puts(t, ")");
    return ok;
}

/* ---- functions ------------------------------------------------------------------------------- */

static bool name_is_taken(const wf_emitter *e, const char *name) {
    for (size_t i = 0; i < e->n_forms; i++)
        if (strcmp(e->forms[i].name, name) == 0) return true;
    return false;
}

/* "matmul_32x128", or with a number behind it if that is another function. */
static void name_form(const wf_emitter *e, const wf_call *c, char name[MOST_NAME]) {
    const wf_view *v = c->op->writes ? &c->in[0] : &c->out[0];
    size_t n = wf_identifier(c->op->name, name, MOST_NAME);
    for (int i = 0; i < v->ndim && n < MOST_NAME - 32; i++)
        n += (size_t)snprintf(name + n, MOST_NAME - n, i ? "x%lld" : "_%lld",
                              (long long)v->shape[i]);
    for (int number = 2; name_is_taken(e, name); number++)
        snprintf(name + n, MOST_NAME - n, "_%d", number);
}

/* The function with this code; it is written if there is none yet. NULL: out of memory. */
static const form *form_of(wf_emitter *e, const wf_call *c, const char *code) {
    for (size_t i = 0; i < e->n_forms; i++)
        if (strcmp(e->codes.at + e->forms[i].code, code) == 0) return &e->forms[i];
    if (!wf_grow(&e->forms, &e->cap_forms, e->n_forms + 1, sizeof *e->forms)) return NULL;
    form *f = &e->forms[e->n_forms];
    f->code = e->codes.length;
    name_form(e, c, f->name);
    wf_text_add(&e->codes, code, strlen(code) + 1);
    if (c->op->formula) wf_text_print(&e->functions, "/* %s */\n", c->op->formula);
    wf_text_print(&e->functions, "static %s %s", e->may_fail ? "int" : "void", f->name);
    wf_text_indent(&e->functions, code);
    wf_text_puts(&e->functions, "\n");
    e->n_forms++;
    return e->codes.lacks ? NULL : f;
}

/* Write the body of step x. False, after wf_plan_fail: it has no form in C. */
static bool write_body(wf_emitter *e, const exec *x) {
    const wf_call *c = &x->call;
    const wf_kernel *run = kernel_of(c->op);
    e->body.length = 0;
    wf_text_puts(&e->body, "");
    e->uses_scratch = e->uses_stream = e->may_fail = false;
    name_operands(e, c);
    if (!run->emit) return wf_plan_fail(e->plan, "%s: this op has no form in C", c->op->name);
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i].layout == WF_PANELS_INT8)
            return wf_plan_fail(e->plan, "%s: weights in int8 have no form in C", c->op->name);
    wf_report_reset(&e->plan->report, true);
    if (!run->emit(e, c)) return wf_plan_fail_at(e->plan, x->node, c->op);
    return true;
}

/* Append a call of the function that computes x to `to`; its result goes to `result` if that is
 * not NULL. */
static bool write_call(wf_emitter *e, const exec *x, const char *result, wf_text *to) {
    wf_text code = { 0 };
    if (!write_body(e, x)) return false;
    add_parameters(e, x, &code);
    wf_text_puts(&code, " {\n");
    wf_text_add(&code, e->body.at ? e->body.at : "", e->body.length);
    wf_text_puts(&code, e->may_fail ? "\nreturn 0;\n}\n" : "\n}\n");
    const form *f = code.lacks ? NULL : form_of(e, &x->call, code.at);
    wf_text_free(&code);
    if (!f) return wf_plan_fail(e->plan, "out of memory");
    wf_text_print(to, e->may_fail ? "    if (%s" : "    %s", f->name);
    bool ok = add_arguments(e, x, result, to);
    wf_text_puts(to, e->may_fail ? ") return 1;" : ";");
    return ok;
}

/* ---- modules --------------------------------------------------------------------------------- */

static void end_module(wf_emitter *e) {
    if (!e->n_calls) return;
    e->n_modules++;
    const char *type = e->module_fails ? "int" : "void";
    wf_text_print(&e->modules, "static %s %s_%d(const %s *m) {\n", type, e->module, e->n_modules,
                  e->prefix);
    wf_text_add(&e->modules, e->calls.at, e->calls.length);
    wf_text_puts(&e->modules, e->module_fails ? "    return 0;\n}\n\n" : "}\n\n");
    wf_text_print(&e->run, e->module_fails ? "    if (%s_%d(m)) return 1;\n" : "    %s_%d(m);\n",
                  e->module, e->n_modules);
    e->calls.length = 0;
    e->n_calls = 0;
    e->module_fails = false;
}

/* The path under which a step was recorded; that of a gradient ends in "_gradient". A copy that
 * the plan inserted belongs to the step after it. */
static void module_of(const wf_emitter *e, int step, char name[MOST_NAME]) {
    const binding *b = e->plan->now;
    while (step + 1 < b->n_execs && !b->execs[step].node) step++;
    const wf_tensor *t = b->execs[step].node, *of = t && t->forward ? t->forward : t;
    char path[MOST_NAME];
    wf_identifier(of && of->name && of->name[0] ? of->name : e->prefix, path,
                  MOST_NAME - sizeof "_gradient_12345678");
    snprintf(name, MOST_NAME, t && t->forward ? "%.100s_gradient" : "%.100s", path);
}

static bool write_step(wf_emitter *e, int step) {
    const exec *x = &e->plan->now->execs[step];
    char module[MOST_NAME], shape[112];
    module_of(e, step, module);
    if (e->n_calls == MOST_CALLS || strcmp(module, e->module) != 0) end_module(e);
    strcpy(e->module, module);
    if (!write_call(e, x, NULL, &e->calls)) return false;
    const wf_view *v = &x->call.out[0];
    if (x->call.op->writes)
        wf_text_puts(&e->calls, "\n");
    else
        wf_text_print(&e->calls, " /* %s */\n",
                      wf_shape_text(NULL, v->ndim, v->shape, shape, sizeof shape));
    e->module_fails |= e->may_fail;
    e->updates |= x->call.op->writes != 0;
    e->n_calls++;
    return true;
}

/* ---- inputs and fetches ---------------------------------------------------------------------- */

/* The names of inputs and fetches must differ as identifiers. */
static bool names_differ(wf_emitter *e, const wf_tensor *const *named, int n) {
    char a[MOST_NAME], b[MOST_NAME];
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++) {
            wf_identifier(called(named[i]), a, sizeof a);
            wf_identifier(called(named[k]), b, sizeof b);
            if (strcmp(a, b) == 0)
                return wf_plan_fail(e->plan, "'%s' and '%s' have one name in C: wf_named gives one",
                                    called(named[i]), called(named[k]));
        }
    return true;
}

/* A function that copies a fetched value, row-major, to `to`. */
static bool write_getter(wf_emitter *e, const wf_tensor *t) {
    const bound_view *v = wf_plan_value(e->plan, t);
    wf_view in = v->view, out;
    location at[2] = { v->at, { -1, 0 } };
    char name[MOST_NAME];
    wf_set_shape(&out, in.dtype, in.ndim, in.shape);
    wf_dense_strides(out.ndim, out.shape, out.stride);
    exec copy = { .work = -1, .in = &at[0], .out = &at[1] };
    copy.call = (wf_call){ .op = wf_basis.copy, .graph = e->plan->graph, .n_in = 1, .n_out = 1 };
    copy.call.in = &in;
    copy.call.out = &out;
    copy.call.report = &e->plan->report;
    wf_identifier(called(t), name, sizeof name);
    wf_text_print(&e->getters, "\nvoid %s_get_%s(const %s *m, %s *to) {\n", e->prefix, name,
                  e->prefix, type_of(in.dtype));
    if (!write_call(e, &copy, "to", &e->getters)) return false;
    wf_text_puts(&e->getters, "\n}\n");
    return true;
}

static bool write_getters(wf_emitter *e) {
    wf_plan *p = e->plan;
    const wf_tensor **named = calloc((size_t)p->n_nodes + 1, sizeof *named);
    int n = 0;
    bool ok = named != NULL || wf_plan_fail(p, "out of memory");
    for (int i = 0; ok && i < p->n_feeds; i++) named[n++] = p->feeds[i].tensor;
    ok = ok && names_differ(e, named, n);
    n = 0;
    for (int i = 0; ok && i < p->n_nodes; i++) {
        const wf_tensor *t = p->nodes[i].node;
        if (!p->nodes[i].fetched || (t->op && t->op->writes)) continue;
        named[n++] = t;
        ok = names_differ(e, named, n) && write_getter(e, t);
    }
    free(named);
    return ok;
}

/* ---- the file -------------------------------------------------------------------------------- */

static bool write_weights(wf_emitter *e) {
    const wf_graph *g = e->plan->graph;
    for (int k = 0; k < e->n_leaves; k++) {
        wf_tensor *t = g->nodes[e->leaves[k]];
        int64_t n = wf_count(t), room = (n + LEAF_UNIT - 1) / LEAF_UNIT * LEAF_UNIT;
        float *values = malloc(((size_t)n + 1) * sizeof *values);
        if (!values || !wf_read(t, values, (size_t)n * sizeof *values)) {
            free(values);
            return wf_plan_fail(e->plan, "'%s' cannot be read", called(t));
        }
        wf_text_print(&e->weights, "    /* %s */", called(t));
        for (int64_t i = 0; i < room; i++)
            wf_text_print(&e->weights, i % 8 ? " %f," : "\n    %f,", i < n ? (double)values[i] : 0);
        wf_text_puts(&e->weights, "\n");
        free(values);
    }
    return true;
}

/* The name that a block of plain C defines: the last word before a parenthesis, a bracket or a
 * semicolon after "static" or "typedef", or the one after "#define". "": none */
static void name_of_block(const char *block, char name[MOST_NAME]) {
    const char *at = strstr(block, "static "), *end;
    name[0] = 0;
    if (at) {
        end = at + strcspn(at, "([;");
    } else if ((at = strstr(block, "#define "))) {
        end = at + 8 + strcspn(at + 8, " (");
    } else if ((at = strstr(block, "typedef "))) {
        end = block + strlen(block);
        while (end > at && *end != ';') end--;
    } else {
        return;
    }
    for (at = end; at > block && at[-1] != ' ' && at[-1] != '*';) at--;
    snprintf(name, MOST_NAME, "%.*s", (int)(end - at), at);
}

static void add_without_comments(wf_text *t, const char *code) {
    for (const char *begin; (begin = strstr(code, "/*"));) {
        wf_text_add(t, code, (size_t)(begin - code));
        const char *end = strstr(begin, "*/");
        code = end ? end + 2 : begin + strlen(begin);
    }
    wf_text_puts(t, code);
}

/* The blocks of the plain C: their lines joined. *n: their number. NULL: out of memory. */
static wf_text *plain_blocks(const char *const *lines, int *n) {
    wf_text *blocks = NULL;
    size_t capacity = 0;
    *n = 0;
    for (bool begins = true; lines && *lines; lines++) {
        if (!**lines) {
            begins = true;
            continue;
        }
        if (begins && !wf_grow(&blocks, &capacity, (size_t)*n + 1, sizeof *blocks)) return NULL;
        if (begins) blocks[(*n)++] = (wf_text){ 0 };
        begins = false;
        wf_text_puts(&blocks[*n - 1], *lines);
    }
    return blocks;
}

/* Put the plain functions that `code` names before it, and those that these name. Each needs only
 * earlier ones. */
static bool add_plain(wf_text *code) {
    int n;
    wf_text *blocks = plain_blocks(wf_basis.plain, &n), words = { 0 }, all = { 0 };
    bool *used = calloc((size_t)n + 1, sizeof *used), ok = used && (blocks || !n);
    char name[MOST_NAME];
    add_without_comments(&words, code->at);
    for (int i = n - 1; ok && i >= 0; i--) {
        name_of_block(blocks[i].at, name);
        ok = !blocks[i].lacks && !words.lacks;
        used[i] = ok && name[0] && wf_find_word(words.at, name);
        if (used[i]) add_without_comments(&words, blocks[i].at);
    }
    for (int i = 0; ok && i < n; i++)
        if (used[i]) wf_text_print(&all, "%s\n", blocks[i].at);
    for (int i = 0; blocks && i < n; i++) wf_text_free(&blocks[i]);
    wf_text_add(&all, code->at, code->length);
    ok = ok && !words.lacks && !all.lacks;
    free(blocks);
    free(used);
    wf_text_free(&words);
    wf_text_free(code);
    *code = all;
    return ok;
}

static void write_struct(const wf_emitter *e, wf_text *t) {
    const wf_plan *p = e->plan;
    char name[MOST_NAME], shape[112];
    wf_text_print(t, "typedef struct %s {\n    unsigned char *arena;\n", e->prefix);
    wf_text_print(t, "    %sfloat *weights;\n", e->updates ? "" : "const ");
    wf_text_puts(t, "    /* random bits depend on the step, which every run increments */\n"
                    "    uint64_t step;\n    uint32_t micro_batch;\n");
    for (int i = 0; i < p->n_feeds; i++) {
        const feed *f = &p->feeds[i];
        const bound_view *v = wf_plan_value(e->plan, f->tensor);
        if (!f->needed) continue;
        wf_identifier(f->tensor->name, name, sizeof name);
        wf_text_print(t, "    const %s *%s; /* %s */\n", type_of(v->view.dtype), name,
                      wf_shape_text(NULL, v->view.ndim, v->view.shape, shape, sizeof shape));
    }
    wf_text_print(t, "} %s;\n\n", e->prefix);
}

static void write_head(const wf_emitter *e, wf_text *t) {
    int64_t arena = (int64_t)(e->plan->now->arena + 63) / 64 * 64;
    wf_text_print(t,
                  "/* %s.c - a computation graph as C, which weft %s wrote. It needs no library.\n"
                  " *\n"
                  " * %s_start gives the struct its memory, %s_run computes, %s_get_... copies\n"
                  " * results. Inputs are members of the struct: set them before a run. */\n",
                  e->prefix, wf_version(), e->prefix, e->prefix, e->prefix);
    wf_text_puts(t, "#include <stdint.h>\n\n");
    wf_text_puts(t, "/* A product and a sum are fused only where multiply_add says so. */\n"
                    "#if defined __clang__\n#pragma STDC FP_CONTRACT OFF\n"
                    "#elif defined __GNUC__\n"
                    "#pragma GCC optimize(\"fp-contract=off\")\n#endif\n\n");
    wf_text_print(t, "enum {\n    SCRATCH = %n, /* floats before it */\n", arena / 4);
    wf_text_print(t, "    %s_ARENA = %n, /* bytes of memory, aligned to 64 */\n", e->prefix,
                  arena + (e->scratch * 4 + 63) / 64 * 64);
    wf_text_print(t, "    %s_WEIGHTS = %n, /* floats */\n};\n\n", e->prefix, e->n_weights);
    if (e->names.length)
        wf_text_print(t, "/* Where a leaf begins in the weights. */\nenum {\n%s};\n\n",
                      e->names.at);
    write_struct(e, t);
}

/* Functions that the text calls are written only if it does: compilers warn of others. */
static void write_helpers(const wf_emitter *e, const char *code, wf_text *t) {
    if (strstr(code, "floats(m, "))
        wf_text_print(t,
                      "static float *floats(const %s *m, int i) {\n"
                      "    return (float *)(void *)m->arena + i;\n}\n\n",
                      e->prefix);
    if (strstr(code, "ints(m, "))
        wf_text_print(t,
                      "static int32_t *ints(const %s *m, int i) {\n"
                      "    return (int32_t *)(void *)m->arena + i;\n}\n\n",
                      e->prefix);
    if (strstr(code, "stream_of(m)"))
        wf_text_print(t,
                      "static uint64_t stream_of(const %s *m) {\n"
                      "    return mix(m->step << 32 | m->micro_batch);\n}\n\n",
                      e->prefix);
}

static void write_end(const wf_emitter *e, wf_text *t) {
    const char *of = e->prefix;
    wf_text_print(t, "void %s_start(%s *m, void *arena%s) {\n    m->arena = arena;\n", of, of,
                  e->updates ? ", float *weights" : "");
    if (e->updates)
        wf_text_print(t,
                      "    m->weights = weights;\n"
                      "    for (int i = 0; i < %s_WEIGHTS; i++) weights[i] = first_weights[i];\n",
                      of);
    else
        wf_text_puts(t, "    m->weights = first_weights;\n");
    wf_text_puts(t, "    m->step = 0;\n    m->micro_batch = 0;\n}\n\n");
    wf_text_print(t, "int %s_run(%s *m) {\n%s    m->step++;\n    return 0;\n}\n", of, of,
                  e->run.at ? e->run.at : "");
    if (e->getters.length) wf_text_puts(t, e->getters.at);
}

static char *join_file(wf_emitter *e) {
    wf_text code = { 0 }, end = { 0 }, file = { 0 };
    wf_text_puts(&code, e->functions.at ? e->functions.at : "");
    wf_text_puts(&code, e->modules.at ? e->modules.at : "");
    write_end(e, &end);
    bool ok = !code.lacks && !end.lacks;
    if (ok) {
        wf_text whole = { 0 };
        wf_text_puts(&code, end.at);
        write_helpers(e, code.at, &whole);
        wf_text_puts(&whole, code.at);
        wf_text_free(&code);
        code = whole;
    }
    ok = ok && !code.lacks && add_plain(&code);
    write_head(e, &file);
    wf_text_print(&file,
                  "/* The leaves' values: parameters, buffers, constants. */\n"
                  "static const float first_weights[%n] = {\n%s};\n\n",
                  e->n_weights ? e->n_weights : 1, e->n_weights ? e->weights.at : "    0\n");
    if (ok) wf_text_puts(&file, code.at);
    ok = ok && !file.lacks && !e->functions.lacks && !e->modules.lacks && !e->weights.lacks &&
         !e->names.lacks && !e->run.lacks && !e->getters.lacks && !e->calls.lacks;
    wf_text_free(&code), wf_text_free(&end);
    if (ok) return file.at;
    wf_text_free(&file);
    wf_plan_fail(e->plan, "out of memory");
    return NULL;
}

static void free_emitter(wf_emitter *e) {
    wf_text_free(&e->body), wf_text_free(&e->codes), wf_text_free(&e->functions);
    wf_text_free(&e->modules), wf_text_free(&e->run), wf_text_free(&e->weights);
    wf_text_free(&e->names), wf_text_free(&e->getters), wf_text_free(&e->calls);
    free(e->forms);
    free(e->is_placed);
    free(e->leaves);
}

static bool is_identifier(const char *name) {
    char same[MOST_PREFIX];
    return wf_identifier(name, same, sizeof same) < sizeof same && strcmp(name, same) == 0 &&
           name[0];
}

static bool can_be_emitted(wf_plan *p, const char *prefix) {
    if (!wf_plan_ok(p)) return false;
    if (!is_identifier(prefix)) return wf_plan_fail(p, "'%s' is no identifier of C", prefix);
    if (p->graph->real != WF_F32) return wf_plan_fail(p, "a graph of f64 has no form in C");
    if (p->with_state) return wf_plan_fail(p, "a plan with a state has no form in C");
    return wf_plan_prepare(p, 0);
}

char *wf_emit(wf_plan *p, const wf_emit_options *options) {
    const char *prefix = options && options->name ? options->name : "model";
    if (!can_be_emitted(p, prefix)) return NULL;
    wf_emitter e = { .plan = p, .prefix = prefix };
    size_t n = (size_t)p->graph->n_nodes + 1;
    e.is_placed = calloc(n, sizeof *e.is_placed);
    e.leaves = malloc(n * sizeof *e.leaves);
    bool ok = (e.is_placed && e.leaves) || wf_plan_fail(p, "out of memory");
    for (int i = 0; ok && i < p->now->n_execs; i++) ok = write_step(&e, i);
    end_module(&e);
    ok = ok && write_getters(&e) && write_weights(&e);
    char *text = ok ? join_file(&e) : NULL;
    free_emitter(&e);
    return text;
}
