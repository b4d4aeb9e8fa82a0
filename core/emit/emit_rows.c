/* core/emit/emit_rows.c - tables of which a file needs only the first rows, such as a table of
 * positions with more rows than a run has tokens. The ids that pick rows are known if they do not
 * depend on data. Ids of ops such as arange and position_ids are computed here, for the size or the
 * position of a pass (emit.c). */
#include <stdlib.h>

#include "core/graph_internal.h"
#include "emit_sections.h"

/* The last step before step n that writes the storage; NULL: none does. */
static const exec *writer_of(const binding *b, int n, int at) {
    while (--n >= 0)
        for (int k = 0; k < b->execs[n].call.n_out; k++)
            if (b->execs[n].out[k].storage == at) return &b->execs[n];
    return NULL;
}

/* Does the step write ids in one task, from the shapes of its operands alone? Ops that draw random
 * bits write reals. */
static bool is_known(const exec *x) {
    const wf_call *c = &x->call;
    const wf_kernel *run = kernel_of(c->op);
    if (!run->eval || run->tasks || run->plan || run->cached || c->n_out != 1) return false;
    if (c->out[0].dtype != WF_I32) return false;
    for (int i = 0; i < c->n_in; i++)
        if (!(c->op->shape_only >> i & 1)) return false;
    return wf_view_dense(&c->out[0]);
}

/* 1 + the largest id that the step writes; 0: the step fails, or an id is negative; -1: out of
 * memory. */
static int64_t ids_below(const exec *x) {
    int64_t n = wf_view_count(&x->call.out[0]), below = 0;
    wf_call c = x->call;
    wf_view out = x->call.out[0];
    int32_t *ids = malloc(((size_t)n + 1) * sizeof *ids);
    if (!ids) return -1;
    out.data = ids;
    c.out = &out;
    bool ok = kernel_of(c.op)->eval(&c, 0, 0, NULL);
    for (int64_t i = 0; ok && i < n; i++) {
        ok = ids[i] >= 0;
        if (ids[i] >= below) below = (int64_t)ids[i] + 1;
    }
    free(ids);
    return ok ? below : 0;
}

int64_t wf_floats_picked(const wf_emitter *e, const exec *x, int table, int ids) {
    const binding *b = e->now->plan->now;
    const wf_view *v = &x->call.in[table];
    const exec *w = x->in[ids].storage < 0 ? NULL : writer_of(b, e->step, x->in[ids].storage);
    if (!w || w->out[0].offset != x->in[ids].offset || !is_known(w)) return 0;
    if (wf_view_count(&w->call.out[0]) != wf_view_count(&x->call.in[ids])) return 0;
    int64_t rows = ids_below(w);
    if (rows <= 0 || v->shape[0] < 1) return rows;
    return (rows < v->shape[0] ? rows : v->shape[0]) * (wf_view_count(v) / v->shape[0]);
}

void wf_note_floats(wf_emitter *e, const wf_tensor *t, int64_t n) {
    int64_t all = t->ndim ? t->shape[0] : 1, row = all ? wf_count(t) / all : 0, rows = all;
    if (n > 0 && row && !e->alone) rows = (n + row - 1) / row;
    if (rows > e->rows[t->id]) e->rows[t->id] = rows;
}

int64_t wf_rows_of(const wf_emitter *e, const wf_tensor *t) {
    return e->rows[t->id];
}
