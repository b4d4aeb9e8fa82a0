/* models/model_file.c - a Transformer in one safetensors file: configuration, weights, and for a checkpoint the
 * optimizer's moments.
 *
 * Names are those of a PyTorch state_dict with torch.nn.Transformer's names; files from there load, with
 * packed or separate q, k, v. Configurations from files are checked like any other. */
#include "transformer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG "weft.config."
enum { TEXT = 40 };

static bool fail(char *message, const char *format, const char *a, const char *b) {
    if (message) snprintf(message, 256, format, a, b);
    return false;
}

/* ---- the configuration as text -------------------------------------------------------------------------- */

/* One row per field: whole numbers go through these, so that writing and reading can't differ. */
typedef struct field {
    const char *key;
    int64_t (*get)(const wf_transformer_config *c);
    void (*set)(wf_transformer_config *c, int64_t value);
} field;

#define FIELDS(ROW)                                                                                         \
    ROW(src_vocab, int64_t) ROW(tgt_vocab, int64_t) ROW(max_len, int64_t) ROW(d_model, int64_t)             \
    ROW(num_heads, int64_t) ROW(dim_feedforward, int64_t) ROW(encoder_layers, int64_t)                      \
    ROW(decoder_layers, int64_t) ROW(activation, wf_activation) ROW(positions, wf_positions)                \
    ROW(tie, wf_tie) ROW(norm_first, bool) ROW(encoder_norm, bool) ROW(decoder_norm, bool)                  \
    ROW(scale_embedding, bool) ROW(bias, bool) ROW(output_bias, bool) ROW(pad_id, int32_t)                  \
    ROW(start_id, int32_t) ROW(end_id, int32_t)

#define ACCESS(name, type)                                                                                  \
    static int64_t get_##name(const wf_transformer_config *c) { return (int64_t)c->name; }                  \
    static void set_##name(wf_transformer_config *c, int64_t value) { c->name = (type)value; }
FIELDS(ACCESS)
#define ROW(name, type) { CONFIG #name, get_##name, set_##name },
static const field fields[] = { FIELDS(ROW) };
enum { N_FIELDS = sizeof fields / sizeof *fields };
#define EPS CONFIG "layer_norm_eps"

static bool parse_whole(const char *text, int64_t *value) {
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    *value = v;
    return end != text && !*end && !errno && v >= INT32_MIN && v <= INT32_MAX;
}

bool wf_transformer_read_config(const wf_file *f, wf_transformer_config *c, char *message) {
    if (!wf_file_ok(f)) return fail(message, "%s%s", wf_file_error(f), "");
    *c = wf_transformer_defaults();
    for (int i = 0; i < N_FIELDS; i++) {
        const char *text = wf_file_meta(f, fields[i].key);
        int64_t value;
        if (!text) return fail(message, "no '%s' in the metadata: not a model of weft's%s", fields[i].key, "");
        if (!parse_whole(text, &value)) return fail(message, "'%s' is '%.64s', not a whole number", fields[i].key, text);
        fields[i].set(c, value);
        if (fields[i].get(c) != value) return fail(message, "'%s' cannot be %.64s", fields[i].key, text);
    }
    const char *text = wf_file_meta(f, EPS);
    char *end = NULL;
    if (text) c->layer_norm_eps = strtod(text, &end);
    if (!text || end == text || *end) return fail(message, "'%s' is not a number%s", EPS, "");
    return wf_transformer_check(c, message);
}

/* ---- writing ------------------------------------------------------------------------------------------------ */

typedef struct writing {
    wf_entry *entries;
    int n;
    wf_meta *meta;
    int n_meta;
    char (*text)[TEXT];
} writing;

static void close_writing(writing *w) {
    for (int i = 0; w->entries && i < w->n; i++) free((void *)(uintptr_t)w->entries[i].data);
    free(w->entries), free(w->meta), free(w->text);
}

static bool add_tensor(writing *w, const wf_tensor *t) {
    void *data = malloc(wf_bytes(t) ? wf_bytes(t) : 1);
    wf_entry *e = &w->entries[w->n++];
    *e = (wf_entry){ .name = t->name, .dtype = t->dtype == WF_F64 ? "F64" : "F32", .ndim = t->ndim,
                     .data = data, .bytes = wf_bytes(t) };
    memcpy(e->shape, t->shape, sizeof e->shape);
    return data && wf_read(t, data, wf_bytes(t));
}

static bool add_tensors(writing *w, const wf_transformer *m, bool checkpoint) {
    int moments = checkpoint ? m->optimizer.n_moments : 0;
    w->entries = calloc((size_t)wf_node_count(m->graph) + 1, sizeof *w->entries);
    if (!w->entries) return false;
    for (int id = 0; id < wf_node_count(m->graph); id++)
        if (wf_node(m->graph, id)->kind == WF_PARAM && !add_tensor(w, wf_node(m->graph, id))) return false;
    for (int i = 0; i < moments; i++)
        if (!add_tensor(w, m->optimizer.moments[i])) return false;
    return true;
}

