/* weft/core/op.h - how an op is written. Programs may define their own ops with this page.
 *
 * An op is one const struct that says what it means, with another that says how it runs (kernel.h).
 * The engine calls its functions:
 *   while recording   shape (on nominal sizes), later grad
 *   while planning    shape again on bound sizes, view, and what kernel.h says: without data
 *   while running     the kernel's tasks; eval, one task at a time, from any thread
 * Functions see calls, never tensors: a call is one node with its operands and results as views.
 * The same op must give the same bits whatever the number of threads: cut work by shape alone, and
 * give every sum one fixed order that depends on the reduced length only. */
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
    int ndim; /* -1: an optional operand that is absent */
    int64_t shape[WF_MAX_DIMS], stride[WF_MAX_DIMS];
    wf_layout layout; /* not row-major only where the kernel said so: `panels` of kernel.h */
} wf_view;

struct wf_call {
    const wf_op *op;
    const void *attrs;
    wf_graph *graph; /* for wf_real, wf_seed and names in messages: eval records nothing */
    int n_in, n_out;
    wf_view *in, *out;
    int64_t position; /* the extent P: rows already in the caches; 0 while recording */
    bool training;    /* the plan asked for dropout */
    bool with_state;  /* caches keep rows */
    uint64_t step;    /* wf_random_step */
    uint32_t micro_batch;
    const void *plan;  /* what the kernel's plan worked out; NULL while shapes are found */
    size_t work_bytes; /* set by plan: memory shared by the tasks of this call, 64-byte aligned */
    void *work;
    size_t scratch_bytes;     /* set by plan: memory of each worker, handed to eval */
    struct wf_report *report; /* where wf_fail and wf_show write; the engine's */
};

/* What an op means. How it runs is its kernel's: kernel.h. */
struct wf_op {
    const char *name;
    /* for pictures: "matmul" "elementwise" "reduce" "shape" "index" "norm" "attention" "loss"
     * "random" "update" "constant" */
    const char *family;
    int arity;   /* operands; -1: 1 to WF_MAX_OPERANDS */
    int results; /* 0 counts as 1 */
    size_t attr_bytes;

    /* Check operands; set dtype, ndim and shape of each out (strides: leave 0 for row-major, or set a
     * permutation of it). False after wf_fail. Must not look at data, nor change anything else. */
    bool (*shape)(wf_call *c);

    /* May out[0] be seen in in[0]'s memory, as bound? Then set out[0].stride and return the offset
     * in elements; else return -1, and the kernel computes it. NULL: never. */
    int64_t (*view)(wf_call *c);

    /* Record the share dx[i] of every operand with bit i set in need (others may be left or set, it
     * does not matter). y: result 0 of the node, y + k result k. dy[k]: cotangent of result k, NULL
     * if none. A share may have the broadcast shape: the engine sums it to the operand's. */
    void (*grad)(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need);

    /* Record the same results from other ops, on y's operands; results[k] may stay NULL for a saved
     * result that no one differentiates. Serves as picture, oracle, and (where grad is NULL)
     * derivative. */
    void (*decompose)(wf_tensor *y, wf_tensor **results);

    /* instead of grad and decompose: why the gradient is zero or undefined. To ask for one through
     * it is an error, which says this */
    const char *no_grad;
    bool detaches;  /* but for this op: it is there so that no gradient passes */
    uint32_t picks; /* bit i: operand i only says which (a mask, ids): a gradient does not flow to
                       it, and nobody misses one */

    uint32_t optional;   /* bit i: operand i may be NULL */
    uint32_t shape_only; /* bit i: only the shape of operand i is read; it keeps no data alive */
    uint32_t writes; /* bit i: an update. Operand i is a leaf and is written; runs after every other
                        reader of it. Results of an update are not operands of anything */

    const wf_kernel *run; /* NULL: the result is always a view */
};

/* Record a node. Returns result 0, or the graph's poison. NULL operands are errors unless optional.
 * The attributes are copied. Operands of one graph only. */
WF_API wf_tensor *wf_record(const wf_op *op, int n_in, wf_tensor *const *in, const void *attrs);

/* Keep a sentence for whoever asked for the call and return false. The engine adds the path and the
 * op's name. */
WF_API bool wf_fail(const wf_call *c, const char *format, ...) WF_PRINTF(2, 3);

/* A number for a node that draws random bits and has no name of its own: 0, 1, 2... of those
 * recorded under the present module path. */
WF_API uint32_t wf_next_site(wf_graph *g);

/* "[B,T,512]" of a view, for messages: one of a few rotating buffers of the call. */
WF_API const char *wf_show(const wf_call *c, const wf_view *v);

/* ---- helpers for shape rules and kernels ----------------------------------------------------- */

WF_API int64_t wf_view_count(const wf_view *v); /* elements */
WF_API size_t wf_view_unit(const wf_view *v);   /* bytes of an element in memory */
WF_API bool wf_view_dense(const wf_view *v);    /* row-major without gaps */
/* last axis, and the rest */
WF_API void wf_view_rows(const wf_view *v, int64_t *rows, int64_t *columns);
WF_API bool wf_same_shape(const wf_view *a, const wf_view *b);
WF_API void wf_dense_strides(int ndim, const int64_t *shape, int64_t *stride);
/* strides 0 */
WF_API void wf_set_shape(wf_view *v, wf_dtype dtype, int ndim, const int64_t *shape);
/* fails the call */
WF_API bool wf_broadcast_shapes(wf_call *c, const wf_view *a, const wf_view *b, wf_view *out);
/* -1 is the last; -1 returned: out of range */
WF_API int wf_axis(int axis, int ndim);

/* Checked sizes: false on overflow of int64_t / size_t. The one place where sizes are multiplied.
 */
WF_API bool wf_mul_size(int64_t a, int64_t b, int64_t *out);
WF_API bool wf_shape_bytes(wf_dtype dtype, int ndim, const int64_t *shape, size_t *out);

/* Cut [0, n) into equal tasks of at most `grain`: 1, 2, 4, 8... of them, as long as each has some.
 * Whatever their sizes, neighbouring ops are so cut at the same places, and rows that one worker
 * wrote are read by the same. Long tasks begin at multiples of 16. */
static inline int64_t wf_task_count(int64_t n, int64_t grain) {
    int64_t count = 1;
    assert(n >= 0 && grain > 0);
    while (count < n && (n - 1) / count >= grain) {
        if (count > n / 2) return n;
        count *= 2;
    }
    return count;
}
static inline int64_t wf_task_start(int64_t n, int64_t count, int64_t task) {
    assert(n >= 0 && task >= 0 && task <= count);
    int64_t at = n / count * task + n % count * task / count;
    return task == count || n / count < 1024 ? at : at & ~(int64_t)15;
}
static inline void wf_task_range(int64_t n, int64_t grain, int64_t task, int64_t *from,
                                 int64_t *to) {
    int64_t count = wf_task_count(n, grain);
    *from = wf_task_start(n, count, task);
    *to = wf_task_start(n, count, task + 1);
}

#ifdef __cplusplus
}
#endif
#endif
