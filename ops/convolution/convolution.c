/* ops/convolution/convolution.c - the convolution ops: conv2d, conv_transpose2d, and their forms
 * for one axis.
 *
 *     y[n,o,i,j] = b[o] + sum over c, u, v of w[o,c,u,v] x[n, c, s i + d u - p, s j + d v - p]
 *
 * where x = 0 beyond its edges. With G groups, output channels of a group use only input channels
 * of the same group. It is a cross-correlation, as everywhere (Dumoulin and Visin 2016, "A guide to
 * convolution arithmetic"). The sum is linear in x and in w, and all gradients are sums of the same
 * form: convolution.h. conv_run.c and conv_weight_run.c run them. Tests compare them with the
 * decompositions, which use windows and einsum. */
#include "convolution.h"
#include "core/compose.h"
#include "core/op_internal.h"
#include "ops/base/shapes.h"

/* ---- sizes ----------------------------------------------------------------------------------- */

static bool in_range(int64_t value, int64_t least) {
    return value >= least && value <= INT32_MAX;
}

bool wf_conv_options_fit(wf_call *c, const conv *a) {
    for (int i = 0; i < 2; i++) {
        if (!in_range(a->stride[i], 1) || !in_range(a->dilation[i], 1))
            return wf_fail(c, "stride %lld, dilation %lld: both must be from 1 to 2^31 - 1",
                           (long long)a->stride[i], (long long)a->dilation[i]);
        if (!in_range(a->padding[i], 0))
            return wf_fail(c, "padding %lld, not from 0 to 2^31 - 1", (long long)a->padding[i]);
        if (a->output_padding[i] < 0 || a->output_padding[i] >= a->stride[i])
            return wf_fail(
                c, "output padding %lld, which must be 0 or more, and less than the stride %lld",
                (long long)a->output_padding[i], (long long)a->stride[i]);
    }
    return in_range(a->groups, 1) ||
           wf_fail(c, "%lld groups, not from 1 to 2^31 - 1", (long long)a->groups);
}

/* Sets *reach to d (K - 1) + 1, the elements that a kernel spans. False: too large, or K < 1. */
static bool reach_of(const conv *a, int axis, int64_t kernel, int64_t *reach) {
    return kernel >= 1 && wf_mul_size(kernel - 1, a->dilation[axis], reach) &&
           ++*reach <= INT32_MAX;
}

bool wf_conv_count(wf_call *c, const conv *a, int axis, int64_t size, int64_t kernel, int64_t *n) {
    int64_t reach, padded = size + 2 * a->padding[axis];
    if (size > INT32_MAX || !reach_of(a, axis, kernel, &reach))
        return wf_fail(c, "a kernel of %lld is none, or too large", (long long)kernel);
    if (reach > padded)
        return wf_fail(c, "the kernel is %lld wide, axis %d of %s with its padding only %lld",
                       (long long)reach, axis + 2, wf_show(c, &c->in[0]), (long long)padded);
    *n = (padded - reach) / a->stride[axis] + 1;
    return true;
}

/* Checks that operand i is real and has the four axes of a batch of images. */
static bool wants_images(wf_call *c, int i) {
    if (!wf_want_real(c, i)) return false;
    return c->in[i].ndim == 4 ||
           wf_fail(c, "operand %d, %s, has not the four axes of a batch of images, [N,C,H,W]", i,
                   wf_show(c, &c->in[i]));
}

static bool bias_fits(wf_call *c, int i, int64_t channels) {
    const wf_view *b = &c->in[i];
    if (b->ndim < 0) return true;
    return wf_want_real(c, i) && ((b->ndim == 1 && b->shape[0] == channels) ||
                                  wf_fail(c, "the bias is %s, the result has %lld channels",
                                          wf_show(c, b), (long long)channels));
}

/* Checks that w [first, second / groups, ..] fits images with these numbers of channels. */
static bool channels_fit(wf_call *c, const conv *a, const wf_view *w, int64_t first,
                         int64_t second) {
    if (first % a->groups == 0 && second % a->groups == 0 && w->shape[0] == first &&
        w->shape[1] == second / a->groups)
        return true;
    return wf_fail(c, "a weight of %s does not fit %lld and %lld channels in %lld groups",
                   wf_show(c, w), (long long)first, (long long)second, (long long)a->groups);
}

