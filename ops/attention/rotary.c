/* ops/attention/rotary.c - rotary positions (Su et al. 2021, "RoFormer", 3.2.2): at position p,
 * every pair of elements in a row of x, of width d, is rotated by an angle of its own:
 *
 *     (x1, x2) -> (x1 cos a - x2 sin a, x2 cos a + x1 sin a)     a = p / base^(2i/d), i < d/2
 *
 * Then the product of a query and a key depends only on the distance of their positions. The pairs
 * are elements i and i + d/2, or (interleaved, as in the paper) 2i and 2i + 1. The sines and
 * cosines of the positions are a table, an op of its own: layers share it. */
#include <math.h>

#include "core/compose.h"
#include "core/op_internal.h"
#include "ops/base/op_base.h"
#include "ops/base/scalars.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"

/* ---- rotary_table: ids [...] -> [..., 2, d]: rows of cosines, and of sines with their signs -- */

typedef struct table_attrs {
    int64_t dim; /* width of the table's rows; 0: the size of the last axis of `like` */
    double base;
    bool interleaved;
    /* the members of a wf_rotary_scaling */
    int scaling;
    double factor, low, high, original;
} table_attrs;

/* True if the scaling exists and its numbers are in range; otherwise false, after wf_fail. */
static bool scaling_ok(wf_call *c) {
    const table_attrs *a = c->attrs;
    if (a->scaling == WF_ROTARY_PLAIN) return true;
    if (a->scaling != WF_ROTARY_LINEAR && a->scaling != WF_ROTARY_LLAMA3)
        return wf_fail(c, "there is no scaling number %d", a->scaling);
    if (!(a->factor >= 1) || !isfinite(a->factor))
        return wf_fail(c, "the factor is %g, not 1 or more", a->factor);
    if (a->scaling == WF_ROTARY_LINEAR) return true;
    bool ok = a->low > 0 && a->low < a->high && isfinite(a->high) && a->original > 0 &&
              isfinite(a->original);
    return ok || wf_fail(c, "turns of %g to %g in %g positions are no range", a->low, a->high,
                         a->original);
}

static bool shape_rotary_table(wf_call *c) {
    const table_attrs *a = c->attrs;
    const wf_view *ids = &c->in[0], *like = &c->in[1];
    if (!wf_want(c, 0, WF_I32)) return false;
    if (like->ndim == 0) return wf_fail(c, "a scalar has no last axis");
    int64_t dim = like->ndim > 0 ? like->shape[like->ndim - 1] : a->dim;
    if (dim < 0 || dim % 2)
        return wf_fail(c, "a width of %lld does not divide into pairs", (long long)dim);
    if (!(a->base > 0) || !isfinite(a->base))
        return wf_fail(c, "base is %g, not above 0 and finite", a->base);
    if (ids->ndim > WF_MAX_DIMS - 2)
        return wf_fail(c, "ids of %d axes, at most %d", ids->ndim, WF_MAX_DIMS - 2);
    if (!scaling_ok(c)) return false;
    wf_view *y = &c->out[0];
    wf_set_shape(y, wf_real(c->graph), ids->ndim, ids->shape);
    y->shape[y->ndim++] = 2;
    y->shape[y->ndim++] = dim;
    return true;
}

static int64_t width_of(const wf_call *c) {
    return c->out[0].shape[c->out[0].ndim - 1];
}

static int64_t row_grain(int64_t width) {
    return width < WF_GRAIN ? WF_GRAIN / (width + 1) + 1 : 1;
}

/* The number that divides positions: the angle of pair i at position p is p / length. */
static double length_of(const table_attrs *a, int64_t i, int64_t width) {
    const double turn = 6.283185307179586; /* 2 pi */
    double length = wf_pow_of(a->base, 2 * (double)i / (double)width);
    if (a->scaling == WF_ROTARY_PLAIN) return length;
    if (a->scaling == WF_ROTARY_LINEAR) return length * a->factor;
    double turns = a->original / (turn * length);
    if (turns > a->high) return length;
    if (turns < a->low) return length * a->factor;
    double kept = (turns - a->low) / (a->high - a->low);
    return length / ((1 - kept) / a->factor + kept);
}

/* Scratch memory has wave lengths, angles, sines and cosines for the pairs of a row. */
static bool plan_rotary_table(wf_call *c, void *plan) {
    (void)plan;
    return wf_shape_bytes(WF_F64, 2, (int64_t[]){ 4, width_of(c) / 2 }, &c->scratch_bytes) ||
           wf_fail(c, "%s is too large", wf_show(c, &c->out[0]));
}

