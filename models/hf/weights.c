/* models/hf/weights.c - loads the tensors of a folder into a Transformer's parameters, and writes
 * them.
 *
 * Each parameter is looked up under the names in family.c and t5_family.c. Every other tensor of
 * the file must be another name of a tied table, or follow from the configuration (sinusoids), or
 * be known to have no effect. All of this is checked before the first load: loading a tensor frees
 * its memory in the file, and comparing two copies needs both. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/file/loader.h"
#include "core/file_internal.h"
#include "folder.h"
#include "models/message.h"
#include "models/transformer/tied.h"

typedef struct loading {
    wf_loader load;
    const wf_transformer_config *c;
    const hf_family *family;
    /* [load.most]: changed copies of the file's entries, without the first rows or with fewer
     * axes */
    wf_entry *own;
} loading;

/* ---- finding --------------------------------------------------------------------------------- */

/* Finds a table that may have several names. If there are several tensors, they must be equal. */
static const wf_entry *find_copies(loading *l, const int *names, int n) {
    const char *tied[WF_TABLES + 1];
    const wf_entry *found;
    for (int i = 0; i < n; i++) tied[i] = l->family->tables[names[i]];
    if (!wf_loader_find_tied(&l->load, tied, n, ": config.json says that they are one table",
                             &found))
        return NULL;
    if (!found) fail(l->load.message, "'%s' is missing", tied[0]);
    return found;
}

/* Finds the tensor of a table that is tied to no other. The shared tensor replaces a missing table
 * of the encoder or decoder, because older transformers left equal copies out of the file. */
static const wf_entry *find_own(loading *l, int i) {
    const wf_entry *shared = wf_loader_find(&l->load, l->family->tables[HF_SHARED]);
    const wf_entry *own = wf_loader_find(&l->load, l->family->tables[i]);
    if (!own && i < 2) own = shared;
    if (!own) fail(l->load.message, "'%s' is missing", l->family->tables[i]);
    return own;
}

static const wf_entry *find_table(loading *l, int i) {
    static const int all[] = { HF_SHARED, 0, 1, 2 }, decoder[] = { 1, 2 }, encoder[] = { 0 };
    if (l->c->tie == WF_TIE_ALL) return find_copies(l, all, 4);
    if (l->c->tie == WF_TIE_INPUTS && i == 0) return find_copies(l, all, 3);
    if (l->c->tie == WF_TIE_NONE || l->c->tie == WF_TIE_INPUTS) return find_own(l, i);
    return i == 0 ? find_copies(l, encoder, 1) : find_copies(l, decoder, 2);
}

static int table_of(const wf_tensor *leaf) {
    for (int i = 0; i < WF_TABLES; i++)
        if (strcmp(leaf->name, wf_tables[i]) == 0) return i;
    return -1;
}

/* ---- loading --------------------------------------------------------------------------------- */

static bool is_position_table(const wf_tensor *leaf) {
    return strcmp(leaf->name, "src_position.weight") == 0 ||
           strcmp(leaf->name, "tgt_position.weight") == 0;
}

/* Gives an entry the parameter's shape: the output's bias loses its first axis of length 1, and a
 * position table loses the rows before position 0. */
static bool trim(wf_entry *e, const wf_tensor *leaf, char *message) {
    if (strcmp(e->name, HF_OUTPUT_BIAS) == 0 && e->ndim == 2 && e->shape[0] == 1) {
        e->ndim = 1;
        e->shape[0] = e->shape[1];
    }
    if (!is_position_table(leaf)) return true;
    if (e->ndim != 2 || e->shape[0] != leaf->shape[0] + HF_SKIPPED_ROWS)
        return fail(message, "'%s' has not max_position_embeddings + 2 = %lld rows", e->name,
                    (long long)leaf->shape[0] + HF_SKIPPED_ROWS);
    size_t skipped = e->bytes / (size_t)e->shape[0] * HF_SKIPPED_ROWS;
    e->shape[0] -= HF_SKIPPED_ROWS;
    e->bytes -= skipped;
    e->data = (const char *)e->data + skipped;
    return true;
}

bool wf_hf_is_finite(const wf_entry *e, char *message) {
    int64_t bad = wf_file_not_finite(e);
    return !bad ||
           fail(message, "'%s' has %lld values that are NaN or infinite", e->name, (long long)bad);
}

