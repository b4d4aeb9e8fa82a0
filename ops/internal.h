/* ops/internal.h - what the files of ops/ share: the kernel table of a type, walks over strided
 * views, and ops without a public constructor. Not for programs; they have op.h. */
#ifndef WEFT_OPS_INTERNAL_H
#define WEFT_OPS_INTERNAL_H

#include "core/plan/rewrite.h"
#include "ops.h"
#include "ops/kernels/kernels.h"

/* The functions of the rewrite rules. */
#define RULE(op, operand, inner, readers, function)                                                \
    bool function(wf_rewrite *r, const wf_tensor *outer, const wf_tensor *inner);
#include "rules.inc"
#undef RULE

/* Every op as wf_op_<name>. */
#define OP(name) extern const wf_op wf_op_##name;
#include "list.inc"
#undef OP

/* Call a member of the kernel table for f32 or f64: WF_KERNEL(type, exp(n, x, y)). Pointers are
 * passed as void *, so that one expression works for both types. */
#define WF_KERNEL(type, ...) ((type) == WF_F64 ? wf_f64()->__VA_ARGS__ : wf_f32()->__VA_ARGS__)

enum { WF_GRAIN = 16384 }; /* elements of a task, at most */
enum { WF_ROW_COST = 64 }; /* the overhead of a row, as a number of elements */

/* Element i (counted in the strides' unit) of a view's memory. */
static inline void *wf_at(const wf_view *v, int64_t i) {
    return (char *)v->data + i * (v->dtype == WF_F64 ? 8 : 4);
}
/* One element as a double, and back. */
double wf_get(const wf_view *v, int64_t i);
void wf_put(const wf_view *v, int64_t i, double value);
void wf_put_all(const wf_view *v, int64_t from, int64_t to, double value); /* elements [from, to) */

/* ---- shape rules ----------------------------------------------------------------------------- */

bool wf_want(wf_call *c, int i, wf_dtype type); /* fails the call unless operand i has this type */
bool wf_want_real(wf_call *c, int i);           /* ... the graph's real type */
/* ... and operand 0's shape, or (rows) the shape of its rows, one element for each */
bool wf_want_like(wf_call *c, int i, bool rows, const char *what);
/* Fails the call unless operand i is absent, or has operand 0's type and this shape. */
bool wf_addend_like(wf_call *c, int i, const wf_view *like);
bool wf_want_axis(wf_call *c, int axis, int ndim);      /* fails the call unless 0 <= axis < ndim */
bool wf_want_axes(wf_call *c, uint32_t axes, int ndim); /* fails the call if an axis is >= ndim */
bool wf_no_axes(wf_call *c, uint32_t axes, int ndim, const char *what); /* the same, for `what` */
bool wf_same_as_operand(wf_call *c);       /* a shape rule: out[0] is real and as operand 0 */
int wf_rank(const wf_tensor *x);           /* ndim; 0 for NULL */
int wf_pick_axis(int axis, int ndim);      /* a negative axis counts from the end */
uint32_t wf_axes(uint32_t axes, int ndim); /* axes counted from the end become plain bits */
wf_tensor *wf_zero(wf_tensor *x);          /* a real 0 in x's graph, shape [] */

/* For `view`: the result is the operand itself. */
static inline int64_t wf_same_memory(wf_call *c) {
    for (int i = 0; i < c->out[0].ndim; i++) c->out[0].stride[i] = c->in[0].stride[i];
    return 0;
}

/* ---- walks ----------------------------------------------------------------------------------- */

/* The stride of `small` along an axis of `large`, to which it broadcasts: 0 if it is repeated. */
int64_t wf_broadcast_stride(const wf_view *small, const wf_view *large, int axis);

/* A walk goes through the rows of several views together. Its shape is that of views[0], to which
 * the others broadcast. Axes that are contiguous in all views are merged, so that dense views of
 * one shape are a single row. */
enum { WF_WALKERS = 4 };
typedef struct wf_walk {
    int n;    /* views */
    int ndim; /* axes in front of the row's own, after merging */
    int64_t rows, columns;
    int64_t shape[WF_MAX_DIMS];              /* of those axes */
    int64_t stride[WF_WALKERS][WF_MAX_DIMS]; /* of each view along them, 0 where it broadcasts */
    int64_t step[WF_WALKERS];                /* of each view along a row */
    int64_t index[WF_MAX_DIMS];              /* of the current row */
    int64_t at[WF_WALKERS];                  /* offset of the current row in each view */
} wf_walk;
void wf_walk_start(wf_walk *w, int n, const wf_view *const *views); /* at row 0 */
void wf_walk_seek(wf_walk *w, int64_t row);
void wf_walk_next(wf_walk *w);

