/* tools/docs/describe_ops.c - every op of the library as a line of JSON, with an example that has
 * run: operands, results, gradients and the gradient rule. manual.py makes the manual from these
 * lines. Exits with 1 if an op has no example in op_examples.inc, or one that fails, or if the
 * lines are not complete. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_internal.h"
#include "ops/ops.h"
#include "ops/ops_internal.h"
#include "tools/cli/jsonl.h"
#include "tools/cli/options/options.h"
#include "tools/cli/terminal.h"
#include "tools/draw/gradient_rule.h"
#include "tools/draw/node_values.h"

enum { MOST_OPERANDS = 6, MOST_VALUES = 16, MOST_TEXT = 4096 };

typedef struct operand {
    int ndim;
    wf_dtype dtype; /* WF_I32, or WF_F64: real */
    bool is_leaf;   /* a buffer, for an op that writes to it */
    int64_t shape[4];
    double values[MOST_VALUES];
} operand;

typedef struct op_example {
    const char *op, *code;
    wf_tensor *(*record)(wf_tensor *const *x);
    bool training;
    operand in[MOST_OPERANDS]; /* operands; one of dtype 0 ends the list */
} op_example;

static const program self = { .name = "describe-ops" };

static const wf_op *op_named(const char *name) {
    for (int i = 0; i < wf_op_count(); i++)
        if (strcmp(wf_op_at(i)->name, name) == 0) return wf_op_at(i);
    return NULL;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* clang-format off */
#define LENGTH(...) (int64_t)(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double))
#define NUMBER(value) { .dtype = WF_F64, .values = { value } }
#define VECTOR(...) { 1, WF_F64, false, { LENGTH(__VA_ARGS__) }, { __VA_ARGS__ } }
#define IDS(...) { 1, WF_I32, false, { LENGTH(__VA_ARGS__) }, { __VA_ARGS__ } }
#define LEAF(...) { 1, WF_F64, true, { LENGTH(__VA_ARGS__) }, { __VA_ARGS__ } }
#define MATRIX(rows, columns, ...) { 2, WF_F64, false, { rows, columns }, { __VA_ARGS__ } }
#define LEAVES(rows, columns, ...) { 2, WF_F64, true, { rows, columns }, { __VA_ARGS__ } }
#define HEAD(rows, columns, ...) { 4, WF_F64, false, { 1, 1, rows, columns }, { __VA_ARGS__ } }
#define IMAGE(rows, columns, ...) HEAD(rows, columns, __VA_ARGS__)
/* clang-format on */

#define EXAMPLE(name, expression, ...)                                                             \
    static wf_tensor *record_##name(wf_tensor *const *x) {                                         \
        wf_tensor *a = x[0], *b = x[1], *c = x[2], *d = x[3], *e = x[4], *f = x[5];                \
        (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;                                      \
        return expression;                                                                         \
    }
#define TRAINING(name, expression, ...) EXAMPLE(name, expression, )
#include "op_examples.inc"
#undef EXAMPLE
#undef TRAINING
#define EXAMPLE(name, expression, ...)                                                             \
    { #name, #expression, record_##name, false, { __VA_ARGS__ } },
#define TRAINING(name, expression, ...)                                                            \
    { #name, #expression, record_##name, true, { __VA_ARGS__ } },
static const op_example op_examples[] = {
#include "op_examples.inc"
};

static const op_example *example_of(const wf_op *op) {
    for (size_t i = 0; i < sizeof op_examples / sizeof *op_examples; i++)
        if (strcmp(op_examples[i].op, op->name) == 0) return &op_examples[i];
    return NULL;
}

/* ---- recording ------------------------------------------------------------------------------- */

static wf_tensor *new_operand(wf_graph *g, const operand *o, int i) {
    int32_t ids[MOST_VALUES];
    char name[2] = { (char)('a' + i), '\0' };
    if (o->dtype == WF_I32) {
        for (int k = 0; k < MOST_VALUES; k++) ids[k] = (int32_t)o->values[k];
        return wf_constant_array(g, WF_I32, o->ndim, o->shape, ids);
    }
    if (!o->is_leaf) return wf_constant_array(g, WF_F64, o->ndim, o->shape, o->values);
    wf_tensor *leaf = wf_buffer(g, name, WF_F64, o->ndim, o->shape, wf_init_zeros());
    return leaf && wf_write(leaf, o->values, wf_bytes(leaf)) ? leaf : NULL;
}

/* 1, 2, 3... in the shape of y: a cotangent that shows which element of it went where. */
static wf_tensor *counting(wf_tensor *y) {
    int64_t n = wf_count(y);
    double *values = memory_or_fail(&self, malloc(((size_t)n + 1) * sizeof *values));
    for (int64_t i = 0; i < n; i++) values[i] = (double)(i + 1);
    wf_tensor *t = wf_constant_array(y->graph, WF_F64, y->ndim, y->shape, values);
    free(values);
    return t;
}

/* The first node of the op whose id is `from` or more; NULL: there is none. */
static wf_tensor *find_node(const wf_graph *g, const wf_op *op, int from) {
    for (int id = from; id < wf_node_count(g); id++) {
        wf_tensor *t = wf_node(g, id);
        if (t->op == op && !t->result) return t;
    }
    return NULL;
}

/* Records gradients of y. x receives the operands that have a gradient, each once, and place their
 * indices; dy a cotangent with the values 1, 2, 3...; dx the gradient for each x. Returns the
 * number of x, perhaps 0. */
static int differentiate(wf_tensor *y, wf_tensor **x, int *place, wf_tensor **dy, wf_tensor **dx) {
    int n = operands_with_gradient(y, x, place);
    if (!n) return 0;
    *dy = counting(y);
    wf_vjp(&y, dy, 1, x, n, dx);
    return n;
}

/* Record the example, and its first and second gradient until the op is found. NULL: it is in
 * none. */
static wf_tensor *record_example(wf_graph *g, const wf_op *op, const op_example *row) {
    wf_tensor *x[MOST_OPERANDS] = { NULL }, *wrt[MOST_OPERANDS], *dx[MOST_OPERANDS] = { NULL };
    int n = 0;
    for (int i = 0; i < MOST_OPERANDS && row->in[i].dtype; i++) {
        x[i] = new_operand(g, &row->in[i], i);
        if (!x[i]) return NULL;
        if (x[i]->dtype != WF_I32) wrt[n++] = x[i];
    }
    int first = wf_node_count(g);
    wf_tensor *y = row->record(x), *found = find_node(g, op, first);
    for (int order = 0; order < 2 && !found && wf_ok(g); order++) {
        wf_tensor *dy = counting(y);
        wf_vjp(&y, &dy, 1, wrt, n, dx);
        /* The gradient of a linear op depends on its cotangent alone, so the next gradient is taken
         * with respect to dy. */
        wrt[0] = dy;
        n = 1;
        y = dx[0];
        found = find_node(g, op, first);
    }
    return found;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_tensor(jsonl *out, wf_plan *p, const char *name, const wf_tensor *t) {
    char text[MOST_TEXT], shape[WF_MESSAGE];
    json_open(out, NULL, '{');
    json_text(out, "name", name);
    json_text(out, "type", t->dtype == WF_I32 ? "i32" : "real");
    json_text(out, "shape", wf_shape_text(t->graph, t->ndim, t->shape, shape, sizeof shape));
    bool printed = wf_print(p, t, text, sizeof text) >= 0;
    json_text(out, "text", printed ? text : "");
    out->failed |= !printed;
    json_close(out, '}');
}

static void put_operands(jsonl *out, wf_plan *p, const char *key, const wf_tensor *y,
                         bool written) {
    char name[32];
    json_open(out, key, '[');
    for (int i = 0; i < y->n_in; i++)
        if (y->in[i] && (!written || (y->op->writes >> i & 1)))
            put_tensor(out, y->in[i]->op ? p : NULL, operand_name(y->op, i, name), y->in[i]);
    json_close(out, ']');
}

static void put_results(jsonl *out, wf_plan *p, const wf_tensor *y) {
    char name[32];
    json_open(out, "outputs", '[');
    for (int k = 0; !y->op->writes && k < (y->op->results ? y->op->results : 1); k++) {
        snprintf(name, sizeof name, k ? "result %d" : "y", k);
        put_tensor(out, p, name, y + k);
    }
    json_close(out, ']');
    if (y->op->writes) put_operands(out, p, "after", y, true);
}

static void put_gradients(jsonl *out, wf_plan *p, const wf_tensor *y, const wf_tensor *dy,
                          const int *place, wf_tensor **dx, int n) {
    char name[32], labelled[40];
    if (!n) return;
    json_open(out, "dy", '[');
    put_tensor(out, NULL, "dy", dy);
    json_close(out, ']');
    json_open(out, "gradients", '[');
    for (int k = 0; k < n; k++) {
        snprintf(labelled, sizeof labelled, "d%s", operand_name(y->op, place[k], name));
        if (dx[k]) put_tensor(out, p, labelled, dx[k]);
    }
    json_close(out, ']');
}

static void put_op(jsonl *out, const wf_op *op) {
    json_begin(out, "op");
    json_text(out, "op", op->name);
    json_text(out, "family", op->family);
    json_text(out, "formula", op->formula ? op->formula : "");
    json_text(out, "attributes", op->attributes ? op->attributes : "");
    json_int(out, "operands", op->arity);
    json_int(out, "results", op->results ? op->results : 1);
    json_text(out, "no_grad", op->no_grad ? op->no_grad : "");
    json_bool(out, "decomposes", op->decompose != NULL && !op->grad);
}

/* A plan for all that is printed: operands that are computed, results, gradients. */
static wf_plan *new_plan(wf_tensor *y, const op_example *row, wf_tensor **dx, int n) {
    wf_tensor *fetch[2 * WF_MAX_OPERANDS + WF_MAX_RESULTS];
    int count = 0;
    for (int i = 0; i < y->n_in; i++)
        if (y->in[i] && y->in[i]->op) fetch[count++] = y->in[i];
    for (int k = 0; k < (y->op->results ? y->op->results : 1); k++) fetch[count++] = y + k;
    for (int k = 0; k < n; k++)
        if (dx[k]) fetch[count++] = dx[k];
    wf_plan_options o = {
        .fetch = fetch, .n_fetch = count, .as_recorded = true, .training = row->training
    };
    return wf_plan_new(y->graph, &o);
}

/* False: message[256]. */
static bool put_example(jsonl *out, const wf_op *op, const op_example *row, char *message) {
    wf_graph *g = wf_graph_new(&(wf_graph_options){ .real = WF_F64, .seed = 1 });
    memory_or_fail(&self, g);
    wf_tensor *x[WF_MAX_OPERANDS], *dx[WF_MAX_OPERANDS] = { NULL }, *dy = NULL;
    char attributes[ATTRIBUTES_TEXT], rule[RULE_TEXT];
    int place[WF_MAX_OPERANDS];
    wf_tensor *y = record_example(g, op, row);
    int n = y ? differentiate(y, x, place, &dy, dx) : 0;
    wf_plan *p = y && wf_ok(g) ? new_plan(y, row, dx, n) : NULL;
    json_text(out, "code", row->code);
    /* An update changes its operands, which are leaves, so they are printed before the run. */
    if (p && y->op->writes) put_operands(out, p, "inputs", y, false);
    bool ok = p && wf_run(p);
    if (ok) {
        json_text(out, "settings", attributes_text(y, attributes));
        if (!y->op->writes) put_operands(out, p, "inputs", y, false);
        put_results(out, p, y);
        put_gradients(out, p, y, dy, place, dx, n);
        out->failed |= gradient_rule(y, rule) == NULL;
        json_text(out, "rule", rule);
    } else {
        const char *recording = wf_ok(g) ? "the example does not record it" : wf_error(g);
        snprintf(message, WF_MESSAGE, "%s", p ? wf_plan_error(p) : recording);
    }
    wf_plan_free(p);
    wf_graph_free(g);
    return ok;
}

int main(void) {
    jsonl out = { .stream = stdout };
    char message[WF_MESSAGE];
    bool whole = true;
    terminal_open();
    for (int i = 0; i < wf_op_count(); i++) {
        const wf_op *op = wf_op_at(i);
        const op_example *row = example_of(op);
        put_op(&out, op);
        const char *error = row ? NULL : "op_examples.inc has no example";
        if (row && !put_example(&out, op, row, message)) error = message;
        if (error) json_text(&out, "error", error);
        if (error) warn(&self, "%s: %s", op->name, error);
        whole = whole && !error;
        json_end(&out);
    }
    if (out.failed && !ferror(stdout)) warn(&self, "out of memory: not all of it is shown");
    whole = whole && !out.failed;
    json_free(&out);
    return close_stdout(&self, whole ? EXIT_DONE : EXIT_FAILED);
}
