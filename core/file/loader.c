/* core/file/loader.c - loads tensors of a file into leaves of a graph: names, copies, scales. See
 * loader.h. */
#include "loader.h"
#include "core/file_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/op.h"
#include "file_format.h"

bool wf_loader_open(wf_loader *l, const wf_file *f, const char *prefix, int most, char *message) {
    size_t pairs = (size_t)most + 1;
    *l = (wf_loader){ .file = f, .prefix = prefix, .most = most, .message = message };
    l->marked = calloc((size_t)wf_file_count(f) + 1, sizeof *l->marked);
    l->leaves = calloc(pairs, sizeof(wf_tensor *));
    l->entries = calloc(pairs, sizeof *l->entries);
    l->scales = calloc(pairs, sizeof *l->scales);
    return (l->marked && l->leaves && l->entries && l->scales) ||
           wf_file_fail(message, "out of memory");
}

void wf_loader_close(wf_loader *l) {
    free(l->marked);
    free(l->leaves);
    free(l->entries);
    free(l->scales);
}

const wf_entry *wf_loader_find(wf_loader *l, const char *name) {
    char full[WF_MESSAGE];
    int n = snprintf(full, sizeof full, "%s%s", l->prefix, name);
    if (n < 0 || n >= (int)sizeof full) return NULL; /* longer than any name of a leaf */
    const wf_entry *e = wf_file_find(l->file, full);
    if (e) l->marked[wf_file_place(l->file, e)] = true;
    return e;
}

bool wf_loader_find_tied(wf_loader *l, const char *const *names, int n, const char *reason,
                         const wf_entry **found) {
    *found = NULL;
    for (int i = 0; i < n; i++) {
        const wf_entry *e = wf_loader_find(l, names[i]);
        if (!e) continue;
        if (*found && !wf_same_entries(l->file, e, *found))
            return wf_file_fail(l->message, "'%s' and '%s' differ%s", (*found)->name, e->name,
                                reason);
        *found = e;
    }
    return true;
}

void wf_loader_add(wf_loader *l, wf_tensor *leaf, const wf_entry *e) {
    assert(leaf && e && l->n < l->most);
    l->leaves[l->n] = leaf;
    l->entries[l->n] = e;
    l->scales[l->n++] = wf_file_scale_of(l->file, e);
}

const wf_entry *wf_loader_left(const wf_loader *l, const wf_entry *last) {
    for (int i = last ? wf_file_place(l->file, last) + 1 : 0; i < wf_file_count(l->file); i++) {
        const wf_entry *e = wf_file_at(l->file, i);
        if (!l->marked[i] && !wf_file_is_scale(l->file, e)) return e;
    }
    return NULL;
}

bool wf_loader_load(wf_loader *l) {
    return wf_file_load_from(l->file, l->entries, l->scales, l->leaves, l->n, l->message);
}

bool wf_named_as_scale(const char *name) {
    const size_t n = strlen(name), tail = sizeof WF_FILE_SCALE - 1;
    return n > tail && strcmp(name + n - tail, WF_FILE_SCALE) == 0;
}

/* Entries of one type and shape have the same number of bytes, as the reader has checked. */
static bool same_entry(const wf_entry *a, const wf_entry *b) {
    return strcmp(a->dtype, b->dtype) == 0 && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0 &&
           (a->bytes == 0 || (a->data && b->data && memcmp(a->data, b->data, a->bytes) == 0));
}

bool wf_same_entries(const wf_file *f, const wf_entry *a, const wf_entry *b) {
    const wf_entry *x = wf_file_scale_of(f, a), *y = wf_file_scale_of(f, b);
    return same_entry(a, b) && (x && y ? same_entry(x, y) : !x && !y);
}
