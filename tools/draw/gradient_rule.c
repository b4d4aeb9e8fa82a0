/* tools/draw/gradient_rule.c - a gradient rule as text. See gradient_rule.h. */
#include "gradient_rule.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "node_values.h"

enum { DEEPEST = 12, LONGEST = RULE_TEXT - 64 };

typedef struct writer {
    const wf_tensor *y, *dy;
    char *text;
    size_t n;
    bool failed; /* out of memory */
} writer;

/* Appends to the text. If there is no room, " ..." replaces the rest. */
static void WF_PRINTF(2, 3) put(writer *w, const char *format, ...) {
    va_list args;
    if (w->n > LONGEST) return;
    va_start(args, format);
    int n = vsnprintf(w->text + w->n, RULE_TEXT - w->n, format, args);
    va_end(args);
    if (n > 0) w->n += (size_t)n;
    if (w->n > LONGEST) w->n = LONGEST + 1;
    if (w->n > LONGEST) memcpy(w->text + LONGEST, " ...", 5);
}

static void put_expression(writer *w, const wf_tensor *t, int depth);

/* Writes an operand that needs no brackets: "a", "y", "dy", "2". False: t is none, and nothing was
 * written. */
static bool put_name(writer *w, const wf_tensor *t) {
    char name[64];
    const wf_tensor *y = w->y;
    if (t == w->dy) {
        put(w, "dy");
        return true;
    }
    if (t == y) {
        put(w, "y");
        return true;
    }
    for (int i = 0; i < y->n_in; i++)
        if (y->in[i] == t) {
            put(w, "%s", operand_name(y->op, i, name));
            return true;
        }
    if (t->op && t - t->result == y) {
        put(w, "y%d", t->result);
        return true;
    }
    int n = t->kind == WF_CONSTANT ? wf_print(NULL, t, name, sizeof name) : (int)sizeof name;
    w->failed |= n < 0;
    if (n < (int)sizeof name) {
        put(w, "%s", name);
        return true;
    }
    if (!t->op || t->id < w->dy->id) {
        put(w, "%s", t->op ? t->op->name : t->name);
        return true;
    }
    return false;
}

static bool put_infix(writer *w, const wf_tensor *t, int depth) {
    static const struct {
        const char *op, *sign;
    } infix[] = { { "add", "+" }, { "sub", "-" }, { "mul", "*" }, { "div", "/" } };
    for (size_t i = 0; i < sizeof infix / sizeof *infix; i++) {
        if (strcmp(t->op->name, infix[i].op) != 0) continue;
        put(w, depth ? "(" : "");
        put_expression(w, t->in[0], depth + 1);
        put(w, " %s ", infix[i].sign);
        put_expression(w, t->in[1], depth + 1);
        put(w, depth ? ")" : "");
        return true;
    }
    return false;
}

static void put_expression(writer *w, const wf_tensor *t, int depth) {
    char attributes[ATTRIBUTES_TEXT];
    if (put_name(w, t)) return;
    if (depth > DEEPEST) {
        put(w, "...");
        return;
    }
    if (put_infix(w, t, depth)) return;
    put(w, "%s(", t->op->name);
    for (int i = 0, n = 0; i < t->n_in; i++) {
        if (!t->in[i]) continue;
        if (n++) put(w, ", ");
        put_expression(w, t->in[i], 1);
    }
    attributes_text(t, attributes);
    put(w, *attributes ? "; %s)%s" : "%s)%s", attributes, "");
    if (t->result) put(w, "[%d]", t->result);
}

int operands_with_gradient(const wf_tensor *y, wf_tensor **x, int *place) {
    int n = 0;
    if (y->op->no_grad || y->op->writes || y->dtype == WF_I32) return 0;
    for (int i = 0; i < y->n_in; i++) {
        bool skip = !y->in[i] || y->in[i]->dtype == WF_I32 || (y->op->shape_only >> i & 1) ||
                    (y->op->nondiff >> i & 1);
        for (int k = 0; k < n; k++) skip |= x[k] == y->in[i];
        if (skip) continue;
        x[n] = y->in[i];
        place[n++] = i;
    }
    return n;
}

const char *gradient_rule(wf_tensor *y, char text[RULE_TEXT]) {
    wf_tensor *x[WF_MAX_OPERANDS], *dx[WF_MAX_OPERANDS] = { NULL };
    int place[WF_MAX_OPERANDS], n = operands_with_gradient(y, x, place);
    char name[32];
    const char *none = y->op->no_grad;
    text[0] = '\0';
    if (n == 0) {
        snprintf(text, RULE_TEXT, "none%s%.200s", none ? ": " : "", none ? none : "");
        return text;
    }
    wf_tensor *dy = wf_fill(y, 1);
    wf_vjp(&y, &dy, 1, x, n, dx);
    writer w = { .y = y, .dy = dy, .text = text };
    for (int k = 0; k < n && wf_ok(y->graph); k++) {
        if (!dx[k]) continue;
        put(&w, "%sd%s = ", w.n ? "\n" : "", operand_name(y->op, place[k], name));
        put_expression(&w, dx[k], 0);
    }
    if (!y->op->grad) put(&w, "\n(through its decomposition)");
    return w.failed || says_no_memory(wf_error(y->graph)) ? NULL : text;
}
