/* ops/shape/gather.c - picks elements by ids (i32) along any axis; index_select and one_hot are
 * composed of it. Its adjoint is scatter_add (scatter.c).
 *
 * Along the other axes, ids of size 1 broadcast: ids [1,K,1] select the same K steps everywhere. An
 * id out of range fails the run, with a message that states the id and its place. index.c picks
 * rows of a table. */
#include <string.h>

#include "core/compose.h"
#include "index.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"

bool wf_ids_fit(wf_call *c, int axis, const wf_view *x, const wf_view *ids, wf_view *picked) {
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

void wf_ids_walk(wf_walk *w, const wf_view *picked, const wf_view *ids, const wf_view *x,
                 int axis) {
    wf_view start = *x;
    start.shape[axis] = picked->shape[axis];
    start.stride[axis] = 0;
    wf_walk_start(w, 3, (const wf_view *[]){ picked, ids, &start });
}

/* Picks from x: `rows` rows with n elements each. Steps of x along the axis are `step` elements
 * apart. */
typedef struct picks {
    const int32_t *ids;
    const char *x;
    char *y; /* without gaps */
    int64_t rows, n, id_row, id_step, x_row, x_step, step;
} picks;

/* y[r, j] = x[r * x_row + j * x_step + ids[r * id_row + j * id_step] * step], ids in range. */
#define PICK(size)                                                                                 \
    static inline __attribute__((always_inline)) void pick_by_##size(                              \
        const picks *p, int64_t id_step, int64_t x_step, int64_t step) {                           \
        const int32_t *ids = p->ids;                                                               \
        const char *x = p->x;                                                                      \
        char *y = p->y;                                                                            \
        for (int64_t r = 0; r < p->rows; r++, ids += p->id_row, x += p->x_row * (size))            \
            for (int64_t j = 0; j < p->n; j++, y += (size))                                        \
                memcpy(y, x + (j * x_step + ids[j * id_step] * step) * (size), size);              \
    }                                                                                              \
    static void pick_##size(const picks *p) {                                                      \
        if (p->id_step == 1 && p->x_step == 0 && p->step == 1) /* along the last axis */           \
            pick_by_##size(p, 1, 0, 1);                                                            \
        else                                                                                       \
            pick_by_##size(p, p->id_step, p->x_step, p->step);                                     \
    }
PICK(4)
PICK(8)

/* The index of the first of n ids that is not in [0, below); n if there is none. */
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
    if (!wf_want(c, 1, WF_I32) || !wf_ids_fit(c, *axis, &c->in[0], &c->in[1], &picked))
        return false;
    wf_set_shape(&c->out[0], picked.dtype, picked.ndim, picked.shape);
    return true;
}

/* The number of the first pick whose id is not in [0, below); rows * n if there is none. */
static int64_t first_bad(const picks *p, int64_t below) {
    int64_t n = p->n, rows = p->rows;
    if (p->id_row == n && p->id_step == 1) return first_outside(rows * n, p->ids, 1, below);
    for (int64_t r = 0; r < rows; r++) {
        int64_t bad = first_outside(n, p->ids + r * p->id_row, p->id_step, below);
        if (bad < n) return r * n + bad;
    }
    return rows * n;
}

/* Picks `rows` rows of n elements, from column j of the walk's row on. `at` is the index of the
 * first element in the result. */
static bool gather_rows(const wf_call *c, const wf_walk *w, int64_t at, int64_t j, int64_t rows,
                        int64_t n) {
    const int *axis = c->attrs;
    const wf_view *x = &c->in[0], *y = &c->out[0];
    int64_t below = x->shape[*axis], size = (int64_t)wf_dtype_size(x->dtype);
    picks p = { wf_at(&c->in[1], w->at[1] + j * w->step[1]),
                wf_at(x, w->at[2] + j * w->step[2]),
                wf_at(y, at),
                .rows = rows,
                .n = n,
                .id_row = rows > 1 ? wf_walk_row(w, 1) : 0,
                .id_step = w->step[1],
                .x_row = rows > 1 ? wf_walk_row(w, 2) : 0,
                .x_step = w->step[2],
                .step = x->stride[*axis] };
    int64_t bad = first_bad(&p, below);
    if (bad < rows * n)
        return wf_id_outside(c, p.ids[bad / n * p.id_row + bad % n * p.id_step], y, at + bad,
                             below);
    if (p.id_step == 0 && p.x_step == 1) /* one id for a whole row */
        for (int64_t r = 0; r < rows; r++)
            memcpy(p.y + r * n * size, p.x + (r * p.x_row + p.ids[r * p.id_row] * p.step) * size,
                   (size_t)(n * size));
    else if (size == 8)
        pick_8(&p);
    else
        pick_4(&p);
    return true;
}

