/* ops/shape/resize.c - resizes an axis: y_i = sum over taps of w_ik x_j(i,k), where j and w depend
 * on the sizes and the options alone. Images are resized axis after axis, because bilinear and
 * bicubic weights are products.
 *
 * Element i lies at u = i (n - 1) / (m - 1) of the operand's axis if corners are aligned, else at
 * (i + 1/2) n / m - 1/2; n elements become m. With a scale s, 1 / s stands for n / m. Nearest: the
 * element at floor(i n / m), or at floor((i + 1/2) n / m). Linear: the two beside u, by distance.
 * Cubic: four, by the convolution kernel of Keys (1981) with a = -3/4. Beyond each end, the axis
 * continues with the element at that end. All of this is as in torch.nn.functional.interpolate. */
#include <math.h>
#include <string.h>

#include "core/compose.h"
#include "core/op_internal.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"

enum { TAPS = 4 };

typedef struct resize {
    int axis;
    /* size of the result; 0: that of the same axis of `like` (operand 1), or by the scale */
    int64_t size;
    double scale; /* 0: none */
    wf_resize_mode mode;
    bool align_corners;
} resize;

/* ---- where elements come from ---------------------------------------------------------------- */

typedef struct tap_list { /* the taps of an element of the result */
    int64_t from[TAPS];
    double weight[TAPS];
} tap_list;

static int tap_count(wf_resize_mode mode) {
    return mode == WF_RESIZE_CUBIC ? 4 : mode == WF_RESIZE_LINEAR ? 2 : 1;
}

static int64_t within(int64_t i, int64_t n) {
    return i < 0 ? 0 : i < n ? i : n - 1;
}

/* Keys' kernel at distances 1 + t, t, 1 - t, 2 - t, a = -3/4. */
static void cubic_weights(double t, double *w) {
    const double a = -0.75;
    double far = t + 1, near = 1 - t, last = 2 - t;
    w[0] = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * near - (a + 3)) * near * near + 1;
    w[3] = ((a * last - 5 * a) * last + 8 * a) * last - 4 * a;
}

static tap_list taps_of(const resize *r, int64_t i, int64_t n, int64_t m) {
    tap_list t = { { 0 }, { 1 } };
    double ratio = r->scale != 0 ? 1 / r->scale : (double)n / (double)m, u;
    if (r->mode == WF_RESIZE_NEAREST || r->mode == WF_RESIZE_NEAREST_EXACT) {
        double half = r->mode == WF_RESIZE_NEAREST ? 0 : 0.5;
        /* a quotient of integers is rounded down exactly: floor(i n / m) of doubles below 2^53 */
        u = r->scale != 0 ? ((double)i + half) * ratio : ((double)i + half) * (double)n / (double)m;
        t.from[0] = within((int64_t)u, n);
        return t;
    }
    if (r->align_corners)
        u = m > 1 ? (double)i * (double)(n - 1) / (double)(m - 1) : 0;
    else if (r->mode == WF_RESIZE_LINEAR && n == m)
        /* a scale that does not change the size leaves elements unchanged in PyTorch */
        u = (double)i;
    else
        u = ((double)i + 0.5) * ratio - 0.5;
    if (r->mode == WF_RESIZE_LINEAR && u < 0) u = 0;
    double below = floor(u), part = u - below;
    int first = r->mode == WF_RESIZE_CUBIC ? -1 : 0;
    for (int k = 0; k < tap_count(r->mode); k++) t.from[k] = within((int64_t)below + first + k, n);
    t.weight[0] = 1 - part;
    t.weight[1] = part;
    if (r->mode == WF_RESIZE_CUBIC) cubic_weights(part, t.weight);
    return t;
}

/* ---- shapes: [outer, n or m, inner] ---------------------------------------------------------- */

typedef struct sides {
    int64_t outer, n, m, inner;
} sides;

static sides sides_of(const resize *r, const wf_view *x, const wf_view *y) {
    sides s = { 1, x->shape[r->axis], y->shape[r->axis], 1 };
    for (int i = 0; i < r->axis; i++) s.outer *= x->shape[i];
    for (int i = r->axis + 1; i < x->ndim; i++) s.inner *= x->shape[i];
    return s;
}

