/* models/adapters/adapter_file.c - a file of adapters alone: reads their options, loads them into a
 * model with adapters, and merges them into the weights of a model without adapters. wf_model_save
 * writes the file. */
#include "adapters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file/loader.h"
#include "core/file_internal.h"
#include "core/graph_internal.h"
#include "models/kind.h"
#include "models/message.h"
#include "nn/optimizer_internal.h"

/* ---- options --------------------------------------------------------------------------------- */

#define TARGETS "weft.adapters.targets"
static const wf_config_field fields[] = {
    { "weft.adapters.rank", WF_FIELD_INT64, offsetof(wf_adapters, rank), NULL, NULL, NULL, 0 },
    { "weft.adapters.alpha", WF_FIELD_REAL, offsetof(wf_adapters, alpha), NULL, NULL, NULL, 0 },
};
enum { FIELDS = sizeof fields / sizeof *fields };
_Static_assert(FIELDS + 1 == WF_ADAPTER_META, "each field and the targets are a pair");

int wf_adapters_to_meta(const wf_model *m, wf_adapter_text *text, wf_meta *meta) {
    const wf_adapters *o = &m->training.adapters;
    if (!o->rank) return 0;
    for (int i = 0; i < FIELDS; i++)
        meta[i] = (wf_meta){ fields[i].key, wf_field_text(&fields[i], o, text->of[i]) };
    meta[FIELDS] = (wf_meta){ TARGETS, o->targets };
    return WF_ADAPTER_META;
}

bool wf_has_adapters(const wf_file *f) {
    return wf_file_meta(f, TARGETS);
}

