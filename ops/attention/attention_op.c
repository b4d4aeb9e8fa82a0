/* ops/attention/attention_op.c - scaled dot-product attention, fused (Vaswani et al. 2017, 3.2.1).
 *
 *     y = dropout(softmax(scale q k^T, masked)) v        B batch, H heads, T queries, S keys
 *
 * The kernel (kernels/attention.inc) processes a head block by block and stores nothing of size
 * T x S. It saves two numbers for each row, `stats`, from which the gradient (attention_backward.c)
 * recomputes the weights. q, k and v may have any strides: they usually are views of [B, T, H * d],
 * and y has that layout, too. Projections are in nn. */
#include <assert.h>
#include <math.h>

#include "attention_op.h"
#include "core/compose.h"
#include "core/op_internal.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/elementwise/dropout.h"
#include "ops/norm/rows.h"
#include "ops/ops_internal.h"

/* ---- shapes: q [B,H,T,dk], k [B,G,S,dk], v [B,G,S,dv], mask -> y [B,H,T,dv] ------------------ */

void wf_attention_view(wf_view *v, wf_dtype type, const wf_view *rows, int64_t width) {
    const int64_t *n = rows->shape; /* B, H, rows */
    int64_t stride[4];
    wf_set_shape(v, type, 4, (int64_t[]){ n[0], n[1], n[2], width });
    wf_dense_strides(4, (int64_t[]){ n[0], n[2], n[1], width }, stride);
    v->stride[0] = stride[0];
    v->stride[1] = stride[2];
    v->stride[2] = stride[1];
    v->stride[3] = 1;
}

/* A view [B, H, T, S] without memory: the shape to which masks must broadcast. */
static wf_view scores_view(const wf_call *c) {
    wf_view scores = c->in[IN_Q];
    scores.shape[3] = c->in[IN_K].shape[2];
    return scores;
}

static bool operands_fit(wf_call *c) {
    const wf_view *q = &c->in[IN_Q], *k = &c->in[IN_K], *v = &c->in[IN_V];
    bool fit = q->ndim == 4 && k->ndim == 4 && v->ndim == 4 && q->shape[0] == k->shape[0];
    for (int i = 0; fit && i < 3; i++) fit = k->shape[i] == v->shape[i];
    if (fit && q->shape[1] != k->shape[1]) /* heads of q can be divided into groups */
        fit = k->shape[1] > 0 && q->shape[1] > 0 && q->shape[1] % k->shape[1] == 0;
    if (fit && q->shape[3] == k->shape[3]) return true;
    return wf_fail(c, "q %s, k %s and v %s are not [B,H,T,dk], [B,H,S,dk] and [B,H,S,dv]",
                   wf_show(c, q), wf_show(c, k), wf_show(c, v));
}

/* Sets the shape [B, H, 2, T], in memory in the order [H, 2, B, T], so that the stats of single
 * queries (T = 1) of several rows of a batch are contiguous. */
void wf_attention_stats_view(wf_view *v, wf_dtype type, const wf_view *q) {
    int64_t B = q->shape[0], H = q->shape[1], T = q->shape[2], stride[4];
    wf_set_shape(v, type, 4, (int64_t[]){ B, H, 2, T });
    wf_dense_strides(4, (int64_t[]){ H, 2, B, T }, stride);
    v->stride[0] = stride[2];
    v->stride[1] = stride[0];
    v->stride[2] = stride[1];
    v->stride[3] = 1;
}

bool wf_attention_fits(wf_call *c) {
    const attention_attrs *a = c->attrs;
    for (int i = IN_Q; i <= IN_V; i++)
        if (!wf_want_real(c, i)) return false;
    if (!operands_fit(c) || !wf_want_rate(c, a->dropout)) return false;
    if (a->window < 0)
        return wf_fail(c, "a window of %lld keys, not 1 or more, or 0 for all",
                       (long long)a->window);
    wf_view scores = scores_view(c);
    if (!wf_mask_fits(c, &c->in[IN_MASK], &scores)) return false;
    int64_t k_width = c->in[IN_K].shape[3], v_width = c->in[IN_V].shape[3], most = INT64_C(1) << 40;
    if (k_width > most || v_width > most)
        return wf_fail(c, "heads %lld and %lld wide are too wide", (long long)k_width,
                       (long long)v_width);
    return true;
}

