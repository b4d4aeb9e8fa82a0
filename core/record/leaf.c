/* core/record/leaf.c - leaves: parameters, buffers, inputs, constants, and the values of those that
 * persist.
 *
 * Recording a parameter or buffer allocates no data. Its first use does, and computes its initial
 * value, which is a pure function of the graph's seed and the leaf's name. */
#include "core/basis.h"
#include "core/lend.h"
#include "core/op_internal.h"
#include "record.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/int8_row.h"
#include "core/base/random.h"
#include "core/base/sanitizer.h"

wf_tensor *wf_find(const wf_graph *g, const char *name) {
    const interned *found = g && name ? wf_graph_interned(g, name) : NULL;
    return found ? found->tensor : NULL;
}

/* The full name of a leaf or named tensor: the scope, a dot and this name. NULL: the graph has
 * failed. */
static const char *full_name(wf_graph *g, const char *name) {
    const char *previous = wf_scope_push(g, name), *full = g->scope;
    if (g->failed) return NULL;
    wf_scope(g, previous);
    return full;
}

wf_tensor *wf_named(wf_tensor *t, const char *name) {
    wf_graph *g = t ? t->graph : NULL;
    if (!wf_ok(g)) return wf_poison(g, "no tensor to name");
    if (!name || !name[0]) return wf_poison(g, "a tensor is named without a name");
    const char *full = full_name(g, name);
    if (!full) return &g->poison;
    const wf_tensor *other = wf_find(g, full);
    if (other && other != t) return wf_poison(g, "'%s' is the name of another tensor", full);
    wf_graph_interned(g, full)->tensor = t;
    if (!t->label && t->kind == WF_COMPUTED) t->label = full;
    return t;
}

static wf_tensor *leaf_new(wf_graph *g, wf_kind kind, const char *name, wf_dtype dtype, int ndim,
                           const int64_t *shape) {
    if (!wf_ok(g)) return wf_poison(g, "no graph");
    if (!name || !name[0]) return wf_poison(g, "a leaf needs a name");
    if (ndim < 0 || ndim > WF_MAX_DIMS || (ndim && !shape))
        return wf_poison(g, "'%s': %d axes, not 0 to %d", name, ndim, WF_MAX_DIMS);
    const char *full = full_name(g, name);
    if (!full) return &g->poison;
    if (dtype != WF_I32 && dtype != g->real)
        return wf_poison(g, "'%s' is %s in a graph of %s", full, wf_dtype_name(dtype),
                         wf_dtype_name(g->real));
    if (kind != WF_CONSTANT && wf_find(g, full))
        return wf_poison(g, "'%s' is declared twice", full);
    size_t bytes = 0; /* stays 0 for an input, whose size is known only when it is bound */
    for (int i = 0; i < ndim; i++)
        /* the size was computed from an extent's tag, and wf_poison writes the extent's name into
         * the message */
        if (shape[i] < INT32_MIN)
            return wf_poison(g, "'%s': axis %d is %lld; %s", full, i, (long long)shape[i],
                             kind == WF_INPUT
                                 ? "only an extent itself can be an axis: declare one for it"
                                 : "only inputs have axes that are bound later");
        else if (shape[i] < 0)
            return wf_poison(g, "'%s': axis %d has size %lld", full, i, (long long)shape[i]);
    if (kind == WF_INPUT ? !wf_shape_counts(dtype, ndim, shape)
                         : !wf_shape_bytes(dtype, ndim, shape, &bytes))
        return wf_poison(g, "'%s' is too large", full);
    leaf *l = wf_graph_alloc(g, sizeof *l);
    wf_tensor *t = l ? wf_graph_add(g, 1) : NULL;
    if (!t) return &g->poison;
    t->kind = kind;
    t->dtype = dtype;
    t->ndim = ndim;
    t->name = full;
    t->attrs = l;
    if (ndim) memcpy(t->shape, shape, (size_t)ndim * sizeof *shape);
    if (kind != WF_CONSTANT) wf_graph_interned(g, full)->tensor = t;
    l->bytes = bytes;
    l->from_hook = g->in_hook;
    for (int i = 0; i < WF_MAX_DIMS; i++) l->extent[i] = -1;
    return t;
}