static int64_t tasks_rotary_table(const wf_call *c, int phase) {
    return phase == 0 ? wf_task_count(wf_view_count(&c->in[0]), row_grain(width_of(c))) : 0;
}

/* Writes the row of the table that begins at element `at` of y. */
static void put_row(const wf_view *y, int64_t at, int64_t pairs, bool interleaved,
                    const double *cosine, const double *sine) {
    int64_t apart = interleaved ? 1 : pairs, step = interleaved ? 2 : 1, sines = at + 2 * pairs;
    for (int64_t i = 0; i < pairs; i++) {
        int64_t k = i * step;
        wf_put(y, at + k, cosine[i]);
        wf_put(y, at + k + apart, cosine[i]);
        wf_put(y, sines + k, -sine[i]);
        wf_put(y, sines + k + apart, sine[i]);
    }
}

/* Angles, sines and cosines are computed in double, and rounded to the type of the table. */
static bool eval_rotary_table(const wf_call *c, int phase, int64_t task, void *scratch) {
    const table_attrs *a = c->attrs;
    const int32_t *ids = c->in[0].data;
    int64_t width = width_of(c), pairs = width / 2, from, to;
    double *length = scratch, *angle = length + pairs, *sine = angle + pairs,
           *cosine = sine + pairs;
    (void)phase;
    wf_task_range(wf_view_count(&c->in[0]), row_grain(width), task, &from, &to);
    for (int64_t i = 0; i < pairs; i++) length[i] = length_of(a, i, width);
    for (int64_t row = from; row < to; row++) {
        for (int64_t i = 0; i < pairs; i++) angle[i] = (double)ids[row] / length[i];
        wf_f64()->unary[WF_UNARY_sin](pairs, angle, sine);
        wf_f64()->unary[WF_UNARY_cos](pairs, angle, cosine);
        put_row(&c->out[0], row * 2 * width, pairs, a->interleaved, cosine, sine);
    }
    return true;
}

/* The wave lengths are written as a table of constants. */
static bool emit_rotary_table(wf_emitter *e, const wf_call *c) {
    const table_attrs *a = c->attrs;
    int64_t width = width_of(c), pairs = width / 2;
    if (wf_view_count(&c->out[0]) == 0) return true;
    wf_emit_text(e, "static const double length[] = {");
    for (int64_t i = 0; i < pairs; i++)
        wf_emit_text(e, i % 4 ? " %g," : "\n%g,", length_of(a, i, width));
    wf_emit_text(e, "\n};\nfor (int r = 0; r < %n; r++) {\n", wf_view_count(&c->in[0]));
    wf_emit_text(e, "float *cosine = out + r * %n, *sine = cosine + %n;\n", 2 * width, width);
    wf_emit_text(e, "for (int i = 0; i < %n; i++) {\n", pairs);
    wf_emit_text(e, "double angle_of = (double)ids[r] / length[i];\n");
    wf_emit_text(e, "int first = %s, second = first + %n;\n", a->interleaved ? "2 * i" : "i",
                 a->interleaved ? (int64_t)1 : pairs);
    wf_emit_text(e, "cosine[first] = cosine[second] = (float)cos_in_double(angle_of);\n");
    wf_emit_text(e, "sine[second] = (float)sin_in_double(angle_of);\n");
    wf_emit_text(e, "sine[first] = -sine[second];\n}\n}\n");
    return true;
}

/* Shapes: ids [...] i32, like [..., d] for its width, or absent -> real [..., 2, d].
 * Limits: d is even, and the base is above 0. Angles are computed in double. A scaling
 * makes them smaller. */
const wf_op wf_op_rotary_table = {
    .name = "rotary_table",
    .family = "constant",
    .formula = "rotary_table(ids, like): the cosines and sines of id / base^(2i/d)",
    .arity = 2,
    .attr_bytes = sizeof(table_attrs),
    .attributes = "int64_t dim, double base, bool interleaved, int scaling, double factor, "
                  "double low, double high, double original",
    .shape = shape_rotary_table,
    .no_grad = "it is a function of integers",
    .nondiff = 3,
    .optional = 1 << 1,
    .shape_only = 1 << 1,
    .run = &(const wf_kernel){ .plan = plan_rotary_table,
                               .tasks = tasks_rotary_table,
                               .eval = eval_rotary_table,
                               .emit = emit_rotary_table,
                               .strided = 1 << 1 },
};

