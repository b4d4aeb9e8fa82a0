/* core/emit/emit_results.c - the struct members that the program sets, and the functions that copy
 * the values it fetches. */
#include <stdio.h>
#include <string.h>

#include "core/graph_internal.h"
#include "emit_places.h"
#include "emit_sections.h"
#include "emit_steps.h"

/* ---- fetches --------------------------------------------------------------------------------- */

/* The value of a node with which a later plan is fed stays in memory for that plan, so the program
 * needs no function for it. */
bool wf_has_getter(const wf_emitter *e, const part *of, int i) {
    const planned *n = &of->plan->nodes[i];
    if (!n->fetched || (n->node->op && n->node->op->writes)) return false;
    if (n->feed >= 0 || e->alone) return true;
    for (const part *q = of + 1; q < e->parts + e->n_parts; q++)
        if (wf_feed_of(q->plan, n->node) >= 0) return false;
    return true;
}

static void add_shape(wf_text *t, const wf_view *v) {
    wf_text_puts(t, "[");
    for (int i = 0; i < v->ndim; i++) wf_text_marked(t, i ? ", %n" : "%n", v->shape[i]);
    wf_text_puts(t, "]");
}

/* Set *v to the view of node i's value in memory. If an earlier plan of the file computes the
 * value, the view is one of that plan's memory. */
static bool view_of(wf_emitter *e, int i, bound_view *v) {
    wf_plan *p = e->now->plan;
    *v = p->now->values[i];
    if (p->nodes[i].feed < 0) return true;
    return wf_link_view(e, p->nodes[i].node, v->at.offset, true, false, &v->view);
}

/* Describe the function that copies fetch `index`: the shape of the value, and then the body. */
bool wf_describe_getter(wf_emitter *e, int index, wf_text *t) {
    bound_view at;
    if (!view_of(e, index, &at)) return false;
    const wf_view *v = &at.view;
    add_shape(t, v);
    wf_text_print(t, "{\nconst %s *from = ", wf_c_type(v->dtype));
    if (!wf_add_place(e, at.at, v->dtype, false, 0, t)) return false;
    wf_text_puts(t, ";\nint n = 0;\n");
    for (int i = 0; i < v->ndim; i++)
        wf_text_marked(t, "for (int i%d = 0; i%d < %n; i%d++)\n", i, i, v->shape[i], i);
    wf_text_puts(t, "to[n++] = from[0");
    for (int i = 0; i < v->ndim; i++) wf_text_marked(t, " + i%d * %n", i, v->stride[i]);
    wf_text_puts(t, "];\n}\n");
    return !t->lacks || wf_emitter_lacks(e);
}

/* Write the function that copies a fetched value, row-major, to its parameter `to`. */
static bool add_getter(wf_emitter *e, const wf_tensor *t, bool moves, const wf_text *described) {
    wf_text body = { 0 };
    char name[2 * MOST_PREFIX + MOST_NAME + 8];
    const char *begin = strchr(wf_text_of(described), '{'), *type = wf_c_type(t->dtype);
    wf_getter_name(e, e->now, "get", t, name, sizeof name);
    wf_text_puts(&e->getters, "\n/* ");
    wf_text_comment(&e->getters, called(t));
    wf_text_puts(&e->getters, ", ");
    wf_text_add(&e->getters, described->at, (size_t)(begin - described->at));
    wf_text_print(&e->getters, " */\nvoid %s(const %s *m, ", name, e->prefix);
    if (moves) wf_text_print(&e->getters, "int %s, ", wf_variable(e->now));
    wf_text_print(&e->getters, "%s *to) ", type);
    wf_text_puts(&body, begin);
    if (moves) {
        body.length = 0;
        wf_text_puts(&body, "{\n");
        wf_add_limits(e, e->now, "return;", &body);
        wf_text_puts(&body, begin + 2);
    }
    if (!wf_find_word(begin, "m")) {
        wf_text rest = body;
        body = (wf_text){ 0 };
        wf_text_puts(&body, "{\n(void)m;\n");
        wf_text_puts(&body, wf_text_of(&rest) + (rest.length > 2 ? 2 : 0));
        wf_text_free(&rest);
    }
    bool ok = !body.lacks;
    wf_text_indent(&e->getters, wf_text_of(&body));
    wf_text_free(&body);
    return (ok && !e->getters.lacks) || wf_emitter_lacks(e);
}

/* Write the function model_see_NAME, which returns the address of a row-major value whose place is
 * the same at every position. */
static bool add_seer(wf_emitter *e, int index, const wf_text *described) {
    const wf_tensor *t = e->now->plan->nodes[index].node;
    const char *place = strstr(wf_text_of(described), "from = ") + strlen("from = ");
    char name[2 * MOST_PREFIX + MOST_NAME + 8];
    if (!wf_view_dense(&e->now->plan->now->values[index].view)) return true;
    wf_getter_name(e, e->now, "see", t, name, sizeof name);
    wf_text_print(&e->getters,
                  "\n/* where it lies until the next run */\n"
                  "const %s *%s(const %s *m) {\n    return ",
                  wf_c_type(t->dtype), name, e->prefix);
    wf_text_add(&e->getters, place, strcspn(place, ";"));
    wf_text_puts(&e->getters, ";\n}\n");
    return !e->getters.lacks || wf_emitter_lacks(e);
}

bool wf_write_getter(wf_emitter *e, int index, int n, const wf_text *const *texts,
                     const int64_t *positions) {
    const wf_tensor *t = e->now->plan->nodes[index].node;
    wf_text merged = { 0 };
    bool moves = false, ok = wf_merge_numbers(e->now, n, texts, positions, NULL, &merged, &moves);
    if (!ok)
        wf_emitter_fail(e, "'%s': at another position it lies otherwise", called(t));
    else
        ok = merged.lacks ? wf_emitter_lacks(e) : add_getter(e, t, moves, &merged);
    if (ok && e->in_order && !moves) ok = add_seer(e, index, &merged);
    wf_text_free(&merged);
    return ok;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

bool wf_describe_member(wf_emitter *e, int index, wf_text *t) {
    add_shape(t, &wf_plan_value(e->now->plan, e->now->plan->feeds[index].tensor)->view);
    return !t->lacks || wf_emitter_lacks(e);
}

/* Write the struct member for an input. If several plans read the input, it is one member, and each
 * plan adds a comment with its shape. */
bool wf_write_member(wf_emitter *e, int index, int n, const wf_text *const *texts,
                     const int64_t *positions) {
    const wf_plan *p = e->now->plan;
    const wf_tensor *t = p->feeds[index].tensor;
    const char *name = p->feeds[index].needed ? wf_member_of(e, t) : NULL;
    const part *of, *first = e->parts;
    bool moves = false;
    if (!name || wf_linked(e, t, &of)) return true;
    while (first < e->now) {
        int at = wf_feed_of(first->plan, t);
        if (at >= 0 && first->plan->feeds[at].needed) break;
        first++;
    }
    if (first == e->now)
        wf_text_print(&e->members, "    const %s *%s; ", wf_c_type(t->dtype), name);
    wf_text_puts(&e->members, first == e->now ? "/* " : "    /* ");
    if (e->n_parts > 1) wf_text_print(&e->members, "%s: ", e->now->name);
    if (first != e->now) wf_text_print(&e->members, "%s ", name);
    wf_merge_numbers(e->now, n, texts, positions, NULL, &e->members, &moves);
    wf_text_puts(&e->members, " */\n");
    return !e->members.lacks || wf_emitter_lacks(e);
}
