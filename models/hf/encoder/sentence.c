/* models/hf/encoder/sentence.c - the files of sentence-transformers: modules.json, and for each
 * module the config.json in its folder. They say how the vector of a line is computed from those of
 * its tokens.
 *
 * The keys of sentence-transformers 6 and those of older versions are read. The written files have
 * keys that all these versions read. */
#include <stdlib.h>
#include <string.h>

#include "bert_family.h"
#include "core/file/json.h"
#include "models/choices.h"
#include "models/message.h"
#include "models/model_internal.h"

#define MODULES "modules.json"
#define SETTINGS "sentence_bert_config.json"
#define PROMPTS "config_sentence_transformers.json"
#define POOLING "1_Pooling"
#define DENSE "2_Dense"

#define IS(key, value)                                                                             \
    { key, value, NULL } /* clang wants every field */

/* ---- keys ------------------------------------------------------------------------------------ */

/* Checks that every key is read, has its constant value, or is known to change nothing. */
static bool check_keys(const hf_object *o, const char *const *read, const hf_constant *constants,
                       const char *const *ignored, char *message) {
    enum { MOST = 16 };
    for (int i = 0; i < o->n; i++) {
        const hf_value *v = &o->values[i];
        const hf_constant *c = constants;
        while (c->name && strcmp(c->name, v->key) != 0) c++;
        if (c->name && !wf_hf_check_constant(o, v, c, message)) return false;
        if (c->name || wf_hf_listed(read, MOST, v->key) || wf_hf_listed(ignored, MOST, v->key))
            continue;
        return fail(message, "%s: '%.60s' is not known here: if it changes no result, take it out",
                    o->file, v->key);
    }
    return true;
}

/* False with message if the file has this key, and its value is not `width`. */
static bool same_width(const hf_object *o, const char *key, int64_t width, char *message) {
    const hf_value *v = wf_hf_find(o, key);
    char text[HF_SHOWN];
    int64_t is = -1;
    return !v || (wf_hf_int(v, &is) && is == width) ||
           fail(message, "%s: '%s' is %s, not %lld", o->file, key, wf_hf_show(v, text),
                (long long)width);
}

/* ---- Pooling --------------------------------------------------------------------------------- */

/* A row for each pooling, in the order of concatenation: its name, and its key in old files. */
typedef struct pooling {
    const char *name, *old;
    wf_pooling bit;
} pooling;

static const pooling poolings[] = {
    { "cls", "pooling_mode_cls_token", WF_POOLING_FIRST },
    { "max", "pooling_mode_max_tokens", WF_POOLING_MAX },
    { "mean", "pooling_mode_mean_tokens", WF_POOLING_MEAN },
    { "mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", WF_POOLING_ROOT },
    { "weightedmean", "pooling_mode_weightedmean_tokens", WF_POOLING_WEIGHTED },
    { "lasttoken", "pooling_mode_lasttoken", WF_POOLING_LAST },
};
enum { POOLINGS = sizeof poolings / sizeof *poolings };

/* Reads pooling_mode, which is a list of names, or one name. */
static bool read_modes(const hf_object *o, const hf_value *v, wf_encoder_config *c, char *message) {
    char list[256], text[HF_SHOWN], *at = list;
    if (wf_hf_compact(v, list, sizeof list) >= sizeof list) *list = '\0';
    size_t n = strlen(list);
    if (n >= 2 && *list == '[') {
        list[n - 1] = '\0';
        at++;
    }
    for (int i = 0; i < POOLINGS && *at; i++) {
        size_t name = strlen(poolings[i].name);
        if (*at != '"' || strncmp(at + 1, poolings[i].name, name) != 0 || at[name + 1] != '"')
            continue;
        c->pooling |= poolings[i].bit;
        at += name + 2;
        at += *at == ',';
    }
    return (n > 2 && !*at) || fail(message,
                                   "%s: 'pooling_mode' is %s, not some of cls, max, mean, "
                                   "mean_sqrt_len_tokens, weightedmean, lasttoken in this order",
                                   o->file, wf_hf_show(v, text));
}

static bool read_old_modes(const hf_object *o, wf_encoder_config *c, char *message) {
    for (int i = 0; i < POOLINGS; i++) {
        bool is = false;
        if (!wf_hf_flag(o, poolings[i].old, &is, message)) return false;
        if (is) c->pooling |= poolings[i].bit;
    }
    if (!c->pooling) c->pooling = WF_POOLING_MEAN;
    return true;
}

