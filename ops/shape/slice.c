/* ops/shape/slice.c - slice and pad along an axis, and the adjoint unslice. See concat.c for what
 * joins tensors.
 *
 * Offsets are computed from attributes and bound sizes, not from recorded sizes, so that one node
 * works for every length. */
#include <stdio.h>
#include <string.h>

#include "ops/base/op_base.h"
#include "ops/base/panels.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"
#include "ops/rules.h"
#include "steps.h"

/* ---- writing ranges of an axis --------------------------------------------------------------- */

wf_target wf_target_of(const wf_call *c, int axis, int64_t task) {
    wf_target v = { .out = &c->out[0], .inner = 1 };
    for (int i = axis + 1; i < v.out->ndim; i++) v.inner *= v.out->shape[i];
    v.row = v.inner * v.out->shape[axis];
    wf_task_range(wf_view_count(v.out), WF_GRAIN, task, &v.from, &v.to);
    return v;
}

/* Writes `columns` elements in each of `rows` rows of the result, the first at element `to`. They
 * are copied from x, or added (v->add), from its element `from` on, with `width` elements of x for
 * each row. Width 0 repeats x's only element. */
static void fill_rows(const wf_target *v, int64_t to, int64_t rows, int64_t columns,
                      const wf_view *x, int64_t from, int64_t width) {
    if (v->add)
        for (int64_t r = 0; r < rows; r++)
            WF_KERNEL(x->dtype, accumulate(columns, wf_at(x, from + r * width),
                                           wf_at(v->out, to + r * v->row)));
    else
        wf_copy_rows(x->dtype, rows, columns, (wf_matrix){ wf_at(x, from), width, width > 0 },
                     (wf_matrix){ wf_at(v->out, to), v->row, 1 });
}

/* Write steps [begin, end) of the axis in the elements of this task. x has `width` elements for
 * each row; if width is 0, its only element is written everywhere. A task may begin and end inside
 * a row. */
static void write_steps(const wf_target *v, int64_t begin, int64_t end, const wf_view *x,
                        int64_t width) {
    int64_t start = begin * v->inner, columns = (end - begin) * v->inner;
    if (columns == 0 || v->from >= v->to) return;
    for (int64_t row = v->from / v->row, rows; row * v->row < v->to; row += rows) {
        int64_t left = row * v->row + start, right = left + columns;
        int64_t from = left > v->from ? left : v->from, to = right < v->to ? right : v->to;
        int64_t whole = (v->to - row * v->row) / v->row;
        rows = from == left && whole > 1 ? whole : 1;
        if (from < to)
            fill_rows(v, from, rows, to - from, x, width ? row * width + from - left : 0, width);
    }
}

void wf_fill_steps(const wf_target *v, int64_t begin, int64_t end, const wf_view *x) {
    write_steps(v, begin, end, x, (end - begin) * v->inner);
}

static void put_steps(const wf_target *v, int64_t begin, int64_t end, double value) {
    double memory;
    wf_view one = { .data = &memory, .dtype = v->out->dtype };
    wf_put(&one, 0, value);
    write_steps(v, begin, end, &one, 0);
}

/* ---- slice: [from, to) of an axis ------------------------------------------------------------ */

typedef struct slice {
    int axis;
    int64_t from, to;
} slice;

/* Computes the ends for an axis of size n: negative ends count from its end. */
static void resolve_ends(const slice *s, int64_t n, int64_t *from, int64_t *to) {
    *from = s->from < 0 ? s->from + n : s->from;
    *to = s->to == WF_END ? n : s->to < 0 ? s->to + n : s->to;
}

/* The ends as non-negative numbers. Fails the call if they are outside of the axis. */
static bool resolve(wf_call *c, const slice *s, const wf_view *x, int64_t *from, int64_t *to) {
    if (!wf_want_axis(c, s->axis, x->ndim)) return false;
    int64_t n = x->shape[s->axis];
    resolve_ends(s, n, from, to);
    if (*from >= 0 && *from <= *to && *to <= n) return true;
    char end[24] = "the end"; /* the end as the program wrote it */
    if (s->to != WF_END) snprintf(end, sizeof end, "%lld", (long long)s->to);
    if (wf_bound_later(s->from) || wf_bound_later(s->to))
        return wf_fail(c,
                       "%lld to %s of axis %d: a size that is bound later; WF_END is the end, "
                       "and negative numbers count from it",
                       (long long)s->from, end, s->axis);
    return wf_fail(c, "%lld to %s of axis %d, where %s has %lld", (long long)s->from, end, s->axis,
                   wf_show(c, x), (long long)n);
}

