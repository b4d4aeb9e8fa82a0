/* weft/core/graph.h - graphs, tensors, gradients, plans: the engine's page of contents.
 *
 * This header has recording. tensor.h has nodes and the values of leaves; run.h has plans and
 * states.
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
 * Errors. The first mistake while recording is kept in the graph, with a message. That call and all
 * later ones return a placeholder, the graph's poison tensor. So check once, with wf_ok(g). Plans,
 * states and files have their own messages and do not affect the graph. The functions of this
 * header, tensor.h and run.h accept NULL and failed objects. The library never aborts or prints.
 * Shapes are written slowest axis first, row-major, as in PyTorch.
 *
 * Order. If several arguments of a call are recording calls themselves, the compiler chooses which
 * of them is recorded first. Write each as a statement of its own if you want the same bits with
 * every compiler: random ops are numbered, and gradients are added, in the order of recording.
 *
 * Threads. One thread records a graph. After that any number of threads may make, bind, feed, run
 * and free plans of it, each thread its own: a plan or a state may be used by one thread at a time.
 * Several plans may share a pool; its threads then work on one op at a time. While a leaf is
 * updated or written (by a plan that fetches an update, wf_write, wf_set_layout) no other thread
 * may run a plan of the graph. Results do not depend on the threads. While plans run, other threads
 * may read leaves, find names, print and draw; files and their entries may be read by any number of
 * threads.
 *
 * Limits. 8 axes; 15 extents besides "P"; 32 operands and 4 results of an op; 255 bytes for a full
 * name, scope included. Beyond them the graph fails, with an error message. Only wf_input,
 * wf_shape, wf_full, wf_zeros and wf_ones accept the number that wf_extent returns, as a size in
 * their shapes.
 *
 * Costs. A plan keeps its shapes and memory layout for the last 8 sets of bound sizes. A program
 * that cycles through more of them pays for planning in every run, which takes several times as
 * long as a small run. So round lengths up to a few sizes. Reading and writing a packed leaf
 * converts it; wf_set_layout of a leaf that has values copies them, and holds both copies
 * meanwhile. */
#ifndef WEFT_CORE_GRAPH_H
#define WEFT_CORE_GRAPH_H

#include "run.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- graphs ---------------------------------------------------------------------------------- */

typedef struct wf_graph_options {
    /* the type of the graph's real tensors: WF_F32 (0, the default) or WF_F64 */
    wf_dtype real;
    /* seed of initial values and random ops */
    uint64_t seed;
    /* called when the first error happens, which is a good place for a breakpoint; may be NULL */
    void (*on_error)(void *user, const char *message);
    void *user;
} wf_graph_options;

/* Never NULL; options may be NULL. */
WF_API wf_graph *wf_graph_new(const wf_graph_options *options);
/* Frees the graph and its tensors. Free its plans and states before. */
WF_API void wf_graph_free(wf_graph *g);
/* False after the first recording error. */
WF_API bool wf_ok(const wf_graph *g);
/* The first recording error, or "" if there is none. */
WF_API const char *wf_error(const wf_graph *g);
/* Fail the graph with this message, unless it has failed before; returns its poison tensor. */
WF_API wf_tensor *wf_poison(wf_graph *g, const char *format, ...) WF_PRINTF(2, 3);
/* The type of the graph's real tensors, WF_F32 or WF_F64. */
WF_API wf_dtype wf_real(const wf_graph *g);
/* The number of recorded tensors, leaves included; their ids are 0..count-1. */
WF_API int wf_node_count(const wf_graph *g);
/* The tensor with this id. NULL: there is none. */
WF_API wf_tensor *wf_node(const wf_graph *g, int id);
/* The version of the library, such as "0.2.0"; WF_VERSION is that of this header. */
WF_API const char *wf_version(void);

/* ---- leaves ---------------------------------------------------------------------------------- */

/* Declare a named extent: a symbolic dimension of size 1..max (0..max for the reserved name "P",
 * the position). The returned value stands for the extent in shapes given to wf_input;
 * tensor->shape has a nominal size there. For "P" the function returns 0, which must not be used in
 * shapes. If the graph has failed it returns 1. */
