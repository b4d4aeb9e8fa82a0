/* models/file/model_file.c - a model in one safetensors file: configuration (config_file.c),
 * weights, and for a checkpoint what its trainer keeps.
 *
 * Names are those of a PyTorch state_dict with torch.nn.Transformer's names. Files from there
 * load, with packed or separate q, k, v, and with tied tables under any one or all of their
 * names. A file is checked against the model before anything of the model is overwritten.
 * Sinusoidal tables are not stored: the configuration says them. */
#include "model_file.h"

#include <stdlib.h>
#include <string.h>

#include "models/message.h"

#define KIND "weft.kind"   /* metadata: what the file is */
#define ADDED "weft.added" /* the names of parameters that are not the model's own, a line each */

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct writing {
    wf_tensor **leaves;
    int n;
    wf_meta *meta;
    int n_meta;
    wf_config_text config;
    char *added; /* the value of ADDED; NULL: there are none */
} writing;

static void close_writing(writing *w) {
    free(w->leaves), free(w->meta), free(w->added);
}

static bool list_leaves(writing *w, const wf_model *m) {
    w->n = wf_parameters(m->graph, NULL, 0);
    w->leaves = calloc((size_t)w->n + 1, sizeof(wf_tensor *));
    if (w->leaves) wf_parameters(m->graph, w->leaves, w->n);
    return w->leaves;
}

/* Their names in one text; none if there are none. */
static bool list_added(writing *w, const wf_model *m) {
    size_t size = 1, n = 0;
    for (int i = 0; i < w->n; i++) size += strlen(w->leaves[i]->name) + 1;
    w->added = calloc(size, 1);
    for (int id = 0; w->added && id < wf_node_count(m->graph); id++)
        if (wf_is_added(m, wf_node(m->graph, id)))
            n += (size_t)snprintf(w->added + n, size - n, "%s\n", wf_node(m->graph, id)->name);
    return w->added;
}

static void add_meta(writing *w, const char *key, const char *value) {
    w->meta[w->n_meta++] = (wf_meta){ key, value };
}

/* What kind of file it is, unless the caller knows better. */
static void add_kind(writing *w, bool checkpoint, const wf_meta *meta, int n_meta) {
    for (int i = 0; i < n_meta; i++)
        if (meta[i].key && strcmp(meta[i].key, KIND) == 0) return;
    add_meta(w, KIND, checkpoint ? "checkpoint" : "model");
}

/* A tied table is stored once. Its other names point to it in the metadata, in the way of
 * safetensors' own save_model for PyTorch. */
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
    size_t pairs = (size_t)n_meta + WF_CONFIG_META + (size_t)m->n_tied + 2;
    writing w = { .meta = calloc(pairs, sizeof *w.meta) };
    bool ok = w.meta && list_leaves(&w, m) && list_added(&w, m);
    if (!ok) {
        fail(message, "%s: out of memory", path);
        /* other ranks wait for this one; only rank 0 needs the lists */
        if (trainer) ok = wf_trainer_write(trainer, path, NULL, 1, NULL, 0);
    } else {
        add_kind(&w, trainer != NULL, meta, n_meta);
        w.n_meta += wf_config_to_meta(m, &w.config, w.meta + w.n_meta);
        add_aliases(&w, m);
        if (*w.added) add_meta(&w, ADDED, w.added);
        for (int i = 0; i < n_meta; i++) add_meta(&w, meta[i].key, meta[i].value);
        ok = write_file(&w, path, trainer, message);
    }
    close_writing(&w);
    return ok;
}

/* ---- reading: where a leaf's values are ------------------------------------------------------ */

/* A file and what comes before the model's names in it: "" in weft's own. */
typedef struct named {
    const wf_file *file;
    const char *prefix;
} named;

static const wf_entry *find(const named *f, const char *name) {
    char full[WF_MESSAGE];
    int n = snprintf(full, sizeof full, "%s%s", f->prefix, name);
    return n < (int)sizeof full ? wf_file_find(f->file, full) : NULL;
}

/* What fills a leaf: one entry, or q, k and v for a packed projection. */
typedef struct source {
    const wf_entry *part[3];
    int n;
} source;

#define PACKED "in_proj_weight"

/* The length of what comes before `tail` in name; 0: name does not end so. */
static size_t stem(const char *name, const char *tail) {
    size_t n = strlen(name), m = strlen(tail);
    return n > m && strcmp(name + n - m, tail) == 0 ? n - m : 0;
}