wf_tensor *wf_rotary_table(wf_tensor *ids, int64_t dim, double base, bool interleaved,
                           const wf_rotary_scaling *scaling) {
    const wf_rotary_scaling s = scaling ? *scaling : (wf_rotary_scaling){ .kind = WF_ROTARY_PLAIN };
    const table_attrs a = { .dim = dim,
                            .base = base,
                            .interleaved = interleaved,
                            .scaling = (int)s.kind,
                            .factor = s.factor,
                            .low = s.low,
                            .high = s.high,
                            .original = s.original };
    return wf_record(&wf_op_rotary_table, 2, (wf_tensor *[]){ ids, NULL }, &a);
}

/* ---- rotate: x [..., T, d], table [..., T, 2, d] -> x rotated -------------------------------- */

typedef struct rotate_attrs {
    bool interleaved;
    /* true: multiply by the transposed rotations, which for cosines and sines rotate by the
     * negative angles */
    bool back;
} rotate_attrs;

/* The table's cosines, [..., T, d]. The sines of a row are stored d elements after them. */
static wf_view cosines_of(const wf_view *table) {
    wf_view v = *table;
    int last = --v.ndim - 1;
    v.shape[last] = v.shape[last + 1];
    v.stride[last] = v.stride[last + 1];
    return v;
}

static bool shape_rotate(wf_call *c) {
    const wf_view *x = &c->in[0], *table = &c->in[1];
    wf_view both;
    if (!wf_same_as_operand(c) || !wf_want_real(c, 1)) return false;
    if (x->ndim >= 1 && x->shape[x->ndim - 1] % 2)
        return wf_fail(c, "the width of %s does not divide into pairs", wf_show(c, x));
    bool fits = x->ndim >= 1 && table->ndim >= 2 && table->shape[table->ndim - 2] == 2 &&
                table->shape[table->ndim - 1] == x->shape[x->ndim - 1];
    if (fits) {
        wf_view cosines = cosines_of(table);
        if (!wf_broadcast_shapes(c, x, &cosines, &both)) return false;
        fits = wf_same_shape(&both, x);
    }
    return fits || wf_fail(c, "a table %s for %s", wf_show(c, table), wf_show(c, x));
}

static int64_t rows_of(const wf_view *x, int64_t *width) {
    int64_t rows;
    wf_view_rows(x, &rows, width);
    return rows;
}

static bool plan_rotate(wf_call *c, void *plan) {
    int64_t width = c->in[0].shape[c->in[0].ndim - 1];
    (void)plan;
    return wf_shape_bytes(c->in[0].dtype, 1, &width, &c->scratch_bytes) ||
           wf_fail(c, "%s is too large", wf_show(c, &c->in[0]));
}

static int64_t tasks_rotate(const wf_call *c, int phase) {
    int64_t width, rows = rows_of(&c->in[0], &width);
    return phase == 0 ? wf_task_count(rows, row_grain(width)) : 0;
}

/* n elements, `step` apart, as a row without gaps: in place, or copied to scratch. */
static const void *dense_row(const wf_view *x, int64_t at, int64_t step, int64_t n, void *scratch) {
    wf_view row = { .data = scratch, .dtype = x->dtype };
    if (step == 1) return wf_at(x, at);
    for (int64_t i = 0; i < n; i++) wf_put(&row, i, wf_get(x, at + i * step));
    return scratch;
}

static bool eval_rotate(const wf_call *c, int phase, int64_t task, void *scratch) {
    const rotate_attrs *a = c->attrs;
    const wf_view *x = &c->in[0], *table = &c->in[1], *y = &c->out[0], cosines = cosines_of(table);
    int64_t width, rows = rows_of(x, &width), from, to;
    wf_walk w;
    (void)phase;
    if (width == 0) return true;
    wf_task_range(rows, row_grain(width), task, &from, &to);
    wf_walk_start(&w, 3, (const wf_view *[]){ y, x, &cosines });
    assert(w.columns == width); /* rows of the cosines are 2 d apart, so that no rows are merged */
    wf_walk_seek(&w, from);
    for (int64_t row = from; row < to; row++, wf_walk_next(&w)) {
        const void *at = dense_row(x, w.at[1], w.step[1], width, scratch);
        WF_KERNEL(y->dtype, rotate(width, at, wf_at(table, w.at[2]), a->interleaved, a->back,
                                   wf_at(y, w.at[0])));
    }
    return true;
}

