/* nn/recurrent.c - GRU (Cho et al. 2014) and LSTM (Hochreiter & Schmidhuber 1997), unrolled over T
 * steps, with PyTorch's gates:
 *
 *     GRU     r = s(W_r x + U_r h)    z = s(W_z x + U_z h)    n = tanh(W_n x + r * (U_n h))
 *             h' = (1 - z) * n + z * h
 *     LSTM    i, f, o = s(W x + U h)    g = tanh(W x + U h)
 *            c' = f * c + i * g        h' = o * tanh(c')
 *
 * with s the sigmoid, W = weight_ih, U = weight_hh, and a bias in each product. W x is one product
 * for all steps. Inside, time is the first axis, [T,B,...], so that a step is contiguous; a step
 * keeps this axis, of size 1. At steps beyond its length a row's state does not change, in both
 * directions. So the backward direction still has its first state when it reaches the row's last
 * step. */
#include "core/graph_internal.h"
#include "module.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/op.h"

static wf_tensor *parameter(wf_graph *g, const wf_recurrent_options *o, const char *what, int layer,
                            bool back, int ndim, const int64_t *shape) {
    char name[64];
    snprintf(name, sizeof name, "%s_l%d%s", what, layer, back ? "_reverse" : "");
    return wf_param(g, name, ndim, shape, wf_init_uniform(1 / sqrt((double)o->hidden_size)));
}

static struct wf_recurrent_cell cell_new(wf_graph *g, const wf_recurrent_options *o, int layer,
                                         bool back) {
    struct wf_recurrent_cell l = { .kind = o->kind, .hidden_size = o->hidden_size };
    int64_t in = layer ? o->hidden_size * (o->bidirectional ? 2 : 1) : o->input_size;
    int64_t gates = o->kind == WF_GRU ? 3 : 4, rows = gates * o->hidden_size;
    l.weight_ih = parameter(g, o, "weight_ih", layer, back, 2, (int64_t[]){ rows, in });
    l.weight_hh = parameter(g, o, "weight_hh", layer, back, 2, (int64_t[]){ rows, o->hidden_size });
    if (o->bias) l.bias_ih = parameter(g, o, "bias_ih", layer, back, 1, &rows);
    if (o->bias) l.bias_hh = parameter(g, o, "bias_hh", layer, back, 1, &rows);
    return l;
}

