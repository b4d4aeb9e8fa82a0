/* ops/shape/scatter.c - writes elements where ids (i32) point along an axis. They are added
 * (scatter_add, the adjoint of gather), or the largest, the smallest, the product, or the last one
 * is kept. index_add and index_copy are composed of these.
 *
 * ids broadcast along all other axes. Each element of the result belongs to one task, which
 * combines the elements written there in the order of the ids. So the bits do not depend on the
 * number of threads. */
#include <string.h>

#include "core/compose.h"
#include "index.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"

/* ---- operands: src, ids, like, addend -------------------------------------------------------- */

/* All scatter ops combine src[i, k, j] with element [i, ids[i, k, j], j] of the addend, or of zeros
 * in the shape of `like`. */

enum { SRC, IDS, LIKE, ADDEND };

/* The loop over elements is compiled once for each way to combine, because a function call per
 * element takes twice as long. */
#define FOR_EACH_WAY static inline __attribute__((always_inline))

static bool shape_scatter(wf_call *c) {
    const int *axis = c->attrs;
    const wf_view *like = &c->in[LIKE];
    wf_view picked;
    if (!wf_want(c, IDS, WF_I32) || !wf_ids_fit(c, *axis, like, &c->in[IDS], &picked)) return false;
    if (!wf_same_shape(&c->in[SRC], &picked))
        return wf_fail(c, "src %s is not an element for each id: %s", wf_show(c, &c->in[SRC]),
                       wf_show(c, &picked));
    if (!wf_addend_like(c, ADDEND, like)) return false;
    wf_set_shape(&c->out[0], c->in[SRC].dtype, like->ndim, like->shape);
    return true;
}

static bool shape_scatter_real(wf_call *c) {
    return wf_want_real(c, SRC) && shape_scatter(c);
}

/* The axis that is divided into tasks: the largest one other than `axis`. So each element of the
 * result belongs to one task, which adds to it in the order of k. */
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
    int64_t one = size ? n / size : 0; /* elements in a step along the divided axis */
    return one >= WF_GRAIN ? 1 : WF_GRAIN / (one + 1);
}

