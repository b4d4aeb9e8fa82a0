/* models/adapters/adapters.c - low-rank adapters in the graph of a model: their names, their
 * parameters and their products. See adapters.h.
 *
 * A hook of parameters declares A and B beside each matrix W that the targets name. A hook of
 * products adds alpha / rank x A^T B^T to x W^T. So W + B A is never computed. */
#include "adapters.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/graph_internal.h"
#include "core/product_hook.h"
#include "models/kind.h"
#include "models/message.h"

#define USUAL "q_proj,v_proj"
#define ALL "all-linear"

/* ---- modules --------------------------------------------------------------------------------- */

/* True if the last part of a module's name, after its last dot, is that of a matrix. */
static bool is_matrix(const char *module) {
    /* The names after "output" are matrices of an SSRU and of average attention. */
    static const char *const matrices[] = { "out_proj", "linear1",    "linear2",    "linear3",
                                            "output",   "input",      "forget",     "inner",
                                            "outer",    "input_gate", "forget_gate" };
    const char *dot = strrchr(module, '.'), *last = dot ? dot + 1 : module;
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        if (strcmp(last, matrices[i]) == 0) return true;
    return false;
}

/* Copies a name without its ending `end`. False: the name has another ending, or is too long. */
static bool without(const char *name, const char *end, char out[WF_MODULE_NAME]) {
    size_t n = strlen(name), k = strlen(end);
    if (n < k || n - k >= WF_MODULE_NAME - 16 || strcmp(name + n - k, end) != 0) return false;
    memcpy(out, name, n - k);
    out[n - k] = '\0';
    return true;
}

static wf_module module_of(const char *stem, const char *last, int64_t first, int64_t rows) {
    wf_module module = { .first = first, .rows = rows };
    snprintf(module.name, sizeof module.name, "%.239s%.16s", stem, last);
    return module;
}

int wf_modules_of(const wf_model *m, const wf_tensor *weight,
                  wf_module modules[WF_MODULE_PARTS + 1]) {
    char stem[WF_MODULE_NAME];
    if (weight->kind != WF_PARAM || weight->ndim != 2) return 0;
    int64_t rows = weight->shape[0];
    if (without(weight->name, ".weight", stem) && is_matrix(stem)) {
        modules[0] = module_of(stem, "", 0, rows);
        return 1;
    }
    if (!without(weight->name, "in_proj_weight", stem)) return 0;
    const wf_block_options o = wf_model_block(m);
    int64_t groups = o.num_kv_heads ? o.num_kv_heads : o.num_heads;
    int64_t kv = rows / (o.num_heads + 2 * groups) * groups;
    modules[0] = module_of(stem, "in_proj", 0, rows);
    modules[1] = module_of(stem, "q_proj", 0, rows - 2 * kv);
    modules[2] = module_of(stem, "k_proj", rows - 2 * kv, kv);
    modules[3] = module_of(stem, "v_proj", rows - kv, kv);
    return WF_MODULE_PARTS + 1;
}

/* True if the target of n characters is the module's whole name, or its end after a dot, or ALL.
 * ALL fits every matrix of the layers, and of an in_proj only its parts q_proj, k_proj and
 * v_proj. */
static bool fits(const char *target, size_t n, const char *module) {
    size_t k = strlen(module);
    if (n == strlen(ALL) && memcmp(target, ALL, n) == 0)
        return strcmp(module, "output") != 0 && !fits("in_proj", strlen("in_proj"), module);
    if (!n || n > k || memcmp(module + k - n, target, n) != 0) return false;
    return n == k || module[k - n - 1] == '.';
}

/* The target after this one of n characters, in a list with commas. */
static const char *after(const char *target, size_t n) {
    return target + n + (target[n] == ',');
}

/* True if one of the targets, separated by commas, is this module. */
static bool is_among(const char *targets, const char *module) {
    for (size_t n; *targets; targets = after(targets, n)) {
        n = strcspn(targets, ",");
        if (fits(targets, n, module)) return true;
    }
    return false;
}

static wf_tensor *find(const wf_model *m, const char *module, const char *end) {
    char name[WF_MODULE_NAME + 32];
    snprintf(name, sizeof name, "%.255s%.16s", module, end);
    return wf_find(m->graph, name);
}

bool wf_adapter_find(const wf_model *m, const char *module, wf_tensor **a, wf_tensor **b) {
    *a = find(m, module, WF_LORA_A);
    *b = find(m, module, WF_LORA_B);
    return *a && *b && wf_from_hook(*a) && wf_from_hook(*b);
}

