/* weft/core/save.h - the leaves of any graph saved to a file and loaded from one.
 *
 * Parameters hold what a model has learned; buffers hold an optimizer's moments and averages, and
 * tables. Sums over micro-batches, which a trainer can always compute again, are never
 * saved: save between updates. A graph that is saved whole and loaded into one recorded in the same
 * way goes on training with the same bits, at any number of threads. No state of random numbers
 * needs saving: their bits are a function of the graph's seed, the site and the step. So a program
 * that resumes needs only its step besides, in the metadata:
 *
 *     wf_save(g, "m.safetensors", NULL, &(wf_meta){ "step", "500" }, 1, message);
 *
 *     wf_file *f = wf_file_open("m.safetensors");
 *     wf_load_report report;
 *     if (wf_load(g, f, NULL, &report)) step = atoi(wf_file_meta(f, "step"));
 *     else puts(report.message);
 *     wf_file_free(f);
 *     wf_random_step(train, step, 0);           train: a plan; its next run is that step
 *
 * The optimizer's learning rates are a function of the step, too: the program sets them again. */
#ifndef WEFT_CORE_SAVE_H
#define WEFT_CORE_SAVE_H

#include "file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Selects leaves of a graph: those of these kinds whose names have this prefix and for which `keep`
 * returns true. */
typedef struct wf_leaves {
    bool parameters, buffers; /* both false: select both kinds */
    /* prefix of the leaves' names; NULL: any name */
    const char *prefix;
    bool (*keep)(void *user, const wf_tensor *leaf); /* NULL: all are selected */
    void *user;
} wf_leaves;

/* Write leaves to a file with these pairs of metadata. As with wf_file_save, the file is written
 * whole or the old one stays. what NULL: all parameters and buffers. A matrix kept as
 * WF_PANELS_INT8 is stored as I8, with its scales as "name_scale". No plan that updates a leaf may
 * run meanwhile. False with message[256]. */
WF_API bool wf_save(const wf_graph *g, const char *path, const wf_leaves *what, const wf_meta *meta,
                    int n_meta, char *message);

/* Renames tensors of the file: where a name begins with in_file, this beginning is replaced by
 * in_graph, and the leaf of the new name is loaded. in_graph NULL: the tensor is skipped, which is
 * no error. */
typedef struct wf_rename {
    const char *in_file, *in_graph;
} wf_rename;

typedef enum {
    WF_LOADED,
    WF_MISSING,    /* a leaf that is not in the file: it keeps its values */
    WF_UNEXPECTED, /* a tensor of the file that matches no leaf */
    WF_MISFIT      /* shape or type differ, or the leaf cannot hold a value */
} wf_load_outcome;
enum { WF_ALLOW_MISSING = 1, WF_ALLOW_UNEXPECTED = 2, WF_ALLOW_MISFITS = 4 };

/* The result for one leaf, or for one tensor of the file. */
typedef struct wf_load_item {
    wf_load_outcome outcome;
    const wf_tensor *leaf; /* NULL if outcome is WF_UNEXPECTED */
    const wf_entry *entry; /* NULL if outcome is WF_MISSING */
    const char *reason;    /* a sentence with the names and shapes; "" if it was loaded */
} wf_load_item;

typedef struct wf_load_options {
    wf_leaves what; /* the leaves to load */
    /* WF_ALLOW_... values, or-ed; 0: strict, so that the file must have exactly these leaves */
    unsigned allow;
    /* rows of renames: the first one that fits a name is used; other names stay */
    const wf_rename *renames;
    int n_renames;
    void (*each)(void *user, const wf_load_item *item); /* called for every item, or NULL */
    void *user;
} wf_load_options;

typedef struct wf_load_report {
    int loaded, missing, unexpected, misfits; /* loaded is 0 if the file was refused */
    char message[256];                        /* why the file was refused; "" if it was loaded */
} wf_load_report;

/* Load leaves from a file, all that fit or none: a refused file changes no leaf. F32, F64, F16,
 * BF16 and I8 with scales become the graph's real type, I32 and I64 become i32. options and report
 * may be NULL. No plan of the graph may run meanwhile. */
WF_API bool wf_load(wf_graph *g, const wf_file *f, const wf_load_options *options,
                    wf_load_report *report);

#ifdef __cplusplus
}
#endif
#endif
