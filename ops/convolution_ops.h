/* weft/ops/convolution_ops.h - convolution and pooling. See ops.h. */
#ifndef WEFT_OPS_CONVOLUTION_OPS_H
#define WEFT_OPS_CONVOLUTION_OPS_H

#include "../core/graph.h"
#include "../core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- convolution: convolution/ --------------------------------------------------------------- */
/* The windows of an axis, a view: its size becomes (n - dilation (size - 1) - 1) / step + 1, and
 * the elements of a window, `dilation` apart, are a new last axis. Windows begin `step` apart. */
WF_API wf_tensor *wf_unfold(wf_tensor *x, int axis, int64_t size, int64_t step, int64_t dilation);
/* Its adjoint: windows y added at their places in zeros of like's shape, in one order */
WF_API wf_tensor *wf_fold(wf_tensor *y, wf_tensor *like, int axis, int64_t size, int64_t step,
                          int64_t dilation);

/* Options along the rows and the columns of an image; of conv1d, only the first ones are read. One
 * number of stride, padding or dilation is for both: { 2 } is { 2, 2 }, and { 1, WF_NO_PADDING } pads
 * the rows alone. 0 is the default, PyTorch's: stride 1, padding 0, dilation 1, one group. */
#define WF_NO_PADDING INT64_MIN
typedef struct wf_conv_options {
    int64_t stride[2], padding[2], dilation[2];
    int64_t output_padding[2]; /* of the transposes: less than the stride */
    int64_t groups;
} wf_conv_options;
/* x [N,C,H,W], weight [O,C/groups,kh,kw], bias [O] or NULL -> [N,O,H',W'], H' = (H + 2 padding -
 * dilation (kh - 1) - 1) / stride + 1. options may be NULL. An element is one chain of
 * multiply-adds over channels, rows and columns of the kernel, in order, after the bias; that of
 * the gradient of the weight is a sum over images and positions in a fixed order, which depends
 * on the shapes. */
WF_API wf_tensor *wf_conv2d(wf_tensor *x, wf_tensor *weight, wf_tensor *bias,
                            const wf_conv_options *options);
/* x [N,C,L], weight [O,C/groups,k] -> [N,O,L'] */
WF_API wf_tensor *wf_conv1d(wf_tensor *x, wf_tensor *weight, wf_tensor *bias,
                            const wf_conv_options *options);
/* The gradient of conv2d by its x, as an op: x [N,C,H,W], weight [C,O/groups,kh,kw] -> [N,O,H',W'],
 * H' = (H - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1 */
WF_API wf_tensor *wf_conv_transpose2d(wf_tensor *x, wf_tensor *weight, wf_tensor *bias,
                                      const wf_conv_options *options);
WF_API wf_tensor *wf_conv_transpose1d(wf_tensor *x, wf_tensor *weight, wf_tensor *bias,
                                      const wf_conv_options *options);

/* Pooling: x [N,C,H,W] -> [N,C,H',W'], sizes as of conv2d, one number for both axes as there; of pool1d, x [N,C,L], only the first
 * ones are read. The stride is by default the kernel's size; at most half of a kernel is
 * padding. The mean over a whole image is wf_mean. */
typedef struct wf_pool_options {
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    bool exclude_pad; /* avg_pool: PyTorch's count_include_pad=False */
    /* sizes are rounded up: a last window may reach beyond the padding, if it begins before its end */
    bool ceil_mode;
} wf_pool_options;
/* of equal maxima the first gets the gradient; a NaN is the maximum */
WF_API wf_tensor *wf_max_pool2d(wf_tensor *x, const wf_pool_options *options);
WF_API wf_tensor *wf_max_pool1d(wf_tensor *x, const wf_pool_options *options);
/* the mean of each window */
WF_API wf_tensor *wf_avg_pool2d(wf_tensor *x, const wf_pool_options *options);
WF_API wf_tensor *wf_avg_pool1d(wf_tensor *x, const wf_pool_options *options);

#ifdef __cplusplus
}
#endif
#endif