static bool read_pooling(const hf_object *o, wf_encoder_config *c, char *message) {
    static const char *const read[] = { "embedding_dimension",
                                        "word_embedding_dimension",
                                        "pooling_mode",
                                        "pooling_mode_cls_token",
                                        "pooling_mode_max_tokens",
                                        "pooling_mode_mean_tokens",
                                        "pooling_mode_mean_sqrt_len_tokens",
                                        "pooling_mode_weightedmean_tokens",
                                        "pooling_mode_lasttoken",
                                        NULL };
    static const hf_constant constants[] = { IS("include_prompt", "true"), { NULL, NULL, NULL } };
    static const char *const none[] = { NULL };
    const hf_value *v = wf_hf_find(o, "pooling_mode");
    c->pooling = 0;
    return check_keys(o, read, constants, none, message) &&
           same_width(o, "embedding_dimension", c->d_model, message) &&
           same_width(o, "word_embedding_dimension", c->d_model, message) &&
           (v ? read_modes(o, v, c, message) : read_old_modes(o, c, message));
}

/* ---- Dense ----------------------------------------------------------------------------------- */

static const char *const dense_classes[] = {
    [WF_DENSE_IDENTITY] = "torch.nn.modules.linear.Identity",
    [WF_DENSE_TANH] = "torch.nn.modules.activation.Tanh",
    [WF_DENSE_RELU] = "torch.nn.modules.activation.ReLU",
    [WF_DENSE_GELU] = "torch.nn.modules.activation.GELU",
    [WF_DENSE_SILU] = "torch.nn.modules.activation.SiLU",
};

static bool read_dense_class(const hf_object *o, wf_encoder_config *c, char *message) {
    const hf_value *v = wf_hf_find(o, "activation_function");
    char name[80], text[HF_SHOWN];
    for (int i = 0; v && wf_hf_string(v, name, sizeof name) && i <= WF_DENSE_SILU; i++)
        if (strcmp(name, dense_classes[i]) == 0) {
            c->dense_activation = (wf_dense_activation)i;
            return true;
        }
    return fail(message, "%s: 'activation_function' is %s, not Identity, Tanh, ReLU, GELU or SiLU",
                o->file, v ? wf_hf_show(v, text) : "missing");
}

/* P: the width of the concatenated results of all poolings. */
static bool read_dense(const hf_object *o, wf_encoder_config *c, int64_t P, char *message) {
    static const char *const read[] = { "in_features", "out_features", "bias",
                                        "activation_function", NULL };
    static const hf_constant constants[] = { IS("module_input_name", "\"sentence_embedding\""),
                                             IS("module_output_name", "\"sentence_embedding\""),
                                             IS("use_residual", "false"),
                                             { NULL, NULL, NULL } };
    static const char *const none[] = { NULL };
    const hf_value *v = wf_hf_find(o, "out_features");
    c->dense_bias = true;
    if (!check_keys(o, read, constants, none, message) ||
        !same_width(o, "in_features", P, message) ||
        !wf_hf_flag(o, "bias", &c->dense_bias, message) || !read_dense_class(o, c, message))
        return false;
    return (v && wf_hf_int(v, &c->dense) && c->dense > 0 && c->dense <= INT32_MAX) ||
           fail(message, "%s: 'out_features' is no width", o->file);
}

wf_file *wf_hf_open_dense(const char *folder, const char **name, char *message) {
    static const char *const names[] = { DENSE "/model.safetensors", DENSE "/pytorch_model.bin" };
    char path[HF_PATH];
    *name = names[!wf_hf_exists(folder, names[0])];
    if (!wf_hf_path(path, folder, *name)) {
        fail(message, "the folder's name is too long");
        return NULL;
    }
    wf_file *f = wf_file_open(path);
    if (wf_file_ok(f)) return f;
    fail(message, "%s: %.200s", *name, wf_file_error(f));
    wf_file_free(f);
    return NULL;
}

/* ---- modules.json ---------------------------------------------------------------------------- */

enum { MOST_MODULES = 5, NAME = 80 };
typedef struct module {
    char class[NAME], path[NAME];
} module;

static bool read_module(char *text, size_t bytes, module *m, char *message) {
    static const char *const read[] = { "idx", "name", "path", "type", NULL };
    static const hf_constant none[] = { { NULL, NULL, NULL } };
    hf_object o;
    bool ok = wf_hf_object_parse(&o, MODULES, text, bytes, message) &&
              check_keys(&o, read, none, read, message);
    const hf_value *type = ok ? wf_hf_find(&o, "type") : NULL, *path = wf_hf_find(&o, "path");
    if (ok && (!type || !wf_hf_string(type, m->class, NAME) || !path ||
               !wf_hf_string(path, m->path, NAME)))
        ok = fail(message, MODULES ": a module has no 'type' or no 'path'");
    char *dot = ok ? strrchr(m->class, '.') : NULL;
    if (dot) memmove(m->class, dot + 1, strlen(dot));
    wf_hf_object_free(&o);
    return ok;
}

