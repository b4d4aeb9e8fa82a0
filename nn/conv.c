/* nn/conv.c - convolutions with weights of their own. */
#include <math.h>

#include "module.h"

/* He et al. (2015) with a slope a = sqrt(5), as PyTorch's reset_parameters: the bound is sqrt(6 /
 * ((1 + a^2) fan)) = 1 / sqrt(fan). */
static wf_init init_of(int64_t channels, int64_t taps) {
    return wf_init_uniform(1 / sqrt((double)channels * (double)taps));
}

/* The op of each kind, the number of axes that it convolves, and whether it is transposed. */
static const struct {
    wf_tensor *(*op)(wf_tensor *, wf_tensor *, wf_tensor *, const wf_conv_options *);
    int axes;
    bool transposed;
} kinds[] = { [WF_CONV1D] = { wf_conv1d, 1, false },
              [WF_CONV2D] = { wf_conv2d, 2, false },
              [WF_CONV_TRANSPOSE1D] = { wf_conv_transpose1d, 1, true },
              [WF_CONV_TRANSPOSE2D] = { wf_conv_transpose2d, 2, true } };

struct wf_conv_layer wf_conv_new(wf_graph *g, const char *name, wf_conv_kind kind, int64_t in,
                                 int64_t out, int64_t kernel, const wf_conv_options *options,
                                 bool bias) {
    struct wf_conv_layer l = { .kind = kind };
    const char *outer = wf_scope_push(g, name);
    if (options) l.options = *options;
    int64_t groups = l.options.groups ? l.options.groups : 1;
    if (kind < WF_CONV1D || kind > WF_CONV_TRANSPOSE2D) {
        wf_poison(g, "there is no convolution number %d", (int)kind);
    } else if (in < 1 || out < 1 || kernel < 1 || kernel > INT32_MAX || groups < 1 ||
               in % groups != 0 || out % groups != 0) {
        wf_poison(
            g,
            "a kernel of %lld from %lld to %lld channels in %lld groups: all are 1 or more, and "
            "groups divide both channels",
            (long long)kernel, (long long)in, (long long)out, (long long)groups);
    } else {
        int axes = kinds[kind].axes;
        int64_t first = kinds[kind].transposed ? in : out;
        int64_t second = (kinds[kind].transposed ? out : in) / groups;
        wf_init init = init_of(second, axes == 2 ? kernel * kernel : kernel);
        l.weight =
            wf_param(g, "weight", 2 + axes, (int64_t[]){ first, second, kernel, kernel }, init);
        if (bias) l.bias = wf_param(g, "bias", 1, &out, init);
    }
    l.path = wf_scope(g, outer);
    return l;
}

wf_tensor *wf_convolve(const struct wf_conv_layer *l, wf_tensor *x) {
    if (!l || !l->weight || l->kind < WF_CONV1D || l->kind > WF_CONV_TRANSPOSE2D)
        return no_layer(x, "a convolution");
    const char *outer = enter(l->weight, l->path);
    return leave(outer, kinds[l->kind].op(x, l->weight, l->bias, &l->options));
}
