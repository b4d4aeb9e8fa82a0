/* ops/convolution/pooling.c - pooling: the maximum or the mean of every window of an image.
 *
 * The mean is a convolution of each channel with a constant. The maximum has a kernel of its own.
 * It also saves which tap of the window the maximum is, counted from 0 row by row, or -1 if no
 * element is above -inf. Two small ops use these places, and are adjoint to each other: scatter,
 * which is the gradient, and gather. */
#include <math.h>
#include <string.h>

#include "core/compose.h"
#include "ops/base/shapes.h"
#include "pooling.h"

enum { LEAST_TASK = 1 << 15 }; /* about the fewest elements of a task */

/* ---- sizes ----------------------------------------------------------------------------------- */

static int64_t or_else(int64_t value, int64_t other) {
    return value ? value : other;
}

/* With sizes rounded up, a window exists wherever one begins in the image or in the padding before
 * it. Padding with stride - 1 more elements makes room for one last window; padding with at most
 * window - 1 elements makes none that begins after the image. So the same rule holds for sizes that
 * are bound later. */
static int64_t padding_after(const pool *p, int i) {
    const conv *a = &p->window;
    double reach = (double)(p->kernel[i] - 1) * (double)a->dilation[i];
    double more = (double)a->padding[i] + (double)a->stride[i] - 1;
    return !p->ceil_mode ? a->padding[i] : (int64_t)fmin(fmin(reach, more), INT32_MAX);
}

static pool attrs_of(const wf_pool_options *o) {
    pool p;
    memset(&p, 0, sizeof p);
    p.window.groups = 1;
    p.ceil_mode = o && o->ceil_mode;
    for (int i = 0; i < 2; i++) {
        p.kernel[i] = o ? wf_given(o->kernel, i) : 0;
        p.window.stride[i] = o ? or_else(wf_given(o->stride, i), p.kernel[i]) : 1;
        p.window.dilation[i] = o ? or_else(wf_given(o->dilation, i), 1) : 1;
        p.window.padding[i] = o ? wf_given(o->padding, i) : 0;
        p.after[i] = padding_after(&p, i);
    }
    return p;
}

/* The options for one axis as options of the columns; the image has one row. */
static wf_pool_options of_columns(const wf_pool_options *o) {
    if (!o) return (wf_pool_options){ 0 };
    return (wf_pool_options){ .kernel = { o->kernel[0] != 0, o->kernel[0] },
                              .stride = { o->stride[0] != 0, o->stride[0] },
                              .padding = { 0, o->padding[0] },
                              .dilation = { 1, o->dilation[0] },
                              .exclude_pad = o->exclude_pad,
                              .ceil_mode = o->ceil_mode };
}

/* Checks that every window holds an element of the image. As in PyTorch, at most half of a window
 * may be padding. */
static bool windows_fit(wf_call *c, const pool *p, const wf_view *x, int64_t size[2]) {
    if (!wf_want_real(c, 0)) return false;
    if (x->ndim != 4) return wf_fail(c, "%s has not the four axes [N,C,H,W]", wf_show(c, x));
    for (int i = 0; i < 2; i++)
        if (p->kernel[i] < 1)
            return wf_fail(c, "a kernel of %lld, not 1 or more", (long long)p->kernel[i]);
    if (!wf_conv_options_fit(c, &p->window)) return false;
    for (int i = 0; i < 2; i++) {
        int64_t more = p->after[i] - p->window.padding[i];
        if (!wf_conv_count(c, &p->window, i, x->shape[2 + i] + more, p->kernel[i], &size[i]))
            return false;
        int64_t reach = (p->kernel[i] - 1) * p->window.dilation[i] + 1;
        if (p->window.padding[i] > reach / 2)
            return wf_fail(c, "a padding of %lld is more than half of a kernel %lld wide",
                           (long long)p->window.padding[i], (long long)reach);
    }
    return true;
}

static void set_windows(wf_view *y, const wf_view *x, const int64_t size[2]) {
    wf_set_shape(y, x->dtype, 4, (int64_t[]){ x->shape[0], x->shape[1], size[0], size[1] });
}

/* Checks that operands 0 and 1, or 1 alone, have the shape of the windows of x. */
static bool places_fit(wf_call *c, int first, const wf_view *x) {
    int64_t size[2];
    wf_view windows;
    if (!windows_fit(c, c->attrs, x, size)) return false;
    set_windows(&windows, x, size);
    for (int i = first; i < 2; i++)
        if (!wf_want_real(c, i) || !wf_same_shape(&c->in[i], &windows))
            return wf_fail(c, "%s are not the windows of %s", wf_show(c, &c->in[i]), wf_show(c, x));
    return true;
}

