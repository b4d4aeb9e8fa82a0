/* ops/shape/gather.c - elements picked by ids (i32) along any axis, and added there: gather and its
 * adjoint scatter_add; index_select, index_add and one_hot are made of them.
 *
 * Beside the axis ids broadcast, so that ids [K] select the same steps everywhere. An id out of
 * range fails the run, with a message that states the id and its place. Rows of a table are picked
 * in index.c. */
#include <string.h>

#include "index.h"
#include "ops/base/op.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"

/* Fails the call unless ids have the axes of x and, beside `axis`, its sizes or 1. Sets *picked to
 * the shape of what they pick. */
static bool ids_fit(wf_call *c, int axis, const wf_view *x, const wf_view *ids, wf_view *picked) {
    if (axis < 0 || axis >= x->ndim) return wf_no_axis(c, x, axis);
    bool fit = ids->ndim == x->ndim;
    for (int i = 0; fit && i < x->ndim; i++)
        fit = i == axis || ids->shape[i] == 1 || ids->shape[i] == x->shape[i];
    if (!fit)
        return wf_fail(c, "ids %s do not fit %s beside axis %d", wf_show(c, ids), wf_show(c, x),
                       axis);
    *picked = *x;
    picked->shape[axis] = ids->shape[axis];
    return true;
}

/* A walk through `picked`, the ids, and x without a step along the axis. */
static void start_walk(wf_walk *w, const wf_view *picked, const wf_view *ids, const wf_view *x,
                       int axis) {
    wf_view start = *x;
    start.shape[axis] = picked->shape[axis], start.stride[axis] = 0;
    wf_walk_start(w, 3, (const wf_view *[]){ picked, ids, &start });
}

/* y[j] = x[j * x_step + ids[j * id_step] * step] for n ids, all in range. */
#define PICK(size)                                                                                 \
    static void pick_##size(int64_t n, const int32_t *ids, int64_t id_step, const char *x,         \
                            int64_t x_step, int64_t step, char *y) {                               \
        for (int64_t j = 0; j < n; j++)                                                            \
            memcpy(y + j * (size), x + (j * x_step + ids[j * id_step] * step) * (size), size);     \
    }
PICK(4)
PICK(8)

/* The first of n ids that is not in [0, below); n if there is none. */
static int64_t first_outside(int64_t n, const int32_t *ids, int64_t step, int64_t below) {
    uint32_t limit = below > INT32_MAX ? (uint32_t)INT32_MAX + 1 : (uint32_t)below;
    int64_t outside = 0, j = 0;
    if (step == 0) return n == 0 || (uint32_t)ids[0] < limit ? n : 0;
    for (int64_t k = 0; k < n; k++) outside += (uint32_t)ids[k * step] >= limit;
    if (outside == 0) return n;
    while ((uint32_t)ids[j * step] < limit) j++;
    return j;
}

/* ---- gather: y[i, k, j] = x[i, ids[i, k, j], j] ---------------------------------------------- */

static bool shape_gather(wf_call *c) {
    const int *axis = c->attrs;
    wf_view picked;
    if (!wf_want(c, 1, WF_I32) || !ids_fit(c, *axis, &c->in[0], &c->in[1], &picked)) return false;
    wf_set_shape(&c->out[0], picked.dtype, picked.ndim, picked.shape);
    return true;
}

/* n elements of a row of the walk, from column j on; `at` is the number of the first. */
static bool gather_run(const wf_call *c, const wf_walk *w, int64_t at, int64_t j, int64_t n) {
    const int *axis = c->attrs;
    const wf_view *x = &c->in[0], *y = &c->out[0];
    const int32_t *ids = wf_at(&c->in[1], w->at[1]);
    int64_t below = x->shape[*axis], step = x->stride[*axis];
    size_t size = wf_dtype_size(x->dtype);
    const char *from = wf_at(x, w->at[2] + j * w->step[2]);
    ids += j * w->step[1];
    int64_t bad = first_outside(n, ids, w->step[1], below);
    if (bad < n) return wf_id_outside(c, ids[bad * w->step[1]], y, at + bad, below);
    if (w->step[1] == 0 && w->step[2] == 1) /* one id for the whole row */
        memcpy(wf_at(y, at), from + ids[0] * step * (int64_t)size, (size_t)n * size);
    else if (size == 8)
        pick_8(n, ids, w->step[1], from, w->step[2], step, wf_at(y, at));
    else
        pick_4(n, ids, w->step[1], from, w->step[2], step, wf_at(y, at));
    return true;
}