static int64_t tasks_scatter(const wf_call *c, int phase) {
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

/* Combines x[i] with y[i], into y[i]. There are n elements, without gaps in both. */
typedef void combine(wf_dtype type, int64_t n, void *y, const void *x);

/* Call the kernel for more than one element. Combine a single element in C, because the call would
 * take longer than the work. */
#define COMBINE(type, n, y, x, kernel, one_of)                                                     \
    do {                                                                                           \
        if ((n) > 1)                                                                               \
            WF_KERNEL(type, kernel);                                                               \
        else if ((type) == WF_F64)                                                                 \
            *(double *)(y) = one_of(*(const double *)(y), *(const double *)(x));                   \
        else                                                                                       \
            *(float *)(y) = one_of(*(const float *)(y), *(const float *)(x));                      \
    } while (0)
#define ADDED(y, x) ((y) + (x))
#define MULTIPLIED(y, x) ((y) * (x))
/* The larger of y and x; NaN if either is. It takes one branch, which is predicted well because NaN
 * is rare, and one instruction. */
#define MORE(y, x) ((y) > (x) ? (y) : (x))
#define LARGER(y, x) ((y) != (y) ? (y) : MORE(y, x))

FOR_EACH_WAY void add(wf_dtype type, int64_t n, void *y, const void *x) {
    COMBINE(type, n, y, x, accumulate(n, x, y), ADDED);
}

FOR_EACH_WAY void take_larger(wf_dtype type, int64_t n, void *y, const void *x) {
    COMBINE(type, n, y, x, binary[WF_BINARY_maximum](n, y, 1, x, 1, y), LARGER);
}

FOR_EACH_WAY void multiply(wf_dtype type, int64_t n, void *y, const void *x) {
    COMBINE(type, n, y, x, binary[WF_BINARY_mul](n, y, 1, x, 1, y), MULTIPLIED);
}

FOR_EACH_WAY void replace(wf_dtype type, int64_t n, void *y, const void *x) {
    if (n > 1)
        memcpy(y, x, (size_t)n * wf_dtype_size(type));
    else if (type == WF_F64)
        memcpy(y, x, 8);
    else
        memcpy(y, x, 4);
}

/* The index of an element in src, for a message. `at` is its index in a slab. */
static int64_t place_in_src(const wf_call *c, const wf_view *src, int64_t at) {
    const wf_view *whole = &c->in[SRC];
    return at + ((const char *)src->data - (const char *)whole->data) /
                    (int64_t)wf_dtype_size(whole->dtype);
}

/* Distances, in elements, between neighbouring elements of a row of the walk: in src, in the ids,
 * in the result. along: from the element that an id k points to, to that of id k + 1. */
typedef struct steps {
    int64_t src, id, y, along;
} steps;

/* One row of the loop over all elements of src: its n elements, from offset `first` on; their ids,
 * which must be below `below`; and `to`, the element of the result that id 0 points to. */
typedef struct target {
    const wf_view *src;
    int64_t n, first, below;
    const int32_t *id;
    char *to;
} target;

/* Combines the elements of a row, one by one. type: WF_F64, or WF_F32 for all types of 4 bytes. */
FOR_EACH_WAY bool write_elements(const wf_call *c, target t, steps by, wf_dtype type,
                                 combine *with) {
    const int64_t size = type == WF_F64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
    const char *from = wf_at(t.src, t.first);
    for (int64_t j = 0; j < t.n; j++) {
        const int64_t i = t.id[j * by.id];
        if ((uint64_t)i >= (uint64_t)t.below) /* or below 0 */
            return wf_id_outside(c, i, &c->in[SRC], place_in_src(c, t.src, t.first + j * by.src),
                                 t.below);
        with(type, 1, t.to + (j * by.y + i * by.along) * size, from + j * by.src * size);
    }
    return true;
}

/* The type, and the steps along the last axis, are compiled as constants. */
FOR_EACH_WAY bool write_row(const wf_call *c, target t, steps by, wf_dtype type, combine *with) {
    const steps along_last = { 1, 1, 0, 1 };
    bool last = by.src == 1 && by.id == 1 && by.y == 0 && by.along == 1;
    if (type == WF_F64)
        return last ? write_elements(c, t, along_last, WF_F64, with)
                    : write_elements(c, t, by, WF_F64, with);
    return last ? write_elements(c, t, along_last, WF_F32, with)
                : write_elements(c, t, by, WF_F32, with);
}

FOR_EACH_WAY bool write_rows(const wf_call *c, const wf_view *src, const wf_view *ids,
                             const wf_view *y, combine *with) {
    const int *axis = c->attrs;
    int64_t below = y->shape[*axis], step = y->stride[*axis];
    wf_walk w;
    wf_ids_walk(&w, src, ids, y, *axis);
    bool whole = w.step[1] == 0 && w.step[0] == 1 && w.step[2] == 1; /* one id for a row */
    const steps by = { w.step[0], w.step[1], w.step[2], step };
    for (int64_t row = 0; row < w.rows; row++, wf_walk_next(&w)) {
        const int32_t *id = wf_at(ids, w.at[1]);
        if (!whole) {
            const target t = { src, w.columns, w.at[0], below, id, wf_at(y, w.at[2]) };
            if (!write_row(c, t, by, y->dtype, with)) return false;
            continue;
        }
        if (w.columns > 0 && (id[0] < 0 || id[0] >= below))
            return wf_id_outside(c, id[0], &c->in[SRC], place_in_src(c, src, w.at[0]), below);
        if (w.columns > 0)
            with(y->dtype, w.columns, wf_at(y, w.at[2] + id[0] * step), wf_at(src, w.at[0]));
    }
    return true;
}

FOR_EACH_WAY bool scatter(const wf_call *c, int phase, int64_t task, combine *with) {
    int axis = divided_axis(c);
    int64_t from = 0, to = 1;
    if (phase == 0) {
        wf_addend_or_zeros(c, ADDEND, task);
        return true;
    }
    if (axis >= 0) wf_task_range(c->out[0].shape[axis], slab_grain(c, axis), task, &from, &to);
    if (wf_view_count(&c->in[SRC]) == 0 || from >= to) return true;
    wf_view src = slab(&c->in[SRC], axis, from, to), ids = slab(&c->in[IDS], axis, from, to),
            y = slab(&c->out[0], axis, from, to);
    return write_rows(c, &src, &ids, &y, with);
}

/* Write loops that set an element of the result to the text `begin`, an element of src, and
 * `end`. */
static bool emit_writes(wf_emitter *e, const wf_call *c, const char *begin, const char *end) {
    const int *axis = c->attrs;
    const wf_view *y = &c->out[0];
    wf_walk w;
    wf_emit_may_fail(e);
    wf_emit_text(e, "for (int i = 0; i < %n; i++) out[i] = %s;\n", wf_view_count(y),
                 c->in[ADDEND].ndim >= 0 ? "addend[i]" : "0");
    if (wf_view_count(&c->in[SRC]) == 0) return true;
    wf_ids_walk(&w, &c->in[SRC], &c->in[IDS], y, *axis);
    wf_emit_rows(e, &w, 'i');
    wf_emit_text(e, "for (int j = 0; j < %n; j++) {\nint k = ids[", w.columns);
    wf_emit_element_at(e, &w, 1, "j");
    wf_emit_text(e, "];\nif (k < 0 || k >= %n) return 1;\n", y->shape[*axis]);
    wf_emit_text(e, "k = k * %n + ", y->stride[*axis]);
    wf_emit_element_at(e, &w, 2, "j");
    wf_emit_text(e, ";\nout[k] = %ssrc[", begin);
    wf_emit_element_at(e, &w, 0, "j");
    wf_emit_text(e, "]%s;\n}\n", end);
    return true;
}

#define EVAL(name, with, begin, end)                                                               \
    static bool emit_##name(wf_emitter *e, const wf_call *c) {                                     \
        return emit_writes(e, c, begin, end);                                                      \
    }                                                                                              \
    static bool eval_##name(const wf_call *c, int phase, int64_t task, void *scratch) {            \
        (void)scratch;                                                                             \
        return scatter(c, phase, task, with);                                                      \
    }
