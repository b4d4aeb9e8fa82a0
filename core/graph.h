/* weft/core/graph.h - graphs, tensors, gradients, plans: the engine's page of contents.
 *
 * A program records operations into a graph once, records gradients, compiles one or more plans
 * from the graph, and runs them. Everything here works for any op; the ops are in ops/ops.h.
 *
 *     wf_graph *g = wf_graph_new(&(wf_graph_options){ .seed = 1 });
 *     int64_t B = wf_extent(g, "B", 64);                       an axis whose size is bound later
 *     wf_tensor *x = wf_input(g, "x", WF_F32, 2, (int64_t[]){ B, 8 });
 *     wf_tensor *w = wf_param(g, "w", 2, (int64_t[]){ 8, 3 }, wf_init_uniform(0.5));
 *     wf_tensor *loss = wf_sum(wf_square(wf_matmul(x, w)), WF_ALL_AXES, false), *dw;
 *     wf_grad(loss, &w, 1, &dw);
 *     wf_plan_options what = { .fetch = &dw, .n_fetch = 1, .feed = &x, .n_feed = 1 };
 *     wf_plan *p = wf_plan_new(g, &what);
 *     wf_bind(p, "B", 16) && wf_feed(p, x, data, sizeof data) && wf_run(p) &&
 *         wf_fetch(p, dw, out, sizeof out);
 *     wf_plan_free(p), wf_graph_free(g);
 *
 * Errors. The first mistake while recording is kept in the graph, with a message; every tensor
 * recorded after it is poison. It is enough to check once, with wf_ok(g). Plans, states and files
 * have their own messages and do not affect the graph. Every function accepts NULL and failed
 * objects. The library never aborts or prints. Shapes are written slowest axis first, row-major, as
 * in PyTorch.
 *
 * Threads. One thread records a graph. After that any number of threads may make, bind, feed, run
 * and free plans of it, each thread its own: a plan or a state may be used by one thread at a time.
 * Several plans may share a pool; their runs take turns. While a leaf is updated or written (by a
 * plan that fetches an update, wf_write, wf_set_layout) no other thread may run a plan of the
 * graph. Results do not depend on the threads. Beside runs, other threads may read leaves, find
 * names, print and draw; files and their entries may be read by any number of threads.
 *
 * Limits. 8 axes; 15 extents besides "P"; 32 operands and 4 results of an op; 255 bytes of a scope
 * with a name. Beyond them the graph fails, with a sentence. What wf_extent returns is for the
 * shapes of wf_input, wf_shape, wf_full, wf_zeros and wf_ones: no other function takes it as a size.
 *
 * Costs. A plan keeps what it has worked out for the last 8 sets of bound sizes; more of them in
 * turn are worked out again in every run, which takes several times as long as a small run: round
 * lengths up to few. Reading and writing a packed leaf converts it; wf_set_layout of a leaf that
 * has values copies them, and holds both copies meanwhile. */
#ifndef WEFT_CORE_GRAPH_H
#define WEFT_CORE_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WF_MAX_DIMS = 8 };

/* Element types. A graph computes in WF_F32 or WF_F64; ids, labels and lengths are WF_I32. */
typedef enum { WF_F32, WF_F64, WF_I32 } wf_dtype;

/* The layout of a parameter in memory. Packed in panels: the rows of [N, K] in groups of R, each
 * group column by column, so that a product with the transposed parameter reads it once, in order.
 * R is what suits the kernels in use, and nothing outside of memory depends on it. Element (n, k)
 * is at n / R * R * K + k * w + n % R, where w is R, or N % R in the last panel. bf16 halves the
 * bytes: the upper 16 bits of an f32, rounded to nearest even. int8 quarters them: element (n, k)
 * is scale[n] * q, with q from -127 to 127 rounded to nearest even. scale[n] is the largest |x| of
 * row n / 127, rounded to 17 bits so that scale[n] * q is exact; a row all below 2^-118 is zeros. A
 * product quantises its other operand's rows in the same way (to zeros below 2^-100) and sums
 * exactly: no result depends on other rows, on threads or on the instruction set. */
