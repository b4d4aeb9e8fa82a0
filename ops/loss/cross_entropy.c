/* ops/loss/cross_entropy.c - the loss of a classifier over V classes, from logits and integer
 * labels.
 *
 * Over the counted rows (every row whose label is not ignore_index), with p = softmax(logits):
 *     nll  = sum of -log p[label]
 *     loss = sum of (1 - s) (-log p[label]) + s / V sum_j (-log p[j])
 *     count = how many rows; for a mean, divide by it
 * with s the label smoothing, as PyTorch defines it (Szegedy et al. 2016, section 7). These are
 * sums, not means, so that micro-batches can be added. If no row is counted, all three are 0, and
 * so is the gradient. A label outside 0..V-1 that is not ignore_index fails the run. */
#include <string.h>

#include "core/compose.h"
#include "core/op_internal.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/emit/loops.h"
#include "ops/norm/rows.h"

typedef struct cross_entropy_attrs {
    double smoothing;
    int32_t ignore_index;
} cross_entropy_attrs;

/* Indices of results: three scalars, and for the backward op the two terms of every row's
 * log-sum-exp. These are the largest logit, and the logarithm of the sum of exponentials of the
 * differences to it. Their sum would lose the digits of the second term beside a large logit, and p
 * would be wrong by as much. */
enum { LOSS, NLL, COUNT, LSE };

/* ---- cross_entropy: logits [..., V], labels [...] i32 -> loss, nll, count [], lse [..., 2] --- */

static bool labels_fit(wf_call *c) {
    const wf_view *x = &c->in[0], *labels = &c->in[1];
    wf_view rows = *x;
    rows.ndim--;
    if (!wf_want_real(c, 0) || !wf_want(c, 1, WF_I32)) return false;
    if (x->ndim > 0 && wf_same_shape(labels, &rows)) return true;
    return wf_fail(c, "labels %s do not fit the rows of logits %s", wf_show(c, labels),
                   wf_show(c, x));
}

static void set_lse_shape(wf_view *lse, wf_dtype real, const wf_view *labels) {
    wf_set_shape(lse, real, labels->ndim, labels->shape);
    lse->shape[lse->ndim++] = 2;
}

static bool shape_cross_entropy(wf_call *c) {
    const cross_entropy_attrs *a = c->attrs;
    const wf_view *labels = &c->in[1];
    wf_dtype real = c->in[0].dtype;
    if (!labels_fit(c)) return false;
    if (!(a->smoothing >= 0 && a->smoothing <= 1))
        return wf_fail(c, "a label smoothing of %g is not in [0, 1]", a->smoothing);
    for (int k = LOSS; k <= COUNT; k++) wf_set_shape(&c->out[k], real, 0, NULL);
    set_lse_shape(&c->out[LSE], real, labels);
    return true;
}

static bool plan_cross_entropy(wf_call *c, void *plan) {
    int64_t rows = wf_view_count(&c->in[1]);
    (void)plan;
    return wf_shape_bytes(WF_F64, 2, (int64_t[]){ rows, 2 }, &c->work_bytes) ||
           wf_fail(c, "too many rows");
}

static int64_t tasks_cross_entropy(const wf_call *c, int phase) {
    return phase == 1 ? 1 : wf_row_tasks(c, phase);
}

static bool label_ok(const wf_call *c, int64_t row) {
    const cross_entropy_attrs *a = c->attrs;
    const wf_view *x = &c->in[0];
    int32_t label = ((const int32_t *)c->in[1].data)[row];
    int64_t n = x->shape[x->ndim - 1];
    return label == a->ignore_index || (label >= 0 && label < n) ||
           wf_fail(c, "label %d of row %lld is outside 0..%lld", (int)label, (long long)row,
                   (long long)n - 1);
}

/* The smoothed loss of a row. As -log p[j] = log_total - (x[j] - top), it needs only the mean of
 * x. */
static double smoothed(const wf_call *c, int64_t row, double top, double log_total, double nll) {
    const cross_entropy_attrs *a = c->attrs;
    const wf_view *x = &c->in[0];
    int64_t n = x->shape[x->ndim - 1];
    double sum = x->dtype == WF_F32 ? wf_f32()->difference_sum(n, wf_at(x, row * n), (float)top)
                                    : wf_f64()->difference_sum(n, wf_at(x, row * n), top);
    return (1 - a->smoothing) * nll + a->smoothing * (log_total - sum / (double)n);
}

/* The largest number of counted rows whose logarithms are computed together: a logarithm computed
 * alone takes longer than the exponentials of a short row. */
