/* core/emit/emit_places.c - where an operand or a result lies: in the memory of a run, among the
 * weights, in an input that the program sets, or in a result of an earlier plan. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_internal.h"
#include "emit_places.h"
#include "emit_sections.h"

/* ---- leaves ---------------------------------------------------------------------------------- */

/* Add a leaf to the list of weights, if it is not in the list yet, and write its name in C to
 * `name`. */
static void place_leaf(wf_emitter *e, const wf_tensor *t, char name[MOST_NAME]) {
    wf_leaf_name(t, name);
    if (e->is_placed[t->id]) return;
    e->is_placed[t->id] = true;
    e->leaves[e->n_leaves++] = t->id;
}

/* Write an i32 leaf as a constant table of its own, which no update may change, and its name in C
 * to `name`. */
static bool place_table(wf_emitter *e, wf_tensor *t, char name[MOST_NAME]) {
    int64_t n = wf_count(t);
    wf_leaf_name(t, name);
    if (e->is_placed[t->id]) return true;
    e->is_placed[t->id] = true;
    int32_t *values = malloc(((size_t)n + 1) * sizeof *values);
    bool ok = values && wf_read(t, values, (size_t)n * sizeof *values);
    wf_text_print(&e->tables, "static const int32_t ids_%s_%d[%n] = {", name, t->id, n ? n : 1);
    for (int64_t i = 0; ok && i < n; i++)
        wf_text_print(&e->tables, i % 16 ? " %n," : "\n    %n,", (int64_t)values[i]);
    wf_text_puts(&e->tables, n ? "\n};\n\n" : " 0 };\n\n");
    free(values);
    return ok || wf_emitter_fail(e, "'%s' cannot be read", called(t));
}

static void add_memory(wf_text *t, wf_dtype dtype, int64_t at) {
    wf_text_print(t, dtype == WF_I32 ? "ints(m, " : "floats(m, ");
    wf_text_number(t, at);
    wf_text_puts(t, ")");
}

static void add_offset(wf_text *t, int64_t offset) {
    if (offset) wf_text_marked(t, " + %n", offset);
}

/* Write the address of element `offset` of a leaf as C. */
static bool add_leaf(wf_emitter *e, wf_tensor *of, int64_t offset, bool written, int64_t read,
                     wf_text *t) {
    char name[MOST_NAME];
    if (of->dtype == WF_F32) {
        place_leaf(e, of, name);
        wf_note_floats(e, of, offset ? 0 : read);
        wf_text_print(t, "m->weights + at_%s_%d", name, of->id);
        add_offset(t, offset);
        return true;
    }
    if (written)
        return wf_emitter_fail(e, "'%s' is an i32 leaf that is updated: this has no form in C",
                               called(of));
    if (!place_table(e, of, name)) return false;
    wf_text_print(t, "ids_%s_%d", name, of->id);
    wf_text_marked(t, " + %n", offset);
    return true;
}

/* ---- between two parts ----------------------------------------------------------------------- */

const bound_view *wf_linked(const wf_emitter *e, const wf_tensor *t, const part **of) {
    if (e->alone) return NULL;
    for (const part *q = e->now - 1; q >= e->parts; q--) {
        const wf_plan *p = q->plan;
        int at = t->id < p->n_index ? p->index[t->id] : -1;
        if (at < 0 || !p->nodes[at].fetched || p->nodes[at].feed >= 0) continue;
        *of = q;
        return &p->now->values[at];
    }
    return NULL;
}

/* False, with an error, if the address of t, which plan `of` computed and the current plan reads,
 * depends on the position of `of`: the current plan does not know that position. */
static bool link_rests(wf_emitter *e, const part *of, const wf_tensor *t) {
    int at = of->plan->index[t->id];
    if (!of->resting || !of->resting[at].moves) return true;
    return wf_emitter_fail(e, "'%s' depends on the position, which plan '%s' does not know",
                           called(t), e->now->name);
}

