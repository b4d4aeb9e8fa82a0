/* core/file/load.c - loads the leaves of a graph from a file: matches tensors with leaves, and
 * lists what is missing, unexpected or does not fit.
 *
 * All of this is known before the first leaf changes; then file_load.c copies the values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file_internal.h"
#include "core/graph_internal.h"
#include "core/record/record.h"
#include "file_format.h"
#include "loader.h"

typedef struct loading {
    wf_graph *g;
    const wf_file *f;
    const wf_load_options *o;
    wf_load_report *report;
    wf_tensor **leaves;     /* the chosen leaves */
    const wf_entry **found; /* the entry found for each leaf, or NULL */
    int n;
    wf_loader fit; /* the pairs that fit */
    /* for each node id: 1 + its index in `leaves`, or 0 if it is not chosen */
    int *index;
    /* for each outcome, the reason of the first item that had it */
    char first[WF_MISFIT + 1][WF_MESSAGE];
} loading;

/* ---- the report ------------------------------------------------------------------------------ */

static void note(loading *l, wf_load_outcome outcome, const wf_tensor *t, const wf_entry *entry,
                 const char *reason) {
    wf_load_report *r = l->report;
    int *counts[] = { &r->loaded, &r->missing, &r->unexpected, &r->misfits };
    if ((*counts[outcome])++ == 0) snprintf(l->first[outcome], WF_MESSAGE, "%s", reason);
    const wf_load_item item = { outcome, t, entry, reason };
    if (l->o->each) l->o->each(l->o->user, &item);
}

/* Notes a leaf that the file lacks, or an entry that the graph lacks; the other one is NULL. */
static void note_alone(loading *l, const wf_tensor *t, const wf_entry *e) {
    char reason[WF_MESSAGE], shape[96];
    wf_shape_text(NULL, t ? t->ndim : e->ndim, t ? t->shape : e->shape, shape, sizeof shape);
    snprintf(reason, sizeof reason, "'%.100s' %s is in the %s but not in the %s",
             t ? t->name : e->name, shape, t ? "graph" : "file", t ? "file" : "graph");
    note(l, t ? WF_MISSING : WF_UNEXPECTED, t, e, reason);
}

/* True if an outcome is not allowed. The message then has the reason of one item that is not
 * allowed (a misfit before a missing leaf, and that before an unexpected tensor), and the number of
 * the others. */
static bool refused(loading *l) {
    wf_load_report *r = l->report;
    const int counts[] = { 0, r->missing, r->unexpected, r->misfits };
    const unsigned allowed[] = { 0, WF_ALLOW_MISSING, WF_ALLOW_UNEXPECTED, WF_ALLOW_MISFITS };
    const wf_load_outcome order[] = { WF_MISFIT, WF_MISSING, WF_UNEXPECTED };
    const char *first = NULL;
    int more = -1;
    for (int i = 0; i < 3; i++) {
        if (!counts[order[i]] || l->o->allow & allowed[order[i]]) continue;
        if (!first) first = l->first[order[i]];
        more += counts[order[i]];
    }
    if (first && more)
        wf_file_fail(r->message, "%.220s; and %d more such", first, more);
    else if (first)
        wf_file_fail(r->message, "%s", first);
    return first;
}

/* ---- matching tensors with leaves ------------------------------------------------------------ */

static const wf_rename *row_of(const wf_load_options *o, const char *name) {
    for (int i = 0; i < o->n_renames; i++)
        if (strncmp(name, o->renames[i].in_file, strlen(o->renames[i].in_file)) == 0)
            return &o->renames[i];
    return NULL;
}

/* The leaf that has the name of this tensor of the file after renaming; NULL: there is none. */
static const wf_tensor *namesake(loading *l, const wf_entry *e, const wf_rename *row) {
    char renamed[WF_MESSAGE];
    if (!row) return wf_find(l->g, e->name);
    int n =
        snprintf(renamed, sizeof renamed, "%s%s", row->in_graph, e->name + strlen(row->in_file));
    if (n < 0 || n >= (int)sizeof renamed) return NULL; /* longer than any name of a leaf */
    return wf_find(l->g, renamed);
}