static void set_images(wf_view *y, const wf_view *like, int64_t channels, const int64_t size[2]) {
    wf_set_shape(y, like->dtype, 4, (int64_t[]){ like->shape[0], channels, size[0], size[1] });
}

/* ---- the options, which are PyTorch's -------------------------------------------------------- */

static int64_t or_one(int64_t value) {
    return value ? value : 1;
}

static conv attrs_of(const wf_conv_options *o) {
    wf_conv_options none = { .groups = 0 };
    conv a = { .groups = or_one(o ? o->groups : 0) };
    if (!o) o = &none;
    for (int i = 0; i < 2; i++) {
        a.stride[i] = or_one(wf_given(o->stride, i));
        a.dilation[i] = or_one(wf_given(o->dilation, i));
        a.padding[i] = wf_given(o->padding, i);
        a.output_padding[i] = o->output_padding[i];
    }
    return a;
}

/* The options for one axis as options of the columns; the image has one row. */
static wf_conv_options of_columns(const wf_conv_options *o) {
    if (!o) return (wf_conv_options){ .groups = 1 };
    return (wf_conv_options){ .stride = { 1, o->stride[0] },
                              .padding = { 0, o->padding[0] },
                              .dilation = { 1, o->dilation[0] },
                              .output_padding = { 0, o->output_padding[0] },
                              .groups = o->groups };
}

static wf_tensor *with_rows(wf_tensor *x) {
    return x ? wf_unsqueeze(x, WF_AXIS(-2)) : NULL;
}

/* ---- the three products, as nodes ------------------------------------------------------------ */

static wf_tensor *conv_of(wf_tensor *x, wf_tensor *w, wf_tensor *bias, const conv *a) {
    conv plain = *a;
    plain.output_padding[0] = plain.output_padding[1] = 0;
    return wf_record(&wf_op_conv2d, 3, (wf_tensor *[]){ x, w, bias }, &plain);
}

static wf_tensor *transpose_of(wf_tensor *y, wf_tensor *w, wf_tensor *bias, wf_tensor *like,
                               const conv *a) {
    return wf_record(&wf_op_conv_transpose2d, 4, (wf_tensor *[]){ y, w, bias, like }, a);
}

static wf_tensor *weight_of(wf_tensor *x, wf_tensor *y, wf_tensor *like, const conv *a) {
    return wf_record(&wf_op_conv2d_weight, 3, (wf_tensor *[]){ x, y, like }, a);
}

static wf_tensor *sum_of_channels(wf_tensor *dy) {
    return wf_sum(dy, WF_AXIS(0) | WF_AXIS(2) | WF_AXIS(3), false);
}

/* ---- parts of the decompositions, which use windows ------------------------------------------ */

static wf_tensor *padded(wf_tensor *x, const conv *a) {
    for (int i = 0; i < 2; i++)
        if (a->padding[i]) x = wf_pad(x, 2 + i, a->padding[i], a->padding[i], 0);
    return x;
}

/* x [N,C,H,W] -> [N,C,i,W,u]: the windows along H. */
static wf_tensor *row_windows(wf_tensor *x, const conv *a, const wf_tensor *w) {
    return wf_unfold(padded(x, a), 2, w->shape[2], a->stride[0], a->dilation[0]);
}

/* [N,G,C/G,i,j,u,v] */
static wf_tensor *windows(wf_tensor *x, const conv *a, const wf_tensor *w) {
    wf_tensor *all = wf_unfold(row_windows(x, a, w), 3, w->shape[3], a->stride[1], a->dilation[1]);
    return wf_reshape(all, 7, (int64_t[]){ WF_KEEP, a->groups, WF_REST, 0, 0, 0, 0 });
}

/* [N,O,i,j] -> [N,G,O/G,i,j];  [O,C/G,u,v] -> [G,O/G,C/G,u,v] */
static wf_tensor *grouped_images(wf_tensor *y, const conv *a) {
    return wf_reshape(y, 5, (int64_t[]){ WF_KEEP, a->groups, WF_REST, WF_KEEP, WF_KEEP });
}