static bool shape_slice(wf_call *c) {
    const slice *s = c->attrs;
    const wf_view *x = &c->in[0];
    int64_t from, to;
    if (!resolve(c, s, x, &from, &to)) return false;
    wf_set_shape(&c->out[0], x->dtype, x->ndim, x->shape);
    c->out[0].shape[s->axis] = to - from;
    return true;
}

static int64_t view_slice(wf_call *c) {
    const slice *s = c->attrs;
    int64_t from = 0, to;
    resolve(c, s, &c->in[0], &from, &to); /* succeeds: the shape rule has checked it */
    memcpy(c->out[0].stride, c->in[0].stride, sizeof c->out[0].stride);
    return from * c->in[0].stride[s->axis];
}

/* x may be in panels if the slice takes whole panels of a matrix's rows. The panels of the widest
 * instruction set count, because which weights are kept in bf16 or int8 must not depend on
 * the processor. */
static uint32_t panels_slice(const wf_call *c) {
    const slice *s = c->attrs;
    const wf_view *x = &c->in[0], *y = &c->out[0];
    int64_t from = s->from < 0 ? s->from + x->shape[s->axis] : s->from, n = y->shape[s->axis];
    const int64_t whole = WF_PANEL_MOST;
    bool ends = from + n == x->shape[s->axis] || n % whole == 0;
    return x->ndim == 2 && s->axis == 0 && from % whole == 0 && ends;
}

static wf_tensor *unslice(wf_tensor *dy, wf_tensor *like, const slice *s);

/* Elements outside of the slice have gradient 0. */
static void grad_slice(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)need;
    dx[0] = unslice(dy[0], y->in[0], y->attrs);
}

/* Shapes: x of any type -> as x, with to - from steps along the axis.
 * Limits: A view. A negative bound counts from the end. Bounds beyond the axis fail. */
const wf_op wf_op_slice = {
    .name = "slice",
    .family = "shape",
    .formula = "slice(x): x[from:to] along the axis",
    .arity = 1,
    .attr_bytes = sizeof(slice),
    .attributes = "int axis, int64_t from, int64_t to",
    .shape = shape_slice,
    .view = view_slice,
    .grad = grad_slice,
    .run = &(const wf_kernel){ .panels = panels_slice, .strided = 1 },
};

wf_tensor *wf_slice(wf_tensor *x, int axis, int64_t from, int64_t to) {
    slice s = { wf_pick_axis(axis, wf_rank(x)), from, to };
    return wf_record(&wf_op_slice, 1, &x, &s);
}

/* ---- unslice(x, like, addend, more x...) ----------------------------------------------------- */

/* unslice adds every x, at the place of its slice, to the addend, or to zeros in the shape of
 * `like`. */

enum { UNSLICE_LIKE = 1, UNSLICE_ADDEND = 2, MAX_SLICES = 7 };

/* The slice of each x, all along one axis. Several slices are sorted and disjoint, and have no
 * negative ends. */
typedef struct unslice_attrs {
    int n;
    slice part[MAX_SLICES];
} unslice_attrs;

static int operand_of(int part) {
    return part == 0 ? 0 : UNSLICE_ADDEND + part;
}

static bool shape_unslice(wf_call *c) {
    const unslice_attrs *p = c->attrs;
    const wf_view *like = &c->in[UNSLICE_LIKE];
    for (int k = 0; k < p->n; k++) {
        const wf_view *x = &c->in[operand_of(k)];
        int64_t from, to;
        if (!wf_want(c, operand_of(k), c->in[0].dtype)) return false;
        if (!resolve(c, &p->part[k], like, &from, &to)) return false;
        wf_view part = *like;
        part.shape[p->part[k].axis] = to - from;
        if (!wf_same_shape(x, &part))
            return wf_fail(c, "%s is not that part of %s", wf_show(c, x), wf_show(c, like));
    }
    if (!wf_addend_like(c, UNSLICE_ADDEND, like)) return false;
    wf_set_shape(&c->out[0], c->in[0].dtype, like->ndim, like->shape);
    return true;
}