double wf_adapter_scale(const wf_adapters *o) {
    return o->alpha != 0 ? o->alpha / (double)o->rank : 1;
}

/* ---- the graph ------------------------------------------------------------------------------- */

/* A is uniform in +-1 / sqrt(in), as PEFT has it: Kaiming's bound for a slope of sqrt(5). */
static void declare(wf_model *m, const wf_tensor *weight, const wf_module *module) {
    wf_graph *g = m->graph;
    int64_t in = weight->shape[1], rank = m->training.adapters.rank;
    const char *outer = wf_scope(g, module->name);
    wf_param(g, "lora_A.weight", 2, (int64_t[]){ rank, in },
             wf_init_uniform(1 / sqrt((double)(in > 0 ? in : 1))));
    wf_param(g, "lora_B.weight", 2, (int64_t[]){ module->rows, rank }, wf_init_zeros());
    wf_scope(g, outer);
}

static wf_tensor *declare_all(void *user, wf_tensor *weight) {
    wf_model *m = user;
    wf_module modules[WF_MODULE_PARTS + 1];
    int n = wf_modules_of(m, weight, modules);
    for (int i = 0; i < n; i++) {
        if (!is_among(m->training.adapters.targets, modules[i].name)) continue;
        declare(m, weight, &modules[i]);
        if (i == 0) break; /* the whole matrix */
    }
    return NULL;
}

/* Rows first..first+n-1 of a matrix. */
static wf_tensor *rows_of(wf_tensor *b, int64_t first, int64_t n) {
    return n == b->shape[0] ? b : wf_slice(b, 0, first, first + n);
}

static wf_tensor *apply(void *user, wf_tensor *y, wf_tensor *x, wf_tensor *weight, int64_t first) {
    const wf_model *m = user;
    wf_module modules[WF_MODULE_PARTS + 1];
    wf_tensor *a, *b;
    int64_t rows = y->shape[y->ndim - 1];
    int n = wf_modules_of(m, weight, modules);
    for (int i = 0; i < n; i++) {
        const wf_module *module = &modules[i];
        bool inside = first >= module->first && first + rows <= module->first + module->rows;
        if (!inside || !wf_adapter_find(m, module->name, &a, &b)) continue;
        wf_tensor *h = wf_gemm(x, a, NULL, WF_TRANSPOSE_B); /* [...,rank] */
        double scale = wf_adapter_scale(&m->training.adapters);
        if (scale != 1) h = wf_scale(h, scale);
        y = wf_gemm(h, rows_of(b, first - module->first, rows), y, WF_TRANSPOSE_B);
    }
    return y;
}

void wf_adapters_begin(wf_model *m) {
    wf_adapters *o = &m->training.adapters;
    const char *targets = o->targets ? o->targets : USUAL;
    o->targets = wf_copy(targets, strlen(targets));
    if (!o->targets)
        wf_poison(m->graph, "out of memory");
    else if (o->rank < 0 || o->rank > INT32_MAX)
        wf_poison(m->graph, "adapters of rank %lld, not from 0 to 2^31 - 1", (long long)o->rank);
    else if (!isfinite(o->alpha) || o->alpha < 0)
        wf_poison(m->graph, "the alpha of adapters is %g, not 0 or more", o->alpha);
    else if (m->training.on_param)
        wf_poison(m->graph, "a model has adapters, or a hook of its parameters, not both");
    if (!wf_ok(m->graph)) return;
    wf_on_param(m->graph, declare_all, m);
    *wf_product_hook_of(m->graph) = (wf_product_hook){ .call = apply, .user = m };
}

/* True if some parameter is an adapter that this target names. */
static bool has_adapter(const wf_model *m, const char *target, size_t n) {
    char module[WF_MODULE_NAME];
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        if (t->kind == WF_PARAM && wf_from_hook(t) && without(t->name, WF_LORA_A, module) &&
            fits(target, n, module))
            return true;
    }
    return false;
}

void wf_adapters_end(wf_model *m) {
    const char *target = m->training.adapters.targets;
    if (!wf_ok(m->graph)) return;
    wf_product_hook_of(m->graph)->call = NULL;
    if (!*target) wf_poison(m->graph, "there is no target of the adapters");
    for (size_t n; *target; target = after(target, n)) {
        n = strcspn(target, ",");
        if (has_adapter(m, target, n)) continue;
        wf_poison(m->graph,
                  "no matrix of the model is called '%.*s'; in_proj or q_proj, k_proj and v_proj, "
                  "out_proj, linear1, linear2, linear3, output, input, forget, inner, outer, "
                  "input_gate, forget_gate and all-linear are targets",
                  (int)n, target);
        return;
    }
}