static bool find_parts(const named *f, const wf_tensor *leaf, source *s, char *message) {
    size_t n = stem(leaf->name, PACKED);
    for (int i = 0; n && i < 3; i++) {
        char name[WF_MESSAGE];
        snprintf(name, sizeof name, "%.*s%c_proj_weight", (int)n, leaf->name, "qkv"[i]);
        s->part[i] = find(f, name);
        s->n += s->part[i] != NULL;
    }
    return s->n == 3 || fail(message, "'%.200s' is in the model but not in the file", leaf->name);
}

static bool is_tied(const wf_model *m, const char *name) {
    for (int i = 0; i < m->n_tied; i++)
        if (strcmp(m->tied[i], name) == 0) return true;
    return false;
}

/* Of one type and shape are as many bytes: the reader has seen to it. */
static bool same_entry(const wf_entry *a, const wf_entry *b) {
    return strcmp(a->dtype, b->dtype) == 0 && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0 &&
           memcmp(a->data, b->data, a->bytes) == 0;
}

bool wf_same_table(const wf_file *f, const wf_entry *a, const wf_entry *b) {
    const wf_entry *x = wf_file_scale_of(f, a), *y = wf_file_scale_of(f, b);
    return same_entry(a, b) && (x && y ? same_entry(x, y) : !x && !y);
}

/* Every copy of a tied table must be the same: else the file is of a model that does not tie. */
static bool find_tied(const wf_model *m, const named *f, source *s, char *message) {
    const wf_entry *found = NULL;
    for (int i = 0; i < m->n_tied; i++) {
        const wf_entry *e = find(f, m->tied[i]);
        if (!e) continue;
        if (found && !wf_same_table(f->file, e, found))
            return fail(message, "'%s' and '%s' differ in the file: the model ties them",
                        found->name, e->name);
        found = e;
    }
    *s = (source){ { found }, found != NULL };
    return true;
}

static bool find_source(const wf_model *m, const named *f, const wf_tensor *leaf, source *s,
                        char *message) {
    const wf_entry *e = find(f, leaf->name);
    *s = (source){ { e }, e != NULL };
    if (is_tied(m, leaf->name) && !find_tied(m, f, s, message)) return false;
    return s->n == 1 || find_parts(f, leaf, s, message);
}

/* Each part is as large as it must be, and all are of one type. */
static bool fits(const wf_tensor *leaf, const source *s, char *message) {
    for (int i = 0; i < s->n; i++) {
        const wf_entry *e = s->part[i];
        char have[96], want[96];
        int64_t shape[WF_MAX_DIMS];
        memcpy(shape, leaf->shape, sizeof shape);
        shape[0] /= s->n;
        if (e->ndim != leaf->ndim || memcmp(e->shape, shape, (size_t)e->ndim * sizeof *shape))
            return fail(message, "'%.90s' is %s in the file, not %s as in the model", e->name,
                        wf_shape_text(NULL, e->ndim, e->shape, have, sizeof have),
                        wf_shape_text(NULL, leaf->ndim, shape, want, sizeof want));
        if (strcmp(e->dtype, s->part[0]->dtype))
            return fail(message, "'%.90s' is of another type than '%.90s'", e->name,
                        s->part[0]->name);
    }
    return true;
}

/* ---- reading: into the leaves ---------------------------------------------------------------- */

/* What the file has for the model: an entry per leaf, or three. */
typedef struct reading {
    const wf_model *m;
    const named *f;
    wf_tensor **leaves;
    const wf_entry **entries, **scales; /* of I8: those of its rows */
    int n;
} reading;

static void close_reading(reading *r) {
    free(r->leaves), free(r->entries), free(r->scales);
}

static bool open_reading(reading *r, char *message) {
    size_t most = 3 * (size_t)wf_node_count(r->m->graph) + 1;
    r->leaves = calloc(most, sizeof(wf_tensor *));
    r->entries = calloc(most, sizeof *r->entries);
    r->scales = calloc(most, sizeof *r->scales);
    return (r->leaves && r->entries && r->scales) || fail(message, "out of memory");
}

static bool read_leaf(reading *r, wf_tensor *leaf, char *message) {
    source s;
    if (!find_source(r->m, r->f, leaf, &s, message) || !fits(leaf, &s, message)) return false;
    for (int i = 0; i < s.n; i++, r->n++) {
        r->leaves[r->n] = leaf;
        r->entries[r->n] = s.part[i];
        r->scales[r->n] = wf_file_scale_of(r->f->file, s.part[i]);
    }
    return true;
}