/* True if the result overwrites the addend. Then tasks divide only the parts, because otherwise
 * each of many slices of one tensor, such as the steps of a recurrent layer, would visit the whole
 * tensor. */
static bool unslices_in_place(const wf_call *c) {
    const wf_view *addend = &c->in[UNSLICE_ADDEND];
    return addend->ndim >= 0 && addend->data == c->out[0].data;
}

static int64_t tasks_unslice(const wf_call *c, int phase) {
    const unslice_attrs *p = c->attrs;
    int64_t most = 0;
    if (phase > 0 || !unslices_in_place(c)) return wf_elementwise_tasks(c, phase);
    for (int k = 0; k < p->n; k++) {
        int64_t n = wf_view_count(&c->in[operand_of(k)]);
        if (n > most) most = n;
    }
    return wf_task_count(most, WF_GRAIN);
}

/* Add elements [from, to) of x to the steps of the result from `begin` on. */
static void add_elements(const wf_target *v, int64_t begin, const wf_view *x, int64_t width,
                         int64_t from, int64_t to) {
    for (int64_t at = from, n; at < to; at += n) {
        int64_t row = at / width, column = at % width;
        n = width - column < to - at ? width - column : to - at;
        WF_KERNEL(x->dtype, accumulate(n, wf_at(x, at),
                                       wf_at(v->out, row * v->row + begin * v->inner + column)));
    }
}

static bool unslice_in_place(const wf_call *c, int64_t task) {
    const unslice_attrs *p = c->attrs;
    int axis = p->part[0].axis;
    wf_target v = wf_target_of(c, axis, task);
    for (int k = 0; k < p->n; k++) {
        const wf_view *x = &c->in[operand_of(k)];
        int64_t begin = p->part[k].from, from, to;
        if (begin < 0) begin += v.out->shape[axis];
        wf_task_range(wf_view_count(x), WF_GRAIN, task, &from, &to);
        add_elements(&v, begin, x, x->shape[axis] * v.inner, from, to);
    }
    return true;
}

static bool eval_unslice(const wf_call *c, int phase, int64_t task, void *scratch) {
    const unslice_attrs *p = c->attrs;
    if (unslices_in_place(c)) return unslice_in_place(c, task);
    const wf_view *addend = &c->in[UNSLICE_ADDEND];
    int axis = p->part[0].axis;
    wf_target v = wf_target_of(c, axis, task);
    int64_t n = v.out->shape[axis], filled = 0;
    (void)phase;
    (void)scratch;
    v.add = addend->ndim >= 0;
    if (v.add)
        memcpy(wf_at(v.out, v.from), wf_at(addend, v.from),
               (size_t)(v.to - v.from) * wf_dtype_size(v.out->dtype));
    for (int k = 0; k < p->n; k++) {
        const wf_view *x = &c->in[operand_of(k)];
        int64_t from = p->part[k].from < 0 ? p->part[k].from + n : p->part[k].from;
        if (!v.add) put_steps(&v, filled, from, 0);
        filled = from + x->shape[axis];
        wf_fill_steps(&v, from, filled, x);
    }
    if (!v.add) put_steps(&v, filled, n, 0);
    return true;
}

/* Each part is added to the result, which begins as zeros or as the addend. */
static bool emit_unslice(wf_emitter *e, const wf_call *c) {
    const unslice_attrs *p = c->attrs;
    const wf_view *addend = &c->in[UNSLICE_ADDEND];
    wf_target v = wf_target_of(c, p->part[0].axis, 0);
    int64_t size = v.out->shape[p->part[0].axis];
    wf_emit_text(e, "for (int i = 0; i < %n; i++) out[i] = %s;\n", wf_view_count(v.out),
                 addend->ndim >= 0 ? "addend[i]" : "0");
    for (int k = 0; k < p->n; k++) {
        const wf_view *x = &c->in[operand_of(k)];
        int64_t from = p->part[k].from < 0 ? p->part[k].from + size : p->part[k].from;
        int64_t width = x->shape[p->part[k].axis] * v.inner;
        if (!width) continue;
        wf_emit_text(e, "for (int i = 0; i < %n; i++)\nfor (int j = 0; j < %n; j++)\n",
                     wf_view_count(x) / width, width);
        wf_emit_text(e, "out[i * %n + %n + j] %s %s[i * %n + j];\n", v.row, from * v.inner,
                     addend->ndim >= 0 ? "+=" : "=", wf_emit_operand(e, operand_of(k)), width);
    }
    return true;
}

