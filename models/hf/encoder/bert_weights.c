/* models/hf/encoder/bert_weights.c - loads the tensors of a folder into the parameters of an
 * encoder, and writes them.
 *
 * Everything is checked before the first tensor is loaded. Queries, keys and values are three
 * tensors of the folder, which are stacked as they are loaded. */
#include <stdlib.h>
#include <string.h>

#include "bert_family.h"
#include "core/file/loader.h"
#include "core/file_internal.h"
#include "models/message.h"

enum { PARTS = 3 };
#define POOLER "pooler."
#define DENSE "dense." /* the layer after pooling, whose tensors are in a file of their own */

typedef struct loading {
    wf_loader load;
    const hf_bert_family *family;
    const wf_encoder_config *c;
} loading;

/* ---- names ----------------------------------------------------------------------------------- */

/* Writes a norm's name in old files, with LayerNorm.gamma or LayerNorm.beta. False: it is no
 * norm. */
static bool old_name(const char *name, char old[HF_NAME]) {
    const char *norm = strstr(name, "LayerNorm.");
    if (!norm) return false;
    norm += strlen("LayerNorm.");
    snprintf(old, HF_NAME, "%.*s%s", (int)(norm - name), name,
             strcmp(norm, "weight") == 0 ? "gamma" : "beta");
    return true;
}

/* Finds a tensor by its name, with or without the prefix `body`, or by a norm's old name. */
static const wf_entry *find_in(const wf_file *f, const char *body, const char *name) {
    char old[HF_NAME];
    size_t n = strncmp(name, body, strlen(body)) == 0 ? strlen(body) : 0;
    const wf_entry *e = wf_file_find(f, name);
    if (!e && n) e = wf_file_find(f, name + n);
    if (!e && old_name(name, old)) e = wf_file_find(f, old);
    if (!e && n && old_name(name + n, old)) e = wf_file_find(f, old);
    return e;
}

static const wf_entry *find_name(loading *l, const char *name) {
    const wf_entry *e = find_in(l->load.file, l->family->body, name);
    return e ? wf_loader_find(&l->load, e->name) : NULL;
}

/* The first tensor of a parameter; NULL: there is none. */
static const wf_entry *entry_of(const wf_file *f, const hf_bert_family *family,
                                const char *parameter) {
    char name[HF_NAME];
    return wf_hf_bert_name(family, parameter, 0, name) ? find_in(f, family->body, name) : NULL;
}

/* transformers' class for masked tokens has no pooler, even if a file of several heads has its
 * tensors. The class for classification always has one. */
void wf_hf_bert_find_heads(const wf_file *f, const hf_bert_family *family, wf_encoder_config *c) {
    const wf_entry *classes = entry_of(f, family, "classifier.weight");
    c->classes = classes && classes->ndim == 2 ? classes->shape[0] : 0;
    c->masked_lm = !c->classes && entry_of(f, family, "head.weight");
    c->pooler = c->classes || (!c->masked_lm && entry_of(f, family, "pooler.weight"));
}

/* Writes a parameter's name in the file, and returns its number of parts. The output's bias may
 * have two names; as in transformers, the one in bias_copy counts unless the tables are tied. In a
 * classifier the pooler may have the name class_pooler. */
static int name_of(const hf_bert_family *f, const wf_encoder_config *c, const wf_tensor *leaf,
                   int part, char name[HF_NAME]) {
    int parts = wf_hf_bert_name(f, leaf->name, part, name);
    if (c->classes && f->class_pooler && strncmp(leaf->name, POOLER, strlen(POOLER)) == 0) {
        snprintf(name, HF_NAME, "%s%s", f->class_pooler, leaf->name + strlen(POOLER));
        return 1;
    }
    if (parts && !c->tied && f->bias_copy && strcmp(leaf->name, "output.bias") == 0)
        snprintf(name, HF_NAME, "%s", f->bias_copy);
    return parts;
}

/* ---- finding --------------------------------------------------------------------------------- */

static bool find_leaf(loading *l, wf_tensor *leaf) {
    char name[HF_NAME], *message = l->load.message;
    const wf_entry *first = NULL;
    int parts = name_of(l->family, l->c, leaf, 0, name);
    if (!parts) return fail(message, "'%.120s' has no name in this family", leaf->name);
    for (int i = 0; i < parts; i++) {
        name_of(l->family, l->c, leaf, i, name);
        const wf_entry *e = find_name(l, name);
        if (!e) return fail(message, "'%s' is missing", name);
        if (!wf_file_shape_fits(e, leaf, parts, message) ||
            !wf_hf_is_plain(l->load.file, e, message))
            return false;
        if (first && strcmp(e->dtype, first->dtype) != 0)
            return fail(message, "'%s' is of another type than '%s'", e->name, first->name);
        first = first ? first : e;
        wf_loader_add(&l->load, leaf, e);
    }
    return true;
}

