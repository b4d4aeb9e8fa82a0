/* core/plan/plan.c - which nodes must be computed for one use of a graph, and in which order.
 *
 * First, mark the ancestors of the fetches: those whose data are needed, stopping at feeds, and
 * those of which only the shape is needed. Second, apply the rewrite rules (rewrite.c). Third, sort
 * the nodes: values in the order of recording, apart from the exceptions of order.c, and updates
 * after all readers of the leaves they write. Shapes and memory depend on the bound extents:
 * bind.c. */
#include "plan.h"

#include "core/graph_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---------------------------------------------------------------------------------- */

static wf_plan *failed_plan(void) {
    static wf_plan failed = { .error = "out of memory: no plan" };
    return &failed;
}

const char *wf_plan_error(const wf_plan *p) {
    return p ? p->error : failed_plan()->error;
}

/* ---- what is needed -------------------------------------------------------------------------- */

static bool take_feeds(wf_plan *p, const wf_plan_options *o) {
    p->feeds = calloc((size_t)o->n_feed + 1, sizeof *p->feeds);
    if (!p->feeds) return wf_plan_fail(p, "out of memory");
    for (int i = 0; i < o->n_feed; i++) {
        const wf_tensor *t = o->feed[i];
        if (!t) return wf_plan_fail(p, "feed %d is NULL", i);
        if (t->graph != p->graph) return wf_plan_fail(p, "feed %d is of another graph", i);
        if (is_stored(t))
            return wf_plan_fail(p, "'%s' has values of its own: use wf_write", t->name);
        if (wf_feed_of(p, t) >= 0) return wf_plan_fail(p, "'%s' is fed twice", called(t));
        p->fed[t->id] = p->n_feeds;
        p->feeds[p->n_feeds++].tensor = t;
    }
    return true;
}

static bool take_fetches(wf_plan *p, const wf_plan_options *o, unsigned char *need) {
    if (o->n_fetch < 1) return wf_plan_fail(p, "nothing is fetched");
    for (int i = 0; i < o->n_fetch; i++) {
        const wf_tensor *t = o->fetch[i];
        if (!t) return wf_plan_fail(p, "fetch %d is NULL", i);
        if (t->graph != p->graph) return wf_plan_fail(p, "fetch %d is of another graph", i);
        need[t->id] |= NEED_SHAPE | NEED_DATA | FETCHED;
    }
    return true;
}

/* True if one of the results of which t's node is a copy is fed: the copy would not follow it. */
static bool copies_fed(const wf_plan *p, const wf_tensor *t) {
    for (int k = 0; t->recomputed && k < result_count(t->op); k++)
        if (wf_feed_of(p, primary(t->forward) + k) >= 0) return true;
    return false;
}

static bool need_operands(wf_plan *p, const wf_tensor *t, unsigned char *need, bool data) {
    if (data && p->with_state && t->forward)
        return wf_plan_fail(p, "%s: a gradient cannot be computed with a state", called(t));
    if (data && copies_fed(p, t))
        return wf_plan_fail(p, "%s is fed, but a gradient computes it again (recompute)",
                            called(t->forward));
    for (int i = 0; i < t->n_in; i++) {
        if (!t->in[i]) continue;
        bool only_shape = !data || (t->op->shape_only >> i & 1);
        need[t->in[i]->id] |= only_shape ? NEED_SHAPE : NEED_SHAPE | NEED_DATA;
    }
    return true;
}

/* Mark what is needed of each node, from the last node to the first. An op with several results is
 * needed if one of them is. */
static bool mark(wf_plan *p, unsigned char *need) {
    for (int id = p->n_index - 1; id >= 0; id--) {
        const wf_tensor *t = wf_plan_node(p, id);
        if (!need[id]) continue;
        int f = wf_feed_of(p, t);
        bool data = need[id] & NEED_DATA;
        if (f >= 0) p->feeds[f].needed |= data;
        if (t->kind == WF_INPUT && data && f < 0)
            return wf_plan_fail(p, "input '%s' is needed but not among the feeds", t->name);
        if (t->kind == WF_CONSTANT && data && f < 0 && !wf_has_values(t))
            return wf_plan_fail(p, "the values of a shape (wf_shape) are needed: it has none");
        if (t->kind != WF_COMPUTED) continue;
        unsigned char *first = &need[primary(t)->id];
        if (t->result)
            *first |= f >= 0 ? NEED_SHAPE : need[id] & ~FETCHED;
        else if (!need_operands(p, t, need, data && f < 0))
            return false;
    }
    return true;
}

static bool find_needed(wf_plan *p, const wf_plan_options *o, unsigned char *need) {
    memset(need, 0, (size_t)p->n_index);
    for (int i = 0; i < p->n_feeds; i++) p->feeds[i].needed = false;
    return take_fetches(p, o, need) && mark(p, need);
}

/* ---- compiling ------------------------------------------------------------------------------- */

enum { LEAVES, VALUES, UPDATES };

