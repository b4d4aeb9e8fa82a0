/* nn/loss.c - losses composed of ops, defined as in torch.nn.functional. Gradients of any order
 * come from the ops. */
#include "loss.h"
#include "core/compose.h"

#include "ops/base/shapes.h"
#include "ops/ops_internal.h"

static wf_tensor *number(const wf_tensor *like, double value) {
    return wf_constant(like ? like->graph : NULL, value);
}

static wf_tensor *reduce(wf_tensor *each, wf_reduction r) {
    switch (r) {
    case WF_REDUCE_NONE:
        return each;
    case WF_REDUCE_MEAN:
        return wf_mean(each, WF_ALL_AXES, false);
    case WF_REDUCE_SUM:
        return wf_sum(each, WF_ALL_AXES, false);
    case WF_REDUCE_BATCH_MEAN:
        return wf_mul(wf_sum(each, WF_ALL_AXES, false), wf_inverse_count(each, WF_AXIS(0), 0));
    }
    return wf_poison(each->graph, "there is no reduction %d", (int)r);
}

/* ---- of real targets ------------------------------------------------------------------------- */

wf_tensor *wf_mse_loss(wf_tensor *input, wf_tensor *target, wf_reduction r) {
    WF_COMPOSE("mse_loss", input, target);
    return wf_composed(reduce(wf_square(wf_sub(input, target)), r));
}

wf_tensor *wf_l1_loss(wf_tensor *input, wf_tensor *target, wf_reduction r) {
    WF_COMPOSE("l1_loss", input, target);
    return wf_composed(reduce(wf_abs(wf_sub(input, target)), r));
}

/* d^2 / 2 where |d| < at, else at (|d| - at / 2). d is clamped before it is squared, so that an
 * infinite d makes no NaN in the gradient. The second derivative is right at d = 0, too. */
static wf_tensor *huber(wf_tensor *d, double at) {
    wf_tensor *size = wf_abs(d), *square = wf_square(wf_clamp(d, -at, at));
    return wf_where(wf_less(size, number(d, at)), wf_scale(square, 0.5),
                    wf_affine(size, at, -at * at / 2));
}

wf_tensor *wf_smooth_l1_loss(wf_tensor *input, wf_tensor *target, wf_reduction r, double beta) {
    WF_COMPOSE("smooth_l1_loss", input, target);
    if (beta == 0) return wf_composed(wf_l1_loss(input, target, r));
    wf_tensor *d = wf_sub(input, target);
    if (!(beta > 0))
        return wf_poison(d->graph, "the beta of a smooth L1 loss is %g, not 0 or more", beta);
    return wf_composed(reduce(wf_scale(huber(d, beta), 1 / beta), r));
}

wf_tensor *wf_huber_loss(wf_tensor *input, wf_tensor *target, wf_reduction r, double delta) {
    WF_COMPOSE("huber_loss", input, target);
    wf_tensor *d = wf_sub(input, target);
    if (!(delta > 0))
        return wf_poison(d->graph, "the delta of a Huber loss is %g, not above 0", delta);
    return wf_composed(reduce(huber(d, delta), r));
}

/* t log t; where t is 0 the value and the gradient are 0. */
static wf_tensor *times_its_log(wf_tensor *t) {
    return wf_mul(t, wf_log(wf_where(t, t, number(t, 1))));
}

wf_tensor *wf_kl_div(wf_tensor *input, wf_tensor *target, wf_reduction r, bool log_target) {
    WF_COMPOSE("kl_div", input, target);
    wf_tensor *other = log_target ? wf_sub(target, input) : wf_mul(target, input);
    if (log_target) return wf_composed(reduce(wf_mul(wf_exp(target), other), r));
    return wf_composed(reduce(wf_sub(times_its_log(target), other), r));
}

/* log(1 - sigmoid(x)) = log sigmoid(x) - x, so that with p = 1 + (pos_weight - 1) t the loss is
 * (1 - t) x - p log sigmoid(x). */