/* A new leaf whose axes may be extents. */
static wf_tensor *extended(wf_graph *g, wf_kind kind, const char *name, wf_dtype dtype, int ndim,
                           const int64_t *shape) {
    int64_t nominal[WF_MAX_DIMS], e;
    for (int i = 0; wf_ok(g) && shape && i < ndim && i < WF_MAX_DIMS; i++)
        nominal[i] = (e = wf_extent_of(g, shape[i])) > 0 ? g->extents[e].nominal : shape[i];
    wf_tensor *t = leaf_new(g, kind, name, dtype, ndim, shape ? nominal : NULL);
    if (wf_is_poison(t)) return t;
    for (int i = 0; i < ndim; i++) leaf_of(t)->extent[i] = wf_extent_of(g, shape[i]);
    return t;
}

wf_tensor *wf_input(wf_graph *g, const char *name, wf_dtype dtype, int ndim, const int64_t *shape) {
    return extended(g, WF_INPUT, name, dtype, ndim, shape);
}

static wf_tensor *stored(wf_graph *g, wf_kind kind, const char *name, wf_dtype dtype, int ndim,
                         const int64_t *shape, wf_init init) {
    for (int i = 0; wf_ok(g) && shape && i < ndim && i < WF_MAX_DIMS; i++)
        if (wf_extent_of(g, shape[i]) > 0)
            return wf_poison(
                g, "'%s': axis %d is the extent '%s'; only inputs have axes that are bound later",
                name ? name : "", i, g->extents[wf_extent_of(g, shape[i])].name);
    wf_tensor *t = leaf_new(g, kind, name, dtype, ndim, shape);
    if (wf_is_poison(t)) return t;
    if (!init.fill) return wf_poison(g, "'%s' has no initial value", t->name);
    leaf_of(t)->init = init;
    return t;
}

/* The tensor that the graph's on_param hook returns for a parameter, or the parameter if that is
 * NULL. The graph fails if the tensor has another type or shape. */
static wf_tensor *hooked(wf_graph *g, wf_tensor *param) {
    const char *scope = g->scope;
    char have[96], want[96];
    g->in_hook = true;
    wf_tensor *t = g->on_param(g->on_param_user, param);
    g->in_hook = false;
    wf_scope(g, scope);
    if (!t || !wf_ok(g)) return wf_ok(g) ? param : &g->poison;
    if (t->graph != g)
        return wf_poison(g, "the hook of '%s' returned a tensor of another graph", param->name);
    bool same = t->dtype == param->dtype && t->ndim == param->ndim &&
                !memcmp(t->shape, param->shape, (size_t)t->ndim * sizeof *t->shape);
    return same ? t
                : wf_poison(g, "the hook of '%s' returned %s %s in place of %s %s", param->name,
                            wf_shape_text(g, t->ndim, t->shape, have, sizeof have),
                            wf_dtype_name(t->dtype),
                            wf_shape_text(g, param->ndim, param->shape, want, sizeof want),
                            wf_dtype_name(param->dtype));
}

wf_tensor *wf_param(wf_graph *g, const char *name, int ndim, const int64_t *shape, wf_init init) {
    wf_tensor *t = stored(g, WF_PARAM, name, wf_real(g), ndim, shape, init);
    return wf_is_poison(t) || !g->on_param || g->in_hook ? t : hooked(g, t);
}

void wf_on_param(wf_graph *g, wf_tensor *(*hook)(void *user, wf_tensor *param), void *user) {
    if (!g || g == wf_failed_graph()) return;
    g->on_param = hook;
    g->on_param_user = user;
}

wf_product_hook *wf_product_hook_of(wf_graph *g) {
    return &g->on_product;
}

bool wf_from_hook(const wf_tensor *t) {
    return t && !wf_is_poison(t) && t->kind != WF_COMPUTED && leaf_of(t)->from_hook;
}

