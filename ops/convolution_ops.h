/* weft/ops/convolution_ops.h - convolution and pooling. See ops.h. */
#ifndef WEFT_OPS_CONVOLUTION_OPS_H
#define WEFT_OPS_CONVOLUTION_OPS_H

#include "../core/graph.h"
#include "../core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- convolution: convolution/ --------------------------------------------------------------- */
/* The windows of an axis, as a view. The axis gets the size (n - dilation (size - 1) - 1) / step +
 * 1. A new last axis has the elements of a window, which are `dilation` apart. Windows begin `step`
 * apart. */
WF_API wf_tensor *wf_unfold(wf_tensor *x, int axis, int64_t size, int64_t step, int64_t dilation);
/* The adjoint of unfold: windows y are added at their places to zeros in the shape of `like`, in a
 * fixed order */
WF_API wf_tensor *wf_fold(wf_tensor *y, wf_tensor *like, int axis, int64_t size, int64_t step,
                          int64_t dilation);

/* Options for the rows and the columns of an image; conv1d reads only the first number of each. A
 * single number of stride, padding or dilation is for both: { 2 } is { 2, 2 }, and { 1,
 * WF_NO_PADDING } pads the rows alone. 0 means PyTorch's default: stride 1, padding 0, dilation 1,
 * one group. */
#define WF_NO_PADDING INT64_MIN
typedef struct wf_conv_options {
    int64_t stride[2], padding[2], dilation[2];
    int64_t output_padding[2]; /* only for transposed convolutions; less than the stride */
    int64_t groups;
} wf_conv_options;
/* x [N,C,H,W], weight [O,C/groups,kh,kw], bias [O] or NULL -> [N,O,H',W'], H' = (H + 2 padding -
 * dilation (kh - 1) - 1) / stride + 1. options may be NULL. An element of the result is one chain
 * of multiply-adds, which begins with the bias and goes over channels, rows and columns of the
 * kernel, in this order. An element of the weight's gradient is a sum over images and positions in
 * a fixed order, which depends only on the shapes. */
WF_API wf_tensor *wf_conv2d(wf_tensor *x, wf_tensor *weight, wf_tensor *bias,
                            const wf_conv_options *options);
/* x [N,C,L], weight [O,C/groups,k] -> [N,O,L'] */
WF_API wf_tensor *wf_conv1d(wf_tensor *x, wf_tensor *weight, wf_tensor *bias,
                            const wf_conv_options *options);
/* The gradient of conv2d with respect to x, as an op: x [N,C,H,W], weight [C,O/groups,kh,kw] ->
 * [N,O,H',W'], H' = (H - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1 */
WF_API wf_tensor *wf_conv_transpose2d(wf_tensor *x, wf_tensor *weight, wf_tensor *bias,
                                      const wf_conv_options *options);
WF_API wf_tensor *wf_conv_transpose1d(wf_tensor *x, wf_tensor *weight, wf_tensor *bias,
                                      const wf_conv_options *options);

/* Pooling: x [N,C,H,W] -> [N,C,H',W']. Sizes and single numbers are as in conv2d; pool1d, with x
 * [N,C,L], reads only the first numbers. The default stride is the size of the kernel. At most half
 * of a kernel may be padding. The mean over a whole image is wf_mean. */
typedef struct wf_pool_options {
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    bool exclude_pad; /* for avg_pool: PyTorch's count_include_pad=False */
    /* true: the sizes of the result are rounded up, so a last window that begins before the end of
     * the image may reach beyond the padding */
    bool ceil_mode;
} wf_pool_options;
/* the first of equal maxima gets the gradient; a NaN counts as the maximum */
WF_API wf_tensor *wf_max_pool2d(wf_tensor *x, const wf_pool_options *options);
WF_API wf_tensor *wf_max_pool1d(wf_tensor *x, const wf_pool_options *options);
/* the mean of each window */
WF_API wf_tensor *wf_avg_pool2d(wf_tensor *x, const wf_pool_options *options);
WF_API wf_tensor *wf_avg_pool1d(wf_tensor *x, const wf_pool_options *options);

#ifdef __cplusplus
}
#endif
#endif