bool wf_attention_plan(wf_call *c, void *plan) {
    wf_dtype type = c->in[IN_Q].dtype;
    int64_t widths = c->in[IN_K].shape[3] + c->in[IN_V].shape[3] + 2 * WF_WIDEST;
    (void)plan;
    c->scratch_bytes =
        WF_KERNEL(type, attention_scratch) + (size_t)widths * WF_KERNEL(type, attention_column);
    return true;
}

static bool shape_attention(wf_call *c) {
    const wf_view *q = &c->in[IN_Q];
    if (!wf_attention_fits(c)) return false;
    wf_attention_view(&c->out[0], q->dtype, q, c->in[IN_V].shape[3]);
    wf_attention_stats_view(&c->out[1], q->dtype, q);
    return true;
}

/* ---- heads ----------------------------------------------------------------------------------- */

/* The index of the row in memory that holds row `batch` of a view. */
static int64_t memory_row(const wf_view *x, int64_t batch) {
    return x->row_index ? x->row_index[batch] : batch;
}

wf_matrix wf_attention_matrix(const wf_view *x, attention_place at) {
    return (wf_matrix){ wf_at(x, memory_row(x, at.batch) * x->stride[0] + at.head * x->stride[1]),
                        x->stride[2], x->stride[3] };
}

wf_attention_head wf_attention_head_of(const wf_call *c) {
    const attention_attrs *a = c->attrs;
    wf_drop_params d = wf_drop_of(c, a->dropout, a->site);
    int64_t T = c->in[IN_Q].shape[2], S = c->in[IN_K].shape[2], dk = c->in[IN_Q].shape[3];
    return (wf_attention_head){
        .queries = T,
        .keys = S,
        .k_width = dk,
        .v_width = c->in[IN_V].shape[3],
        .scale = a->scale != 0 ? a->scale : 1 / sqrt((double)dk),
        .window = a->window < S ? a->window : 0,
        .causal = a->causal,
        .additive = a->additive,
        .drops = c->training && a->dropout > 0,
        .keep_scale = d.scale,
        .threshold = d.threshold,
        .key = d.key,
        .stream = d.stream,
    };
}

/* The mask of a head. Its stride is 0 along axes that broadcast. */
static wf_matrix mask_of(const wf_call *c, attention_place at) {
    const wf_view *mask = &c->in[IN_MASK], scores = scores_view(c);
    int64_t stride[4];
    if (mask->ndim < 0) return (wf_matrix){ NULL, 0, 0 };
    for (int i = 0; i < 4; i++) stride[i] = wf_broadcast_stride(mask, &scores, i);
    return (wf_matrix){ wf_at(mask, memory_row(mask, at.batch) * stride[0] + at.head * stride[1]),
                        stride[2], stride[3] };
}

int64_t wf_attention_group(const wf_call *c) {
    int64_t heads = c->in[IN_Q].shape[1], groups = c->in[IN_K].shape[1];
    return heads == groups ? 1 : heads / groups;
}

attention_place wf_attention_key_place(const wf_call *c, attention_place at) {
    return (attention_place){ at.batch, at.head / wf_attention_group(c) };
}

attention_place wf_attention_at(const wf_call *c, wf_attention_head *h, int64_t head) {
    int64_t H = c->in[IN_Q].shape[1];
    attention_place at = { head / H, head % H }, keys = wf_attention_key_place(c, at);
    /* weight (b, h, t, s) is element ((b H + h) T + t) S + s, as in wf_dropout on the weights */
    h->element = (uint64_t)(head * h->queries * h->keys);
    h->q = wf_attention_matrix(&c->in[IN_Q], at);
    h->k = wf_attention_matrix(&c->in[IN_K], keys);
    h->v = wf_attention_matrix(&c->in[IN_V], keys);
    h->mask = mask_of(c, at);
    return at;
}

/* TASK_WORK: about the multiply-adds of a task; PIECE_WORK: the overhead of a piece, in
 * multiply-adds */
enum { TASK_WORK = 1 << 17, PIECE_WORK = 1 << 11 };