static bool new_size(wf_call *c, const resize *r, const wf_view *x, const wf_view *like,
                     int64_t *size) {
    if (like->ndim >= 0) {
        if (r->axis >= like->ndim) return wf_no_axis(c, like, r->axis);
        *size = like->shape[r->axis];
    } else {
        double scaled =
            r->scale != 0 ? floor((double)x->shape[r->axis] * r->scale) : (double)r->size;
        if (!(scaled >= 1 && scaled <= INT32_MAX))
            return wf_fail(c, "axis %d of %s to a size of %g, not from 1 to 2^31 - 1", r->axis,
                           wf_show(c, x), scaled);
        *size = (int64_t)scaled;
    }
    return (x->shape[r->axis] > 0 || *size == 0) ||
           wf_fail(c, "axis %d of %s has nothing to resize", r->axis, wf_show(c, x));
}

static bool shape_resize(wf_call *c) {
    const resize *r = c->attrs;
    const wf_view *x = &c->in[0];
    int64_t size = 0;
    if (!wf_want_real(c, 0) || !wf_want_axis(c, r->axis, x->ndim)) return false;
    if (r->mode < WF_RESIZE_NEAREST || r->mode > WF_RESIZE_CUBIC)
        return wf_fail(c, "a mode of %d, which does not exist", (int)r->mode);
    if (!new_size(c, r, x, &c->in[1], &size)) return false;
    wf_set_shape(&c->out[0], x->dtype, x->ndim, x->shape);
    c->out[0].shape[r->axis] = size;
    return true;
}

/* dy has the shape of x except along the axis. */
static bool shape_backward(wf_call *c) {
    const resize *r = c->attrs;
    const wf_view *dy = &c->in[0], *like = &c->in[1];
    if (!wf_want_real(c, 0) || !wf_want_axis(c, r->axis, like->ndim)) return false;
    wf_view expected = *like;
    if (dy->ndim == like->ndim) expected.shape[r->axis] = dy->shape[r->axis];
    if (!wf_same_shape(dy, &expected) || (dy->shape[r->axis] > 0 && like->shape[r->axis] == 0))
        return wf_fail(c, "%s is not resized along axis %d to %s", wf_show(c, like), r->axis,
                       wf_show(c, dy));
    wf_set_shape(&c->out[0], dy->dtype, like->ndim, like->shape);
    return true;
}

/* ---- tasks: phase 0 lists the taps, phase 1 computes ----------------------------------------- */

static bool plan_taps(wf_call *c, int64_t m) {
    return wf_shape_bytes(WF_F64, 2, (int64_t[]){ m, sizeof(tap_list) / sizeof(double) },
                          &c->work_bytes) ||
           wf_fail(c, "%s is too large", wf_show(c, &c->out[0]));
}

static void list_taps(const resize *r, const sides *s, tap_list *taps) {
    for (int64_t i = 0; i < s->m; i++) taps[i] = taps_of(r, i, s->n, s->m);
}

static bool plan_resize(wf_call *c, void *plan) {
    const resize *r = c->attrs;
    (void)plan;
    return plan_taps(c, c->out[0].shape[r->axis]);
}

static int64_t rows_together(const sides *s) {
    return s->inner >= WF_GRAIN ? 1 : WF_GRAIN / (s->inner + 1) + 1;
}

static int64_t tasks_resize(const wf_call *c, int phase) {
    sides s = sides_of(c->attrs, &c->in[0], &c->out[0]);
    if (phase > 1) return 0;
    return phase == 0 ? 1 : wf_task_count(s.outer * s.m, rows_together(&s));
}