/* Reads the array of modules in `text`. `copy` has the same bytes, because the JSON reader decodes
 * strings in place. Returns how many modules there are, or -1 with message. */
static int read_list(const char *text, char *copy, size_t bytes, module *modules, char *message) {
    struct wf_json j;
    bool first = true;
    int n = 0;
    if (!wf_json_begin(&j, copy, bytes)) return fail(message, MODULES ": it is not UTF-8"), -1;
    while (wf_json_item(&j, &first)) {
        wf_json_next(&j);
        size_t from = (size_t)(j.at - j.start);
        if (!wf_json_skip(&j)) break;
        if (n == MOST_MODULES)
            return fail(message, MODULES ": there are more than %d modules", MOST_MODULES), -1;
        size_t length = (size_t)(j.at - j.start) - from;
        char *one = wf_copy(text + from, length);
        if (!one) return fail(message, "out of memory"), -1;
        if (!read_module(one, length, &modules[n++], message)) return -1;
    }
    if (!*j.error) wf_json_finish(&j);
    return *j.error ? (fail(message, MODULES ": %s", j.error), -1) : n;
}

static int read_modules(const char *folder, module *modules, char *message) {
    size_t bytes;
    char *text = wf_hf_read(folder, MODULES, &bytes, message);
    char *copy = text ? wf_copy(text, bytes) : NULL;
    int n = -1;
    if (text && !copy) fail(message, "out of memory");
    if (copy) n = read_list(text, copy, bytes, modules, message);
    free(text), free(copy);
    return n;
}

static bool is(const module *m, const char *class, const char *path) {
    return strcmp(m->class, class) == 0 && strcmp(m->path, path) == 0;
}

/* Reads the settings of Normalize, from a file that often does not exist. */
static bool read_normalize(const char *folder, const char *file, char *message) {
    static const char *const none[] = { NULL };
    static const hf_constant constants[] = { IS("module_input_name", "\"sentence_embedding\""),
                                             IS("module_output_name", "\"sentence_embedding\""),
                                             { NULL, NULL, NULL } };
    hf_object o;
    bool ok = wf_hf_object_read_if(&o, folder, file, message) &&
              check_keys(&o, none, constants, none, message);
    wf_hf_object_free(&o);
    return ok;
}

static bool read_part(const char *folder, const module *m, hf_bert_config *c, char *message) {
    hf_object o;
    bool pools = strcmp(m->path, POOLING) == 0;
    bool ok = wf_hf_object_read(&o, folder, pools ? POOLING "/config.json" : DENSE "/config.json",
                                message);
    if (ok && pools)
        ok = read_pooling(&o, &c->c, message);
    else if (ok)
        ok = read_dense(&o, &c->c, wf_encoder_pooled_width(&c->c), message);
    wf_hf_object_free(&o);
    return ok;
}

/* Reads the n modules, which must be Transformer, Pooling, perhaps Dense, perhaps Normalize, in
 * this order. */
static bool read_chain(const char *folder, const module *m, int n, hf_bert_config *c,
                       char *message) {
    int i = 2;
    if (n < 2 || !is(&m[0], "Transformer", "") || !is(&m[1], "Pooling", POOLING))
        return fail(message, MODULES ": it does not begin with a Transformer in the folder itself "
                                     "and a Pooling in " POOLING);
    if (!read_part(folder, &m[1], c, message)) return false;
    if (i < n && is(&m[i], "Dense", DENSE) && !read_part(folder, &m[i++], c, message)) return false;
    const char *path = i == 2 ? "2_Normalize" : "3_Normalize";
    if (i < n && is(&m[i], "Normalize", path)) {
        const char *file = i++ == 2 ? "2_Normalize/config.json" : "3_Normalize/config.json";
        c->c.normalize = true;
        if (!read_normalize(folder, file, message)) return false;
    }
    return i == n || fail(message, MODULES ": weft has no module '%.60s' in '%.60s' at this place",
                          m[i].class, m[i].path);
}

/* ---- lengths and prompts --------------------------------------------------------------------- */

static bool read_settings(const char *folder, hf_bert_config *c, char *message) {
    static const char *const read[] = { "max_seq_length", NULL };
    static const char *const ignored[] = { "modality_config", "module_output_name", NULL };
    static const hf_constant constants[] = { IS("do_lower_case", "false"),
                                             IS("transformer_task", "\"feature-extraction\""),
                                             { NULL, NULL, NULL } };
    hf_object o;
    bool ok = wf_hf_object_read_if(&o, folder, SETTINGS, message) &&
              check_keys(&o, read, constants, ignored, message);
    const hf_value *v = ok ? wf_hf_find(&o, "max_seq_length") : NULL;
    if (v && (!wf_hf_int(v, &c->longest) || c->longest < 1))
        ok = fail(message, SETTINGS ": 'max_seq_length' is no count");
    wf_hf_object_free(&o);
    return ok;
}

