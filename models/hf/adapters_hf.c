/* models/hf/adapters_hf.c - low-rank adapters in a folder of PEFT: adapter_config.json and
 * adapter_model.safetensors, read and written; see hf.h.
 *
 * PEFT names an adapter by the module of transformers' model that it belongs to. So the names come
 * from the tables of the families. Where weft packs queries, keys and values in one matrix and
 * the family does not, an adapter of the whole matrix is written as three with the same A. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "lm/lm_family.h"
#include "models/adapters/adapters.h"
#include "models/hf_internal.h"
#include "models/language_model.h"
#include "models/message.h"

#define CONFIG "adapter_config.json"
#define WEIGHTS "adapter_model.safetensors"
#define FRONT "base_model.model."
#define MATRIX ".weight"

/* ---- names ----------------------------------------------------------------------------------- */

/* The family of transformers whose names a model's tensors have in a folder. */
typedef struct naming {
    const hf_lm_family *lm; /* NULL: an encoder-decoder */
    const hf_family *pairs; /* the family of an encoder-decoder */
    bool gated;             /* true if an encoder-decoder has gated feed-forward layers */
} naming;

static bool find_family(const wf_model *m, naming *to, char *message) {
    const wf_language_model *l = wf_language_model_of(m);
    const wf_transformer *t = wf_transformer_of(m);
    to->lm = l ? wf_hf_lm_family_of(&l->config, message) : NULL;
    if (l) return to->lm;
    to->pairs = t ? wf_hf_family_of(&t->config) : NULL;
    to->gated = t && t->config.gated;
    return to->pairs || fail(message, "no family of transformers has models of this form");
}

bool wf_hf_packs_attention(const wf_model *m) {
    const wf_language_model *l = wf_language_model_of(m);
    char nobody[WF_MESSAGE], name[HF_NAME];
    const hf_lm_family *family = l ? wf_hf_lm_family_of(&l->config, nobody) : NULL;
    static const char packed[] = "transformer.layers.0.self_attn.in_proj_weight";
    return family && wf_hf_lm_name(family, packed, 0, name) == 1;
}

/* Writes PEFT's name for part `part` of a matrix, without an ending such as ".lora_A.weight".
 * Returns the number of parts that the matrix has in transformers; 0: it has no name there. */
static int peft_name(const naming *to, const wf_tensor *weight, int part, char name[2 * HF_NAME]) {
    char own[HF_NAME];
    int parts = to->lm ? wf_hf_lm_name(to->lm, weight->name, part, own)
                       : wf_hf_tensor_name(to->pairs, to->gated, weight->name, part, own);
    /* the family names the output's matrix in `tables`, and not among its stems */
    if (!parts && !to->lm && strcmp(weight->name, "output.weight") == 0) {
        snprintf(own, sizeof own, "%s", to->pairs->tables[HF_OUTPUT]);
        parts = 1;
    }
    size_t n = parts ? strlen(own) : 0, end = strlen(MATRIX);
    if (n <= end || strcmp(own + n - end, MATRIX) != 0) return 0;
    snprintf(name, 2 * HF_NAME, FRONT "%.*s", (int)(n - end), own);
    return parts;
}

/* The module that is part `part` of a matrix which has `parts` parts in transformers. */
static const wf_module *part_of(const wf_module *modules, int parts, int part) {
    return &modules[parts == 1 ? 0 : 1 + part];
}

/* ---- to a folder ----------------------------------------------------------------------------- */

typedef struct saving {
    const wf_model *m;
    naming to;
    hf_tensors tensors;
    wf_text modules; /* JSON array of the adapted modules' names, without its closing bracket */
    char *message;
} saving;

/* Adds rows first..first+rows-1 of a tensor under the name `name` + `end`. */
static bool add(saving *s, const char *name, const char *end, const wf_tensor *t, int64_t first,
                int64_t rows) {
    char whole[2 * HF_NAME + 32];
    const int64_t columns = t->shape[1], shape[] = { rows, columns };
    snprintf(whole, sizeof whole, "%.255s%.16s", name, end);
    float *all = malloc(wf_bytes(t) + 1), *data = wf_hf_add_tensor(&s->tensors, whole, 2, shape);
    bool ok = all && data && wf_read(t, all, wf_bytes(t));
    if (ok) memcpy(data, all + first * columns, (size_t)(rows * columns) * sizeof *data);
    free(all);
    return ok || fail(s->message, "out of memory");
}

