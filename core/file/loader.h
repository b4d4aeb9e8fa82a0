/* core/file/loader.h - inside the library: the one way in which tensors of a file become the values
 * of leaves.
 *
 * A loader knows under which names the values of a leaf are in its files, and what else those files
 * may hold. The rest is here: names are looked up and marked, copies are compared, scales are
 * found, and what was asked for is loaded at once: all of it, or no leaf changes.
 *
 *     wf_loader l;
 *     bool ok = wf_loader_open(&l, file, "", pairs, message);
 *     for each leaf:           e = wf_loader_find(&l, leaf->name);   wf_loader_add(&l, leaf, e);
 *     while (ok && (e = wf_loader_left(&l, e)))                      refuse a tensor that is for none
 *     ok = ok && wf_loader_load(&l);
 *     wf_loader_close(&l); */
#ifndef WEFT_CORE_FILE_LOADER_H
#define WEFT_CORE_FILE_LOADER_H

#include "core/file.h"

typedef struct wf_loader {
    const wf_file *file;
    const char *prefix; /* of all names in the file */
    bool *marked;       /* by place in the file */
    /* [n] pairs; a leaf that is listed k times in a row takes k entries, stacked along its rows */
    wf_tensor **leaves;
    const wf_entry **entries, **scales;
    int n, most;
    char *message;
} wf_loader;

/* False with message: out of memory. Close it in either case. */
bool wf_loader_open(wf_loader *l, const wf_file *f, const char *prefix, int most, char *message);
void wf_loader_close(wf_loader *l);

/* The tensor with this name after the prefix, which is marked. NULL: there is none. */
const wf_entry *wf_loader_find(wf_loader *l, const char *name);
/* Look for one table under n names. *found is NULL if it has none of them. False if two copies
 * differ; the message ends with the reason why they should not. */
bool wf_loader_find_tied(wf_loader *l, const char *const *names, int n, const char *reason,
                         const wf_entry **found);
/* False with message unless the entry has the shape of one of k equal parts of the leaf's rows. */
bool wf_file_shape_fits(const wf_entry *e, const wf_tensor *leaf, int k, char *message);
void wf_loader_add(wf_loader *l, wf_tensor *leaf, const wf_entry *e);

/* The next tensor after `last` (NULL: the first) that was not marked and holds no scales. NULL:
 * there are no more. */
const wf_entry *wf_loader_left(const wf_loader *l, const wf_entry *last);
/* Load all pairs. False with message: one does not fit, or out of memory. */
bool wf_loader_load(wf_loader *l);

/* True if a tensor with this name would hold scales, were there a matrix in I8 to go with it. */
bool wf_named_as_scale(const char *name);
/* Element i of an entry of F32, F64, F16, BF16, I32 or I64, or of I8 times the scale of its row; NaN of
 * other types. */
double wf_entry_value(const wf_entry *e, const wf_entry *scale, int64_t i);
/* True if two entries have the same type, shape and values, and the same scales. */
bool wf_same_entries(const wf_file *f, const wf_entry *a, const wf_entry *b);

#endif
