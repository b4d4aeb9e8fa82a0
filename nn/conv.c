/* nn/conv.c - convolutions with weights of their own. */
#include <math.h>

#include "module.h"

/* He et al. (2015) with a slope a = sqrt(5), as PyTorch's reset_parameters: the bound is sqrt(6 /
 * ((1 + a^2) fan)) = 1 / sqrt(fan). */
static wf_init init_of(int64_t channels, int64_t taps) {
    return wf_init_uniform(1 / sqrt((double)channels * (double)taps));
}

static struct wf_conv_layer conv_new(wf_graph *g, const char *name, const int64_t channels[2],
                                     int axes, int64_t kernel, const wf_conv_options *o, bool bias,
                                     bool transposed) {
    struct wf_conv_layer l = { .transposed = transposed };
    const char *outer = wf_scope_push(g, name);
    if (o) l.options = *o;
    int64_t groups = l.options.groups ? l.options.groups : 1, in = channels[0], out = channels[1];
    int64_t first = transposed ? in : out, second = transposed ? out : in;
    if (in < 1 || out < 1 || kernel < 1 || kernel > INT32_MAX || groups < 1 || in % groups != 0 ||
        out % groups != 0) {
        wf_poison(
            g,
            "a kernel of %lld from %lld to %lld channels in %lld groups: all are 1 or more, and "
            "groups divide both channels",
            (long long)kernel, (long long)in, (long long)out, (long long)groups);
    } else {
        wf_init init = init_of(second / groups, axes == 2 ? kernel * kernel : kernel);
        l.weight = wf_param(g, "weight", 2 + axes,
                            (int64_t[]){ first, second / groups, kernel, kernel }, init);
        if (bias) l.bias = wf_param(g, "bias", 1, &out, init);
    }
    l.path = wf_scope(g, outer);
    return l;
}

struct wf_conv_layer wf_conv1d_new(wf_graph *g, const char *name, int64_t in, int64_t out,
                                   int64_t kernel, const wf_conv_options *options, bool bias) {
    return conv_new(g, name, (int64_t[]){ in, out }, 1, kernel, options, bias, false);
}

struct wf_conv_layer wf_conv2d_new(wf_graph *g, const char *name, int64_t in, int64_t out,
                                   int64_t kernel, const wf_conv_options *options, bool bias) {
    return conv_new(g, name, (int64_t[]){ in, out }, 2, kernel, options, bias, false);
}

struct wf_conv_layer wf_conv_transpose1d_new(wf_graph *g, const char *name, int64_t in, int64_t out,
                                             int64_t kernel, const wf_conv_options *options,
                                             bool bias) {
    return conv_new(g, name, (int64_t[]){ in, out }, 1, kernel, options, bias, true);
}

struct wf_conv_layer wf_conv_transpose2d_new(wf_graph *g, const char *name, int64_t in, int64_t out,
                                             int64_t kernel, const wf_conv_options *options,
                                             bool bias) {
    return conv_new(g, name, (int64_t[]){ in, out }, 2, kernel, options, bias, true);
}

wf_tensor *wf_convolve(const struct wf_conv_layer *l, wf_tensor *x) {
    static wf_tensor *(*const ops[2][2])(wf_tensor *, wf_tensor *, wf_tensor *,
                                         const wf_conv_options *) = {
        { wf_conv1d, wf_conv2d }, { wf_conv_transpose1d, wf_conv_transpose2d }
    };
    if (!l || !l->weight) return no_layer(x, "a convolution");
    const char *outer = enter(l->weight, l->path);
    return leave(outer,
                 ops[l->transposed][l->weight->ndim == 4](x, l->weight, l->bias, &l->options));
}