/* Both elements of a pair are read before one is written: y may be x. */
static bool emit_rotate(wf_emitter *e, const wf_call *c) {
    const rotate_attrs *a = c->attrs;
    wf_view cosines = cosines_of(&c->in[1]);
    wf_walk w;
    if (wf_view_count(&c->out[0]) == 0) return true;
    wf_walk_start(&w, 3, (const wf_view *[]){ &c->out[0], &c->in[0], &cosines });
    wf_emit_rows(e, &w, 'i');
    wf_emit_text(e, "for (int j = 0; j < %n; j++) {\n", w.columns / 2);
    wf_emit_text(e, "int first = %s, second = first + %n;\n", a->interleaved ? "2 * j" : "j",
                 a->interleaved ? (int64_t)1 : w.columns / 2);
    wf_emit_text(e, "const float *cosine = table + ");
    wf_emit_row_at(e, &w, 'i', 2);
    wf_emit_text(e, ", *sine = cosine + %n;\nfloat a = x[", w.columns);
    wf_emit_row_at(e, &w, 'i', 1);
    wf_emit_text(e, " + first * %n], b = x[", w.step[1]);
    wf_emit_row_at(e, &w, 'i', 1);
    wf_emit_text(e, " + second * %n];\nout[", w.step[1]);
    wf_emit_row_at(e, &w, 'i', 0);
    wf_emit_text(e, " + first] = multiply_add(a, cosine[first], b * sine[%s]);\nout[",
                 a->back ? "second" : "first");
    wf_emit_row_at(e, &w, 'i', 0);
    wf_emit_text(e, " + second] = multiply_add(b, cosine[second], a * sine[%s]);\n}\n",
                 a->back ? "first" : "second");
    return true;
}

/* x [..., d] with the two elements of each pair exchanged. */
static wf_tensor *partners(wf_tensor *x, bool interleaved) {
    int ndim = wf_rank(x), pair = interleaved ? ndim : ndim - 1;
    int64_t dims[WF_MAX_DIMS + 1] = { 0 };
    if (ndim == WF_MAX_DIMS) return wf_poison(x->graph, "rotate: a table's gradient, of 8 axes");
    dims[ndim - 1] = dims[ndim] = WF_REST;
    dims[pair] = 2;
    return wf_reshape_like(wf_flip(wf_reshape(x, ndim + 1, dims), WF_AXIS(pair)), x);
}

/* y = (x c) + (P x) s, where P exchanges the elements of each pair, c are the cosines and s the
 * sines. The transposed map (`back`) is y = x c + P (x s). So dx is dy rotated by the transposed
 * map, or if `back` is set, by the map itself. dc = dy x; ds = dy (P x), or if `back` x (P dy). */
static void grad_rotate(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    rotate_attrs a = *(const rotate_attrs *)y->attrs;
    wf_tensor *x = y->in[0], *shares[2];
    if (need & 2) {
        shares[0] = wf_mul(dy[0], x);
        shares[1] = a.back ? wf_mul(x, partners(dy[0], a.interleaved))
                           : wf_mul(dy[0], partners(x, a.interleaved));
        dx[1] = wf_stack(shares, 2, -2); /* [..., T, 2, d] */
    }
    a.back = !a.back;
    dx[0] = wf_record(&wf_op_rotate, 2, (wf_tensor *[]){ dy[0], y->in[1] }, &a);
}

static double flops_rotate(const wf_call *c) {
    return 3 * (double)wf_view_count(&c->in[0]);
}

/* Shapes: x [..., T, d] real, table [..., T, 2, d], which broadcasts -> y as x.
 * Limits: d is even. */
const wf_op wf_op_rotate = {
    .name = "rotate",
    .family = "attention",
    .formula =
        "rotate(x, table): y[i] = x[i] cos[i] + x[p] sin[i], with p the other element of the "
        "pair of i",
    .arity = 2,
    .attr_bytes = sizeof(rotate_attrs),
    .attributes = "bool interleaved, bool back",
    .shape = shape_rotate,
    .grad = grad_rotate,
    .run = &(const wf_kernel){ .plan = plan_rotate,
                               .tasks = tasks_rotate,
                               .eval = eval_rotate,
                               .emit = emit_rotate,
                               .flops = flops_rotate,
                               .strided = 1 << 0,
                               .in_place = 1 << 0 },
};

wf_tensor *wf_rotate(wf_tensor *x, wf_tensor *table, bool interleaved) {
    if (wf_rank(x) == 4 && wf_rank(table) == 4) table = wf_unsqueeze(table, WF_AXIS(1));
    return wf_record(&wf_op_rotate, 2, (wf_tensor *[]){ x, table },
                     &(rotate_attrs){ interleaved, false });
}

wf_tensor *wf_rotary(wf_tensor *x, wf_tensor *ids, double base, bool interleaved) {
    WF_COMPOSE("rotary", x, ids);
    wf_tensor *table = wf_record(&wf_op_rotary_table, 2, (wf_tensor *[]){ ids, x },
                                 &(table_attrs){ .base = base, .interleaved = interleaved });
    return wf_composed(wf_rotate(x, table, interleaved));
}