/* A row of y is the sum of weight times a row of x, in the order of the taps. */
#define WEIGH(real)                                                                                \
    static void weigh_##real(int64_t n, int taps, const tap_list *t, const real *x, real *y) {     \
        for (int k = 0; k < taps; k++) {                                                           \
            const real w = (real)t->weight[k], *from = x + t->from[k] * n;                         \
            for (int64_t j = 0; j < n; j++) y[j] = k ? y[j] + w * from[j] : w * from[j];           \
        }                                                                                          \
    }                                                                                              \
    /* Computes elements [from, to) of y, if the axis is the last one. */                          \
    static inline __attribute__((always_inline)) void weigh_axis_##real(                           \
        int64_t from, int64_t to, int taps, const sides *s, const tap_list *list, const real *x,   \
        real *y) {                                                                                 \
        for (int64_t i = from, end; i < to; i = end) {                                             \
            const int64_t row = i / s->m;                                                          \
            const real *source = x + row * s->n;                                                   \
            const tap_list *t = list + i % s->m;                                                   \
            end = (row + 1) * s->m < to ? (row + 1) * s->m : to;                                   \
            for (int64_t j = i; j < end; j++, t++) {                                               \
                real sum = (real)t->weight[0] * source[t->from[0]];                                \
                for (int k = 1; k < taps; k++) sum += (real)t->weight[k] * source[t->from[k]];     \
                y[j] = sum;                                                                        \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void spread_##real(int64_t n, int taps, const tap_list *t, const real *dy, real *dx) {  \
        for (int k = 0; k < taps; k++) {                                                           \
            const real w = (real)t->weight[k];                                                     \
            real *to = dx + t->from[k] * n;                                                        \
            for (int64_t j = 0; j < n; j++) to[j] += w * dy[j];                                    \
        }                                                                                          \
    }
WEIGH(float)
WEIGH(double)

/* Bilinear images have two taps: their loop is compiled for this number. */
#define WEIGH_AXIS(real, ...)                                                                      \
    (taps == 2 ? weigh_axis_##real(from, to, 2, __VA_ARGS__)                                       \
               : weigh_axis_##real(from, to, taps, __VA_ARGS__))

static void weigh_last_axis(const sides *s, int taps, const tap_list *list, const wf_view *x,
                            const wf_view *y, int64_t from, int64_t to) {
    if (x->dtype == WF_F64)
        WEIGH_AXIS(double, s, list, x->data, y->data);
    else
        WEIGH_AXIS(float, s, list, x->data, y->data);
}

static bool eval_resize(const wf_call *c, int phase, int64_t task, void *scratch) {
    const resize *r = c->attrs;
    const wf_view *x = &c->in[0], *y = &c->out[0];
    sides s = sides_of(r, x, y);
    int taps = tap_count(r->mode);
    tap_list *list = c->work;
    int64_t from, to;
    (void)scratch;
    if (phase == 0) {
        list_taps(r, &s, list);
        return true;
    }
    wf_task_range(s.outer * s.m, rows_together(&s), task, &from, &to);
    if (s.inner == 1) {
        weigh_last_axis(&s, taps, list, x, y, from, to);
        return true;
    }
    for (int64_t row = from; row < to; row++) {
        const void *image = wf_at(x, row / s.m * s.n * s.inner);
        void *result = wf_at(y, row * s.inner);
        if (x->dtype == WF_F64)
            weigh_double(s.inner, taps, &list[row % s.m], image, result);
        else
            weigh_float(s.inner, taps, &list[row % s.m], image, result);
    }
    return true;
}

/* Writes tables of the taps as C: their indices along the operand's axis, and their weights. */
static void emit_taps(wf_emitter *e, const resize *r, const sides *s) {
    int taps = tap_count(r->mode);
    wf_emit_text(e, "static const int from[] = {");
    for (int64_t i = 0; i < s->m * taps; i++) {
        tap_list t = taps_of(r, i / taps, s->n, s->m);
        wf_emit_text(e, i % 12 ? " %n," : "\n%n,", t.from[i % taps]);
    }
    wf_emit_text(e, "\n};\nstatic const float weight[] = {");
    for (int64_t i = 0; i < s->m * taps; i++) {
        tap_list t = taps_of(r, i / taps, s->n, s->m);
        wf_emit_text(e, i % 6 ? " %f," : "\n%f,", t.weight[i % taps]);
    }
    wf_emit_text(e, "\n};\n");
}

static bool emit_resize(wf_emitter *e, const wf_call *c) {
    const resize *r = c->attrs;
    sides s = sides_of(r, &c->in[0], &c->out[0]);
    int64_t taps = tap_count(r->mode);
    if (wf_view_count(&c->out[0]) == 0) return true;
    emit_taps(e, r, &s);
    wf_emit_text(e, "for (int i = 0; i < %n; i++)\nfor (int k = 0; k < %n; k++)\n", s.outer * s.m,
                 taps);
    wf_emit_text(e, "for (int j = 0; j < %n; j++) {\nint tap = i %% %n * %n + k;\n", s.inner, s.m,
                 taps);
    wf_emit_text(e, "float term = weight[tap] * x[(i / %n * %n + from[tap]) * %n + j];\n", s.m, s.n,
                 s.inner);
    wf_emit_text(e, "out[i * %n + j] = k ? out[i * %n + j] + term : term;\n}\n", s.inner, s.inner);
    return true;
}

static double flops_resize(const wf_call *c) {
    const resize *r = c->attrs;
    return 2.0 * tap_count(r->mode) * (double)wf_view_count(&c->out[0]);
}

/* y is linear in x, so the cotangent goes back along the same taps. */
static void grad_resize(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)need;
    dx[0] = wf_record(&wf_op_resize_backward, 2, (wf_tensor *[]){ dy[0], y->in[0] }, y->attrs);
}

/* Shapes: x real -> as x, with the new size along the axis.
 * Limits: The axis has elements, and the new size is 1 or more. There is no antialiasing. */
const wf_op wf_op_resize = {
    .name = "resize",
    .family = "shape",
    .formula = "resize(x, like): y[i] = the sum over taps k of w[i,k] x[j(i,k)] along the axis",
    .arity = 2,
    .attr_bytes = sizeof(resize),
    .shape = shape_resize,
    .grad = grad_resize,
    .optional = 1 << 1,
    .shape_only = 1 << 1,
    .run = &(const wf_kernel){ .plan = plan_resize,
                               .tasks = tasks_resize,
                               .eval = eval_resize,
                               .flops = flops_resize,
                               .emit = emit_resize },
};

/* ---- resize_backward(dy, like x) -> dx: an image belongs to one task, in the order of dy ----- */

static bool plan_backward(wf_call *c, void *plan) {
    const resize *r = c->attrs;
    (void)plan;
    return plan_taps(c, c->in[0].shape[r->axis]);
}

static int64_t images_together(const sides *s) {
    int64_t image = s->n * s->inner;
    return image >= WF_GRAIN ? 1 : WF_GRAIN / (image + 1) + 1;
}

static int64_t tasks_backward(const wf_call *c, int phase) {
    sides s = sides_of(c->attrs, &c->out[0], &c->in[0]);
    if (phase > 1) return 0;
    return phase == 0 ? 1 : wf_task_count(s.outer, images_together(&s));
}

static bool eval_backward(const wf_call *c, int phase, int64_t task, void *scratch) {
    const resize *r = c->attrs;
    const wf_view *dy = &c->in[0], *dx = &c->out[0];
    sides s = sides_of(r, dx, dy);
    int taps = tap_count(r->mode);
    tap_list *list = c->work;
    int64_t from, to, size = s.n * s.inner;
    (void)scratch;
    if (phase == 0) {
        list_taps(r, &s, list);
        return true;
    }
    wf_task_range(s.outer, images_together(&s), task, &from, &to);
    if (from >= to || size == 0) return true;
    memset(wf_at(dx, from * size), 0, (size_t)((to - from) * size) * wf_dtype_size(dx->dtype));
    for (int64_t row = from * s.m; row < to * s.m; row++) {
        void *image = wf_at(dx, row / s.m * size);
        const void *source = wf_at(dy, row * s.inner);
        if (dx->dtype == WF_F64)
            spread_double(s.inner, taps, &list[row % s.m], source, image);
        else
            spread_float(s.inner, taps, &list[row % s.m], source, image);
    }
    return true;
}

static bool emit_backward(wf_emitter *e, const wf_call *c) {
    const resize *r = c->attrs;
    const wf_view *dy = &c->in[0], *dx = &c->out[0];
    sides s = sides_of(r, dx, dy);
    int64_t taps = tap_count(r->mode);
    wf_emit_text(e, "for (int i = 0; i < %n; i++) out[i] = 0;\n", wf_view_count(dx));
    if (wf_view_count(dx) == 0 || s.m == 0) return true;
    emit_taps(e, r, &s);
    wf_emit_text(e, "for (int i = 0; i < %n; i++)\nfor (int k = 0; k < %n; k++)\n", s.outer * s.m,
                 taps);
    wf_emit_text(e, "for (int j = 0; j < %n; j++) {\nint tap = i %% %n * %n + k;\n", s.inner, s.m,
                 taps);
    wf_emit_text(e, "out[(i / %n * %n + from[tap]) * %n + j] += weight[tap] * dy[i * %n + j];\n}\n",
                 s.m, s.n, s.inner, s.inner);
    return true;
}

/* The op is linear in dy, and resize is its adjoint. */
static void grad_backward(wf_tensor *dx, wf_tensor *const *ddx, wf_tensor **ddy, uint32_t need) {
    resize r = *(const resize *)dx->attrs;
    (void)need;
    ddy[0] = wf_record(&wf_op_resize, 2, (wf_tensor *[]){ ddx[0], dx->in[0] }, &r);
}

/* Shapes: dy real, as resize gives it; like as the operand of resize -> as like.
 * Limits: An image belongs to one task, so its sums have one order. */
const wf_op wf_op_resize_backward = {
    .name = "resize_backward",
    .family = "shape",
    .formula =
        "resize_backward(dy, like): dx[j] = the sum of w[i,k] dy[i] over the taps with j(i,k) = "
        "j",
    .arity = 2,
    .attr_bytes = sizeof(resize),
    .shape = shape_backward,
    .grad = grad_backward,
    .shape_only = 1 << 1,
    .run = &(const wf_kernel){ .plan = plan_backward,
                               .tasks = tasks_backward,
                               .eval = eval_backward,
                               .emit = emit_backward },
};

/* ---- constructors ---------------------------------------------------------------------------- */

wf_tensor *wf_resize(wf_tensor *x, int axis, const wf_resize_options *o) {
    wf_graph *g = x ? x->graph : NULL;
    resize r;
    if (!o) return wf_poison(g, "resize: the options are NULL");
    if ((o->size != 0) + (o->like != NULL) + (o->scale != 0) > 1)
        return wf_poison(g, "resize: the options have more than one of size, like and scale");
    if (!o->size && !o->like && o->scale == 0)
        return wf_poison(g, "resize: the options have no size, no like and no scale, or one of 0");
    if (wf_bound_later(o->size))
        return wf_poison(g, "resize: to a size that is bound later; the option `like` has one");
    if (!(o->scale >= 0 && o->scale <= INT32_MAX))
        return wf_poison(g, "resize: a scale of %g, not above 0 and below 2^31", o->scale);
    memset(&r, 0, sizeof r);
    r.axis = wf_pick_axis(axis, wf_rank(x));
    r.size = o->size;
    r.scale = o->scale;
    r.mode = o->mode;
    r.align_corners = o->align_corners;
    return wf_record(&wf_op_resize, 2, (wf_tensor *[]){ x, o->like }, &r);
}

wf_tensor *wf_interpolate(wf_tensor *x, const int64_t *sizes, wf_resize_mode mode,
                          bool align_corners) {
    WF_COMPOSE("interpolate", x);
    int ndim = wf_rank(x);
    if (ndim < 3 || !sizes)
        return wf_poison(x ? x->graph : NULL,
                         "interpolate: %d axes and %s sizes, where [N,C,...] has one for each axis "
                         "after the second",
                         ndim, sizes ? "some" : "no");
    wf_tensor *y = x;
    wf_resize_options o = { .mode = mode, .align_corners = align_corners };
    for (int i = 2; i < ndim; i++) {
        o.size = sizes[i - 2];
        if (o.size != WF_KEEP) y = wf_resize(y, i, &o);
    }
    return wf_composed(y == x ? wf_alias(x) : y);
}
