/* core/record/record.h - inside core: a graph and its nodes. Not installed.
 *
 * graph.c    graphs, errors, scopes                   leaf.c   leaves and their values
 * extents.c  named sizes                              flow.c   where gradients stop
 * extent_text.c  named sizes in messages              call.c   calls on shapes
 * record.c   a node from an op and operands           grad.c   gradients as nodes
 * print.c    values as text                           recompute.c  values computed again */
#ifndef WEFT_CORE_RECORD_RECORD_H
#define WEFT_CORE_RECORD_RECORD_H

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "core/base/memory.h"
#include "core/graph_internal.h"
#include "core/op.h"
#include "core/product_hook.h"

enum { MAX_EXTENTS = 16, ERROR_SIZE = 512 };

/* ---- graph ----------------------------------------------------------------------------------- */

typedef struct extent {
    const char *name;
    int64_t max, nominal;
    bool declared; /* false for a P that wf_extent has not declared: its maximum is 0 */
} extent;

typedef struct interned { /* a string that the graph stores once */
    const char *text;
    wf_tensor *tensor; /* the tensor of this name, or NULL */
    uint32_t sites;    /* number of calls of wf_next_site in the scope of this name */
} interned;

typedef struct region { /* nodes that gradients compute again: the ids first..end-1 */
    int first, end;
} region;

struct wf_graph {
    /* arena of nodes, names and attributes; arena of the leaves' values */
    wf_arena *records, *values;
    wf_tensor **nodes; /* by id */
    int32_t *entry_of; /* by node id: index in the entries of the current backward pass (grad.c) */
    int n_nodes, cap_nodes;
    wf_dtype real;
    uint64_t seed;
    extent extents[MAX_EXTENTS]; /* [0] is P */
    int n_extents;
    interned *names; /* hash table with open addressing */
    size_t n_names, cap_names;
    const char *scope;
    const wf_tensor *forward; /* the node whose gradient is being recorded, or NULL */
    region *regions;          /* in the order of their ids */
    int n_regions, region_first, region_depth; /* depth: regions begun and not ended */
    size_t cap_regions;
    /* the name of the outermost composed function that is being recorded, or NULL */
    const char *function;
    int n_functions; /* number of composed functions begun and not ended: compose.h */
    bool failed;
    char error[ERROR_SIZE];
    void (*on_error)(void *user, const char *message);
    void *on_error_user;
    wf_tensor *(*on_param)(void *user, wf_tensor *param);
    void *on_param_user;
    bool in_hook; /* true while on_param runs */
    wf_product_hook on_product;
    wf_tensor poison;
    pthread_mutex_t lock; /* protects the leaves' values */
    /* number of plans not yet freed: they hold pointers to the leaves' values */
    atomic_int plans;
};

/* A leaf's attrs point to one of these. */
typedef struct leaf {
    /* how the initial value is computed; for wf_constant, init.a is the value */
    wf_init init;
    int extent[WF_MAX_DIMS]; /* for an input or a shape: index of each axis's extent, or -1 */
    void *data;              /* the values; NULL before the first use, and for inputs and shapes */
    size_t bytes;            /* size of the values when they are row-major */
    wf_layout layout;
    bool from_hook;
    bool transient; /* true for a buffer that is not saved: wf_transient_buffer */
    bool filling;   /* true while the initial value is computed: the leaf cannot be read yet */
} leaf;

/* wf_graph_alloc returns zeroed memory. wf_graph_add appends `results` consecutive nodes, and
 * returns the first. If memory runs out, both return NULL, and the graph fails. */
void *wf_graph_alloc(wf_graph *g, size_t bytes);
wf_tensor *wf_graph_add(wf_graph *g, int results);
/* the graph's copy of the text, which lives as long as g; NULL: out of memory */
const char *wf_graph_intern(wf_graph *g, const char *text);
interned *wf_graph_interned(const wf_graph *g, const char *text); /* NULL: not interned */
bool wf_is_poison(const wf_tensor *t);
wf_graph *wf_failed_graph(void);
void wf_copy_view(const wf_view *from, const wf_view *to); /* between any layouts */
/* The values, allocated and initialised first if there are none. NULL: out of memory, the initial
 * value is being computed, or int8 cannot hold it. */
void *wf_leaf_data(wf_tensor *t);
/* Allocate *data for the values of a leaf; *data is NULL if the leaf has values. wf_leaf_settle
 * then gives this memory to the leaf (keep), or releases it. False: out of memory, or the initial
 * value is being computed. */