/* False with message if the file has both names, and their tensors differ. */
static bool same_copy(loading *l, const char *of, const char *copy) {
    const wf_entry *a = find_name(l, of), *b = find_name(l, copy);
    return !a || !b || wf_same_entries(l->load.file, a, b) ||
           fail(l->load.message, "'%s' and '%s' differ: they are one in a model of this family",
                a->name, b->name);
}

static bool same_copies(loading *l) {
    const hf_bert_family *f = l->family;
    char table[HF_NAME], output[HF_NAME], bias[HF_NAME];
    if (!l->c->masked_lm) return true;
    wf_hf_bert_name(f, "embedding.weight", 0, table);
    wf_hf_bert_name(f, "output.weight", 0, output);
    wf_hf_bert_name(f, "output.bias", 0, bias);
    /* the bias under its other name is not read, but it may be in the file */
    if (!l->c->tied) return find_name(l, bias) || true;
    return same_copy(l, table, output) && (!f->bias_copy || same_copy(l, bias, f->bias_copy));
}

static bool is_dropped(const loading *l, const char *tensor) {
    const hf_bert_family *f = l->family;
    bool other = l->c->masked_lm || (l->c->classes && f->class_pooler);
    if (other && strstr(tensor, "pooler.dense.")) return true;
    for (int i = 0; i < 4 && f->dropped[i]; i++) {
        const char *begin = f->dropped[i];
        size_t body = strncmp(begin, f->body, strlen(f->body)) == 0 ? strlen(f->body) : 0;
        if (strncmp(tensor, begin, strlen(begin)) == 0 ||
            (body && strncmp(tensor, begin + body, strlen(begin + body)) == 0))
            return true;
    }
    return false;
}

static bool nothing_left(const loading *l) {
    for (const wf_entry *e = NULL; (e = wf_loader_left(&l->load, e));)
        if (!is_dropped(l, e->name))
            return fail(l->load.message,
                        "'%.120s' is in the weights but not in a model of this family", e->name);
    return true;
}

static bool is_dense(const wf_tensor *leaf) {
    return strncmp(leaf->name, DENSE, strlen(DENSE)) == 0;
}

bool wf_hf_bert_load_weights(const wf_file *f, const hf_bert_family *family, wf_model *m,
                             char *message) {
    const int nodes = wf_node_count(m->graph);
    loading l = { .family = family, .c = &wf_encoder_of(m)->config };
    bool ok = wf_loader_open(&l.load, f, "", PARTS * nodes, message);
    for (int id = 0; ok && id < nodes; id++) {
        wf_tensor *leaf = wf_node(m->graph, id);
        if (leaf->kind == WF_PARAM && !is_dense(leaf)) ok = find_leaf(&l, leaf);
    }
    ok = ok && same_copies(&l) && nothing_left(&l) && wf_loader_load(&l.load);
    wf_loader_close(&l.load);
    return ok;
}

bool wf_hf_bert_load_dense(const wf_file *f, wf_model *m, char *message) {
    wf_loader l;
    char name[HF_NAME];
    bool ok = wf_loader_open(&l, f, "", wf_node_count(m->graph), message);
    for (int id = 0; ok && id < wf_node_count(m->graph); id++) {
        wf_tensor *leaf = wf_node(m->graph, id);
        if (leaf->kind != WF_PARAM || !is_dense(leaf)) continue;
        snprintf(name, sizeof name, "linear.%s", leaf->name + strlen(DENSE));
        const wf_entry *e = wf_loader_find(&l, name);
        if (!e) ok = fail(message, "'%s' is missing", name);
        ok = ok && wf_file_shape_fits(e, leaf, 1, message);
        if (ok && wf_file_not_finite(e))
            ok = fail(message, "'%s' has values that are NaN or infinite", name);
        if (ok) wf_loader_add(&l, leaf, e);
    }
    const wf_entry *left = ok ? wf_loader_left(&l, NULL) : NULL;
    if (left) ok = fail(message, "'%.120s' is in the weights but not in such a layer", left->name);
    ok = ok && wf_loader_load(&l);
    wf_loader_close(&l);
    return ok;
}