/* ---- max_pool2d: the maximum of each window, and its tap ------------------------------------- */

typedef struct pool_run {
    conv_layout layout;
    /* number of units of work; most units of a task; elements of a unit's results */
    int64_t units, together, results;
    size_t planes;
} pool_run;

static bool shape_max_pool2d(wf_call *c) {
    int64_t size[2];
    if (!windows_fit(c, c->attrs, &c->in[0], size)) return false;
    for (int k = 0; k < 2; k++) set_windows(&c->out[k], &c->in[0], size);
    return true;
}

static int64_t together(int64_t elements) {
    return elements < LEAST_TASK ? LEAST_TASK / (elements + 1) + 1 : 1;
}

static bool plan_max_pool2d(wf_call *c, void *plan) {
    const pool *p = c->attrs;
    pool_run *r = plan;
    conv_layout *l = &r->layout;
    *r = (pool_run){ 0 };
    if (wf_view_count(&c->out[0]) == 0) return true;
    conv each = p->window;
    wf_view w = { .ndim = 4, .shape = { 1, 1, p->kernel[0], p->kernel[1] } };
    each.groups = c->in[0].shape[1];
    if (!wf_conv_lay_out(c, l, &each, false, &c->in[0], &c->out[0], &w)) return false;
    l->planes.pad = -INFINITY;
    r->units = l->images * l->groups * l->chunks;
    r->together = together(l->channel);
    r->planes = (size_t)(l->channel + WF_WIDEST) * wf_dtype_size(l->type);
    r->results = (l->chunk * l->planes.columns + WF_WIDEST) / WF_WIDEST * WF_WIDEST;
    c->work_bytes = (size_t)l->taps * sizeof(int64_t);
    c->scratch_bytes = r->planes + 2 * (size_t)r->results * wf_dtype_size(l->type);
    return true;
}

static int64_t tasks_max_pool2d(const wf_call *c, int phase) {
    const pool_run *r = c->plan;
    if (phase > 1 || r->units == 0) return 0;
    return phase == 0 ? 1 : wf_task_count(r->units, r->together);
}

/* The kernel writes whole vectors. It writes directly to the result if the rows of this chunk have
 * no gaps and fill whole vectors; otherwise to scratch, from which they are copied. */
static void max_of_chunk(const pool_run *r, const wf_call *c, int64_t which, char *scratch) {
    const conv_layout *l = &r->layout;
    int64_t plane = which / l->chunks, chunk = which % l->chunks, width = l->side[1].target, row;
    int64_t rows = wf_conv_chunk(l, chunk, &row), at = (plane * l->side[0].target + row) * width;
    wf_view result = { .data = scratch + r->planes, .dtype = l->type };
    wf_pool_tile t = { .taps = l->taps, .offset = c->work, .x = scratch };
    t.positions = (rows - 1) * l->planes.columns + width;
    bool stays = (rows == 1 || l->planes.columns == width) && t.positions % WF_WIDEST == 0;
    t.y = stays ? wf_at(&c->out[0], at) : result.data;
    t.tap = stays ? wf_at(&c->out[1], at) : wf_at(&result, r->results);
    wf_conv_fill(l, &c->in[0], plane / l->groups, plane % l->groups, 1, chunk, scratch);
    WF_KERNEL(l->type, pool_max(&t));
    for (int k = 0; k < 2 && !stays; k++)
        WF_KERNEL(l->type, conv_results(rows, width, wf_at(&result, k * r->results),
                                        l->planes.columns, wf_at(&c->out[k], at), width, 1));
}

static bool eval_max_pool2d(const wf_call *c, int phase, int64_t task, void *scratch) {
    const pool_run *r = c->plan;
    int64_t from, to;
    if (phase == 0) {
        wf_conv_offsets(&r->layout, c->work);
        return true;
    }
    wf_task_range(r->units, r->together, task, &from, &to);
    for (int64_t which = from; which < to; which++) max_of_chunk(r, c, which, scratch);
    return true;
}

static double flops_max_pool2d(const wf_call *c) {
    const pool *p = c->attrs;
    return (double)wf_view_count(&c->out[0]) * (double)(p->kernel[0] * p->kernel[1]);
}

/* The derivative is 1 for the element that is the maximum (the first of equal ones), and 0 for
 * others. */