int64_t wf_attention_pieces(const wf_call *c, int64_t queries) {
    double pairs = (double)queries * (double)c->in[IN_K].shape[2];
    double work = pairs * (double)(c->in[IN_K].shape[3] + c->in[IN_V].shape[3]) + PIECE_WORK;
    return work < TASK_WORK ? (int64_t)(TASK_WORK / work) : 1;
}

/* ---- the forward op: a piece is a range of a head's queries ---------------------------------- */

/* True if each row of the batch has one query, and rows may have the same keys and values
 * (row_index), as the hypotheses of a beam search do. False with a causal mask, a window or
 * dropout. Queries with the same keys are then computed as queries of one head. */
static bool shares_keys(const wf_call *c) {
    const attention_attrs *a = c->attrs;
    const int32_t *row = c->in[IN_K].row_index, *mask_row = c->in[IN_MASK].row_index;
    return row && row == c->in[IN_V].row_index && (!mask_row || mask_row == row) &&
           c->in[IN_Q].shape[2] == 1 && !a->causal && a->window == 0 &&
           !(c->training && a->dropout > 0);
}

static int64_t pieces_of_head(const wf_call *c) {
    return wf_task_count(c->in[IN_Q].shape[2], WF_ATTENTION_ROWS);
}

static int64_t pieces_of_task(const wf_call *c) {
    int64_t T = c->in[IN_Q].shape[2];
    return wf_attention_pieces(c, T < WF_ATTENTION_ROWS ? T : WF_ATTENTION_ROWS);
}

static int64_t tasks_attention(const wf_call *c, int phase) {
    const int64_t *q = c->in[IN_Q].shape;
    return phase == 0 ? wf_task_count(q[0] * q[1] * pieces_of_head(c), pieces_of_task(c)) : 0;
}

static void set_head(const wf_call *c, wf_attention_head *h, int64_t head) {
    attention_place at = wf_attention_at(c, h, head);
    h->y = wf_attention_matrix(&c->out[0], at);
    h->stats = wf_attention_matrix(&c->out[1], at);
}

/* Successive pieces from `piece` on, in the order [H, B], are joined as queries of one head. They
 * end at the first piece with other keys, with the head, at `end`, or after WF_ATTENTION_ROWS.
 * Returns their number. */
static int64_t set_queries(const wf_call *c, wf_attention_head *h, int64_t piece, int64_t end) {
    const int64_t *q = c->in[IN_Q].shape, b = piece % q[0];
    const int32_t *row = c->in[IN_K].row_index;
    const wf_view *mask = &c->in[IN_MASK], scores = scores_view(c);
    int64_t n = 1, most = q[0] - b < end - piece ? q[0] - b : end - piece;
    if (most > WF_ATTENTION_ROWS) most = WF_ATTENTION_ROWS;
    while (n < most && row[b + n] == row[b]) n++;
    set_head(c, h, b * q[1] + piece / q[0]);
    h->queries = n;
    h->q.row = c->in[IN_Q].stride[0];
    h->y.row = c->out[0].stride[0];
    assert(c->out[1].stride[0] == 1);
    if (h->mask.data) h->mask.row = mask->row_index ? 0 : wf_broadcast_stride(mask, &scores, 0);
    return n;
}

/* Sets h to the head of the piece, whose queries the caller picks. If rows of the batch share keys,
 * h gets the queries of several pieces at once, which set_queries joins. Returns the number of
 * pieces; 0: `piece` is at the end. */
static int64_t set_piece(const wf_call *c, wf_attention_head *h, int64_t piece, int64_t end) {
    if (piece >= end) return 0;
    if (shares_keys(c)) return set_queries(c, h, piece, end);
    set_head(c, h, piece / pieces_of_head(c));
    return 1;
}

static bool eval_attention(const wf_call *c, int phase, int64_t task, void *scratch) {
    const int64_t *q = c->in[IN_Q].shape;
    int64_t in_head = pieces_of_head(c), piece, end, from, to;
    (void)phase;
    wf_task_range(q[0] * q[1] * in_head, pieces_of_task(c), task, &piece, &end);
    wf_attention_head h = wf_attention_head_of(c), next = h;
    int64_t n = set_piece(c, &next, piece, end), more;
    for (; piece < end; piece += n, n = more) {
        h = next;
        more = set_piece(c, &next, piece + n, end);
        h.next = more > 0 ? &next : NULL;
        wf_task_range(h.queries, WF_ATTENTION_ROWS, piece % in_head, &from, &to);
        WF_KERNEL(c->out[0].dtype, attention(&h, from, to, scratch));
    }
    return true;
}

