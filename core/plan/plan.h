/* core/plan/plan.h - inside core: what is compiled from a graph, and a generation's state. Not
 * installed.
 *
 * plan.c     what must be computed                    order.c    in which order
 * rewrite.c  what runs in place of what was recorded  bind.c     a binding: shapes, views, pointers
 * memory.c   lifetimes of storages                    offsets.c  what lies where in the arena
 * run.c      feed, run, fetch, profile                state.c    cached rows of a generation
 * pool.c     threads */
#ifndef WEFT_CORE_PLAN_PLAN_H
#define WEFT_CORE_PLAN_PLAN_H

#include "core/record/record.h"

enum { MAX_BINDINGS = 8 };

typedef enum { IN_ARENA, IN_LEAF, IN_FEED, IN_STATE } storage_place;

/* Memory that values share. Lifetimes belong to it, not to values. */
typedef struct storage {
    storage_place place;
    int index; /* leaf: node id; feed: index in feeds; state: slot */
    size_t bytes, offset;
    int first, last; /* exec that writes it first, and that reads it last */
    bool pinned;     /* fetched: lives to the end, never overwritten */
} storage;

/* Where an operand or a result lies. */
typedef struct location {
    int storage;    /* -1: absent, or only its shape is known */
    int64_t offset; /* elements from the storage's start */
} location;

/* A tensor as bound. */
typedef struct bound_view {
    wf_view view;
    location at;
} bound_view;

/* One entry of the schedule: a call, or a copy that makes an operand row-major. Its lists and the
 * call's are the binding's memory. */
typedef struct exec {
    const wf_tensor *node; /* NULL: a copy */
    wf_call call;
    location *in, *out;
    int work;  /* storage, or -1 */
    int spent; /* where the profile counts it: an index into plan->spent */
} exec;

typedef struct chunk { /* of a binding's memory; what is taken of it lies behind */
    struct chunk *next;
    size_t size, used;
} chunk;

/* What one cached tensor needs, or has, in a state: [batch, outer, rows, inner bytes]. */
typedef struct slot {
    char *data;
    size_t bytes; /* that data has: it never shrinks */
    size_t outer, rows, inner;
    size_t used; /* rows that the binding reads */
    int axis;    /* along which it grows */
} slot;

/* Everything that depends on the sizes of the extents. */
typedef struct binding {
    int64_t size[MAX_EXTENTS];
    uint64_t used;      /* clock of the least recently used */
    bound_view *values; /* by the plan's index of a tensor */
    exec *execs;
    int n_execs, cap_execs;
    chunk *chunks, **chunk; /* memory of the execs' lists; where there is some left */
    storage *storages;
    int n_storages, cap_storages;
    size_t *offsets; /* of the storages, as planned for positions up to `planned` */
    size_t *limits;  /* and their bytes then */
    int n_offsets;
    int64_t planned;
    slot *slots; /* rows that each cached tensor has at this position; data NULL */
    int n_slots, known_slots, cap_slots;
    int64_t batch;
    size_t arena, scratch;
    int64_t position; /* shapes are those of this P; -1: not yet */
    const void *base; /* pointers are into this arena */
    uint64_t feeds;   /* and into the feeds of this generation; 0: not yet */
} binding;

typedef struct feed {
    const wf_tensor *tensor;
    void *data;
    size_t capacity;
    int ndim;
    int64_t shape[WF_MAX_DIMS];
    bool given, needed;
} feed;

typedef struct spent { /* what the profile has counted */
    double seconds, flops, bytes;
    int64_t runs;
} spent;

typedef struct planned { /* a node that takes part */
    const wf_tensor *node;
    bool data, fetched;
    int feed;  /* index, or -1 */
    int spent; /* its first in the plan's list */
} planned;

/* What a plan wants of a node. */
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
    const wf_tensor **rewritten; /* id -> what runs in place of the graph's node, or NULL */
    int32_t *taken_by;           /* id -> 1 + the id of the node whose rule took it, or 0 */
    wf_arena *own;               /* memory of those */
    int n_index;
    feed *feeds;
    int n_feeds;
    uint64_t feeds_generation; /* counts moves of their memory; from 1 */
    spent *spent;              /* of each node: itself, and the copies made of its operands */
    int n_spent;
    int64_t size[MAX_EXTENTS]; /* as bound now; 0: not bound (P: 0) */
    binding *bindings[MAX_BINDINGS];
    binding *now; /* NULL: an extent changed */
    uint64_t clock;
    void *arena, *scratch;
    size_t arena_bytes, scratch_bytes;
    uint64_t step;
    uint32_t micro_batch;
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

/* rewrite.c: by the rules, into p->rewritten; need: by id. False: no memory. */
enum { OWN_ARENA = 1 << 14 };
bool wf_rewrite_nodes(wf_plan *p, const unsigned char *need);

/* order.c: leaves stay, numbers come right behind what they are taken of, updates behind all
 * readers of what they write. nodes: leaves, then values, then, from that index on, updates. */
bool wf_order_nodes(wf_plan *p, int leaves, int values);

/* memory.c */
bool wf_assign_memory(binding *b); /* lifetimes -> offsets, b->arena; false: no memory */
/* offsets.c: of the storages of a list, the largest first; and b->arena. */
bool wf_assign_offsets(binding *b, const int *list, int n);

/* ---- state ----------------------------------------------------------------------------------- */

struct wf_state {
    int batch, n_slots;
    int64_t used; /* rows that hold something */
    slot *slots;
    char *spare; /* as large as the largest slot */
    size_t spare_bytes;
};

/* Give it as many rows as p->now wants, and keep what these hold. False, and nothing of it lost: no
 * memory. */
bool wf_state_follow(wf_plan *p, wf_state *s);

#endif
