/* ops/attention.c - scaled dot-product attention, fused (Vaswani et al. 2017, 3.2.1).
 *
 *     y = dropout(softmax(scale q k^T, masked)) v        B batch, H heads, T queries, S keys
 *
 * A task takes a block of query rows of one head, with its scores over all keys in scratch memory:
 * nothing of size T x S is kept. The gradient is attention_backward.c, which computes the weights
 * again. q, k and v may have any strides: they usually are views of [B, T, H * d], and y is laid
 * out as one. Projections and heads are nn's. */
#include <math.h>

#include "attention.h"

/* ---- shapes: q [B,H,T,dk], k [B,H,S,dk], v [B,H,S,dv], mask -> y [B,H,T,dv] ------------------ */

void attention_view(wf_view *v, wf_dtype type, const wf_view *rows, int64_t width) {
    const int64_t *n = rows->shape; /* B, H, rows */
    int64_t stride[4];
    wf_set_shape(v, type, 4, (int64_t[]){ n[0], n[1], n[2], width });
    wf_dense_strides(4, (int64_t[]){ n[0], n[2], n[1], width }, stride);
    v->stride[0] = stride[0], v->stride[1] = stride[2], v->stride[2] = stride[1], v->stride[3] = 1;
}

/* [B, H, T, S], which nobody holds: what masks and dropout count in. */
static wf_view scores_view(const wf_call *c) {
    wf_view scores = c->in[IN_Q];
    scores.shape[3] = c->in[IN_K].shape[2];
    return scores;
}

static bool operands_fit(wf_call *c) {
    const wf_view *q = &c->in[IN_Q], *k = &c->in[IN_K], *v = &c->in[IN_V];
    bool fit = q->ndim == 4 && k->ndim == 4 && v->ndim == 4;
    for (int i = 0; fit && i < 2; i++)
        fit = q->shape[i] == k->shape[i] && q->shape[i] == v->shape[i];
    if (fit && q->shape[3] == k->shape[3] && k->shape[2] == v->shape[2]) return true;
    return wf_fail(c, "q %s, k %s and v %s are not [B,H,T,dk], [B,H,S,dk] and [B,H,S,dv]",
                   wf_show(c, q), wf_show(c, k), wf_show(c, v));
}

bool attention_fits(wf_call *c, int score_blocks) {
    const attention_attrs *a = c->attrs;
    for (int i = IN_Q; i <= IN_V; i++)
        if (!wf_want_real(c, i)) return false;
    if (!operands_fit(c) || !wf_want_rate(c, a->dropout)) return false;
    wf_view scores = scores_view(c);
    if (!wf_mask_fits(c, &c->in[IN_MASK], &scores)) return false;
    size_t gemm = WF_KERNEL(scores.dtype, gemm_scratch);
    int64_t keys = scores.shape[3] > INT64_MAX - ROW_ALIGN ? 0 : attention_row(scores.shape[3]);
    if (!wf_shape_bytes(scores.dtype, 3, (int64_t[]){ score_blocks, ATTENTION_BLOCK, keys },
                        &c->scratch_bytes))
        return wf_fail(c, "%lld keys are too many", (long long)scores.shape[3]);
    c->scratch_bytes += gemm;
    return true;
}

static bool shape_attention(wf_call *c) {
    if (!attention_fits(c, 1)) return false;
    attention_view(&c->out[0], c->in[IN_Q].dtype, &c->in[IN_Q], c->in[IN_V].shape[3]);
    return true;
}

/* ---- blocks of query rows -------------------------------------------------------------------- */

attention_block attention_block_of(const wf_call *c, int64_t head, int64_t block, void *scratch) {
    const attention_attrs *a = c->attrs;
    const int64_t *q = c->in[IN_Q].shape; /* B, H, T, dk */
    int64_t T = q[2], S = c->in[IN_K].shape[2];
    attention_block w = {
        .call = c, .head = head, .b = head / q[1], .h = head % q[1], .row = attention_row(S)
    };
    wf_task_range(T, ATTENTION_BLOCK, block, &w.from, &w.to);
    w.n = wf_open_columns(a->causal, w.to - 1, T, S);
    w.scale = a->scale != 0 ? a->scale : 1 / sqrt((double)q[3]);
    w.drops = c->training && a->dropout > 0;
    w.weights = (wf_view){ .data = scratch, .dtype = c->in[IN_Q].dtype };
    return w;
}

