/* ops/attention_backward.c - the gradient of attention.c: q, k, v, mask, dy -> dq, dk, dv.
 *
 * With scores s = scale q k^T, weights p = softmax(s), dropped weights r = dropout(p), y = r v:
 *     dv = r^T dy        dr = dy v^T        dp = dropout(dr)
 *     ds = p * (dp - sum(dp * p))           dq = scale ds k        dk = scale ds^T q
 * The weights are computed again, block by block of query rows (Dao et al. 2022, "FlashAttention",
 * section 3.1), by the same kernels in the same order: the same bits. A task owns one head, and
 * adds up its dk and dv block by block. */
#include <string.h>

#include "attention.h"

static bool shape_attention_backward(wf_call *c) {
    const wf_view *dy = &c->in[IN_DY];
    wf_view y;
    if (!attention_fits(c, 2) || !wf_want_real(c, IN_DY)) return false;
    attention_view(&y, c->in[IN_Q].dtype, &c->in[IN_Q], c->in[IN_V].shape[3]);
    if (!wf_same_shape(&y, dy))
        return wf_fail(c, "dy %s is not of y's shape %s", wf_show(c, dy), wf_show(c, &y));
    for (int i = IN_Q; i <= IN_V; i++)
        attention_view(&c->out[i], y.dtype, &c->in[i], c->in[i].shape[3]);
    return true;
}

static int64_t tasks_attention_backward(const wf_call *c, int phase) {
    return phase == 0 ? c->in[IN_Q].shape[0] * c->in[IN_Q].shape[1] : 0;
}

static void clear_head(const attention_block *w, const wf_view *x) {
    wf_view head = attention_head(w, x, 0);
    for (int64_t s = 0; s < x->shape[2]; s++)
        memset(wf_at(&head, s * head.stride[0]), 0, (size_t)x->shape[3] * wf_dtype_size(x->dtype));
}

/* ds = scale p * (dp - sum(dp * p)), in place of dp. */
static void scores_gradient(const attention_block *w, const wf_view *dp) {
    for (int64_t r = 0; r < w->to - w->from; r++) {
        void *row = wf_at(dp, r * w->row);
        WF_KERNEL(dp->dtype, softmax_backward_row(w->n, wf_at(&w->weights, r * w->row), row, row));
        WF_KERNEL(dp->dtype, affine(w->n, row, w->scale, 0, row));
    }
}

static void block_backward(const attention_block *w, void *scratch) {
    const wf_call *c = w->call;
    int64_t rows = w->to - w->from, n = w->n, dk = c->in[IN_K].shape[3], dv = c->in[IN_V].shape[3];
    wf_view other = { .data = scratch, .dtype = w->weights.dtype }; /* r, then dr, dp and ds */
    void *gemm = wf_at(&other, ATTENTION_BLOCK * w->row);
    wf_view q = attention_head(w, &c->in[IN_Q], w->from), k = attention_head(w, &c->in[IN_K], 0),
            v = attention_head(w, &c->in[IN_V], 0), dy = attention_head(w, &c->in[IN_DY], w->from),
            q_grad = attention_head(w, &c->out[IN_Q], w->from),
            k_grad = attention_head(w, &c->out[IN_K], 0),
            v_grad = attention_head(w, &c->out[IN_V], 0);
    attention_weights(w, gemm);
    if (w->drops) attention_dropout(w, &w->weights, &other);
    void *r = w->drops ? other.data : w->weights.data;
    WF_KERNEL(q.dtype, gemm(n, dv, rows, r, 1, w->row, dy.data, dy.stride[0], dy.stride[1],
                            v_grad.data, v_grad.stride[0], true, gemm));
    WF_KERNEL(q.dtype, gemm(rows, n, dv, dy.data, dy.stride[0], dy.stride[1], v.data, v.stride[1],
                            v.stride[0], other.data, w->row, false, gemm));
    if (w->drops) attention_dropout(w, &other, &other);
    scores_gradient(w, &other);
    WF_KERNEL(q.dtype, gemm(rows, dk, n, other.data, w->row, 1, k.data, k.stride[0], k.stride[1],
                            q_grad.data, q_grad.stride[0], false, gemm));
    WF_KERNEL(q.dtype, gemm(n, dk, rows, other.data, 1, w->row, q.data, q.stride[0], q.stride[1],
                            k_grad.data, k_grad.stride[0], true, gemm));
}

static bool eval_attention_backward(const wf_call *c, int phase, int64_t task, void *scratch) {
    int64_t blocks = wf_task_count(c->in[IN_Q].shape[2], ATTENTION_BLOCK);
    (void)phase;
    for (int64_t block = 0; block < blocks; block++) {
        attention_block w = attention_block_of(c, task, block, scratch);
        if (block == 0) clear_head(&w, &c->out[IN_K]), clear_head(&w, &c->out[IN_V]);
        block_backward(&w, wf_at(&w.weights, ATTENTION_BLOCK * w.row));
    }
    return true;
}

/* Five products where forward has two. */
static double flops_attention_backward(const wf_call *c) {
    return 2 * attention_pairs(c) * (double)(3 * c->in[IN_Q].shape[3] + 2 * c->in[IN_V].shape[3]);
}

/* q, k and v may be one tensor: as nodes of their own, each gets the share that came through it. */
static void decompose_attention_backward(wf_tensor *dq, wf_tensor **results) {
    wf_tensor *x[3];
    for (int i = IN_Q; i <= IN_V; i++) x[i] = wf_alias(dq->in[i]);
    wf_tensor *y = attention_primitives(x[IN_Q], x[IN_K], x[IN_V], dq->in[IN_MASK], dq->attrs);
    wf_vjp(&y, &dq->in[IN_DY], 1, x, 3, results);
}

const wf_op wf_op_attention_backward = {
    .name = "attention_backward",
    .family = "attention",
    .arity = 5,
    .results = 3,
    .attr_bytes = sizeof(attention_attrs),
    .shape = shape_attention_backward,
    .tasks = tasks_attention_backward,
    .eval = eval_attention_backward,
    .decompose = decompose_attention_backward,
    .flops = flops_attention_backward,
    .optional = 1 << IN_MASK,
    .strided = 1 << IN_Q | 1 << IN_K | 1 << IN_V | 1 << IN_DY,
};