wf_tensor *wf_binary_cross_entropy_with_logits(wf_tensor *input, wf_tensor *target,
                                               wf_tensor *weight, wf_tensor *pos_weight,
                                               wf_reduction r) {
    WF_COMPOSE("binary_cross_entropy_with_logits", input, target, weight ? weight : input,
               pos_weight ? pos_weight : input);
    wf_tensor *log_p = wf_log_sigmoid(input);
    if (pos_weight)
        log_p = wf_mul(wf_affine(wf_mul(wf_affine(pos_weight, 1, -1), target), 1, 1), log_p);
    wf_tensor *each = wf_sub(wf_mul(wf_affine(target, -1, 1), input), log_p);
    return wf_composed(reduce(weight ? wf_mul(each, weight) : each, r));
}

/* The length of vectors along an axis. The root is taken of at least eps^2, so that the gradient is
 * finite for vectors of zeros. */
static wf_tensor *length(wf_tensor *x, int axis, double eps) {
    wf_tensor *squares = wf_sum(wf_square(x), WF_AXIS(axis), false);
    return wf_sqrt(wf_maximum(squares, number(x, eps * eps)));
}

wf_tensor *wf_cosine_similarity(wf_tensor *a, wf_tensor *b, int axis, double eps) {
    WF_COMPOSE("cosine_similarity", a, b);
    wf_tensor *product = wf_mul(a, b);
    char text[WF_AXIS_TEXT];
    if (wf_axis(axis, product->ndim) < 0)
        return wf_poison(product->graph, "cosine_similarity: %d axes, and no %s", product->ndim,
                         wf_axis_text(axis, text));
    wf_tensor *dot = wf_sum(product, WF_AXIS(axis), false);
    if (!(eps >= 0)) return wf_poison(dot->graph, "the eps of a cosine is %g, not 0 or more", eps);
    wf_tensor *length_of_b = length(b, axis, eps);
    return wf_composed(wf_div(dot, wf_mul(length(a, axis, eps), length_of_b)));
}

/* ---- of classes ------------------------------------------------------------------------------ */

/* Checks that there is an i32 label for each row and a weight for each class, because the ops would
 * broadcast other shapes. False if not; the graph has then failed. */
static bool classes_fit(wf_tensor *input, const wf_tensor *labels, const wf_tensor *weight) {
    if (!input || !wf_ok(input->graph)) return true; /* the ops report what is wrong */
    int rows = input->ndim - 1;
    bool fit = rows >= 0 && (!labels || (labels->ndim == rows && labels->dtype == WF_I32));
    for (int i = 0; fit && labels && i < rows; i++) fit = labels->shape[i] == input->shape[i];
    bool weighted =
        !fit || !weight || (weight->ndim == 1 && weight->shape[0] == input->shape[rows]);
    if (!fit) wf_poison(input->graph, "labels are not i32, one for each row");
    if (!weighted) wf_poison(input->graph, "weights of classes are not [C], one for each class");
    return fit && weighted;
}

/* Rows of labels: counted [...] is 1 where a label counts, and 0 where it is ignored. The id and
 * weight of an ignored label are 0, too. */
typedef struct counted_rows {
    wf_tensor *counted, *ids, *weight;
} counted_rows;

static counted_rows count_rows(wf_tensor *input, wf_tensor *labels, wf_tensor *weight,
                               int32_t ignore_index) {
    wf_dtype real = wf_real(input ? input->graph : NULL);
    counted_rows c;
    wf_tensor *label = wf_cast(labels, real);
    c.counted = c.weight = wf_not_equal(label, number(labels, ignore_index));
    c.ids = wf_cast(wf_mul(c.counted, label), WF_I32);
    if (!weight) return c;
    wf_tensor *own = wf_embedding(wf_unsqueeze(weight, WF_LAST_AXIS), c.ids); /* [...,1] */
    c.weight = wf_mul(c.counted, wf_squeeze(own, WF_LAST_AXIS));
    return c;
}

/* -weight[label] log_p[label]. It is 0 where the label is ignored, whatever log_p holds there. */
static wf_tensor *nll_rows(wf_tensor *log_p, const counted_rows *c) {
    wf_tensor *picked = wf_gather(log_p, -1, wf_unsqueeze(c->ids, WF_LAST_AXIS)); /* [...,1] */
    wf_tensor *each = wf_neg(wf_mul(c->weight, wf_squeeze(picked, WF_LAST_AXIS)));
    return wf_where(c->counted, each, number(log_p, 0));
}