static bool read_prompts(const char *folder, wf_hf *out, char *message) {
    static const char *const read[] = { "prompts", "default_prompt_name", "similarity_fn_name",
                                        NULL };
    static const char *const ignored[] = { "__version__", NULL };
    static const hf_constant constants[] = { IS("model_type", "\"SentenceTransformer\""),
                                             { NULL, NULL, NULL } };
    hf_object o;
    char text[HF_SHOWN];
    bool ok = wf_hf_object_read_if(&o, folder, PROMPTS, message) &&
              check_keys(&o, read, constants, ignored, message);
    const hf_value *prompt = ok ? wf_hf_find(&o, "default_prompt_name") : NULL;
    const hf_value *similar = ok ? wf_hf_find(&o, "similarity_fn_name") : NULL;
    if (prompt)
        wf_hf_note(out->notes,
                   PROMPTS ": encode() puts the prompt %s before each line: embed --prompt TEXT "
                           "does",
                   wf_hf_show(prompt, text));
    if (similar && strcmp(wf_hf_show(similar, text), "\"cosine\"") != 0)
        wf_hf_note(out->notes,
                   PROMPTS ": 'similarity_fn_name' is %s: embed --search compares by "
                           "the cosine",
                   text);
    wf_hf_object_free(&o);
    return ok;
}

bool wf_hf_read_sentence(const char *folder, hf_bert_config *c, wf_hf *out, char *message) {
    module modules[MOST_MODULES];
    if (!wf_hf_exists(folder, MODULES)) return true;
    int n = read_modules(folder, modules, message);
    return n >= 0 && read_chain(folder, modules, n, c, message) &&
           read_settings(folder, c, message) && read_prompts(folder, out, message);
}

/* ---- written --------------------------------------------------------------------------------- */

static void put_module(wf_text *t, int i, const char *path, const char *type) {
    wf_hf_put_as(t,
                 "%s\n  {\"idx\": %d, \"name\": \"%d\", \"path\": \"%s\", \"type\": "
                 "\"sentence_transformers.models.%s\"}",
                 i ? "," : "[", i, i, path, type);
}

static bool write_modules(const wf_encoder_config *c, const wf_hf_writer *to, char *message) {
    wf_text t = { 0 };
    int n = 2;
    put_module(&t, 0, "", "Transformer");
    put_module(&t, 1, POOLING, "Pooling");
    if (c->dense) put_module(&t, n++, DENSE, "Dense");
    if (c->normalize) put_module(&t, n, n == 2 ? "2_Normalize" : "3_Normalize", "Normalize");
    wf_hf_put_as(&t, "\n]\n");
    return wf_hf_put_file(&t, MODULES, to, message);
}

/* Writes the older keys, which new versions read, too. */
static bool write_pooling(const wf_encoder_config *c, const wf_hf_writer *to, char *message) {
    wf_text t = { 0 };
    wf_hf_put_int(&t, "word_embedding_dimension", c->d_model);
    for (int i = 0; i < POOLINGS; i++)
        wf_hf_put_flag(&t, poolings[i].old, (c->pooling & poolings[i].bit) != 0);
    wf_hf_put_flag(&t, "include_prompt", true);
    return wf_hf_put_object(&t, POOLING "/config.json", to, message);
}

static bool write_dense(const wf_encoder_config *c, const wf_hf_writer *to, char *message) {
    wf_text t = { 0 };
    wf_hf_put_int(&t, "in_features", wf_encoder_pooled_width(c));
    wf_hf_put_int(&t, "out_features", c->dense);
    wf_hf_put_flag(&t, "bias", c->dense_bias);
    wf_hf_put_name(&t, "activation_function", dense_classes[c->dense_activation]);
    return wf_hf_put_object(&t, DENSE "/config.json", to, message);
}

static bool write_settings(const wf_encoder_config *c, const wf_hf_writer *to, char *message) {
    wf_text t = { 0 };
    wf_hf_put_int(&t, "max_seq_length", c->max_len);
    wf_hf_put_flag(&t, "do_lower_case", false);
    return wf_hf_put_object(&t, SETTINGS, to, message);
}

bool wf_hf_write_sentence(const wf_encoder_config *c, const wf_hf_writer *to, char *message) {
    return write_modules(c, to, message) && write_pooling(c, to, message) &&
           (!c->dense || write_dense(c, to, message)) && write_settings(c, to, message);
}
