/* models/file/model_file.c - a model in one safetensors file: configuration (config_file.c),
 * weights, and in a checkpoint the trainer's state.
 *
 * Tensors are named as in a state_dict of torch.nn.Transformer, and files that PyTorch saved load
 * too: with packed or separate q, k, v, and with tied tables under any one or all of their names. A
 * file is checked against the model before the model changes. Sinusoidal tables are not stored,
 * because the configuration determines them. */
#include "model_file.h"
#include "core/file_internal.h"
#include "core/graph_internal.h"
#include "models/choices.h"
#include "models/model_internal.h"
#include "nn/optimizer_internal.h"
#include "nn/trainer_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "core/file/loader.h"
#include "models/adapters/adapters.h"
#include "models/message.h"

#define KIND "weft.kind"   /* metadata key: "model", "checkpoint" or "adapters" */
#define ADDED "weft.added" /* metadata key: names of parameters that a program added, a line each */

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct writing {
    wf_tensor **leaves;
    int n;
    wf_meta *meta;
    int n_meta;
    wf_config_text config;
    wf_adapter_text adapters;
    char *added; /* the value of ADDED; "": there are no such parameters */
} writing;

/* Lists the parameters to save: all of them, or in a model with adapters the adapters alone. */
static bool list_leaves(writing *w, const wf_model *m) {
    int all = wf_parameters(m->graph, NULL, NULL, 0);
    w->leaves = calloc((size_t)all + 1, sizeof(wf_tensor *));
    if (!w->leaves) return false;
    wf_parameters(m->graph, NULL, w->leaves, all);
    for (int i = 0; i < all; i++)
        if (wf_is_saved(m, w->leaves[i])) w->leaves[w->n++] = w->leaves[i];
    return true;
}

/* Lists the names of added parameters in one text, a line each. */
static bool list_added(writing *w, const wf_model *m) {
    size_t size = 1, n = 0;
    for (int i = 0; i < w->n; i++) size += strlen(w->leaves[i]->name) + 1;
    w->added = calloc(size, 1);
    for (int id = 0; w->added && id < wf_node_count(m->graph); id++)
        if (!m->training.adapters.rank && wf_is_added(m, wf_node(m->graph, id)))
            n += (size_t)snprintf(w->added + n, size - n, "%s\n", wf_node(m->graph, id)->name);
    return w->added;
}

static void add_meta(writing *w, const char *key, const char *value) {
    w->meta[w->n_meta++] = (wf_meta){ key, value };
}

/* Adds the file's kind to the metadata, unless the caller's metadata have one. */
static void add_kind(writing *w, const wf_model *m, bool checkpoint, const wf_meta *meta,
                     int n_meta) {
    for (int i = 0; i < n_meta; i++)
        if (meta[i].key && strcmp(meta[i].key, KIND) == 0) return;
    const char *whole = m->training.adapters.rank ? "adapters" : "model";
    add_meta(w, KIND, checkpoint ? "checkpoint" : whole);
}

/* A tied table is stored once. The metadata list its other names, as safetensors' own save_model
 * for PyTorch does. */
static void add_aliases(writing *w, const wf_model *m) {
    for (int i = 1; i < m->n_tied; i++) add_meta(w, m->tied[i], m->tied[0]);
}

static bool write_file(const writing *w, const char *path, wf_trainer *trainer, char *message) {
    if (!trainer) return wf_file_save_leaves(path, w->leaves, w->n, w->meta, w->n_meta, message);
    return wf_trainer_write(trainer, path, w->leaves, w->n, w->meta, w->n_meta) ||
           fail(message, "%s", wf_trainer_error(trainer));
}

bool wf_model_save(const wf_model *m, const char *path, wf_trainer *trainer, const wf_meta *meta,
                   int n_meta, char *message) {
    if (!path) return fail(message, "no path to save the model to");
    if (!m || !wf_ok(m->graph))
        return fail(message, "%s: %s", path, m ? wf_error(m->graph) : "there is no model");
    if (n_meta < 0 || (n_meta && !meta))
        return fail(message, "%s: a list of %d pairs of metadata is not there", path, n_meta);
    size_t pairs = (size_t)n_meta + WF_CONFIG_META + (size_t)m->n_tied + WF_ADAPTER_META + 2;
    writing w = { .meta = calloc(pairs, sizeof *w.meta) };
    bool ok = w.meta && list_leaves(&w, m) && list_added(&w, m);
    if (!ok) {
        fail(message, "%s: out of memory", path);
        /* the other ranks wait for this one; only rank 0 needs the lists */
        if (trainer) ok = wf_trainer_write(trainer, path, NULL, 1, NULL, 0);
    } else {
        add_kind(&w, m, trainer != NULL, meta, n_meta);
        w.n_meta += wf_config_to_meta(m, &w.config, w.meta + w.n_meta);
        w.n_meta += wf_adapters_to_meta(m, &w.adapters, w.meta + w.n_meta);
        if (!m->training.adapters.rank) add_aliases(&w, m);
        if (*w.added) add_meta(&w, ADDED, w.added);
        for (int i = 0; i < n_meta; i++) add_meta(&w, meta[i].key, meta[i].value);
        ok = write_file(&w, path, trainer, message);
    }
    free(w.leaves), free(w.meta), free(w.added);
    return ok;
}

