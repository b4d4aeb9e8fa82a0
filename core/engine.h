/* core/engine.h - what the engine's own files share: the insides of graph, plan and state. Not
 * installed.
 *
 * graph.c    graphs, errors, scopes                   leaf.c   leaves and their values
 * extents.c  named sizes, and how messages say them   flow.c   where gradients stop
 * record.c   a node from an op and operands           grad.c   gradients as nodes
 * plan.c     what must be computed                    order.c  in which order
 * rewrite.c  what runs in place of what was recorded
 * bind.c     a binding: shapes, views, pointers
 * memory.c   lifetimes, aligned memory                offsets.c  what lies where in the arena
 * run.c      feed, run, fetch, profile                state.c  cached rows of a generation */
#ifndef WEFT_CORE_ENGINE_H
#define WEFT_CORE_ENGINE_H

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "graph.h"
#include "op.h"

enum { MAX_EXTENTS = 16, MAX_BINDINGS = 8, ERROR_SIZE = 512 };

/* ---- graph ---------------------------------------------------------------------------------- */

typedef struct extent {
    const char *name;
    int64_t max, nominal;
    bool declared; /* P is there without being declared, with a maximum of 0 */
} extent;

typedef struct room room; /* memory for many: memory.c */

typedef struct interned { /* a text that the graph keeps, once */
    const char *text;
    wf_tensor *leaf; /* the one that is called so, or NULL */
    uint32_t sites;  /* asked for by wf_next_site while the text was the scope */
} interned;

struct wf_graph {
    room *insides, *values; /* nodes, names, attributes; leaves' values */
    wf_tensor **nodes;      /* by id */
    int32_t *places;        /* by id: in the books of the gradient that is being recorded */
    int n_nodes, cap_nodes;
    wf_dtype real;
    uint64_t seed;
    extent extents[MAX_EXTENTS]; /* [0] is P */
    int n_extents;
    interned *names; /* open addressing */
    size_t n_names, cap_names;
    const char *scope;
    const wf_tensor *forward; /* whose gradient is being recorded */
    bool failed;
    char error[ERROR_SIZE];
    void (*on_error)(void *user, const char *message);
    void *on_error_user;
    wf_tensor poison;
    pthread_mutex_t lock; /* of leaf storage */
    atomic_int plans;     /* made and not yet freed: they know where the leaves lie */
};

/* A leaf's attrs point to one of these. */
typedef struct leaf {
    wf_init init;            /* of a constant, init.a is the value */
    int extent[WF_MAX_DIMS]; /* input: index of the axis's extent, or -1 */
    void *data;              /* parameter, buffer: allocated by the first use */
    size_t bytes;            /* row-major */
    wf_layout layout;
    bool filling; /* its initial value is being made: it can't be read yet, not even by its maker */
} leaf;

/* Zeroed; `results` consecutive nodes. NULL, and a poisoned graph: no memory. */
void *wf_graph_alloc(wf_graph *g, size_t bytes);
wf_tensor *wf_graph_add(wf_graph *g, int results);
const char *wf_graph_intern(wf_graph *g,
                            const char *text); /* lives as long as g; NULL: no memory */
interned *wf_graph_interned(const wf_graph *g, const char *text); /* NULL: it is not */
bool wf_is_poison(const wf_tensor *t);
wf_graph *wf_failed_graph(void);
void wf_copy_view(const wf_view *from, const wf_view *to); /* between any layouts */
void *wf_leaf_data(wf_tensor *t); /* allocate and initialise; NULL if no memory */
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
    atomic_flag taken; /* the first failing task speaks */
    char message[WF_MESSAGE];
    char shown[SHOWN][SHOWN_SIZE];
    atomic_uint next;
    bool bound; /* shapes are numbers, not extents */
} wf_report;

/* size.c: may a shape be recorded, of which no memory is asked for as yet? */
bool wf_shape_counts(wf_dtype dtype, int ndim, const int64_t *shape);

void wf_report_reset(wf_report *r, bool bound);

/* A call on shapes as recorded, with room for the views of any. */
typedef struct recorded_call {
    wf_call call;
    wf_view in[WF_MAX_OPERANDS], out[WF_MAX_RESULTS];
} recorded_call;
void wf_fill_call(recorded_call *c, wf_graph *g, const wf_op *op, int n, wf_tensor *const *in,
                  const void *attrs, wf_report *report);

/* extents.c */
int wf_extent_of(const wf_graph *g, int64_t size); /* that a size stands for, or -1 */
void wf_name_tags(const wf_graph *g, char *message, size_t size); /* tags in it become names */
/* The message of a rule that has failed, with names for the sizes that are made of extents. */
void wf_name_sizes(wf_graph *g, const wf_op *op, int n, wf_tensor *const *in, const void *attrs,
                   char message[WF_MESSAGE]);

/* ---- gradients: flow.c ----------------------------------------------------------------------- */

/* False, and the graph fails: on the way from those y that have a cotangent to x is an op that no
 * gradient passes. through: what lies beneath x counts too. */
bool wf_gradient_flows(wf_graph *g, wf_tensor *const *y, wf_tensor *const *dy, int n_y,
                       wf_tensor *const *x, int n_x, bool through);
/* May the gradients of y by those x be zero that have no `grads`? Not where y depends on x by way
 * of such an op alone: the graph fails. */
bool wf_gradients_are_zero(wf_tensor *y, wf_tensor *const *x, int n, wf_tensor *const *grads);

/* ---- plan ------------------------------------------------------------------------------------ */

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
    room *own;                   /* memory of those */
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
enum { OWN_ROOM = 1 << 14 };
bool wf_rewrite_nodes(wf_plan *p, const unsigned char *need);

/* order.c: leaves stay, numbers come right behind what they are taken of, updates behind all
 * readers of what they write. nodes: leaves, then values, then, from that index on, updates. */
bool wf_order_nodes(wf_plan *p, int leaves, int values);

/* memory.c */
enum { ALIGN = 64 };
static inline size_t memory_aligned(size_t bytes) {
    return (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}
bool wf_assign_memory(binding *b); /* lifetimes -> offsets, b->arena; false: no memory */
/* offsets.c: of the storages of a list, the largest first; and b->arena. */
bool wf_assign_offsets(binding *b, const int *list, int n);
/* Zeroed, 64-byte aligned; huge pages asked for when large. NULL: no memory. To be freed. */
void *wf_memory_new(size_t bytes);

/* The same from a room with other lodgers. The first room has `first` bytes, each further one twice
 * as many as the one before, up to a limit: few lodgers cost little, and of many even the small
 * ones lie in huge pages. What nobody took is not touched. first 0: a room for each. Who leaves
 * alone, or is NULL, must say so; a room without lodgers is freed. */
void *wf_room_take(room **rooms, size_t bytes, size_t first);
void wf_room_leave(room **rooms, const void *data);
void wf_rooms_free(room *rooms);

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