/* Reduce the losses of rows. A mean divides by the sum of the counted weights. If this sum is 0, it
 * divides by 1, so the mean is 0 if no row counts. */
static wf_tensor *reduce_counted(wf_tensor *rows, wf_tensor *weight, wf_reduction r) {
    if (r != WF_REDUCE_MEAN) return reduce(rows, r);
    wf_tensor *total = wf_sum(weight, WF_ALL_AXES, false);
    return wf_div(wf_sum(rows, WF_ALL_AXES, false), wf_where(total, total, number(rows, 1)));
}

wf_tensor *wf_nll_loss(wf_tensor *input, wf_tensor *labels, wf_tensor *weight, int32_t ignore_index,
                       wf_reduction r) {
    WF_COMPOSE("nll_loss", input, labels, weight ? weight : input);
    if (!classes_fit(input, labels, weight)) return wf_poison(input->graph, NULL);
    counted_rows c = count_rows(input, labels, weight, ignore_index);
    return wf_composed(reduce_counted(nll_rows(input, &c), c.weight, r));
}

/* -sum over the classes of target * weight * log_p. A target of NULL is 1 everywhere. */
static wf_tensor *over_classes(wf_tensor *log_p, wf_tensor *target, wf_tensor *weight) {
    if (weight) log_p = wf_mul(log_p, weight);
    if (target) log_p = wf_mul(log_p, target);
    return wf_neg(wf_sum(log_p, WF_LAST_AXIS, false));
}

static wf_tensor *of_probabilities(wf_tensor *input, wf_tensor *target, wf_tensor *weight,
                                   double smoothing, wf_reduction r) {
    wf_tensor *spread = wf_scale(wf_inverse_count(input, WF_LAST_AXIS, 0), smoothing);
    if (smoothing != 0) target = wf_add(wf_scale(target, 1 - smoothing), spread);
    return reduce(over_classes(wf_log_softmax(input, -1), target, weight), r);
}

static wf_tensor *of_labels(wf_tensor *input, wf_tensor *labels, wf_tensor *weight,
                            double smoothing, int32_t ignore_index, wf_reduction r) {
    counted_rows c = count_rows(input, labels, weight, ignore_index);
    wf_tensor *log_p = wf_log_softmax(input, -1), *rows = nll_rows(log_p, &c);
    if (smoothing != 0) {
        wf_tensor *all =
            wf_mul(over_classes(log_p, NULL, weight), wf_inverse_count(input, WF_LAST_AXIS, 0));
        all = wf_where(c.counted, all, number(input, 0));
        rows = wf_add(wf_scale(rows, 1 - smoothing), wf_scale(all, smoothing));
    }
    return reduce_counted(rows, c.weight, r);
}

/* For labels without class weights, the fused op wf_cross_entropy computes the sum or mean. */
wf_tensor *wf_cross_entropy_loss(wf_tensor *input, wf_tensor *target, wf_tensor *weight,
                                 double label_smoothing, int32_t ignore_index, wf_reduction r) {
    WF_COMPOSE("cross_entropy_loss", input, target, weight ? weight : input);
    if (!(label_smoothing >= 0 && label_smoothing <= 1))
        return wf_poison(input ? input->graph : NULL, "a label smoothing of %g is not from 0 to 1",
                         label_smoothing);
    bool real = target && target->dtype != WF_I32;
    if (!classes_fit(input, real ? NULL : target, weight)) return wf_poison(input->graph, NULL);
    if (real) return wf_composed(of_probabilities(input, target, weight, label_smoothing, r));
    if (weight || (r != WF_REDUCE_MEAN && r != WF_REDUCE_SUM))
        return wf_composed(of_labels(input, target, weight, label_smoothing, ignore_index, r));
    wf_cross_entropy_result fused = wf_cross_entropy(input, target, label_smoothing, ignore_index);
    if (r == WF_REDUCE_SUM) return wf_composed(fused.loss);
    return wf_composed(wf_div(fused.loss, wf_maximum(fused.count, number(fused.count, 1))));
}