enum { ROWS_TOGETHER = 16 };

static void put_row_losses(const wf_call *c, int64_t row, double top, double log_total) {
    const cross_entropy_attrs *a = c->attrs;
    const wf_view *x = &c->in[0];
    int64_t n = x->shape[x->ndim - 1], label = ((const int32_t *)c->in[1].data)[row];
    double(*losses)[2] = c->work; /* loss and nll of each row */
    double nll = (top - wf_get(x, row * n + label)) + log_total;
    losses[row][LOSS] = a->smoothing > 0 ? smoothed(c, row, top, log_total, nll) : nll;
    losses[row][NLL] = nll;
    wf_put(&c->out[LSE], 2 * row, top);
    wf_put(&c->out[LSE], 2 * row + 1, log_total);
}

static void put_ignored(const wf_call *c, int64_t row) {
    double(*losses)[2] = c->work;
    losses[row][LOSS] = 0;
    losses[row][NLL] = 0;
    wf_put(&c->out[LSE], 2 * row, 0);
    wf_put(&c->out[LSE], 2 * row + 1, 0);
}

static bool row_losses(const wf_call *c, int64_t task) {
    const cross_entropy_attrs *a = c->attrs;
    const wf_view *x = &c->in[0];
    const int32_t *labels = c->in[1].data;
    double top[ROWS_TOGETHER], log_total[ROWS_TOGETHER];
    int64_t n = x->shape[x->ndim - 1], from, to;
    wf_row_range(c, task, &from, &to);
    while (from < to) {
        int64_t rows = 0;
        for (; rows < ROWS_TOGETHER && from + rows < to; rows++) {
            if (labels[from + rows] == a->ignore_index) break;
            if (!label_ok(c, from + rows)) return false;
        }
        if (rows == 0) {
            put_ignored(c, from++);
            continue;
        }
        WF_KERNEL(x->dtype, log_sum_exp_rows(rows, n, wf_at(x, from * n), top, log_total));
        for (int64_t r = 0; r < rows; r++) put_row_losses(c, from + r, top[r], log_total[r]);
        from += rows;
    }
    return true;
}

static void sum_rows(const wf_call *c) {
    const cross_entropy_attrs *a = c->attrs;
    const int32_t *labels = c->in[1].data;
    double(*losses)[2] = c->work, total[3] = { 0 };
    for (int64_t r = 0, rows = wf_view_count(&c->in[1]); r < rows; r++) {
        total[LOSS] += losses[r][LOSS];
        total[NLL] += losses[r][NLL];
        total[COUNT] += labels[r] != a->ignore_index;
    }
    for (int k = LOSS; k <= COUNT; k++) wf_put(&c->out[k], 0, total[k]);
}

static bool eval_cross_entropy(const wf_call *c, int phase, int64_t task, void *scratch) {
    (void)scratch;
    if (phase == 0) return row_losses(c, task);
    sum_rows(c);
    return true;
}

static bool emit_cross_entropy(wf_emitter *e, const wf_call *c) {
    const cross_entropy_attrs *a = c->attrs;
    int64_t rows, n;
    wf_view_rows(&c->in[0], &rows, &n);
    static const char *const results[] = { "loss_sum", "nll_sum", "counted", "stats" };
    for (int k = 0; k < 4; k++) wf_emit_result(e, k, results[k]);
    wf_emit_may_fail(e);
    wf_emit_text(e, "double losses = 0, nlls = 0, count = 0;\n");
    wf_emit_text(e, "for (int r = 0; r < %n; r++) {\n", rows);
    wf_emit_text(e, "double log_total = 0, nll = 0, loss = 0;\nfloat top = 0;\n");
    wf_emit_text(e, "if (labels[r] != %d) {\n", a->ignore_index);
    wf_emit_text(e, "if (labels[r] < 0 || labels[r] >= %n) return 1;\n", n);
    wf_emit_text(e, "top = log_sum_exp(%n, logits + r * %n, &log_total);\n", n, n);
    wf_emit_text(e, "nll = ((double)top - (double)logits[r * %n + labels[r]]) + log_total;\n", n);
    wf_emit_text(e, "loss = nll;\n");
    if (a->smoothing > 0) {
        wf_emit_text(e, "double apart = sum_of_differences(%n, logits + r * %n, top);\n", n, n);
        wf_emit_text(e, "loss = %g * nll + %g * (log_total - apart / %g);\n", 1 - a->smoothing,
                     a->smoothing, (double)n);
    }
    wf_emit_text(e, "}\nlosses += loss;\nnlls += nll;\ncount += labels[r] != %d;\n",
                 a->ignore_index);
    wf_emit_text(e, "stats[2 * r] = top;\nstats[2 * r + 1] = (float)log_total;\n}\n");
    wf_emit_text(
        e, "loss_sum[0] = (float)losses;\nnll_sum[0] = (float)nlls;\ncounted[0] = (float)count;\n");
    return true;
}

