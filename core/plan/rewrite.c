/* core/plan/rewrite.c - applies rewrite rules to the nodes of a plan. All fusion of ops happens
 * here.
 *
 * A plan knows which nodes are needed, which nodes read them, and which are fetched. The rules are
 * tried on every node that is computed, from the first to the last. A replacement has the id of the
 * node it replaces, so that its readers and fetches find it. Nodes that are no longer needed are
 * dropped afterwards, when the plan marks the needed nodes again; until then they count as
 * readers. */
#include "rewrite.h"
#include "core/run_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/basis.h"
#include "plan.h"

struct wf_rewrite {
    wf_plan *p;
    const unsigned char *need;
    int32_t *readers; /* by node id: the number of operands that read the node's data */
    const wf_tensor *outer;
    bool no_memory;
};

static bool runs(const wf_rewrite *r, const wf_tensor *t) {
    return t->kind == WF_COMPUTED && !t->result && (r->need[t->id] & NEED_DATA) &&
           wf_feed_of(r->p, t) < 0;
}

/* The inner node of a match of the rule with outer node t, or NULL. */
static const wf_tensor *inner_of(const wf_rewrite *r, const wf_rule *rule, const wf_tensor *t) {
    if (rule->op != t->op || rule->operand >= t->n_in || !t->in[rule->operand]) return NULL;
    const wf_tensor *inner = wf_rewritten(r, t->in[rule->operand]);
    bool fits = inner->op == rule->inner && !inner->result && wf_feed_of(r->p, inner) < 0 &&
                !(r->need[inner->id] & FETCHED);
    return fits ? inner : NULL;
}

static void count_readers(wf_rewrite *r) {
    for (int id = 0; id < r->p->n_index; id++) {
        const wf_tensor *t = r->p->graph->nodes[id];
        if (!runs(r, t)) continue;
        for (int i = 0; i < t->n_in; i++)
            if (t->in[i] && !(t->op->shape_only >> i & 1)) r->readers[t->in[i]->id]++;
    }
}

static bool applies(wf_rewrite *r, const wf_rule *rule, const wf_tensor *t) {
    const wf_tensor *inner = inner_of(r, rule, t);
    if (!inner || r->readers[inner->id] != 1) return false;
    r->outer = t;
    bool applied = rule->apply(r, t, inner);
    assert(!applied || r->p->rewritten[t->id]);
    return applied;
}

bool wf_rewrite_nodes(wf_plan *p, const unsigned char *need) {
    size_t n = (size_t)p->n_index + 1;
    wf_rewrite r = { .p = p, .need = need };
    r.readers = calloc(n, sizeof *r.readers);
    p->rewritten = calloc(n, sizeof *p->rewritten);
    p->fused_into = calloc(n, sizeof *p->fused_into);
    bool ok = r.readers && p->rewritten && p->fused_into;
    if (ok) count_readers(&r);
    for (int id = 0; ok && id < p->n_index; id++) {
        const wf_rule *rule = wf_basis.rules;
        if (!runs(&r, p->graph->nodes[id])) continue;
        while (rule->op && !applies(&r, rule, p->graph->nodes[id])) rule++;
    }
    free(r.readers);
    return (ok && !r.no_memory) || wf_plan_fail(p, "out of memory");
}

const wf_tensor *wf_computed_in(const wf_plan *p, const wf_tensor *t) {
    if (!wf_plan_ok(p) || !t || t->graph != p->graph) return NULL;
    if (wf_is_poison(t) || t->id >= p->n_index) return NULL;
    int id = primary(t)->id;
    while (p->index[id] < 0 && p->fused_into && p->fused_into[id]) id = p->fused_into[id] - 1;
    return p->index[id] < 0 ? NULL : p->graph->nodes[id];
}

/* ---- for the rules --------------------------------------------------------------------------- */

const wf_tensor *wf_rewritten(const wf_rewrite *r, const wf_tensor *t) {
    return wf_plan_node(r->p, t->id);
}

bool wf_read_once(const wf_rewrite *r, const wf_tensor *t) {
    return r->readers[t->id] == 1 && !(r->need[t->id] & FETCHED) && wf_feed_of(r->p, t) < 0;
}

/* Mark those computed operands of the replaced node that its replacement does not read: they are
 * fused into the replacement. The mark of a node that is computed all the same is ignored. */
static void mark_fused(wf_rewrite *r, const wf_tensor *before, int n_in, wf_tensor *const *in) {
    for (int i = 0; i < before->n_in; i++) {
        const wf_tensor *x = before->in[i];
        bool read = !x || x->kind != WF_COMPUTED;
        for (int k = 0; k < n_in && !read; k++) read = in[k] && in[k]->id == x->id;
        if (!read) r->p->fused_into[primary(x)->id] = before->id + 1;
    }
}

bool wf_replace(wf_rewrite *r, const wf_op *op, int n_in, wf_tensor *const *in, const void *attrs) {
    wf_report report;
    recorded_call c;
    wf_report_reset(&report, false);
    wf_fill_call(&c, r->p->graph, op, n_in, in, attrs, &report);
    if (!op->shape(&c.call)) return false;
    assert(result_count(op) == 1 && result_count(r->outer->op) == 1);
    assert(op->writes == r->outer->op->writes && c.out[0].dtype == r->outer->dtype);
    assert(c.out[0].ndim == r->outer->ndim &&
           memcmp(c.out[0].shape, r->outer->shape, (size_t)c.out[0].ndim * sizeof(int64_t)) == 0);
    size_t operands = (size_t)n_in * sizeof *in;
    wf_tensor *t = wf_arena_alloc(&r->p->own, sizeof *t + operands + op->attr_bytes, OWN_ARENA);
    if (!t) {
        r->no_memory = true;
        return false;
    }
    mark_fused(r, wf_rewritten(r, r->outer), n_in, in);
    *t = *r->outer;
    t->op = op;
    t->n_in = n_in;
    t->in = memcpy(t + 1, in, operands);
    t->attrs = op->attr_bytes ? memcpy((char *)(t + 1) + operands, attrs, op->attr_bytes) : NULL;
    r->p->rewritten[t->id] = t;
    for (int i = 0; i < n_in; i++)
        if (in[i] && !(op->shape_only >> i & 1)) r->readers[in[i]->id]++;
    return true;
}