enum { WF_PANEL_MOST = 64 }; /* a multiple of R, whatever the kernels are */
typedef enum { WF_ROW_MAJOR, WF_PANELS, WF_PANELS_BF16, WF_PANELS_INT8 } wf_layout;

typedef enum { WF_COMPUTED, WF_PARAM, WF_BUFFER, WF_INPUT, WF_CONSTANT } wf_kind;

typedef struct wf_graph wf_graph;
typedef struct wf_plan wf_plan;
typedef struct wf_state wf_state;
typedef struct wf_pool wf_pool;
typedef struct wf_op wf_op; /* op.h */

/* One node of the graph. Immutable once recorded; owned by its graph. */
typedef struct wf_tensor {
    wf_graph *graph;
    wf_kind kind;
    wf_dtype dtype;
    int ndim;
    int64_t shape[WF_MAX_DIMS]; /* as recorded: a named extent has its nominal size */
    const char *name;           /* a leaf's full name; else the module path it was recorded under */
    const char *label;          /* the full name that wf_named gave it; or NULL */
    int32_t id;                 /* position in the graph: operands come before results */
    int result;                 /* which result of its op; result 0 is `tensor - result` */
    const wf_op *op;            /* NULL for a leaf */
    struct wf_tensor *const *in; /* operands, n_in of them; an absent optional one is NULL */
    int n_in;
    const void *attrs;               /* the op's attributes */
    const struct wf_tensor *forward; /* in a gradient: the node it is the gradient of; else NULL */
    const char *function;            /* that recorded it among other nodes, as "softmax"; or NULL */
} wf_tensor;

/* ---- graphs ---------------------------------------------------------------------------------- */

typedef struct wf_graph_options {
    wf_dtype real; /* the type of its real tensors: WF_F32 (0, the default) or WF_F64 */
    uint64_t seed; /* of initial values and random ops */
} wf_graph_options;

/* never NULL; options may be NULL */
WF_API wf_graph *wf_graph_new(const wf_graph_options *options);
WF_API void wf_graph_free(wf_graph *g); /* frees its tensors; free its plans and states before */
WF_API bool wf_ok(const wf_graph *g);   /* false after the first recording error */
WF_API const char *wf_error(const wf_graph *g); /* that error; "" while wf_ok */
WF_API wf_tensor *wf_poison(wf_graph *g, const char *format, ...) WF_PRINTF(2, 3); /* fail it */
WF_API void wf_on_error(wf_graph *g, void (*call)(void *user, const char *message), void *user);
WF_API wf_dtype wf_real(const wf_graph *g);
WF_API uint64_t wf_seed(const wf_graph *g);
WF_API int wf_node_count(const wf_graph *g);          /* tensors recorded, leaves included */
WF_API wf_tensor *wf_node(const wf_graph *g, int id); /* NULL: there is none */
/* "0.2.0", of the library; WF_VERSION is that of this header */
WF_API const char *wf_version(void);
/* The caches that blocks are made for: bytes/ways/threads that share it, of three levels,
 * "32K/8/1,512K/8/1,16M/16/2". As found, or what WEFT_CACHES gives (threads may be left out). */
WF_API const char *wf_caches_text(void);

/* ---- leaves ---------------------------------------------------------------------------------- */

/* Declare a named extent: a symbolic dimension of size 1..max (0..max for the reserved name "P",
 * the position). The returned value stands for it in shapes given to wf_input; tensor->shape has a
 * nominal size there. */
WF_API int64_t wf_extent(wf_graph *g, const char *name, int64_t max);

/* An initial value. fill writes all elements, of type dtype, as a pure function of (key, element
 * index). It runs when the leaf is first used; it may wf_read other leaves, but not its own. The
 * common ones are in ops/ops.h. */