/* The result is linear in its operands: the gradient of x is the same slice of dy, and the gradient
 * of the addend is dy. */
static void grad_unslice(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const unslice_attrs *p = y->attrs;
    for (int k = 0; k < p->n; k++)
        if (need >> operand_of(k) & 1)
            dx[operand_of(k)] = wf_slice(dy[0], p->part[k].axis, p->part[k].from, p->part[k].to);
    dx[UNSLICE_ADDEND] = dy[0];
}

/* A sum of two unslices becomes one, if their slices are disjoint for all bound sizes. Then no
 * zeros are written and added. The gradient of a tensor that was cut into parts, such as queries,
 * keys and values, is assembled as by a concat. */
bool wf_fuse_unslices(wf_rewrite *r, const wf_tensor *sum, const wf_tensor *grad) {
    const wf_tensor *so_far = wf_rewritten(r, sum->in[0]);
    if (so_far->op != &wf_op_unslice || !wf_read_once(r, so_far)) return false;
    const unslice_attrs *had = so_far->attrs, *more = grad->attrs;
    const slice *s = &more->part[0];
    wf_tensor *in[MAX_SLICES + 2] = { NULL, so_far->in[UNSLICE_LIKE], NULL };
    unslice_attrs all = { .n = had->n + 1 };
    int at = 0;
    if (so_far->in[UNSLICE_LIKE] != grad->in[UNSLICE_LIKE] || so_far->in[UNSLICE_ADDEND] ||
        grad->in[UNSLICE_ADDEND] || had->n == MAX_SLICES || more->n > 1 ||
        s->axis != had->part[0].axis || s->from < 0 || s->to < 0)
        return false;
    for (int k = 0; k < had->n; k++) {
        const slice *h = &had->part[k];
        bool before = h->to <= s->from, after = s->to <= h->from;
        if (h->from < 0 || h->to < 0 || !(before || after)) return false;
        at += before;
    }
    for (int k = 0; k < all.n; k++) {
        bool added = k == at;
        int old = k - (k > at);
        all.part[k] = added ? *s : had->part[old];
        in[operand_of(k)] = added ? grad->in[0] : so_far->in[operand_of(old)];
    }
    return wf_replace(r, &wf_op_unslice, all.n + 2, in, &all);
}

bool wf_fuse_unslice_add(wf_rewrite *r, const wf_tensor *sum, const wf_tensor *grad) {
    return wf_fuse_addend(r, sum, grad, UNSLICE_ADDEND);
}

/* Shapes: x of the shape of that slice of like, real; addend as like, or absent -> y as like.
 * Limits: Several parts are slices of one axis, sorted, and do not overlap. */
const wf_op wf_op_unslice = {
    .name = "unslice",
    .family = "shape",
    .formula =
        "unslice(dy, like, addend, ...): zeros like `like` with dy added at the slices that were "
        "cut, + addend",
    .arity = -1,
    .attr_bytes = sizeof(unslice_attrs),
    .shape = shape_unslice,
    .grad = grad_unslice,
    .optional = 1 << UNSLICE_ADDEND,
    .shape_only = 1 << UNSLICE_LIKE,
    .run = &(const wf_kernel){ .tasks = tasks_unslice,
                               .eval = eval_unslice,
                               .emit = emit_unslice,
                               .exclusive = true,
                               .in_place = 1 << UNSLICE_ADDEND },
};

static wf_tensor *unslice(wf_tensor *dy, wf_tensor *like, const slice *s) {
    return wf_record(&wf_op_unslice, 3, (wf_tensor *[]){ dy, like, NULL },
                     &(unslice_attrs){ .n = 1, .part = { *s } });
}

/* ---- pad: steps of one value before and after ------------------------------------------------ */

typedef struct pad {
    int axis;
    int64_t before, after;
    double value;
} pad;

