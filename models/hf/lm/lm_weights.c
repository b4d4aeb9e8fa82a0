/* models/hf/lm/lm_weights.c - loads the tensors of a folder into the parameters of a language
 * model.
 *
 * Everything is checked before the first tensor is loaded. If the folder has a parameter in three
 * parts or transposed, it is first assembled in memory of its own. */
#include <stdlib.h>
#include <string.h>

#include "core/file/loader.h"
#include "core/file_internal.h"
#include "lm_family.h"
#include "models/message.h"

enum { PARTS = 3 };

typedef struct loading {
    wf_loader load;
    const hf_lm_family *family;
    const wf_language_model_config *c;
    wf_entry *made; /* [load.most]: entries whose data must be freed */
    int n_made;
} loading;

/* ---- finding --------------------------------------------------------------------------------- */

/* Finds a tensor by its name, with or without the prefix that some files leave out. */
static const wf_entry *find_name(loading *l, const char *name) {
    const char *optional = l->family->optional;
    const wf_entry *e = wf_loader_find(&l->load, name);
    size_t n = optional ? strlen(optional) : 0;
    return e || !n || strncmp(name, optional, n) != 0 ? e : wf_loader_find(&l->load, name + n);
}

/* False with message if config.json says that the output shares the embeddings' table, but the file
 * has a different table for the output. */
static bool same_output(loading *l, const wf_entry *table) {
    char name[HF_NAME];
    wf_hf_lm_name(l->family, "output.weight", 0, name);
    const wf_entry *output = l->c->tied ? find_name(l, name) : NULL;
    return !output || wf_same_entries(l->load.file, output, table) ||
           fail(l->load.message, "'%s' and '%s' differ: config.json says that they are one table",
                table->name, output->name);
}

static bool fits(const loading *l, const wf_entry *e, const wf_tensor *leaf, int64_t rows) {
    bool turned = wf_hf_lm_transposed(l->family, leaf);
    const int64_t *s = e->shape;
    if (leaf->ndim == 1 && e->ndim == 1 && s[0] == rows) return true;
    if (leaf->ndim == 2 && e->ndim == 2 && s[turned] == rows && s[!turned] == leaf->shape[1])
        return true;
    if (leaf->ndim == 1)
        return fail(l->load.message, "'%s' has not %lld elements, as config.json says", e->name,
                    (long long)rows);
    return fail(l->load.message, "'%s' is not [%lld,%lld], as config.json says", e->name,
                (long long)(turned ? leaf->shape[1] : rows),
                (long long)(turned ? rows : leaf->shape[1]));
}

static bool check(const loading *l, const wf_entry *e, const wf_entry *first, char *message) {
    if (!wf_hf_is_plain(l->load.file, e, message)) return false;
    return strcmp(e->dtype, first->dtype) == 0 ||
           fail(message, "'%s' is of another type than '%s'", e->name, first->name);
}

/* ---- put together ---------------------------------------------------------------------------- */

/* Copies elements of `size` bytes: to [columns, rows] from [rows, columns]. */
static void transpose(char *to, const char *from, int64_t rows, int64_t columns, size_t size) {
    enum { BLOCK = 32 };
    for (int64_t i0 = 0; i0 < rows; i0 += BLOCK)
        for (int64_t k0 = 0; k0 < columns; k0 += BLOCK)
            for (int64_t k = k0; k < columns && k < k0 + BLOCK; k++)
                for (int64_t i = i0; i < rows && i < i0 + BLOCK; i++)
                    memcpy(to + (size_t)(k * rows + i) * size,
                           from + (size_t)(i * columns + k) * size, size);
}

