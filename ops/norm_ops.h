/* weft/ops/norm_ops.h - softmax and normalisation. See ops.h. */
#ifndef WEFT_OPS_NORM_OPS_H
#define WEFT_OPS_NORM_OPS_H

#include "../core/graph.h"
#include "../core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- normalisation: softmax.c, layer_norm.c, rms_norm.c, batch_norm.c ------------------------ */
/* last axis; mask (may be NULL) broadcasts to x, 0 = masked; causal: row i of the last two axes
 * sees j <= i + (columns - rows); a row with all columns masked gives zeros and gradient zero */
WF_API wf_tensor *wf_masked_softmax(wf_tensor *x, wf_tensor *mask, bool causal);
WF_API wf_tensor *wf_softmax(wf_tensor *x, int axis); /* exp(x) / sum(exp(x)) over the axis */
/* x - log(sum(exp(x))) over the axis */
WF_API wf_tensor *wf_log_softmax(wf_tensor *x, int axis);
/* x [E,...], ids [E]: over the rows that have one id, 0..N-1, N the first size of `segments` */
WF_API wf_tensor *wf_segment_softmax(wf_tensor *x, wf_tensor *ids, wf_tensor *segments);
/* last axis; weight, bias [D] or NULL. Rows whose squares overflow are scaled, so that every row of
 * finite numbers has its result; a NaN or an infinity makes its row NaN. So do all three norms. */
WF_API wf_tensor *wf_layer_norm(wf_tensor *x, wf_tensor *weight, wf_tensor *bias, double eps);
/* over these axes together; weight, bias: their sizes, or NULL */
WF_API wf_tensor *wf_layer_norm_over(wf_tensor *x, uint32_t axes, wf_tensor *weight,
                                     wf_tensor *bias, double eps);
/* x / sqrt(mean(x^2) + eps) * weight; last axis; weight [D] or NULL */
WF_API wf_tensor *wf_rms_norm(wf_tensor *x, wf_tensor *weight, double eps);

/* By the channels C of x [N,C,...], batch_norm.c; weight, bias [C] or NULL. group_norm: over the
 * channels and elements of each of `groups` groups of channels of an image. */
WF_API wf_tensor *wf_group_norm(wf_tensor *x, int64_t groups, wf_tensor *weight, wf_tensor *bias,
                                double eps);
/* batch_norm: over each channel, with the mean and the biased variance of the batch in plans that
 * train, and with the running ones, [C], in others. If these are NULL, those of the batch are used in
 * any plan. The layer wf_norm_batch of nn updates running ones. */
typedef struct wf_batch_norm_result {
    wf_tensor *y, *mean, *variance; /* as x; [C], which were used */
} wf_batch_norm_result;
WF_API wf_batch_norm_result wf_batch_norm(wf_tensor *x, wf_tensor *running_mean,
                                          wf_tensor *running_variance, wf_tensor *weight,
                                          wf_tensor *bias, double eps);
WF_API wf_tensor *wf_is_training(wf_tensor *like); /* real []: 1 in a plan that trains, else 0 */

#ifdef __cplusplus
}
#endif
#endif
