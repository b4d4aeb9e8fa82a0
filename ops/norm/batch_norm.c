/* ops/norm/batch_norm.c - batch normalisation (Ioffe & Szegedy 2015) and group normalisation (Wu &
 * He 2018) of x [N,C,...]. N images, C channels.
 *
 * batch_norm: y = (x - mean) / sqrt(variance + eps) * weight + bias, for each channel. In a plan
 * that trains, mean and variance are those of the batch. In other plans they are the running ones,
 * which nn/norm.c updates, or those of the batch if there are no running ones. The op
 * batch_statistics chooses between them, so that a plan computes only what it uses. group_norm
 * computes the same over the channels of a group of one image, in any plan. */
#include <string.h>

#include "core/compose.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"
#include "ops/ops_internal.h"

/* ---- is_training: real [], 1 in a plan that trains, else 0 ----------------------------------- */

static bool shape_is_training(wf_call *c) {
    wf_set_shape(&c->out[0], wf_real(c->graph), 0, NULL);
    return true;
}

static bool eval_is_training(const wf_call *c, int phase, int64_t task, void *scratch) {
    (void)phase;
    (void)task;
    (void)scratch;
    wf_put(&c->out[0], 0, c->training);
    return true;
}

static bool emit_is_training(wf_emitter *e, const wf_call *c) {
    wf_emit_text(e, "out[0] = %d;\n", (int)c->training);
    return true;
}

/* Shapes: like of any shape -> real [].
 * Limits: It is 1 in a plan whose options say training. */
const wf_op wf_op_is_training = {
    .name = "is_training",
    .family = "constant",
    .formula = "is_training(like): 1 in a plan that trains, else 0",
    .arity = 1,
    .shape = shape_is_training,
    .no_grad = "it is a property of the plan",
    .shape_only = 1,
    .run = &(const wf_kernel){ .eval = eval_is_training, .strided = 1, .emit = emit_is_training },
};

wf_tensor *wf_is_training(wf_tensor *like) {
    return wf_record(&wf_op_is_training, 1, &like, NULL);
}

/* ---- batch_statistics: x [N,C,...], running mean, variance [C] or none -> mean, variance [C] */

enum { X, RUNNING_MEAN, RUNNING_VARIANCE, PIECE = 4096 };

static bool fits_channels(wf_call *c, int i, const char *what) {
    const wf_view *x = &c->in[X], *v = &c->in[i];
    if (v->ndim < 0) return true;
    if (!wf_want_real(c, i)) return false;
    return (v->ndim == 1 && v->shape[0] == x->shape[1]) ||
           wf_fail(c, "the %s %s does not fit the channels of %s, axis 1", what, wf_show(c, v),
                   wf_show(c, x));
}

static bool shape_batch_statistics(wf_call *c) {
    const wf_view *x = &c->in[X];
    if (!wf_want_real(c, X)) return false;
    if (x->ndim < 2) return wf_fail(c, "%s has no channels, axis 1", wf_show(c, x));
    if ((c->in[RUNNING_MEAN].ndim < 0) != (c->in[RUNNING_VARIANCE].ndim < 0))
        return wf_fail(c, "a running mean and no running variance, or the other way round");
    if (!fits_channels(c, RUNNING_MEAN, "running mean") ||
        !fits_channels(c, RUNNING_VARIANCE, "running variance"))
        return false;
    for (int k = 0; k < 2; k++) wf_set_shape(&c->out[k], x->dtype, 1, &x->shape[1]);
    return true;
}

static bool plan_batch_statistics(wf_call *c, void *plan) {
    (void)plan;
    c->scratch_bytes = PIECE * sizeof(double);
    return true;
}

static bool uses_batch(const wf_call *c) {
    return c->training || c->in[RUNNING_MEAN].ndim < 0;
}

/* There is one task per channel, so the order of its sums depends only on its length. */
static int64_t tasks_batch_statistics(const wf_call *c, int phase) {
    if (phase > 0) return 0;
    return uses_batch(c) ? c->in[X].shape[1] : 1;
}

/* Copies elements [from, from + n) of a channel, which are numbered [image][place], to `piece`,
 * because they lie apart. */
static void copy_piece(const wf_view *x, int64_t channel, int64_t inner, int64_t from, int64_t n,
                       void *piece) {
    size_t size = wf_dtype_size(x->dtype);
    for (int64_t done = 0, run; done < n; done += run, from += run) {
        int64_t image = from / inner, place = from % inner;
        run = inner - place < n - done ? inner - place : n - done;
        const void *at = wf_at(x, (image * x->shape[1] + channel) * inner + place);
        memcpy((char *)piece + (size_t)done * size, at, (size_t)run * size);
    }
}

