/* nn/embedding.c - rows of a table for token ids, rows of a table for positions, and biases for
 * distances between positions.
 *
 * Scaled tables start as normal values with standard deviation 1/sqrt(D), and their rows are
 * multiplied by sqrt(D) where they are read (Vaswani et al. 2017, 3.4): tokens and positions then
 * have the same magnitude, and the same table, unscaled, gives logits of magnitude 1 when it is
 * tied to the output. */
#include "core/product_hook.h"
#include "module.h"
#include "nn/layers_internal.h"

#include <math.h>
#include <stdlib.h>

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
    wf_tensor *y = wf_rows_made(wf_embedding(l->weight, ids), l->weight, ids); /* [..., D] */
    return leave(outer, l->scale == 1 ? y : wf_scale(y, l->scale));
}

/* ---- positions ------------------------------------------------------------------------------- */

/* The most elements of a table of sinusoids that is stored as a buffer. Runs compute the rows of
 * larger tables, because max_len can be far more than is ever used. */
enum { LARGEST_TABLE = 1 << 22 };

static bool sinusoidal(wf_positions kind) {
    return kind == WF_POSITIONS_SINUSOIDAL || kind == WF_POSITIONS_HALVES ||
           kind == WF_POSITIONS_FAIRSEQ || kind == WF_POSITIONS_SINUSOIDAL_ROTARY ||
           kind == WF_POSITIONS_TENSOR2TENSOR;
}

bool wf_rotates(wf_positions kind) {
    return kind == WF_POSITIONS_ROTARY || kind == WF_POSITIONS_SINUSOIDAL_ROTARY;
}

static wf_sinusoid_form form_of(wf_positions kind) {
    return kind == WF_POSITIONS_HALVES          ? WF_SINUSOID_HALVES
           : kind == WF_POSITIONS_FAIRSEQ       ? WF_SINUSOID_FAIRSEQ
           : kind == WF_POSITIONS_TENSOR2TENSOR ? WF_SINUSOID_TENSOR2TENSOR
                                                : WF_SINUSOID_PAIRS;
}

