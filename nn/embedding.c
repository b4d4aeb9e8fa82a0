/* nn/embedding.c - rows of a table for token ids, and rows of a table for positions.
 *
 * Scaled tables start as N(0, 1/sqrt(D)) and are multiplied by sqrt(D) where they are read
 * (Vaswani et al. 2017, 3.4): tokens and positions then have the same magnitude, and the same
 * table, unscaled, gives logits of magnitude 1 when it is tied to the output. */
#include "module.h"
#include "nn/layers_internal.h"

#include <math.h>

struct wf_embedding_layer wf_embedding_new(wf_graph *g, const char *name, int64_t rows, int64_t dim,
                                           bool scaled) {
    double root = sqrt((double)dim);
    struct wf_embedding_layer l = { .scale = scaled ? root : 1 };
    const char *outer = wf_scope_push(g, name);
    l.weight =
        wf_param(g, "weight", 2, (int64_t[]){ rows, dim }, wf_init_normal(scaled ? 1 / root : 1));
    l.path = wf_scope(g, outer);
    return l;
}

wf_tensor *wf_embed(const struct wf_embedding_layer *l, wf_tensor *ids) {
    if (!l || !l->weight) return no_layer(ids, "an embedding");
    const char *outer = enter(l->weight, l->path);
    wf_tensor *y = wf_embedding(l->weight, ids); /* [..., D] */
    return leave(outer, l->scale == 1 ? y : wf_scale(y, l->scale));
}

/* ---- positions ------------------------------------------------------------------------------- */

/* The largest table of sinusoids that is stored, in elements: max_len can be far more than is ever
 * used. */
enum { LARGEST_TABLE = 1 << 22 };

static bool sinusoidal(wf_positions kind) {
    return kind == WF_POSITIONS_SINUSOIDAL || kind == WF_POSITIONS_HALVES ||
           kind == WF_POSITIONS_FAIRSEQ || kind == WF_POSITIONS_SINUSOIDAL_ROTARY;
}

bool wf_rotates(wf_positions kind) {
    return kind == WF_POSITIONS_ROTARY || kind == WF_POSITIONS_SINUSOIDAL_ROTARY;
}

static wf_sinusoid_form form_of(wf_positions kind) {
    return kind == WF_POSITIONS_HALVES    ? WF_SINUSOID_HALVES
           : kind == WF_POSITIONS_FAIRSEQ ? WF_SINUSOID_FAIRSEQ
                                          : WF_SINUSOID_PAIRS;
}

static wf_tensor *position_table(wf_graph *g, wf_positions kind, int64_t max_len, int64_t dim) {
    const int64_t shape[] = { max_len, dim };
    if (kind == WF_POSITIONS_LEARNED)
        return wf_param(g, "weight", 2, shape, wf_init_normal(1 / sqrt((double)dim)));
    if (!sinusoidal(kind)) return NULL;
    if (dim % 2 || (kind == WF_POSITIONS_FAIRSEQ && dim < 4))
        return wf_poison(g, "sinusoidal positions need an even width%s, not %lld",
                         kind == WF_POSITIONS_FAIRSEQ ? " of 4 or more" : "", (long long)dim);
    if (dim > 0 && max_len > LARGEST_TABLE / dim) return NULL;
    return wf_buffer(g, "weight", wf_real(g), 2, shape, wf_init_sinusoid_as(form_of(kind)));
}

struct wf_position_layer wf_position_new(wf_graph *g, const char *name, wf_positions kind,
                                         int64_t max_len, int64_t dim) {
    struct wf_position_layer l = { .kind = kind, .dim = dim, .base = 10000 };
    const char *outer = wf_scope_push(g, name);
    l.weight = position_table(g, kind, max_len, dim);
    l.path = wf_scope(g, outer);
    return l;
}

static bool has_positions(const struct wf_position_layer *l) {
    return l && (l->weight || (sinusoidal(l->kind) && l->dim > 0));
}

wf_tensor *wf_add_positions_at(const struct wf_position_layer *l, wf_tensor *x, wf_tensor *ids) {
    if (l && (l->kind == WF_POSITIONS_NONE || l->kind == WF_POSITIONS_ROTARY) && x) return x;
    if (!x || !has_positions(l)) return no_layer(x, "a table of positions");
    const char *outer = wf_scope(x->graph, l->path);
    wf_tensor *rows =
        l->weight ? wf_embedding(l->weight, ids) : wf_sinusoid_as(ids, l->dim, form_of(l->kind));
    return leave(outer, wf_add(x, rows)); /* [B,T,D] + [T,D] or [B,T,D] */
}

wf_tensor *wf_add_positions(const struct wf_position_layer *l, wf_tensor *x) {
    if (!x || !has_positions(l)) return wf_add_positions_at(l, x, NULL);
    const char *outer = wf_scope(x->graph, l->path);
    return leave(outer, wf_add_positions_at(l, x, wf_position_ids(x, 1)));
}

wf_tensor *wf_rotary_positions_at(const struct wf_position_layer *l, wf_tensor *ids,
                                  int64_t head_dim) {
    if (!l) return no_layer(ids, "a table of positions");
    if (!wf_rotates(l->kind)) return NULL;
    if (!ids) return wf_poison(NULL, "rotary positions of NULL");
    const char *outer = wf_scope(ids->graph, l->path);
    return leave(outer, wf_rotary_table_scaled(ids, head_dim, l->base, l->interleaved,
                                               &l->scaling)); /* [T,2,d] */
}

wf_tensor *wf_rotary_positions(const struct wf_position_layer *l, wf_tensor *x, int64_t head_dim) {
    if (!l || !x || !wf_rotates(l->kind)) return wf_rotary_positions_at(l, x, head_dim);
    return wf_rotary_positions_at(l, wf_position_ids(x, 1), head_dim);
}
