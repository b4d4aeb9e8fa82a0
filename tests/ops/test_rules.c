/* tests/ops/test_rules.c - every op on wrong operands: also ops without a public constructor, which
 * only gradients and optimizers record.
 *
 * Each node of each row of the table, of its gradients and of their gradients, is recorded again in
 * a graph of its own with one operand exchanged: another type, more or fewer axes, other sizes, no
 * elements, no operand, or so many elements that their bytes hardly fit a size_t. Either the op
 * accepts the operand, and can be planned and run, or it fails with a message that names the op. It
 * may not read an operand's memory outside of its elements. */
#include <stdio.h>
#include <string.h>

#include "op_cases.h"
#include "tests/suites.h"

TESTS(rules)

/* Like ck_assert_msg, but Check is not called for each assertion that holds, of which there are
 * many. */
#define MUST(holds, ...)                                                                           \
    do {                                                                                           \
        if (!(holds)) ck_abort_msg(__VA_ARGS__);                                                   \
    } while (0)

enum { MOST_OF_AN_OP = 16, SMALL = 3000 };

typedef enum exchange {
    AS_IT_IS,
    NONE,
    OTHER_TYPE,
    NO_AXES,
    ONE_MORE_AXIS,
    ONE_AXIS_LESS,
    MOST_AXES,
    FIRST_LONGER,
    LAST_LONGER,
    LAST_TWO_SWAPPED,
    EMPTY,
    HUGE_MATRIX,
    HUGE_AXIS,
    EXCHANGES
} exchange;

typedef struct shape {
    wf_dtype dtype;
    int ndim;
    int64_t size[WF_MAX_DIMS];
} shape;

/* Changes the shape or type of an operand. Returns false if this change is not possible for it. */
static bool exchanged(shape *s, exchange how, wf_dtype real) {
    int64_t last = s->ndim ? s->size[s->ndim - 1] : 0;
    switch (how) {
    case OTHER_TYPE:
        return s->dtype = s->dtype == WF_I32 ? real : WF_I32, true;
    case NO_AXES:
        return s->ndim > 0 && (s->ndim = 0, true);
    case ONE_MORE_AXIS:
        if (s->ndim == WF_MAX_DIMS) return false;
        memmove(s->size + 1, s->size, (size_t)s->ndim * sizeof *s->size);
        return s->size[0] = 2, s->ndim++, true;
    case ONE_AXIS_LESS:
        return s->ndim > 0 && (s->ndim--, true);
    case MOST_AXES:
        for (; s->ndim < WF_MAX_DIMS; s->ndim++) s->size[s->ndim] = 1;
        return true;
    case FIRST_LONGER:
        return s->ndim > 0 && (s->size[0]++, true);
    case LAST_LONGER:
        return s->ndim > 1 && (s->size[s->ndim - 1]++, true);
    case LAST_TWO_SWAPPED:
        if (s->ndim < 2 || last == s->size[s->ndim - 2]) return false;
        s->size[s->ndim - 1] = s->size[s->ndim - 2], s->size[s->ndim - 2] = last;
        return true;
    case EMPTY:
        return s->ndim > 0 && (s->size[0] = 0, true);
    case HUGE_MATRIX: /* 2^62 bytes */
        return s->ndim = 2, s->size[0] = INT64_C(1) << 40, s->size[1] = 1 << 20, true;
    case HUGE_AXIS:
        return s->ndim > 0 && (s->size[s->ndim - 1] = INT64_C(1) << 60, true);
    default:
        return true;
    }
}

/* A buffer of g with the exchanged shape and type of operand t: a leaf, because updates need
 * one. */
static wf_tensor *operand_like(wf_graph *g, const wf_tensor *t, int i, exchange how) {
    shape s = { .dtype = t->dtype, .ndim = t->ndim };
    char name[24];
    memcpy(s.size, t->shape, sizeof s.size);
    if (how == NONE || !exchanged(&s, how, wf_real(g))) return NULL;
    snprintf(name, sizeof name, "operand%d", i);
    return wf_buffer(g, name, s.dtype, s.ndim, s.size, wf_init_zeros());
}

