/* models/text/expressions/expression.c - compiles the tree of a regular expression to instructions;
 * see expression.h. */
#include "expression.h"

#include <stdlib.h>

#include "expression_parse.h"

enum { MOST_CODE = 20000, MOST_WORK = 200000 };

typedef struct emitter {
    const expression_tree *tree;
    wf_expression *e;
    char *message;
    int work; /* nodes that were visited */
} emitter;

static bool emit(emitter *m, uint32_t node);

static bool append(emitter *m, wf_instruction i, uint32_t *at) {
    wf_expression *e = m->e;
    if (e->n == MOST_CODE) return fail(m->message, "an expression is too long with its repeats");
    if (e->n == e->capacity && !wf_grow(&e->code, &e->capacity, e->n + 1, sizeof *e->code))
        return fail(m->message, "out of memory");
    *at = (uint32_t)e->n;
    e->code[e->n++] = i;
    return true;
}

static wf_instruction split_before(const expression_node *n) {
    wf_instruction i = { .op = OP_SPLIT, .least = n->nullable };
    for (int b = 0; b < 8; b++) i.first[b] = n->nullable ? UINT32_MAX : n->first[b];
    return i;
}

static bool emit_or(emitter *m, const expression_node *n) {
    uint32_t split = 0, jump = 0;
    if (!append(m, split_before(&m->tree->nodes[n->a]), &split) || !emit(m, n->a) ||
        !append(m, (wf_instruction){ .op = OP_JUMP }, &jump))
        return false;
    m->e->code[split].a = split + 1;
    m->e->code[split].b = jump + 1;
    if (!emit(m, n->b)) return false;
    m->e->code[jump].a = (uint32_t)m->e->n;
    return true;
}

static bool emit_group(emitter *m, wf_op_kind op, bool inverted, uint32_t body) {
    uint32_t at = 0, end = 0;
    if (!append(m, (wf_instruction){ .op = op, .b = inverted }, &at) || !emit(m, body) ||
        !append(m, (wf_instruction){ .op = OP_END }, &end))
        return false;
    m->e->code[at].a = end + 1;
    return true;
}

/* Emits a body that may be skipped. If `again` is true, the choice is made anew after the body. */
static bool emit_maybe(emitter *m, const expression_node *n, bool again) {
    const expression_node *body = &m->tree->nodes[n->a];
    bool lazy = n->b == LAZY;
    uint32_t split, jump;
    wf_instruction i = split_before(body);
    if (lazy) memset(i.first, 0xFF, sizeof i.first);
    if (lazy) i.least = 1;
    if (!append(m, i, &split) || !emit(m, n->a)) return false;
    if (again && !append(m, (wf_instruction){ .op = OP_JUMP, .a = split }, &jump)) return false;
    uint32_t end = (uint32_t)m->e->n;
    m->e->code[split].a = lazy ? end : split + 1;
    m->e->code[split].b = lazy ? split + 1 : end;
    return true;
}

static bool emit_copies(emitter *m, const expression_node *n) {
    for (uint32_t i = 0; i < n->least; i++)
        if (!emit(m, n->a)) return false;
    if (n->most == WF_ENDLESS) return emit_maybe(m, n, true);
    for (uint32_t i = n->least; i < n->most; i++)
        if (!emit_maybe(m, n, false)) return false;
    return true;
}

static bool emit_repeat(emitter *m, const expression_node *n) {
    const expression_node *body = &m->tree->nodes[n->a];
    uint32_t at, end;
    if (body->kind == NODE_SET)
        return append(
            m,
            (wf_instruction){
                .op = OP_REPEAT, .a = body->a, .b = n->b, .least = n->least, .most = n->most },
            &at);
    if (n->b != POSSESSIVE) return emit_copies(m, n);
    if (!append(m, (wf_instruction){ .op = OP_ATOMIC }, &at) || !emit_copies(m, n) ||
        !append(m, (wf_instruction){ .op = OP_END }, &end))
        return false;
    m->e->code[at].a = end + 1;
    return true;
}

static bool emit(emitter *m, uint32_t node) {
    const expression_node *n = &m->tree->nodes[node];
    uint32_t at;
    if (++m->work > MOST_WORK) return fail(m->message, "an expression has too many repeats");
    switch (n->kind) {
    case NODE_EMPTY:
        return true;
    case NODE_TEXT:
        return append(m, (wf_instruction){ .op = OP_TEXT, .a = n->a, .b = n->b }, &at);
    case NODE_SET:
        return append(m, (wf_instruction){ .op = OP_SET, .a = n->a }, &at);
    case NODE_LOOK:
        return append(m, (wf_instruction){ .op = (wf_op_kind)n->a, .a = n->c, .b = n->b }, &at);
    case NODE_THEN:
        return emit(m, n->a) && emit(m, n->b);
    case NODE_OR:
        return emit_or(m, n);
    case NODE_REPEAT:
        return emit_repeat(m, n);
    case NODE_AHEAD:
        return emit_group(m, OP_AHEAD, n->b, n->a);
    default:
        return emit_group(m, OP_ATOMIC, false, n->a);
    }
}

bool wf_expression_compile(wf_expression *e, wf_span pattern, char *message) {
    expression_tree t = { .e = e };
    emitter m = { &t, e, message, 0 };
    uint32_t root, at;
    *e = (wf_expression){ 0 };
    bool ok = wf_expression_parse(&t, pattern, &root, message);
    if (ok) {
        const expression_node *n = &t.nodes[root];
        for (int i = 0; i < 8; i++) e->first[i] = n->nullable ? UINT32_MAX : n->first[i];
        e->nullable = n->nullable;
        ok = emit(&m, root) && append(&m, (wf_instruction){ .op = OP_MATCH }, &at);
        e->plain = ok && e->n == 2 && e->code[0].op == OP_TEXT;
    }
    free(t.nodes);
    return ok;
}

bool wf_expression_literal(wf_expression *e, wf_span text, char *message) {
    emitter m = { NULL, e, message, 0 };
    uint32_t at;
    *e = (wf_expression){ .plain = text.bytes > 0, .nullable = !text.bytes };
    memset(e->first, 0xFF, sizeof e->first);
    if (!wf_grow(&e->literals, &e->literals_capacity, text.bytes + 1, 1))
        return fail(message, "out of memory");
    memcpy(e->literals, text.text, text.bytes);
    wf_instruction i = { .op = OP_TEXT, .b = (uint32_t)text.bytes };
    return append(&m, i, &at) && append(&m, (wf_instruction){ .op = OP_MATCH }, &at);
}

void wf_expression_free(wf_expression *e) {
    for (size_t i = 0; i < e->n_sets; i++) wf_set_free(&e->sets[i]);
    free(e->sets), free(e->code), free(e->literals), free(e->stack);
    *e = (wf_expression){ 0 };
}