static bool eval_gather(const wf_call *c, int phase, int64_t task, void *scratch) {
    const int *axis = c->attrs;
    wf_walk w;
    int64_t from, to;
    (void)phase, (void)scratch;
    start_walk(&w, &c->out[0], &c->in[1], &c->in[0], *axis);
    wf_task_range(wf_view_count(&c->out[0]), WF_GRAIN, task, &from, &to);
    if (from >= to) return true;
    wf_walk_seek(&w, from / w.columns);
    for (int64_t j = from % w.columns, n; from < to; from += n, j = 0, wf_walk_next(&w)) {
        n = w.columns - j < to - from ? w.columns - j : to - from;
        if (!gather_run(c, &w, from, j, n)) return false;
    }
    return true;
}

/* An element that was picked n times gets the sum of n elements of dy. */
static void grad_gather(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const int *axis = y->attrs;
    (void)need;
    dx[0] = wf_scatter_like(y->in[0], *axis, y->in[1], dy[0]);
}

const wf_op wf_op_gather = {
    .name = "gather",
    .family = "index",
    .arity = 2,
    .attr_bytes = sizeof(int),
    .shape = shape_gather,
    .grad = grad_gather,
    .nondiff = 1 << 1,
    .run = &(const wf_kernel){ .tasks = wf_elementwise_tasks, .eval = eval_gather, .strided = 3 },
};

wf_tensor *wf_gather(wf_tensor *x, int axis, wf_tensor *ids) {
    axis = wf_pick_axis(axis, wf_rank(x));
    return wf_record(&wf_op_gather, 2, (wf_tensor *[]){ x, ids }, &axis);
}

/* ---- scatter_add(src, ids, like, addend) ----------------------------------------------------- */

/* Zeros in the shape of like, or the addend; and src[i, k, j] added to [i, ids[i, k, j], j]. */

enum { SRC, IDS, LIKE, ADDEND };

static bool shape_scatter_add(wf_call *c) {
    const int *axis = c->attrs;
    const wf_view *like = &c->in[LIKE];
    wf_view picked;
    if (!wf_want_real(c, SRC) || !wf_want(c, IDS, WF_I32) ||
        !ids_fit(c, *axis, like, &c->in[IDS], &picked))
        return false;
    if (!wf_same_shape(&c->in[SRC], &picked))
        return wf_fail(c, "src %s is not an element for each id: %s", wf_show(c, &c->in[SRC]),
                       wf_show(c, &picked));
    if (!wf_addend_like(c, ADDEND, like)) return false;
    wf_set_shape(&c->out[0], c->in[SRC].dtype, like->ndim, like->shape);
    return true;
}

/* The largest axis beside `axis` is divided into tasks, so that each element of the result is of
 * one task, which adds to it in the order of k. */
static int divided_axis(const wf_call *c) {
    const int *axis = c->attrs;
    const wf_view *y = &c->out[0];
    int best = -1;
    for (int i = 0; i < y->ndim; i++)
        if (i != *axis && (best < 0 || y->shape[i] > y->shape[best])) best = i;
    return best;
}

static int64_t slab_grain(const wf_call *c, int axis) {
    int64_t n = wf_view_count(&c->in[SRC]), size = c->out[0].shape[axis];
    int64_t one = size ? n / size : 0; /* elements of a step along the divided axis */
    return one >= WF_GRAIN ? 1 : WF_GRAIN / (one + 1);
}

static int64_t tasks_scatter_add(const wf_call *c, int phase) {
    int axis = divided_axis(c);
    if (phase == 0) return wf_elementwise_tasks(c, 0);
    if (phase > 1) return 0;
    return axis < 0 ? 1 : wf_task_count(c->out[0].shape[axis], slab_grain(c, axis));
}

static wf_view slab(const wf_view *v, int axis, int64_t from, int64_t to) {
    wf_view part = *v;
    if (axis < 0 || v->shape[axis] == 1) return part;
    part.shape[axis] = to - from;
    part.data = wf_at(v, from * v->stride[axis]);
    return part;
}

static void add_element(wf_dtype type, void *y, const void *x) {
    if (type == WF_F64)
        *(double *)y += *(const double *)x;
    else
        *(float *)y += *(const float *)x;
}

/* For a message: the number of an element of a slab of src in the whole. */
static int64_t place_in_src(const wf_call *c, const wf_view *src, int64_t at) {
    const wf_view *whole = &c->in[SRC];
    return at + ((const char *)src->data - (const char *)whole->data) /
                    (int64_t)wf_dtype_size(whole->dtype);
}