/* Match tensors with leaves. False if two tensors of the file match one leaf. */
static bool match(loading *l) {
    for (int i = 0; i < wf_file_count(l->f); i++) {
        const wf_entry *e = wf_file_at(l->f, i);
        const wf_rename *row = row_of(l->o, e->name);
        if (row && !row->in_graph) continue;
        const wf_tensor *t = namesake(l, e, row);
        const wf_entry **place = t && l->index[t->id] ? &l->found[l->index[t->id] - 1] : NULL;
        /* scales are loaded together with their matrix */
        if (!place && wf_file_is_scale(l->f, e)) continue;
        /* files of version 0.1 hold transient buffers */
        if (t && is_stored(t) && leaf_of(t)->transient) continue;
        if (!place) {
            note_alone(l, NULL, e);
            continue;
        }
        if (*place)
            return wf_file_fail(l->report->message, "'%.80s' and '%.80s' are both for one leaf",
                                (*place)->name, e->name);
        *place = e;
    }
    return true;
}

static void check(loading *l) {
    char reason[WF_MESSAGE];
    for (int i = 0; i < l->n; i++) {
        const wf_entry *e = l->found[i];
        const wf_entry *scale = e ? wf_file_scale_of(l->f, e) : NULL;
        bool fits = e && wf_file_fits(e, scale, l->leaves[i], reason);
        if (!e) note_alone(l, l->leaves[i], NULL);
        if (e && !fits) note(l, WF_MISFIT, l->leaves[i], e, reason);
        if (fits) wf_loader_add(&l->fit, l->leaves[i], e);
    }
}

/* ---- public ---------------------------------------------------------------------------------- */

static bool allocate(loading *l) {
    l->leaves = wf_leaves_of(l->g, &l->o->what, &l->n);
    l->found = calloc((size_t)l->n + 1, sizeof *l->found);
    l->index = calloc((size_t)l->g->n_nodes + 1, sizeof *l->index);
    if (!l->leaves || !l->found || !l->index)
        return wf_file_fail(l->report->message, "out of memory");
    for (int i = 0; i < l->n; i++) l->index[l->leaves[i]->id] = i + 1;
    return wf_loader_open(&l->fit, l->f, "", l->n, l->report->message);
}

static bool arguments_ok(const wf_graph *g, const wf_file *f, const wf_load_options *o,
                         char *message) {
    if (!wf_ok(g)) return wf_file_fail(message, "%s", wf_error(g));
    if (!wf_file_ok(f)) return wf_file_fail(message, "%s", wf_file_error(f));
    if (o->n_renames < 0 || (o->n_renames && !o->renames))
        return wf_file_fail(message, "a table of %d renames is not there", o->n_renames);
    for (int i = 0; i < o->n_renames; i++)
        if (!o->renames[i].in_file)
            return wf_file_fail(message, "rename %d has no prefix in the file", i);
    return true;
}

static bool load_found(loading *l) {
    const wf_loader *f = &l->fit;
    if (!wf_loader_load(&l->fit)) return false;
    for (int i = 0; i < f->n; i++) note(l, WF_LOADED, f->leaves[i], f->entries[i], "");
    return true;
}

bool wf_load(wf_graph *g, const wf_file *f, const wf_load_options *options,
             wf_load_report *report) {
    const wf_load_options strict = { 0 };
    wf_load_report unwanted;
    loading l = { .g = g, .f = f, .o = options ? options : &strict };
    l.report = report ? report : &unwanted;
    *l.report = (wf_load_report){ 0 };
    bool ok = arguments_ok(g, f, l.o, l.report->message) && allocate(&l) && match(&l);
    if (ok) check(&l);
    ok = ok && !refused(&l) && load_found(&l);
    free(l.leaves);
    free(l.found);
    free(l.index);
    wf_loader_close(&l.fit);
    return ok;
}
