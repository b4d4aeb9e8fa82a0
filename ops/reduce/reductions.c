/* ops/reduce/reductions.c - reductions composed of other ops: argmin, prod, var, std, vector_norm,
 * logsumexp, any, all. */
#include <float.h>
#include <math.h>

#include "core/compose.h"
#include "core/graph_internal.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/ops_internal.h"
#include "reduce.h"

wf_tensor *wf_argmin(wf_tensor *x, int axis) {
    WF_COMPOSE("argmin", x);
    return wf_composed(wf_argmax(wf_neg(x), axis));
}

/* ---- products -------------------------------------------------------------------------------- */

wf_tensor *wf_merge_last(const char *op, wf_tensor *x, uint32_t axes, int *kept, int *order) {
    int ndim = wf_rank(x), n = 0;
    int64_t dims[WF_MAX_DIMS] = { 0 };
    char shape[256], text[WF_AXES_TEXT];
    if (!x) return wf_poison(NULL, "%s: no operand", op);
    wf_shape_text(x->graph, ndim, x->shape, shape, sizeof shape);
    if (!wf_axes_fit(axes, ndim, shape, text)) return wf_poison(x->graph, "%s: %s", op, text);
    for (int reduced = 0; reduced < 2; reduced++) {
        for (int i = 0; i < ndim; i++)
            if ((int)(axes >> i & 1) == reduced) order[n++] = i;
        if (!reduced) *kept = n;
    }
    if (*kept == ndim) return wf_unsqueeze(x, WF_LAST_AXIS);
    dims[*kept] = WF_REST; /* the axes before it stay as they are (WF_KEEP) */
    return wf_reshape(wf_permute(x, order), *kept + 1, dims);
}

/* The product is the last of the running products. A 1 before them is the product of no elements.
 * The gradient is right where elements are 0. */
wf_tensor *wf_prod(wf_tensor *x, uint32_t axes, bool keepdim) {
    WF_COMPOSE("prod", x);
    int kept = 0, order[WF_MAX_DIMS];
    axes = wf_axes(axes, wf_rank(x));
    wf_tensor *y = wf_merge_last("prod", x, axes, &kept, order);
    y = wf_cumprod(wf_pad(y, -1, 1, 0, 1), -1, false);
    y = wf_squeeze(wf_slice(y, -1, -1, WF_END), WF_LAST_AXIS);
    return wf_composed(keepdim && axes != WF_NO_AXES ? wf_unsqueeze(y, axes) : y);
}

/* ---- deviations and norms -------------------------------------------------------------------- */

/* sqrt(x), whose gradient at 0 is taken as 0: a subgradient of a norm, the same as PyTorch's. */
static wf_tensor *root(wf_tensor *x) {
    wf_tensor *one = wf_constant(x ? x->graph : NULL, 1);
    return wf_where(x, wf_sqrt(wf_where(x, x, one)), wf_zero(x));
}

wf_tensor *wf_var(wf_tensor *x, uint32_t axes, double correction, bool keepdim) {
    WF_COMPOSE("var", x);
    wf_tensor *centred = wf_sub(x, wf_mean(x, axes, true));
    wf_tensor *squares = wf_sum(wf_square(centred), axes, keepdim);
    return wf_composed(wf_mul(squares, wf_inverse_count(x, axes, correction)));
}

wf_tensor *wf_std(wf_tensor *x, uint32_t axes, double correction, bool keepdim) {
    WF_COMPOSE("std", x);
    return wf_composed(root(wf_var(x, axes, correction, keepdim)));
}

wf_tensor *wf_vector_norm(wf_tensor *x, double p, uint32_t axes, bool keepdim) {
    WF_COMPOSE("vector_norm", x);
    if (p == 2) return wf_composed(root(wf_sum(wf_square(x), axes, keepdim)));
    if (p == 1) return wf_composed(wf_sum(wf_abs(x), axes, keepdim));
    if (p == INFINITY) return wf_composed(wf_max(wf_abs(x), axes, keepdim));
    if (p == -INFINITY) return wf_composed(wf_min(wf_abs(x), axes, keepdim));
    return wf_poison(x ? x->graph : NULL, "vector_norm: p is %g, not 1, 2 or an infinity", p);
}

/* ---- logsumexp ------------------------------------------------------------------------------- */

/* The largest value is subtracted to avoid overflow. The result does not depend on it, so it is
 * treated as a constant. If all values are -inf, or there are none, the sum is 0, and so is the
 * gradient. */
wf_tensor *wf_logsumexp(wf_tensor *x, uint32_t axes, bool keepdim) {
    WF_COMPOSE("logsumexp", x);
    wf_graph *g = x ? x->graph : NULL;
    double most = wf_real(g) == WF_F64 ? DBL_MAX : FLT_MAX;
    axes = wf_axes(axes, wf_rank(x));
    wf_tensor *top = wf_clamp(wf_max_or_least(wf_detach(x), axes), -most, most);
    wf_tensor *sum = wf_sum(wf_exp(wf_sub(x, top)), axes, true);
    wf_tensor *log = wf_log(wf_where(sum, sum, wf_constant(g, 1)));
    wf_tensor *y = wf_where(sum, wf_add(log, top), wf_constant(g, -INFINITY));
    return wf_composed(keepdim || axes == WF_NO_AXES ? y : wf_squeeze(y, axes));
}

/* ---- truth values: true is anything but 0, even NaN ------------------------------------------ */

wf_tensor *wf_any(wf_tensor *x, uint32_t axes, bool keepdim) {
    WF_COMPOSE("any", x);
    return wf_composed(
        wf_greater(wf_sum(wf_not_equal(x, wf_zero_like(x)), axes, keepdim), wf_zero(x)));
}

wf_tensor *wf_all(wf_tensor *x, uint32_t axes, bool keepdim) {
    WF_COMPOSE("all", x);
    return wf_composed(wf_equal(wf_sum(wf_equal(x, wf_zero_like(x)), axes, keepdim), wf_zero(x)));
}