static void list(wf_plan *p, const unsigned char *need, int what) {
    for (int id = 0; id < p->n_index; id++) {
        const wf_tensor *t = wf_plan_node(p, id);
        if (!need[id] || what != (t->op ? t->op->writes ? UPDATES : VALUES : LEAVES)) continue;
        p->index[id] = p->n_nodes;
        p->nodes[p->n_nodes++] = (planned){ .node = t,
                                            .data = need[id] & NEED_DATA,
                                            .fetched = need[id] & FETCHED,
                                            .feed = wf_feed_of(p, t),
                                            .counter = p->n_counters };
        p->n_counters += 1 + t->n_in;
    }
}

static bool compile(wf_plan *p, const wf_plan_options *o, unsigned char *need) {
    if (!take_feeds(p, o) || !find_needed(p, o, need)) return false;
    if (!o->as_recorded && (!wf_rewrite_nodes(p, need) || !find_needed(p, o, need))) return false;
    /* all results of a needed op have views, even unused ones */
    for (int id = 0; id < p->n_index; id++) {
        const wf_tensor *t = p->graph->nodes[id];
        if (t->result && need[primary(t)->id] && !need[id]) need[id] = NEED_SHAPE;
    }
    int n = 0;
    for (int id = 0; id < p->n_index; id++) {
        p->index[id] = -1;
        n += need[id] != 0;
    }
    p->nodes = calloc((size_t)n + 1, sizeof *p->nodes);
    if (!p->nodes) return wf_plan_fail(p, "out of memory");
    list(p, need, LEAVES);
    int leaves = p->n_nodes;
    list(p, need, VALUES);
    int values = p->n_nodes;
    list(p, need, UPDATES);
    p->counters = calloc((size_t)p->n_counters + 1, sizeof *p->counters);
    if (!p->counters) return wf_plan_fail(p, "out of memory");
    if (!wf_order_nodes(p, leaves, values)) return false;
    for (int i = 0; i < p->n_nodes; i++) {
        const wf_tensor *t = p->nodes[i].node;
        p->index[t->id] = i;
        bool holds = wf_has_values(t);
        if (holds && p->nodes[i].data && !wf_leaf_data((wf_tensor *)(uintptr_t)t))
            return wf_plan_fail(p, "out of memory for '%s'", called(t));
    }
    return true;
}

wf_plan *wf_plan_new(wf_graph *g, const wf_plan_options *o) {
    wf_plan *p = calloc(1, sizeof *p);
    if (!p) return failed_plan();
    p->graph = g;
    if (!wf_ok(g)) return wf_plan_fail(p, "the graph has failed: %s", wf_error(g)), p;
    if (!o) return wf_plan_fail(p, "a plan needs options"), p;
    if ((o->n_fetch > 0 && !o->fetch) || (o->n_feed > 0 && !o->feed) || o->n_feed < 0)
        return wf_plan_fail(p, "a list of fetches or feeds is NULL"), p;
    p->pool = o->pool;
    p->training = o->training;
    p->with_state = o->with_state;
    p->n_index = g->n_nodes;
    p->feeds_generation = 1;
    p->index = calloc((size_t)g->n_nodes + 1, sizeof *p->index);
    p->fed = malloc(((size_t)g->n_nodes + 1) * sizeof *p->fed);
    unsigned char *need = calloc((size_t)g->n_nodes + 1, 1);
    for (int id = 0; p->fed && id < p->n_index; id++) p->fed[id] = -1;
    p->ok = p->index && p->fed && need ? compile(p, o, need) : wf_plan_fail(p, "out of memory");
    if (p->ok) atomic_fetch_add(&g->plans, 1);
    free(need);
    return p;
}

void wf_plan_free(wf_plan *p) {
    if (!p || p == failed_plan()) return;
    if (p->ok) atomic_fetch_sub(&p->graph->plans, 1);
    for (int i = 0; i < MAX_BINDINGS; i++) wf_binding_free(p->bindings[i]);
    for (int i = 0; i < p->n_feeds; i++)
        if (p->feeds[i].capacity) free(p->feeds[i].data);
    wf_memory_free(p->arena, p->arena_bytes), wf_memory_free(p->scratch, p->scratch_bytes);
    free(p->feeds);
    wf_arenas_free(p->own), free(p->rewritten), free(p->fused_into);
    free(p->counters), free(p->nodes), free(p->index), free(p->fed), free(p);
}

/* ---- messages of failures -------------------------------------------------------------------- */

bool wf_plan_fail(wf_plan *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(p->error, sizeof p->error, format, args);
    va_end(args);
    if (p->graph) wf_name_tags(p->graph, p->error, sizeof p->error);
    return false;
}

bool wf_plan_lacks(wf_plan *p) {
    p->lacks = true;
    return wf_plan_fail(p, "out of memory");
}

bool wf_plan_fail_at(wf_plan *p, const wf_tensor *node, const wf_op *op) {
    const char *path = node && node->name ? node->name : "";
    const char *function = node && node->function ? node->function : op->name;
    bool same = strcmp(function, op->name) == 0;
    return wf_plan_fail(p, "%s%s%s%s%s: %s", path, path[0] ? ": " : "", same ? "" : function,
                        same ? "" : ": ", op->name,
                        p->report.message[0] ? p->report.message : "failed");
}

bool wf_plan_ok(const wf_plan *p) {
    return p && p->ok;
}
