/* weft/ops/training_ops.h - dropout, token losses, KV cache, updates of parameters. See ops.h. */
#ifndef WEFT_OPS_TRAINING_OPS_H
#define WEFT_OPS_TRAINING_OPS_H

#include "../core/graph.h"
#include "../core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- training: dropout.c, cross_entropy.c, update/ ------------------------------------------- */
/* Inverted dropout; the identity outside training plans. The dropped elements depend on the graph's
 * seed, on the step and micro-batch (wf_random_step), and on the site: the graph's current scope
 * together with the name `site`. If `site` is NULL, a number counted in the scope stands for the
 * name. Dropouts with the same site drop the same elements. */
WF_API wf_tensor *wf_dropout(wf_tensor *x, double rate, const char *site);
typedef struct wf_cross_entropy_result {
    wf_tensor *loss;  /* sum of the smoothed loss over the counted rows, shape [] */
    wf_tensor *nll;   /* sum of -log p[label], shape [] */
    wf_tensor *count; /* counted rows, real, shape [] */
} wf_cross_entropy_result;
/* logits [...,V], labels [...] i32; rows with label ignore_index are not counted. Any other label
 * outside 0..V-1 fails the run. smoothing is PyTorch's label_smoothing. */
WF_API wf_cross_entropy_result wf_cross_entropy(wf_tensor *logits, wf_tensor *labels,
                                                double smoothing, int32_t ignore_index);
/* the classes are on this axis: with axis 1, logits [B,V,...] and labels [B,...] as in PyTorch */
WF_API wf_cross_entropy_result wf_cross_entropy_over(wf_tensor *logits, wf_tensor *labels, int axis,
                                                     double smoothing, int32_t ignore_index);
/* KV cache (cache.c). In a plan without a state the result is x. With a state it has, along the
 * axis, the P rows of earlier runs and then the n rows of x: [..., P + n, ...]. No rows are stored
 * if other ops use only the shape of the result, as wf_key_mask does. */
WF_API wf_tensor *wf_cache(wf_tensor *x, int axis);
/* x itself; a NaN or an infinity in x fails the run, with `what` in the message */
WF_API wf_tensor *wf_check_finite(wf_tensor *x, const char *what);
/* Updates write a leaf, which is a parameter or a buffer. They have no value. A plan performs an
 * update if it is fetched, after all other readers of its leaf. If a value cannot be computed, the
 * run performs no update. An update whose scale or rates are not finite fails before it writes. */
/* leaf = value, which may be another leaf: a plan that fetches such updates copies parameters, for
 * example into a target network */
WF_API wf_tensor *wf_assign(wf_tensor *leaf, wf_tensor *value);
/* rates: real [n], the first is the learning rate; scale: real [], multiplies the gradient (for
 * clipping, 1/count). The buffer is needed for a momentum; otherwise it may be NULL. With
 * dampening, rates[1] is 0 at the first step, whose gradient is not dampened, and 1 later. options
 * NULL: all 0 */
typedef struct wf_sgd_options {
    double momentum, weight_decay, dampening;
    bool nesterov;
} wf_sgd_options;
WF_API wf_tensor *wf_sgd_step(wf_tensor *param, wf_tensor *momentum_buffer, wf_tensor *grad,
                              wf_tensor *scale, wf_tensor *rates, const wf_sgd_options *options);
/* rates: real [3] = { learning rate, 1 / (1 - beta1^t), 1 / (1 - beta2^t) }, computed in double by
 * the caller and fed. decoupled: weight decay as in AdamW; otherwise it is added to the gradient,
 * as in Adam. options NULL: betas 0.9 and 0.999, eps 1e-8, no decay */
typedef struct wf_adam_options {
    double beta1, beta2, eps, weight_decay;
    bool decoupled;
} wf_adam_options;
WF_API wf_tensor *wf_adam_step(wf_tensor *param, wf_tensor *m, wf_tensor *v, wf_tensor *grad,
                               wf_tensor *scale, wf_tensor *rates, const wf_adam_options *options);
/* The average is needed for `centered`, and must be NULL without it. The buffer is needed for a
 * momentum; otherwise it may be NULL. options NULL: alpha 0.99, eps 1e-8 */
typedef struct wf_rmsprop_options {
    double alpha, eps, weight_decay, momentum;
    /* divide by the standard deviation of the gradients, not by their root mean square; a negative
     * variance, which rounding can cause, counts as 0 (in PyTorch it gives NaN) */
    bool centered;
    bool sum; /* sum the squares as Adagrad does: squares += grad^2, without alpha */
} wf_rmsprop_options;
WF_API wf_tensor *wf_rmsprop_step(wf_tensor *param, wf_tensor *squares, wf_tensor *average,
                                  wf_tensor *momentum_buffer, wf_tensor *grad, wf_tensor *scale,
                                  wf_tensor *rates, const wf_rmsprop_options *options);
/* options NULL: betas 0.9 and 0.99, no decay. The decay is decoupled, as in AdamW. */
typedef struct wf_lion_options {
    double beta1, beta2, weight_decay;
} wf_lion_options;
WF_API wf_tensor *wf_lion_step(wf_tensor *param, wf_tensor *m, wf_tensor *grad, wf_tensor *scale,
                               wf_tensor *rates, const wf_lion_options *options);

/* ---- gradient check: check_gradients.c ------------------------------------------------------- */
/* Compares the gradient a of `loss` with finite differences d (a five-point stencil), for every
 * element of the parameters wrt. The graph must be f64, and the loss depend on no input. Returns
 * the largest |a - d| / max(|a|, |d|, 1e-3), not counting the rounding of the loss. message[256]
 * (may be NULL) names that element. NaN: the check failed, for the reason in message. */
WF_API double wf_check_gradients(wf_graph *g, wf_tensor *loss, wf_tensor *const *wrt, int n,
                                 char *message);

#ifdef __cplusplus
}
#endif
#endif
