/* ops/internal.h - what the files of ops/ share: the kernel table of a type, walks over strided
 * views, and the ops without a public constructor. Not for programs, which have op.h. */
#ifndef WEFT_OPS_INTERNAL_H
#define WEFT_OPS_INTERNAL_H

#include "core/plan/rewrite.h"
#include "ops.h"
#include "ops/kernels/kernels.h"

/* Rules: what a plan may run in place of what was recorded. */
#define RULE(op, operand, inner, readers, function)                                                \
    bool function(wf_rewrite *r, const wf_tensor *outer, const wf_tensor *taken);
#include "rules.inc"
#undef RULE

/* Every op as wf_op_<name>. */
#define OP(name) extern const wf_op wf_op_##name;
#include "list.inc"
#undef OP

/* A member of the kernel table for f32 or f64: WF_KERNEL(type, exp(n, x, y)). Pointers pass as
 * void, so that one expression serves both types. */
#define WF_KERNEL(type, ...) ((type) == WF_F64 ? wf_f64()->__VA_ARGS__ : wf_f32()->__VA_ARGS__)

enum { WF_GRAIN = 16384 }; /* elements of a task, at most: half as many are worth its start */
enum { WF_ROW_COST = 64 }; /* what a row costs beside its elements, in elements */

/* Element i (counted in the strides' unit) of a view's memory. */
static inline void *wf_at(const wf_view *v, int64_t i) {
    return (char *)v->data + i * (v->dtype == WF_F64 ? 8 : 4); /* asked for too often for a call */
}
/* One element as a double, and back. */
double wf_get(const wf_view *v, int64_t i);
void wf_put(const wf_view *v, int64_t i, double value);
void wf_put_all(const wf_view *v, int64_t from, int64_t to, double value); /* elements [from, to) */

/* ---- shape rules ----------------------------------------------------------------------------- */

bool wf_want(wf_call *c, int i, wf_dtype type); /* operand i has this type, or fail the call */
bool wf_want_real(wf_call *c, int i);           /* ... the graph's real type */
/* ... and operand 0's shape, or (rows) the shape of its rows, one element for each */
bool wf_want_like(wf_call *c, int i, bool rows, const char *what);
/* Operand i, if it is there, has operand 0's type and this shape. */
bool wf_addend_like(wf_call *c, int i, const wf_view *like);
bool wf_want_axis(wf_call *c, int axis, int ndim);      /* 0 <= axis < ndim, or fail the call */
bool wf_want_axes(wf_call *c, uint32_t axes, int ndim); /* no axis beyond ndim, or fail the call */
bool wf_no_axes(wf_call *c, uint32_t axes, int ndim, const char *what); /* the same; who lacks it */
bool wf_same_as_operand(wf_call *c);       /* a shape rule: out[0] is real and as operand 0 */
int wf_rank(const wf_tensor *x);           /* ndim; 0 for NULL */
int wf_pick_axis(int axis, int ndim);      /* from the end if negative; itself if out of range */
uint32_t wf_axes(uint32_t axes, int ndim); /* those counted from the end as plain bits */
wf_tensor *wf_zero(wf_tensor *x);          /* a real 0 in x's graph, shape [] */

/* What `view` answers when the result is the operand itself. */
static inline int64_t wf_same_memory(wf_call *c) {
    for (int i = 0; i < c->out[0].ndim; i++) c->out[0].stride[i] = c->in[0].stride[i];
    return 0;
}

/* ---- walks ----------------------------------------------------------------------------------- */

/* The stride of `small` along an axis of `large`, to which it broadcasts: 0 where it repeats. */
int64_t wf_broadcast_stride(const wf_view *small, const wf_view *large, int axis);

/* Several views seen as rows of one shape: views[0]'s, to which the others broadcast. Axes that
 * are contiguous in all views are merged, so that dense views of one shape are a single row. */