typedef struct wf_init {
    void (*fill)(const struct wf_init *init, uint64_t key, wf_dtype dtype, int ndim,
                 const int64_t *shape, void *data);
    double a, b; /* parameters of fill */
} wf_init;

/* name is relative to the current scope; full names are unique in a graph. */
WF_API wf_tensor *wf_input(wf_graph *g, const char *name, wf_dtype dtype, int ndim,
                           const int64_t *shape);
WF_API wf_tensor *wf_param(wf_graph *g, const char *name, int ndim, const int64_t *shape,
                           wf_init init);
WF_API wf_tensor *wf_buffer(wf_graph *g, const char *name, wf_dtype dtype, int ndim,
                            const int64_t *shape, wf_init init);
/* A buffer that wf_save leaves out and wf_load does not ask for, as PyTorch's persistent=False: what
 * is computed anew whenever it matters, such as sums over micro-batches. */
WF_API wf_tensor *wf_transient_buffer(wf_graph *g, const char *name, wf_dtype dtype, int ndim,
                                      const int64_t *shape, wf_init init);
WF_API wf_tensor *wf_constant(wf_graph *g, double value); /* real scalar, shape [] */
WF_API wf_tensor *wf_constant_i32(wf_graph *g, int32_t value);
/* with a copy of these values; dtype: WF_I32, or the graph's real type, of which data is */
WF_API wf_tensor *wf_constant_array(wf_graph *g, wf_dtype dtype, int ndim, const int64_t *shape,
                                    const void *data);
/* A shape without values, whose axes may be extents: an operand `like` of wf_fill, wf_rand,
 * wf_arange, wf_broadcast_to and others, which read only its shape. */
WF_API wf_tensor *wf_shape(wf_graph *g, int ndim, const int64_t *shape);
/* From now on wf_param hands every parameter, in the scope where it is declared, to this hook, and
 * returns what the hook returns: NULL or the parameter itself, or a tensor of its shape that is
 * used instead, such as W + B A (LoRA), a quantised copy, or a parameter that is shared. So layers
 * and models take it, whoever wrote them. What the hook declares itself is not handed to it. NULL:
 * no hook. A tensor that is computed is computed in every run of a plan that needs it; and it is
 * not packed (wf_set_layout). */
WF_API void wf_on_param(wf_graph *g, wf_tensor *(*hook)(void *user, wf_tensor *param), void *user);
/* Was the leaf declared by a hook, while it ran? */
WF_API bool wf_from_hook(const wf_tensor *leaf);
/* Give a tensor a name of its own, relative to the current scope, by which wf_find finds it, and
 * which pictures and messages show: wf_named(y, "logits"). Names are unique in a graph; a tensor
 * may have several, the first is shown. Returns t. */
WF_API wf_tensor *wf_named(wf_tensor *t, const char *name);
/* Parameter, buffer, input or named tensor by its full name; or NULL. Takes the time of one look in
 * a hash table. */
WF_API wf_tensor *wf_find(const wf_graph *g, const char *name);

/* Write or read the values of a leaf; constants can only be read. bytes must be the exact size.
 * False for inputs and computed tensors, out of memory, and for values that are not finite where a
 * leaf is kept as WF_PANELS_INT8. Must not be called while a plan that
 * reads or updates the leaf is running. */
WF_API bool wf_write(wf_tensor *leaf, const void *data, size_t bytes);
WF_API bool wf_read(const wf_tensor *leaf, void *data, size_t bytes);
/* dst gets the values of src, a leaf of its shape and type in this or another graph. Layouts may differ;
 * in one layout the stored bits are copied. False, and nothing has changed, as of wf_write. */