static wf_tensor *grouped_weight(wf_tensor *w, const conv *a) {
    return wf_reshape(w, 5, (int64_t[]){ a->groups, WF_REST, WF_KEEP, WF_KEEP, WF_KEEP });
}

static wf_tensor *plus_bias(wf_tensor *y, wf_tensor *bias) {
    return bias ? wf_add(y, wf_unsqueeze(bias, WF_AXIS(1) | WF_AXIS(2))) : y;
}

/* ---- conv2d(x, w, bias) ---------------------------------------------------------------------- */

static bool shape_conv2d(wf_call *c) {
    const conv *a = c->attrs;
    const wf_view *x = &c->in[0], *w = &c->in[1];
    int64_t size[2];
    if (!wants_images(c, 0) || !wants_images(c, 1) || !wf_conv_options_fit(c, a) ||
        !channels_fit(c, a, w, w->shape[0], x->shape[1]) || !bias_fits(c, 2, w->shape[0]))
        return false;
    for (int i = 0; i < 2; i++)
        if (!wf_conv_count(c, a, i, x->shape[2 + i], w->shape[2 + i], &size[i])) return false;
    set_images(&c->out[0], x, w->shape[0], size);
    return true;
}

/* y = sum of w x. So dL/dx is the sum of w dy over all products that contain x, which is the
 * transposed convolution. dL/dw is the sum of x dy. The bias is added at every position. */
static void grad_conv2d(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    wf_tensor *x = y->in[0], *w = y->in[1];
    if (need & 1) dx[0] = transpose_of(dy[0], w, NULL, x, y->attrs);
    if (need & 2) dx[1] = weight_of(x, dy[0], w, y->attrs);
    if (need & 4) dx[2] = sum_of_channels(dy[0]);
}

static void decompose_conv2d(wf_tensor *y, wf_tensor **results) {
    const conv *a = y->attrs;
    wf_tensor *in[] = { windows(y->in[0], a, y->in[1]), grouped_weight(y->in[1], a) };
    wf_tensor *sum = wf_einsum("ngcijuv,gocuv->ngoij", in, 2);
    sum = wf_reshape(sum, 4, (int64_t[]){ WF_KEEP, WF_REST, WF_KEEP, WF_KEEP });
    results[0] = plus_bias(sum, y->in[2]);
}

/* Shapes: x [N,C,H,W], weight [O,C/groups,kh,kw], bias [O] or absent -> [N,O,H2,W2]; H2 = (H + 2
 * padding - dilation (kh - 1) - 1) / stride + 1.
 * Limits: Stride and dilation are 1 or more, and the padded image holds a kernel. groups divides
 * C and O. */
const wf_op wf_op_conv2d = {
    .name = "conv2d",
    .family = "matmul",
    .formula =
        "conv2d(x, weight, bias): y[o,i,j] = bias[o] + the sum over c, u, v of weight[o,c,u,v] "
        "x[c, stride i + u, stride j + v]",
    .arity = 3,
    .attr_bytes = sizeof(conv),
    .shape = shape_conv2d,
    .grad = grad_conv2d,
    .decompose = decompose_conv2d,
    .optional = 1 << 2,
    .run = &wf_conv2d_kernel,
};

wf_tensor *wf_conv2d(wf_tensor *x, wf_tensor *weight, wf_tensor *bias, const wf_conv_options *o) {
    conv a = attrs_of(o);
    return wf_record(&wf_op_conv2d, 3, (wf_tensor *[]){ x, weight, bias }, &a);
}

wf_tensor *wf_conv1d(wf_tensor *x, wf_tensor *weight, wf_tensor *bias, const wf_conv_options *o) {
    WF_COMPOSE("conv1d", x, weight, bias ? bias : x);
    wf_conv_options columns = of_columns(o);
    wf_tensor *kernel = with_rows(weight);
    return wf_composed(wf_squeeze(wf_conv2d(with_rows(x), kernel, bias, &columns), WF_AXIS(-2)));
}

/* ---- conv_transpose2d(y, w, bias, like): x from y and w -------------------------------------- */

/* The size along an axis is that of `like`. Without `like` it is the smallest image whose
 * convolution has the size of y, plus the output padding. */