static bool eval_gather(const wf_call *c, int phase, int64_t task, void *scratch) {
    const int *axis = c->attrs;
    wf_walk w;
    int64_t from, to;
    (void)phase;
    (void)scratch;
    wf_ids_walk(&w, &c->out[0], &c->in[1], &c->in[0], *axis);
    wf_task_range(wf_view_count(&c->out[0]), WF_GRAIN, task, &from, &to);
    if (from >= to) return true;
    wf_walk_seek(&w, from / w.columns);
    for (int64_t j = from % w.columns, n, rows; from < to; from += rows * n, j = 0) {
        n = w.columns - j < to - from ? w.columns - j : to - from;
        rows = n == w.columns ? wf_walk_ahead(&w, (to - from) / n) : 1;
        if (!gather_rows(c, &w, from, j, rows, n)) return false;
        wf_walk_skip(&w, rows);
    }
    return true;
}

static bool emit_gather(wf_emitter *e, const wf_call *c) {
    const int *axis = c->attrs;
    wf_walk w;
    wf_ids_walk(&w, &c->out[0], &c->in[1], &c->in[0], *axis);
    wf_emit_may_fail(e);
    wf_emit_rows(e, &w, 'i');
    wf_emit_text(e, "for (int j = 0; j < %n; j++) {\nint k = ids[", w.columns);
    wf_emit_element_at(e, &w, 1, "j");
    wf_emit_text(e, "];\nif (k < 0 || k >= %n) return 1;\nout[", c->in[0].shape[*axis]);
    wf_emit_element_at(e, &w, 0, "j");
    wf_emit_text(e, "] = x[");
    wf_emit_element_at(e, &w, 2, "j");
    wf_emit_text(e, " + k * %n];\n}\n", c->in[0].stride[*axis]);
    return true;
}

/* The gradient of an element that was picked n times is the sum of n elements of dy. */
static void grad_gather(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const int *axis = y->attrs;
    (void)need;
    dx[0] = wf_scatter_like(y->in[0], *axis, y->in[1], dy[0]);
}

/* Shapes: x [..., n, ...] of any type, ids i32 with as many axes: K along the axis, and along each
 * other axis x's size or 1 -> x with K instead of n.
 * Limits: An id outside of 0..n-1 fails the run, with its place in the message. */
const wf_op wf_op_gather = {
    .name = "gather",
    .family = "index",
    .formula = "gather(x, ids): y[i,k,j] = x[i,ids[i,k,j],j]",
    .arity = 2,
    .attr_bytes = sizeof(int),
    .attributes = "int axis",
    .shape = shape_gather,
    .grad = grad_gather,
    .nondiff = 1 << 1,
    .run =
        &(const wf_kernel){
            .tasks = wf_elementwise_tasks, .eval = eval_gather, .strided = 3, .emit = emit_gather },
};

wf_tensor *wf_gather(wf_tensor *x, int axis, wf_tensor *ids) {
    axis = wf_pick_axis(axis, wf_rank(x));
    return wf_record(&wf_op_gather, 2, (wf_tensor *[]){ x, ids }, &axis);
}

/* ---- composed of other ops: index_select, one_hot -------------------------------------------- */

wf_tensor *wf_ids_of_axis(const char *op, wf_tensor *x, int axis, wf_tensor *ids) {
    int ndim = wf_rank(x), at = wf_axis(axis, ndim);
    char text[WF_AXIS_TEXT];
    if (!x || !ids) return NULL;
    if (at < 0)
        return wf_poison(x->graph, "%s: %d axes, and no %s", op, ndim, wf_axis_text(axis, text));
    if (ids->ndim != 1) return wf_poison(x->graph, "%s: ids of %d axes, not of 1", op, ids->ndim);
    return wf_unsqueeze(ids, wf_other_axes(at, ndim));
}

wf_tensor *wf_index_select(wf_tensor *x, int axis, wf_tensor *ids) {
    WF_COMPOSE("index_select", x, ids);
    return wf_composed(wf_gather(x, axis, wf_ids_of_axis("index_select", x, axis, ids)));
}

wf_tensor *wf_one_hot(wf_tensor *ids, int64_t classes) {
    WF_COMPOSE("one_hot", ids);
    if (ids && wf_bound_later(classes))
        return wf_poison(ids->graph, "one_hot: %lld classes: a size that is bound later",
                         (long long)classes);
    if (ids && classes < 1)
        return wf_poison(ids->graph, "one_hot: %lld classes, not 1 or more", (long long)classes);
    wf_tensor *like = wf_expand(wf_unsqueeze(wf_zero(ids), WF_AXIS(0)), 1, &classes); /* [C] */
    return wf_composed(wf_equal(wf_unsqueeze(ids, WF_LAST_AXIS), wf_arange(like, 0)));
}
