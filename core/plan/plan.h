/* core/plan/plan.h - inside core: what is compiled from a graph, and a generation's state. Not
 * installed.
 *
 * plan.c     which nodes must be computed             order.c    in which order
 * rewrite.c  rewrite rules: fusion of ops             bind.c     a binding: shapes, views, pointers
 * plan_memory.c   lifetimes of storages                    offsets.c  what lies where in the arena
 * run.c      feed, run, fetch, profile                state.c    cached rows of a generation
 * pool.c     threads                                  plan_error.c  how a plan fails */
#ifndef WEFT_CORE_PLAN_PLAN_H
#define WEFT_CORE_PLAN_PLAN_H

#include "core/record/record.h"

enum { MAX_BINDINGS = 8 };

typedef enum { IN_ARENA, IN_LEAF, IN_FEED, IN_STATE } storage_place;

/* Memory that one or more values share. Lifetimes are those of storages, not of values. */
typedef struct storage {
    storage_place place;
    int index; /* leaf: node id; feed: index in feeds; state: slot */
    size_t bytes, offset;
    int first, last; /* the exec that first writes it, and the one that last reads it */
    bool pinned;     /* fetched: it lives to the end and is not overwritten */
} storage;

/* Where an operand or a result is. */
typedef struct location {
    int storage;    /* -1: absent, or only its shape is known */
    int64_t offset; /* elements from the storage's start */
} location;

/* A tensor with its bound shape. */
typedef struct bound_view {
    wf_view view;
    location at;
} bound_view;

/* One step of the schedule: a call, or a copy that makes an operand row-major. Its lists, and those
 * of the call, are in the binding's chunks. */
typedef struct exec {
    const wf_tensor *node; /* NULL: a copy */
    wf_call call;
    location *in, *out;
    int work;    /* storage, or -1 */
    int counter; /* index of its profile counter: plan->counters */
} exec;

typedef struct chunk { /* a block of a binding's memory, which follows this header */
    struct chunk *next;
    size_t size, used;
} chunk;

/* The memory of a cached tensor in a state, [batch, outer, rows, inner bytes]; or what it needs. */
typedef struct slot {
    char *data;
    size_t bytes; /* of data; it does not shrink */
    size_t outer, rows, inner;
    size_t used; /* rows that the binding reads */
    int axis;    /* the axis along which it grows */
} slot;

/* Everything that depends on the sizes of the extents. */
typedef struct binding {
    int64_t size[MAX_EXTENTS];
    uint64_t used;      /* time of the last use: the least recently used binding is replaced */
    bound_view *values; /* by the plan's index of a tensor */
    exec *execs;
    int n_execs;
    size_t cap_execs;
    chunk *chunks, **chunk; /* memory of the execs' lists; the first chunk with free memory */
    storage *storages;
    int n_storages;
    size_t cap_storages;
    size_t *offsets; /* of the storages, valid for positions up to `planned` */
    size_t *limits;  /* the largest sizes of the storages for which the offsets are valid */
    int n_offsets;
    int64_t planned;
    slot *slots; /* rows that each cached tensor has at this position; data NULL */
    int n_slots, known_slots;
    size_t cap_slots;
    int64_t batch;
    size_t arena, scratch;
    int64_t position; /* the P of the shapes; -1: none yet */
    const void *base; /* the arena into which pointers point */
    uint64_t feeds;   /* the generation of feeds into which pointers point; 0: none yet */
} binding;

typedef struct feed {
    const wf_tensor *tensor;
    void *data;
    size_t capacity;          /* 0: lent */
    const int32_t *row_index; /* lent: which row of data each of the first axis is; NULL: its own */
    int ndim;
    int64_t shape[WF_MAX_DIMS];
    bool given, needed;
} feed;

typedef struct counter { /* of the profile */
    double seconds, flops, bytes;
    int64_t runs;
} counter;

typedef struct planned { /* a node of the plan */
    const wf_tensor *node;
    bool data, fetched;
    int feed;    /* index, or -1 */
    int counter; /* its first in plan->counters */
} planned;

/* Bits: what a plan needs of a node. */
enum { NEED_SHAPE = 1, NEED_DATA = 2, FETCHED = 4 };

struct wf_plan {
    wf_graph *graph;
    wf_pool *pool;
    bool ok, training, with_state, profile, ran;
    char error[ERROR_SIZE];
    planned *nodes; /* leaves, then values in id order with the updates among them */
    int n_nodes;
    int32_t *index;              /* id -> index in nodes, or -1 */
    int32_t *fed;                /* id -> index in feeds, or -1 */
    const wf_tensor **rewritten; /* id -> the node that replaces it, or NULL */
    int32_t *fused_into;         /* id -> 1 + the id of the node into which it was fused, or 0 */
    wf_arena *own;               /* memory of the replacements */
    int n_index;
    feed *feeds;
    int n_feeds;
    uint64_t feeds_generation; /* incremented when their memory moves; from 1 */
    counter *counters;         /* of each node: one for itself and one for a copy of each operand */
    int n_counters;
    int64_t size[MAX_EXTENTS]; /* as bound now; 0: not bound (P: 0) */
    binding *bindings[MAX_BINDINGS];
    binding *now; /* NULL: an extent changed */
    uint64_t clock;
    void *arena, *scratch;
    size_t arena_bytes, scratch_bytes;
    uint64_t step;
    uint32_t micro_batch;
    void (*computed)(void *user, const wf_tensor *node); /* or NULL: wf_plan_watch */
    void *watcher;
    wf_report report;
};

bool wf_plan_fail(wf_plan *p, const char *format, ...) WF_PRINTF(2, 3);
bool wf_plan_fail_at(wf_plan *p, const wf_tensor *node, const wf_op *op); /* the report's message */
int wf_feed_of(const wf_plan *p, const wf_tensor *t);                     /* index, or -1 */
static inline const wf_tensor *wf_plan_node(const wf_plan *p, int id) {   /* as it runs */
    return p->rewritten && p->rewritten[id] ? p->rewritten[id] : p->graph->nodes[id];
}
bool wf_plan_prepare(wf_plan *p, int64_t position);        /* p->now is shaped and has memory */
bound_view *wf_plan_value(wf_plan *p, const wf_tensor *t); /* after that; NULL: not in the plan */
void wf_plan_point(wf_plan *p, const wf_state *s);         /* every view has its data */
void wf_binding_free(binding *b);

/* rewrite.c: apply the rules; replacements go to p->rewritten. need: by id. False: out of
 * memory. */
enum { OWN_ARENA = 1 << 14 };
bool wf_rewrite_nodes(wf_plan *p, const unsigned char *need);

/* order.c: move scalars directly after their operands, and updates after all readers of what they
 * write. p->nodes are leaves, then values, then updates; the arguments are the first two ends. */
bool wf_order_nodes(wf_plan *p, int leaves, int values);

/* plan_memory.c */
bool wf_assign_memory(binding *b); /* lifetimes -> offsets, b->arena; false: no memory */
/* offsets.c: of the storages of a list, the largest first; and b->arena. */
bool wf_assign_offsets(binding *b, const int *list, int n);

/* ---- state ----------------------------------------------------------------------------------- */

struct wf_state {
    int batch, n_slots;
    int64_t used; /* rows that have been written */
    slot *slots;
    char *spare; /* as large as the largest slot */
    size_t spare_bytes;
};

/* Give the slots as many rows as p->now needs, and keep their contents. False, with the contents
 * unchanged: out of memory. */
bool wf_state_follow(wf_plan *p, wf_state *s);

#endif