/* The mean over a channel of x, or if `squares` is set, of (x - shift)^2. */
static double sum_channel(const wf_view *x, int64_t channel, double shift, bool squares,
                          void *piece) {
    int64_t inner = 1, count, n;
    double total = 0;
    for (int i = 2; i < x->ndim; i++) inner *= x->shape[i];
    count = x->shape[0] * inner;
    for (int64_t from = 0; from < count; from += n) {
        n = count - from < PIECE ? count - from : PIECE;
        copy_piece(x, channel, inner, from, n, piece);
        if (squares) WF_KERNEL(x->dtype, affine(n, piece, 1, -shift, piece));
        total += squares ? WF_KERNEL(x->dtype, square_sum(n, piece))
                         : WF_KERNEL(x->dtype, sum(n, piece));
    }
    return total / (double)count;
}

static bool eval_batch_statistics(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *x = &c->in[X];
    (void)phase;
    if (!uses_batch(c)) {
        for (int k = 0; k < 2; k++)
            memcpy(c->out[k].data, c->in[RUNNING_MEAN + k].data,
                   (size_t)x->shape[1] * wf_dtype_size(x->dtype));
        return true;
    }
    wf_put(&c->out[0], task, sum_channel(x, task, 0, false, scratch));
    wf_put(&c->out[1], task, sum_channel(x, task, wf_get(&c->out[0], task), true, scratch));
    return true;
}

/* Write C for the mean over channel i of a value. The channel is copied to scratch, in pieces. */
static void emit_channel_sum(wf_emitter *e, const wf_view *x, const char *result,
                             const char *value) {
    int64_t inner = 1;
    for (int i = 2; i < x->ndim; i++) inner *= x->shape[i];
    int64_t count = x->shape[0] * inner;
    wf_emit_text(e, "total = 0;\nfor (int from = 0; from < %n; from += %d) {\n", count, PIECE);
    wf_emit_text(e, "int n = %n - from < %d ? %n - from : %d;\n", count, PIECE, count, PIECE);
    wf_emit_text(e, "for (int k = 0; k < n; k++)\nscratch[k] = ");
    wf_emit_text(e, "x[((from + k) / %n * %n + i) * %n + (from + k) %% %n];\n", inner, x->shape[1],
                 inner, inner);
    wf_emit_text(e, "total += %s;\n}\n%s[i] = (float)(total / %n.0);\n", value, result, count);
}

static bool emit_batch_statistics(wf_emitter *e, const wf_call *c) {
    const wf_view *x = &c->in[X];
    wf_emit_result(e, 0, "mean");
    wf_emit_result(e, 1, "variance");
    if (!uses_batch(c)) {
        wf_emit_text(e, "for (int i = 0; i < %n; i++) mean[i] = running_mean[i];\n", x->shape[1]);
        wf_emit_text(e, "for (int i = 0; i < %n; i++) variance[i] = running_variance[i];\n",
                     x->shape[1]);
        return true;
    }
    wf_emit_scratch(e, PIECE);
    wf_emit_text(e, "for (int i = 0; i < %n; i++) {\ndouble total;\n", x->shape[1]);
    if (wf_view_count(x) == 0) {
        wf_emit_text(e, "total = 0;\nmean[i] = variance[i] = (float)(total / 0.0);\n}\n");
        return true;
    }
    emit_channel_sum(e, x, "mean", "sum(n, scratch)");
    emit_channel_sum(e, x, "variance", "squares(n, scratch, mean[i])");
    wf_emit_text(e, "}\n");
    return true;
}

/* v [C] as [C,1,...], which broadcasts to x [N,C,...]. */
static wf_tensor *by_channel(wf_tensor *v, const wf_tensor *x) {
    uint32_t axes = 0;
    for (int i = 1; i < x->ndim - 1; i++) axes |= WF_AXIS(i);
    return axes ? wf_unsqueeze(v, axes) : v;
}

static uint32_t axes_of_batch(const wf_tensor *x) {
    uint32_t axes = WF_AXIS(0);
    for (int i = 2; i < x->ndim; i++) axes |= WF_AXIS(i);
    return axes;
}

/* A channel with n elements has dmean/dx = 1 / n and dvariance/dx = 2 (x - mean) / n. In dvariance
 * the terms through the mean cancel, because deviations sum to 0 (Ioffe & Szegedy 2015, section 3).
 * With running statistics, a plan that does not train returns these: they get dy then, and the
 * gradient of x is 0. Without them, every plan returns the statistics of the batch. */
static void grad_batch_statistics(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx,
                                  uint32_t need) {
    wf_tensor *x = y->in[X], *batch = y->in[RUNNING_MEAN] ? wf_is_training(x) : NULL;
    if (need & 1) {
        wf_tensor *share = wf_inverse_count(x, axes_of_batch(x), 0);
        if (batch) share = wf_mul(share, batch);
        if (dy[0]) dx[X] = by_channel(wf_mul(dy[0], share), x);
        if (dy[1]) {
            wf_tensor *slope = by_channel(wf_mul(dy[1], wf_scale(share, 2)), x);
            wf_tensor *part = wf_mul(wf_sub(x, by_channel(y, x)), slope);
            dx[X] = dy[0] ? wf_add(part, dx[X]) : part;
        }
        dx[X] = wf_broadcast_to(dx[X], x);
    }
    for (int k = 0; k < 2; k++)
        if (batch && dy[k] && need >> (RUNNING_MEAN + k) & 1)
            dx[RUNNING_MEAN + k] = wf_mul(dy[k], wf_affine(batch, -1, 1));
}