/* True if both views have the same strides along all axes that are longer than 1 in both. */
static bool same_strides(const wf_view *a, const wf_view *b) {
    bool same = a->ndim == b->ndim;
    for (int i = 0; same && i < a->ndim; i++)
        same = a->stride[i] == b->stride[i] || a->shape[i] <= 1 || b->shape[i] <= 1;
    return same;
}

bool wf_note_places(wf_emitter *e, bool first) {
    part *q = e->now;
    wf_plan *p = q->plan;
    if (!p->with_state && !q->sized) return true;
    if (!q->resting) q->resting = calloc((size_t)p->n_nodes + 1, sizeof *q->resting);
    if (!q->resting) return wf_emitter_lacks(e);
    for (int i = 0; i < p->n_nodes; i++) {
        const bound_view *v = &p->now->values[i];
        resting *r = &q->resting[i];
        size_t offset = v->at.storage >= 0 ? p->now->storages[v->at.storage].offset : 0;
        if (!p->nodes[i].fetched) continue;
        if (first) *r = (resting){ *v, offset, false };
        r->moves |= r->value.at.offset != v->at.offset || r->value.at.storage != v->at.storage ||
                    !same_strides(&r->value.view, &v->view);
        if (!q->sized) r->moves |= r->offset != offset || !wf_same_shape(&r->value.view, &v->view);
    }
    return true;
}

int wf_storage_read_later(const wf_emitter *e, const part *q, int i) {
    const binding *b = q->plan->now;
    int at = b->values[i].at.storage;
    bool linked = q->plan->nodes[i].fetched && !wf_has_getter(e, q, i);
    return linked && at >= 0 && b->storages[at].place == IN_ARENA ? at : -1;
}

bool wf_describe_rest(wf_emitter *e, wf_text *t) {
    const part *q = e->now;
    const binding *b = q->plan->now;
    for (int i = 0; i < q->plan->n_nodes; i++) {
        int at = wf_storage_read_later(e, q, i);
        bool again = false;
        for (int k = 0; k < i && at >= 0; k++) again |= wf_storage_read_later(e, q, k) == at;
        if (at < 0 || again) continue;
        const storage_room *all = &q->rooms[at];
        wf_text_marked(t, "    for (int i = %n; i < %n; i++) floats(m, %n)[i] = 0;\n",
                       (int64_t)(b->storages[at].bytes / 4), (int64_t)(all->bytes / 4),
                       q->arena + (int64_t)(all->offset / 4));
    }
    return !t->lacks || wf_emitter_lacks(e);
}

/* The axis of a dense view that has this stride, and at least this size; -1: none. */
static int axis_of(const wf_view *dense, int64_t stride, int64_t size) {
    for (int i = 0; i < dense->ndim; i++)
        if (dense->stride[i] == stride && dense->shape[i] >= size) return i;
    return -1;
}

/* `here`: the view of a fed value, row-major. `there`: the view in which an earlier plan left this
 * value. Give v, a view of `here`, the strides of `there`. With `shares`, several batch rows read
 * one row of `there`. False: an axis of v is no axis of `here`. */
static bool map_view(const wf_view *here, const wf_view *there, bool shares, wf_view *v) {
    for (int k = 0; k < v->ndim; k++) {
        int64_t size = v->shape[k];
        int axis = size > 1 && v->stride[k] ? axis_of(here, v->stride[k], size) : -1;
        if (size > 1 && v->stride[k] && axis < 0) return false;
        if (axis < 0) continue;
        v->stride[k] = there->stride[axis];
        if (shares && axis == 0 && there->shape[0] > 1) v->shape[k] = there->shape[0];
    }
    return true;
}

