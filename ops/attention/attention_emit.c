/* ops/attention/attention_emit.c - attention and its gradient as C (core/emit/emitter.h): loops
 * over the heads, which functions of plain_attention.c compute. */
#include <stdio.h>

#include "attention_op.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"

/* "member = (matrix){ name + the offset of head h of row b, strides };" `rows` is the number of
 * batch rows of q. If v has fewer, several consecutive rows of q share one of v. */
static void emit_matrix(wf_emitter *e, const char *member, const char *name, const wf_view *v,
                        int64_t rows, const char *head) {
    wf_emit_text(e, "%s = (matrix){ (float *)%s + b", member, name);
    if (v->shape[0] > 1 && v->shape[0] < rows) wf_emit_text(e, " / %n", rows / v->shape[0]);
    wf_emit_text(e, " * %n + %s * %n, %n, %n };\n", v->stride[0], head, v->stride[1], v->stride[2],
                 v->stride[3]);
}

static void emit_mask(wf_emitter *e, const wf_call *c) {
    const wf_view *mask = &c->in[IN_MASK];
    wf_view scores = c->in[IN_Q], full = *mask;
    scores.shape[3] = c->in[IN_K].shape[2];
    if (mask->ndim < 0) {
        wf_emit_text(e, "h.mask = (matrix){ 0, 0, 0 };\n");
        return;
    }
    for (int i = 0; i < 4; i++) full.stride[i] = wf_broadcast_stride(mask, &scores, i);
    /* rows of the batch may share one row of the mask, as the hypotheses of a beam search do */
    bool of_batch = mask->ndim == 4 && mask->shape[0] > 1;
    full.shape[0] = of_batch ? mask->shape[0] : 1;
    if (of_batch) full.stride[0] = mask->stride[0];
    emit_matrix(e, "h.mask", wf_emit_operand(e, IN_MASK), &full, c->in[IN_Q].shape[0], "i");
}

/* Write to `text` the index, as C, of the head of k and v that head i of q uses. */
static void key_head(int64_t group, char text[32]) {
    if (group == 1)
        snprintf(text, 32, "i");
    else
        snprintf(text, 32, "(i / %lld)", (long long)group);
}

/* Writes C that sets the members of `h` for dropout. All of them are set, also where no weight is
 * dropped, so that a reader and an analyzer need not find out which ones are read. */
static void emit_dropout(wf_emitter *e, const wf_attention_head *h) {
    if (!h->drops) {
        wf_emit_text(e, "h.drops = 0;\nh.keep_scale = 1.0f;\nh.threshold = 0;\n");
        wf_emit_text(e, "h.key = 0;\nh.stream = 0;\nh.element = 0;\n");
        return;
    }
    wf_emit_stream(e);
    wf_emit_text(e, "h.drops = 1;\nh.keep_scale = %f;\nh.threshold = %n;\n", h->keep_scale,
                 (int64_t)h->threshold);
    wf_emit_text(e, "h.key = %u;\nh.stream = stream;\n", h->key);
}

/* Writes C for what all heads have in common, and then the loops over batch and heads, in which `h`
 * gets its parts of q, k, v and mask. */
static void emit_heads(wf_emitter *e, const wf_call *c) {
    const int64_t *q = c->in[IN_Q].shape;
    const attention_attrs *a = c->attrs;
    wf_attention_head h = wf_attention_head_of(c);
    char keys[32];
    int64_t group = wf_attention_group(c);
    wf_emit_text(e, "head h;\nh.queries = %n;\nh.keys = %n;\n", h.queries, h.keys);
    wf_emit_text(e, "h.k_width = %n;\nh.v_width = %n;\n", h.k_width, h.v_width);
    wf_emit_text(e, "h.window = %n;\nh.causal = %d;\n", a->window, h.causal);
    wf_emit_text(e, "h.additive = %d;\nh.scale = %f;\n", h.additive, h.scale);
    emit_dropout(e, &h);
    wf_emit_text(e, "for (int b = 0; b < %n; b++)\nfor (int i = 0; i < %n; i++) {\n", q[0], q[1]);
    key_head(group, keys);
    emit_matrix(e, "h.q", "q", &c->in[IN_Q], q[0], "i");
    emit_matrix(e, "h.k", "k", &c->in[IN_K], q[0], keys);
    emit_matrix(e, "h.v", "v", &c->in[IN_V], q[0], keys);
    emit_mask(e, c);
    if (h.drops)
        wf_emit_text(e, "h.element = (uint64_t)(b * %n + i) * %n;\n", q[1], h.queries * h.keys);
}

/* n rounded up to a multiple of 16: the emitted code pads the scores of a query, and the rows of
 * transposed keys, to this length. */
static int64_t padded(int64_t n) {
    return (n + 15) / 16 * 16;
}

bool wf_emit_attention(wf_emitter *e, const wf_call *c) {
    const wf_view *q = &c->in[IN_Q];
    int64_t keys = c->in[IN_K].shape[2], block = keys < 128 ? keys : 128;
    wf_emit_scratch(e, padded(block) * (q->shape[3] + 1) + 2 * q->shape[2]);
    emit_heads(e, c);
    emit_matrix(e, "h.y", "out", &c->out[0], q->shape[0], "i");
    emit_matrix(e, "h.stats", wf_emit_result(e, 1, "stats"), &c->out[1], q->shape[0], "i");
    wf_emit_text(e, "attention_head(&h, scratch);\n}\n");
    return true;
}

bool wf_emit_attention_backward(wf_emitter *e, const wf_call *c) {
    const wf_view *k = &c->in[IN_K];
    int64_t group = wf_attention_group(c), rows = c->in[IN_Q].shape[0];
    char keys[32];
    wf_emit_scratch(e, padded(k->shape[2]) * (k->shape[3] + c->in[IN_V].shape[3] + 2));
    emit_heads(e, c);
    key_head(group, keys);
    wf_emit_text(e, "head_gradients g;\n");
    emit_matrix(e, "g.dy", "dy", &c->in[IN_DY], rows, "i");
    emit_matrix(e, "h.y", "y", &c->in[IN_Y], rows, "i");
    emit_matrix(e, "h.stats", "stats", &c->in[IN_STATS], rows, "i");
    emit_matrix(e, "g.dq", wf_emit_result(e, 0, "dq"), &c->out[0], rows, "i");
    emit_matrix(e, "g.dk", wf_emit_result(e, 1, "dk"), &c->out[1], rows, keys);
    emit_matrix(e, "g.dv", wf_emit_result(e, 2, "dv"), &c->out[2], rows, keys);
    if (group > 1)
        wf_emit_text(e, "g.adds = i %% %n != 0;\n", group);
    else
        wf_emit_text(e, "g.adds = 0;\n");
    wf_emit_text(e, "attention_head_backward(&h, &g, scratch);\n}\n");
    return true;
}