static void add_config(writing *w, const wf_transformer_config *c) {
    for (int i = 0; i < N_FIELDS; i++) {
        snprintf(w->text[i], TEXT, "%lld", (long long)fields[i].get(c));
        w->meta[w->n_meta++] = (wf_meta){ fields[i].key, w->text[i] };
    }
    snprintf(w->text[N_FIELDS], TEXT, "%.17g", c->layer_norm_eps);
    w->meta[w->n_meta++] = (wf_meta){ EPS, w->text[N_FIELDS] };
    if (c->tie != WF_TIE_NONE) /* stored once; the alias is for readers in Python */
        w->meta[w->n_meta++] = (wf_meta){ "weft.alias.output.weight", "tgt_embedding.weight" };
    if (c->tie == WF_TIE_ALL)
        w->meta[w->n_meta++] = (wf_meta){ "weft.alias.src_embedding.weight", "tgt_embedding.weight" };
}

bool wf_transformer_save(const wf_transformer *m, const char *path, bool checkpoint, const wf_meta *meta,
                         int n_meta, char *message) {
    if (!m || !wf_ok(m->graph)) return fail(message, "%s: %s", path, m ? wf_error(m->graph) : "there is no model");
    writing w = { .meta = calloc((size_t)n_meta + N_FIELDS + 3, sizeof *w.meta),
                  .text = calloc(N_FIELDS + 1, sizeof *w.text) };
    bool ok = w.meta && w.text && add_tensors(&w, m, checkpoint);
    if (!ok) fail(message, "%s: out of memory%s", path, "");
    if (ok) {
        add_config(&w, &m->config);
        for (int i = 0; i < n_meta; i++) w.meta[w.n_meta++] = meta[i];
        ok = wf_file_save(path, w.entries, w.n, w.meta, w.n_meta, message);
    }
    close_writing(&w);
    return ok;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* q, k and v in three tensors: put together as the packed one that `leaf` is. */
static bool load_separate(const wf_file *f, wf_tensor *leaf, size_t stem, char *message) {
    wf_entry whole = { .name = leaf->name, .ndim = leaf->ndim };
    char *data = NULL;
    for (int i = 0; i < 3; i++) {
        char name[300];
        snprintf(name, sizeof name, "%.*s%c_proj_weight", (int)stem, leaf->name, "qkv"[i]);
        const wf_entry *e = wf_file_find(f, name);
        bool fits = e && e->ndim == 2 && 3 * e->shape[0] == leaf->shape[0] && e->shape[1] == leaf->shape[1] &&
                    (i == 0 || strcmp(e->dtype, whole.dtype) == 0);
        if (!fits) return free(data), fail(message, "'%s' is missing, and so is a fitting '%s'", leaf->name, name);
        if (i == 0) whole.dtype = e->dtype, whole.bytes = 3 * e->bytes, data = malloc(whole.bytes);
        if (!data) return fail(message, "out of memory%s%s", "", "");
        memcpy(data + (size_t)i * e->bytes, e->data, e->bytes);
    }
    memcpy(whole.shape, leaf->shape, sizeof whole.shape);
    whole.data = data;
    bool ok = wf_file_load(&whole, leaf, message);
    free(data);
    return ok;
}

static bool load_tensor(const wf_file *f, wf_tensor *leaf, char *message) {
    static const char packed[] = "in_proj_weight";
    const wf_entry *e = wf_file_find(f, leaf->name);
    if (e) return wf_file_load(e, leaf, message);
    size_t n = strlen(leaf->name), tail = sizeof packed - 1;
    if (n >= tail && strcmp(leaf->name + n - tail, packed) == 0)
        return load_separate(f, leaf, n - tail, message);
    return fail(message, "'%s' is not in the file%s", leaf->name, "");
}

/* Names in the file that the model does not have: parts of a packed projection and stored copies of tied
 * tables are known; anything else says that the configuration is another one. */
static bool known_name(const wf_transformer *m, const char *name) {
    wf_tensor *t = wf_find(m->graph, name);
    if (t && (t->kind == WF_PARAM || t->kind == WF_BUFFER)) return true;
    if (strncmp(name, "optimizer.", 10) == 0 || strstr(name, "_proj_weight")) return true;
    if (m->config.tie != WF_TIE_NONE && strcmp(name, "output.weight") == 0) return true;
    return m->config.tie == WF_TIE_ALL && strcmp(name, "src_embedding.weight") == 0;
}

bool wf_transformer_load_weights(wf_transformer *m, const wf_file *f, char *message) {
    if (!wf_file_ok(f)) return fail(message, "%s%s", wf_file_error(f), "");
    if (!m || !wf_ok(m->graph)) return fail(message, "%s%s", m ? wf_error(m->graph) : "there is no model", "");
    for (int i = 0; i < wf_file_count(f); i++)
        if (!known_name(m, wf_file_at(f, i)->name))
            return fail(message, "'%.200s' is in the file but not in the model%s", wf_file_at(f, i)->name, "");
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        wf_tensor *t = (wf_tensor *)(uintptr_t)wf_node(m->graph, id);
        if (t->kind == WF_PARAM && !load_tensor(f, t, message)) return false;
    }
    bool moments = m->optimizer.n_moments && wf_file_find(f, m->optimizer.moments[0]->name);
    for (int i = 0; moments && i < m->optimizer.n_moments; i++)
        if (!load_tensor(f, m->optimizer.moments[i], message)) return false;
    return true;
}

wf_transformer *wf_transformer_load(const wf_file *f, const wf_training_config *training, wf_dtype real,
                                    uint64_t seed, char *message) {
    wf_transformer_config c;
    if (!wf_transformer_read_config(f, &c, message)) return NULL;
    wf_transformer *m = wf_transformer_new(&c, training, real, seed, message);
    if (m && wf_transformer_load_weights(m, f, message)) return m;
    wf_transformer_free(m);
    return NULL;
}