/* ---- reading --------------------------------------------------------------------------------- */

#define PACKED "in_proj_weight"
enum { PARTS = 3 };

/* Finds the separate q, k and v of a packed projection. Returns 3, or 0 if the file lacks one. */
static int find_parts(wf_loader *l, const wf_tensor *leaf, const wf_entry *part[PARTS]) {
    const size_t n = strlen(leaf->name), tail = sizeof PACKED - 1;
    int found = 0;
    if (n <= tail || strcmp(leaf->name + n - tail, PACKED) != 0) return 0;
    for (int i = 0; i < PARTS; i++) {
        char name[WF_MESSAGE];
        snprintf(name, sizeof name, "%.*s%c_proj_weight", (int)(n - tail), leaf->name, "qkv"[i]);
        part[i] = wf_loader_find(l, name);
        found += part[i] != NULL;
    }
    return found == PARTS ? PARTS : 0;
}

/* Finds a leaf's tensors: under its name, under the names of a tied table, or as separate q, k and
 * v. A parameter that a program added may be missing. */
static bool find_leaf(wf_loader *l, const wf_model *m, wf_tensor *leaf) {
    static const char reason[] = " in the file: the model ties them";
    const wf_entry *part[PARTS] = { NULL };
    const char *const name = leaf->name, *const *names = &name;
    int n = 1;
    if (m->n_tied && strcmp(name, m->tied[0]) == 0) {
        names = m->tied;
        n = m->n_tied;
    }
    if (!wf_loader_find_tied(l, names, n, reason, part)) return false;
    int parts = part[0] ? 1 : find_parts(l, leaf, part);
    bool ok = parts || wf_is_added(m, leaf) ||
              fail(l->message, "'%.200s' is in the model but not in the file", name);
    for (int i = 0; ok && i < parts; i++) {
        ok = wf_file_shape_fits(part[i], leaf, parts, l->message);
        wf_loader_add(l, leaf, part[i]);
    }
    return ok;
}

/* Finds the tensors of all parameters. All are looked up even after a failure. False with the first
 * message. */
static bool find_all(wf_loader *l, const wf_model *m) {
    bool ok = true;
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        wf_tensor *t = wf_node(m->graph, id);
        if (t->kind != WF_PARAM || find_leaf(l, m, t)) continue;
        ok = false;
        l->message = NULL;
    }
    return ok;
}

