/* ops/base/walk.c - walks over strided views: rows of views with any strides, over which a kernel
 * can loop. */
#include <assert.h>
#include <string.h>

#include "op.h"
#include "shapes.h"
#include "walk.h"

/* ---- walks ----------------------------------------------------------------------------------- */

int64_t wf_broadcast_stride(const wf_view *small, const wf_view *large, int axis) {
    int own = axis - (large->ndim - small->ndim);
    return own < 0 || small->shape[own] != large->shape[axis] ? 0 : small->stride[own];
}

static bool mergeable(const wf_walk *w, int64_t size, const int64_t *stride) {
    for (int v = 0; v < w->n; v++)
        if (w->stride[v][w->ndim - 1] != stride[v] * size) return false;
    return true;
}

void wf_walk_start(wf_walk *w, int n, const wf_view *const *views) {
    const wf_view *first = views[0];
    assert(n >= 1 && n <= WF_WALKERS);
    memset(w, 0, sizeof *w);
    w->n = n;
    for (int i = 0; i < first->ndim; i++) {
        int64_t size = first->shape[i], stride[WF_WALKERS];
        if (size == 1) continue;
        for (int v = 0; v < n; v++) stride[v] = wf_broadcast_stride(views[v], first, i);
        if (w->ndim > 0 && mergeable(w, size, stride))
            w->shape[w->ndim - 1] *= size;
        else
            w->shape[w->ndim++] = size;
        for (int v = 0; v < n; v++) w->stride[v][w->ndim - 1] = stride[v];
    }
    w->rows = w->columns = 1;
    for (int v = 0; v < n; v++) w->step[v] = 1;
    if (w->ndim == 0) return;
    w->columns = w->shape[--w->ndim]; /* the last axis left is the row */
    for (int v = 0; v < n; v++) w->step[v] = w->stride[v][w->ndim];
    for (int i = 0; i < w->ndim; i++) w->rows *= w->shape[i];
}

void wf_walk_seek(wf_walk *w, int64_t row) {
    memset(w->at, 0, sizeof w->at);
    for (int i = w->ndim - 1; i >= 0; i--) {
        if (w->shape[i] == 0) return;
        w->index[i] = row % w->shape[i];
        row /= w->shape[i];
        for (int v = 0; v < w->n; v++) w->at[v] += w->index[i] * w->stride[v][i];
    }
}

void wf_walk_next(wf_walk *w) {
    for (int i = w->ndim - 1; i >= 0; i--) {
        for (int v = 0; v < w->n; v++) w->at[v] += w->stride[v][i];
        if (++w->index[i] < w->shape[i]) return;
        for (int v = 0; v < w->n; v++) w->at[v] -= w->stride[v][i] * w->shape[i];
        w->index[i] = 0;
    }
}

/* ---- runs ------------------------------------------------------------------------------------ */

int64_t wf_elementwise_tasks(const wf_call *c, int phase) {
    return phase == 0 ? wf_task_count(wf_view_count(&c->out[0]), WF_GRAIN) : 0;
}

void wf_runs_start(wf_runs *r, const wf_call *c, int64_t task, bool repeat) {
    const wf_view *views[WF_WALKERS] = { &c->out[0] };
    int64_t from, to;
    assert(c->n_in < WF_WALKERS);
    for (int i = 0; i < c->n_in; i++) views[i + 1] = &c->in[i];
    r->call = c, r->repeat = repeat, r->n = 0;
    wf_walk_start(&r->walk, c->n_in + 1, views);
    wf_task_range(wf_view_count(&c->out[0]), WF_GRAIN, task, &from, &to);
    r->left = to - from;
    r->column = r->walk.columns ? from % r->walk.columns : 0;
    if (r->left > 0) wf_walk_seek(&r->walk, from / r->walk.columns);
    r->gathers = false;
    for (int i = 0; i < c->n_in; i++) {
        r->step[i] = r->walk.step[i + 1] == 0 && repeat ? 0 : 1;
        r->gathers |= r->walk.step[i + 1] != r->step[i];
    }
}

/* Copy n elements from x, `step` apart, to y. Works on bytes, for any type. */
static void gather_run(int64_t n, const char *x, int64_t step, size_t size, char *y) {
    if (size == 8)
        for (int64_t i = 0; i < n; i++) memcpy(y + i * 8, x + i * step * 8, 8);
    else
        for (int64_t i = 0; i < n; i++) memcpy(y + i * 4, x + i * step * 4, 4);
}

bool wf_runs_next(wf_runs *r) {
    wf_walk *w = &r->walk;
    const wf_call *c = r->call;
    r->left -= r->n;
    r->column += r->n;
    if (r->left <= 0) return false;
    if (r->column == w->columns) {
        r->column = 0;
        wf_walk_next(w);
    }
    r->n = w->columns - r->column < r->left ? w->columns - r->column : r->left;
    if (r->gathers && r->n > WF_GATHERED) r->n = WF_GATHERED;
    r->out = wf_at(&c->out[0], w->at[0] + r->column * w->step[0]);
    for (int i = 0; i < c->n_in; i++) {
        r->in[i] = wf_at(&c->in[i], w->at[i + 1] + r->column * w->step[i + 1]);
        if (w->step[i + 1] == r->step[i]) continue;
        gather_run(r->n, r->in[i], w->step[i + 1], wf_dtype_size(c->in[i].dtype),
                   (char *)r->gathered[i]);
        r->in[i] = r->gathered[i];
    }
    return true;
}

double wf_flops_of_operand(const wf_call *c) {
    return (double)wf_view_count(&c->in[0]);
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void copy_run(int64_t n, const char *x, int64_t x_step, char *y, int64_t y_step,
                     size_t size) {
    if (x_step == 1 && y_step == 1)
        memcpy(y, x, (size_t)n * size);
    else if (y_step == 1)
        gather_run(n, x, x_step, size, y);
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(y + i * y_step * (int64_t)size, x + i * x_step * (int64_t)size, size);
}

bool wf_copy_eval(const wf_call *c, int phase, int64_t task, void *scratch) {
    wf_view to = c->in[0];
    wf_walk w;
    int64_t from, end;
    (void)phase, (void)scratch;
    to.data = c->out[0].data; /* the result's memory, row-major, in the operand's shape */
    wf_dense_strides(to.ndim, to.shape, to.stride);
    wf_walk_start(&w, 2, (const wf_view *[]){ &to, &c->in[0] });
    wf_task_range(wf_view_count(&to), WF_GRAIN, task, &from, &end);
    if (from >= end) return true;
    wf_walk_seek(&w, from / w.columns);
    for (int64_t column = from % w.columns, n; from < end;
         from += n, column = 0, wf_walk_next(&w)) {
        n = w.columns - column < end - from ? w.columns - column : end - from;
        copy_run(n, wf_at(&c->in[0], w.at[1] + column * w.step[1]), w.step[1],
                 wf_at(&to, w.at[0] + column * w.step[0]), w.step[0], wf_dtype_size(to.dtype));
    }
    return true;
}