static void try_to_run(wf_graph *g, wf_tensor *y, wf_tensor *altered, bool huge) {
    wf_tensor *fetch[2] = { y, NULL };
    bool differentiates = !y->op->writes && y->dtype == wf_real(g) && altered &&
                          altered->dtype == y->dtype && (y->op->grad || y->op->decompose);
    if (differentiates) {
        wf_tensor *loss = wf_sum(y, WF_ALL_AXES, false);
        if (!wf_grad(loss, &altered, 1, &fetch[1])) fetch[1] = NULL;
    }
    if (!wf_ok(g)) return; /* a size may overflow in the gradient alone */
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = fetch, .n_fetch = 1 + !!fetch[1] });
    MUST(wf_plan_ok(p) || *wf_plan_error(p), "%s: no plan, and no reason", y->op->name);
    if (!huge && wf_plan_ok(p) && !wf_run(p))
        MUST(*wf_plan_error(p), "%s: fails without a reason", y->op->name);
    if (huge && wf_count(y) > 0 && wf_plan_ok(p) && wf_plan_memory(p) == 0)
        MUST(*wf_plan_error(p), "%s: no memory, and no reason", y->op->name);
    wf_plan_free(p);
}

static void record_again(const wf_tensor *node, int which, exchange how) {
    wf_tensor *in[WF_MAX_OPERANDS] = { NULL };
    wf_graph *g = wf_graph_new(&(wf_graph_options){ .real = wf_real(node->graph) });
    bool same = true;
    for (int i = 0; i < node->n_in; i++) {
        if (!node->in[i]) continue;
        in[i] = operand_like(g, node->in[i], i, i == which ? how : AS_IT_IS);
        same = same && (i != which || in[i] || how == NONE);
    }
    if (same && wf_ok(g)) {
        wf_tensor *y = wf_record(node->op, node->n_in, in, node->attrs);
        if (!y->op && wf_ok(g)) /* without operands, the op does not know the graph */
            MUST(how == NONE, "%s: poison in a good graph", node->op->name);
        else if (wf_ok(g))
            try_to_run(g, y, in[which], how >= HUGE_MATRIX);
        else
            MUST(strstr(wf_error(g), node->op->name), "%s: %s", node->op->name, wf_error(g));
    }
    wf_graph_free(g);
}

static bool is_large(const wf_tensor *node) {
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] && wf_count(node->in[i]) > SMALL) return true;
    return wf_count(node) > SMALL;
}

/* Counts a trial of the op in this type. Returns false if MOST_OF_AN_OP trials were counted
 * before. */
static bool take(const wf_op *op, wf_dtype real) {
    static struct {
        const wf_op *op;
        int n;
    } taken[2 * 256];
    int i = real == WF_F64 ? COUNT_OF(taken) / 2 : 0, end = i + COUNT_OF(taken) / 2;
    while (taken[i].op && taken[i].op != op) i++;
    MUST(i < end - 1, "more ops than there is room for");
    taken[i].op = op;
    return taken[i].n++ < MOST_OF_AN_OP;
}

static void record_all_again(const wf_graph *g) {
    for (int id = 0; id < wf_node_count(g); id++) {
        const wf_tensor *t = wf_node(g, id);
        if (!t->op || t->result > 0 || is_large(t) || !take(t->op, wf_real(g))) continue;
        for (int i = 0; i < t->n_in; i++)
            for (exchange how = NONE; t->in[i] && how < EXCHANGES; how++) record_again(t, i, how);
    }
}

/* Records the gradients of the gradients, if there are any. */
static void differentiate_twice(fixture *f) {
    wf_tensor *sum = NULL, *grad[MAX_CASE_OPERANDS];
    if (!fixture_differentiate(f)) return;
    for (int i = 0; i < f->n_wrt; i++) {
        wf_tensor *part = wf_sum(wf_square(f->grad[i]), WF_ALL_AXES, false);
        sum = sum ? wf_add(sum, part) : part;
    }
    wf_grad(sum, f->wrt, f->n_wrt, grad);
    ck_assert_msg(wf_ok(f->g), "%s: %s", f->row->name, wf_error(f->g));
}

TEST_ROWS(ops_refuse_what_they_cannot_take, 2) {
    for (int i = 0; i < op_case_count; i++) {
        fixture f;
        fixture_open(&f, &op_cases[i], _i ? WF_F64 : WF_F32, PLAIN);
        differentiate_twice(&f);
        record_all_again(f.g);
        fixture_close(&f);
    }
}