/* The elements of out[0] that belong to a task, in runs (consecutive elements) whose operands have
 * step 0 or 1 (only 1, unless `repeat`); operands with other strides are first copied to a buffer:
 *
 *     for (wf_runs_start(&r, c, task, true); wf_runs_next(&r);)
 *         kernel(r.n, r.in[0], r.step[0], ..., r.out); */
enum { WF_GATHERED = 256 };
typedef struct wf_runs {
    int64_t n; /* elements of this run */
    void *out;
    const void *in[WF_WALKERS - 1];
    int64_t step[WF_WALKERS - 1];
    const wf_call *call;
    bool repeat, gathers;
    int64_t column, left; /* position in the row; elements not yet returned */
    wf_walk walk;
    double gathered[WF_WALKERS - 1][WF_GATHERED];
} wf_runs;
void wf_runs_start(wf_runs *r, const wf_call *c, int64_t task, bool repeat);
bool wf_runs_next(wf_runs *r);
int64_t wf_elementwise_tasks(const wf_call *c, int phase); /* the tasks that wf_runs expects */
double wf_flops_of_operand(const wf_call *c);              /* one for each element of operand 0 */

/* out[0] = in[0] in row-major order, whatever the shapes; tasks as elementwise. */
bool wf_copy_eval(const wf_call *c, int phase, int64_t task, void *scratch);

/* The same if one of them is packed in panels: panels.c. */
int64_t wf_repack_tasks(const wf_call *c, int phase);
bool wf_repack_eval(const wf_call *c, int phase, int64_t task, void *scratch);
void wf_panel_row(const wf_view *x, int64_t row, void *out); /* a row of a matrix in panels */

/* out[0] = in[0] summed over the axes where out[0], aligned on the right, has size 1: reduce.c. */
extern const wf_kernel wf_sum_kernel;

/* ---- ops without a public constructor -------------------------------------------------------- */

wf_tensor *wf_gelu_slope(wf_tensor *x);      /* gelu' */
wf_tensor *wf_gelu_tanh_slope(wf_tensor *x); /* gelu_tanh' */
wf_tensor *wf_silu_slope(wf_tensor *x);      /* silu' */
/* zeros like the table, and dy[i, :] added to row ids[i] */
wf_tensor *wf_embedding_backward(wf_tensor *dy, wf_tensor *ids, wf_tensor *table);

/* Result k of the node whose result 0 is y, which may be poison. */
static inline wf_tensor *wf_result(wf_tensor *y, int k) {
    return y->op ? y + k : y;
}
/* x as a separate node, so that its gradient as one operand is separate from that as another. */
static inline wf_tensor *wf_alias(wf_tensor *x) {
    return wf_record(&wf_op_reshape_like, 2, (wf_tensor *[]){ x, x }, NULL);
}

/* For rules about a + y, a sum of gradients: replace it by the op of y, whose operand `addend` is
 * absent so far and becomes a. rules.c */
bool wf_fuse_addend(wf_rewrite *r, const wf_tensor *sum, const wf_tensor *y, int addend);

/* ---- ids: index.c, for update_rows.c --------------------------------------------------------- */

/* Fails the call unless operands i, i + 1, i + 2 are dy, ids and a table, as in
 * embedding_backward. */
bool wf_rows_fit(wf_call *c, int i);

/* Element i of ids; false, after wf_fail with its value and place, unless in 0..below - 1. */
bool wf_id_at(const wf_call *c, const wf_view *ids, int64_t i, int64_t below, int64_t *id);

/* ---- rows of the last axis: softmax.c, layer_norm.c, cross_entropy.c ------------------------- */

/* The rows of in[0], in tasks of about WF_GRAIN elements. */
int64_t wf_row_tasks(const wf_call *c, int phase);
void wf_row_range(const wf_call *c, int64_t task, int64_t *from, int64_t *to);

/* Fails the call unless the mask is absent, or real and broadcasts to x. The mask for a row of x;
 * NULL if absent. The number of columns that a causal mask leaves open in a row. */
bool wf_mask_fits(wf_call *c, const wf_view *mask, const wf_view *x);
const void *wf_mask_row(const wf_view *mask, const wf_view *x, int64_t row, int64_t *step);
int64_t wf_open_columns(bool causal, int64_t row, int64_t rows, int64_t columns);

/* ---- dropout.c, for attention.c -------------------------------------------------------------- */

typedef struct wf_drop_params { /* arguments of the kernel */
    double scale;
    uint32_t threshold;
    uint64_t key, stream;
} wf_drop_params;
wf_drop_params wf_drop_of(const wf_call *c, double rate, uint64_t site);
bool wf_want_rate(wf_call *c, double rate);             /* fails the call unless in [0, 1) */
uint64_t wf_site(const wf_tensor *x, const char *site); /* the scope and the site, as a number */
wf_tensor *wf_dropout_at(wf_tensor *x, double rate, uint64_t site);

#endif
