/* core/file/save.c - the leaves of a graph to a file.
 *
 * Row-major values are written from where they are; only packed ones are copied. */
#include "core/save.h"

#include <stdlib.h>
#include <string.h>

#include "core/record/record.h"
#include "file_format.h"
#include "leaves.h"

/* ---- which leaves ---------------------------------------------------------------------------- */

bool wf_leaf_chosen(const wf_leaves *what, const wf_tensor *t) {
    bool both = !what || what->parameters == what->buffers;
    if (!is_stored(t)) return false;
    if (!both && what->parameters != (t->kind == WF_PARAM)) return false;
    if (what && what->prefix && strncmp(t->name, what->prefix, strlen(what->prefix)) != 0)
        return false;
    return !what || !what->keep || what->keep(what->user, t);
}

wf_tensor **wf_leaves_of(const wf_graph *g, const wf_leaves *what, int *n) {
    wf_tensor **leaves = calloc((size_t)g->n_nodes + 1, sizeof(wf_tensor *));
    *n = 0;
    for (int id = 0; leaves && id < g->n_nodes; id++)
        if (wf_leaf_chosen(what, g->nodes[id])) leaves[(*n)++] = g->nodes[id];
    return leaves;
}

/* ---- their values ---------------------------------------------------------------------------- */

static const char *stored_name(wf_dtype dtype) {
    return dtype == WF_F64 ? "F64" : dtype == WF_F32 ? "F32" : "I32";
}

/* *copy: the row-major copy of a packed leaf, or NULL. */
static bool make_entry(wf_entry *e, wf_tensor *t, void **copy) {
    *e = (wf_entry){ .name = t->name, .dtype = stored_name(t->dtype), .ndim = t->ndim };
    memcpy(e->shape, t->shape, sizeof e->shape);
    e->bytes = wf_bytes(t), e->data = wf_leaf_data(t);
    if (!e->data || leaf_of(t)->layout == WF_ROW_MAJOR) return e->data;
    e->data = *copy = malloc(e->bytes + 1);
    return *copy && wf_read(t, *copy, e->bytes);
}

static bool make_entries(wf_tensor *const *leaves, int n, wf_entry *entries, void **copies,
                         char *message) {
    if (!entries || !copies) return wf_file_fail(message, "out of memory");
    for (int i = 0; i < n; i++) {
        wf_tensor *t = leaves[i];
        if (!t || wf_is_poison(t) || !is_stored(t))
            return wf_file_fail(message, "%s is no parameter or buffer",
                                t && t->name[0] ? t->name : "a tensor");
        if (!make_entry(&entries[i], t, &copies[i])) return wf_file_fail(message, "out of memory");
    }
    return true;
}

bool wf_file_save_leaves(const char *path, wf_tensor *const *leaves, int n, const wf_meta *meta,
                         int n_meta, char *message) {
    char reason[WF_MESSAGE];
    if (!path) return wf_file_fail(message, "no path to save leaves to");
    if (n < 0 || (n && !leaves)) return wf_file_fail(message, "%.100s: no leaves", path);
    wf_entry *entries = calloc((size_t)n + 1, sizeof *entries);
    void **copies = calloc((size_t)n + 1, sizeof *copies);
    bool ready = make_entries(leaves, n, entries, copies, reason);
    bool ok = ready && wf_file_save(path, entries, n, meta, n_meta, message);
    for (int i = 0; copies && i < n; i++) free(copies[i]);
    free(copies), free(entries);
    return ready ? ok : wf_file_fail(message, "%.100s: %s", path, reason);
}

bool wf_save(const wf_graph *g, const char *path, const wf_leaves *what, const wf_meta *meta,
             int n_meta, char *message) {
    int n = 0;
    if (!path) return wf_file_fail(message, "no path to save a graph to");
    if (!wf_ok(g)) return wf_file_fail(message, "%.100s: %.150s", path, wf_error(g));
    wf_tensor **leaves = wf_leaves_of(g, what, &n);
    bool ok = leaves ? wf_file_save_leaves(path, leaves, n, meta, n_meta, message)
                     : wf_file_fail(message, "%.100s: out of memory", path);
    free(leaves);
    return ok;
}