static bool shape_pad(wf_call *c) {
    const pad *p = c->attrs;
    const wf_view *x = &c->in[0];
    if (!wf_want_axis(c, p->axis, x->ndim)) return false;
    if (p->before < 0 || p->after < 0)
        return wf_fail(c, "%lld before and %lld after%s", (long long)p->before, (long long)p->after,
                       wf_bound_later(p->before) || wf_bound_later(p->after)
                           ? ": a size that is bound later cannot be a pad"
                           : "");
    if (p->before > INT32_MAX || p->after > INT32_MAX)
        return wf_fail(c, "a pad of %lld before and %lld after: at most 2^31 - 1 each",
                       (long long)p->before, (long long)p->after);
    wf_set_shape(&c->out[0], x->dtype, x->ndim, x->shape);
    c->out[0].shape[p->axis] += p->before + p->after;
    return true;
}

/* The number of bytes of short rows that are written at once, so that they stay in a first-level
 * cache until the steps after x are written, too. */
enum { AT_ONCE = 16 << 10 };

/* The end of the elements that are written at once, from v->from on: as many whole rows as fit into
 * AT_ONCE bytes, or for long rows everything up to `end`. */
static int64_t end_of_some(const wf_target *v, int64_t end) {
    int64_t some = AT_ONCE / (int64_t)wf_dtype_size(v->out->dtype);
    if (v->row > some / 2) return end;
    int64_t whole = (v->from + some) / v->row * v->row;
    return whole < end ? whole : end;
}

static bool eval_pad(const wf_call *c, int phase, int64_t task, void *scratch) {
    const pad *p = c->attrs;
    wf_target v = wf_target_of(c, p->axis, task);
    int64_t n = v.out->shape[p->axis], end = v.to;
    (void)phase;
    (void)scratch;
    for (; v.from < end; v.from = v.to) {
        v.to = end_of_some(&v, end);
        put_steps(&v, 0, p->before, p->value);
        wf_fill_steps(&v, p->before, n - p->after, &c->in[0]);
        put_steps(&v, n - p->after, n, p->value);
    }
    return true;
}

static bool emit_pad(wf_emitter *e, const wf_call *c) {
    const pad *p = c->attrs;
    wf_target v = wf_target_of(c, p->axis, 0);
    int64_t width = c->in[0].shape[p->axis] * v.inner,
            rows = v.row ? wf_view_count(v.out) / v.row : 0;
    if (c->out[0].dtype == WF_I32)
        wf_emit_text(e, "for (int i = 0; i < %n; i++) out[i] = %n;\n", wf_view_count(v.out),
                     (int64_t)p->value);
    else
        wf_emit_text(e, "for (int i = 0; i < %n; i++) out[i] = %f;\n", wf_view_count(v.out),
                     p->value);
    wf_emit_text(e, "for (int i = 0; i < %n; i++)\nfor (int j = 0; j < %n; j++)\n", rows, width);
    wf_emit_text(e, "out[i * %n + %n + j] = x[i * %n + j];\n", v.row, p->before * v.inner, width);
    return true;
}

/* The padding is constant, so dx is the slice of dy that x occupies. */
static void grad_pad(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const pad *p = y->attrs;
    (void)need;
    dx[0] = wf_slice(dy[0], p->axis, p->before, p->after ? -p->after : WF_END);
}

/* Shapes: x of any type -> as x, with before + after more steps along the axis.
 * Limits: before and after are 0 or more, and no extents. */
const wf_op wf_op_pad = {
    .name = "pad",
    .family = "shape",
    .formula = "pad(x): x with a value before and behind it along the axis",
    .arity = 1,
    .attr_bytes = sizeof(pad),
    .attributes = "int axis, int64_t before, int64_t after, double value",
    .shape = shape_pad,
    .grad = grad_pad,
    .run = &(const wf_kernel){ .tasks = wf_elementwise_tasks, .eval = eval_pad, .emit = emit_pad },
};

wf_tensor *wf_pad(wf_tensor *x, int axis, int64_t before, int64_t after, double value) {
    pad p = { wf_pick_axis(axis, wf_rank(x)), before, after, value };
    return wf_record(&wf_op_pad, 1, &x, &p);
}
