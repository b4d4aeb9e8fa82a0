/* core/file/loader.h - inside the library: helps readers of model files to find tensors by name and
 * to load them into leaves of a graph.
 *
 * Each caller knows under which names its files store a leaf, and what else they may hold. The
 * common part is here: looking names up, marking the tensors that were found, comparing copies,
 * finding scales, and one load of all requested leaves. If the load fails, no leaf changes.
 *
 *     wf_loader l;
 *     bool ok = wf_loader_open(&l, file, "", pairs, message);
 *     for each leaf:           e = wf_loader_find(&l, leaf->name);   wf_loader_add(&l, leaf, e);
 *     while (ok && (e = wf_loader_left(&l, e)))     refuse a tensor that fits no leaf
 *     ok = ok && wf_loader_load(&l);
 *     wf_loader_close(&l); */
#ifndef WEFT_CORE_FILE_LOADER_H
#define WEFT_CORE_FILE_LOADER_H

#include "core/file.h"

typedef struct wf_loader {
    const wf_file *file;
    const char *prefix; /* before each name in the file */
    bool *marked;       /* by index of a tensor in the file: true if wf_loader_find has found it */
    /* [n] pairs; a leaf that is listed k times in a row takes k entries, stacked along its rows */
    wf_tensor **leaves;
    const wf_entry **entries, **scales;
    int n, most;
    char *message;
} wf_loader;

/* Make a loader with room for `most` pairs. False with message: out of memory. Call wf_loader_close
 * in either case. */
bool wf_loader_open(wf_loader *l, const wf_file *f, const char *prefix, int most, char *message);
void wf_loader_close(wf_loader *l);

/* The tensor of the file whose name is the prefix followed by this name; it is marked as found.
 * NULL: there is none. */
const wf_entry *wf_loader_find(wf_loader *l, const char *name);
/* Look for one tensor that a file may hold under several of n names. *found is NULL if it has none
 * of them. False if two copies differ; the message then ends with `reason`, which says why they
 * must be equal. */
bool wf_loader_find_tied(wf_loader *l, const char *const *names, int n, const char *reason,
                         const wf_entry **found);
/* True if the entry has the shape of one of k equal parts of the leaf's rows; else false with
 * message. */
bool wf_file_shape_fits(const wf_entry *e, const wf_tensor *leaf, int k, char *message);
void wf_loader_add(wf_loader *l, wf_tensor *leaf, const wf_entry *e);

/* The next tensor after `last` (NULL: the first) that was not found by name and holds no scales.
 * NULL: there are no more. */
const wf_entry *wf_loader_left(const wf_loader *l, const wf_entry *last);
/* Load all pairs. False with message: one does not fit, or out of memory. */
bool wf_loader_load(wf_loader *l);

/* True if the name ends in "_scale", whether or not the file has an I8 matrix of the name before
 * it. */
bool wf_named_as_scale(const char *name);
/* Element i of an entry of F32, F64, F16, BF16, I32 or I64; of I8, the number times the scale of
 * its row. Other types give NaN. */
double wf_entry_value(const wf_entry *e, const wf_entry *scale, int64_t i);
/* True if two entries have the same type, shape and values, and the same scales. */
bool wf_same_entries(const wf_file *f, const wf_entry *a, const wf_entry *b);

#endif