EVAL(scatter_add, add, "out[k] + ", "")
EVAL(scatter_max, take_larger, "max_of(out[k], ", ")")
EVAL(scatter_mul, multiply, "out[k] * ", "")
EVAL(scatter, replace, "", "")

/* The members that all scatter ops have in wf_op. */
#define SCATTER(name)                                                                              \
    .arity = 4, .attr_bytes = sizeof(int), .attributes = "int axis", .nondiff = 1 << IDS,          \
    .shape_only = 1 << LIKE, .run = &(const wf_kernel) {                                           \
        .tasks = tasks_scatter, .eval = eval_##name, .emit = emit_##name,                          \
        .flops = wf_flops_of_operand, .exclusive = true, .in_place = 1 << ADDEND                   \
    }

/* Records the op with x both as `like` and as the addend. */
static wf_tensor *onto(const wf_op *op, wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src) {
    axis = wf_pick_axis(axis, wf_rank(x));
    return wf_record(op, 4, (wf_tensor *[]){ src, ids, x, x }, &axis);
}

/* ---- scatter_add ----------------------------------------------------------------------------- */

/* The result is linear in both: the gradient of src is the cotangent's elements that it was added
 * to, and the gradient of the addend is the cotangent. */
static void grad_scatter_add(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const int *axis = y->attrs;
    if (need >> SRC & 1) dx[SRC] = wf_gather(dy[0], *axis, y->in[IDS]);
    dx[ADDEND] = dy[0];
}