/* Adds the LoRA adapter of `module`, if it has one, as an adapter of its part `part`: the whole of
 * A, and the part's rows of B. */
static bool add_adapter(saving *s, const char *name, const wf_module *module,
                        const wf_module *part) {
    wf_tensor *a, *b;
    if (!wf_adapter_find(s->m, module->name, &a, &b)) return true;
    wf_hf_put_as(&s->modules, s->modules.length ? ", " : "[");
    wf_hf_put_string(&s->modules, name + strlen(FRONT));
    return add(s, name, WF_LORA_A, a, 0, a->shape[0]) &&
           add(s, name, WF_LORA_B, b, part->first - module->first, part->rows);
}

/* True if one of the modules from..n-1 of a matrix has an adapter. */
static bool has_adapter(const saving *s, const wf_module *modules, int from, int n) {
    wf_tensor *a, *b;
    for (int i = from; i < n; i++)
        if (wf_adapter_find(s->m, modules[i].name, &a, &b)) return true;
    return false;
}

static bool add_matrix(saving *s, const wf_tensor *weight) {
    wf_module modules[WF_MODULE_PARTS + 1];
    char name[2 * HF_NAME];
    int n = wf_modules_of(s->m, weight, modules), parts = 0;
    bool ok = true;
    if (n) parts = peft_name(&s->to, weight, 0, name);
    if (!parts && has_adapter(s, modules, 0, n))
        return fail(s->message, "the family has no name for the matrix of the adapter '%.150s'",
                    modules[0].name);
    if (parts == 1 && has_adapter(s, modules, 1, n))
        return fail(s->message,
                    "this family has queries, keys and values in one matrix: adapters of in_proj "
                    "can be written, and those of its parts not. Train them anew with "
                    "--lora-targets in_proj, or merge them into the model: convert --adapter");
    for (int i = 0; ok && i < parts; i++) {
        const wf_module *part = part_of(modules, parts, i);
        peft_name(&s->to, weight, i, name);
        ok = add_adapter(s, name, &modules[0], part);
        if (ok && part != &modules[0]) ok = add_adapter(s, name, part, part);
    }
    return ok;
}

static bool write_config(const saving *s, const wf_hf_writer *to) {
    const wf_adapters *o = &s->m->training.adapters;
    static const char *const none[] = { "modules_to_save", "layers_to_transform", "layers_pattern",
                                        "revision" };
    wf_text t = { .lacks = s->modules.lacks };
    wf_hf_put_name(&t, "peft_type", "LORA");
    wf_hf_put_name(&t, "task_type", s->to.lm ? "CAUSAL_LM" : "SEQ_2_SEQ_LM");
    wf_hf_put_int(&t, "r", o->rank);
    wf_hf_put_real(&t, "lora_alpha", o->alpha != 0 ? o->alpha : (double)o->rank);
    wf_hf_put_real(&t, "lora_dropout", 0);
    wf_hf_put_key(&t, "target_modules");
    wf_text_puts(&t, wf_text_of(&s->modules));
    wf_hf_put_as(&t, "]");
    wf_hf_put_flag(&t, "fan_in_fan_out", s->to.lm && s->to.lm->transposed);
    wf_hf_put_flag(&t, "use_rslora", false);
    wf_hf_put_flag(&t, "use_dora", false);
    wf_hf_put_flag(&t, "inference_mode", true);
    wf_hf_put_name(&t, "bias", "none");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        wf_hf_put_key(&t, none[i]);
        wf_hf_put_as(&t, "null");
    }
    return wf_hf_put_object(&t, CONFIG, to, s->message);
}