WF_API bool wf_copy_leaf(wf_tensor *dst, const wf_tensor *src);
/* Write or read n elements from the first-th on, in row-major order. A matrix in panels fails. */
WF_API bool wf_write_part(wf_tensor *leaf, int64_t first, int64_t n, const void *data);
WF_API bool wf_read_part(const wf_tensor *leaf, int64_t first, int64_t n, void *data);
/* Keep a matrix of parameters in this layout from now on; wf_write and wf_read convert. An op that
 * cannot read the layout gets a row-major copy, made in every run; wf_pack_weights (ops.h) chooses
 * only parameters that need no copies. False, without any change, for other tensors, while
 * the graph has plans, or out of memory; for bf16 and int8 in a graph of f64; for int8 with a NaN,
 * an infinity, or rows longer than 131,072. */
WF_API bool wf_set_layout(wf_tensor *parameter, wf_layout layout);
WF_API wf_layout wf_layout_of(const wf_tensor *t); /* WF_ROW_MAJOR if it is no parameter */
WF_API int64_t wf_count(const wf_tensor *t);       /* elements, as recorded */
WF_API size_t wf_bytes(const wf_tensor *t);        /* bytes, as recorded */
WF_API size_t wf_dtype_size(wf_dtype dtype);
WF_API const char *wf_dtype_name(wf_dtype dtype); /* "f32" ... */

/* The scope: the module path under which tensors are recorded, as "decoder.layers.0". */
/* set it; returns the previous path, with which to restore it */
WF_API const char *wf_scope(wf_graph *g, const char *path);
/* append ".name" to it; returns the previous path */
WF_API const char *wf_scope_push(wf_graph *g, const char *name);

/* ---- gradients ------------------------------------------------------------------------------- */

/* Record d loss / d wrt[i] for a scalar loss into grads[i], as ordinary nodes of the graph. wrt may
 * be any tensors. If the loss does not depend on one, or only through wf_detach, its gradient is
 * zeros. It is an error if the loss depends on a wrt through an op that has no gradient, such as
 * argmax, comparisons and casts to i32. Their results may be used as masks or ids (in wf_where,
 * wf_embedding...), unless the loss depends on a wrt only in this way. False if the graph has
 * failed. */
WF_API bool wf_grad(wf_tensor *loss, wf_tensor *const *wrt, int n, wf_tensor **grads);

/* Vector-Jacobian product: given cotangents dy[i] (NULL: none) of y[i], record those of x[i]. dx[i]
 * is NULL if no gradient flows to x[i]. The x are taken as independent: it does not matter if one
 * is computed from another. */
WF_API bool wf_vjp(wf_tensor *const *y, wf_tensor *const *dy, int n_y, wf_tensor *const *x, int n_x,
                   wf_tensor **dx);

/* ---- plans ----------------------------------------------------------------------------------- */

/* 1..256 threads; NULL only if out of memory. If a thread cannot be started there are fewer */
WF_API wf_pool *wf_pool_new(int threads);
WF_API int wf_pool_threads(const wf_pool *pool);
WF_API void wf_pool_free(wf_pool *pool);

typedef struct wf_plan_options {
    wf_tensor *const *fetch;
    int n_fetch; /* values to read, updates to perform */
    wf_tensor *const *feed;
    /* values given by the program: of inputs, or of any computed tensor. Of an op with several
     * results, such as layer_norm and attention, only where the plan needs no other result of it: a
     * gradient behind it may */
    int n_feed;
    /* NULL: the calling thread only */
    wf_pool *pool;
    bool training; /* dropout is on */
    /* apply no rewrite rules: every node runs as recorded. Slower; values may differ by rounding */
    bool as_recorded;
    /* caches keep their rows in a wf_state; see wf_state_new */
    bool with_state;
} wf_plan_options;

WF_API wf_plan *wf_plan_new(wf_graph *g, const wf_plan_options *options); /* never NULL */
WF_API void wf_plan_free(wf_plan *p);
WF_API bool wf_plan_ok(const wf_plan *p);           /* compiled; false for a failed plan */
WF_API const char *wf_plan_error(const wf_plan *p); /* the last failure of this plan, or "" */
WF_API bool wf_bind(wf_plan *p, const char *extent, int64_t size);
/* data are copied by this call; bind the extents before. bytes must be the exact size, as bound:
 * wf_bound_bytes */
