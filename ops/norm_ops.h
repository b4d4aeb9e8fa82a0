/* weft/ops/norm_ops.h - softmax and normalisation. See ops.h. */
#ifndef WEFT_OPS_NORM_OPS_H
#define WEFT_OPS_NORM_OPS_H

#include "../core/graph.h"
#include "../core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- normalisation: softmax.c, layer_norm.c, rms_norm.c, batch_norm.c ------------------------ */
/* softmax over the last axis. mask (may be NULL) broadcasts to x; 0 means masked. causal: row i of
 * the last two axes sees columns j <= i + (columns - rows). If all columns of a row are masked, the
 * result and the gradient are zeros */
WF_API wf_tensor *wf_masked_softmax(wf_tensor *x, wf_tensor *mask, bool causal);
WF_API wf_tensor *wf_softmax(wf_tensor *x, int axis); /* exp(x) / sum(exp(x)) over the axis */
/* x - log(sum(exp(x))) over the axis */
WF_API wf_tensor *wf_log_softmax(wf_tensor *x, int axis);
/* softmax over the rows with the same id. x [E,...], ids [E] in 0..N-1, where N is the first size
 * of `segments`, whose values are not read */
WF_API wf_tensor *wf_segment_softmax(wf_tensor *x, wf_tensor *ids, wf_tensor *segments);
/* (x - mean) / sqrt(variance + eps) * weight + bias over these axes together, usually WF_LAST_AXIS.
 * weight and bias have the sizes of these axes, or are NULL. Rows whose squares overflow are scaled
 * first, so that with eps > 0 every row of finite numbers has a finite result. A NaN or an infinity
 * makes its whole row NaN. The last two sentences hold for rms_norm, too. */
WF_API wf_tensor *wf_layer_norm(wf_tensor *x, uint32_t axes, wf_tensor *weight, wf_tensor *bias,
                                double eps);
/* x / sqrt(mean(x^2) + eps) * weight over the last axis; weight is [D] or NULL */
WF_API wf_tensor *wf_rms_norm(wf_tensor *x, wf_tensor *weight, double eps);

/* group_norm and batch_norm (batch_norm.c) take x [N,C,...], N images of C channels; weight and
 * bias are [C] or NULL. group_norm divides the channels into `groups` groups. Mean and variance are
 * taken over all elements of one group of one image. */
WF_API wf_tensor *wf_group_norm(wf_tensor *x, int64_t groups, wf_tensor *weight, wf_tensor *bias,
                                double eps);
/* batch_norm normalises over each channel. Plans that train use the mean and the biased variance of
 * the batch; other plans use the running ones, [C]. If these are NULL, every plan uses those of the
 * batch. The layer wf_norm_batch of nn updates running ones. */
typedef struct wf_batch_norm_result {
    /* y has the shape of x; mean and variance [C] are those that were used */
    wf_tensor *y, *mean, *variance;
} wf_batch_norm_result;
WF_API wf_batch_norm_result wf_batch_norm(wf_tensor *x, wf_tensor *running_mean,
                                          wf_tensor *running_variance, wf_tensor *weight,
                                          wf_tensor *bias, double eps);
WF_API wf_tensor *wf_is_training(wf_tensor *like); /* real []: 1 in a plan that trains, else 0 */

#ifdef __cplusplus
}
#endif
#endif