static bool transposed_size(wf_call *c, const conv *a, int axis, int64_t *size) {
    const wf_view *y = &c->in[0], *w = &c->in[1], *like = &c->in[3];
    int64_t n = y->shape[2 + axis], reach, span, back;
    if (!reach_of(a, axis, w->shape[2 + axis], &reach))
        return wf_fail(c, "a kernel of %s is none, or too large", wf_show(c, w));
    if (n < 1 || !wf_mul_size(n - 1, a->stride[axis], &span) || span > INT64_MAX / 4)
        return wf_fail(c, "axis %d of %s is empty, or too large", axis + 2, wf_show(c, y));
    *size = like->ndim < 0 ? span + reach - 2 * a->padding[axis] + a->output_padding[axis]
                           : like->shape[2 + axis];
    if (*size < 1)
        return wf_fail(c, "nothing is left of axis %d of %s: a padding of %lld", axis + 2,
                       wf_show(c, y), (long long)a->padding[axis]);
    if (!wf_conv_count(c, a, axis, *size, w->shape[2 + axis], &back)) return false;
    return back == n || wf_fail(c, "%s is no convolution of %s", wf_show(c, y), wf_show(c, like));
}

static bool shape_conv_transpose2d(wf_call *c) {
    const conv *a = c->attrs;
    const wf_view *y = &c->in[0], *w = &c->in[1], *like = &c->in[3];
    int64_t size[2], channels;
    if (!wants_images(c, 0) || !wants_images(c, 1) || !wf_conv_options_fit(c, a)) return false;
    if (!wf_mul_size(w->shape[1], a->groups, &channels)) return wf_fail(c, "too many channels");
    if (like->ndim >= 0 && (like->ndim != 4 || like->shape[0] != y->shape[0]))
        return wf_fail(c, "%s is no convolution of %s", wf_show(c, y), wf_show(c, like));
    if (!channels_fit(c, a, w, y->shape[1], like->ndim < 0 ? channels : like->shape[1]) ||
        !bias_fits(c, 2, channels) || !transposed_size(c, a, 0, &size[0]) ||
        !transposed_size(c, a, 1, &size[1]))
        return false;
    set_images(&c->out[0], y, channels, size);
    return true;
}

/* The gradients are the other two products of the sum in conv2d, with the roles of x and y
 * exchanged. */
static void grad_conv_transpose2d(wf_tensor *x, wf_tensor *const *dx, wf_tensor **dy,
                                  uint32_t need) {
    wf_tensor *y = x->in[0], *w = x->in[1];
    if (need & 1) dy[0] = conv_of(dx[0], w, NULL, x->attrs);
    if (need & 2) dy[1] = weight_of(dx[0], y, w, x->attrs);
    if (need & 4) dy[2] = sum_of_channels(dx[0]);
}

/* Each element of y, times the kernel, is a window that is added to the result at its place. The
 * shape of the result itself tells the size of the folds. */
static void decompose_conv_transpose2d(wf_tensor *x, wf_tensor **results) {
    const conv *a = x->attrs;
    wf_tensor *w = x->in[1], *in[] = { grouped_images(x->in[0], a), grouped_weight(w, a) };
    wf_tensor *all = wf_einsum("ngoij,gocuv->ngcijuv", in, 2);
    all = wf_reshape(all, 6, (int64_t[]){ WF_KEEP, WF_REST, 0, 0, 0, 0 }); /* [N,C,i,j,u,v] */
    wf_tensor *image = padded(x, a), *rows = row_windows(x, a, w);         /* [N,C,i,W,u] */
    all = wf_fold(all, rows, 3, w->shape[3], a->stride[1], a->dilation[1]);
    all = wf_fold(all, image, 2, w->shape[2], a->stride[0], a->dilation[0]);
    for (int i = 0; i < 2; i++)
        if (a->padding[i]) all = wf_slice(all, 2 + i, a->padding[i], -a->padding[i]);
    results[0] = plus_bias(all, x->in[2]);
}

/* Shapes: y [N,O,H,W], weight [O,C/groups,kh,kw], bias [C] or absent -> [N,C,H2,W2]; H2 = (H - 1)
 * stride - 2 padding + dilation (kh - 1) + output_padding + 1.
 * Limits: output_padding is less than the stride. With `like`, the result has its sizes. */