wf_tensor *wf_buffer(wf_graph *g, const char *name, wf_dtype dtype, int ndim, const int64_t *shape,
                     wf_init init) {
    return stored(g, WF_BUFFER, name, dtype, ndim, shape, init);
}

wf_tensor *wf_transient_buffer(wf_graph *g, const char *name, wf_dtype dtype, int ndim,
                               const int64_t *shape, wf_init init) {
    wf_tensor *t = stored(g, WF_BUFFER, name, dtype, ndim, shape, init);
    if (!wf_is_poison(t)) leaf_of(t)->transient = true;
    return t;
}

/* In builds with AddressSanitizer each leaf has a block of its own, so that writes past the leaf's
 * end are found. */
enum { FIRST_BLOCK = WF_SANITIZED ? 0 : 1 << 20 };

static size_t bytes_in(const wf_tensor *t, wf_layout layout, int64_t elements) {
    wf_view v;
    wf_set_shape(&v, t->dtype, t->ndim, t->shape);
    v.layout = layout;
    return wf_view_bytes(&v, elements);
}

static void *memory_for(const wf_tensor *t, wf_layout layout) {
    return wf_arena_alloc(&t->graph->values, bytes_in(t, layout, wf_count(t)), FIRST_BLOCK);
}

static void fill_value(const wf_init *init, uint64_t key, wf_dtype dtype, int ndim,
                       const int64_t *shape, void *data) {
    (void)key;
    (void)ndim;
    (void)shape;
    if (dtype == WF_F64)
        *(double *)data = init->a;
    else
        *(float *)data = (float)init->a;
}

wf_tensor *wf_constant(wf_graph *g, double value) {
    wf_tensor *t = leaf_new(g, WF_CONSTANT, "constant", wf_real(g), 0, NULL);
    if (wf_is_poison(t)) return t;
    leaf_of(t)->init = (wf_init){ fill_value, value, 0 };
    return t;
}

wf_tensor *wf_constant_array(wf_graph *g, wf_dtype dtype, int ndim, const int64_t *shape,
                             const void *data) {
    wf_tensor *t = leaf_new(g, WF_CONSTANT, "constant", dtype, ndim, shape);
    if (wf_is_poison(t)) return t;
    leaf *l = leaf_of(t);
    if (!data && l->bytes) return wf_poison(g, "a constant array has no data");
    pthread_mutex_lock(&g->lock);
    l->data = memory_for(t, WF_ROW_MAJOR);
    pthread_mutex_unlock(&g->lock);
    if (!l->data) return wf_poison(g, "out of memory");
    if (l->bytes) memcpy(l->data, data, l->bytes);
    return t;
}

/* A constant that never has values, because only its shape is read. */
wf_tensor *wf_shape(wf_graph *g, int ndim, const int64_t *shape) {
    return extended(g, WF_CONSTANT, "shape", wf_real(g), ndim, shape);
}

/* ---- values ---------------------------------------------------------------------------------- */

void wf_copy_view(const wf_view *from, const wf_view *to) {
    wf_view in = *from, out = *to;
    wf_call c = { .op = wf_basis.copy, .n_in = 1, .n_out = 1, .in = &in, .out = &out };
    const wf_kernel *run = wf_basis.copy->run;
    for (int64_t i = 0, n = run->tasks(&c, 0); i < n; i++) run->eval(&c, 0, i, NULL);
}

static void convert(const wf_tensor *t, wf_layout is, const void *from, wf_layout becomes,
                    void *to) {
    wf_view x, y;
    wf_set_shape(&x, t->dtype, t->ndim, t->shape);
    wf_dense_strides(t->ndim, t->shape, x.stride);
    y = x;
    x.layout = is;
    x.data = (void *)(uintptr_t)from;
    y.layout = becomes;
    y.data = to;
    wf_copy_view(&x, &y);
}

/* True if the leaf may hold these values in this layout. */
static bool holds(const wf_tensor *t, wf_layout layout, const void *rows) {
    int64_t where;
    return layout != WF_PANELS_INT8 || wf_int8_holds(wf_count(t), rows, &where);
}

/* A copy of the leaf's values in this layout, in new memory; of its initial values if it has none
 * yet. NULL: out of memory, or the layout cannot hold the values. */
