/* models/marian/marian_weights.c - loads a file's tensors into a Transformer's parameters.
 *
 * Marian multiplies x W, so its matrices are [in, out]; weft's are [out, in]. The numbers of a
 * matrix in int8 are stored as [out, in], as intgemm multiplies them, although the file says the
 * shape [in, out]. Tables are [V, D] in both. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/file_internal.h"
#include "marian_file.h"
#include "models/message.h"

typedef struct loading {
    marian_file *f;
    const wf_transformer_config *c;
    wf_tensor **leaves;
    wf_entry *entries; /* [n], whose data must be freed */
    const wf_entry **list;
    int n;
    char *message;
} loading;

/* True if the item has the shape of a part with this many rows and columns: [columns, rows] for
 * MARIAN_MATRIX, [rows, columns] for MARIAN_TABLE. A vector may have a first axis of 1. */
static bool has_shape(const marian_item *item, marian_form form, int64_t rows, int64_t columns) {
    if (item->type == MARIAN_TEXT) return false;
    if (form == MARIAN_VECTOR)
        return item->type == MARIAN_F32 && item->count == rows && item->ndim >= 1 &&
               item->shape[item->ndim - 1] == rows;
    bool turned = form == MARIAN_MATRIX;
    return item->ndim == 2 && item->shape[turned] == rows && item->shape[!turned] == columns;
}

/* Copies an item to rows [rows, columns] of a parameter. */
static bool copy(const marian_item *item, marian_form form, int64_t rows, int64_t columns,
                 float *to, char *message) {
    bool turned = form == MARIAN_MATRIX && item->type == MARIAN_F32;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < columns; k++) {
            float value = wf_marian_value(item, turned ? k * rows + r : r * columns + k);
            if (!isfinite(value))
                return fail(message, "'%.100s' has values that are NaN or infinite", item->name);
            to[r * columns + k] = value;
        }
    return true;
}

bool wf_marian_find_origin(marian_file *f, const wf_transformer_config *c, const wf_tensor *leaf,
                           marian_origin *s, char *message) {
    char name[MARIAN_NAME];
    s->parts = 1;
    for (int i = 0; i < s->parts; i++) {
        s->form = wf_marian_name(c, leaf->name, i, &s->parts, name);
        if (s->form == MARIAN_UNKNOWN)
            return fail(message, "'%.120s' has no name in files of Marian", leaf->name);
        s->rows = leaf->shape[0] / s->parts;
        s->columns = leaf->ndim > 1 ? leaf->shape[1] : 1;
        const marian_item *item = s->items[i] = wf_marian_find(f, name);
        if (!item) return fail(message, "'%s' is missing", name);
        if (!has_shape(item, s->form, s->rows, s->columns))
            return fail(message, "'%s' does not hold %lld x %lld numbers", name, (long long)s->rows,
                        (long long)s->columns);
    }
    return true;
}

static bool add_leaf(loading *l, wf_tensor *leaf) {
    marian_origin s;
    if (!wf_marian_find_origin(l->f, l->c, leaf, &s, l->message)) return false;
    float *data = malloc(wf_bytes(leaf) + 1);
    if (!data) return fail(l->message, "out of memory");
    wf_entry *e = &l->entries[l->n];
    *e = (wf_entry){ .name = leaf->name, .dtype = "F32", .ndim = leaf->ndim, .data = data };
    memcpy(e->shape, leaf->shape, sizeof e->shape);
    e->bytes = wf_bytes(leaf);
    l->leaves[l->n] = leaf;
    l->list[l->n++] = e;
    bool ok = true;
    for (int i = 0; ok && i < s.parts; i++)
        ok = copy(s.items[i], s.form, s.rows, s.columns, data + i * s.rows * s.columns, l->message);
    return ok;
}

static bool ends_in(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

bool wf_marian_explain_rest(const marian_file *f, char *message) {
    for (int i = 0; i < f->n; i++) {
        const marian_item *item = &f->items[i];
        if (!item->used && !ends_in(item->name, "_QuantMultA"))
            return fail(message, "'%.120s' is in the file but not in such a model", item->name);
    }
    return true;
}

bool wf_marian_load_weights(marian_file *f, wf_model *m, char *message) {
    size_t most = (size_t)wf_node_count(m->graph) + 1;
    loading l = { .f = f, .c = &wf_transformer_of(m)->config, .message = message };
    l.leaves = calloc(most, sizeof(wf_tensor *));
    l.entries = calloc(most, sizeof *l.entries);
    l.list = calloc(most, sizeof(const wf_entry *));
    bool ok = (l.leaves && l.entries && l.list) || fail(message, "out of memory");
    for (int id = 0; ok && id < wf_node_count(m->graph); id++)
        if (wf_node(m->graph, id)->kind == WF_PARAM) ok = add_leaf(&l, wf_node(m->graph, id));
    ok = ok && wf_marian_explain_rest(f, message) &&
         wf_file_load_leaves(l.list, l.leaves, l.n, message);
    for (int i = 0; l.entries && i < l.n; i++) free((void *)(uintptr_t)l.entries[i].data);
    free(l.leaves), free(l.entries), free(l.list);
    return ok;
}