bool wf_link_view(wf_emitter *e, const wf_tensor *fed, int64_t offset, bool strided, bool indexed,
                  wf_view *v) {
    const part *of = NULL;
    const bound_view *linked = wf_linked(e, fed, &of);
    if (!linked) return true;
    if (!link_rests(e, of, fed)) return false;
    wf_view here = wf_plan_value(e->now->plan, fed)->view, whole = linked->view;
    bool shares = whole.ndim > 0 && whole.shape[0] == 1 && here.shape[0] != 1;
    int64_t apart = wf_run_floats(of, linked->at.storage), runs = apart ? e->kept_runs : 1;
    bool fits = runs == 1 || (shares && here.shape[0] % runs == 0);
    if (shares) whole.shape[0] = here.shape[0];
    if (!wf_same_shape(&whole, &here) || (shares && !indexed) || !fits)
        return wf_emitter_fail(e, "'%s' has another size in the plan that reads it", called(fed));
    if (wf_view_dense(&linked->view) && !shares) return true;
    wf_dense_strides(here.ndim, here.shape, here.stride);
    if (shares) whole.shape[0] = runs;
    if (shares) whole.stride[0] = apart;
    if (offset == 0 && (strided || indexed) && map_view(&here, &whole, shares, v)) return true;
    return wf_emitter_fail(e, "'%s' does not lie in one piece", called(fed));
}

/* ---- any place ------------------------------------------------------------------------------- */

int64_t wf_slot_at(const wf_emitter *e, const part *of, int index) {
    int64_t at = of->state, batch = of->plan->now->batch;
    for (int k = 0; k < index; k++)
        at += (batch * wf_slot_floats(e, of, k) + LEAF_UNIT - 1) / LEAF_UNIT * LEAF_UNIT;
    return at;
}

/* Write the address of a place in a plan's memory, or in a leaf, as C. */
static bool add_own(wf_emitter *e, const part *of, location at, wf_dtype dtype, bool written,
                    int64_t read, wf_text *t) {
    const storage *s = &of->plan->now->storages[at.storage];
    if (s->place == IN_LEAF)
        return add_leaf(e, of->plan->graph->nodes[s->index], at.offset, written, read, t);
    size_t offset = of->rooms ? of->rooms[at.storage].offset : s->offset;
    int64_t from = of->arena + (int64_t)(offset / 4);
    if (s->place == IN_STATE) from = wf_slot_at(e, of, s->index);
    if (of != e->now && wf_run_floats(of, at.storage)) from = of->keeps[at.storage];
    add_memory(t, dtype, from + at.offset);
    return true;
}

bool wf_add_int8_place(wf_emitter *e, location at, bool with_scales, wf_text *t) {
    const storage *s = &e->now->plan->now->storages[at.storage];
    char name[MOST_NAME];
    const wf_tensor *of = e->now->plan->graph->nodes[s->index];
    int64_t width = of->shape[1];
    if (at.offset % width != 0)
        return wf_emitter_fail(e, "'%s': a part of its rows in int8 has no form in C", called(of));
    place_leaf(e, of, name);
    wf_note_floats(e, of, 0);
    wf_text_print(t, "m->int8_weights + at_%s_%d", name, of->id);
    add_offset(t, at.offset);
    if (!with_scales) return true;
    wf_text_print(t, ", m->weights + at_%s_%d_scales", name, of->id);
    add_offset(t, at.offset / width);
    return true;
}

bool wf_add_place(wf_emitter *e, location at, wf_dtype dtype, bool written, int64_t read,
                  wf_text *t) {
    const storage *s = &e->now->plan->now->storages[at.storage];
    if (s->place != IN_FEED) return add_own(e, e->now, at, dtype, written, read, t);
    const wf_tensor *fed = e->now->plan->feeds[s->index].tensor;
    const part *of = NULL;
    const bound_view *v = wf_linked(e, fed, &of);
    if (v)
        return add_own(e, of, (location){ v->at.storage, v->at.offset + at.offset }, dtype, written,
                       0, t);
    wf_text_print(t, "m->%s", wf_member_of(e, fed));
    add_offset(t, at.offset);
    return true;
}