/* Shapes: src real, as gather gives it; ids i32; like for its shape; addend as like, or absent ->
 * y as like.
 * Limits: An id out of range fails the run. Elements of one place are added in the order of the
 * ids. */
const wf_op wf_op_scatter_add = {
    .name = "scatter_add",
    .family = "index",
    .formula = "scatter_add(src, ids, like, addend): the addend or zeros, with src[i,k,j] added at "
               "[i,ids[i,k,j],j]",
    .shape = shape_scatter_real,
    .grad = grad_scatter_add,
    .optional = 1 << ADDEND,
    SCATTER(scatter_add),
};

wf_tensor *wf_scatter_like(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src) {
    axis = wf_pick_axis(axis, wf_rank(x));
    return wf_record(&wf_op_scatter_add, 4, (wf_tensor *[]){ src, ids, x, NULL }, &axis);
}

wf_tensor *wf_scatter_add(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src) {
    return onto(&wf_op_scatter_add, x, axis, ids, src);
}

/* ---- scatter_max ----------------------------------------------------------------------------- */

/* The derivative is 1 for an element that equals the result, and 0 for others. If several are
 * equal, dy is divided equally among them, as in max: the subgradient of least norm. */
static void grad_scatter_max(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const int *axis = y->attrs;
    wf_tensor *src = y->in[SRC], *ids = y->in[IDS], *x = y->in[ADDEND];
    wf_tensor *hit = wf_equal(src, wf_gather(y, *axis, ids)), *stays = wf_equal(x, y);
    wf_tensor *each = wf_div(dy[0], wf_scatter_add(stays, *axis, ids, hit));
    if (need >> SRC & 1) dx[SRC] = wf_mul(hit, wf_gather(each, *axis, ids));
    if (need >> ADDEND & 1) dx[ADDEND] = wf_mul(stays, each);
}

/* Shapes: src real, as gather gives it; ids i32; x as the result -> y as x.
 * Limits: An id out of range fails the run. A NaN is the largest. */
const wf_op wf_op_scatter_max = {
    .name = "scatter_max",
    .family = "index",
    .formula =
        "scatter_max(src, ids, like, addend): the largest of the addend and what src has for the "
        "element by ids",
    .shape = shape_scatter_real,
    .grad = grad_scatter_max,
    SCATTER(scatter_max),
};

/* ---- scatter_mul ----------------------------------------------------------------------------- */

/* The derivative with respect to x is the product of the elements of src written there. With
 * respect to an element of src it is the product of x and the others. That is 0 if one of the other
 * elements of src is 0. Else it is P / src, or P where src is 0. P is x times all elements of src
 * that are not 0. As in PyTorch, the second derivative takes zeros for constants. */
static void grad_scatter_mul(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const int *axis = y->attrs;
    wf_tensor *src = y->in[SRC], *ids = y->in[IDS], *x = y->in[ADDEND], *one = wf_fill(x, 1);
    if (need >> ADDEND & 1)
        dx[ADDEND] = wf_mul(dy[0], onto(&wf_op_scatter_mul, one, *axis, ids, src));
    if (need >> SRC & 1) {
        wf_tensor *zero = wf_equal(src, wf_zero(src));
        wf_tensor *safe = wf_where(zero, wf_fill(src, 1), src);
        wf_tensor *product = wf_mul(dy[0], onto(&wf_op_scatter_mul, x, *axis, ids, safe));
        wf_tensor *zeros = wf_gather(wf_scatter_like(x, *axis, ids, zero), *axis, ids);
        wf_tensor *others = wf_sub(zeros, zero); /* how many of the other factors are 0 */
        dx[SRC] = wf_where(others, wf_zero(src), wf_div(wf_gather(product, *axis, ids), safe));
    }
}

