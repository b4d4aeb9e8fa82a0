/* ops/base/walk.h - walks through the rows of several strided views. Not installed. */
#ifndef WEFT_OPS_BASE_WALK_H
#define WEFT_OPS_BASE_WALK_H

#include "core/op.h"

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

#endif
