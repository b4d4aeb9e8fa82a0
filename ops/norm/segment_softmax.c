/* ops/norm/segment_softmax.c - a softmax over the rows that have the same id. Graph attention uses
 * it over all edges that lead to one node (Velickovic et al. 2018, equation 3). */
#include <float.h>
#include <math.h>

#include "core/compose.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/shape/index.h"

/* A tensor filled with `value` in the shape [N, ...]: the first axis of `segments` and the other
 * axes of x. */
static wf_tensor *filled(wf_tensor *x, wf_tensor *segments, double value) {
    uint32_t others = 0;
    for (int i = 1; i < x->ndim; i++) others |= WF_AXIS(i);
    wf_tensor *number = wf_cast(wf_arange(segments, 0), wf_real(x->graph)); /* [N] */
    if (others) number = wf_add(wf_unsqueeze(number, others), wf_sum(x, WF_AXIS(0), true));
    return wf_fill(number, value); /* only the shape of this tensor is used */
}

/* The largest value of a segment is subtracted to avoid overflow. The result does not depend on it,
 * so it is treated as a constant. If all values are -inf the sum is 0, and so are the results. */
wf_tensor *wf_segment_softmax(wf_tensor *x, wf_tensor *ids, wf_tensor *segments) {
    WF_COMPOSE("segment_softmax", x, ids, segments);
    wf_graph *g = x ? x->graph : NULL;
    if (!x || !ids || !segments) return wf_poison(g, "segment_softmax: an operand is NULL");
    if (wf_rank(x) < 1 || wf_rank(segments) < 1)
        return wf_poison(g, "segment_softmax: an operand without axes has no rows");
    if (ids->ndim == 1 && ids->shape[0] != x->shape[0])
        return wf_poison(g, "segment_softmax: there is not one id for each row");
    wf_tensor *at = wf_ids_of_axis("segment_softmax", x, 0, ids); /* [E,1,...] */
    wf_tensor *top =
        wf_scatter_reduce(filled(x, segments, -INFINITY), 0, at, wf_detach(x), WF_SCATTER_MAX);
    top = wf_clamp(wf_detach(top), -FLT_MAX, FLT_MAX);
    wf_tensor *e = wf_exp(wf_sub(x, wf_gather(top, 0, at)));
    wf_tensor *sum = wf_gather(wf_scatter_add(filled(x, segments, 0), 0, at, e), 0, at);
    return wf_composed(wf_div(e, wf_where(sum, sum, wf_constant(g, 1))));
}