/* Makes an entry of the whole parameter out of its parts. NULL: out of memory. */
static const wf_entry *put_together(loading *l, const wf_entry *const *part, int parts,
                                    const wf_tensor *leaf) {
    size_t bytes = 0, at = 0;
    for (int i = 0; i < parts; i++) bytes += part[i]->bytes;
    char *data = malloc(bytes + 1);
    if (!data) return NULL;
    for (int i = 0; i < parts; at += part[i++]->bytes) {
        const int64_t *s = part[i]->shape;
        size_t n = wf_count(leaf) ? bytes / (size_t)wf_count(leaf) : 1;
        if (wf_hf_lm_transposed(l->family, leaf))
            transpose(data + at, part[i]->data, s[0], s[1], n);
        else if (part[i]->bytes)
            memcpy(data + at, part[i]->data, part[i]->bytes);
    }
    wf_entry *e = &l->made[l->n_made++];
    *e = *part[0];
    e->data = data;
    e->bytes = bytes;
    memcpy(e->shape, leaf->shape, sizeof(int64_t) * (size_t)leaf->ndim);
    return e;
}

static bool find_leaf(loading *l, wf_tensor *leaf) {
    char name[HF_NAME];
    const wf_entry *part[PARTS] = { NULL };
    char *message = l->load.message;
    int parts = wf_hf_lm_name(l->family, leaf->name, 0, name);
    if (!parts) return fail(message, "'%.120s' has no name in this family", leaf->name);
    for (int i = 0; i < parts; i++) {
        wf_hf_lm_name(l->family, leaf->name, i, name);
        part[i] = find_name(l, name);
        if (!part[i]) return fail(message, "'%s' is missing", name);
        if (!fits(l, part[i], leaf, wf_hf_lm_rows(l->c, leaf, i, parts)) ||
            !check(l, part[i], part[0], message))
            return false;
    }
    if (strcmp(leaf->name, "embedding.weight") == 0 && !same_output(l, part[0])) return false;
    bool whole = parts == 1 && !wf_hf_lm_transposed(l->family, leaf);
    const wf_entry *e = whole ? part[0] : put_together(l, part, parts, leaf);
    if (!e) return fail(message, "out of memory");
    wf_loader_add(&l->load, leaf, e);
    return true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool nothing_left(const loading *l) {
    for (const wf_entry *e = NULL; (e = wf_loader_left(&l->load, e));)
        if (!wf_hf_lm_dropped(l->family, e->name))
            return fail(l->load.message,
                        "'%.120s' is in the weights but not in a model of this family", e->name);
    return true;
}

/* Adds 1 to a norm's weights, which the folder stores minus 1. False: out of memory. */
static bool add_one(const loading *l, wf_tensor *leaf) {
    float *values = malloc(wf_bytes(leaf) + 1);
    bool ok = values && wf_read(leaf, values, wf_bytes(leaf));
    for (int64_t i = 0; ok && i < wf_count(leaf); i++) values[i] += 1;
    ok = ok && wf_write(leaf, values, wf_bytes(leaf));
    free(values);
    return ok || fail(l->load.message, "out of memory");
}

bool wf_hf_lm_load_weights(const wf_file *f, const hf_lm_family *family, wf_model *m,
                           char *message) {
    const int most = wf_node_count(m->graph);
    loading l = { .family = family, .c = &wf_language_model_of(m)->config };
    bool ok = wf_loader_open(&l.load, f, "", most, message);
    l.made = calloc((size_t)most + 1, sizeof *l.made);
    if (ok && !l.made) ok = fail(message, "out of memory");
    for (int id = 0; ok && id < most; id++)
        if (wf_node(m->graph, id)->kind == WF_PARAM) ok = find_leaf(&l, wf_node(m->graph, id));
    ok = ok && nothing_left(&l) && wf_loader_load(&l.load);
    for (int id = 0; ok && id < most; id++) {
        wf_tensor *leaf = wf_node(m->graph, id);
        if (leaf->kind == WF_PARAM && wf_hf_lm_from_one(family, leaf)) ok = add_one(&l, leaf);
    }
    wf_loader_close(&l.load);
    for (int i = 0; i < l.n_made; i++) free((void *)(uintptr_t)l.made[i].data);
    free(l.made);
    return ok;
}