const wf_op wf_op_conv_transpose2d = {
    .name = "conv_transpose2d",
    .family = "matmul",
    .formula = "conv_transpose2d(x, weight, bias, like): y[o, stride i + u, stride j + v] += "
               "weight[c,o,u,v] x[c,i,j], + bias[o]",
    .arity = 4,
    .attr_bytes = sizeof(conv),
    .shape = shape_conv_transpose2d,
    .grad = grad_conv_transpose2d,
    .decompose = decompose_conv_transpose2d,
    .optional = 1 << 2 | 1 << 3,
    .shape_only = 1 << 3,
    .run = &wf_conv_transpose2d_kernel,
};

wf_tensor *wf_conv_transpose2d(wf_tensor *x, wf_tensor *weight, wf_tensor *bias,
                               const wf_conv_options *o) {
    conv a = attrs_of(o);
    return transpose_of(x, weight, bias, NULL, &a);
}

wf_tensor *wf_conv_transpose1d(wf_tensor *x, wf_tensor *weight, wf_tensor *bias,
                               const wf_conv_options *o) {
    WF_COMPOSE("conv_transpose1d", x, weight, bias ? bias : x);
    wf_conv_options columns = of_columns(o);
    wf_tensor *kernel = with_rows(weight);
    return wf_composed(
        wf_squeeze(wf_conv_transpose2d(with_rows(x), kernel, bias, &columns), WF_AXIS(-2)));
}

/* ---- conv2d_weight(x, y, like): w from x and y ----------------------------------------------- */

static bool shape_conv2d_weight(wf_call *c) {
    const conv *a = c->attrs;
    const wf_view *x = &c->in[0], *y = &c->in[1], *w = &c->in[2];
    int64_t size[2];
    if (!wants_images(c, 0) || !wants_images(c, 1) || !wf_conv_options_fit(c, a)) return false;
    if (w->ndim != 4 || x->shape[0] != y->shape[0])
        return wf_fail(c, "%s is no convolution of %s", wf_show(c, y), wf_show(c, x));
    if (!channels_fit(c, a, w, y->shape[1], x->shape[1])) return false;
    for (int i = 0; i < 2; i++) {
        if (!wf_conv_count(c, a, i, x->shape[2 + i], w->shape[2 + i], &size[i])) return false;
        if (size[i] != y->shape[2 + i])
            return wf_fail(c, "%s is no convolution of %s", wf_show(c, y), wf_show(c, x));
    }
    wf_set_shape(&c->out[0], x->dtype, 4, w->shape);
    return true;
}

/* The gradients are the other two products of the sum in conv2d, with dw in the place of the
 * weight. */
static void grad_conv2d_weight(wf_tensor *w, wf_tensor *const *dw, wf_tensor **d, uint32_t need) {
    wf_tensor *x = w->in[0], *y = w->in[1];
    if (need & 1) d[0] = transpose_of(y, dw[0], NULL, x, w->attrs);
    if (need & 2) d[1] = conv_of(x, dw[0], NULL, w->attrs);
}

static void decompose_conv2d_weight(wf_tensor *w, wf_tensor **results) {
    const conv *a = w->attrs;
    wf_tensor *in[] = { windows(w->in[0], a, w), grouped_images(w->in[1], a) };
    wf_tensor *sum = wf_einsum("ngcijuv,ngoij->gocuv", in, 2);
    results[0] = wf_reshape(sum, 4, (int64_t[]){ WF_REST, WF_KEEP, WF_KEEP, WF_KEEP });
}

/* Shapes: x [N, C, H, W], y as conv2d gives it, like the weight -> as the weight.
 * Limits: The sum over images and positions has a fixed order, which depends on the shapes. */
const wf_op wf_op_conv2d_weight = {
    .name = "conv2d_weight",
    .family = "matmul",
    .formula = "conv2d_weight(x, dy, like): dweight[o,c,u,v] = the sum over n, i, j of dy[n,o,i,j] "
               "x[n, c, stride i + u, stride j + v]",
    .arity = 3,
    .attr_bytes = sizeof(conv),
    .shape = shape_conv2d_weight,
    .grad = grad_conv2d_weight,
    .decompose = decompose_conv2d_weight,
    .shape_only = 1 << 2,
    .run = &wf_conv2d_weight_kernel,
};