static bool write_folder(saving *s, const char *folder, const wf_hf_writer *to) {
    static const char *const names[] = { WEIGHTS, CONFIG };
    char path[HF_PATH];
    if (!wf_hf_path(path, folder, WEIGHTS)) return fail(s->message, "the path is too long");
    if (to->begin && !to->begin(to->user, names, 2, s->message)) return false;
    return wf_hf_save_tensors(&s->tensors, path, s->message) && write_config(s, to);
}

bool wf_hf_export_adapters(const wf_model *m, const char *folder, const wf_hf_writer *to,
                           char *message) {
    char nobody[WF_MESSAGE];
    saving s = { .m = m, .message = message ? message : nobody };
    if (!m || !folder || !to || !to->put)
        return fail(message, "there is no model, no folder, or no way to write");
    if (!wf_ok(m->graph) || !m->training.adapters.rank || wf_real(m->graph) != WF_F32)
        return fail(message, "the model has no adapters, or is not in f32");
    if (!find_family(m, &s.to, s.message)) return false;
    bool ok = true;
    for (int id = 0; ok && id < wf_node_count(m->graph); id++)
        ok = add_matrix(&s, wf_node(m->graph, id));
    ok = ok && write_folder(&s, folder, to);
    wf_hf_tensors_free(&s.tensors);
    free(s.modules.at);
    return ok;
}

/* ---- adapter_config.json --------------------------------------------------------------------- */

/* Keys of adapter_config.json that may change what an adapter computes, and their values that
 * change nothing. Other values are refused. */
static const struct {
    const char *key, *values[3];
} plain[] = {
    { "peft_type", { "\"LORA\"" } },
    { "bias", { "\"none\"" } },
    { "use_dora", { "false" } },
    { "use_qalora", { "false" } },
    { "lora_bias", { "false" } },
    { "rank_pattern", { "{}" } },
    { "alpha_pattern", { "{}" } },
    { "modules_to_save", { "[]" } },
    { "layer_replication", { "[]" } },
    { "trainable_token_indices", { "[]" } },
    { "target_parameters", { "[]" } },
    { "arrow_config", { "{}" } },
    { "init_lora_weights", { "true", "false", "\"gaussian\"" } },
};

static bool is_plain(const hf_object *o, const char *key, const char *const *values,
                     char *message) {
    char text[HF_SHOWN];
    const hf_value *v = wf_hf_find(o, key);
    if (!v) return true;
    for (int i = 0; i < 3 && values[i]; i++)
        if (wf_hf_compact(v, text, sizeof text) < sizeof text && strcmp(text, values[i]) == 0)
            return true;
    return fail(message, CONFIG ": '%s' is %s, which weft does not have", key, wf_hf_show(v, text));
}

static bool read_options(const char *folder, wf_adapters *out, char *message) {
    hf_object o;
    bool ok = wf_hf_object_read(&o, folder, CONFIG, message), root = false;
    const size_t n = sizeof plain / sizeof *plain;
    for (size_t i = 0; ok && i < n; i++) ok = is_plain(&o, plain[i].key, plain[i].values, message);
    const hf_value *rank = ok ? wf_hf_find(&o, "r") : NULL;
    const hf_value *alpha = ok ? wf_hf_find(&o, "lora_alpha") : NULL;
    const hf_value *rooted = ok ? wf_hf_find(&o, "use_rslora") : NULL;
    if (ok && (!rank || !wf_hf_int(rank, &out->rank) || out->rank < 1 || out->rank > INT32_MAX))
        ok = fail(message, CONFIG ": 'r' is no rank");
    if (ok && (!alpha || !wf_hf_real(alpha, &out->alpha) || out->alpha <= 0))
        ok = fail(message, CONFIG ": 'lora_alpha' is no number above 0");
    if (ok && rooted && !wf_hf_bool(rooted, &root))
        ok = fail(message, CONFIG ": 'use_rslora' is neither true nor false");
    /* with use_rslora, PEFT divides alpha by the root of the rank */
    if (root) out->alpha *= sqrt((double)out->rank);
    wf_hf_object_free(&o);
    return ok;
}

/* ---- from a folder --------------------------------------------------------------------------- */

typedef struct loading {
    const wf_file *f;
    naming from;
    wf_text targets;
    int found; /* number of tensors that were loaded; each is one half of an adapter, A or B */
    char *message;
} loading;