static void grad_max_pool2d(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)need;
    if (!dy[0]) return;
    wf_tensor *in[] = { dy[0], wf_result(y, 1), y->in[0] };
    dx[0] = wf_record(&wf_op_max_pool2d_scatter, 3, in, y->attrs);
}

static void decompose_max_pool2d(wf_tensor *y, wf_tensor **results) {
    const pool *p = y->attrs;
    const conv *a = &p->window;
    wf_tensor *x = y->in[0];
    for (int i = 0; i < 2; i++) {
        x = wf_pad(x, 2 + i, a->padding[i], p->after[i], -INFINITY);
        x = wf_unfold(x, 2 + i, p->kernel[i], a->stride[i], a->dilation[i]);
    } /* [N,C,i,j,u,v] */
    x = wf_reshape(x, 5, (int64_t[]){ WF_KEEP, WF_KEEP, WF_KEEP, WF_KEEP, WF_REST });
    wf_tensor *place = wf_unsqueeze(wf_argmax(x, -1), WF_LAST_AXIS);
    results[0] = wf_squeeze(wf_gather(x, -1, place), WF_LAST_AXIS);
}

/* Shapes: x [N, C, H, W] -> y and taps [N, C, H2, W2], sizes as of conv2d.
 * Limits: At most half of a kernel is padding. A NaN is the maximum. Padding is never chosen. */
const wf_op wf_op_max_pool2d = {
    .name = "max_pool2d",
    .family = "reduce",
    .formula = "max_pool2d(x): the maximum of each window, and its place in the window",
    .arity = 1,
    .results = 2,
    .attr_bytes = sizeof(pool),
    .shape = shape_max_pool2d,
    .grad = grad_max_pool2d,
    .decompose = decompose_max_pool2d,
    .run = &(const wf_kernel){ .plan_bytes = sizeof(pool_run),
                               .plan = plan_max_pool2d,
                               .tasks = tasks_max_pool2d,
                               .eval = eval_max_pool2d,
                               .flops = flops_max_pool2d,
                               .emit = wf_emit_max_pool2d },
};

wf_tensor *wf_max_pool2d(wf_tensor *x, const wf_pool_options *o) {
    pool p = attrs_of(o);
    return wf_record(&wf_op_max_pool2d, 1, &x, &p);
}

wf_tensor *wf_max_pool1d(wf_tensor *x, const wf_pool_options *o) {
    WF_COMPOSE("max_pool1d", x);
    wf_pool_options columns = of_columns(o);
    if (x) x = wf_unsqueeze(x, WF_AXIS(-2));
    return wf_composed(wf_squeeze(wf_max_pool2d(x, &columns), WF_AXIS(-2)));
}

/* ---- max_pool2d_scatter(y, taps, like): adds y at the places of the windows' maxima ---------- */

static bool shape_scatter(wf_call *c) {
    const wf_view *x = &c->in[2];
    if (!places_fit(c, 0, x)) return false;
    wf_set_shape(&c->out[0], c->in[0].dtype, 4, x->shape);
    return true;
}

static bool plan_places(wf_call *c, void *plan) {
    const pool *p = c->attrs;
    (void)plan;
    c->work_bytes = (size_t)(p->kernel[0] * p->kernel[1]) * sizeof(int64_t);
    return true;
}

/* The most planes of a task. x: the image that is scattered to or gathered from. */
static int64_t planes_together(const wf_view *x) {
    return together(x->shape[2] * x->shape[3]);
}

static int64_t tasks_of_planes(const wf_view *x, int phase) {
    if (phase > 1 || wf_view_count(x) == 0) return 0;
    return phase == 0 ? 1 : wf_task_count(x->shape[0] * x->shape[1], planes_together(x));
}

static void find_taps(const wf_call *c, const wf_view *x) {
    const pool *p = c->attrs;
    int64_t *offset = c->work;
    for (int64_t i = 0; i < p->kernel[0]; i++)
        for (int64_t j = 0; j < p->kernel[1]; j++)
            *offset++ = i * p->window.dilation[0] * x->shape[3] + j * p->window.dilation[1];
}

static wf_pool_plane plane_of(const wf_call *c, const wf_view *x, const wf_view *y) {
    const pool *o = c->attrs;
    const conv *a = &o->window;
    return (wf_pool_plane){ .height = x->shape[2],
                            .width = x->shape[3],
                            .taps = o->kernel[0] * o->kernel[1],
                            .rows = y->shape[2],
                            .columns = y->shape[3],
                            .top = -a->padding[0],
                            .left = -a->padding[1],
                            .row_step = a->stride[0],
                            .column_step = a->stride[1],
                            .row_dilation = a->dilation[0],
                            .column_dilation = a->dilation[1],
                            .offset = c->work };
}

