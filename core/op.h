/* weft/core/op.h - how an op is defined. Programs may define their own: ops/custom.h has a whole
 * one, and the loops and checks that ops are written with.
 *
 * An op is one const struct with its meaning, and another with the way it runs (kernel.h). The
 * engine calls its functions:
 *   while recording   shape (on nominal sizes); grad and decompose if a gradient is recorded
 *   while planning    shape again on bound sizes, view, and functions of the kernel; without data
 *   while running     the kernel's tasks; eval, once per task, from any thread
 * Except for grad and decompose they get a call, not tensors: one node with its operands and
 * results as views. An op must give the same bits for any number of threads: divide work into tasks
 * by shape alone, and give every sum one fixed order that depends only on the reduced length. */
#ifndef WEFT_CORE_OP_H
#define WEFT_CORE_OP_H

#include <assert.h>

#include "graph.h"
#include "kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WF_MAX_OPERANDS = 32, WF_MAX_RESULTS = 4, WF_MESSAGE = 256 };

/* Raw memory seen as a tensor. Strides are in elements; 0 repeats. */
typedef struct wf_view {
    void *data; /* NULL while only shapes are known */
    wf_dtype dtype;
    int ndim; /* -1: the operand is optional and absent */
    int64_t shape[WF_MAX_DIMS], stride[WF_MAX_DIMS];
    wf_layout layout; /* packed only if the kernel allows it: see `panels` in kernel.h */
    /* NULL, unless the kernel allows it (see `indexed` in kernel.h): index i of the first axis is
     * stored at row_index[i] */
    const int32_t *row_index;
} wf_view;

struct wf_call {
    const wf_op *op;
    const void *attrs;
    /* the node's graph, for wf_real and names in messages; an op must not record into it */
    wf_graph *graph;
    int n_in, n_out;
    wf_view *in, *out;
    /* value of the extent P: rows that the caches already hold; 0 while recording */
    int64_t position;
    bool training;   /* dropout is on */
    bool with_state; /* the plan runs with a state: caches keep rows */
    uint64_t step;   /* step of the random bits: wf_random_step */
    uint32_t micro_batch;
    const void *plan; /* memory that the kernel's plan function has filled; NULL before */
    /* set by the plan function: the bytes of `work`, memory that the tasks of this call share,
     * 64-byte aligned */
    size_t work_bytes;
    void *work;
    /* set by the plan function: the bytes of memory that each worker thread has, an argument of
     * eval */
    size_t scratch_bytes;
    struct wf_report *report; /* used by the engine: wf_fail and wf_show write to it */
};

/* The meaning of an op. The way it runs is its kernel: kernel.h. */
struct wf_op {
    const char *name;
    /* how pictures draw the op: "matmul" "elementwise" "reduce" "shape" "index" "norm" "attention"
     * "loss" "random" "update" "constant" */
    const char *family;
    /* A formula for readers, "name(operands): value", in ASCII: "matmul(a, b, addend): a b +
     * addend". Debuggers and pages take the operands' names from it; an op with any number of
     * operands (arity -1) ends the list in "...". NULL: none */
    const char *formula;
    int arity;   /* number of operands; -1: any number from 1 to WF_MAX_OPERANDS */
    int results; /* 0 counts as 1 */
    size_t attr_bytes;
    /* Members of the attributes for readers, as they are declared: "double scale, double shift".
     * The types are double, int, int32_t, int64_t, unsigned, uint32_t, uint64_t and bool. NULL: not
     * shown */
    const char *attributes;

    /* Shape rule. Check the operands; set dtype, ndim and shape of each out (strides: leave 0 for
     * row-major, or set a permutation of it). False after wf_fail. Must not read data, nor change
     * anything else. */
    bool (*shape)(wf_call *c);

    /* Can out[0] be a view of in[0]'s memory, for the bound shapes? If so, set out[0].stride and
     * return the offset in elements. Otherwise return -1, and the kernel computes the result. An op
     * without a kernel (eval is NULL) must be a view: after -1 it is asked again with a row-major
     * copy of in[0]. NULL: never a view. */
    int64_t (*view)(wf_call *c);