static double flops_batch_statistics(const wf_call *c) {
    return uses_batch(c) ? 4 * (double)wf_view_count(&c->in[X]) : 0;
}

/* Shapes: x [N, C, ...] real, running mean and variance [C] or both absent -> mean and variance
 * [C].
 * Limits: The variance is the biased one. A channel without elements gives NaN. */
const wf_op wf_op_batch_statistics = {
    .name = "batch_statistics",
    .family = "reduce",
    .formula = "batch_statistics(x, running_mean, running_variance): mean and variance of each "
               "channel: of the batch in a plan that trains or if there are no running ones, "
               "else the running ones",
    .arity = 3,
    .results = 2,
    .shape = shape_batch_statistics,
    .grad = grad_batch_statistics,
    .optional = 1 << RUNNING_MEAN | 1 << RUNNING_VARIANCE,
    .run = &(const wf_kernel){ .plan = plan_batch_statistics,
                               .tasks = tasks_batch_statistics,
                               .eval = eval_batch_statistics,
                               .emit = emit_batch_statistics,
                               .flops = flops_batch_statistics },
};

/* ---- composed of other ops: batch_norm, group_norm ---------------------------------------- */

/* y * weight + bias for each channel. weight and bias may be NULL. */
static wf_tensor *scale_and_shift(wf_tensor *y, wf_tensor *weight, wf_tensor *bias) {
    if (weight) y = wf_mul(y, by_channel(weight, y));
    return bias ? wf_add(y, by_channel(bias, y)) : y;
}

/* True if v is NULL or has the shape [C]. */
static bool of_channels(const wf_tensor *v, const wf_tensor *x) {
    return !v || (v->ndim == 1 && v->shape[0] == x->shape[1]);
}

/* Returns a failed tensor if the operands do not fit together, else NULL. */
static wf_tensor *misfit(const char *op, wf_tensor *x, wf_tensor *weight, wf_tensor *bias,
                         double eps) {
    wf_tensor *any = x ? x : weight ? weight : bias;
    wf_graph *g = any ? any->graph : NULL;
    if (!x || !wf_ok(g)) return wf_poison(g, "%s of NULL", op);
    if (x->ndim < 2) return wf_poison(g, "%s: %d axes, and no channels, axis 1", op, x->ndim);
    if (!(eps >= 0)) return wf_poison(g, "%s: eps is %g, not 0 or more", op, eps);
    if (of_channels(weight, x) && of_channels(bias, x)) return NULL;
    return wf_poison(g, "%s: the %s is not a number for each channel, axis 1 of the operand", op,
                     of_channels(weight, x) ? "bias" : "weight");
}

wf_batch_norm_result wf_batch_norm(wf_tensor *x, wf_tensor *running_mean,
                                   wf_tensor *running_variance, wf_tensor *weight, wf_tensor *bias,
                                   double eps) {
    WF_COMPOSE("batch_norm", x, running_mean ? running_mean : x,
               running_variance ? running_variance : x, weight ? weight : x, bias ? bias : x);
    wf_tensor *poison = misfit("batch_norm", x, weight, bias, eps);
    if (poison) return (wf_batch_norm_result){ poison, poison, poison };
    wf_tensor *in[] = { x, running_mean, running_variance };
    wf_tensor *mean = wf_record(&wf_op_batch_statistics, 3, in, NULL); /* [C] */
    wf_tensor *variance = wf_result(mean, 1);                          /* [C] */
    wf_tensor *gain = wf_rsqrt(wf_affine(variance, 1, eps));           /* [C] */
    if (weight) gain = wf_mul(gain, weight);
    wf_tensor *y = wf_mul(wf_sub(x, by_channel(mean, x)), by_channel(gain, x));
    y = wf_composed(scale_and_shift(y, NULL, bias));
    return (wf_batch_norm_result){ y, mean, variance };
}

/* The elements of the channels in a group form a row for layer_norm. */
wf_tensor *wf_group_norm(wf_tensor *x, int64_t groups, wf_tensor *weight, wf_tensor *bias,
                         double eps) {
    WF_COMPOSE("group_norm", x, weight ? weight : x, bias ? bias : x);
    wf_tensor *poison = misfit("group_norm", x, weight, bias, eps);
    if (poison) return poison;
    int64_t channels = x->shape[1];
    if (groups < 1 || channels % groups != 0)
        return wf_poison(x->graph, "group_norm: %lld channels do not divide into %lld groups",
                         (long long)channels, (long long)groups);
    wf_tensor *rows = wf_reshape(x, 3, (int64_t[]){ WF_KEEP, groups, WF_REST });
    wf_tensor *y = wf_reshape_like(wf_layer_norm(rows, WF_LAST_AXIS, NULL, NULL, eps), x);
    return wf_composed(scale_and_shift(y, weight, bias));
}
