/* core/record/extents.c - named extents (symbolic dimensions): the numbers that stand for them, and
 * their names in messages.
 *
 * wf_extent returns a tag, a negative number that is no size. A recorded shape has the extent's
 * nominal size instead, a prime. Messages show neither: a tag is written as the expression that the
 * program computed (B, 2*B, B+4), and so is a size that was computed from a nominal size. To find
 * such sizes, the shape rule that failed is run a second time, with other nominal sizes: a number
 * that differs between the two messages depends on an extent, and the two values tell how. This
 * happens only when a graph fails. */
#include "core/op_internal.h"
#include "record.h"

#include <stdlib.h>
#include <string.h>

int64_t wf_extent(wf_graph *g, const char *name, int64_t max) {
    if (!wf_ok(g)) return 1;
    if (!name || !name[0]) return wf_poison(g, "an extent needs a name"), 1;
    bool position = strcmp(name, "P") == 0;
    if (max < (position ? 0 : 1) || max > INT32_MAX)
        return wf_poison(g, "extent '%s': a maximum of %lld is out of range", name, (long long)max),
               1;
    for (int i = 0; i < g->n_extents; i++) {
        if (strcmp(g->extents[i].name, name) != 0 || !g->extents[i].declared) continue;
        if (g->extents[i].max == max) return i ? wf_extent_tag(i) : 0;
        return wf_poison(g, "extent '%s' was declared with maximum %lld, now %lld", name,
                         (long long)g->extents[i].max, (long long)max),
               1;
    }
    if (position) {
        g->extents[0].max = max;
        g->extents[0].declared = true;
        return 0;
    }
    if (g->n_extents == MAX_EXTENTS)
        return wf_poison(g, "extent '%s': at most %d extents", name, MAX_EXTENTS - 1), 1;
    extent *e = &g->extents[g->n_extents];
    *e = (extent){ wf_graph_intern(g, name), max, wf_nominal_sizes[g->n_extents], true };
    return e->name ? wf_extent_tag(g->n_extents++) : 1;
}

/* ---- the second run -------------------------------------------------------------------------- */

static void set_leaf(wf_view *v, const wf_tensor *t) {
    wf_set_shape(v, t->dtype, t->ndim, t->shape);
    for (int a = 0; a < t->ndim; a++)
        if (leaf_of(t)->extent[a] > 0) v->shape[a] = wf_other_sizes[leaf_of(t)->extent[a]];
}

static bool other_call(recorded_call *c, wf_graph *g, const wf_op *op, int n, wf_tensor *const *in,
                       const void *attrs, const wf_view *views, wf_report *report) {
    wf_fill_call(c, g, op, n, in, attrs, report);
    for (int i = 0; i < n; i++) {
        if (!in[i]) continue;
        c->in[i] = views[in[i]->id];
        wf_dense_strides(c->in[i].ndim, c->in[i].shape, c->in[i].stride);
    }
    wf_report_reset(report, true);
    return op->shape(&c->call);
}

/* The shapes of all nodes, by id, that result from wf_other_sizes as nominal sizes. NULL: out of
 * memory, or a shape rule fails. */
static wf_view *other_shapes(wf_graph *g, wf_report *report) {
    wf_view *views = calloc((size_t)g->n_nodes + 1, sizeof *views);
    bool ok = views != NULL;
    recorded_call c;
    for (int id = 0; ok && id < g->n_nodes; id++) {
        const wf_tensor *t = g->nodes[id];
        if (t->kind != WF_COMPUTED) set_leaf(&views[id], t);
        if (t->kind != WF_COMPUTED || t->result) continue;
        ok = other_call(&c, g, t->op, t->n_in, t->in, t->attrs, views, report);
        for (int k = 0; ok && k < c.call.n_out; k++) views[id + k] = c.out[k];
    }
    if (ok) return views;
    free(views);
    return NULL;
}

void wf_name_sizes(wf_graph *g, const wf_op *op, int n, wf_tensor *const *in, const void *attrs,
                   char message[WF_MESSAGE]) {
    wf_report first, second;
    recorded_call c;
    wf_report_reset(&second, true);
    wf_view *views = g->n_extents > 1 ? other_shapes(g, &second) : NULL;
    if (!views) return;
    wf_fill_call(&c, g, op, n, in, attrs, &first);
    wf_report_reset(&first, true);
    bool failed = !op->shape(&c.call) && !other_call(&c, g, op, n, in, attrs, views, &second);
    if (failed) wf_name_numbers(g, first.message, second.message, message);
    free(views);
}