    /* Gradient rule. For every operand with bit i set in need, record dx[i], the contribution of
     * this use to the operand's gradient (others may be set or not). y: result 0 of the node, y + k
     * result k. dy[k]: cotangent of result k, NULL if none. dx[i] may have the broadcast shape: the
     * engine sums it to the operand's shape. */
    void (*grad)(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need);

    /* Record the same results with other ops, on y's operands. results[k] may stay NULL for a saved
     * result that has no gradient. Tests compare the op with it. If grad is NULL, the gradient is
     * that of these ops. */
    void (*decompose)(wf_tensor *y, wf_tensor **results);

    /* Instead of grad and decompose: the reason why the gradient is zero or undefined. Recording a
     * gradient through this op is an error with this reason. */
    const char *no_grad;
    /* with no_grad: the gradient is zero, and recording one through the op is no error
     * (wf_detach, wf_round and the like) */
    bool detaches;
    /* bit i: it is no error if no gradient flows to operand i. Such an operand is never
     * differentiable (ids), or only in some graphs: a mask has a gradient only if it is added to
     * the scores. */
    uint32_t nondiff;

    uint32_t optional;   /* bit i: operand i may be NULL */
    uint32_t shape_only; /* bit i: only the shape of operand i is read, not its data */
    /* bit i: the op is an update of operand i, a leaf. It runs after all other readers of the leaf.
     * Its results cannot be operands. */
    uint32_t writes;

    const wf_kernel *run; /* NULL: the result is always a view */
};

/* Record a node. Returns result 0, or the graph's poison. A NULL operand is an error unless it is
 * optional. All operands must belong to one graph. The attributes are copied. */
WF_API wf_tensor *wf_record(const wf_op *op, int n_in, wf_tensor *const *in, const void *attrs);

/* Set the error message of the call, unless it has one, and return false. The engine adds the
 * module path and the op's name. */
WF_API bool wf_fail(const wf_call *c, const char *format, ...) WF_PRINTF(2, 3);

/* The shape of a view as "[B,T,512]", for messages. Returns one of a few rotating buffers of the
 * call. */
WF_API const char *wf_show(const wf_call *c, const wf_view *v);

/* ---- helpers for shape rules and kernels ----------------------------------------------------- */

WF_API int64_t wf_view_count(const wf_view *v); /* number of elements */
/* True if both have the same axes. */
WF_API bool wf_same_shape(const wf_view *a, const wf_view *b);
/* sets the other fields, such as data and strides, to 0 */
WF_API void wf_set_shape(wf_view *v, wf_dtype dtype, int ndim, const int64_t *shape);
/* returns false, after wf_fail, if the shapes do not broadcast */
WF_API bool wf_broadcast_shapes(wf_call *c, const wf_view *a, const wf_view *b, wf_view *out);
/* the axis counted from 0; a negative one counts from the end. Returns -1 if it is out of range */
WF_API int wf_axis(int axis, int ndim);

/* Divide [0, n) into nearly equal tasks of at most `grain`. Their number is a power of two, but at
 * most n. So ops with different grains are divided at the same places, and the rows that a worker
 * wrote are read by the same worker. Tasks of 1024 and more begin at multiples of 16, and may then
 * exceed `grain` by up to WF_TASK_MORE: scratch memory with something for each item needs room for
 * these, too. */
enum { WF_TASK_MORE = 15 };
static inline int64_t wf_task_count(int64_t n, int64_t grain) {
    int64_t count = 1;
    assert(n >= 0 && grain > 0);
    while (count < n && (n - 1) / count >= grain) {
        if (count > n / 2) return n;
        count *= 2;
    }
    return count;
}
static inline void wf_task_range(int64_t n, int64_t grain, int64_t task, int64_t *from,
                                 int64_t *to) {
    int64_t count = wf_task_count(n, grain);
    int64_t whole = n / count, left = n % count;
    int64_t mask = whole < 1024 ? -1 : ~(int64_t)WF_TASK_MORE;
    assert(task >= 0 && task < count);
    *from = (whole * task + left * task / count) & mask;
    *to = task + 1 == count ? n : (whole * (task + 1) + left * (task + 1) / count) & mask;
}

#ifdef __cplusplus
}
#endif
#endif