bool wf_hf_is_plain(const wf_file *f, const wf_entry *e, char *message) {
    if (!wf_hf_is_finite(e, message)) return false;
    return !wf_file_scale_of(f, e) ||
           fail(message, "'%s' is quantised: such weights of a folder are not read", e->name);
}

static bool choose(loading *l, wf_tensor *leaf, const wf_entry *e) {
    if (!wf_hf_is_finite(e, l->load.message)) return false;
    wf_entry *own = &l->own[l->load.n];
    *own = *e;
    if (!trim(own, leaf, l->load.message)) return false;
    bool same = own->data == e->data && own->ndim == e->ndim;
    wf_loader_add(&l->load, leaf, same ? e : own);
    return true;
}

static bool find_leaf(loading *l, wf_tensor *leaf) {
    char name[HF_NAME];
    int table = table_of(leaf);
    if (table >= 0) {
        const wf_entry *e = find_table(l, table);
        return e && choose(l, leaf, e);
    }
    bool gated = l->c->gated;
    int parts = wf_hf_tensor_name(l->family, gated, leaf->name, 0, name);
    for (int i = 0; i < parts; i++) {
        wf_hf_tensor_name(l->family, gated, leaf->name, i, name);
        const wf_entry *e = wf_loader_find(&l->load, name);
        if (!e) /* a missing bias of the output is zeros, as in transformers */
            return strcmp(name, HF_OUTPUT_BIAS) == 0 ||
                   fail(l->load.message, "'%s' is missing", name);
        if (!choose(l, leaf, e)) return false;
    }
    return true;
}

/* ---- tensors without a parameter ------------------------------------------------------------- */

/* True if a position table, which old files contain, has the sinusoids that weft computes. The
 * comparison is coarse, because f16 has three digits, and other tables differ by much more. */
static bool same_sinusoids(const loading *l, const wf_entry *e) {
    bool fairseq = l->c->positions == WF_POSITIONS_FAIRSEQ, ok = e->ndim == 2;
    int64_t skipped = fairseq ? HF_SKIPPED_ROWS : 0;
    if (!ok || e->shape[0] <= skipped || e->shape[1] != l->c->d_model) return false;
    int64_t rows = e->shape[0] - skipped, n = rows * e->shape[1], offset = skipped * e->shape[1];
    wf_graph *g = wf_graph_new(&(wf_graph_options){ .real = WF_F32 });
    wf_sinusoid_form form = fairseq ? WF_SINUSOID_FAIRSEQ : WF_SINUSOID_HALVES;
    wf_tensor *is = wf_buffer(g, "is", WF_F32, 2, e->shape, wf_init_zeros());
    wf_tensor *want =
        wf_buffer(g, "want", WF_F32, 2, (int64_t[]){ rows, e->shape[1] }, wf_init_sinusoid(form));
    float *x = malloc(wf_bytes(is) + 1), *y = malloc(wf_bytes(want) + 1);
    ok = x && y && wf_ok(g) && wf_file_load(e, is, NULL) && wf_read(is, x, wf_bytes(is)) &&
         wf_read(want, y, wf_bytes(want));
    for (int64_t i = 0; ok && i < n; i++) ok = fabsf(x[i + offset] - y[i]) <= 1e-3f;
    free(x), free(y), wf_graph_free(g);
    return ok;
}

static bool explain(const loading *l, const wf_entry *e) {
    if (wf_hf_ignored_tensor(e->name)) return true;
    bool sinusoidal =
        l->c->positions == WF_POSITIONS_HALVES || l->c->positions == WF_POSITIONS_FAIRSEQ;
    if (!sinusoidal || !wf_hf_is_positions(e->name))
        return fail(l->load.message, "'%.120s' is in the weights but not in a model of this family",
                    e->name);
    return same_sinusoids(l, e) ||
           fail(l->load.message, "'%s' are not the sinusoids of this family", e->name);
}

bool wf_hf_own_output(const wf_file *f, const hf_family *family) {
    const wf_entry *output = wf_file_find(f, family->tables[HF_OUTPUT]), *inputs = NULL;
    for (int i = HF_SHARED; !inputs && i >= 0; i--)
        if (i != HF_OUTPUT) inputs = wf_file_find(f, family->tables[i]);
    return output && inputs && !wf_same_entries(f, output, inputs);
}