/* Scatters y to the images x, if these are the result, or gathers y from x. */
static bool eval_places(const wf_call *c, int phase, int64_t task, const wf_view *x,
                        const wf_view *y) {
    wf_pool_plane p = plane_of(c, x, y);
    int64_t size = x->shape[2] * x->shape[3], windows = p.rows * p.columns, from, to;
    bool scatters = x == &c->out[0];
    if (phase == 0) {
        find_taps(c, x);
        return true;
    }
    wf_task_range(x->shape[0] * x->shape[1], planes_together(x), task, &from, &to);
    if (scatters && from < to)
        memset(wf_at(x, from * size), 0, (size_t)((to - from) * size) * wf_dtype_size(x->dtype));
    for (int64_t i = from; i < to; i++) {
        void *image = wf_at(x, i * size), *values = wf_at(y, i * windows);
        const void *taps = wf_at(&c->in[1], i * windows);
        if (scatters)
            WF_KERNEL(x->dtype, pool_scatter(&p, values, taps, image));
        else
            WF_KERNEL(x->dtype, pool_gather(&p, image, taps, values));
    }
    return true;
}

static int64_t tasks_scatter(const wf_call *c, int phase) {
    return tasks_of_planes(&c->out[0], phase);
}

static bool eval_scatter(const wf_call *c, int phase, int64_t task, void *scratch) {
    (void)scratch;
    return eval_places(c, phase, task, &c->out[0], &c->in[0]);
}

/* The op is linear in y: a window's gradient is that of the element at the place of its maximum. */
static void grad_scatter(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    wf_tensor *in[] = { dy[0], y->in[1] };
    (void)need;
    dx[0] = wf_record(&wf_op_max_pool2d_gather, 2, in, y->attrs);
}

/* Shapes: y and taps [N, C, H2, W2], like [N, C, H, W] -> as like.
 * Limits: Windows that overlap add up at one place, in their order. */
const wf_op wf_op_max_pool2d_scatter = {
    .name = "max_pool2d_scatter",
    .family = "index",
    .formula =
        "max_pool2d_scatter(dy, place, like): zeros like `like`, with dy added at the place of "
        "each maximum",
    .arity = 3,
    .attr_bytes = sizeof(pool),
    .shape = shape_scatter,
    .grad = grad_scatter,
    .nondiff = 1 << 1,
    .shape_only = 1 << 2,
    .run = &(const wf_kernel){ .plan = plan_places,
                               .tasks = tasks_scatter,
                               .eval = eval_scatter,
                               .emit = wf_emit_max_pool2d_scatter },
};

/* ---- max_pool2d_gather(x, taps): takes x at the places of the windows' maxima ---------------- */

static bool shape_gather(wf_call *c) {
    if (!places_fit(c, 1, &c->in[0])) return false;
    wf_set_shape(&c->out[0], c->in[0].dtype, 4, c->in[1].shape);
    return true;
}

static int64_t tasks_gather(const wf_call *c, int phase) {
    return tasks_of_planes(&c->in[0], phase);
}

static bool eval_gather(const wf_call *c, int phase, int64_t task, void *scratch) {
    (void)scratch;
    return eval_places(c, phase, task, &c->in[0], &c->out[0]);
}

/* The op is linear in x, and scatter is its adjoint. */
static void grad_gather(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    wf_tensor *in[] = { dy[0], y->in[1], y->in[0] };
    (void)need;
    dx[0] = wf_record(&wf_op_max_pool2d_scatter, 3, in, y->attrs);
}

/* Shapes: x [N, C, H, W], taps [N, C, H2, W2] -> [N, C, H2, W2].
 * Limits: A window whose tap is -1, because no element is above -inf, gives its first element that
 * is in the image. */
const wf_op wf_op_max_pool2d_gather = {
    .name = "max_pool2d_gather",
    .family = "index",
    .formula = "max_pool2d_gather(x, place): the element of each window at its place",
    .arity = 2,
    .attr_bytes = sizeof(pool),
    .shape = shape_gather,
    .grad = grad_gather,
    .nondiff = 1 << 1,
    .run = &(const wf_kernel){ .plan = plan_places,
                               .tasks = tasks_gather,
                               .eval = eval_gather,
                               .emit = wf_emit_max_pool2d_gather },
};

/* ---- avg_pool2d: the mean of each window ----------------------------------------------------- */

