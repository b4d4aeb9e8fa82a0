/* core/plan/plan.h - inside core: plans compiled from a graph, and the states of generations. Not
 * installed.
 *
 * plan.c     which nodes must be computed; errors     order.c    in which order
 * rewrite.c  rewrite rules: fusion of ops             bind.c     a binding: shapes, views, schedule
 * plan_memory.c   lifetimes of storages               offsets.c  what lies where in the arena
 * run.c      where data lie; feed, run, fetch         state.c    cached rows of a generation
 * pool.c     threads */
#ifndef WEFT_CORE_PLAN_PLAN_H
#define WEFT_CORE_PLAN_PLAN_H

#include "core/record/record.h"

enum { MAX_BINDINGS = 8 };

typedef enum { IN_ARENA, IN_LEAF, IN_FEED, IN_STATE } storage_place;

/* Memory that one or more values share. Lifetimes are planned for storages, not for values. */
typedef struct storage {
    storage_place place;
    int index; /* of a leaf: its node id; of a feed: in feeds; in a state: of the slot */
    size_t bytes, offset;
    /* indices of steps: the first that writes the storage, and the last that reads it */
    int first, last;
    bool pinned; /* has a fetched value: lives to the end of the run, and is not overwritten */
} storage;

/* The place of an operand or a result. */
typedef struct location {
    int storage;    /* index of the storage; -1: absent, or only its shape is known */
    int64_t offset; /* elements from the storage's start */
} location;

/* The value of a node: its view with the bound shape, and its storage. */
typedef struct bound_view {
    wf_view view;
    location at;
} bound_view;

/* One step of the schedule: a call, or a copy that makes an operand row-major. Its lists, and those
 * of the call, are in the binding's chunks. */
typedef struct exec {
    const wf_tensor *node; /* NULL: the step is a copy */
    wf_call call;
    location *in, *out;
    int work;    /* index of the storage of the work memory, or -1 */
    int counter; /* index of its profile counter: plan->counters */
} exec;

typedef struct chunk { /* a block of a binding's memory, which follows this header */
    struct chunk *next;
    size_t size, used;
} chunk;

/* A cached tensor [batch, outer, rows, inner bytes]. Slots of a binding have no data. */
typedef struct slot {
    char *data;
    size_t bytes; /* bytes allocated for data; never shrinks */
    size_t outer, rows, inner;
    size_t used; /* number of rows in use after the run; of a recurrent state, of positions seen */
    /* the axis along which the tensor grows; 0: it is a recurrent state, which does not grow */
    int axis;
} slot;

/* Everything that depends on the sizes of the extents. */
typedef struct binding {
    int64_t size[MAX_EXTENTS];
    /* time of the last use: a new binding replaces the least recently used one */
    uint64_t used;
    bound_view *values; /* by the plan's index of a tensor */
    exec *execs;
    int n_execs;
    size_t cap_execs;
    /* memory for the lists of execs; the address of the pointer to the chunk that is used now */
    chunk *chunks, **chunk;
    storage *storages;
    int n_storages;
    size_t cap_storages;
    size_t *offsets; /* offsets of the storages, valid for positions up to `planned` */
    size_t *limits;  /* for each storage, the largest size for which the offsets are valid */
    int n_offsets;
    int64_t planned;
    slot *slots; /* the rows of each cached tensor at this position; their data are NULL */
    int n_slots, known_slots;
    size_t cap_slots;
    int64_t batch;
    size_t arena, scratch;
    int64_t position; /* the position P for which shapes were computed; -1: none yet */
    const void *base; /* the arena that the views' pointers point into */
    /* the plan's feeds_generation when the views' pointers were set; 0: they are not set yet */
    uint64_t feeds;
} binding;

typedef struct feed {
    const wf_tensor *tensor;
    void *data;
    size_t capacity; /* bytes allocated for data; 0: none, or the program lends the data */
    /* for lent data: the row of data for each index of the first axis; NULL: in order */
    const int32_t *row_index;
    int ndim;
    int64_t shape[WF_MAX_DIMS];
    bool given, needed;
} feed;

typedef struct counter { /* what a profile has measured */
    double seconds, flops, bytes;
    int64_t runs;
} counter;

typedef struct planned { /* one node of the plan */
    const wf_tensor *node;
    bool data, fetched;
    int feed;    /* index in plan->feeds, or -1: not fed */
    int counter; /* index of the node's first counter in plan->counters */
} planned;