bool wf_hf_load_weights(const wf_file *f, const hf_family *family, wf_model *m, char *message) {
    const int most = 3 * wf_node_count(m->graph);
    loading l = { .c = &wf_transformer_of(m)->config, .family = family };
    bool ok = wf_loader_open(&l.load, f, "", most, message);
    l.own = calloc((size_t)most + 1, sizeof *l.own);
    if (ok && !l.own) ok = fail(message, "out of memory");
    for (int id = 0; ok && id < wf_node_count(m->graph); id++)
        if (wf_node(m->graph, id)->kind == WF_PARAM) ok = find_leaf(&l, wf_node(m->graph, id));
    for (const wf_entry *e = NULL; ok && (e = wf_loader_left(&l.load, e));) ok = explain(&l, e);
    ok = ok && wf_loader_load(&l.load);
    wf_loader_close(&l.load);
    free(l.own);
    return ok;
}

/* ---- saving ---------------------------------------------------------------------------------- */

typedef struct saving {
    const wf_model *m;
    const hf_family *family;
    hf_tensors tensors;
    const int32_t *shut_out;
    int n_shut_out;
} saving;

/* Adds a tensor of n values, with `skipped` zeros before them. False: out of memory. */
static bool add(saving *s, const char *name, int ndim, const int64_t *shape, const float *values,
                size_t n, size_t skipped) {
    float *data = wf_hf_add_tensor(&s->tensors, name, ndim, shape);
    if (data) memcpy(data + skipped, values, n * sizeof *data);
    return data;
}

static bool add_output_bias(saving *s, const wf_tensor *t, float *values) {
    for (int i = 0; i < s->n_shut_out; i++) values[s->shut_out[i]] = 0;
    return add(s, HF_OUTPUT_BIAS, 2, (int64_t[]){ 1, t->shape[0] }, values, (size_t)t->shape[0], 0);
}

/* Adds table i of the family's tables. A table that both inputs share is written once, under the
 * shared name. If the encoder has a table of its own in a family without separate vocabularies,
 * that table is also written under the shared name, as transformers does. */
static bool add_table(saving *s, const wf_tensor *t, int i, const float *values) {
    const char *const *tables = s->family->tables;
    bool one = i == 0 && wf_first_tied(wf_transformer_of(s->m)->config.tie) == 0;
    size_t n = (size_t)wf_count(t);
    if (i == 0 && !one && !s->family->may_separate &&
        !add(s, tables[HF_SHARED], 2, t->shape, values, n, 0))
        return false;
    return add(s, tables[one ? HF_SHARED : i], 2, t->shape, values, n, 0);
}

static bool add_parts(saving *s, const wf_tensor *t, const float *values) {
    char name[HF_NAME];
    int64_t shape[WF_MAX_DIMS];
    bool gated = wf_transformer_of(s->m)->config.gated;
    int parts = wf_hf_tensor_name(s->family, gated, t->name, 0, name);
    bool places = is_position_table(t), ok = parts > 0;
    size_t n = ok ? (size_t)wf_count(t) / (size_t)parts : 0;
    memcpy(shape, t->shape, sizeof shape);
    shape[0] = ok ? shape[0] / parts + (places ? HF_SKIPPED_ROWS : 0) : 0;
    for (int i = 0; ok && i < parts; i++) {
        wf_hf_tensor_name(s->family, gated, t->name, i, name);
        ok = add(s, name, t->ndim, shape, values + (size_t)i * n, n,
                 places ? HF_SKIPPED_ROWS * (size_t)t->shape[1] : 0);
    }
    return ok;
}

static bool add_parameter(saving *s, const wf_tensor *t) {
    float *values = malloc(wf_bytes(t) + 1);
    int table = table_of(t);
    bool ok = values && wf_read(t, values, wf_bytes(t));
    if (ok && table >= 0)
        ok = add_table(s, t, table, values);
    else if (ok)
        ok = strcmp(t->name, "output.bias") == 0 ? add_output_bias(s, t, values)
                                                 : add_parts(s, t, values);
    free(values);
    return ok;
}

bool wf_hf_save_weights(const wf_model *m, const hf_family *family, const int32_t *shut_out, int n,
                        const char *path, char *message) {
    saving s = { .m = m, .family = family, .shut_out = shut_out, .n_shut_out = n };
    bool ok = true;
    for (int id = 0; ok && id < wf_node_count(m->graph); id++)
        if (wf_node(m->graph, id)->kind == WF_PARAM) ok = add_parameter(&s, wf_node(m->graph, id));
    ok = ok ? wf_hf_save_tensors(&s.tensors, path, message) : fail(message, "out of memory");
    wf_hf_tensors_free(&s.tensors);
    return ok;
}