wf_view attention_head(const attention_block *w, const wf_view *x, int64_t row) {
    wf_view v = { .dtype = x->dtype, .stride = { x->stride[2], x->stride[3] } };
    v.data = wf_at(x, w->b * x->stride[0] + w->h * x->stride[1] + row * x->stride[2]);
    return v;
}

void attention_weights(const attention_block *w, void *gemm) {
    const wf_call *c = w->call;
    const attention_attrs *a = c->attrs;
    wf_view scores = scores_view(c), q = attention_head(w, &c->in[IN_Q], w->from),
            k = attention_head(w, &c->in[IN_K], 0);
    int64_t T = scores.shape[2], S = scores.shape[3], dk = c->in[IN_Q].shape[3], step = 0;
    WF_KERNEL(q.dtype, gemm(w->to - w->from, w->n, dk, q.data, q.stride[0], q.stride[1], k.data,
                            k.stride[1], k.stride[0], w->weights.data, w->row, false, gemm));
    for (int64_t t = w->from; t < w->to; t++) {
        const void *mask = wf_mask_row(&c->in[IN_MASK], &scores, w->head * T + t, &step);
        void *row = wf_at(&w->weights, (t - w->from) * w->row);
        WF_KERNEL(q.dtype, softmax_row(w->n, wf_open_columns(a->causal, t, T, S), row, w->scale,
                                       mask, step, a->additive, row));
    }
}

/* Weight (b, h, t, s) is element ((b H + h) T + t) S + s of the site's stream, as in wf_dropout on
 * [B, H, T, S]. */
void attention_dropout(const attention_block *w, const wf_view *x, const wf_view *y) {
    const wf_call *c = w->call;
    const attention_attrs *a = c->attrs;
    wf_drop d = wf_drop_of(c, a->dropout, a->site);
    int64_t T = c->in[IN_Q].shape[2], S = c->in[IN_K].shape[2];
    for (int64_t t = w->from; t < w->to; t++) {
        int64_t at = (t - w->from) * w->row, element = (w->head * T + t) * S;
        WF_KERNEL(x->dtype, dropout(w->n, wf_at(x, at), d.scale, d.threshold, d.key, d.stream,
                                    (uint64_t)element, wf_at(y, at)));
    }
}

/* ---- the forward op -------------------------------------------------------------------------- */

static int64_t tasks_attention(const wf_call *c, int phase) {
    const int64_t *q = c->in[IN_Q].shape;
    return phase == 0 ? q[0] * q[1] * wf_task_count(q[2], ATTENTION_BLOCK) : 0;
}

static bool eval_attention(const wf_call *c, int phase, int64_t task, void *scratch) {
    int64_t blocks = wf_task_count(c->in[IN_Q].shape[2], ATTENTION_BLOCK),
            dv = c->in[IN_V].shape[3];
    attention_block w = attention_block_of(c, task / blocks, task % blocks, scratch);
    void *gemm = wf_at(&w.weights, ATTENTION_BLOCK * w.row);
    (void)phase;
    attention_weights(&w, gemm);
    if (w.drops) attention_dropout(&w, &w.weights, &w.weights);
    wf_view v = attention_head(&w, &c->in[IN_V], 0), y = attention_head(&w, &c->out[0], w.from);
    WF_KERNEL(y.dtype, gemm(w.to - w.from, dv, w.n, w.weights.data, w.row, 1, v.data, v.stride[0],
                            v.stride[1], y.data, y.stride[0], false, gemm));
    return true;
}

/* Query-key pairs that are computed. */
double attention_pairs(const wf_call *c) {
    const attention_attrs *a = c->attrs;
    const int64_t *q = c->in[IN_Q].shape;
    double open = 0;
    for (int64_t t = 0; t < q[2]; t++)
        open += (double)wf_open_columns(a->causal, t, q[2], c->in[IN_K].shape[2]);
    return (double)(q[0] * q[1]) * open;
}

static double flops_attention(const wf_call *c) {
    return 2 * attention_pairs(c) * (double)(c->in[IN_Q].shape[3] + c->in[IN_V].shape[3]);
}

