/* weft/nn/loss.h - losses, with the names and numbers of torch.nn.functional. They are composed of
 * ops. The fused sum of token losses that models use is wf_cross_entropy (ops.h).
 *
 *     wf_tensor *loss = wf_mse_loss(y, target, WF_REDUCE_MEAN);                    []
 *     wf_tensor *rows = wf_l1_loss(y, target, WF_REDUCE_NONE);                     y's shape
 *
 * Targets may need gradients, too, unless they are i32. Real targets and their inputs broadcast. A
 * trainer or optimizer of a mean loss gets wf_constant(g, 1) as its count. */
#ifndef WEFT_NN_LOSS_H
#define WEFT_NN_LOSS_H

#include "../ops/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    WF_REDUCE_MEAN,
    WF_REDUCE_SUM,
    WF_REDUCE_NONE, /* no reduction: one loss per element, or one per row if the targets are class
                     * labels */
    /* the sum divided by the size of the first axis: PyTorch's "batchmean", which is the right mean
     * for a KL divergence */
    WF_REDUCE_BATCH_MEAN
} wf_reduction;

/* ---- of real targets ------------------------------------------------------------------------- */

WF_API wf_tensor *wf_mse_loss(wf_tensor *input, wf_tensor *target, wf_reduction r); /* d^2 */
/* |d|; gradient 0 at 0 */
WF_API wf_tensor *wf_l1_loss(wf_tensor *input, wf_tensor *target, wf_reduction r);
/* d^2 / (2 beta) where |d| < beta, else |d| - beta / 2. With beta 0 it is wf_l1_loss */
WF_API wf_tensor *wf_smooth_l1_loss(wf_tensor *input, wf_tensor *target, wf_reduction r,
                                    double beta);
/* delta times wf_smooth_l1_loss with beta = delta; delta must be above 0 */
WF_API wf_tensor *wf_huber_loss(wf_tensor *input, wf_tensor *target, wf_reduction r, double delta);
/* target (log target - input). input holds log-probabilities; if log_target is true, target does,
 * too. Where target is 0 the loss is 0; but an infinite input makes it NaN, as in PyTorch. */
WF_API wf_tensor *wf_kl_div(wf_tensor *input, wf_tensor *target, wf_reduction r, bool log_target);
/* -(p t log sigmoid(x) + (1 - t) log(1 - sigmoid(x))) w for logits x. weight w and pos_weight p
 * broadcast; NULL: 1. The loss is finite for any finite x. Without weights its gradient is
 * sigmoid(x) - t. The mean is over all elements. */
WF_API wf_tensor *wf_binary_cross_entropy_with_logits(wf_tensor *input, wf_tensor *target,
                                                      wf_tensor *weight, wf_tensor *pos_weight,
                                                      wf_reduction r);
/* a.b / (max(|a|, eps) max(|b|, eps)) over an axis; PyTorch's eps is 1e-8 */
WF_API wf_tensor *wf_cosine_similarity(wf_tensor *a, wf_tensor *b, int axis, double eps);

/* ---- losses of C classes, which are the last axis (axis 1 in PyTorch) ---------------- */

/* -weight[label] input[label]: input [...,C] holds log-probabilities, labels [...] i32. Rows whose
 * label is ignore_index (PyTorch's is -100) give 0. weight [C], or NULL: ones. The mean divides by
 * the sum of the weights of the rows that are not ignored. If all are ignored it is 0, where
 * PyTorch has NaN. */
WF_API wf_tensor *wf_nll_loss(wf_tensor *input, wf_tensor *labels, wf_tensor *weight,
                              int32_t ignore_index, wf_reduction r);
/* Cross-entropy of logits. A target of labels is i32: each label has the probability 1. A real
 * target [...,C] holds probabilities. Label smoothing multiplies them by 1 - smoothing, and adds
 * smoothing / C for every class. The mean is that of wf_nll_loss for labels; for a real target it
 * divides by the number of rows, whatever the weights. */
WF_API wf_tensor *wf_cross_entropy_loss(wf_tensor *input, wf_tensor *target, wf_tensor *weight,
                                        double label_smoothing, int32_t ignore_index,
                                        wf_reduction r);

#ifdef __cplusplus
}
#endif
#endif