static void *new_in_layout(const wf_tensor *t, wf_layout layout) {
    const leaf *l = leaf_of(t);
    void *data = memory_for(t, layout);
    void *rows = l->data && !l->layout ? l->data : layout ? wf_memory_new(l->bytes) : data;
    uint64_t key = wf_hash_bytes(t->graph->seed, t->name, strlen(t->name));
    bool ok = data && rows;
    if (ok && !l->data) l->init.fill(&l->init, key, t->dtype, t->ndim, t->shape, rows);
    if (ok && l->data && l->layout) convert(t, l->layout, l->data, WF_ROW_MAJOR, rows);
    ok = ok && holds(t, layout, rows);
    if (ok && layout) convert(t, WF_ROW_MAJOR, rows, layout, data);
    if (rows != data && rows != l->data) free(rows);
    if (!ok) wf_arena_release(&t->graph->values, data);
    return ok ? data : NULL;
}

void *wf_leaf_data(wf_tensor *t) {
    leaf *l = leaf_of(t);
    pthread_mutex_lock(&t->graph->lock);
    if (!l->data && !l->filling) {
        /* the lock is held, so only calls from within the function that computes the value see this
         * flag */
        l->filling = true;
        l->data = new_in_layout(t, l->layout);
        l->filling = false;
    }
    void *data = l->data;
    pthread_mutex_unlock(&t->graph->lock);
    return data;
}

bool wf_leaf_reserve(const wf_tensor *t, void **data) {
    leaf *l = leaf_of(t);
    pthread_mutex_lock(&t->graph->lock);
    *data = NULL;
    if (!l->data && !l->filling)
        *data = wf_arena_raw(&t->graph->values, bytes_in(t, l->layout, wf_count(t)), FIRST_BLOCK);
    bool ok = !l->filling && (l->data || *data);
    pthread_mutex_unlock(&t->graph->lock);
    return ok;
}

void wf_leaf_settle(wf_tensor *t, void *data, bool keep) {
    leaf *l = leaf_of(t);
    pthread_mutex_lock(&t->graph->lock);
    if (keep && !l->data)
        l->data = data;
    else
        wf_arena_release(&t->graph->values, data);
    pthread_mutex_unlock(&t->graph->lock);
}

void wf_leaf_write_part(wf_tensor *t, int64_t first, int64_t n, const void *data) {
    const leaf *l = leaf_of(t);
    wf_view x, y;
    char *to = (char *)l->data + bytes_in(t, l->layout, first);
    if (!l->layout) {
        if (n) memcpy(to, data, (size_t)n * wf_dtype_size(t->dtype));
        return;
    }
    assert(first % (WF_PANEL_MOST * t->shape[1]) == 0);
    wf_set_shape(&x, t->dtype, 2, (int64_t[]){ n / t->shape[1], t->shape[1] });
    wf_dense_strides(2, x.shape, x.stride);
    y = x;
    x.data = (void *)(uintptr_t)data;
    y.layout = l->layout;
    y.data = to;
    wf_copy_view(&x, &y);
}

bool wf_set_layout(wf_tensor *t, wf_layout layout) {
    if (!t || wf_is_poison(t) || t->kind != WF_PARAM || t->ndim != 2) return false;
    if ((unsigned)layout > WF_PANELS_INT8 || (layout >= WF_PANELS_BF16 && t->dtype != WF_F32))
        return false;
    if (layout == WF_PANELS_INT8 && (t->shape[1] < 1 || t->shape[1] > WF_INT8_LONGEST))
        return false;
    leaf *l = leaf_of(t);
    pthread_mutex_lock(&t->graph->lock);
    bool idle = !l->filling && atomic_load(&t->graph->plans) == 0;
    void *data = idle && l->data && layout != l->layout ? new_in_layout(t, layout) : l->data;
    bool ok = idle && (data || !l->data);
    if (data != l->data) wf_arena_release(&t->graph->values, ok ? l->data : data);
    if (ok) {
        l->data = data;
        l->layout = layout;
    }
    pthread_mutex_unlock(&t->graph->lock);
    return ok;
}