static void grad_cross_entropy(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)need;
    wf_tensor *in[] = { y->in[0], y->in[1], y + LSE, dy[LOSS], dy[NLL] };
    if (dy[LOSS] || dy[NLL]) /* count has no gradient; lse is saved for the backward op */
        dx[0] = wf_record(&wf_op_cross_entropy_backward, 5, in, y->attrs);
}

/* An ignored label is replaced by class 0, so that gather gets a valid id; its row is not
 * counted. */
static void from_primitives(wf_tensor *logits, wf_tensor *labels, const cross_entropy_attrs *a,
                            wf_tensor **results) {
    wf_graph *g = logits->graph;
    wf_tensor *zero = wf_constant(g, 0), *label = wf_cast(labels, wf_real(g)); /* [...] */
    wf_tensor *counted = wf_not_equal(label, wf_constant(g, a->ignore_index)); /* [...] */
    wf_tensor *logp = wf_log_softmax(logits, -1);                              /* [..., V] */
    wf_tensor *ids = wf_cast(wf_mul(label, counted), WF_I32);                  /* [...] */
    wf_tensor *picked = wf_gather(logp, -1, wf_unsqueeze(ids, WF_LAST_AXIS));  /* [..., 1] */
    picked = wf_squeeze(picked, WF_LAST_AXIS);
    wf_tensor *nll = wf_neg(wf_sum(wf_where(counted, picked, zero), WF_ALL_AXES, false)); /* [] */
    results[NLL] = results[LOSS] = nll;
    results[COUNT] = wf_sum(counted, WF_ALL_AXES, false);
    if (a->smoothing == 0) return;
    wf_tensor *spread = wf_where(counted, wf_mean(logp, WF_LAST_AXIS, false), zero); /* [...] */
    wf_tensor *uniform = wf_neg(wf_sum(spread, WF_ALL_AXES, false));                 /* [] */
    results[LOSS] = wf_add(wf_scale(nll, 1 - a->smoothing), wf_scale(uniform, a->smoothing));
}

static void decompose_cross_entropy(wf_tensor *y, wf_tensor **results) {
    from_primitives(y->in[0], y->in[1], y->attrs, results);
}

static double flops_cross_entropy(const wf_call *c) {
    return 4.0 * (double)wf_view_count(&c->in[0]);
}

/* Shapes: logits [..., V] real, labels [...] i32 -> loss, nll and count [], and lse [..., 2] for
 * the gradient.
 * Gradient: -log p_k has the derivative p_j - (j == k) by logit j. So dloss/dx_j = p_j - (1 - s)
 * (j == label) - s / V, and dnll/dx_j = p_j - (j == label), in counted rows; in others 0. The
 * count has no gradient.
 * Limits: A label outside of 0..V-1 that is not ignore_index fails the run. The smoothing is in
 * [0, 1]. All are sums, not means. */
const wf_op wf_op_cross_entropy = {
    .name = "cross_entropy",
    .family = "loss",
    .formula =
        "cross_entropy(logits, labels): -log softmax(logits)[label], smoothed, summed over the "
        "rows that count; then nll and count",
    .arity = 2,
    .results = 4,
    .attr_bytes = sizeof(cross_entropy_attrs),
    .attributes = "double smoothing, int32_t ignore_index",
    .shape = shape_cross_entropy,
    .grad = grad_cross_entropy,
    .decompose = decompose_cross_entropy,
    .nondiff = 1 << 1,
    .run = &(const wf_kernel){ .plan = plan_cross_entropy,
                               .tasks = tasks_cross_entropy,
                               .eval = eval_cross_entropy,
                               .emit = emit_cross_entropy,
                               .flops = flops_cross_entropy },
};

wf_cross_entropy_result wf_cross_entropy(wf_tensor *logits, wf_tensor *labels, double smoothing,
                                         int32_t ignore_index) {
    wf_tensor *y = wf_record(&wf_op_cross_entropy, 2, (wf_tensor *[]){ logits, labels },
                             &(cross_entropy_attrs){ smoothing, ignore_index });
    return (wf_cross_entropy_result){ wf_result(y, LOSS), wf_result(y, NLL), wf_result(y, COUNT) };
}