/* The number of query-key pairs that are computed. */
double wf_attention_pairs(const wf_call *c) {
    const attention_attrs *a = c->attrs;
    const int64_t *q = c->in[IN_Q].shape, keys = c->in[IN_K].shape[2];
    double open = 0;
    for (int64_t t = 0; t < q[2]; t++) {
        int64_t end = wf_open_columns(a->causal, t, q[2], keys), begin = t + keys - q[2] + 1;
        begin = a->window > 0 && begin > a->window ? begin - a->window : 0;
        if (end > begin) open += (double)(end - begin);
    }
    return (double)(q[0] * q[1]) * open;
}

static double flops_attention(const wf_call *c) {
    return 2 * wf_attention_pairs(c) * (double)(c->in[IN_Q].shape[3] + c->in[IN_V].shape[3]);
}

/* A boolean mask has no gradient. An additive mask, such as a position bias, has the gradient of
 * the scores. It is rare, so the decomposition computes it. */
static void grad_attention(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const attention_attrs *a = y->attrs;
    wf_tensor *mask = y->in[IN_MASK];
    if (!dy[0]) return; /* stats are saved for backward; they have no gradient */
    if (need & 7) {
        wf_tensor *in[] = { y->in[IN_Q], y->in[IN_K], y->in[IN_V], mask, dy[0], y, y + 1 };
        dx[0] = wf_record(&wf_op_attention_backward, 7, in, a);
        dx[1] = wf_result(dx[0], 1);
        dx[2] = wf_result(dx[0], 2);
    }
    if (a->additive && (need >> IN_MASK & 1)) {
        wf_tensor *alias = wf_alias(mask),
                  *same = wf_attention_primitives(y->in[IN_Q], y->in[IN_K], y->in[IN_V], alias, a);
        wf_vjp(&same, dy, 1, &alias, 1, &dx[IN_MASK]);
    }
}

/* ---- from primitives ------------------------------------------------------------------------- */

/* a [B,H,T,n] times b [B,G,n,m] -> [B,H,T,m]. Each head of b is used by H / G heads of a. */
static wf_tensor *by_heads(wf_tensor *a, wf_tensor *b) {
    if (wf_rank(a) != 4 || wf_rank(b) != 4 || a->shape[1] == b->shape[1]) return wf_matmul(a, b);
    int64_t split[] = { WF_KEEP, b->shape[1], WF_REST, WF_KEEP, WF_KEEP };
    int64_t merge[] = { WF_KEEP, a->shape[1], WF_KEEP, WF_KEEP };
    wf_tensor *y = wf_matmul(wf_reshape(a, 5, split), wf_unsqueeze(b, WF_AXIS(2)));
    return wf_reshape(y, 4, merge);
}

/* A mask [T, S]: 1 where key j > i + (S - T) - window. T and S are computed in floating point at
 * run time, and may be off by a rounding error. So half a key is added to the bound. */
static wf_tensor *window_mask(wf_tensor *q, wf_tensor *k, int64_t window) {
    wf_dtype real = wf_real(q->graph);
    wf_tensor *i = wf_unsqueeze(wf_cast(wf_arange(q, -2), real), WF_AXIS(1)); /* [T, 1] */
    wf_tensor *j = wf_cast(wf_arange(k, -2), real);                           /* [S] */
    wf_tensor *T = wf_reciprocal(wf_inverse_count(q, WF_AXIS(-2), 0));
    wf_tensor *S = wf_reciprocal(wf_inverse_count(k, WF_AXIS(-2), 0));
    wf_tensor *begin = wf_affine(wf_add(i, wf_sub(S, T)), 1, 0.5 - (double)window);
    return wf_greater(j, begin);
}