static bool add_rows(const wf_call *c, const wf_view *src, const wf_view *ids, const wf_view *y) {
    const int *axis = c->attrs;
    int64_t below = y->shape[*axis], step = y->stride[*axis];
    wf_walk w;
    start_walk(&w, src, ids, y, *axis);
    for (int64_t row = 0; row < w.rows; row++, wf_walk_next(&w)) {
        const int32_t *id = wf_at(ids, w.at[1]);
        bool same = w.step[1] == 0 && w.step[0] == 1 && w.step[2] == 1;
        for (int64_t j = 0; j < w.columns; j++) {
            int64_t i = id[j * w.step[1]];
            if (i < 0 || i >= below)
                return wf_id_outside(c, i, &c->in[SRC],
                                     place_in_src(c, src, w.at[0] + j * w.step[0]), below);
            void *to = wf_at(y, w.at[2] + j * w.step[2] + i * step);
            const void *from = wf_at(src, w.at[0] + j * w.step[0]);
            if (same) {
                WF_KERNEL(y->dtype, accumulate(w.columns, from, to));
                break;
            }
            add_element(y->dtype, to, from);
        }
    }
    return true;
}

static bool eval_scatter_add(const wf_call *c, int phase, int64_t task, void *scratch) {
    int axis = divided_axis(c);
    int64_t from = 0, to = 1;
    (void)scratch;
    if (phase == 0) {
        wf_addend_or_zeros(c, ADDEND, task);
        return true;
    }
    if (axis >= 0) wf_task_range(c->out[0].shape[axis], slab_grain(c, axis), task, &from, &to);
    if (wf_view_count(&c->in[SRC]) == 0 || from >= to) return true;
    wf_view src = slab(&c->in[SRC], axis, from, to), ids = slab(&c->in[IDS], axis, from, to),
            y = slab(&c->out[0], axis, from, to);
    return add_rows(c, &src, &ids, &y);
}

/* The result is linear: src gets the elements of the cotangent that it was added to, and the addend
 * all of it. */
static void grad_scatter_add(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const int *axis = y->attrs;
    if (need >> SRC & 1) dx[SRC] = wf_gather(dy[0], *axis, y->in[IDS]);
    dx[ADDEND] = dy[0];
}

const wf_op wf_op_scatter_add = {
    .name = "scatter_add",
    .family = "index",
    .arity = 4,
    .attr_bytes = sizeof(int),
    .shape = shape_scatter_add,
    .grad = grad_scatter_add,
    .nondiff = 1 << IDS,
    .optional = 1 << ADDEND,
    .shape_only = 1 << LIKE,
    .run = &(const wf_kernel){ .tasks = tasks_scatter_add,
                               .eval = eval_scatter_add,
                               .flops = wf_flops_of_operand,
                               .exclusive = true,
                               .in_place = 1 << ADDEND },
};

wf_tensor *wf_scatter_like(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src) {
    axis = wf_pick_axis(axis, wf_rank(x));
    return wf_record(&wf_op_scatter_add, 4, (wf_tensor *[]){ src, ids, x, NULL }, &axis);
}

wf_tensor *wf_scatter_add(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src) {
    axis = wf_pick_axis(axis, wf_rank(x));
    return wf_record(&wf_op_scatter_add, 4, (wf_tensor *[]){ src, ids, x, x }, &axis);
}

/* ---- of them: index_select, index_add, one_hot ----------------------------------------------- */

/* ids [K] as ids of every row of x: [1, ..., K, ..., 1]. */
static wf_tensor *of_axis(const char *op, wf_tensor *x, int axis, wf_tensor *ids) {
    int ndim = wf_rank(x), at = wf_axis(axis, ndim);
    char text[WF_AXIS_TEXT];
    if (!x || !ids) return NULL;
    if (at < 0)
        return wf_poison(x->graph, "%s: %d axes, and no %s", op, ndim, wf_axis_text(axis, text));
    if (ids->ndim != 1) return wf_poison(x->graph, "%s: ids of %d axes, not of 1", op, ids->ndim);
    return wf_unsqueeze(ids, wf_other_axes(at, ndim));
}

wf_tensor *wf_index_select(wf_tensor *x, int axis, wf_tensor *ids) {
    return wf_gather(x, axis, of_axis("index_select", x, axis, ids));
}

wf_tensor *wf_index_add(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src) {
    return wf_scatter_add(x, axis, of_axis("index_add", x, axis, ids), src);
}

wf_tensor *wf_one_hot(wf_tensor *ids, int64_t classes) {
    if (ids && wf_bound_later(classes))
        return wf_poison(ids->graph, "one_hot: %lld classes: a size that is bound later",
                         (long long)classes);
    if (ids && classes < 1)
        return wf_poison(ids->graph, "one_hot: %lld classes, not 1 or more", (long long)classes);
    wf_tensor *like = wf_expand(wf_unsqueeze(wf_zero(ids), WF_AXIS(0)), 1, &classes); /* [C] */
    return wf_equal(wf_unsqueeze(ids, WF_LAST_AXIS), wf_arange(like, 0));
}