bool wf_model_read_adapters(const wf_file *f, wf_adapters *out, char *message) {
    if (!wf_file_ok(f)) return fail(message, "%s", wf_file_error(f));
    if (!out) return fail(message, "there is no place for the options of adapters");
    wf_adapters read = { .targets = wf_file_meta(f, TARGETS) };
    if (!read.targets) return fail(message, "it has no adapters");
    for (int i = 0; i < FIELDS; i++) {
        const char *text = wf_file_meta(f, fields[i].key);
        if (!text) return fail(message, "no '%s' in the metadata", fields[i].key);
        if (!wf_field_read(&fields[i], text, &read, message)) return false;
    }
    if (read.rank < 1 || read.alpha < 0)
        return fail(
            message,
            "adapters of rank %lld and alpha %g: the rank is 1 or more, and alpha 0 or more",
            (long long)read.rank, read.alpha);
    *out = read;
    return true;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* True if every tensor of the file belongs to an adapter of the model or to the optimizer. False
 * with message. */
static bool nothing_left(const wf_loader *l) {
    for (const wf_entry *e = NULL; (e = wf_loader_left(l, e));)
        if (!wf_is_moment(e->name))
            return fail(l->message, "'%.160s' fits no adapter of the model", e->name);
    return true;
}

static bool add(wf_loader *l, wf_tensor *leaf) {
    const wf_entry *e = wf_loader_find(l, leaf->name);
    if (!e) return fail(l->message, "'%.160s' is not in the file", leaf->name);
    if (!wf_file_shape_fits(e, leaf, 1, l->message)) return false;
    wf_loader_add(l, leaf, e);
    return true;
}

static bool same_options(const wf_model *m, const wf_file *f, char *message) {
    wf_adapters o;
    if (!wf_model_read_adapters(f, &o, message)) return false;
    if (!m || !wf_ok(m->graph))
        return fail(message, "%s", m ? wf_error(m->graph) : "there is no model");
    const wf_adapters *own = &m->training.adapters;
    if (own->rank == o.rank && wf_adapter_scale(own) == wf_adapter_scale(&o)) return true;
    return fail(message,
                "its adapters have rank %lld and alpha %g, and those of the model %lld and %g",
                (long long)o.rank, o.alpha, (long long)own->rank, own->alpha);
}

bool wf_model_load_adapters(wf_model *m, const wf_file *f, char *message) {
    wf_loader l;
    if (!same_options(m, f, message)) return false;
    int n = wf_node_count(m->graph);
    bool ok = wf_loader_open(&l, f, "", n, message);
    for (int id = 0; ok && id < n; id++) {
        wf_tensor *t = wf_node(m->graph, id);
        if (t->kind == WF_PARAM && wf_from_hook(t)) ok = add(&l, t);
    }
    ok = ok && nothing_left(&l) && wf_loader_load(&l);
    wf_loader_close(&l);
    return ok;
}

/* ---- merging --------------------------------------------------------------------------------- */

typedef struct merging {
    wf_model *m;
    wf_loader load; /* finds tensors; it loads nothing */
    wf_adapters o;
    bool applies; /* true: weights change; false: everything is only checked */
} merging;

static bool has_shape(const merging *g, const wf_entry *e, int64_t rows, int64_t columns) {
    bool number = strcmp(e->dtype, "F32") == 0 && !wf_file_not_finite(e);
    if (number && e->ndim == 2 && e->shape[0] == rows && e->shape[1] == columns) return true;
    return fail(g->load.message, "'%.120s' is not [%lld,%lld] of finite numbers in F32", e->name,
                (long long)rows, (long long)columns);
}

/* Adds scale B A to the module's rows of the matrix, summed in f64. */
static void add_product(const merging *g, const wf_module *module, int64_t in, const float *a,
                        const float *b, float *weight) {
    double scale = wf_adapter_scale(&g->o);
    for (int64_t i = 0; i < module->rows; i++)
        for (int64_t k = 0; k < in; k++) {
            double sum = 0;
            for (int64_t r = 0; r < g->o.rank; r++)
                sum += (double)b[i * g->o.rank + r] * (double)a[r * in + k];
            float *w = &weight[(module->first + i) * in + k];
            *w = (float)((double)*w + scale * sum);
        }
}

static const wf_entry *find(merging *g, const char *module, const char *end) {
    char name[WF_MODULE_NAME + 32];
    snprintf(name, sizeof name, "%.255s%.16s", module, end);
    return wf_loader_find(&g->load, name);
}

/* Checks one module's adapter, if the file has it. If g->applies, merges it into the values of its
 * matrix. */
static bool merge_module(merging *g, const wf_tensor *w, const wf_module *module, float *values) {
    const wf_entry *a = find(g, module->name, WF_LORA_A), *b = find(g, module->name, WF_LORA_B);
    if (!a && !b) return true;
    if (!a || !b)
        return fail(g->load.message, "'%.120s' has one half of its adapter", module->name);
    if (!has_shape(g, a, g->o.rank, w->shape[1]) || !has_shape(g, b, module->rows, g->o.rank))
        return false;
    if (g->applies) add_product(g, module, w->shape[1], a->data, b->data, values);
    return true;
}

static bool merge_matrix(merging *g, wf_tensor *w) {
    wf_module modules[WF_MODULE_PARTS + 1];
    int n = wf_modules_of(g->m, w, modules);
    bool ok = true;
    if (!n) return true;
    float *values = g->applies ? malloc(wf_bytes(w) + 1) : NULL;
    if (g->applies && (!values || !wf_read(w, values, wf_bytes(w))))
        ok = fail(g->load.message, "out of memory");
    for (int i = 0; ok && i < n; i++) ok = merge_module(g, w, &modules[i], values);
    if (ok && g->applies && !wf_write(w, values, wf_bytes(w)))
        ok = fail(g->load.message, "out of memory");
    free(values);
    return ok;
}

static bool merge_all(merging *g, bool applies) {
    bool ok = true;
    g->applies = applies;
    for (int id = 0; ok && id < wf_node_count(g->m->graph); id++)
        ok = merge_matrix(g, wf_node(g->m->graph, id));
    return ok;
}

static bool may_merge(const wf_model *m, char *message) {
    if (!m || !wf_ok(m->graph))
        return fail(message, "%s", m ? wf_error(m->graph) : "there is no model");
    if (m->training.adapters.rank) return fail(message, "the model has adapters of its own");
    if (wf_real(m->graph) != WF_F32) return fail(message, "the model is not in f32");
    for (int id = 0; id < wf_node_count(m->graph); id++)
        if (wf_layout_of(wf_node(m->graph, id)) >= WF_PANELS_BF16)
            return fail(message, "'%.120s' is rounded: adapters are merged into f32",
                        wf_node(m->graph, id)->name);
    return true;
}

bool wf_model_merge_adapters(wf_model *m, const wf_file *f, char *message) {
    merging g = { .m = m };
    if (!wf_model_read_adapters(f, &g.o, message) || !may_merge(m, message)) return false;
    bool ok = wf_loader_open(&g.load, f, "", wf_node_count(m->graph), message);
    ok = ok && merge_all(&g, false) && nothing_left(&g.load) && merge_all(&g, true);
    wf_loader_close(&g.load);
    return ok;
}