/* Bits: what a plan needs of a node. */
enum { NEED_SHAPE = 1, NEED_DATA = 2, FETCHED = 4 };

struct wf_plan {
    wf_graph *graph;
    wf_pool *pool;
    bool ok, training, with_state, profile, ran, lacks; /* lacks: memory ran out */
    int64_t reserves; /* rows that each cache reserves at least; 0: as bind.c chooses */
    char error[ERROR_SIZE];
    planned *nodes; /* leaves first; then values and updates, in the order of order.c */
    int n_nodes;
    int32_t *index;              /* id -> index in nodes, or -1 */
    int32_t *fed;                /* id -> index in feeds, or -1 */
    const wf_tensor **rewritten; /* id -> the node that replaces it, or NULL */
    int32_t *fused_into;         /* id -> 1 + the id of the node into which it was fused, or 0 */
    wf_arena *own;               /* memory of the replacements */
    int n_index;
    feed *feeds;
    int n_feeds;
    uint64_t feeds_generation; /* incremented when the feeds' memory moves; begins at 1 */
    counter *counters;         /* for each node one, and then one for a copy of each operand */
    int n_counters;
    int64_t size[MAX_EXTENTS]; /* sizes bound now; 0: not bound (the size of P may be 0) */
    binding *bindings[MAX_BINDINGS];
    binding *now; /* NULL: none yet, or an extent changed */
    uint64_t clock;
    void *arena, *scratch;
    size_t arena_bytes, scratch_bytes;
    uint64_t step;
    uint32_t micro_batch;
    void (*computed)(void *user, const wf_tensor *node); /* callback of wf_plan_watch, or NULL */
    void *watcher;
    wf_report report;
};

bool wf_plan_fail(wf_plan *p, const char *format, ...) WF_PRINTF(2, 3);
bool wf_plan_lacks(wf_plan *p);                                           /* "out of memory" */
bool wf_plan_fail_at(wf_plan *p, const wf_tensor *node, const wf_op *op); /* the report's message */
static inline int wf_feed_of(const wf_plan *p, const wf_tensor *t) {      /* in p->feeds, or -1 */
    bool own = t && t->graph == p->graph && t->id >= 0 && t->id < p->n_index;
    return own ? p->fed[t->id] : -1;
}
static inline const wf_tensor *wf_plan_node(const wf_plan *p, int id) { /* or its replacement */
    return p->rewritten && p->rewritten[id] ? p->rewritten[id] : p->graph->nodes[id];
}
/* Bind p to p->size at this position; p->now then has shapes and memory. False: the plan failed. */
bool wf_plan_prepare(wf_plan *p, int64_t position);
/* the view and the storage of t, valid after wf_plan_prepare; NULL: t is not in the plan */
bound_view *wf_plan_value(wf_plan *p, const wf_tensor *t);
void wf_binding_free(binding *b);

/* rewrite.c: apply the rules, and put the replacements into p->rewritten. need: bits by node id.
 * False: out of memory. */
enum { OWN_ARENA = 1 << 14 };
bool wf_rewrite_nodes(wf_plan *p, const unsigned char *need);

/* order.c: move scalars directly after their operands, and updates after all readers of the leaves
 * that they write. Before the call p->nodes has the leaves, up to index `leaves`; then the values,
 * up to `values`; then the updates. False: out of memory, two updates of one leaf, or a cycle of
 * updates that read each other's. */
bool wf_order_nodes(wf_plan *p, int leaves, int values);

/* plan_memory.c: compute offsets and b->arena from lifetimes. False: out of memory. */
bool wf_assign_memory(binding *b);
/* offsets.c: set the offsets of the storages in a list, which is sorted with the largest first, and
 * b->arena. False: out of memory. */
bool wf_assign_offsets(binding *b, const int *list, int n);

/* ---- state ----------------------------------------------------------------------------------- */

struct wf_state {
    int batch, n_slots;
    int64_t used; /* number of rows that have been written */
    slot *slots;
    char *spare; /* for wf_state_reorder: at least as large as the largest slot */
    size_t spare_bytes;
};

/* Give every slot the number of rows that p->now needs. False: out of memory; cached rows are kept
 * then, too. */
bool wf_state_follow(wf_plan *p, wf_state *s);

#endif