/* True if the file lists this name among parameters that are not the model's own. */
static bool listed_as_added(const wf_file *f, const char *name) {
    const char *at = wf_file_meta(f, ADDED);
    for (size_t n = strlen(name); at && *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (strncmp(at, name, n) == 0 && at[n] == '\n') return true;
    return false;
}

/* True if every tensor of the file belongs to a parameter; otherwise it is a file of another model.
 * Moments, which the trainer loads, and parameters that a program added are allowed. */
static bool nothing_left(const wf_loader *l, char *message) {
    const size_t n = strlen(l->prefix);
    for (const wf_entry *e = NULL; (e = wf_loader_left(l, e));) {
        const char *name = strncmp(e->name, l->prefix, n) == 0 ? e->name + n : NULL;
        if (name && (wf_is_moment(name) || listed_as_added(l->file, name))) continue;
        return fail(message, "'%.160s' is in the file but not in the model%s", e->name,
                    wf_named_as_scale(e->name) ? ", nor the scales of a matrix in I8" : "");
    }
    return true;
}

static bool has_all_data(const wf_file *f, char *message) {
    for (int i = 0; i < wf_file_count(f); i++) {
        const wf_entry *e = wf_file_at(f, i);
        if (e->bytes && !e->data)
            return fail(message,
                        "tensor '%.80s': its data are not there any more: the file was loaded once",
                        e->name);
    }
    return true;
}

bool wf_model_load_prefixed(wf_model *m, const wf_file *f, const char *prefix, char *message) {
    if (!wf_file_ok(f)) return fail(message, "%s", wf_file_error(f));
    if (!m || !wf_ok(m->graph))
        return fail(message, "%s", m ? wf_error(m->graph) : "there is no model");
    if (wf_has_adapters(f))
        return fail(message,
                    "it has adapters without their model: load that model first (generate MODEL "
                    "--adapter FILE; convert --adapter FILE MODEL merges them)");
    wf_loader l;
    char why[WF_MESSAGE];
    const int most = PARTS * wf_node_count(m->graph);
    bool ok = wf_loader_open(&l, f, prefix, most, message) && has_all_data(f, message);
    if (ok) {
        l.message = why;
        bool found = find_all(&l, m);
        l.message = message;
        ok = nothing_left(&l, message) && (found || fail(message, "%s", why)) && wf_loader_load(&l);
    }
    wf_loader_close(&l);
    return ok;
}

bool wf_model_rounded(const wf_model *m, const wf_file *f) {
    wf_loader l;
    int n = 0;
    if (!m) return false;
    bool ok = wf_loader_open(&l, f, "", PARTS * wf_node_count(m->graph), NULL) && find_all(&l, m);
    for (int i = 0; ok && i < l.n; i++) {
        if (wf_layout_of(l.leaves[i]) != WF_PANELS_INT8) continue;
        ok = strcmp(l.entries[i]->dtype, "I8") == 0;
        n++;
    }
    wf_loader_close(&l);
    return ok && n > 0;
}

bool wf_model_load_weights(wf_model *m, const wf_file *f, char *message) {
    return wf_model_load_prefixed(m, f, "", message);
}

wf_model *wf_model_load(const wf_file *f, const wf_training_config *training, wf_dtype real,
                        uint64_t seed, char *message) {
    wf_model *m = wf_model_record(f, training, real, seed, message);
    if (m && wf_model_load_weights(m, f, message)) return m;
    wf_model_free(m);
    return NULL;
}

bool wf_model_pack(wf_model *m, const wf_file *f, int format, wf_layout f32, char *message) {
    const wf_layout layouts[] = { [WF_WEIGHTS_F32] = f32,
                                  [WF_WEIGHTS_BF16] = WF_PANELS_BF16,
                                  [WF_WEIGHTS_INT8] = WF_PANELS_INT8 };
    if (!m) return fail(message, "there is no model");
    if (!wf_weight_format_name(format) && format >= 0)
        return fail(message, "there is no format %d of weights", format);
    bool as_file = format < 0;
    bool ok = wf_pack_weights(m->graph, layouts[as_file ? WF_WEIGHTS_INT8 : format], message);
    if (ok && as_file && !wf_model_rounded(m, f)) ok = wf_pack_weights(m->graph, f32, message);
    return ok;
}

/* Each matrix gets its packed layout before its values are loaded from the file. So the values are
 * written to memory once, not first in rows and then packed. */
wf_model *wf_model_load_packed(const wf_file *f, const wf_training_config *training, int format,
                               wf_layout f32, char *message) {
    wf_model *m = wf_model_record(f, training, WF_F32, 0, message);
    if (m && wf_model_pack(m, f, format, f32, message) && wf_model_load_weights(m, f, message))
        return m;
    wf_model_free(m);
    return NULL;
}

/* ---- which model it is ----------------------------------------------------------------------- */

static uint64_t hash_entry(const wf_entry *e) {
    uint64_t hash = wf_hash_bytes(0, e->name, strlen(e->name));
    hash = wf_hash_bytes(hash, e->dtype, strlen(e->dtype));
    hash = wf_hash_bytes(hash, e->shape, (size_t)e->ndim * sizeof *e->shape);
    return wf_hash_bytes(hash, e->data, e->bytes);
}

void wf_model_hash(const wf_file *f, char text[WF_MODEL_HASH]) {
    uint64_t sum = 0;
    if (!text) return;
    for (int i = 0; i < wf_file_count(f); i++) {
        const wf_entry *e = wf_file_at(f, i);
        if (!wf_is_moment(e->name)) sum += hash_entry(e);
    }
    for (int i = 0; i < wf_file_meta_count(f); i++) {
        wf_meta pair = wf_file_meta_at(f, i);
        if (strncmp(pair.key, "weft.config.", 12) != 0) continue;
        uint64_t key = wf_hash_bytes(0, pair.key, strlen(pair.key));
        sum += wf_hash_bytes(key, pair.value, strlen(pair.value));
    }
    snprintf(text, WF_MODEL_HASH, "%016" PRIx64, sum);
}
