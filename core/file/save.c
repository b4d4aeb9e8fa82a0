/* core/file/save.c - saves the leaves of a graph to a file.
 *
 * Row-major values are written straight from the memory of their leaf; packed ones are copied
 * first. A matrix in int8 becomes two tensors: its numbers, and the scale of each row. */
#include "core/save.h"
#include "core/file_internal.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/int8_row.h"
#include "core/record/record.h"
#include "file_format.h"

/* ---- which leaves ---------------------------------------------------------------------------- */

static bool is_chosen(const wf_leaves *what, const wf_tensor *t) {
    bool both = !what || what->parameters == what->buffers;
    if (!is_stored(t) || leaf_of(t)->transient) return false;
    if (!both && what->parameters != (t->kind == WF_PARAM)) return false;
    if (what && what->prefix && strncmp(t->name, what->prefix, strlen(what->prefix)) != 0)
        return false;
    return !what || !what->keep || what->keep(what->user, t);
}

wf_tensor **wf_leaves_of(const wf_graph *g, const wf_leaves *what, int *n) {
    wf_tensor **leaves = calloc((size_t)g->n_nodes + 1, sizeof(wf_tensor *));
    *n = 0;
    for (int id = 0; leaves && id < g->n_nodes; id++)
        if (is_chosen(what, g->nodes[id])) leaves[(*n)++] = g->nodes[id];
    return leaves;
}

/* ---- their values ---------------------------------------------------------------------------- */

static const char *stored_name(wf_dtype dtype) {
    return dtype == WF_F64 ? "F64" : dtype == WF_F32 ? "F32" : "I32";
}

/* The entries to write, and the memory allocated for them. */
typedef struct saving {
    wf_entry *entries;
    int n;
    void **copies;
    int n_copies;
} saving;

/* Allocates a block that is freed together with the others. NULL: out of memory. */
static void *new_copy(saving *s, size_t bytes) {
    void *copy = malloc(bytes + 1);
    if (copy) s->copies[s->n_copies++] = copy;
    return copy;
}

/* Quantises a matrix. If its values are already of the form q * scale, the same q and scale
 * result. */
static bool add_int8(saving *s, const wf_entry *rows) {
    const float *x = rows->data;
    int64_t n = rows->shape[0], k = rows->shape[1];
    size_t name = strlen(rows->name);
    int8_t *q = new_copy(s, (size_t)(n * k));
    float *scale = new_copy(s, (size_t)n * sizeof *scale);
    char *scale_name = new_copy(s, name + sizeof WF_FILE_SCALE);
    if (!q || !scale || !scale_name) return false;
    for (int64_t r = 0; r < n; r++) {
        scale[r] = wf_int8_scale(k, x + r * k);
        wf_int8_round(k, x + r * k, scale[r], q + r * k);
    }
    memcpy(scale_name, rows->name, name);
    memcpy(scale_name + name, WF_FILE_SCALE, sizeof WF_FILE_SCALE);
    wf_entry *e = &s->entries[s->n];
    s->n += 2;
    e[0] = e[1] = *rows;
    e[0].dtype = "I8";
    e[0].data = q;
    e[0].bytes = (size_t)(n * k);
    e[1].name = scale_name;
    e[1].data = scale;
    e[1].bytes = (size_t)n * sizeof *scale;
    e[1].ndim = 1;
    return true;
}

static bool add_leaf(saving *s, wf_tensor *t) {
    wf_entry e = { .name = t->name, .dtype = stored_name(t->dtype), .ndim = t->ndim };
    memcpy(e.shape, t->shape, sizeof e.shape);
    e.bytes = wf_bytes(t);
    e.data = wf_leaf_data(t);
    if (!e.data) return false;
    wf_layout layout = leaf_of(t)->layout;
    if (layout != WF_ROW_MAJOR) {
        void *rows = new_copy(s, e.bytes);
        if (!rows || !wf_read(t, rows, e.bytes)) return false;
        e.data = rows;
    }
    if (layout == WF_PANELS_INT8) return add_int8(s, &e);
    s->entries[s->n++] = e;
    return true;
}

static bool add_leaves(saving *s, wf_tensor *const *leaves, int n, char *message) {
    if (!s->entries || !s->copies) return wf_file_fail(message, "out of memory");
    for (int i = 0; i < n; i++) {
        wf_tensor *t = leaves[i];
        if (!t || wf_is_poison(t) || !is_stored(t))
            return wf_file_fail(message, "%s is no parameter or buffer",
                                t && t->name[0] ? t->name : "a tensor");
        if (!add_leaf(s, t)) return wf_file_fail(message, "out of memory");
    }
    return true;
}

bool wf_file_save_leaves(const char *path, wf_tensor *const *leaves, int n, const wf_meta *meta,
                         int n_meta, char *message) {
    char reason[WF_MESSAGE];
    if (!path) return wf_file_fail(message, "no path to save leaves to");
    if (n < 0 || (n && !leaves)) return wf_file_fail(message, "%.100s: no leaves", path);
    saving s = { .entries = calloc(2 * (size_t)n + 1, sizeof(wf_entry)),
                 .copies = calloc(4 * (size_t)n + 1, sizeof(void *)) };
    bool ready = add_leaves(&s, leaves, n, reason);
    bool ok = ready && wf_file_save(path, s.entries, s.n, meta, n_meta, message);
    for (int i = 0; i < s.n_copies; i++) free(s.copies[i]);
    free(s.copies), free(s.entries);
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