bool wf_leaf_reserve(const wf_tensor *t, void **data);
void wf_leaf_settle(wf_tensor *t, void *data, bool keep);
/* Write n elements, from element `first` on, to a leaf that has memory. In a packed leaf they are
 * whole rows, and the first row is a multiple of WF_PANEL_MOST. */
void wf_leaf_write_part(wf_tensor *t, int64_t first, int64_t n, const void *data);
static inline leaf *leaf_of(const wf_tensor *t) {
    return (leaf *)(uintptr_t)t->attrs;
}
static inline bool is_stored(const wf_tensor *t) {
    return t->kind == WF_PARAM || t->kind == WF_BUFFER;
}
static inline const wf_tensor *primary(const wf_tensor *t) {
    return t - t->result;
}
static inline const char *called(const wf_tensor *t) {
    if (t->label) return t->label;
    return t->kind == WF_COMPUTED && t->op ? t->op->name : t->name;
}
static inline const wf_kernel *kernel_of(const wf_op *op) {
    static const wf_kernel none = { 0 };
    return op->run ? op->run : &none;
}
static inline int result_count(const wf_op *op) {
    return op->results ? op->results : 1;
}

/* ---- calls ----------------------------------------------------------------------------------- */

enum { SHOWN = 8, SHOWN_SIZE = 112 };

typedef struct wf_report {
    atomic_flag taken; /* set by the first task that fails, which writes the message */
    char message[WF_MESSAGE];
    char shown[SHOWN][SHOWN_SIZE];
    atomic_uint next;
    bool bound; /* sizes in shapes are shown as numbers, not as extents */
} wf_report;

/* size.c: true if the byte count of a shape fits into 63 bits. It is checked while recording,
 * before memory is needed. */
bool wf_shape_counts(wf_dtype dtype, int ndim, const int64_t *shape);

void wf_report_reset(wf_report *r, bool bound);

/* A call on recorded shapes, with its views. */
typedef struct recorded_call {
    wf_call call;
    wf_view in[WF_MAX_OPERANDS], out[WF_MAX_RESULTS];
} recorded_call;
void wf_fill_call(recorded_call *c, wf_graph *g, const wf_op *op, int n, wf_tensor *const *in,
                  const void *attrs, wf_report *report);

/* ---- extent_text.c --------------------------------------------------------------------------- */

/* Nominal sizes of extents, and those for the second run of a rule that failed. */
extern const int64_t wf_nominal_sizes[MAX_EXTENTS], wf_other_sizes[MAX_EXTENTS];
int64_t wf_extent_tag(int i);
/* The index of the extent that this size is the tag of, or -1. */
int wf_extent_of(const wf_graph *g, int64_t size);
/* Replace tags in a message by the names of their extents. */
void wf_name_tags(const wf_graph *g, char *message, size_t size);
/* Merges the messages of the two runs of a shape rule into `message`. A number that differs becomes
 * an expression of extents' names. If words differ, `message` does not change. */
void wf_name_numbers(const wf_graph *g, const char *first, const char *second,
                     char message[WF_MESSAGE]);

/* ---- extents.c ------------------------------------------------------------------------------- */

/* Rewrites the message of a failed shape rule. A size that was computed from named extents becomes
 * an expression of their names, such as 2*B. */
void wf_name_sizes(wf_graph *g, const wf_op *op, int n, wf_tensor *const *in, const void *attrs,
                   char message[WF_MESSAGE]);

/* ---- gradients: recompute.c ------------------------------------------------------------------ */

/* The copies of the nodes of one region: by id, from region.first on. */
typedef struct recomputed {
    region of;
    wf_tensor **copies;
} recomputed;
/* The node that a gradient rule is given in place of t: t itself, or its copy if t is in a region.
 * The copies of a region are recorded when the first of them is needed; r, zeroed at first, keeps
 * them until another region is asked for. NULL: out of memory. Free r->copies at the end. */
wf_tensor *wf_recomputed(recomputed *r, wf_tensor *t);

/* ---- gradients: flow.c ----------------------------------------------------------------------- */

/* False, and the graph fails, if an op without a gradient lies on a path from a y with a cotangent
 * to an x. through: paths that lead through one x to another count too. */
bool wf_gradient_flows(wf_graph *g, wf_tensor *const *y, wf_tensor *const *dy, int n_y,
                       wf_tensor *const *x, int n_x, bool through);
/* Check that gradients missing in `grads` (NULL) are zero. False, and the graph fails, if y depends
 * on such an x[i] through an op without a gradient. */
bool wf_gradients_are_zero(wf_tensor *y, wf_tensor *const *x, int n, wf_tensor *const *grads);

#endif