WF_API int64_t wf_extent(wf_graph *g, const char *name, int64_t max);

/* The name is relative to the current scope; full names are unique in a graph. */
WF_API wf_tensor *wf_input(wf_graph *g, const char *name, wf_dtype dtype, int ndim,
                           const int64_t *shape);
WF_API wf_tensor *wf_param(wf_graph *g, const char *name, int ndim, const int64_t *shape,
                           wf_init init);
WF_API wf_tensor *wf_buffer(wf_graph *g, const char *name, wf_dtype dtype, int ndim,
                            const int64_t *shape, wf_init init);
/* A real constant of shape []. */
WF_API wf_tensor *wf_constant(wf_graph *g, double value);
/* A constant with a copy of these values. dtype is WF_I32 or the graph's real type, and data has
 * that type. wf_constant_array(g, WF_I32, 0, NULL, &(int32_t){ 7 }) is an i32 of shape []. */
WF_API wf_tensor *wf_constant_array(wf_graph *g, wf_dtype dtype, int ndim, const int64_t *shape,
                                    const void *data);
/* A shape without values, whose axes may be extents. It is the operand `like` of wf_fill, wf_rand,
 * wf_arange, wf_broadcast_to and others, which read only its shape. */
WF_API wf_tensor *wf_shape(wf_graph *g, int ndim, const int64_t *shape);
/* From now on wf_param calls this hook for every parameter, in the scope where it is declared. If
 * the hook returns NULL or the parameter itself, wf_param returns the parameter. If it returns
 * another tensor of the same shape, such as W + B A (LoRA), a quantised copy, or a shared
 * parameter, wf_param returns that. So layers and models need not know about the hook. Parameters
 * that the hook declares itself do not go through it. A hook of NULL ends this. If the replacement
 * is a computed tensor, every run of a plan that needs it computes it again, and it is not packed
 * (wf_set_layout). */
WF_API void wf_on_param(wf_graph *g, wf_tensor *(*hook)(void *user, wf_tensor *param), void *user);
/* Give a tensor a name of its own, relative to the current scope, by which wf_find finds it, and
 * which pictures and messages show: wf_named(y, "logits"). Names are unique in a graph; a tensor
 * may have several, of which the first is shown (of a leaf, its own name). Returns t. */
WF_API wf_tensor *wf_named(wf_tensor *t, const char *name);
/* The parameter, buffer, input or named tensor with this full name, or NULL. The search is one
 * lookup in a hash table. */
WF_API wf_tensor *wf_find(const wf_graph *g, const char *name);

/* ---- scopes: module paths under which tensors are recorded, as "decoder.layers.0" ------------ */

/* Set the scope. Returns the previous path, for restoring it later. */
WF_API const char *wf_scope(wf_graph *g, const char *path);
/* Append ".name" to the scope; returns the previous path. */
WF_API const char *wf_scope_push(wf_graph *g, const char *name);

/* ---- gradients ------------------------------------------------------------------------------- */

/* Record d loss / d wrt[i] for a scalar loss into grads[i], as ordinary nodes of the graph. wrt are
 * leaves or computed tensors of the graph's real type. If the loss does not depend on one of them,
 * or only through wf_detach, that gradient is zeros. The graph fails if the loss depends on a
 * wrt[i] through an op that has no gradient, such as argmax, comparisons and casts to i32. Their
 * results may be used as masks or ids (in wf_where, wf_embedding...), if the loss also depends on
 * that wrt[i] in another way. False if the graph has failed. */
WF_API bool wf_grad(wf_tensor *loss, wf_tensor *const *wrt, int n, wf_tensor **grads);

/* Vector-Jacobian product: given cotangents dy[i] (NULL: none) of y[i], record those of x[i]. dx[i]
 * is NULL if no gradient flows to x[i]. False if the graph has failed. The derivatives are partial:
 * if x[j] is computed from x[i], dx[i] lacks the part that flows through x[j]. wf_grad includes
 * that part. */
WF_API bool wf_vjp(wf_tensor *const *y, wf_tensor *const *dy, int n_y, wf_tensor *const *x, int n_x,
                   wf_tensor **dx);

#ifdef __cplusplus
}
#endif
#endif