static wf_tensor *position_table(wf_graph *g, wf_positions kind, int64_t max_len, int64_t dim) {
    const int64_t shape[] = { max_len, dim };
    if (kind == WF_POSITIONS_LEARNED)
        return wf_param(g, "weight", 2, shape, wf_init_normal(1 / sqrt((double)dim)));
    if (!sinusoidal(kind)) return NULL;
    bool exact = kind == WF_POSITIONS_FAIRSEQ || kind == WF_POSITIONS_TENSOR2TENSOR;
    if (dim % 2 || (exact && dim < 4))
        return wf_poison(g, "sinusoidal positions need an even width%s, not %lld",
                         exact ? " of 4 or more" : "", (long long)dim);
    if (dim > 0 && max_len > LARGEST_TABLE / dim) return NULL;
    return wf_buffer(g, "weight", wf_real(g), 2, shape, wf_init_sinusoid(form_of(kind)));
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

wf_tensor *wf_add_positions(const struct wf_position_layer *l, wf_tensor *x, wf_tensor *ids) {
    if (l && (l->kind == WF_POSITIONS_NONE || l->kind == WF_POSITIONS_ROTARY) && x) return x;
    if (!x || !has_positions(l)) return no_layer(x, "a table of positions");
    const char *outer = wf_scope(x->graph, l->path);
    if (!ids) ids = wf_position_ids(x, 1);
    wf_tensor *rows =
        l->weight ? wf_embedding(l->weight, ids) : wf_sinusoid(ids, l->dim, form_of(l->kind));
    return leave(outer, wf_add(x, rows)); /* [B,T,D] + [T,D] or [B,T,D] */
}

wf_tensor *wf_rotary_positions(const struct wf_position_layer *l, wf_tensor *x, wf_tensor *ids,
                               int64_t head_dim) {
    if (!l) return no_layer(ids ? ids : x, "a table of positions");
    if (!wf_rotates(l->kind)) return NULL;
    if (!ids && !x) return wf_poison(NULL, "rotary positions of NULL");
    if (!ids) ids = wf_position_ids(x, 1);
    const char *outer = wf_scope(ids->graph, l->path);
    return leave(
        outer, wf_rotary_table(ids, head_dim, l->base, l->interleaved, &l->scaling)); /* [T,2,d] */
}

/* ---- relative positions ---------------------------------------------------------------------- */

/* The largest `distance` of a layer of relative positions. It is limited because each use of the
 * layer records a constant with an entry for every offset. */
enum { LARGEST_DISTANCE = 1 << 16 };

bool wf_relative_fits(int64_t buckets, int64_t distance, bool both) {
    int64_t near = (both ? buckets / 2 : buckets) / 2;
    return near >= 1 && distance > near && distance <= LARGEST_DISTANCE &&
           buckets <= 2 * LARGEST_DISTANCE;
}

/* The bucket of distance n >= 0, where `side` is the number of buckets for one direction. Half of
 * them hold one distance each. The ranges of the others grow in proportion to the distance, and the
 * last has no end (Raffel et al. 2020). Borders depend on the rounding of f32, in which all models
 * of this kind were trained. */
static int64_t bucket_of(int64_t n, int64_t side, int64_t distance) {
    int64_t near = side / 2;
    if (n < near) return n;
    float ratio = (float)log((double)((float)n / (float)near));
    float part = ratio / (float)log((double)distance / (double)near) * (float)(side - near);
    int64_t bucket = near + (int64_t)part;
    return bucket < side ? bucket : side - 1;
}

int32_t wf_relative_bucket(int64_t offset, int64_t buckets, int64_t distance, bool both) {
    int64_t side = both ? buckets / 2 : buckets, most = LARGEST_DISTANCE;
    if (!wf_relative_fits(buckets, distance, both)) return 0;
    if (offset < -most) offset = -most;
    if (offset > most) offset = most;
    if (offset <= 0) return (int32_t)bucket_of(-offset, side, distance);
    return both ? (int32_t)(side + bucket_of(offset, side, distance)) : 0;
}

/* The bucket of each offset from -distance to distance, as a constant [2 distance + 1]. */
static wf_tensor *bucket_table(wf_graph *g, const struct wf_relative_layer *l) {
    if (!wf_relative_fits(l->buckets, l->distance, l->both))
        return wf_poison(g, "%lld buckets do not divide distances up to %lld",
                         (long long)l->buckets, (long long)l->distance);
    int64_t n = 2 * l->distance + 1;
    int32_t *ids = malloc((size_t)n * sizeof *ids);
    if (!ids) return wf_poison(g, "out of memory");
    for (int64_t i = 0; i < n; i++)
        ids[i] = wf_relative_bucket(i - l->distance, l->buckets, l->distance, l->both);
    wf_tensor *table = wf_constant_array(g, WF_I32, 1, &n, ids);
    free(ids);
    return table;
}

struct wf_relative_layer wf_relative_new(wf_graph *g, const char *name, int64_t heads,
                                         int64_t buckets, int64_t distance, bool both) {
    struct wf_relative_layer l = { .buckets = buckets, .distance = distance, .both = both };
    if (!wf_relative_fits(buckets, distance, both)) {
        wf_poison(g, "%lld buckets do not divide distances up to %lld", (long long)buckets,
                  (long long)distance);
        return l;
    }
    const char *outer = wf_scope_push(g, name);
    l.weight = wf_param(g, "weight", 2, (int64_t[]){ buckets, heads }, wf_init_normal(0.1));
    l.path = wf_scope(g, outer);
    return l;
}

wf_tensor *wf_relative_bias(const struct wf_relative_layer *l, wf_tensor *queries,
                            wf_tensor *keys) {
    if (!l || !l->weight) return no_layer(queries, "a table of relative positions");
    wf_graph *g = l->weight->graph;
    if (!queries || !keys || queries->ndim != 1 || keys->ndim != 1)
        return wf_poison(g, "relative positions are those of queries [T] and of keys [S]");
    const char *outer = wf_scope(g, l->path);
    wf_tensor *i = wf_unsqueeze(wf_cast(queries, wf_real(g)), WF_LAST_AXIS); /* [T,1] */
    wf_tensor *offset = wf_sub(wf_cast(keys, wf_real(g)), i);                /* [T,S] */
    double most = (double)l->distance;
    offset = wf_minimum(wf_maximum(offset, wf_constant(g, -most)), wf_constant(g, most));
    wf_tensor *ids = wf_cast(wf_affine(offset, 1, most), WF_I32);
    wf_tensor *rows = wf_embedding(l->weight, bucket_table(g, l)); /* [2 distance + 1, H] */
    wf_tensor *bias = wf_permute(wf_embedding(rows, ids), (int[]){ 2, 0, 1 });
    return leave(outer, wf_unsqueeze(bias, WF_AXIS(0))); /* [1,H,T,S] */
}

wf_tensor *wf_relative_mask(wf_tensor *bias, wf_tensor *mask) {
    if (!bias) return no_layer(mask, "a bias of relative positions");
    if (!mask) return bias;
    return wf_where(mask, bias, wf_constant(bias->graph, -INFINITY));
}