/* Shapes: src real, as gather gives it; ids i32; x as the result -> y as x.
 * Limits: An id out of range fails the run. Elements of one place are multiplied in the order of
 * the ids. */
const wf_op wf_op_scatter_mul = {
    .name = "scatter_mul",
    .family = "index",
    .formula =
        "scatter_mul(src, ids, like, addend): the addend times all that src has for the element by "
        "ids",
    .shape = shape_scatter_real,
    .grad = grad_scatter_mul,
    SCATTER(scatter_mul),
};

wf_tensor *wf_scatter_reduce(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src,
                             wf_scatter_reduction how) {
    WF_COMPOSE("scatter_reduce", x, ids, src);
    switch (how) {
    case WF_SCATTER_MAX:
        return wf_composed(onto(&wf_op_scatter_max, x, axis, ids, src));
    case WF_SCATTER_MUL:
        return wf_composed(onto(&wf_op_scatter_mul, x, axis, ids, src));
    case WF_SCATTER_MIN: {
        wf_tensor *negative = wf_neg(src);
        return wf_composed(wf_neg(onto(&wf_op_scatter_max, wf_neg(x), axis, ids, negative)));
    }
    }
    return wf_poison(x ? x->graph : NULL, "scatter_reduce: there is no reduction number %d",
                     (int)how);
}

/* ---- scatter --------------------------------------------------------------------------------- */

/* The index of each element of src along the axis, as i32 in the shape of src. */
static wf_tensor *numbers(wf_tensor *src, int axis) {
    uint32_t others = 0;
    for (int i = 0; i < src->ndim; i++)
        if (i != axis) others |= WF_AXIS(i);
    wf_tensor *number = wf_arange(src, axis); /* [K] */
    return wf_broadcast_to(others ? wf_unsqueeze(number, others) : number, src);
}

/* Only the last element written to a place has the derivative 1, or x if none was written. The last
 * one is found by scattering the elements' indices instead of the elements. */
static void grad_scatter(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const int *axis = y->attrs;
    wf_tensor *src = y->in[SRC], *ids = y->in[IDS], *x = y->in[ADDEND], *zero = wf_zero(x);
    wf_tensor *number = numbers(src, *axis);
    wf_tensor *none = wf_broadcast_to(wf_constant_i32(x->graph, -1), x);
    wf_tensor *last = wf_scatter(none, *axis, ids, number); /* -1: nothing was written */
    wf_tensor *stays = wf_less(last, wf_constant_i32(x->graph, 0));
    wf_tensor *is_last = wf_equal(number, wf_gather(last, *axis, ids));
    if (need >> SRC & 1) dx[SRC] = wf_where(is_last, wf_gather(dy[0], *axis, ids), zero);
    if (need >> ADDEND & 1) dx[ADDEND] = wf_where(stays, dy[0], zero);
}

/* Shapes: src of any type, as gather gives it; ids i32; x as the result -> y as x.
 * Limits: An id out of range fails the run. The last one that is written stays. */
const wf_op wf_op_scatter = {
    .name = "scatter",
    .family = "index",
    .formula = "scatter(src, ids, like, addend): the addend, with src[i,k,j] at [i,ids[i,k,j],j]",
    .shape = shape_scatter,
    .grad = grad_scatter,
    SCATTER(scatter),
};

wf_tensor *wf_scatter(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src) {
    return onto(&wf_op_scatter, x, axis, ids, src);
}

/* ---- composed of other ops: index_add, index_copy -------------------------------------------- */

wf_tensor *wf_index_add(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src) {
    WF_COMPOSE("index_add", x, ids, src);
    return wf_composed(wf_scatter_add(x, axis, wf_ids_of_axis("index_add", x, axis, ids), src));
}

wf_tensor *wf_index_copy(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src) {
    WF_COMPOSE("index_copy", x, ids, src);
    return wf_composed(wf_scatter(x, axis, wf_ids_of_axis("index_copy", x, axis, ids), src));
}
