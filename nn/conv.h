/* weft/nn/conv.h - layers that convolve: images, sequences, and their transposes. nn.h says what a
 * layer is.
 *
 *     struct wf_conv_layer first = wf_conv_new(g, "first", WF_CONV2D, 1, 16, 3,
 *                                              &(wf_conv_options){ .padding = { 1, 1 } }, true);
 *     wf_tensor *y = wf_relu(wf_convolve(&first, x));        [N,1,H,W] -> [N,16,H,W]
 *
 * Pooling has no parameters: wf_max_pool2d and its like are in ops.h, and so is the mean over an
 * image, wf_mean(x, WF_AXIS(-1) | WF_AXIS(-2), false). */
#ifndef WEFT_NN_CONV_H
#define WEFT_NN_CONV_H

#include "../ops/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* PyTorch's Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d. */
typedef enum { WF_CONV1D, WF_CONV2D, WF_CONV_TRANSPOSE1D, WF_CONV_TRANSPOSE2D } wf_conv_kind;
struct wf_conv_layer {
    wf_tensor *weight; /* [out, in/groups, k, k]; transposed [in, out/groups, k, k]; 1d: one k */
    wf_tensor *bias;   /* [out] or NULL */
    wf_conv_options options;
    wf_conv_kind kind;
    const char *path;
};
/* Make a layer from `in` to `out` channels whose kernel has `kernel` taps an axis. options may be
 * NULL. Initial weight and bias are uniform with bound 1 / sqrt(fan in), as in PyTorch:
 * kaiming_uniform_(a=sqrt(5)). The fan in is the number of elements of weight[0]. */
WF_API struct wf_conv_layer wf_conv_new(wf_graph *g, const char *name, wf_conv_kind kind,
                                        int64_t in, int64_t out, int64_t kernel,
                                        const wf_conv_options *options, bool bias);
/* [N,in,H,W] -> [N,out,H',W'], or [N,in,L] -> [N,out,L'] */
WF_API wf_tensor *wf_convolve(const struct wf_conv_layer *l, wf_tensor *x);

#ifdef __cplusplus
}
#endif
#endif