/* ---- saving ---------------------------------------------------------------------------------- */

typedef struct saving {
    const hf_bert_family *family;
    const wf_encoder_config *c;
    hf_tensors tensors;
} saving;

/* Adds a tensor [rows,columns], or [rows] if ndim is 1; values NULL: zeros. False: out of
 * memory. */
static bool add(saving *s, const char *name, int ndim, int64_t rows, int64_t columns,
                const float *values) {
    const int64_t shape[] = { rows, columns };
    float *data = wf_hf_add_tensor(&s->tensors, name, ndim, shape);
    if (data && values) memcpy(data, values, (size_t)(rows * columns) * sizeof *data);
    return data;
}

/* The name as it is written: files of a model without a head leave out the prefix `body`. */
static const char *written(const saving *s, const char *name) {
    size_t n = strlen(s->family->body);
    return !s->c->masked_lm && !s->c->classes && strncmp(name, s->family->body, n) == 0 ? name + n
                                                                                        : name;
}

static bool add_leaf(saving *s, const wf_tensor *t) {
    char name[HF_NAME];
    float *values = malloc(wf_bytes(t) + 1);
    int parts = name_of(s->family, s->c, t, 0, name);
    bool ok = values && parts && wf_read(t, values, wf_bytes(t));
    bool twice = !s->c->tied && s->family->bias_copy && strcmp(t->name, "output.bias") == 0;
    int64_t columns = t->ndim == 2 ? t->shape[1] : 1, rows = parts ? t->shape[0] / parts : 0;
    for (int i = 0; ok && i < parts; i++) {
        name_of(s->family, s->c, t, i, name);
        ok = add(s, written(s, name), t->ndim, rows, columns, values + i * rows * columns);
    }
    /* transformers also saves the bias under its other name, under which it is not read */
    if (ok && twice && wf_hf_bert_name(s->family, t->name, 0, name))
        ok = add(s, name, 1, rows, 1, values);
    free(values);
    return ok;
}

/* Adds a pooler of zeros for a model without one, because transformers' class has a pooler. The
 * embedding of a line does not depend on it. */
static bool add_no_pooler(saving *s) {
    char name[HF_NAME];
    const int64_t D = s->c->d_model;
    if (s->c->pooler || s->c->masked_lm || !wf_hf_bert_name(s->family, "pooler.weight", 0, name))
        return true;
    bool ok = add(s, written(s, name), 2, D, D, NULL);
    wf_hf_bert_name(s->family, "pooler.bias", 0, name);
    return ok && add(s, written(s, name), 1, D, 1, NULL);
}

/* Adds a tensor of the layer after pooling. False: out of memory. */
static bool add_dense(saving *s, const wf_tensor *t) {
    char name[HF_NAME];
    snprintf(name, sizeof name, "linear.%s", t->name + strlen(DENSE));
    float *data = wf_hf_add_tensor(&s->tensors, name, t->ndim, t->shape);
    return data && wf_read(t, data, wf_bytes(t));
}

bool wf_hf_bert_write_dense(const wf_model *m, const wf_hf_writer *to, char *message) {
    size_t bytes = 0;
    saving s = { .c = &wf_encoder_of(m)->config };
    bool ok = true;
    if (!s.c->dense) return true;
    for (int id = 0; ok && id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        if (t->kind == WF_PARAM && is_dense(t)) ok = add_dense(&s, t);
    }
    if (!ok) fail(message, "out of memory");
    char *file = ok ? wf_hf_tensor_bytes(&s.tensors, &bytes, message) : NULL;
    ok = file && wf_hf_put_bytes(to, "2_Dense/model.safetensors", file, bytes, message);
    free(file);
    wf_hf_tensors_free(&s.tensors);
    return ok;
}

bool wf_hf_bert_save_weights(const wf_model *m, const char *path, char *message) {
    saving s = { .c = &wf_encoder_of(m)->config };
    s.family = wf_hf_bert_family_of(s.c);
    bool ok = true;
    for (int id = 0; ok && id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        if (t->kind == WF_PARAM && !is_dense(t)) ok = add_leaf(&s, t);
    }
    ok = ok && add_no_pooler(&s);
    ok = ok ? wf_hf_save_tensors(&s.tensors, path, message) : fail(message, "out of memory");
    wf_hf_tensors_free(&s.tensors);
    return ok;
}