/* Does the file say that this is no parameter of the model's own? */
static bool listed_as_added(const wf_file *f, const char *name) {
    const char *at = wf_file_meta(f, ADDED);
    for (size_t n = strlen(name); at && *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (strncmp(at, name, n) == 0 && at[n] == '\n') return true;
    return false;
}

/* Is this name one that the model asks for? Else the file is of another model. */
static bool known_name(const wf_model *m, const named *f, const char *name) {
    static const char *const separate[] = { "q_proj_weight", "k_proj_weight", "v_proj_weight" };
    const wf_tensor *t = wf_find(m->graph, name);
    if (t && t->kind == WF_PARAM && strcmp(t->name, name) == 0) return true;
    if (is_tied(m, name) || strncmp(name, "optimizer.", 10) == 0) return true;
    if (listed_as_added(f->file, name)) return true;
    for (int i = 0; i < 3; i++) {
        char packed[WF_MESSAGE];
        size_t n = stem(name, separate[i]);
        snprintf(packed, sizeof packed, "%.*s" PACKED, n < 200 ? (int)n : 200, name);
        if (n && wf_find(m->graph, packed) && !find(f, packed)) return true;
    }
    return false;
}

static bool read_all(reading *r, char *message) {
    const wf_graph *g = r->m->graph;
    for (int id = 0; id < wf_node_count(g); id++) {
        wf_tensor *t = wf_node(g, id);
        if (t->kind != WF_PARAM || (wf_is_added(r->m, t) && !find(r->f, t->name))) continue;
        if (!read_leaf(r, t, message)) return false;
    }
    return true;
}

/* Without its prefix; NULL: it has another. */
static const char *without_prefix(const char *name, const char *prefix) {
    size_t n = strlen(prefix);
    return strncmp(name, prefix, n) == 0 ? name + n : NULL;
}

static bool ends_as_scale(const char *name) {
    static const char end[] = "_scale"; /* as core/file.h has it */
    size_t n = strlen(name), tail = sizeof end - 1;
    return n > tail && strcmp(name + n - tail, end) == 0;
}

static bool load(wf_model *m, const wf_file *file, const char *prefix, char *message) {
    const named f = { file, prefix };
    if (!wf_file_ok(file)) return fail(message, "%s", wf_file_error(file));
    if (!m || !wf_ok(m->graph))
        return fail(message, "%s", m ? wf_error(m->graph) : "there is no model");
    for (int i = 0; i < wf_file_count(file); i++) {
        const wf_entry *e = wf_file_at(file, i);
        const char *full = e->name, *name = without_prefix(full, prefix);
        if (e->bytes && !e->data)
            return fail(message,
                        "tensor '%.80s': its data are not there any more: the file was "
                        "loaded once",
                        full);
        bool known = name && (known_name(m, &f, name) || wf_file_is_scale(file, e));
        if (!known)
            return fail(message, "'%.160s' is in the file but not in the model%s", full,
                        ends_as_scale(full) ? ", nor the scales of a matrix in I8" : "");
    }
    reading r = { .m = m, .f = &f };
    bool ok = open_reading(&r, message) && read_all(&r, message) &&
              wf_file_load_from(file, r.entries, r.scales, r.leaves, r.n, message);
    close_reading(&r);
    return ok;
}

static bool is_rounded(const wf_model *m, const wf_file *file, const wf_tensor *leaf) {
    source s;
    if (!find_source(m, &(named){ file, "" }, leaf, &s, NULL)) return false;
    for (int i = 0; i < s.n; i++)
        if (strcmp(s.part[i]->dtype, "I8") != 0) return false;
    return true;
}

bool wf_model_rounded(const wf_model *m, const wf_file *f) {
    int n = 0;
    for (int id = 0; m && id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        if (wf_layout_of(t) != WF_PANELS_INT8) continue;
        if (!is_rounded(m, f, t)) return false;
        n++;
    }
    return n;
}

bool wf_model_load_prefixed(wf_model *m, const wf_file *f, const char *prefix, char *message) {
    return load(m, f, prefix, message);
}

bool wf_model_load_weights(wf_model *m, const wf_file *f, char *message) {
    return load(m, f, "", message);
}

wf_model *wf_model_load(const wf_file *f, const wf_training_config *training, wf_dtype real,
                        uint64_t seed, char *message) {
    wf_model *m = wf_model_record(f, training, real, seed, message);
    if (m && wf_model_load_weights(m, f, message)) return m;
    wf_model_free(m);
    return NULL;
}