/* A boolean mask is a choice and has no gradient. An additive one, such as a position bias, has the
 * scores': it is rare, so the decomposition gives it. */
static void grad_attention(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const attention_attrs *a = y->attrs;
    wf_tensor *mask = y->in[IN_MASK];
    if (need & 7) {
        dx[0] = wf_record(&wf_op_attention_backward, 5,
                          (wf_tensor *[]){ y->in[IN_Q], y->in[IN_K], y->in[IN_V], mask, dy[0] }, a);
        dx[1] = wf_result(dx[0], 1), dx[2] = wf_result(dx[0], 2);
    }
    if (a->additive && (need >> IN_MASK & 1)) {
        wf_tensor *alias = wf_alias(mask),
                  *same = attention_primitives(y->in[IN_Q], y->in[IN_K], y->in[IN_V], alias, a);
        wf_vjp(&same, dy, 1, &alias, 1, &dx[IN_MASK]);
    }
}

/* ---- from primitives ------------------------------------------------------------------------- */

static wf_tensor *weights_from_primitives(wf_tensor *q, wf_tensor *k, wf_tensor *mask,
                                          const attention_attrs *a) {
    wf_tensor *scores = wf_matmul(q, wf_transpose(k, -2, -1)); /* [B, H, T, S] */
    scores = a->scale != 0
                 ? wf_scale(scores, a->scale)
                 : wf_mul(scores, wf_sqrt(wf_inverse_count(q, WF_LAST_AXIS))); /* / sqrt(d_k) */
    if (!a->additive || !mask) return wf_softmax(scores, mask, a->causal);
    return wf_softmax(wf_add(scores, mask), NULL, a->causal);
}

wf_tensor *attention_primitives(wf_tensor *q, wf_tensor *k, wf_tensor *v, wf_tensor *mask,
                                const attention_attrs *a) {
    wf_tensor *weights = weights_from_primitives(q, k, mask, a); /* [B, H, T, S] */
    return wf_matmul(wf_dropout_at(weights, a->dropout, a->site), v);
}

static void decompose_attention(wf_tensor *y, wf_tensor **results) {
    results[0] =
        attention_primitives(y->in[IN_Q], y->in[IN_K], y->in[IN_V], y->in[IN_MASK], y->attrs);
}

/* ---- the op and its constructors ------------------------------------------------------------- */

const wf_op wf_op_attention = {
    .name = "attention",
    .family = "attention",
    .arity = 4,
    .attr_bytes = sizeof(attention_attrs),
    .shape = shape_attention,
    .tasks = tasks_attention,
    .eval = eval_attention,
    .grad = grad_attention,
    .decompose = decompose_attention,
    .flops = flops_attention,
    .optional = 1 << IN_MASK,
    .strided = 1 << IN_Q | 1 << IN_K | 1 << IN_V,
};

static attention_attrs attrs_of(const wf_tensor *q, const wf_attention_options *o) {
    if (!o) return (attention_attrs){ 0 };
    return (attention_attrs){ o->scale, o->dropout, o->dropout != 0 ? wf_site(q, o->site) : 0,
                              o->causal, o->additive };
}

static wf_tensor *with_head(wf_tensor *x) {
    return wf_rank(x) == 3 ? wf_unsqueeze(x, WF_AXIS(1)) : x; /* [B, T, d] -> [B, 1, T, d] */
}

wf_tensor *wf_attention(wf_tensor *q, wf_tensor *k, wf_tensor *v, wf_tensor *mask,
                        const wf_attention_options *options) {
    attention_attrs a = attrs_of(q, options);
    if (wf_rank(q) != 3)
        return wf_record(&wf_op_attention, 4, (wf_tensor *[]){ q, k, v, with_head(mask) }, &a);
    wf_tensor *in[] = { with_head(q), with_head(k), with_head(v), with_head(mask) };
    return wf_squeeze(wf_record(&wf_op_attention, 4, in, &a), WF_AXIS(1)); /* [B, T, dv] */
}

wf_tensor *wf_attention_weights(wf_tensor *q, wf_tensor *k, wf_tensor *mask,
                                const wf_attention_options *options) {
    attention_attrs a = attrs_of(q, options);
    return weights_from_primitives(q, k, wf_rank(q) == 4 ? with_head(mask) : mask, &a);
}