enum { WF_WALKERS = 4 };
typedef struct wf_walk {
    int n;    /* views */
    int ndim; /* axes left in front of the rows' own */
    int64_t rows, columns;
    int64_t shape[WF_MAX_DIMS];              /* of those axes */
    int64_t stride[WF_WALKERS][WF_MAX_DIMS]; /* of each view along them, 0 where it broadcasts */
    int64_t step[WF_WALKERS];                /* of each view along a row */
    int64_t index[WF_MAX_DIMS];              /* where the walk stands */
    int64_t at[WF_WALKERS];                  /* each view's element that begins the current row */
} wf_walk;
void wf_walk_start(wf_walk *w, int n, const wf_view *const *views); /* stands at row 0 */
void wf_walk_seek(wf_walk *w, int64_t row);
void wf_walk_next(wf_walk *w);

/* The elements of out[0] that belong to a task, in runs whose operands have step 0 or 1 (1 alone,
 * unless `repeat`); operands with other strides are gathered first. A loop over them:
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
    int64_t column, left; /* place in the row; elements not yet given */
    wf_walk walk;
    double gathered[WF_WALKERS - 1][WF_GATHERED];
} wf_runs;
void wf_runs_start(wf_runs *r, const wf_call *c, int64_t task, bool repeat);
bool wf_runs_next(wf_runs *r);
int64_t wf_elementwise_tasks(const wf_call *c, int phase); /* the tasks that wf_runs expects */
double wf_flops_of_operand(const wf_call *c);              /* one for each element of operand 0 */

/* out[0] = in[0] in row-major order, whatever the shapes; tasks as elementwise. */
bool wf_copy_eval(const wf_call *c, int phase, int64_t task, void *scratch);

/* The same where one of them lies in panels: panels.c. */
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
/* x as a node of its own, so that the share through one operand is told from that through
 * another. */
static inline wf_tensor *wf_alias(wf_tensor *x) {
    return wf_record(&wf_op_reshape_like, 2, (wf_tensor *[]){ x, x }, NULL);
}

/* a + share as the share's op, whose operand `addend` is absent so far: it becomes a. rules.c */
bool wf_begin_with(wf_rewrite *r, const wf_tensor *sum, const wf_tensor *share, int addend);

/* ---- ids: index.c, for update_rows.c --------------------------------------------------------- */

/* Operands i, i + 1, i + 2 are dy, ids and a table, as of embedding_backward; or fail the call. */
bool wf_rows_fit(wf_call *c, int i);

/* Element i of ids; false, after wf_fail with its value and place, unless in 0..below - 1. */
bool wf_id_at(const wf_call *c, const wf_view *ids, int64_t i, int64_t below, int64_t *id);

/* ---- rows of the last axis: softmax.c, layer_norm.c, cross_entropy.c ------------------------- */

/* The rows of in[0], in tasks of about WF_GRAIN elements. */
int64_t wf_row_tasks(const wf_call *c, int phase);
void wf_row_range(const wf_call *c, int64_t task, int64_t *from, int64_t *to);

/* The mask is absent, or real and broadcasts to x; a row of it as x sees it, NULL if absent. */
bool wf_mask_fits(wf_call *c, const wf_view *mask, const wf_view *x);
const void *wf_mask_row(const wf_view *mask, const wf_view *x, int64_t row, int64_t *step);
int64_t wf_open_columns(bool causal, int64_t row, int64_t rows, int64_t columns);

/* ---- dropout.c, for attention.c -------------------------------------------------------------- */

typedef struct wf_drop_params { /* what the kernel needs to know */
    double scale;
    uint32_t threshold;
    uint64_t key, stream;
} wf_drop_params;
wf_drop_params wf_drop_of(const wf_call *c, double rate, uint64_t site);
bool wf_want_rate(wf_call *c, double rate);             /* in [0, 1), or fail the call */
uint64_t wf_site(const wf_tensor *x, const char *site); /* the scope and the site, as a number */
wf_tensor *wf_dropout_at(wf_tensor *x, double rate, uint64_t site);

#endif