static wf_tensor *weights_from_primitives(wf_tensor *q, wf_tensor *k, wf_tensor *mask,
                                          const attention_attrs *a) {
    wf_tensor *scores = by_heads(q, wf_transpose(k, -2, -1)); /* [B, H, T, S] */
    scores = a->scale != 0
                 ? wf_scale(scores, a->scale)
                 : wf_mul(scores, wf_sqrt(wf_inverse_count(q, WF_LAST_AXIS, 0))); /* / sqrt(d_k) */
    wf_tensor *near = q && k && a->window > 0 ? window_mask(q, k, a->window) : NULL;
    if (mask && a->additive) {
        scores = wf_add(scores, mask);
        mask = NULL;
    }
    if (mask && near) near = wf_mul(mask, near);
    return wf_masked_softmax(scores, near ? near : mask, a->causal);
}

wf_tensor *wf_attention_primitives(wf_tensor *q, wf_tensor *k, wf_tensor *v, wf_tensor *mask,
                                   const attention_attrs *a) {
    wf_tensor *weights = weights_from_primitives(q, k, mask, a); /* [B, H, T, S] */
    return by_heads(wf_dropout_at(weights, a->dropout, a->site), v);
}

static void decompose_attention(wf_tensor *y, wf_tensor **results) {
    results[0] =
        wf_attention_primitives(y->in[IN_Q], y->in[IN_K], y->in[IN_V], y->in[IN_MASK], y->attrs);
}

/* ---- the op and its constructors ------------------------------------------------------------- */

/* Shapes: q [B,H,T,dk], k [B,G,S,dk], v [B,G,S,dv], mask broadcasts to [B,H,T,S] or is absent ->
 * y [B,H,T,dv], and stats for the gradient.
 * Limits: G divides H: several heads of q may share one of k and v. Memory grows with T and S,
 * never with T x S. A row without open keys gives zeros. */
const wf_op wf_op_attention = {
    .name = "attention",
    .family = "attention",
    .formula = "attention(q, k, v, mask): softmax(scale q k^T, masked) v; scale 0 is 1 / sqrt(d_k)",
    .arity = 4,
    .results = 2,
    .attr_bytes = sizeof(attention_attrs),
    .attributes =
        "double scale, double dropout, uint64_t site, int64_t window, bool causal, bool additive",
    .shape = shape_attention,
    .grad = grad_attention,
    .decompose = decompose_attention,
    .optional = 1 << IN_MASK,
    .nondiff = 1 << IN_MASK,
    .run = &(const wf_kernel){ .plan = wf_attention_plan,
                               .tasks = tasks_attention,
                               .eval = eval_attention,
                               .flops = flops_attention,
                               .strided = 1 << IN_Q | 1 << IN_K | 1 << IN_V,
                               .indexed = 1 << IN_K | 1 << IN_V | 1 << IN_MASK,
                               .emit = wf_emit_attention },
};

static attention_attrs attrs_of(const wf_attention_options *o) {
    if (!o) return (attention_attrs){ 0 };
    return (attention_attrs){ o->scale, o->dropout, 0, o->window, o->causal, o->additive };
}

static wf_tensor *with_head(wf_tensor *x) {
    return wf_rank(x) == 3 ? wf_unsqueeze(x, WF_AXIS(1)) : x; /* [B, T, d] -> [B, 1, T, d] */
}

wf_tensor *wf_attention(wf_tensor *q, wf_tensor *k, wf_tensor *v, wf_tensor *mask,
                        const wf_attention_options *options) {
    attention_attrs a = attrs_of(options);
    if (a.dropout != 0) a.site = wf_site(q, options->site);
    if (!a.additive) mask = wf_real_mask(mask);
    if (wf_rank(q) != 3)
        return wf_record(&wf_op_attention, 4, (wf_tensor *[]){ q, k, v, with_head(mask) }, &a);
    wf_tensor *in[] = { with_head(q), with_head(k), with_head(v), with_head(mask) };
    return wf_squeeze(wf_record(&wf_op_attention, 4, in, &a), WF_AXIS(1)); /* [B, T, dv] */
}

wf_tensor *wf_attention_weights(wf_tensor *q, wf_tensor *k, wf_tensor *mask,
                                const wf_attention_options *options) {
    WF_COMPOSE("attention_weights", q, k, mask ? mask : q);
    attention_attrs a = attrs_of(options);
    if (!a.additive) mask = wf_real_mask(mask);
    return wf_composed(weights_from_primitives(q, k, wf_rank(q) == 4 ? with_head(mask) : mask, &a));
}