wf_layout wf_layout_of(const wf_tensor *t) {
    return t && !wf_is_poison(t) && t->kind == WF_PARAM ? leaf_of(t)->layout : WF_ROW_MAJOR;
}

bool wf_has_values(const wf_tensor *t) {
    bool is_leaf = t && !wf_is_poison(t) && (is_stored(t) || t->kind == WF_CONSTANT);
    return is_leaf && (leaf_of(t)->init.fill || leaf_of(t)->data);
}

/* True if t is a leaf that has values and `data` is not NULL. */
static bool has_bytes(const wf_tensor *t, const void *data) {
    return data && wf_has_values(t);
}

static bool accessible(const wf_tensor *t, const void *data, size_t bytes) {
    return has_bytes(t, data) && leaf_of(t)->bytes == bytes;
}

bool wf_write(wf_tensor *t, const void *data, size_t bytes) {
    if (!accessible(t, data, bytes) || t->kind == WF_CONSTANT) return false;
    leaf *l = leaf_of(t);
    pthread_mutex_lock(&t->graph->lock);
    bool ready = holds(t, l->layout, data) &&
                 /* an initial value that is being computed would overwrite these values */
                 !l->filling;
    if (ready && !l->data) l->data = memory_for(t, l->layout);
    pthread_mutex_unlock(&t->graph->lock);
    if (!ready || !l->data) return false;
    convert(t, WF_ROW_MAJOR, data, l->layout, l->data);
    return true;
}

bool wf_read(const wf_tensor *t, void *data, size_t bytes) {
    if (!accessible(t, data, bytes) || !wf_leaf_data((wf_tensor *)(uintptr_t)t)) return false;
    convert(t, leaf_of(t)->layout, leaf_of(t)->data, WF_ROW_MAJOR, data);
    return true;
}

/* A pointer to element `first` of a row-major leaf. NULL if the leaf is packed or has no values,
 * `data` is NULL, or fewer than n elements follow. */
static void *part_of(const wf_tensor *t, int64_t first, int64_t n, const void *data) {
    bool fits = has_bytes(t, data) && first >= 0 && n >= 0 && first <= wf_count(t) - n;
    if (!fits || leaf_of(t)->layout) return NULL;
    char *values = wf_leaf_data((wf_tensor *)(uintptr_t)t);
    return values ? values + (size_t)first * wf_dtype_size(t->dtype) : NULL;
}

bool wf_write_part(wf_tensor *t, int64_t first, int64_t n, const void *data) {
    void *part = t && t->kind != WF_CONSTANT ? part_of(t, first, n, data) : NULL;
    if (part) memcpy(part, data, (size_t)n * wf_dtype_size(t->dtype));
    return part;
}

bool wf_read_part(const wf_tensor *t, int64_t first, int64_t n, void *data) {
    const void *part = part_of(t, first, n, data);
    if (part) memcpy(data, part, (size_t)n * wf_dtype_size(t->dtype));
    return part;
}

const void *wf_leaf_lent(const wf_tensor *t) {
    if (!t || wf_is_poison(t) || !is_stored(t)) return NULL;
    return leaf_of(t)->layout ? NULL : leaf_of(t)->data;
}

void wf_leaf_forget(wf_tensor *t) {
    if (!t || wf_is_poison(t) || !is_stored(t)) return;
    leaf *l = leaf_of(t);
    pthread_mutex_lock(&t->graph->lock);
    if (l->data) wf_arena_release(&t->graph->values, l->data);
    l->data = NULL;
    pthread_mutex_unlock(&t->graph->lock);
}

int64_t wf_count(const wf_tensor *t) {
    int64_t n = 1;
    for (int i = 0; t && i < t->ndim; i++)
        if (!wf_mul_size(n, t->shape[i], &n)) return 0;
    return t ? n : 0;
}

size_t wf_bytes(const wf_tensor *t) {
    size_t bytes;
    return t && wf_shape_bytes(t->dtype, t->ndim, t->shape, &bytes) ? bytes : 0;
}
