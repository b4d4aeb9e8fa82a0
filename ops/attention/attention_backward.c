/* ops/attention/attention_backward.c - gradient of attention_op.c: q, k, v, mask, dy, y, stats ->
 * dq, dk, dv.
 *
 * With scores s = scale q k^T, weights p = softmax(s), dropped weights r = dropout(p), y = r v:
 *     dv = r^T dy        dr = dy v^T        dp = dropout(dr)
 *     ds = p * (dp - sum(dp * p))           dq = scale ds k        dk = scale ds^T q
 * Here sum(dp * p) = sum(dr * r) = sum(dy * y), which needs no row of dp (Dao et al. 2022,
 * "FlashAttention", appendix B). The weights are recomputed from the stats of each row. A piece of
 * work is a whole head of k and v with all heads of q that use it, one after the other. So one task
 * sums its dk and dv, in one order. */
#include "attention_op.h"
#include "ops/base/shapes.h"

static bool shape_attention_backward(wf_call *c) {
    const wf_view *q = &c->in[IN_Q], *dy = &c->in[IN_DY];
    wf_view y, stats;
    if (!wf_attention_fits(c)) return false;
    for (int i = IN_DY; i <= IN_STATS; i++)
        if (!wf_want_real(c, i)) return false;
    wf_attention_view(&y, q->dtype, q, c->in[IN_V].shape[3]);
    wf_attention_stats_view(&stats, q->dtype, q);
    if (!wf_same_shape(&y, dy) || !wf_same_shape(&y, &c->in[IN_Y]) ||
        !wf_same_shape(&stats, &c->in[IN_STATS]))
        return wf_fail(c, "dy %s, y %s or stats %s is not of its shape", wf_show(c, dy),
                       wf_show(c, &c->in[IN_Y]), wf_show(c, &c->in[IN_STATS]));
    for (int i = IN_Q; i <= IN_V; i++)
        wf_attention_view(&c->out[i], y.dtype, &c->in[i], c->in[i].shape[3]);
    return true;
}

static int64_t pieces(const wf_call *c) {
    return c->in[IN_K].shape[0] * c->in[IN_K].shape[1];
}

static int64_t pieces_of_task(const wf_call *c) {
    return wf_attention_pieces(c, 2 * c->in[IN_Q].shape[2] * wf_attention_group(c));
}

static int64_t tasks_attention_backward(const wf_call *c, int phase) {
    return phase == 0 ? wf_task_count(pieces(c), pieces_of_task(c)) : 0;
}

static void set_head(const wf_call *c, wf_attention_head *h, int64_t head) {
    attention_place at = wf_attention_at(c, h, head);
    h->dy = wf_attention_matrix(&c->in[IN_DY], at);
    h->y = wf_attention_matrix(&c->in[IN_Y], at);
    h->stats = wf_attention_matrix(&c->in[IN_STATS], at);
    h->dq = wf_attention_matrix(&c->out[IN_Q], at);
    attention_place keys = wf_attention_key_place(c, at);
    h->dk = wf_attention_matrix(&c->out[IN_K], keys);
    h->dv = wf_attention_matrix(&c->out[IN_V], keys);
    h->adds = head % wf_attention_group(c) != 0;
}

static bool eval_attention_backward(const wf_call *c, int phase, int64_t task, void *scratch) {
    int64_t group = wf_attention_group(c), head, end;
    (void)phase;
    wf_task_range(pieces(c), pieces_of_task(c), task, &head, &end);
    head *= group;
    end *= group;
    if (head == end) return true;
    wf_attention_head h = wf_attention_head_of(c), next = h;
    set_head(c, &next, head);
    for (; head < end; head++) {
        h = next;
        if (head + 1 < end) set_head(c, &next, head + 1);
        h.next = head + 1 < end ? &next : NULL;
        WF_KERNEL(c->out[0].dtype, attention_backward(&h, scratch));
    }
    return true;
}

/* The backward op has five products; the forward op has two. */
static double flops_attention_backward(const wf_call *c) {
    return 2 * wf_attention_pairs(c) *
           (double)(3 * c->in[IN_Q].shape[3] + 2 * c->in[IN_V].shape[3]);
}

/* Records the same gradients with other ops. q, k and v may be one tensor; as separate nodes
 * (aliases) each of them gets its own gradient. */
static void decompose_attention_backward(wf_tensor *dq, wf_tensor **results) {
    wf_tensor *x[3];
    for (int i = IN_Q; i <= IN_V; i++) x[i] = wf_alias(dq->in[i]);
    wf_tensor *y = wf_attention_primitives(x[IN_Q], x[IN_K], x[IN_V], dq->in[IN_MASK], dq->attrs);
    wf_vjp(&y, &dq->in[IN_DY], 1, x, 3, results);
}

/* Shapes: q, k, v, mask as of attention, dy and y [B, H, T, dv], stats -> dq, dk, dv as q, k, v.
 * Gradient: It comes from the decomposition: the derivative of attention written with products and
 * a softmax.
 * Limits: The weights are computed again from stats, which attention saved. */
const wf_op wf_op_attention_backward = {
    .name = "attention_backward",
    .family = "attention",
    .formula =
        "attention_backward(q, k, v, mask, dy, y, stats): dv = p^T dy; ds = p (dy v^T - sum(dy "
        "y)); dq = scale ds k; dk = scale ds^T q",
    .arity = 7,
    .results = 3,
    .attr_bytes = sizeof(attention_attrs),
    .attributes =
        "double scale, double dropout, uint64_t site, int64_t window, bool causal, bool additive",
    .shape = shape_attention_backward,
    .decompose = decompose_attention_backward,
    .optional = 1 << IN_MASK,
    .nondiff = 1 << IN_MASK,
    .run = &(const wf_kernel){ .plan = wf_attention_plan,
                               .tasks = tasks_attention_backward,
                               .eval = eval_attention_backward,
                               .flops = flops_attention_backward,
                               .emit = wf_emit_attention_backward,
                               .strided = 1 << IN_Q | 1 << IN_K | 1 << IN_V | 1 << IN_DY |
                                          1 << IN_Y | 1 << IN_STATS },
};