/* Moves the axis of the classes to the end. */
wf_cross_entropy_result wf_cross_entropy_over(wf_tensor *logits, wf_tensor *labels, int axis,
                                              double smoothing, int32_t ignore_index) {
    int ndim = wf_rank(logits), at = wf_axis(axis, ndim), order[WF_MAX_DIMS], n = 0;
    char text[WF_AXIS_TEXT];
    WF_COMPOSE("cross_entropy_over", logits, labels);
    if (logits && at < 0)
        logits = wf_poison(logits->graph, "cross_entropy_over: %d axes, and no %s", ndim,
                           wf_axis_text(axis, text));
    for (int i = 0; i < ndim; i++)
        if (i != at) order[n++] = i;
    if (at >= 0) {
        order[n] = at;
        logits = wf_permute(logits, order);
    }
    wf_cross_entropy_result c = wf_cross_entropy(logits, labels, smoothing, ignore_index);
    wf_composed(c.loss);
    return c;
}

/* ---- cross_entropy_backward: logits, labels, lse, dloss or none, dnll or none -> dlogits ----- */

/* d lse / dx_j = p_j and d x_label / dx_j = (j == label). So dx = dnll (p - onehot) + dloss (p -
 * target), with the smoothed target (1 - s) onehot + s / V (Szegedy et al. 2016, section 7). Rows
 * that are not counted get 0. */
enum { IN_LSE = 2, IN_DLOSS, IN_DNLL };

static bool shape_backward(wf_call *c) {
    const wf_view *x = &c->in[0];
    wf_view lse;
    if (!labels_fit(c) || !wf_want_real(c, IN_LSE)) return false;
    set_lse_shape(&lse, x->dtype, &c->in[1]);
    if (!wf_same_shape(&c->in[IN_LSE], &lse))
        return wf_fail(c, "lse %s does not fit %s", wf_show(c, &c->in[IN_LSE]), wf_show(c, x));
    for (int i = IN_DLOSS; i <= IN_DNLL; i++)
        if (c->in[i].ndim > 0 || (c->in[i].ndim == 0 && !wf_want_real(c, i)))
            return wf_fail(c, "the slope %s is not a number", wf_show(c, &c->in[i]));
    wf_set_shape(&c->out[0], x->dtype, x->ndim, x->shape);
    return true;
}

static bool plan_backward(wf_call *c, void *plan) {
    const wf_view *x = &c->in[0];
    bool both = c->in[IN_DLOSS].ndim >= 0 && c->in[IN_DNLL].ndim >= 0;
    (void)plan;
    if (both) c->scratch_bytes = (size_t)x->shape[x->ndim - 1] * wf_dtype_size(x->dtype);
    return true;
}

/* dx = dy (p - target) of a row */
static void softmax_minus(const wf_call *c, int64_t r, int64_t label, double smoothing, double dy,
                          const void *row, void *dx) {
    const wf_view *x = &c->in[0], *lse = &c->in[IN_LSE];
    int64_t n = x->shape[x->ndim - 1];
    double top = wf_get(lse, 2 * r), log_total = wf_get(lse, 2 * r + 1);
    if (x->dtype == WF_F32)
        wf_f32()->cross_entropy_backward_row(n, row, (float)top, (float)log_total, label, smoothing,
                                             dy, dx);
    else
        wf_f64()->cross_entropy_backward_row(n, row, top, log_total, label, smoothing, dy, dx);
}

static void row_gradient(const wf_call *c, int64_t r, int64_t label, void *scratch) {
    const cross_entropy_attrs *a = c->attrs;
    const wf_view *x = &c->in[0], *dloss = &c->in[IN_DLOSS], *dnll = &c->in[IN_DNLL];
    int64_t n = x->shape[x->ndim - 1];
    void *row = wf_at(x, r * n), *dx = wf_at(&c->out[0], r * n), *smooth = scratch;
    if (dnll->ndim < 0) smooth = dx;
    /* dloss first, because dx may overwrite the logits */
    if (dloss->ndim >= 0) softmax_minus(c, r, label, a->smoothing, wf_get(dloss, 0), row, smooth);
    if (dnll->ndim >= 0) softmax_minus(c, r, label, 0, wf_get(dnll, 0), row, dx);
    if (dloss->ndim >= 0 && dnll->ndim >= 0) WF_KERNEL(x->dtype, accumulate(n, smooth, dx));
}