static const wf_entry *find_entry(const loading *l, const char *name, const char *end) {
    char whole[2 * HF_NAME + 32];
    snprintf(whole, sizeof whole, "%.255s%.16s", name, end);
    return wf_file_find(l->f, whole);
}

static bool load_half(loading *l, const char *name, const char *end, wf_tensor *leaf) {
    const wf_entry *e = find_entry(l, name, end);
    if (!e) return fail(l->message, WEIGHTS ": '%.150s%s' is missing", name, end);
    if (wf_file_not_finite(e))
        return fail(l->message, WEIGHTS ": '%.150s' has values that are not finite", e->name);
    l->found++;
    return wf_hf_of_file(WEIGHTS, wf_file_load(e, leaf, l->message), l->message);
}

/* With `into` NULL, lists the modules of `base` that have adapters in the file. Else loads these
 * adapters into that model. */
static bool each_module(loading *l, const wf_model *base, const wf_model *into) {
    wf_module modules[WF_MODULE_PARTS + 1];
    char name[2 * HF_NAME];
    wf_tensor *a, *b;
    bool ok = true;
    for (int id = 0; ok && id < wf_node_count(base->graph); id++) {
        const wf_tensor *weight = wf_node(base->graph, id);
        int n = wf_modules_of(base, weight, modules);
        int parts = n ? peft_name(&l->from, weight, 0, name) : 0;
        for (int i = 0; ok && i < parts; i++) {
            const wf_module *module = part_of(modules, parts, i);
            peft_name(&l->from, weight, i, name);
            if (!find_entry(l, name, WF_LORA_A)) continue;
            if (!into)
                wf_hf_put_as(&l->targets, "%s%s", l->targets.length ? "," : "", module->name);
            else if (wf_adapter_find(into, module->name, &a, &b))
                ok = load_half(l, name, WF_LORA_A, a) && load_half(l, name, WF_LORA_B, b);
        }
    }
    return ok;
}

/* Builds the model of the file `base` with the listed adapters, and loads their values. NULL with
 * message. */
static wf_model *adapted(loading *l, const wf_model *plain_model, const wf_file *base,
                         wf_adapters *o) {
    if (l->targets.lacks) return fail(l->message, "out of memory"), NULL;
    if (!l->targets.length)
        return fail(l->message, WEIGHTS ": it has no adapter of a matrix of this model"), NULL;
    o->targets = l->targets.at;
    const wf_training_config training = { .adapters = *o };
    wf_model *m = wf_model_record(base, &training, WF_F32, 0, l->message);
    bool ok = m && (wf_ok(m->graph) || fail(l->message, "%s", wf_error(m->graph)));
    ok = ok && each_module(l, plain_model, m);
    if (ok && l->found != wf_file_count(l->f))
        ok = fail(l->message, WEIGHTS ": %d of its %d tensors belong to no matrix of this model",
                  wf_file_count(l->f) - l->found, wf_file_count(l->f));
    if (ok) return m;
    wf_model_free(m);
    return NULL;
}

wf_model *wf_hf_import_adapters(const char *folder, const wf_file *base, char *message) {
    char path[HF_PATH], nobody[WF_MESSAGE];
    wf_adapters o = { 0 };
    loading l = { .message = message ? message : nobody };
    if (!folder || !base) return fail(message, "there is no folder, or no model"), NULL;
    if (!read_options(folder, &o, l.message)) return NULL;
    if (!wf_hf_path(path, folder, WEIGHTS)) return fail(message, "the path is too long"), NULL;
    wf_model *m = NULL, *plain_model = wf_model_record(base, NULL, WF_F32, 0, l.message);
    wf_file *f = wf_file_open(path);
    l.f = f;
    bool ok = plain_model && (wf_file_ok(f) || fail(message, "%s", wf_file_error(f)));
    if (ok && find_family(plain_model, &l.from, l.message) && each_module(&l, plain_model, NULL))
        m = adapted(&l, plain_model, base, &o);
    wf_file_free(f), wf_model_free(plain_model);
    free(l.targets.at);
    return m;
}