struct wf_recurrent_layer wf_recurrent_new(wf_graph *g, const char *name,
                                           const wf_recurrent_options *o) {
    struct wf_recurrent_layer l = { 0 };
    const int64_t most = INT64_C(1) << 40;
    if (!o) return no_options(g, "a recurrent layer"), l;
    if ((o->kind != WF_GRU && o->kind != WF_LSTM) || o->input_size < 1 || o->input_size > most ||
        o->hidden_size < 1 || o->hidden_size > most || o->num_layers < 0 ||
        o->num_layers > WF_MAX_RECURRENT_LAYERS) {
        wf_poison(
            g,
            "a recurrent layer of kind %d with %lld inputs, %lld units and %d layers: the kind is "
            "WF_GRU or WF_LSTM, and it has 1 to 2^40 inputs and units, and up to %d layers",
            (int)o->kind, (long long)o->input_size, (long long)o->hidden_size, o->num_layers,
            WF_MAX_RECURRENT_LAYERS);
        return l;
    }
    l.o = *o;
    if (l.o.num_layers == 0) l.o.num_layers = 1;
    const char *outer = wf_scope_push(g, name);
    for (int i = 0; i < l.o.num_layers; i++)
        for (int back = 0; back <= o->bidirectional; back++)
            l.cell[i][back] = cell_new(g, o, i, back);
    l.path = wf_scope(g, outer);
    for (int i = 0; i < l.o.num_layers; i++) l.cell[i][0].path = l.cell[i][1].path = l.path;
    return l;
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* W x with the biases. For LSTM both biases are added. For GRU only bias_ih is added: r multiplies
 * bias_hh of the new gate, so bias_hh belongs to the product U h. */
static wf_tensor *project(const struct wf_recurrent_cell *l, wf_tensor *x) {
    wf_tensor *bias = l->bias_ih;
    if (l->kind == WF_LSTM && bias) bias = wf_add(bias, l->bias_hh);
    return wf_gemm(x, l->weight_ih, bias, WF_TRANSPOSE_B); /* [...,G H] */
}

/* Takes gates [from, to) out of [...,G H]. */
static wf_tensor *gates(const struct wf_recurrent_cell *l, wf_tensor *x, int from, int to) {
    return wf_slice(x, -1, from * l->hidden_size, to * l->hidden_size);
}

/* The transpose of U, [H,G H], copied once, so that the product of each step need not pack U. The
 * gradient for h reads U itself instead of the copy (matmul.c), because it needs the rows of U. */
static wf_tensor *turned(const struct wf_recurrent_cell *l) {
    wf_tensor *u = wf_transpose(l->weight_hh, 0, 1);
    return wf_record(&wf_op_copy, 1, &u, NULL);
}

/* U h + addend, [...,G H]. u: the transposed copy of U, or NULL. */
static wf_tensor *recur(const struct wf_recurrent_cell *l, wf_tensor *u, wf_tensor *h,
                        wf_tensor *addend) {
    return u ? wf_gemm(h, u, addend, 0) : wf_gemm(h, l->weight_hh, addend, WF_TRANSPOSE_B);
}

static wf_tensor *gru_step(const struct wf_recurrent_cell *l, wf_tensor *u, wf_tensor *in,
                           wf_tensor *h) {
    wf_tensor *own = recur(l, u, h, l->bias_hh);
    wf_tensor *both = wf_sigmoid(wf_add(gates(l, in, 0, 2), gates(l, own, 0, 2)));
    wf_tensor *r = gates(l, both, 0, 1), *z = gates(l, both, 1, 2);
    wf_tensor *n = wf_tanh(wf_add(gates(l, in, 2, 3), wf_mul(r, gates(l, own, 2, 3))));
    return wf_add(n, wf_mul(z, wf_sub(h, n)));
}

static wf_tensor *lstm_step(const struct wf_recurrent_cell *l, wf_tensor *u, wf_tensor *in,
                            wf_tensor *h, wf_tensor **c) {
    wf_tensor *all = recur(l, u, h, in);
    wf_tensor *both = wf_sigmoid(gates(l, all, 0, 2)), *g = wf_tanh(gates(l, all, 2, 3));
    wf_tensor *i = gates(l, both, 0, 1), *f = gates(l, both, 1, 2);
    *c = wf_add(wf_mul(f, *c), wf_mul(i, g));
    return wf_mul(wf_sigmoid(gates(l, all, 3, 4)), wf_tanh(*c));
}

static wf_tensor *step(const struct wf_recurrent_cell *l, wf_tensor *u, wf_tensor *in, wf_tensor *h,
                       wf_tensor **c) {
    return l->kind == WF_GRU ? gru_step(l, u, in, h) : lstm_step(l, u, in, h, c);
}

/* True if the state has H units and otherwise the axes of x. NULL gives true: the ops report it. */
static bool of_one_batch(const struct wf_recurrent_cell *l, const wf_tensor *x,
                         const wf_tensor *state) {
    if (!x || !state || !wf_ok(x->graph)) return true;
    bool same = x->ndim == state->ndim && x->ndim > 0;
    for (int i = 0; same && i < x->ndim - 1; i++) same = state->shape[i] == x->shape[i];
    if (same && state->shape[x->ndim - 1] == l->hidden_size) return true;
    char given[96], is[96];
    wf_shape_text(x->graph, x->ndim, x->shape, given, sizeof given);
    wf_shape_text(state->graph, state->ndim, state->shape, is, sizeof is);
    return wf_refuse(x->graph, "a state %s has not the rows of %s and %lld units", is, given,
                     (long long)l->hidden_size);
}

wf_tensor *wf_recurrent_step(const struct wf_recurrent_cell *l, wf_tensor *x, wf_tensor *h,
                             wf_tensor **c) {
    if (!l || !l->weight_hh) return no_layer(x, "a recurrent cell");
    if (l->kind == WF_LSTM && (!c || !*c))
        return wf_poison(l->weight_hh->graph, "an LSTM has another state, c: it is NULL");
    const char *outer = enter(l->weight_hh, l->path);
    if (!of_one_batch(l, x, h) || (l->kind == WF_LSTM && !of_one_batch(l, x, *c)))
        return leave(outer, wf_poison(x->graph, NULL));
    return leave(outer, step(l, NULL, project(l, x), h, c));
}

/* ---- all steps ------------------------------------------------------------------------------- */

/* Concatenates n steps in groups of PART, then these groups in the same way: each step is copied
 * about log n / log PART times. */
static wf_tensor *join(wf_tensor **y, int64_t n) {
    enum { PART = 16 };
    while (n > 1) {
        int64_t parts = 0;
        for (int64_t i = 0; i < n; i += PART)
            y[parts++] = wf_concat(y + i, (int)(n - i < PART ? n - i : PART), 0);
        n = parts;
    }
    return y[0];
}

/* The states of one layer in one direction, each [1,B,H]. */
typedef struct states {
    wf_tensor *h, *c;
} states;

static wf_tensor *held(wf_tensor *open, wf_tensor *next, wf_tensor *last) {
    return open ? wf_where(open, next, last) : next;
}

/* Runs one cell over all steps: x [T,B,I], open [T,B,1] or NULL -> [T,B,H]. s holds the initial
 * states, and receives the final ones. y has room for T tensors. */
static wf_tensor *run(const struct wf_recurrent_cell *l, wf_tensor *x, wf_tensor *open, bool back,
                      states *s, wf_tensor **y) {
    int64_t T = x->shape[0];
    wf_tensor *in = project(l, x), *u = T > 1 ? turned(l) : NULL; /* in: [T,B,G H] */
    for (int64_t i = 0; i < T && wf_ok(x->graph); i++) {
        int64_t t = back ? T - 1 - i : i;
        wf_tensor *now = wf_slice(in, 0, t, t + 1), *c = s->c;
        wf_tensor *is_open = open ? wf_slice(open, 0, t, t + 1) : NULL;
        if (!s->h) s->h = wf_fill(gates(l, now, 0, 1), 0);
        if (!s->c && l->kind == WF_LSTM) c = s->c = wf_fill(s->h, 0);
        wf_tensor *h = step(l, u, now, s->h, &c);
        y[t] = s->h = held(is_open, h, s->h);
        if (c) s->c = held(is_open, c, s->c);
    }
    return wf_ok(x->graph) ? join(y, T) : wf_poison(x->graph, NULL);
}

static wf_tensor *state_of(wf_tensor *all, int i) {
    return all ? wf_slice(all, 0, i, i + 1) : NULL;
}

/* Runs all layers: x [T,B,I] -> [T,B,H or 2H]. *h and *c are the initial states of all layers, or
 * NULL, and become the final ones. */
static wf_tensor *run_layers(const struct wf_recurrent_layer *l, wf_tensor *x, wf_tensor *open,
                             wf_tensor **h, wf_tensor **c, wf_tensor **y) {
    wf_tensor *hs[2 * WF_MAX_RECURRENT_LAYERS], *cs[2 * WF_MAX_RECURRENT_LAYERS];
    int n = 0, directions = l->o.bidirectional ? 2 : 1;
    for (int i = 0; i < l->o.num_layers; i++) {
        wf_tensor *out[2];
        if (i > 0) x = wf_drop(x, l->o.dropout, "dropout");
        for (int back = 0; back < directions; back++, n++) {
            states s = { state_of(*h, n), state_of(*c, n) };
            out[back] = run(&l->cell[i][back], x, open, back, &s, y);
            hs[n] = s.h;
            cs[n] = s.c;
        }
        x = directions == 2 ? wf_concat(out, 2, -1) : out[0];
    }
    if (!wf_ok(x->graph)) return x;
    *h = wf_concat(hs, n, 0);
    *c = l->o.kind == WF_LSTM ? wf_concat(cs, n, 0) : NULL;
    return x;
}

/* [T,B,1]: 1 at the steps before a row's length. */
static wf_tensor *open_steps(wf_tensor *x, wf_tensor *lengths) {
    wf_tensor *t = wf_unsqueeze(wf_arange(x, 0), WF_AXIS(1) | WF_AXIS(2)); /* [T,1,1] */
    return wf_less(t, wf_unsqueeze(lengths, WF_AXIS(0) | WF_AXIS(2)));
}

/* True if there is a state for every row of x [B,T,I], every layer and every direction. A state of
 * another batch size would be broadcast, or change the batch. */
static bool states_ok(const struct wf_recurrent_layer *l, const wf_tensor *x,
                      const wf_tensor *all) {
    int64_t n = l->o.num_layers * (l->o.bidirectional ? 2 : 1), H = l->o.hidden_size;
    int64_t shape[] = { n, x->shape[0], H };
    char fits[96], is[96];
    if (!all || (all->ndim == 3 && memcmp(all->shape, shape, sizeof shape) == 0)) return true;
    wf_shape_text(all->graph, all->ndim, all->shape, is, sizeof is);
    wf_shape_text(all->graph, 3, shape, fits, sizeof fits);
    return wf_refuse(
        x->graph,
        "the first states are %s, not %s: for each layer and direction a state of every row", is,
        fits);
}

static wf_recurrent_result all_poison(wf_tensor *y) {
    return (wf_recurrent_result){ y, y, y };
}

static wf_recurrent_result unroll(const struct wf_recurrent_layer *l, wf_tensor *x,
                                  wf_tensor *lengths, wf_tensor *h, wf_tensor *c) {
    if (x->ndim != 3 || x->shape[1] < 1)
        return all_poison(wf_poison(x->graph, "the operand is not [B,T,I] with a step or more"));
    if (!states_ok(l, x, h) || !states_ok(l, x, c))
        return all_poison(wf_poison(x->graph, "the first states do not fit"));
    int64_t T = x->shape[1];
    char steps[32], shape[128];
    if (isalpha((unsigned char)wf_shape_text(x->graph, 1, &T, steps, sizeof steps)[1]))
        return all_poison(wf_poison(
            x->graph, "the steps of %s, axis 1, are bound later, and each is recorded as nodes",
            wf_shape_text(x->graph, 3, x->shape, shape, sizeof shape)));
    x = wf_reshape(wf_transpose(x, 0, 1), 3, (int64_t[]){ T, WF_KEEP, WF_KEEP });
    wf_tensor *open = lengths ? open_steps(x, lengths) : NULL, **y = calloc((size_t)T, sizeof *y);
    if (!y) return all_poison(wf_poison(x->graph, "no memory for %lld steps", (long long)T));
    wf_tensor *out = run_layers(l, x, open, &h, &c, y);
    free(y);
    if (!wf_ok(x->graph)) return all_poison(out);
    if (open) out = wf_where(open, out, wf_constant(x->graph, 0));
    return (wf_recurrent_result){ wf_transpose(out, 0, 1), h, c };
}

wf_recurrent_result wf_recurrent(const struct wf_recurrent_layer *l, wf_tensor *x,
                                 wf_tensor *lengths, wf_tensor *h, wf_tensor *c) {
    if (!x || !l || !l->cell[0][0].weight_hh) return all_poison(no_layer(x, "a recurrent layer"));
    const char *outer = enter(l->cell[0][0].weight_hh, l->path);
    wf_recurrent_result r = unroll(l, x, lengths, h, c);
    leave(outer, r.output);
    return r;
}
