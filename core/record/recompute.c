/* core/record/recompute.c - regions of a graph whose values gradients compute again, instead of
 * keeping them from the forward pass: wf_recompute_begin in graph_internal.h.
 *
 * A backward pass meets the nodes of a region from the last to the first. At the first that it
 * meets, all nodes of the region are recorded once more, as copies whose operands are copies too,
 * or lie outside the region. Gradient rules are given the copies. So the copies of a layer come
 * directly before its gradients in the order of the graph, and a plan drops those that no gradient
 * reads. A random op draws the same numbers in its copy, because its attributes say which. */
#include "record.h"

#include <stdlib.h>
#include <string.h>

void wf_recompute_begin(wf_graph *g) {
    if (wf_ok(g) && !g->region_depth++) g->region_first = g->n_nodes;
}

void wf_recompute_end(wf_graph *g) {
    if (!wf_ok(g)) return;
    if (!g->region_depth) {
        wf_poison(g, "a region to compute again ends, and none has begun");
        return;
    }
    if (--g->region_depth || g->region_first == g->n_nodes) return;
    if (wf_grow(&g->regions, &g->cap_regions, (size_t)g->n_regions + 1, sizeof *g->regions))
        g->regions[g->n_regions++] = (region){ g->region_first, g->n_nodes };
    else
        wf_poison(g, "out of memory");
}

static bool inside(const region *r, int id) {
    return id >= r->first && id < r->end;
}

/* The region of a node; an empty one if it is in none. */
static region region_of(const wf_graph *g, int id) {
    int low = 0, high = g->n_regions;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (g->regions[middle].end <= id)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < g->n_regions && inside(&g->regions[low], id);
    return found ? g->regions[low] : (region){ 0, 0 };
}

/* Records a copy of a node, whose operands were copied before; returns a leaf or update itself. */
static wf_tensor *copy_of(const recomputed *r, wf_tensor *t) {
    wf_graph *g = t->graph;
    wf_tensor *in[WF_MAX_OPERANDS];
    if (t->kind != WF_COMPUTED || t->op->writes) return t;
    if (t->result) return r->copies[primary(t)->id - r->of.first] + t->result;
    for (int i = 0; i < t->n_in; i++) {
        bool copied = t->in[i] && inside(&r->of, t->in[i]->id);
        in[i] = copied ? r->copies[t->in[i]->id - r->of.first] : t->in[i];
    }
    const wf_tensor *outer = g->forward;
    const char *scope = wf_scope(g, t->name), *function = g->function;
    g->forward = outer ? outer : t;
    g->function = t->function;
    wf_tensor *copy = wf_record(t->op, t->n_in, in, t->attrs);
    for (int k = 0; !g->failed && k < result_count(t->op); k++) copy[k].recomputed = true;
    g->function = function;
    g->forward = outer;
    wf_scope(g, scope);
    return copy;
}

wf_tensor *wf_recomputed(recomputed *r, wf_tensor *t) {
    wf_graph *g = t->graph;
    region of = region_of(g, t->id);
    if (!of.end) return t;
    if (of.first != r->of.first || !r->copies) {
        size_t n = (size_t)(of.end - of.first);
        free(r->copies);
        *r = (recomputed){ of, malloc(n * sizeof *r->copies) };
        if (!r->copies) return wf_poison(g, "out of memory"), NULL;
        for (int id = of.first; id < of.end; id++) {
            r->copies[id - of.first] = copy_of(r, g->nodes[id]);
            if (g->failed) return NULL;
        }
    }
    return r->copies[t->id - of.first];
}