WF_API bool wf_feed(wf_plan *p, const wf_tensor *t, const void *data, size_t bytes);
WF_API bool wf_run(wf_plan *p);
WF_API bool wf_run_state(wf_plan *p, wf_state *s); /* for a plan made with_state */
/* copies the value of the last run, row-major, to data; bytes as in wf_feed */
WF_API bool wf_fetch(wf_plan *p, const wf_tensor *t, void *data, size_t bytes);
/* returns ndim, or -1 on error */
WF_API int wf_bound_shape(wf_plan *p, const wf_tensor *t, int64_t shape[WF_MAX_DIMS]);
WF_API size_t wf_bound_bytes(wf_plan *p, const wf_tensor *t); /* 0 on error */
/* Set the step of the next run. Random bits are a function of the graph's seed, the site of
 * the op, and these two numbers: those of dropout in training plans, and those of wf_rand, wf_randn
 * and the ops composed of them in every plan. Every plan counts its own steps: its first run is step 0 of micro-batch 0,
 * and each successful run increments the step, so that two runs differ. Counting goes on from a
 * step set here. So a loop that resumes sets it once; one that needs the same bits again, or has
 * several plans that shall differ, sets it before every run. */
WF_API void wf_random_step(wf_plan *p, uint64_t step, uint32_t micro_batch);
/* bytes of its arena, as bound now; with a state, for positions up to a bound that grows by
 * quarters, or the furthest that was run. 0 on error */
WF_API size_t wf_plan_memory(wf_plan *p);

/* One step of the schedule, for profiles and pictures of a plan. */
typedef struct wf_step {
    /* The node that runs: the recorded one, or the plan's replacement with the same id, which lives
     * as long as the plan. NULL: a copy that the planner inserted */
    const wf_tensor *node;
    const wf_op *op;
    double seconds; /* summed over runs since profiling was switched on */
    int64_t runs;
    double flops, bytes; /* of one run; bytes: operands read + results written */
    int64_t tasks;       /* of its widest phase */
    size_t offset, size; /* of its first result in the arena; size 0: a view or a leaf */
} wf_step;
/* The profile is off at first; switching it on sets the counters to 0. */
WF_API void wf_profile(wf_plan *p, bool on);
WF_API int wf_step_count(wf_plan *p);
WF_API bool wf_step_at(wf_plan *p, int i, wf_step *out);
/* The recorded node that computes t in this plan: t's own, or the one into which a rewrite rule
 * fused it. NULL: the plan does not compute it. */
WF_API const wf_tensor *wf_computed_in(const wf_plan *p, const wf_tensor *t);

/* ---- states: the caller's memory for a generation in progress -------------------------------- */

/* Memory for the rows of every cache in the plan, for the batch bound now. It grows in powers of
 * two with the positions that are run, not with P's maximum; a run fails if it cannot grow. */
/* all extents must be bound; NULL on failure: wf_plan_error(p) */
WF_API wf_state *wf_state_new(wf_plan *p);
WF_API void wf_state_free(wf_state *s);
WF_API size_t wf_state_bytes(const wf_state *s); /* allocated now */
/* batch row i becomes the old row index[i]; n <= rows at creation */
WF_API bool wf_state_reorder(wf_state *s, const int32_t *index, int n);

/* ---- printing -------------------------------------------------------------------------------- */

/* "[B,T,512]": extents by name. Returns buffer. */
WF_API const char *wf_shape_text(const wf_graph *g, int ndim, const int64_t *shape, char *buffer,
                                 size_t size);

/* A tensor's values as nested brackets, long axes shortened, into buffer; p: the plan that has run
 * (NULL for a leaf; of wf_shape its shape is printed). Returns the length it needed, as snprintf
 * does, or -1. */
WF_API int wf_print(wf_plan *p, const wf_tensor *t, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif
#endif