/* A kernel [1,1,kh,kw] whose elements are all `value`. */
static wf_tensor *even_kernel(wf_graph *g, const pool *p, double value) {
    const uint32_t four = WF_AXIS(0) | WF_AXIS(1) | WF_AXIS(2) | WF_AXIS(3);
    wf_tensor *w = wf_unsqueeze(wf_constant(g, value), four); /* [1,1,1,1] */
    for (int i = 0; i < 2; i++) w = wf_pad(w, 2 + i, 0, p->kernel[i] - 1, value);
    return w;
}

/* Sums over windows, with x as [NC,1,H,W]: every channel is an image of its own. */
static wf_tensor *sum_windows(wf_tensor *x, const pool *p, double weight) {
    const conv *a = &p->window;
    wf_conv_options o = { .groups = 1 };
    for (int i = 0; i < 2; i++) {
        o.stride[i] = a->stride[i];
        o.dilation[i] = a->dilation[i];
        o.padding[i] = a->padding[i] ? a->padding[i] : WF_NO_PADDING;
    }
    return wf_conv2d(x, even_kernel(x->graph, p, weight), NULL, &o);
}

/* x with zeros at its end, where rounded-up sizes need more than the padding. */
static wf_tensor *extended(wf_tensor *x, const pool *p) {
    for (int i = 0; i < 2; i++) {
        int64_t more = p->after[i] - p->window.padding[i];
        if (more > 0) x = wf_pad(x, 2 + i, 0, more, 0);
    }
    return x;
}

/* How many elements each window counts: those of the image, and those of its padding unless
 * excluded. */
static wf_tensor *counts(wf_tensor *planes, const pool *p, bool exclude_pad) {
    wf_tensor *ones = wf_fill(planes, 1);
    pool padded = *p;
    for (int i = 0; i < 2 && !exclude_pad; i++) {
        ones = wf_pad(ones, 2 + i, p->window.padding[i], p->window.padding[i], 1);
        padded.window.padding[i] = 0;
        padded.after[i] = p->after[i] - p->window.padding[i];
    }
    return sum_windows(extended(ones, &padded), &padded, 1);
}

/* A tensor with the shape of x after pooling. */
static wf_tensor *like_windows(wf_tensor *x, const pool *p) {
    const conv *a = &p->window;
    for (int i = 0; i < 2; i++) {
        x = wf_pad(x, 2 + i, a->padding[i], p->after[i], 0);
        x = wf_unfold(x, 2 + i, p->kernel[i], a->stride[i], a->dilation[i]);
        x = wf_squeeze(wf_slice(x, -1, 0, 1), WF_LAST_AXIS);
    }
    return x;
}

static bool may_pool(const wf_tensor *x, const pool *p) {
    bool ok = x->ndim == 4;
    for (int i = 0; i < 2; i++)
        ok &= p->kernel[i] >= 1 && p->kernel[i] <= INT32_MAX &&
              p->window.padding[i] <= p->kernel[i] / 2;
    return ok;
}

wf_tensor *wf_avg_pool2d(wf_tensor *x, const wf_pool_options *o) {
    WF_COMPOSE("avg_pool2d", x);
    pool p = attrs_of(o);
    if (!x || !wf_ok(x->graph)) return wf_poison(x ? x->graph : NULL, "avg_pool2d of NULL");
    if (!may_pool(x, &p))
        return wf_poison(x->graph,
                         "avg_pool2d: a kernel of %lld by %lld with padding %lld and %lld, at most "
                         "half of it, on images with %d axes, not [N,C,H,W]",
                         (long long)p.kernel[0], (long long)p.kernel[1],
                         (long long)p.window.padding[0], (long long)p.window.padding[1], x->ndim);
    double count = (double)p.kernel[0] * (double)p.kernel[1];
    wf_tensor *planes = wf_reshape(x, 4, (int64_t[]){ WF_REST, 1, WF_KEEP, WF_KEEP });
    bool even = !o->exclude_pad && !p.ceil_mode; /* all windows have the same count */
    wf_tensor *y = sum_windows(extended(planes, &p), &p, even ? 1 / count : 1);
    if (!even) y = wf_div(y, counts(planes, &p, o->exclude_pad));
    return wf_composed(wf_reshape_like(y, like_windows(x, &p)));
}

wf_tensor *wf_avg_pool1d(wf_tensor *x, const wf_pool_options *o) {
    WF_COMPOSE("avg_pool1d", x);
    wf_pool_options columns = of_columns(o);
    if (x) x = wf_unsqueeze(x, WF_AXIS(-2));
    return wf_composed(wf_squeeze(wf_avg_pool2d(x, &columns), WF_AXIS(-2)));
}