static bool eval_backward(const wf_call *c, int phase, int64_t task, void *scratch) {
    const cross_entropy_attrs *a = c->attrs;
    const wf_view *dx = &c->out[0];
    const int32_t *labels = c->in[1].data;
    int64_t n = dx->shape[dx->ndim - 1], from, to;
    (void)phase;
    wf_row_range(c, task, &from, &to);
    for (int64_t r = from; r < to; r++) {
        if (!label_ok(c, r)) return false;
        if (labels[r] != a->ignore_index)
            row_gradient(c, r, labels[r], scratch);
        else
            memset(wf_at(dx, r * n), 0, (size_t)n * wf_dtype_size(dx->dtype));
    }
    return true;
}

/* Write a loop for row[j] = slope (p[j] - smoothing / n), from which slope (1 - smoothing) is
 * subtracted at the label. adds: add the term to row[j], because another term is there. */
static void emit_term(wf_emitter *e, const char *slope, double smoothing, int64_t n, bool adds) {
    wf_emit_text(e, "for (int j = 0; j < %n; j++) {\n", n);
    wf_emit_text(e, "float p = exp_of((logits[r * %n + j] - top) - log_total);\n", n);
    wf_emit_text(e, "float d = %s[0] * (p - %f);\n", slope, smoothing / (double)n);
    wf_emit_text(e, "if (j == labels[r]) d -= (float)((double)%s[0] * %g);\n", slope,
                 1 - smoothing);
    wf_emit_text(e, adds ? "row[j] += d;\n}\n" : "row[j] = d;\n}\n");
}

/* The row is made in scratch, because the result may overwrite the logits. */
static bool emit_backward(wf_emitter *e, const wf_call *c) {
    const cross_entropy_attrs *a = c->attrs;
    bool loss = c->in[IN_DLOSS].ndim >= 0, nll = c->in[IN_DNLL].ndim >= 0;
    int64_t rows, n;
    wf_view_rows(&c->in[0], &rows, &n);
    wf_emit_may_fail(e);
    wf_emit_scratch(e, n);
    wf_emit_text(e, "for (int r = 0; r < %n; r++) {\nfloat *row = scratch;\n", rows);
    wf_emit_text(e, "if (labels[r] == %d) {\n", a->ignore_index);
    wf_emit_text(e, "for (int j = 0; j < %n; j++) out[r * %n + j] = 0;\ncontinue;\n}\n", n, n);
    wf_emit_text(e, "if (labels[r] < 0 || labels[r] >= %n) return 1;\n", n);
    wf_emit_text(e, "float top = lse[2 * r], log_total = lse[2 * r + 1];\n");
    if (loss) emit_term(e, "dloss", a->smoothing, n, false);
    if (nll) emit_term(e, "dnll", 0, n, loss);
    wf_emit_text(e, "for (int j = 0; j < %n; j++) out[r * %n + j] = row[j];\n}\n", n, n);
    return true;
}

static void decompose_backward(wf_tensor *dx, wf_tensor **results) {
    wf_tensor *logits = dx->in[0], *y[3];
    from_primitives(logits, dx->in[1], dx->attrs, y);
    wf_vjp(y, &dx->in[IN_DLOSS], 2, &logits, 1, results);
}

static double flops_backward(const wf_call *c) {
    return 4.0 * (double)wf_view_count(&c->in[0]);
}

/* Shapes: logits [..., V], labels [...] i32, lse [..., 2], dloss and dnll [] or absent -> dlogits
 * as logits.
 * Gradient: It comes from the decomposition: softmax less the labels, times the slopes.
 * Limits: lse is what cross_entropy saved. */
const wf_op wf_op_cross_entropy_backward = {
    .name = "cross_entropy_backward",
    .family = "loss",
    .formula =
        "cross_entropy_backward(logits, labels, lse, dloss, dnll): dlogits = p (dloss + dnll) - "
        "(the smoothed label dloss + the label dnll), with p = softmax(logits)",
    .arity = 5,
    .attr_bytes = sizeof(cross_entropy_attrs),
    .attributes = "double smoothing, int32_t ignore_index",
    .shape = shape_backward,
    .decompose = decompose_backward,
    .optional = 1 << IN_DLOSS | 1 << IN_DNLL,
    .nondiff = 1 << 1,
    .run = &(const wf_kernel){ .plan = plan_backward,
                               .tasks = wf_row_tasks,
                               .eval = eval_backward,
                               .emit = emit_backward,
                               .flops = flops_backward,
                               .in_place = 1 << 0 },
};
